//! The screen as text, and what the keys do to it.

use super::super::account::{Account, CacheRow, ThreadRow, What};
use super::super::image::Weight;
use super::super::tags::{Source, TagRow, Tags};
use super::app::{Act, App, Pane};
use super::pace::Pace;
use super::processes::Found;
use super::{once, screen, session::Session};
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

fn cache(name: &str, size: u64, live: u64, resident: u64) -> CacheRow {
    CacheRow {
        name: name.into(),
        kind: "cache".into(),
        object_bytes: size,
        slot_bytes: size,
        live_objects: live,
        live_bytes: live * size,
        waiting_objects: 10,
        resident_bytes: resident,
        held_bytes: resident,
        free_bytes: resident - live * size,
        ..CacheRow::default()
    }
}

/// An account with this number of live orders.
fn account(orders: u64) -> Account {
    let resident = [
        (What::Live, orders * 128),
        (What::FreeInSlabs, 4 * MIB),
        (What::Headers, MIB / 2),
        (What::Files, 3 * MIB),
    ];
    let weight = |(what, bytes)| {
        let shares = bytes as f64;
        (what, Weight { bytes, shares })
    };
    let thread = |number, name: &str, state, waiting_objects| ThreadRow {
        number,
        name: name.into(),
        state,
        waiting_objects,
        waiting_bytes: waiting_objects * 128,
    };
    Account {
        pid: 4711,
        program: "market".into(),
        libraries: vec!["/opt/market".into()],
        resident: resident.map(weight).into(),
        rss_bytes: resident.iter().map(|(_, bytes)| bytes).sum(),
        caches: vec![
            cache("order", 128, orders, 30 * MIB),
            cache("trade", 64, 1000, MIB),
            CacheRow::default(),
        ],
        threads: vec![
            thread(4711, "market", 'S', 100),
            thread(4712, "worker", 'R', 5),
        ],
        ..Account::default()
    }
}

fn session() -> Session {
    let mut session = Session::default();
    let start = Instant::now();
    session.add(account(100_000), start);
    session.add(account(150_000), start + Duration::from_secs(2));
    session
}

fn app(pane: Pane) -> App {
    let mut app = App::new(pane, Pace::new(None));
    app.session = session();
    app.show_session();
    app
}

/// The screen without spaces at the ends of lines.
fn drawn(app: &mut App, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen::draw(frame, app)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| {
        let cells = (0..width).map(|x| buffer[(x, y)].symbol());
        cells.collect::<String>().trim_end().to_string()
    };
    let lines: Vec<String> = (0..height).map(line).collect();
    lines.join("\n") + "\n"
}

fn press(app: &mut App, keys: &str) {
    for letter in keys.chars() {
        let code = match letter {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\x1b' => KeyCode::Esc,
            letter => KeyCode::Char(letter),
        };
        app.key(KeyEvent::from(code));
    }
}

fn found(pid: u32, program: &str, rss_bytes: u64) -> Found {
    Found {
        pid,
        program: program.into(),
        rss_bytes,
        figures: (pid != 3).then_some((rss_bytes / 2, rss_bytes / 4)),
        command: format!("/usr/bin/{program} --port 80"),
    }
}

fn assert_golden(name: &str, text: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/inspect/top/golden");
    let file = format!("{folder}/{name}.txt");
    if std::env::var_os("SLABYARD_NEW_GOLDEN").is_some() {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(&file, text).unwrap();
    }
    let golden = std::fs::read_to_string(&file).unwrap();
    assert_eq!(
        text, golden,
        "{name}: if this is better, run with SLABYARD_NEW_GOLDEN=1"
    );
}

#[test]
fn the_panes_look_as_they_did() {
    for (name, pane) in [
        ("memory", Pane::Memory),
        ("caches", Pane::Caches),
        ("threads", Pane::Threads),
    ] {
        assert_golden(name, &drawn(&mut app(pane), 80, 24));
        assert_golden(&format!("{name}-wide"), &drawn(&mut app(pane), 140, 20));
    }
}

fn tags(parser: u64) -> Tags {
    let row = |name: &str, samples: u64| TagRow {
        name: name.into(),
        live_bytes: samples * MIB / 2,
        live_objects: samples * 512,
        samples,
    };
    Tags {
        source: Source::Samples,
        samples: parser + 9,
        rows: vec![row("parser", parser), row("", 9)],
    }
}

/// A program with tags, of which one grows.
fn tagged() -> Session {
    let mut session = Session::default();
    let start = Instant::now();
    for (at, parser) in [(0, 10), (2, 25)] {
        let mut account = account(100_000);
        account.tags = Some(tags(parser));
        session.add(account, start + Duration::from_secs(at));
    }
    session
}

#[test]
fn a_program_with_tags_has_a_pane_for_them() {
    let mut app = app(Pane::Memory);
    press(&mut app, "4");
    assert_eq!(app.pane, Pane::Memory);
    app.session = tagged();
    app.show_session();
    press(&mut app, "4");
    assert_eq!(app.pane, Pane::Tags);
    assert_golden("tags", &drawn(&mut app, 80, 24));
    press(&mut app, "\t");
    assert_eq!(app.pane, Pane::Memory);
    assert_golden("once-tags", &once::process(&tagged()));
}

