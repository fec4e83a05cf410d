//! `slabyard top`: shows live where the memory of a process is, or which processes use Slabyard.
//!
//! [`run`] waits for keys, signals, the end of the process, and the next look. [`background`] looks
//! in another thread; [`session`] keeps what was seen and makes [`table`]s of it; [`processes`] makes
//! the list. [`app`] is the state that the keys change, and [`screen`] draws it. [`once`] writes the
//! same tables as text.

mod app;
mod background;
mod once;
mod pace;
mod processes;
mod screen;
mod session;
mod table;
#[cfg(test)]
mod tests;

use super::account::Account;
use super::follow::{has_closed, wait, Held, Target};
use super::{Depth, Look};
use crate::{cli, signals, ui};
use anyhow::{bail, Context, Result};
use app::{Act, App, Pane};
use background::{timed, Done, Work};
use clap::Args;
use pace::Pace;
use processes::Found;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::DefaultTerminal;
use std::io::{stdin, stdout, IsTerminal};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

#[derive(Args)]
pub struct TopArgs {
    /// The process: its number, or its name if it is the only one [default: choose from a list]
    #[arg(value_name = "PROCESS")]
    process: Option<String>,
    /// Time from one look to the next, such as 5s or 0.5s [default: 2s, and longer if looks took more
    /// than 3 % of a processor]
    #[arg(short, long, value_name = "TIME", value_parser = cli::time)]
    interval: Option<Duration>,
    /// Write the tables once as text, and end. Of a process there are two looks, an interval apart
    #[arg(long)]
    once: bool,
}

pub fn run(args: &TopArgs) -> Result<()> {
    let pid = args.process.as_deref().map(super::process).transpose()?;
    if args.once {
        return show_once(pid, args.interval.unwrap_or(pace::USUAL));
    }
    if !stdout().is_terminal() || !stdin().is_terminal() {
        bail!("top needs a terminal for its input and output; --once writes the tables as text");
    }
    let mut top = Top::new(pid, Pace::new(args.interval))?;
    let ended = top.run();
    if let Some(signal) = ended? {
        signals::end_by(signal);
    }
    Ok(())
}

fn show_once(pid: Option<u32>, interval: Duration) -> Result<()> {
    let Some(pid) = pid else {
        return ui::print(&once::list(&processes::all()));
    };
    let mut session = session::Session::default();
    for looks in 0..2 {
        if looks > 0 {
            std::thread::sleep(interval);
        }
        let done = timed(|| look(pid));
        session.add(*done.result?, done.at);
    }
    ui::print(&once::process(&session))
}

/// PSS is not shown, so it is not asked for.
fn look(pid: u32) -> Result<Box<Account>> {
    Ok(Box::new(Look::at(pid, Depth::Quick)?.account()))
}

/// What a look has found.
enum Seen {
    List(Vec<Found>),
    Process(u32, Result<Box<Account>>),
}

struct Top {
    app: App,
    /// `None`: the list is shown.
    target: Option<Target>,
    work: Option<Work<Seen>>,
    /// When the next look begins.
    next: Instant,
    held: Held,
}

/// Signals that end the program, and the one that suspends it. SIGHUP is not among them: the reader of
/// keys never returns if the terminal goes while it reads, so another thread waits for SIGHUP.
const SIGNALS: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGQUIT, libc::SIGTSTP];

impl Top {
    /// Looks once, so that mistakes are reported before the screen is taken.
    fn new(pid: Option<u32>, pace: Pace) -> Result<Self> {
        let pane = if pid.is_some() {
            Pane::Memory
        } else {
            Pane::List
        };
        let mut top = Top {
            app: App::new(pane, pace),
            target: pid.map(Target::of).transpose()?,
            work: None,
            next: Instant::now(),
            held: Held::hold(&SIGNALS)?,
        };
        if let Some(pid) = pid {
            let Done { result, at, cost } = timed(|| look(pid));
            let result = Seen::Process(pid, Ok(result?));
            top.take(Done { result, at, cost });
        }
        Ok(top)
    }

    /// Returns the signal that ended it.
    fn run(&mut self) -> Result<Option<i32>> {
        signals::before_end(&[libc::SIGHUP], ratatui::restore);
        let mut terminal = ratatui::try_init().context("cannot use the terminal")?;
        let ended = self.follow(&mut terminal);
        let restored = ratatui::try_restore().context("cannot restore the terminal");
        ended.and_then(|ended| restored.map(|()| ended))
    }

