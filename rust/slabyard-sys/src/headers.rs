//! Tests that the declarations of this crate agree with the headers: each function, and, by a C
//! compiler, the layout of each struct and the value of each number.

extern crate std;
use super::*;
use core::fmt::Write as _;
use core::mem::{offset_of, size_of};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, fs, println};

/// Headers whose functions are not declared, and why.
const LEFT_OUT: [(&str, &str); 4] = [
    ("fail.h", "failures are asked for by SLABYARD=fail, or in C"),
    (
        "heaps.h",
        "sizes of all kinds are the global allocator's; kinds are caches",
    ),
    (
        "memory.h",
        "memory of the program's own is given to C's heaps and caches",
    ),
    ("vmem.h", "arenas are of integers, and have no types to add"),
];

/// Functions that are not declared, and why.
const NOT_NEEDED: [(&str, &str); 6] = [
    ("sy_handle_alloc_slow_abi_1", "sy_handle_alloc does it"),
    ("sy_cache_may_free", "an owner in Rust is dropped once"),
    ("sy_cache_may_free_slow", "an owner in Rust is dropped once"),
    ("sy_pool_free_slow_abi_1", "sy_pool_free does it"),
    ("sy_pool_may_free", "an owner in Rust is dropped once"),
    (
        "sy_pool_may_free_slow_abi_1",
        "an owner in Rust is dropped once",
    ),
];

/// Functions of the library's own that the crate `slabyard` calls.
const INTERNAL: [&str; 1] = ["sy_options_auto_maintenance"];

/// The files of a folder of the crate, by name, without comments.
fn files(folder: &str, extension: &str) -> Vec<(String, String)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(folder).expect("a folder of the crate");
    let mut files: Vec<(String, String)> = entries
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|it| it == extension))
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy();
            let text = fs::read_to_string(&path).expect("text");
            (name.to_string(), without_comments(&text))
        })
        .collect();
    files.sort();
    files
}

/// A text without comments and without the macros of C.
fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some(at) = rest.find("/*") {
        kept.push_str(&rest[..at]);
        let end = rest[at..].find("*/").expect("a comment ends");
        rest = &rest[at + end + 2..];
    }
    kept.push_str(rest);
    let lines = kept
        .lines()
        .filter(|line| !line.starts_with('#') || line.starts_with("#["))
        .map(|line| line.split("//").next().unwrap_or(""));
    lines.collect::<Vec<_>>().join("\n")
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The name of a function and the number of its parameters, from a declaration or from the text
/// after `fn`. The name is the word before the first parenthesis.
fn signature(text: &str) -> (String, usize) {
    let open = text.find('(').expect("a function");
    let name = text[..open].rsplit(|c| !is_of_name(c)).next();
    let (mut depth, mut count, mut seen) = (0, 0, String::new());
    for c in text[open..].chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 1 => {
                count += 1;
                seen.clear();
                continue;
            }
            _ => seen.push(c),
        }
        if depth == 0 {
            break;
        }
    }
    // The text after the last comma may be empty.
    let last = !matches!(seen.trim(), "" | "void");
    (name.expect("a name").to_string(), count + usize::from(last))
}

/// The functions that a header exports, with their numbers of parameters.
fn exported(header: &str) -> BTreeMap<String, usize> {
    let declarations = header.split("SY_API").skip(1).filter_map(|text| {
        let text = text.split([';', '{']).next()?.replace('\n', " ");
        let words = text.replace("SY_COLD", "").replace("SY_MUST_USE", "");
        let abi = words.replace("SY_ABI_NAME(", "");
        // SY_ABI_NAME(name)(...) has become name)(...) here.
        let plain = if abi == words {
            words
        } else {
            abi.replacen(")(", "_abi_1(", 1)
        };
        plain.contains('(').then(|| signature(&plain))
    });
    declarations.collect()
}

