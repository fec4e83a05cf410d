//! Checks before a program starts whether a library can be preloaded into it: it must have a
//! loader, be of the library's kind, and must not raise its user's rights.

use super::elf::Elf;
use anyhow::{bail, Context, Result};
use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A script may be run by another script; the kernel allows about this many.
const SCRIPTS_MAX: u32 = 5;

/// The number of bytes of a script's first line that the kernel reads.
const FIRST_LINE_BYTES: u64 = 256;

/// The executable into which a library of the kind `library` is preloaded when `program` runs: the
/// program itself or its interpreter. The error says why the library cannot be preloaded.
pub fn find(program: &OsStr, library: &Elf) -> Result<PathBuf> {
    find_for(program, SCRIPTS_MAX, &|path, elf| {
        may_preload(path, elf, library)
    })
}

/// The executable that runs: the program itself or its interpreter.
pub fn executable(program: &OsStr) -> Result<PathBuf> {
    find_for(program, SCRIPTS_MAX, &|_, _| Ok(()))
}

fn find_for(
    program: &OsStr,
    scripts: u32,
    may: &dyn Fn(&Path, &Elf) -> Result<()>,
) -> Result<PathBuf> {
    let name = program.to_string_lossy();
    let path = find_program(program)?;
    let elf = Elf::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
    if let Some(elf) = elf {
        may(&path, &elf)?;
        return Ok(path);
    }
    let Some(interpreter) = interpreter_of(&first_line(&path)?) else {
        // The kernel may be able to run it nevertheless (binfmt_misc).
        return Ok(path);
    };
    if scripts == 0 {
        bail!("{name} is a script for a script for a script: too many of them");
    }
    find_for(&interpreter, scripts - 1, may)
        .with_context(|| format!("{name} is a script for {}", interpreter.to_string_lossy()))
}

/// Finds a program in PATH as execvp does.
pub fn find_program(program: &OsStr) -> Result<PathBuf> {
    let name = program.to_string_lossy();
    let path = Path::new(program);
    if program.as_bytes().contains(&b'/') {
        must_run(path)?;
        return Ok(path.to_path_buf());
    }
    let folders = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/bin:/usr/bin"));
    let mut refused = None;
    for candidate in std::env::split_paths(&folders).map(|folder| folder.join(path)) {
        match must_run(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(error) if candidate.is_file() => refused = refused.or(Some(error)),
            Err(_) => (),
        }
    }
    Err(refused.unwrap_or_else(|| anyhow::anyhow!("there is no program {name} in PATH")))
}

fn must_run(path: &Path) -> Result<()> {
    let about = match path.metadata() {
        Ok(about) => about,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("there is no program {}", path.display())
        }
        Err(error) => bail!("cannot run {}: {error}", path.display()),
    };
    if about.is_dir() {
        bail!("{} is a folder, not a program", path.display());
    }
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a string that ends in NUL; nothing is written.
    if unsafe { libc::access(name.as_ptr(), libc::X_OK) } != 0 {
        bail!(
            "{0} is not executable (chmod +x {0} makes it so)",
            path.display()
        );
    }
    Ok(())
}

fn may_preload(path: &Path, elf: &Elf, library: &Elf) -> Result<()> {
    let name = path.display();
    if !elf.fits(library) {
        bail!(
            "{name} is a program for {}, and the library is for {}",
            elf.kind(),
            library.kind()
        );
    }
    let Some(loader) = &elf.loader else {
        bail!(
            "{name} is statically linked, so no library can be preloaded into it; link the program \
             with slabyard-malloc.o instead (docs/malloc.md)"
        );
    };
    if is_musl(loader) != OWN_IS_MUSL {
        let (theirs, ours) = match OWN_IS_MUSL {
            true => ("glibc", "musl"),
            false => ("musl", "glibc"),
        };
        bail!("{name} is a program for the C library {theirs}, and the library is for {ours}");
    }
    if let Some(how) = raises_rights(path)? {
        bail!("{name} {how}, and in such a program the loader ignores LD_PRELOAD");
    }
    Ok(())
}

