//! Misuse becomes a value, and a record of the log. It is one test because the handler belongs to
//! the process.
#![cfg(not(miri))]

use slabyard::{Action, Cache, CacheBox, Checks, FaultKind, ObjectBox};
use std::sync::Mutex;

/// Kind, cache, offset, damage and text.
type Seen = (FaultKind, String, isize, Vec<u8>, String);

static SEEN: Mutex<Vec<Seen>> = Mutex::new(Vec::new());

fn last() -> Seen {
    SEEN.lock().unwrap().pop().expect("a fault was seen")
}

#[test]
fn misuse_is_reported_as_a_value() {
    slabyard::on_report(|report| {
        SEEN.lock().unwrap().push((
            report.kind(),
            report.cache().into(),
            report.offset(),
            report.damage().into(),
            report.to_string(),
        ));
        assert!(report.address() != 0 && report.allocated().is_some());
        assert!(!report.allocated().unwrap().frames.is_empty());
        Action::GoOn
    });
    let checks = Checks::REDZONE | Checks::AUDIT;
    let cache = Cache::builder()
        .name("misused")
        .checks(checks)
        .build()
        .unwrap();

    let (object, home) = ObjectBox::into_raw(cache.insert([1u8; 24]));
    // SAFETY: none: this is the misuse.
    unsafe {
        drop(CacheBox::from_raw(object, home));
        drop(CacheBox::from_raw(object, home));
    }
    let (kind, name, ..) = last();
    assert_eq!((kind, name.as_str()), (FaultKind::DoubleFree, "misused"));

    let object = cache.insert([1u8; 24]);
    // SAFETY: none: this is the misuse. The red zone makes the written byte accessible, and has
    // random bytes of which none is ASCII.
    unsafe {
        CacheBox::as_ptr(&object)
            .cast::<u8>()
            .cast_mut()
            .add(24)
            .write_volatile(b'!')
    };
    drop(object);
    let (kind, _, offset, damage, text) = last();
    assert_eq!(
        (kind, offset, damage),
        (FaultKind::Overflow, 24, vec![b'!'])
    );
    assert!(text.starts_with("overflow in \"misused\" at 0x"), "{text}");
    assert!(text.contains("(+24 of the object at 0x"), "{text}");
    assert_eq!(slabyard::verify(), 0);

    #[cfg(feature = "log")]
    to_log(&cache);
    slabyard::no_report_handler();
}

#[cfg(feature = "log")]
fn to_log(cache: &Cache<[u8; 24]>) {
    struct Lines;
    static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
    impl log::Log for Lines {
        fn enabled(&self, _: &log::Metadata) -> bool {
            true
        }
        fn log(&self, record: &log::Record) {
            LINES
                .lock()
                .unwrap()
                .push(format!("{} {}", record.target(), record.args()));
        }
        fn flush(&self) {}
    }
    log::set_logger(&Lines).unwrap();
    log::set_max_level(log::LevelFilter::Error);
    slabyard::log_reports(Action::GoOn);
    let (object, home) = ObjectBox::into_raw(cache.insert([1u8; 24]));
    // SAFETY: none: this is the misuse.
    unsafe {
        drop(CacheBox::from_raw(object, home));
        drop(CacheBox::from_raw(object, home));
    }
    let lines = LINES.lock().unwrap();
    assert!(
        lines[0].starts_with("slabyard double free in \"misused\""),
        "{lines:?}"
    );
}
