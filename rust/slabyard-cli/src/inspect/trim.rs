//! Asks the maintenance thread of a running process to give free memory back: all of it, or an
//! amount. It is the only thing here that changes the process: one byte of the library, which the
//! thread looks at each second, and the word with the amount.

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
    /// What is asked for; the thread sets it to 0 when it has done it.
    asked: u64,
    /// Where the amount is written, and how much went back is read.
    bytes: u64,
    returned: u64,
    /// What `asked` is set to.
    asks_all: u8,
    asks_some: u8,
}

impl Mailbox {
    fn of(names: &Names) -> Result<Mailbox> {
        let order = names.variable("sy_trim_order")?;
        let at = |name| names.place(order, name);
        Ok(Mailbox {
            asked: at("sy_trim_order.asked")?,
            bytes: at("sy_trim_order.bytes")?,
            returned: at("sy_trim_order.returned")?,
            asks_all: names.constant("sy_trim_asks_all")? as u8,
            asks_some: names.constant("sy_trim_asks_some")? as u8,
        })
    }
}

/// The memory of the process that is asked.
struct Asked {
    pid: u32,
    memory: File,
    /// How long to wait for each answer.
    patience: Duration,
}

/// Asks all copies of the library in the process, for an amount in turn; returns what to say.
pub fn trim(pid: u32, amount: Option<u64>) -> Result<String> {
    trim_within(LONGEST, pid, amount)
}

fn trim_within(patience: Duration, pid: u32, amount: Option<u64>) -> Result<String> {
    let before = resident(pid)?;
    let boxes = mailboxes(pid)?;
    if boxes.is_empty() {
        bail!(
            "process {pid} has no maintenance thread, so it cannot be asked: it has little memory in \
             use, or the option maintenance turns the thread off"
        );
    }
    let memory = OpenOptions::new()
        .read(true)
        .write(true)
        .open(format!("/proc/{pid}/mem"))
        .with_context(|| live::denied(pid))?;
    let asked = Asked {
        pid,
        memory,
        patience,
    };
    let returned = match amount {
        Some(amount) => asked.some(&boxes, amount)?,
        None => asked.all(&boxes)?,
    };
    let after = resident(pid)?;
    let sizes = format!("{} -> {} resident", ui::bytes(before), ui::bytes(after));
    Ok(match (amount, returned) {
        (Some(amount), returned) => said_of_amount(&sizes, amount, returned),
        (None, _) => {
            let given = ui::bytes(before.saturating_sub(after));
            format!("{sizes}, {given} given back\n")
        }
    })
}

fn said_of_amount(sizes: &str, amount: u64, returned: u64) -> String {
    let (wanted, given) = (ui::round_bytes(amount), ui::bytes(returned));
    let mut said = format!("{sizes}, {given} given back of {wanted}\n");
    if returned < amount {
        said +=
            "No more can be given back: the other free memory is on pages with live objects, in \
                 magazines of running threads, or reserved.\n";
    }
    said
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
            boxes.push(Mailbox::of(&names)?);
        }
    }
    Ok(boxes)
}

impl Asked {
    fn all(&self, boxes: &[Mailbox]) -> Result<u64> {
        for one in boxes {
            self.await_others(one)?;
            self.write(&[one.asks_all], one.asked)?;
        }
        for one in boxes {
            self.await_own(one)?;
        }
        Ok(0)
    }

    /// Asks one copy after the other for what is left; returns the bytes that went back.
    fn some(&self, boxes: &[Mailbox], amount: u64) -> Result<u64> {
        let mut sum = 0;
        for one in boxes {
            let left = amount.saturating_sub(sum);
            if left > 0 {
                sum = u64::saturating_add(sum, self.some_of(one, left)?);
            }
        }
        Ok(sum)
    }

    fn some_of(&self, one: &Mailbox, bytes: u64) -> Result<u64> {
        self.await_others(one)?;
        self.write(&bytes.to_le_bytes(), one.bytes)?;
        self.write(&[one.asks_some], one.asked)?;
        self.await_own(one)?;
        let mut returned = [0; 8];
        self.read(&mut returned, one.returned)?;
        Ok(u64::from_le_bytes(returned))
    }

    fn write(&self, bytes: &[u8], at: u64) -> Result<()> {
        let written = self.memory.write_all_at(bytes, at);
        written.with_context(|| format!("cannot write to the memory of process {}", self.pid))
    }

    fn read(&self, into: &mut [u8], at: u64) -> Result<()> {
        let read = self.memory.read_exact_at(into, at);
        read.with_context(|| format!("process {} has ended", self.pid))
    }

