//! Real programs of the system, and their inputs, which are generated or come from the folder
//! `programs/inputs`. Each does the same work in each run, reads no other files, and takes about a second.

use super::{Group, Job};
use crate::loops::Random;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Makes the input in the folder; `size` is the amount of work. Returns the arguments.
type Prepare = fn(&Path, u64) -> Result<Vec<String>, String>;

/// One program.
#[derive(Clone, Copy)]
pub struct Real {
    pub name: &'static str,
    says: &'static str,
    /// The commands that must be installed. The first one is the program, and tells its version.
    commands: &'static [&'static str],
    version: &'static str,
    full: u64,
    quick: u64,
    prepare: Prepare,
}

/// All programs, in the order of the report.
pub const ALL: [Real; 10] = [
    Real {
        name: "python",
        says: "Python: JSON, sorting, trees of objects, PYTHONMALLOC=malloc",
        commands: &["python3"],
        version: "--version",
        full: 20,
        quick: 2,
        prepare: |folder, size| {
            script(
                folder,
                "python.py",
                include_str!("../../programs/inputs/python.py"),
                size,
            )
        },
    },
    Real {
        name: "sqlite",
        says: "SQLite: a database in memory, joins, windows, JSON",
        commands: &["sqlite3"],
        version: "--version",
        full: 160_000,
        quick: 16_000,
        prepare: sqlite,
    },
    Real {
        name: "perl",
        says: "Perl: hashes of strings, records, patterns",
        commands: &["perl"],
        version: "-v",
        full: 12,
        quick: 1,
        prepare: |folder, size| {
            script(
                folder,
                "perl.pl",
                include_str!("../../programs/inputs/perl.pl"),
                size,
            )
        },
    },
    Real {
        name: "lua",
        says: "Lua: tables, strings, coroutines",
        commands: &["lua5.4"],
        version: "-v",
        full: 30,
        quick: 3,
        prepare: |folder, size| {
            script(
                folder,
                "lua.lua",
                include_str!("../../programs/inputs/lua.lua"),
                size,
            )
        },
    },
    Real {
        name: "gcc",
        says: "gcc -O1 compiles copies of a C file of this project",
        commands: &["gcc"],
        version: "--version",
        full: 8,
        quick: 1,
        prepare: gcc,
    },
    Real {
        name: "g++",
        says: "g++ -O1 compiles a C++ file of this project with containers",
        commands: &["g++"],
        version: "--version",
        full: 1,
        quick: 1,
        prepare: gxx,
    },
    Real {
        name: "git",
        says: "git gc --aggressive in a generated repository",
        commands: &["git"],
        version: "--version",
        full: 150,
        quick: 30,
        prepare: git,
    },
    Real {
        name: "z3",
        says: "Z3: linear integer arithmetic and bit vectors",
        commands: &["z3"],
        version: "--version",
        full: 60,
        quick: 6,
        prepare: z3,
    },
    Real {
        name: "ghostscript",
        says: "Ghostscript draws generated pages",
        commands: &["gs"],
        version: "--version",
        full: 4,
        quick: 1,
        prepare: ghostscript,
    },
    Real {
        name: "redis",
        says: "a Redis server executes commands from a pipe",
        commands: &["redis-check-rdb", "redis-cli"],
        version: "--version",
        full: 300_000,
        quick: 30_000,
        prepare: redis,
    },
];

/// Where the programs are looked for: Debian's folders first.
pub fn path() -> OsString {
    let mut path = OsString::from("/usr/sbin:/usr/bin:/sbin:/bin");
    if let Some(more) = std::env::var_os("PATH") {
        path.push(":");
        path.push(more);
    }
    path
}

fn find(command: &str) -> Option<PathBuf> {
    let folders = path();
    let found = std::env::split_paths(&folders).map(|folder| folder.join(command));
    found.into_iter().find(|file| file.is_file())
}

impl Real {
    /// Makes the input for this amount of work, and returns the program and its arguments. An error
    /// if a command is missing.
    pub fn command(&self, folder: &Path, size: u64) -> Result<Vec<OsString>, String> {
        for command in self.commands {
            find(command).ok_or_else(|| format!("there is no {command} here"))?;
        }
        let folder = folder.join(self.name);
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let arguments = (self.prepare)(&folder, size)?;
        Ok(arguments.into_iter().map(OsString::from).collect())
    }

    pub fn job(&self, folder: &Path, quick: bool) -> Result<Job, String> {
        Ok(Job {
            name: self.name,
            says: self.says,
            group: Group::Real,
            command: self.command(folder, if quick { self.quick } else { self.full })?,
        })
    }
}