    fn follow(&mut self, terminal: &mut DefaultTerminal) -> Result<Option<i32>> {
        loop {
            terminal
                .draw(|frame| screen::draw(frame, &mut self.app))
                .context("cannot write to the terminal")?;
            self.start_look()?;
            self.wait()?;
            if let Some(signal) = self.held.take() {
                match signal {
                    libc::SIGTSTP => suspend(terminal)?,
                    ends => return Ok(Some(ends)),
                }
            }
            if self.work.as_ref().is_some_and(Work::is_done) {
                if let Some(work) = self.work.take() {
                    self.take(work.finish());
                }
            }
            if self.target.as_ref().is_some_and(Target::has_ended) {
                self.app.has_ended = true;
            }
            if has_closed(stdin().as_fd()) {
                return Ok(Some(libc::SIGHUP));
            }
            if self.keys(terminal)? {
                return Ok(None);
            }
        }
    }

    /// Whether looks are to go on.
    fn goes_on(&self) -> bool {
        !self.app.is_paused && !self.app.has_ended
    }

    fn start_look(&mut self) -> Result<()> {
        if self.work.is_some() || !self.goes_on() || Instant::now() < self.next {
            return Ok(());
        }
        let pid = self.target.as_ref().map(|target| target.pid);
        self.work = Some(Work::start(move || match pid {
            Some(pid) => Seen::Process(pid, look(pid)),
            None => Seen::List(processes::all()),
        })?);
        Ok(())
    }

    /// Waits until there is something to do.
    fn wait(&self) -> Result<()> {
        let input = stdin();
        let mut on = vec![input.as_fd(), self.held.as_fd()];
        on.extend(self.work.as_ref().map(AsFd::as_fd));
        // The handle of a process that has ended is always ready.
        let target = self.target.as_ref().filter(|_| !self.app.has_ended);
        on.extend(target.map(AsFd::as_fd));
        let is_timed = self.work.is_none() && self.goes_on();
        wait(&on, is_timed.then_some(self.next))
    }

    /// Takes what a look has found. Looks at a process that was left, or has ended, do not count.
    fn take(&mut self, done: Done<Seen>) {
        self.app.pace.note(done.cost);
        self.next = done.at + self.app.pace.interval();
        match (done.result, &self.target) {
            (Seen::List(all), None) => self.app.set_list(&all),
            (Seen::Process(pid, result), Some(target)) if target.pid == pid => {
                if target.has_ended() {
                    return;
                }
                match result {
                    Ok(account) => {
                        self.app.session.add(*account, done.at);
                        self.app.show_session();
                        self.app.problem = None;
                    }
                    Err(error) => self.app.problem = Some(format!("{error:#}")),
                }
            }
            _ => self.next = Instant::now(),
        }
    }

    /// Does what the keys ask; true: to quit.
    fn keys(&mut self, terminal: &mut DefaultTerminal) -> Result<bool> {
        while event::poll(Duration::ZERO).context("cannot read keys")? {
            let Event::Key(key) = event::read().context("cannot read keys")? else {
                continue;
            };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            let before = self.app.pace.interval();
            match self.app.key(key) {
                Act::Nothing => (),
                Act::Look => self.next = Instant::now(),
                Act::Open(pid) => self.open(pid),
                Act::Close => self.close(),
                Act::Suspend => suspend(terminal)?,
                Act::Quit => return Ok(true),
            }
            if self.app.pace.interval() < before {
                self.next = self.next.min(Instant::now() + self.app.pace.interval());
            }
        }
        Ok(false)
    }

    fn open(&mut self, pid: u32) {
        match Target::of(pid) {
            Ok(target) => {
                self.target = Some(target);
                self.app.turn_to(Pane::Memory);
                self.next = Instant::now();
            }
            Err(error) => self.app.problem = Some(format!("{error:#}")),
        }
    }

    fn close(&mut self) {
        self.target = None;
        self.app.turn_to(Pane::List);
        self.next = Instant::now();
    }
}

/// Gives the terminal back while the program is stopped.
fn suspend(terminal: &mut DefaultTerminal) -> Result<()> {
    ratatui::try_restore().context("cannot restore the terminal")?;
    // SAFETY: raise touches no memory.
    unsafe { libc::raise(libc::SIGSTOP) };
    *terminal = ratatui::try_init().context("cannot use the terminal")?;
    terminal.clear().context("cannot write to the terminal")
}