    /// Waits until what other tools have asked for is done. Their requests stay.
    fn await_others(&self, one: &Mailbox) -> Result<()> {
        if !self.is_answered(one)? {
            bail!(
                "process {} has not done what another tool has asked for, for {} s: is it stopped?",
                self.pid,
                self.patience.as_secs()
            );
        }
        Ok(())
    }

    /// Waits for the answer to the own request, or takes it back.
    fn await_own(&self, one: &Mailbox) -> Result<()> {
        if !self.is_answered(one)? {
            self.write(&[0], one.asked)?;
            bail!(
                "process {} has not answered for {} s: is it stopped?",
                self.pid,
                self.patience.as_secs()
            );
        }
        Ok(())
    }

    /// Whether nothing is asked any more, soon enough.
    fn is_answered(&self, one: &Mailbox) -> Result<bool> {
        let began = Instant::now();
        let mut answer = [0];
        loop {
            self.read(&mut answer, one.asked)?;
            if answer == [0] || began.elapsed() >= self.patience {
                return Ok(answer == [0]);
            }
            std::thread::sleep(LOOKS_APART);
        }
    }
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
        let said = trim(stage.pid(), None).unwrap();
        let after = resident(stage.pid()).unwrap();
        assert!(after + (BYTES as u64 * 9 / 10) < before, "{said}");
        assert!(said.contains("given back"), "{said}");
        // Once more: there is nothing left to give back, and yet it answers.
        trim(stage.pid(), None).unwrap();
    }

    /// Each amount goes back to within the step that a trim ends with, and no more. What is free at
    /// the end is less than was asked for, and the tool says so.
    #[test]
    fn a_process_gives_an_amount_back() {
        const MIB: u64 = 1 << 20;
        const STEP: u64 = 2 * MIB;
        let stage = Stage::with("inspect::trim::tests::stage", &[("WITH_THREAD", "1")]);
        for amount in [8 * MIB, 5 * MIB + 1] {
            let before = resident(stage.pid()).unwrap();
            let said = trim(stage.pid(), Some(amount)).unwrap();
            let gone = before - resident(stage.pid()).unwrap();
            assert!(
                (amount - MIB..amount + STEP).contains(&gone),
                "{gone}: {said}"
            );
            let wanted = format!("given back of {}\n", ui::round_bytes(amount));
            assert!(said.ends_with(&wanted), "{said}");
        }
        let before = resident(stage.pid()).unwrap();
        let said = trim(stage.pid(), Some(u64::MAX)).unwrap();
        let gone = before - resident(stage.pid()).unwrap();
        assert!(gone > BYTES as u64 * 9 / 10 - 15 * MIB, "{gone}: {said}");
        assert!(said.contains("No more can be given back"), "{said}");
        let said = trim(stage.pid(), Some(1)).unwrap();
        assert!(said.contains(", 0 B given back of 1 B\nNo more"), "{said}");
    }

    /// A stopped process does nothing of what it is asked. The request of another tool stays; the own one is
    /// taken back.
    #[test]
    fn a_stopped_process_keeps_the_requests_of_others() {
        const PATIENCE: Duration = Duration::from_millis(100);
        let stage = Stage::with("inspect::trim::tests::stage", &[("WITH_THREAD", "1")]);
        // SAFETY: the process is a child, which the stage has not waited for.
        assert_eq!(unsafe { libc::kill(stage.pid() as i32, libc::SIGSTOP) }, 0);
        let memory = format!("/proc/{}/mem", stage.pid());
        let memory = OpenOptions::new().read(true).write(true).open(memory);
        let memory = memory.unwrap();
        let asked = mailboxes(stage.pid()).unwrap().remove(0).asked;
        for (by_another, words) in [(1_u8, "another tool has asked"), (0, "has not answered")] {
            memory.write_all_at(&[by_another], asked).unwrap();
            for amount in [None, Some(1)] {
                let error = trim_within(PATIENCE, stage.pid(), amount).unwrap_err();
                assert!(error.to_string().contains(words), "{error}");
                let mut left = [0];
                memory.read_exact_at(&mut left, asked).unwrap();
                assert_eq!(left, [by_another]);
            }
        }
    }

    #[test]
    fn an_order_at_the_end_of_all_addresses_is_damaged() {
        let names = ["asked", "bytes", "returned"].map(|field| format!("sy_trim_order.{field}"));
        let names = names.each_ref().map(String::as_str);
        let names = Names::made_up(&names, &[("sy_trim_order", u64::MAX - 2)]);
        let said = Mailbox::of(&names).err().unwrap().to_string();
        assert!(said.contains("damaged"), "{said}");
    }

    #[test]
    fn a_process_without_the_thread_is_not_asked() {
        let stage = Stage::of("inspect::trim::tests::stage");
        let error = trim(stage.pid(), None).unwrap_err().to_string();
        assert!(error.contains("no maintenance thread"), "{error}");
    }
}