#[test]
fn the_list_looks_as_it_did() {
    let mut app = App::new(Pane::List, Pace::new(None));
    assert!(drawn(&mut app, 80, 24).contains("The processes are being read."));
    app.set_list(&[
        found(1, "small", MIB),
        found(2, "large", 9 * MIB),
        found(3, "x", 1),
    ]);
    assert_golden("list", &drawn(&mut app, 80, 12));
}

#[test]
fn the_help_fits_into_a_small_terminal() {
    let mut app = app(Pane::Memory);
    press(&mut app, "?");
    assert_golden("help", &drawn(&mut app, 80, 24));
    press(&mut app, "q");
    assert!(!app.shows_help);
}

#[test]
fn no_size_is_too_small() {
    for pane in [
        Pane::List,
        Pane::Memory,
        Pane::Caches,
        Pane::Threads,
        Pane::Tags,
    ] {
        let mut app = app(pane);
        app.set_list(&[found(2, "large", 9 * MIB)]);
        app.has_ended = true;
        app.problem = Some("something went wrong".into());
        for (width, height) in [(1, 1), (2, 2), (5, 3), (20, 4), (30, 100), (300, 2)] {
            drawn(&mut app, width, height);
            app.shows_help ^= true;
            drawn(&mut app, width, height);
        }
    }
}

#[test]
fn warnings_and_the_end_are_said_in_words() {
    let mut app = app(Pane::Memory);
    let text = drawn(&mut app, 80, 24);
    assert!(text.contains("in slabs of order are free"), "{text}");
    app.has_ended = true;
    let text = drawn(&mut app, 80, 24);
    assert!(text.contains("The process has ended. These are its last figures; q leaves."));
    assert_eq!(app.key(KeyEvent::from(KeyCode::Enter)), Act::Quit);
}

#[test]
fn keys_turn_pages_sort_and_search() {
    let mut app = app(Pane::Memory);
    press(&mut app, "\t");
    assert_eq!(app.pane, Pane::Caches);
    press(&mut app, "3");
    assert_eq!(app.pane, Pane::Threads);
    press(&mut app, "2r");
    assert!(app.view().order.reversed);
    press(&mut app, "s");
    // The trend has no order, so the next column is the first one.
    assert_eq!(app.view().order.column, 0);
    press(&mut app, "/TRA\n");
    let text = drawn(&mut app, 80, 24);
    assert!(
        text.contains("trade") && !text.contains("order  "),
        "{text}"
    );
    press(&mut app, "\x1b");
    assert!(drawn(&mut app, 80, 24).contains("order  "));
    press(&mut app, "/x\x1b");
    assert_eq!(app.view().filter, "");
    // Letters of a search are no commands.
    press(&mut app, "/q");
    assert!(app.is_searching);
}

#[test]
fn the_cursor_stays_among_the_rows_and_on_its_process() {
    let mut app = App::new(Pane::List, Pace::new(None));
    app.set_list(&[found(1, "small", MIB), found(2, "large", 9 * MIB)]);
    press(&mut app, "jjjj");
    assert_eq!(app.view().cursor, 1);
    // The small one has grown: the cursor moves with it.
    app.set_list(&[found(1, "small", 99 * MIB), found(2, "large", 9 * MIB)]);
    assert_eq!(app.view().cursor, 0);
    assert_eq!(app.key(KeyEvent::from(KeyCode::Enter)), Act::Open(1));
    app.turn_to(Pane::Memory);
    assert_eq!(app.key(KeyEvent::from(KeyCode::Esc)), Act::Close);
}

#[test]
fn pauses_and_ends_are_told_to_the_program() {
    let mut app = app(Pane::Caches);
    let mut key = |letter| app.key(KeyEvent::from(KeyCode::Char(letter)));
    assert_eq!(key('p'), Act::Nothing);
    assert_eq!(key('p'), Act::Look);
    assert_eq!(key('+'), Act::Nothing);
    assert_eq!(key('q'), Act::Quit);
    let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
    assert_eq!(app.pace.words(), "5 s");
    assert_eq!(app.key(control('c')), Act::Quit);
    assert_eq!(app.key(control('z')), Act::Suspend);
}

#[test]
fn once_is_text_without_drawings() {
    assert_golden("once", &once::process(&session()));
    let list = [found(1, "small", MIB), found(2, "large", 9 * MIB)];
    assert_golden("once-list", &once::list(&list));
    assert_eq!(once::list(&[]), "No process of yours uses Slabyard.\n");
}

#[test]
fn a_cache_that_comes_later_has_no_rate_at_first() {
    let mut session = Session::default();
    let start = Instant::now();
    let mut first = account(1000);
    first.caches.truncate(1);
    session.add(first, start);
    session.add(account(1000), start + Duration::from_secs(1));
    let table = session.caches();
    let trade = &table.rows[1];
    assert_eq!(trade.values[0].text(0), "trade");
    assert_eq!(trade.values[4].text(0), "-");
}
