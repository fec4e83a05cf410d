//! The text of `slabyard advise`.

use super::{gains, Gain, Kind, Tried, Whole};
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
    let mut worth: Vec<(&Tried, Gain)> = tries
        .filter_map(|one| Some((one, worthy(one, whole)?)))
        .collect();
    worth.sort_by(|(_, a), (_, b)| b.time.total_cmp(&a.time));
    for (number, (one, gain)) in worth.iter().enumerate() {
        write_place(&mut text, number + 1, one, gain, whole);
    }
    if worth.is_empty() {
        let _ = writeln!(
            text,
            "\nNo place would gain 0.5% of this time or 1% of the peak from a pool or a cache \
             ({} tried).",
            tried.len()
        );
    } else {
        text.push_str(
            "\nThe times are from repeating the allocations and frees of the place alone, in their order, \
             by one\nthread; the rest of the program is left out. Memory is counted.\n",
        );
    }
    text
}

fn time(ns: f64) -> String {
    seconds(Duration::from_secs_f64(ns.max(0.0) / 1e9))
}

/// The best gain, if it is worth a change.
fn worthy(tried: &Tried, whole: Whole) -> Option<Gain> {
    gains(tried).into_iter().find(|gain| gain.is_worth(whole))
}

fn short(name: &str) -> String {
    match name.char_indices().nth(NAME_MOST) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_string(),
    }
}

fn write_place(text: &mut String, number: usize, one: &Tried, gain: &Gain, whole: Whole) {
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
    let _ = writeln!(text, "   {}", sentence(gain, one, whole));
    write_code(text, gain.kind, place.size, place.through.is_some());
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

/// The lines to write. With `in_container`, a container of the library allocates the objects.
fn write_code(text: &mut String, kind: Kind, size: u64, in_container: bool) {
    if in_container {
        text.push_str(
            "     C++   slabyard::allocator<T> as the allocator of the container: it has a cache for each \
             size\n",
        );
        return;
    }
    let pool = format!("sy_pool *pool = sy_pool_create(&(sy_pool_config){{.size = {size}}});");
    let cache = format!(
        "sy_cache *cache = sy_cache_create(&(sy_cache_config){{.name = \"name\", .size = {size}}});"
    );
    let lines: [(&str, &str); 3] = match kind {
        Kind::Pool => [
            (&pool, "sy_pool_alloc(pool); sy_pool_free(pool, object);"),
            (
                "slabyard::pool<T> pool;",
                "auto object = pool.make_unique(...);",
            ),
            (
                "let pool = Pool::unbounded();",
                "let object = pool.insert(value);",
            ),
        ],
        Kind::Reset => [
            (&pool, "sy_pool_alloc(pool); ... sy_pool_reset(pool);"),
            (
                "slabyard::pool<T> pool;",
                "pool.make(...); // a new pool each time",
            ),
            (
                "let arena = Arena::new();",
                "arena.alloc(value); // a new arena each time",
            ),
        ],
        Kind::Cache => [
            (
                &cache,
                "sy_cache_alloc(cache); sy_cache_free(cache, object);",
            ),
            (
                "slabyard::cache<T> cache(\"name\");",
                "auto object = cache.make_unique(...);",
            ),
            (
                "let cache = Cache::new(\"name\");",
                "let object = cache.insert(value);",
            ),
        ],
    };
    for (language, (first, then)) in ["C", "C++", "Rust"].into_iter().zip(lines) {
        let _ = writeln!(text, "     {language:<5} {first} {then}");
    }
}