/// The functions that a file of the crate declares, with their numbers of parameters.
fn declared(file: &str) -> BTreeMap<String, usize> {
    let blocks = file.split("extern \"C\" {").skip(1);
    let functions = blocks.flat_map(|block| {
        let block = block.split("\n}").next().unwrap_or("");
        let names = block.split(" fn ").zip(block.split(" fn ").skip(1));
        names.map(|(before, text)| {
            let (name, count) = signature(text);
            let linked = before
                .rsplit_once("link_name = \"")
                .and_then(|(head, tail)| (!head.is_empty() && !tail.contains(';')).then_some(tail));
            let linked = linked.and_then(|tail| tail.split('"').next());
            (linked.map_or(name, String::from), count)
        })
    });
    functions.collect()
}

#[test]
fn every_function_is_declared_or_left_out_for_a_reason() {
    let here: BTreeMap<_, _> = files("src", "rs")
        .into_iter()
        .filter(|(name, _)| name != "headers.rs")
        .flat_map(|(_, text)| declared(&text))
        .filter(|(name, _)| !INTERNAL.contains(&name.as_str()))
        .collect();
    let headers = files("include/slabyard", "h");
    let (left_out, taken): (Vec<_>, Vec<_>) = headers
        .into_iter()
        .partition(|(name, _)| LEFT_OUT.iter().any(|(header, _)| header == name));
    assert_eq!(left_out.len(), LEFT_OUT.len(), "a header is gone");
    let there: BTreeMap<_, _> = taken.iter().flat_map(|(_, text)| exported(text)).collect();
    assert!(there.len() > 70, "headers are read");
    let other: Vec<_> = there
        .iter()
        .filter(|(name, count)| here.get(*name) != Some(count))
        .filter(|(name, _)| NOT_NEEDED.iter().all(|(it, _)| it != name))
        .collect();
    assert!(
        other.is_empty(),
        "missing here, or with other parameters: {other:?}"
    );
    for (name, _) in NOT_NEEDED {
        assert!(there.contains_key(name) && !here.contains_key(name));
    }
    for name in here.keys() {
        assert!(there.contains_key(name), "{name} is exported by no header");
    }
}

#[test]
fn the_first_number_of_the_version_is_that_of_the_abi() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("include/slabyard");
    let base = fs::read_to_string(folder.join("base.h")).expect("a header");
    let abi = base
        .lines()
        .find_map(|line| line.strip_prefix("#define SY_ABI "));
    let abi = abi.expect("the number of the ABI").trim();
    assert_eq!(env!("CARGO_PKG_VERSION_MAJOR"), abi);
}

#[test]
fn declarations_are_read_as_they_are_meant() {
    let header = "SY_API SY_COLD void *SY_ABI_NAME(sy_grow)(pool *it) SY_NONNULL(1);\n\
        SY_API int sy_each(int (*visit)(void *arg, int it), void *arg);\nSY_API void sy_none(void);\n\
        extern SY_API struct thing *sy_abi_1;";
    let expected = [("sy_each", 2), ("sy_grow_abi_1", 1), ("sy_none", 0)];
    let expected: BTreeMap<_, _> = expected.map(|(name, count)| (name.into(), count)).into();
    assert_eq!(exported(header), expected);
    let file = "extern \"C\" {\n #[link_name = \"sy_grow_abi_1\"]\n pub fn sy_grow(it: *mut pool);\n\
        pub fn sy_each(\n visit: extern \"C\" fn(*mut c_void, c_int),\n arg: *mut c_void,\n) -> c_int;\n\
        pub fn sy_none();\n}\npub fn sy_other() {}";
    assert_eq!(declared(file), expected);
}

/// Writes C assertions: each struct has exactly these fields, and each number has this value.
macro_rules! assertions {
    (
        $(struct $type:ident as $c:literal { $($field:ident),+ })+
        numbers $($number:ident)+
    ) => {{
        let mut text = String::new();
        let mut assert = |what: String| writeln!(text, "_Static_assert({what}, \"\");");
        $(
            // A pattern without `..` names all fields.
            let _ = |it: $type| { let $type { $($field: _),+ } = it; };
            assert(format!("sizeof({}) == {}", $c, size_of::<$type>())).expect("text");
            $(
                let (field, offset) = (stringify!($field), offset_of!($type, $field));
                if !field.starts_with('_') {
                    assert(format!("offsetof({}, {field}) == {offset}", $c)).expect("text");
                }
            )+
        )+
        $(
            assert(format!("{} == {}", stringify!($number), $number)).expect("text");
        )+
        let numbers: Vec<&str> = [$(stringify!($number)),+].into();
        let structs: Vec<&str> = [$(stringify!($type)),+].into();
        (text, structs, numbers)
    }};
}

