//! Asks the maintenance thread of a running process to give its free memory back. It is the only
//! thing here that changes the process: one byte of the library, which the thread looks at each second.

use super::shape::{self, Names};
use super::{live, page_bytes};
use crate::ui;
use anyhow::{bail, Context, Result};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// The thread looks once a second; the trim itself takes milliseconds, of a large heap more.
const LONGEST: Duration = Duration::from_secs(30);
const LOOKS_APART: Duration = Duration::from_millis(20);

/// Where a copy of the library is asked.
struct Mailbox {
    asked: u64,
}

/// Asks all copies of the library in the process; returns what to say.
pub fn trim(pid: u32) -> Result<String> {
    let before = resident(pid)?;
    let boxes = mailboxes(pid)?;
    if boxes.is_empty() {
        bail!(
            "process {pid} has no maintenance thread, which would do it: it has little memory in use, \
             or another setting of the option maintenance"
        );
    }
    let memory = OpenOptions::new()
        .read(true)
        .write(true)
        .open(format!("/proc/{pid}/mem"))
        .with_context(|| live::denied(pid))?;
    for one in &boxes {
        memory
            .write_all_at(&[1], one.asked)
            .with_context(|| format!("cannot write to the memory of process {pid}"))?;
    }
    for one in &boxes {
        await_answer(pid, &memory, one)?;
    }
    let after = resident(pid)?;
    Ok(format!(
        "{} -> {} resident, {} given back\n",
        ui::bytes(before),
        ui::bytes(after),
        ui::bytes(before.saturating_sub(after))
    ))
}

fn mailboxes(pid: u32) -> Result<Vec<Mailbox>> {
    let image = live::open(pid, false)?;
    let found = shape::find(&image);
    if found.is_empty() {
        bail!("there is no Slabyard in process {pid} that this tool knows");
    }
    let mut boxes = Vec::new();
    for one in found {
        let names = Names::read(&image, one.shapes)?;
        let state = image.number(names.variable("sy_maintenance_state")?, 4)?;
        if state == names.constant("sy_maintenance_runs")? {
            let asked = names.variable("sy_trim_asked")?;
            boxes.push(Mailbox { asked });
        }
    }
    Ok(boxes)
}

fn await_answer(pid: u32, memory: &File, one: &Mailbox) -> Result<()> {
    let began = Instant::now();
    let mut answer = [1];
    while began.elapsed() < LONGEST {
        memory
            .read_exact_at(&mut answer, one.asked)
            .with_context(|| format!("process {pid} has ended"))?;
        if answer == [0] {
            return Ok(());
        }
        std::thread::sleep(LOOKS_APART);
    }
    bail!(
        "process {pid} has not answered for {} s: is it stopped?",
        LONGEST.as_secs()
    )
}

/// Resident bytes, as the system counts them.
fn resident(pid: u32) -> Result<u64> {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm"));
    let statm = statm.with_context(|| format!("there is no process {pid}"))?;
    let pages = statm.split(' ').nth(1).and_then(|word| word.parse().ok());
    Ok(pages.unwrap_or(0) * page_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{tell_ready, Stage};
    use super::*;
    use slabyard_sys::*;

    const BYTES: usize = 48 << 20;

    /// Runs in a process of its own: frees much memory, which stays.
    #[test]
    #[ignore = "a part of other tests, which start it"]
    fn stage() {
        // SAFETY: each object is written within its size, and freed once.
        unsafe {
            let objects: Vec<_> = (0..BYTES / 1024).map(|_| sy_malloc(1024)).collect();
            for &object in &objects {
                object.cast::<u8>().write_bytes(1, 1024);
            }
            objects.into_iter().for_each(|object| sy_free(object));
            if std::env::var_os("WITH_THREAD").is_some() {
                assert_eq!(sy_maintenance_start(), 0);
            }
        }
        tell_ready();
    }

    #[test]
    fn a_process_gives_memory_back_if_it_is_asked() {
        let stage = Stage::with("inspect::trim::tests::stage", &[("WITH_THREAD", "1")]);
        let before = resident(stage.pid()).unwrap();
        assert!(before > BYTES as u64);
        let said = trim(stage.pid()).unwrap();
        let after = resident(stage.pid()).unwrap();
        assert!(after + (BYTES as u64 * 9 / 10) < before, "{said}");
        assert!(said.contains("given back"), "{said}");
        // Once more: there is nothing left to give back, and yet it answers.
        trim(stage.pid()).unwrap();
    }

    #[test]
    fn a_process_without_the_thread_is_not_asked() {
        let stage = Stage::of("inspect::trim::tests::stage");
        let error = trim(stage.pid()).unwrap_err().to_string();
        assert!(error.contains("no maintenance thread"), "{error}");
    }
}
