//! The text of `slabyard advise`.

use super::epochs::Epochs;
use super::groups::Way;
use super::{code, gains, Gain, Kind, Tried, Whole};
use crate::preload::serving::LIBC;
use crate::recording::Process;
use crate::run::seconds;
use crate::ui::{bytes, grouped};
use std::fmt::Write;
use std::time::Duration;

/// A longer name of a function is shortened: those of templates fill lines.
const NAME_MOST: usize = 90;

pub fn render(process: &Process, whole: Whole, tried: &[Tried]) -> String {
    let mut text = format!(
        "{}: {} allocations, {} at the peak, in {} while it was recorded\n",
        process.name(),
        grouped(whole.allocations),
        bytes(whole.peak_bytes),
        time(whole.ns)
    );
    let tries = tried.iter();
    let mut worth: Vec<Worth> = tries.filter_map(|one| Worth::of(one, whole)).collect();
    worth.sort_by(|a, b| b.time().total_cmp(&a.time()));
    for (number, one) in worth.iter().enumerate() {
        write_place(&mut text, number + 1, one, whole);
    }
    if worth.is_empty() {
        let _ = writeln!(
            text,
            "\nNo place would gain 0.5% of this time or 1% of the peak from a pool, a cache or epochs \
             ({} tried).",
            tried.len()
        );
    } else {
        text.push_str(
            "\nThe times are from repeating the allocations and frees of the place alone, in their order, \
             by one\nthread; the rest of the program is left out. Memory is counted; that of epochs after a trim.\n",
        );
    }
    text
}

fn time(ns: f64) -> String {
    seconds(Duration::from_secs_f64(ns.max(0.0) / 1e9))
}

/// What is worth a change at a place.
struct Worth<'a> {
    tried: &'a Tried,
    gain: Option<Gain>,
    epochs: Option<&'a Epochs>,
}

impl<'a> Worth<'a> {
    /// `None`: nothing.
    fn of(tried: &'a Tried, whole: Whole) -> Option<Self> {
        let gain = gains(tried).into_iter().find(|gain| gain.is_worth(whole));
        let epochs = tried.epochs.as_ref().filter(|one| one.is_worth(whole));
        (gain.is_some() || epochs.is_some()).then_some(Worth {
            tried,
            gain,
            epochs,
        })
    }

    fn time(&self) -> f64 {
        self.gain.map_or(0.0, |gain| gain.time)
    }
}

fn short(name: &str) -> String {
    match name.char_indices().nth(NAME_MOST) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_string(),
    }
}

fn write_place(text: &mut String, number: usize, worth: &Worth, whole: Whole) {
    let one = worth.tried;
    let place = &one.place;
    let _ = writeln!(text, "\n{number}. {}", short(&place.site.with_line()));
    if let Some(through) = &place.through {
        let _ = writeln!(text, "   through {}", short(through));
    }
    let threads = if one.life.in_one_thread {
        "one thread"
    } else {
        "several threads"
    };
    let _ = writeln!(
        text,
        "   {} objects of {} bytes, at most {} at a time, by {threads}",
        grouped(place.figures.allocations),
        grouped(place.size),
        grouped(one.life.most_live)
    );
    let measured = &one.measured;
    let pool = measured
        .pool_ns
        .map_or(String::new(), |ns| format!(", with a pool {ns:.1} ns"));
    let _ = writeln!(
        text,
        "   an allocation or a free takes {:.1} ns with {LIBC}'s malloc, with a cache {:.1} ns{pool}",
        measured.malloc_ns, measured.cache_ns
    );
    if let Some(gain) = &worth.gain {
        let _ = writeln!(text, "   {}", sentence(gain, one, whole));
        match place.through {
            Some(_) => text.push_str(FOR_CONTAINERS),
            None => write_lines(text, &code::lines(gain.kind, place.size)),
        }
    }
    if let Some(epochs) = worth.epochs {
        write_epochs(text, one, epochs, whole);
    }
}

fn sentence(gain: &Gain, one: &Tried, whole: Whole) -> String {
    let what = match gain.kind {
        Kind::Cache => "A cache".to_string(),
        Kind::Pool => "A pool".to_string(),
        Kind::Reset => format!(
            "A pool that is reset {} times, whenever none of the objects is in use,",
            grouped(one.life.phases)
        ),
    };
    let share = 100.0 * gain.time / whole.ns;
    let memory = match gain.bytes {
        0 => String::new(),
        1.. => format!(" and {} at the peak", bytes(gain.bytes as u64)),
        _ => format!(
            ", and cost {} at the peak",
            bytes(gain.bytes.unsigned_abs())
        ),
    };
    if gain.time < 0.0 {
        let (lost, saved) = (time(-gain.time), bytes(gain.bytes.unsigned_abs()));
        return format!("{what} would save {saved} at the peak, and cost {lost}:");
    }
    format!(
        "{what} would save {} ({share:.1}% of the run){memory}:",
        time(gain.time)
    )
}

/// The lines to write for a container of the library.
const FOR_CONTAINERS: &str =
    "     C++   slabyard::allocator<T> as the allocator of the container: it has \
    a cache for each size\n";

fn write_lines(text: &mut String, of_languages: &[code::Lines]) {
    for (language, lines) in of_languages {
        for (number, line) in lines.lines().enumerate() {
            let language = if number == 0 { language } else { "" };
            let _ = writeln!(text, "     {language:<5} {line}");
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

fn of(amount: f64) -> String {
    bytes(amount.max(0.0) as u64)
}

/// What epochs save, and how.
fn write_epochs(text: &mut String, one: &Tried, epochs: &Epochs, whole: Whole) {
    let (without, with) = (epochs.without, epochs.with);
    let _ = writeln!(
        text,
        "   {}\n   slabs hold {} on average over the run, with epochs {}; with most objects live {} and {}",
        found(epochs),
        of(without.mean),
        of(with.mean),
        of(without.most),
        of(with.most)
    );
    let (each, condition) = match epochs.way {
        Way::Phase => ("phase", ""),
        Way::PhaseAlone => (
            "phase",
            ",\n   if what outlives its phase is allocated outside of it, or from another cache",
        ),
        Way::Together => (
            "group",
            ",\n   if the program knows at the allocation what is freed together, as by a connection",
        ),
    };
    let changes = (one.place.figures.allocations + one.life.freed) as f64;
    let time = match epochs.ns.map(|ns| (one.measured.malloc_ns - ns) * changes) {
        None => String::new(),
        Some(saved) if saved < 0.0 => format!(", and cost {}", time(-saved)),
        Some(saved) => format!(", and {}", time(saved)),
    };
    let _ = writeln!(
        text,
        "   An epoch for each {each} would save {} on average ({} of the peak){time}{condition}:",
        of(epochs.saved()),
        percent(epochs.saved() / whole.peak_bytes.max(1) as f64)
    );
    write_lines(text, &code::lines_of_epochs(one.place.size));
}

/// Which objects would be in one epoch.
fn found(epochs: &Epochs) -> String {
    let (count, apart) = (grouped(epochs.count as u64), epochs.apart);
    match epochs.way {
        Way::Phase | Way::PhaseAlone => format!(
            "its objects come in {count} phases, which {} of them outlive",
            percent(apart)
        ),
        Way::Together => format!(
            "{} of its objects are freed in {count} groups, without an allocation between",
            percent(1.0 - apart)
        ),
    }
}
