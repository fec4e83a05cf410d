//! Names of the functions in a recording's stacks: by symbols and debug information of the files that
//! the process had mapped, and of their separate debug files.
//!
//! A file that is not the one that was mapped (its build id differs) gives no names. Functions that the
//! process made at run time have those of its map for perf ([`crate::perf_map`]), if it wrote one.

use super::data::Frame;
use crate::recording::{Made, Module, Node, Process};
use addr2line::{demangle_auto, Loader};
use object::Object;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::path::Path;

/// The recorder's own file: its functions stand between the program and the allocator.
const RECORDER: &str = "libslabyard-record.so";

/// How CPython begins the names of Python's functions.
const PYTHON: &str = "py::";

/// Whether it is a function of an interpreted language, as CPython and node name them. It was made at
/// run time, so it is in no file: `JS:` may also begin a name of C++.
pub fn is_interpreted(frame: &Frame) -> bool {
    const BEGINNINGS: [&str; 6] = [
        PYTHON,
        "JS:",
        "LazyCompile:",
        "Function:",
        "Script:",
        "Eval:",
    ];
    let name = frame.function.as_str();
    frame.module.is_empty() && BEGINNINGS.iter().any(|begin| name.starts_with(begin))
}

/// The frames of a stack, in the words of the program.
pub struct Names<'a> {
    nodes: &'a [Node],
    modules: &'a [Module],
    made: &'a Made,
    /// Ends of the paths of files whose functions are left out.
    own: Vec<String>,
    files: Vec<Option<Loader>>,
    opened: Vec<bool>,
    /// The frames at an address of a module, the innermost one first: more than one if functions are
    /// inlined there.
    known: HashMap<(usize, u64), Vec<u32>>,
    numbers: HashMap<Frame, u32>,
    /// All frames that were found.
    pub frames: Vec<Frame>,
    /// The files that are not those that were mapped.
    pub changed: BTreeSet<String>,
    /// Stacks whose outermost frames could not be found.
    pub cut: BTreeSet<u32>,
}

impl<'a> Names<'a> {
    pub fn of_recording(process: &'a Process) -> Self {
        Self::new(
            &process.stacks,
            &process.modules,
            &process.made,
            vec![RECORDER.to_string()],
        )
    }

    /// `own`: ends of the paths of files whose functions are left out.
    pub fn new(nodes: &'a [Node], modules: &'a [Module], made: &'a Made, own: Vec<String>) -> Self {
        Names {
            nodes,
            modules,
            made,
            own,
            files: modules.iter().map(|_| None).collect(),
            opened: vec![false; modules.len()],
            known: HashMap::new(),
            numbers: HashMap::new(),
            frames: Vec::new(),
            changed: BTreeSet::new(),
            cut: BTreeSet::new(),
        }
    }

    /// The frames of a stack, the outermost one first. A stack that is not known has one frame, which
    /// says so.
    pub fn of(&mut self, stack: u32) -> Vec<u32> {
        let mut frames = Vec::new();
        let mut number = stack;
        while let Some(&node) = self.node(number) {
            if node.address == 0 {
                self.cut.insert(stack);
                frames.push(self.numbered(Frame::named("[cut]")));
            } else {
                frames.extend(self.at(number, node.address));
            }
            number = node.caller;
        }
        if frames.is_empty() {
            frames.push(self.numbered(Frame::named("[no stack]")));
        }
        frames.reverse();
        frames
    }

    fn node(&self, number: u32) -> Option<&Node> {
        self.nodes.get((number as usize).checked_sub(1)?)
    }

    /// The module with an address, when node `number` was made.
    fn module_of(&self, number: u32, address: u64) -> Option<usize> {
        let modules = self.modules.iter().enumerate().rev();
        let mut held = modules.filter(|(_, one)| one.since <= u64::from(number));
        held.find(|(_, one)| (one.start..one.end).contains(&address))
            .map(|(index, _)| index)
    }