/// The first line that the program prints about its version.
pub fn version(name: &str) -> String {
    let Some(one) = ALL.iter().find(|one| one.name == name) else {
        return String::new();
    };
    let output = Command::new(one.commands[0])
        .arg(one.version)
        .env("PATH", path())
        .stdin(Stdio::null())
        .output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find(|line| !line.trim().is_empty());
    line.unwrap_or("").trim().chars().take(60).collect()
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    crate::part::write(path, text)
}

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|&word| word.to_owned()).collect()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Runs a command that makes an input.
fn must_run(command: &mut Command) -> Result<(), String> {
    let output = command.env("PATH", path()).output();
    let output = output.map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// A script of a language, whose interpreter's name is the first part of the file's.
fn script(folder: &Path, file: &str, text: &str, size: u64) -> Result<Vec<String>, String> {
    let path = folder.join(file);
    write(&path, text)?;
    let program = match file {
        "python.py" => "python3",
        "lua.lua" => "lua5.4",
        _ => "perl",
    };
    Ok(words(&[program, &shown(&path), &size.to_string()]))
}

fn sqlite(folder: &Path, size: u64) -> Result<Vec<String>, String> {
    let path = folder.join("sqlite.sql");
    let text = include_str!("../../programs/inputs/sqlite.sql");
    write(&path, &text.replace("@SIZE@", &size.to_string()))?;
    let read = format!(".read {}", shown(&path));
    Ok(words(&["sqlite3", ":memory:", &read]))
}

/// Copies of a file of this project, in each of which the functions have other names.
fn gcc(folder: &Path, size: u64) -> Result<Vec<String>, String> {
    let (header, text) = (
        include_str!("../../programs/program.h"),
        include_str!("../../programs/cfrac.c"),
    );
    write(&folder.join("program.h"), header)?;
    let mut arguments = words(&["gcc", "-std=gnu11", "-O1", "-S"]);
    for number in 0..size {
        let path = folder.join(format!("cfrac{number}.c"));
        write(&path, &text.replace("main(", &format!("main{number}(")))?;
        arguments.push(shown(&path));
    }
    Ok(arguments)
}

fn gxx(folder: &Path, _: u64) -> Result<Vec<String>, String> {
    for (name, text) in [
        (
            "programs.hpp",
            include_str!("../../kernels/truth/programs.hpp"),
        ),
        (
            "containers.cpp",
            include_str!("../../kernels/truth/containers.cpp"),
        ),
    ] {
        write(&folder.join(name), text)?;
    }
    let source = shown(&folder.join("containers.cpp"));
    Ok(words(&[
        "g++",
        "-std=c++17",
        "-O1",
        "-S",
        "-o",
        "/dev/null",
        &source,
    ]))
}

/// A stream for `git fast-import`: texts of which each commit changes some lines.
fn history(commits: u64) -> String {
    let mut random = Random(9);
    let mut files: Vec<Vec<String>> = (0..12)
        .map(|file| {
            (0..600)
                .map(|line| format!("file {file}, line {line}\n"))
                .collect()
        })
        .collect();
    let mut text = String::new();
    for commit in 1..=commits {
        let _ = write!(
            text,
            "commit refs/heads/main\ncommitter A <a@b> {} +0000\ndata 4\nnext\n",
            1_600_000_000 + commit * 60
        );
        for (number, lines) in files.iter_mut().enumerate() {
            for _ in 0..8 {
                let line = random.below(lines.len());
                lines[line] = format!("changed by {commit}: {}\n", random.below(1 << 30));
            }
            let content = lines.concat();
            let _ = write!(
                text,
                "M 100644 inline folder{}/file{number}\ndata {}\n{content}\n",
                number % 4,
                content.len()
            );
        }
    }
    text
}

fn git(folder: &Path, size: u64) -> Result<Vec<String>, String> {
    let repository = folder.join("repository");
    let stream = folder.join("stream");
    write(&stream, &history(size))?;
    let git = || {
        let mut command = Command::new("git");
        command.arg("-C").arg(&repository);
        command
    };
    fs::create_dir_all(&repository).map_err(|error| error.to_string())?;
    must_run(git().args(["init", "-q", "-b", "main"]))?;
    let input = fs::File::open(&stream).map_err(|error| error.to_string())?;
    must_run(git().args(["fast-import", "--quiet"]).stdin(input))?;
    let mut arguments = words(&["git", "-C", &shown(&repository)]);
    arguments.extend(words(&[
        "-c",
        "pack.threads=1",
        "-c",
        "gc.aggressiveWindow=60",
    ]));
    arguments.extend(words(&["gc", "--aggressive", "--quiet", "--prune=now"]));
    Ok(arguments)
}

/// Formulas one after the other; the solver forgets each before the next.
fn z3(folder: &Path, size: u64) -> Result<Vec<String>, String> {
    const NAMES: usize = 40;
    let mut random = Random(5);
    let mut text = String::new();
    for number in 0..size {
        text += "(reset)\n";
        for i in 0..NAMES {
            let _ = writeln!(
                text,
                "(declare-const x{i} Int)(declare-const y{i} (_ BitVec 16))"
            );
        }
        for i in 0..NAMES {
            let (a, b) = (random.below(NAMES), random.below(NAMES));
            let _ = writeln!(
                text,
                "(assert (< (+ x{i} (* 3 x{a})) (+ {} (* 2 x{b}))))(assert (> x{i} (- {i} 100)))",
                i * 7 + 50
            );
            if i > 0 {
                let _ = writeln!(
                    text,
                    "(assert (= (bvmul y{i} #x{:04x}) (bvadd y{} #x{:04x})))",
                    2 * i + 3,
                    i - 1,
                    (i as u64 * 977 + number) % 65536
                );
            }
        }
        text += "(check-sat)\n";
    }
    let path = folder.join("formula.smt2");
    write(&path, &text)?;
    Ok(words(&["z3", "-T:100", &shown(&path)]))
}

fn ghostscript(folder: &Path, size: u64) -> Result<Vec<String>, String> {
    let mut text = "%!PS-Adobe-3.0\n".to_owned();
    for page in 0..size {
        let mut random = Random(page + 1);
        for i in 0..800 {
            let _ = write!(text, "0.{} 0.{} 0.5 setrgbcolor newpath", i % 10, i % 7);
            for operator in ["moveto", "curveto"] {
                let count = if operator == "moveto" { 2 } else { 6 };
                for _ in 0..count {
                    let _ = write!(text, " {}", random.below(600));
                }
                let _ = write!(text, " {operator}");
            }
            text += if i % 2 == 0 { " fill\n" } else { " stroke\n" };
            if i % 5 == 0 {
                let _ = writeln!(
                    text,
                    "/Times-Roman findfont {} scalefont setfont {} {} moveto (text {i}) show",
                    8 + i % 30,
                    random.below(500),
                    random.below(700)
                );
            }
        }
        text += "showpage\n";
    }
    let path = folder.join("pages.ps");
    write(&path, &text)?;
    let mut arguments = words(&["gs", "-q", "-dSAFER", "-dBATCH", "-dNOPAUSE", "-r100"]);
    arguments.extend(words(&["-dGraphicsAlphaBits=4", "-sDEVICE=png16m"]));
    arguments.extend(words(&["-sOutputFile=/dev/null", &shown(&path)]));
    Ok(arguments)
}

/// Commands on strings, hashes, lists and sorted sets; some remove or replace what is there.
fn redis(folder: &Path, size: u64) -> Result<Vec<String>, String> {
    let mut random = Random(3);
    let mut text = String::new();
    for i in 0..size {
        let key = random.below(40_000);
        let value = "v".repeat(8 + random.below(300));
        let _ = match i % 8 {
            0..=2 => writeln!(text, "set key{key} {value}"),
            3 => writeln!(text, "hset hash{} field{key} {value}", key % 500),
            4 => writeln!(text, "rpush list{} {value}", key % 300),
            5 => writeln!(text, "lpop list{}", key % 300),
            6 => writeln!(
                text,
                "zadd sorted{} {} {key}",
                key % 100,
                random.below(1000)
            ),
            _ => writeln!(text, "del key{}", random.below(40_000)),
        };
    }
    write(&folder.join("commands"), &text.replace('\n', "\r\n"))?;
    let script = folder.join("redis.sh");
    write(&script, include_str!("../../programs/inputs/redis.sh"))?;
    // Debian has one executable for the server and two tools; its name decides.
    let server = folder.join("redis-server");
    let executable = find("redis-check-rdb").unwrap_or_default();
    std::os::unix::fs::symlink(executable, server).map_err(|error| error.to_string())?;
    let run = format!("cd '{}' && . ./redis.sh", folder.display());
    Ok(words(&["sh", "-c", &run]))
}