/// Names that are opaque in the headers too, or that exist only in Rust.
const NOT_OF_C: [&str; 5] = [
    "sy_cache",
    "sy_memory",
    "sy_epoch",
    "sy_scope",
    "SY_LOADED_INLINE",
];

/// The names that the files declare after these words.
fn names_after(words: &[&str]) -> Vec<String> {
    let mut names = Vec::new();
    for (_, text) in files("src", "rs")
        .iter()
        .filter(|(name, _)| name != "headers.rs")
    {
        for word in words {
            let found = text.split(word).skip(1);
            names.extend(found.map(|it| it.split(|c| !is_of_name(c)).next().unwrap_or("").into()));
        }
    }
    names.retain(|name: &String| !NOT_OF_C.contains(&name.as_str()) && name != "EMPTY");
    names.sort();
    names
}

#[test]
#[cfg(not(windows))] // wine has no C compiler
fn structs_and_numbers_are_those_of_c() {
    let (text, mut structs, mut numbers) = assertions! {
        struct sy_tag_stats as "sy_tag_stats" { tag, name, allocations, frees, live, live_bytes,
            peak_bytes }
        struct sy_operation as "sy_operation" { freed, object, size, trace }
        struct sy_leak as "sy_leak" { cache, objects, bytes, oldest, newest, example, allocated }
        struct sy_cache_account as "sy_cache_account" { cache, kind, stats }
        struct sy_cache_config as "sy_cache_config" { name, size, align, construct, destruct, arg,
            limit, flags, memory, dispose, relocate, reserved }
        struct sy_cache_head as "struct sy_cache_head" { reserved, loaded_offset, reserved_too }
        struct sy_epoch_stats as "sy_epoch_stats" {
            name, number, age_ns, closed_ns, threads, objects, slabs, bytes
        }
        struct sy_counted as "sy_counted" { allocations, bytes, frees, live, live_bytes, peak_bytes }
        struct sy_trace as "sy_trace" { frames, depth, thread, age }
        struct sy_fault as "sy_fault" { kind, cache, object_size, address, found_cache, found_size,
            told_size, object, offset, damage, damage_bytes, allocated, freed, access, held_in }
        struct sy_handle_head as "struct sy_handle_head" { words, places, limit, live, slot,
            loaded_offset, names_offset, plain }
        struct sy_limit as "sy_limit" { hard, soft, callback, arg, reserved }
        struct sy_loaded_slot as "sy_loaded_slot" { reserved, top, base, limit, reserved_too }
        struct sy_option as "sy_option" { name, values, bare, initial, meaning }
        struct sy_pool as "sy_pool" { extent, carved_before, capacity, chunk_bytes, stride, free,
            limit, bump, _neither_send_nor_moved }
        struct sy_pool_config as "sy_pool_config" { size, align, chunk_bytes, capacity, flags, name,
            reserved }
        struct sy_cache_stats as "sy_cache_stats" { name, object_size, slot_size, align, slab_bytes,
            slots_per_slab, colours, magazine_items, slots, in_use, in_depot, in_loaded,
            guarded, in_quarantine, free, retired, limit, slabs, full, partial, empty, mapped,
            tail, waste, discarded, never_used, refills, flushes, depot_hits, depot_misses,
            depot_steals, slabs_made, slabs_released, slabs_filled, slabs_opened, slabs_reused,
            constructed, destructed, limits_hit, moves, moves_put_off, move_bytes }
                struct sy_account as "sy_account" { live_bytes, large_bytes, guarded_bytes,
            rounding_bytes, quarantine_bytes, thread_magazines_bytes, depot_magazines_bytes,
            free_in_slabs_bytes, holes_bytes, tails_bytes, free_units_bytes, kept_spans_bytes,
            headers_bytes, records_bytes, magazines_bytes, handles_bytes, arenas_bytes,
            traces_bytes, guard_records_bytes, address_space_bytes, resident_bytes, other_bytes }
        struct sy_stats as "sy_stats" { caches, chunks, mapped, slabs, spans, units_free, units_clean,
            chunk_headers, magazines, side, memory_limit, cpus, limits_hit }
        numbers
        SY_TAG_NAME_MAX SY_TAGS_MAX SY_EPOCH_NAME_MAX SY_SCOPE_NAME_MAX SY_SCOPE_DEPTH_MAX SY_LEAKS_UNREACHABLE SY_COLOUR SY_LIMIT_EXACT SY_HANDLES SY_MOVABLE
        SY_EPOCHS SY_CHECKED SY_REDZONE SY_POISON SY_QUARANTINE SY_AUDIT SY_RANDOM SY_EDGES
        SY_GUARD SY_ZERO SY_NO_DUMP SY_LOCKED SY_CHECK_FLAGS SY_FAULT_FOREIGN_POINTER
        SY_FAULT_MISALIGNED_POINTER SY_FAULT_WRONG_CACHE SY_FAULT_DOUBLE_FREE
        SY_FAULT_WRONG_SIZE SY_FAULT_NOT_ALLOCATED SY_FAULT_SEGMENT_SIZE SY_FAULT_OVERFLOW
        SY_FAULT_UNDERFLOW SY_FAULT_WRITE_AFTER_FREE SY_FAULT_SLAB_EDGE SY_FAULT_GUARD_OVERFLOW
        SY_FAULT_GUARD_UNDERFLOW SY_FAULT_USE_AFTER_FREE SY_FAULT_NOT_PINNED
        SY_FAULT_FREED_POINTER SY_FAULT_UNWRITTEN_POINTER SY_ACCESS_UNKNOWN SY_ACCESS_READ
        SY_ACCESS_WRITE SY_HANDLE_PINS_MAX SY_HANDLE_LIVE SY_HANDLE_DYING SY_HANDLE_MOVING SY_HANDLE_PLACE SY_HANDLE_STATE
        SY_HANDLE_PIN SY_HANDLE_PINS SY_HANDLE_GENERATION SY_HANDLE_GENERATIONS_MAX
        SY_REFUSAL_NONE SY_REFUSAL_SYSTEM SY_REFUSAL_CACHE_LIMIT SY_REFUSAL_HEAP_LIMIT
        SY_REFUSAL_PROCESS_LIMIT SY_REFUSAL_CONSTRUCTOR SY_REFUSAL_CACHES SY_POOL_PREFAULT SY_PROFILE_MEAN SY_POOL_HUGE
        SY_CACHE_NAME_MAX SY_CACHE_OF_PROGRAM SY_CACHE_OF_SIZES SY_CACHE_OF_HEAP
    };
    structs.sort_unstable();
    numbers.sort_unstable();
    assert_eq!(structs, names_after(&["pub struct ", "pub(crate) struct "]));
    assert_eq!(numbers, names_after(&["pub const "]));

    let mut program = String::from("#include <stddef.h>\n#include <slabyard/slabyard.h>\n");
    program.push_str(&text);
    assert!(compiles(&program), "C sees another layout");
    let wrong = program.replacen("sizeof(sy_pool) == ", "sizeof(sy_pool) == 1 + ", 1);
    assert!(wrong != program && !compiles(&wrong), "it would be seen");
}

fn compiles(program: &str) -> bool {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
    let mut child = Command::new(compiler)
        .args(["-std=gnu11", "-fsyntax-only", "-I", include, "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("there is the C compiler that built the library");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(program.as_bytes()).expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    println!("{}", String::from_utf8_lossy(&output.stderr));
    output.status.success()
}