    /// The frames at a return address: those of the call before it.
    fn at(&mut self, number: u32, address: u64) -> Vec<u32> {
        let call = address - 1;
        let module = self.module_of(number, call);
        let key = (module.unwrap_or(usize::MAX), call);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let is_made = module.is_none_or(|module| self.modules[module].is_made());
        let name = self.made.name(call).filter(|_| is_made);
        let frames = match module {
            _ if name.is_some() => vec![made_frame(name.unwrap_or("?"))],
            Some(module) if self.is_own(&self.modules[module].path) => Vec::new(),
            Some(module) => self.look_up(module, call),
            None => vec![Frame::named(&format!("{call:#x}"))],
        };
        let numbers: Vec<u32> = frames.into_iter().map(|one| self.numbered(one)).collect();
        self.known.insert(key, numbers.clone());
        numbers
    }

    fn is_own(&self, path: &str) -> bool {
        self.own.iter().any(|own| path.ends_with(own))
    }

    fn numbered(&mut self, frame: Frame) -> u32 {
        if let Some(&number) = self.numbers.get(&frame) {
            return number;
        }
        let number = self.frames.len() as u32;
        self.frames.push(frame.clone());
        self.numbers.insert(frame, number);
        number
    }

    fn look_up(&mut self, index: usize, address: u64) -> Vec<Frame> {
        if !self.opened[index] {
            self.opened[index] = true;
            self.files[index] = self.open(index);
        }
        let module = &self.modules[index];
        let within = address.wrapping_sub(module.bias);
        let mut found = Vec::new();
        if let Some(file) = &self.files[index] {
            found = frames_in(file, within);
        }
        if found.is_empty() {
            let file = file_name(module);
            found.push(Frame::named(&format!("{file}+{within:#x}")));
        }
        for frame in &mut found {
            frame.module = module.path.clone();
        }
        found
    }

    fn open(&mut self, index: usize) -> Option<Loader> {
        let module = &self.modules[index];
        let path = Path::new(module.path.trim_end_matches(" (deleted)"));
        if !path.is_absolute() {
            return None;
        }
        if !is_same(path, &module.build_id) {
            self.changed.insert(module.path.clone());
            return None;
        }
        Loader::new(path).ok()
    }
}

/// The frame of a function that was made at run time. CPython's names are "py::function:file".
fn made_frame(name: &str) -> Frame {
    let python = name
        .strip_prefix(PYTHON)
        .and_then(|rest| rest.split_once(':'));
    match python {
        Some((function, file)) => Frame {
            file: file.to_string(),
            ..Frame::named(&format!("{PYTHON}{function}"))
        },
        None => Frame::named(name),
    }
}

/// Whether a file has this build id; files without one are believed.
fn is_same(path: &Path, build_id: &[u8]) -> bool {
    if !path.is_file() {
        return false;
    }
    let Ok(file) = File::open(path) else {
        return false;
    };
    // SAFETY: the file is a library or a program, which is replaced rather than changed.
    let Ok(bytes) = (unsafe { memmap2::Mmap::map(&file) }) else {
        return false;
    };
    let elf = object::File::parse(&*bytes);
    let found = elf.as_ref().map(|elf| elf.build_id().ok().flatten());
    found.is_ok_and(|found| build_id.is_empty() || found.is_none_or(|found| found == build_id))
}

fn file_name(module: &Module) -> &str {
    match module.path.rsplit('/').next() {
        Some("") | None => "[code made at run time]",
        Some(name) => name,
    }
}

/// The frames at an address of a file: by debug information, or else by a symbol.
fn frames_in(file: &Loader, address: u64) -> Vec<Frame> {
    let mut found = Vec::new();
    if let Ok(mut frames) = file.find_frames(address) {
        while let Ok(Some(frame)) = frames.next() {
            let Some(function) = frame.function else {
                continue;
            };
            let name = function.demangle().unwrap_or(Cow::Borrowed("?"));
            let mut made = Frame::named(&name);
            if let Some(place) = frame.location {
                made.file = place.file.unwrap_or("").to_string();
                made.line = place.line.unwrap_or(0);
            }
            found.push(made);
        }
    }
    if found.is_empty() {
        let symbol = file.find_symbol(address);
        let name = symbol.map(|name| demangle_auto(Cow::Borrowed(name), None));
        found.extend(name.map(|name| Frame::named(&name)));
    }
    found
}