/// The C library for which the tool was compiled, and with it the libraries that it carries.
const OWN_IS_MUSL: bool = cfg!(target_env = "musl");

pub fn is_musl(loader: &str) -> bool {
    loader.contains("ld-musl")
}

/// How a program gets more rights than its user has; `None`: it does not.
fn raises_rights(path: &Path) -> Result<Option<&'static str>> {
    let about = path.metadata()?;
    // SAFETY: neither function has preconditions.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    Ok(raised_by_mode(&about, user, group)
        .or_else(|| (user != 0 && has_capabilities(path)).then_some("has capabilities")))
}

fn raised_by_mode(about: &Metadata, user: u32, group: u32) -> Option<&'static str> {
    let mode = about.permissions().mode();
    if mode & libc::S_ISUID != 0 && about.uid() != user {
        Some("is set-uid")
    } else if mode & libc::S_ISGID != 0 && mode & libc::S_IXGRP != 0 && about.gid() != group {
        Some("is set-gid")
    } else {
        None
    }
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    let attribute = c"security.capability";
    // SAFETY: strings that end in NUL; with size 0 nothing is written.
    unsafe { libc::getxattr(name.as_ptr(), attribute.as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

fn first_line(path: &Path) -> Result<Vec<u8>> {
    let mut line = Vec::new();
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    file.take(FIRST_LINE_BYTES).read_to_end(&mut line)?;
    let end = line.iter().position(|&byte| byte == b'\n');
    line.truncate(end.unwrap_or(line.len()));
    Ok(line)
}

/// The interpreter of a script's first line: `#!/usr/bin/env -S python3 -u` gives `python3`.
/// `None`: the line is not text.
fn interpreter_of(line: &[u8]) -> Option<OsString> {
    let word = |word: &[u8]| OsString::from_vec(word.to_vec());
    let Some(line) = line.strip_prefix(b"#!") else {
        // If the kernel cannot run a file, execvp gives it to the shell.
        let text = line.iter().all(|&byte| byte >= b' ' || byte == b'\t');
        return text.then(|| word(b"/bin/sh"));
    };
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
    let mut words = line.split(blank).filter(|word| !word.is_empty());
    let interpreter = words.next()?;
    let is_env = Path::new(OsStr::from_bytes(interpreter)).file_name() == Some(OsStr::new("env"));
    let named = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='));
    Some(word(named.filter(|_| is_env).unwrap_or(interpreter)))
}

/// Parses any bytes as the first line of a script and discards it, for the fuzzers.
#[cfg(any(test, feature = "fuzz"))]
pub fn try_line(line: &[u8]) {
    assert!(interpreter_of(line).is_none_or(|name| !name.is_empty()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_script_names_its_interpreter() {
        for (line, name) in [
            ("#!/bin/bash", Some("/bin/bash")),
            ("#! /usr/bin/perl -w", Some("/usr/bin/perl")),
            ("#!/usr/bin/env python3", Some("python3")),
            ("#!/usr/bin/env -S LANG=C python3 -u", Some("python3")),
            ("#!/usr/bin/env", Some("/usr/bin/env")),
            ("echo hello", Some("/bin/sh")),
            ("#!", None),
            ("MZ\0\0", None),
        ] {
            let found = interpreter_of(line.as_bytes());
            assert_eq!(found.as_deref(), name.map(OsStr::new), "{line}");
        }
    }

    #[test]
    fn only_rights_that_the_user_lacks_are_raised() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let raised = |mode, user, group| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(file.path(), permissions).unwrap();
            raised_by_mode(&file.path().metadata().unwrap(), user, group)
        };
        let about = file.path().metadata().unwrap();
        let (user, group) = (about.uid(), about.gid());
        assert_eq!(raised(0o755, user + 1, group + 1), None);
        assert_eq!(raised(0o4755, user + 1, group), Some("is set-uid"));
        assert_eq!(raised(0o4755, user, group), None);
        assert_eq!(raised(0o2755, user, group + 1), Some("is set-gid"));
        assert_eq!(raised(0o2745, user, group + 1), None);
    }
}
