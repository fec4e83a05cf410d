//! Tests of maps for perf: right ones, and those that are made to do harm.

use super::*;
use std::os::unix::fs::{symlink, PermissionsExt};
use tempfile::TempDir;

fn named(text: &str, addresses: &[u64]) -> Vec<Option<String>> {
    let mut made = Made::default();
    add_names(text.as_bytes(), addresses, &mut made);
    let name = |&address: &u64| made.name(address).map(str::to_string);
    addresses.iter().map(name).collect()
}

#[test]
fn addresses_get_the_name_of_the_last_line_that_has_them() {
    let text = "1000 10 first\n1010 10 py::run:/x/y z.py\n1008 4 again\nffffffffffffff00 ff last";
    let found = named(
        text,
        &[0xfff, 0x1000, 0x1008, 0x100b, 0x100c, 0x101f, 0x1020],
    );
    let found: Vec<_> = found.iter().map(Option::as_deref).collect();
    let python = Some("py::run:/x/y z.py");
    let wanted = [
        None,
        Some("first"),
        Some("again"),
        Some("again"),
        Some("first"),
        python,
        None,
    ];
    assert_eq!(found, wanted);
    assert_eq!(named(text, &[u64::MAX - 1]), [Some("last".to_string())]);
}

#[test]
fn lines_that_are_none_are_skipped() {
    let text =
        "\n \nxyz 10 a\n1000 0 b\n1000\n1000 10\n1000 10 \n-1000 10 c\n1000 10000000000000000 d\n\
                1 fffffffffffffffff e\n0x2000 0x10 right\r\n\u{0}\n";
    assert_eq!(
        named(text, &[0x1000, 0x2000]),
        [None, Some("right".to_string())]
    );
}

#[test]
fn names_do_not_reach_the_terminal_and_are_short() {
    let long = format!("10 10 {}\n30 10 a\u{1b}[2Jb", "x".repeat(100_000));
    let found = named(&long, &[0x10, 0x30]);
    assert_eq!(found[0].as_ref().unwrap().len(), NAME_BYTES_MOST);
    assert_eq!(found[1].as_deref(), Some("a?[2Jb"));
}

/// With a quadratic walk, this takes hours.
#[test]
fn many_lines_for_all_addresses_take_no_time() {
    let text = "0 ffffffffffffffff all\n".repeat(300_000);
    let addresses: Vec<u64> = (0..300_000).map(|number| number * 16).collect();
    let found = named(&text, &addresses);
    assert!(found.iter().all(|name| name.as_deref() == Some("all")));
}

#[test]
fn any_text_is_survived() {
    use proptest::prelude::*;
    let line = "[0-9a-f]{0,17} [0-9a-f]{0,17} [ -~]{0,8}";
    let lines = prop::collection::vec(line, 0..20);
    proptest!(|(lines in lines, end in ".{0,20}")| {
        try_text((lines.join("\n") + &end).as_bytes());
    });
}

/// A folder with a map, and what is read of it.
fn read_of(
    make: impl Fn(&std::path::Path),
    owner: u32,
    since: Option<SystemTime>,
) -> Option<Vec<u8>> {
    let folder = TempDir::new().unwrap();
    make(&folder.path().join("perf-7.map"));
    let wanted = Wanted {
        pid: 7,
        owner,
        since,
    };
    read(&File::open(folder.path()).unwrap(), wanted)
}

fn own_user() -> u32 {
    // SAFETY: it always succeeds.
    unsafe { libc::geteuid() }
}

#[test]
fn maps_of_the_user_count_and_older_ones_do_not() {
    let write = |path: &std::path::Path| fs::write(path, "10 10 a\n").unwrap();
    let now = SystemTime::now();
    assert!(read_of(write, own_user(), None).is_some());
    assert!(read_of(write, own_user(), Some(now)).is_some());
    let later = now + Duration::from_secs(60);
    assert!(read_of(write, own_user(), Some(later)).is_none());
    assert!(read_of(|_| (), own_user(), None).is_none());
}

#[test]
fn links_folders_pipes_and_files_of_others_do_not_count() {
    let secret = |path: &std::path::Path| {
        let other = path.with_extension("secret");
        fs::write(&other, "10 10 secret\n").unwrap();
        symlink(&other, path).unwrap();
    };
    assert!(read_of(secret, own_user(), None).is_none());
    let folder = |path: &std::path::Path| fs::create_dir(path).unwrap();
    assert!(read_of(folder, own_user(), None).is_none());
    let pipe = |path: &std::path::Path| {
        let name = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: the name is a C string.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    };
    assert!(read_of(pipe, own_user(), None).is_none());
    let forbidden = |path: &std::path::Path| {
        fs::write(path, "10 10 a\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
    };
    // Root may read all.
    assert_eq!(
        read_of(forbidden, own_user(), None).is_some(),
        own_user() == 0
    );
    if own_user() == 0 {
        let others = |path: &std::path::Path| {
            fs::write(path, "10 10 a\n").unwrap();
            std::os::unix::fs::chown(path, Some(12345), None).unwrap();
        };
        assert!(read_of(others, 0, None).is_none());
        assert!(read_of(others, 12345, None).is_some());
    }
}

/// The process that writes to the pipe would go on, and end by a signal.
#[test]
fn a_pipe_is_not_opened() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("perf-7.map");
    let name = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the name is a C string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let (opens, waits) = std::sync::mpsc::channel();
    let writer = std::thread::spawn({
        let path = path.clone();
        move || {
            File::options().write(true).open(path).unwrap();
            opens.send(()).unwrap();
        }
    });
    let wanted = Wanted {
        pid: 7,
        owner: own_user(),
        since: None,
    };
    // The writer may not wait yet in the first of these looks.
    for _ in 0..20 {
        assert!(read(&File::open(folder.path()).unwrap(), wanted).is_none());
        assert!(waits.recv_timeout(Duration::from_millis(10)).is_err());
    }
    File::open(path).unwrap();
    writer.join().unwrap();
}

#[test]
fn a_map_that_is_too_large_does_not_count() {
    let sparse = |path: &std::path::Path| {
        File::create(path).unwrap().set_len(BYTES_MOST + 1).unwrap();
    };
    assert!(read_of(sparse, own_user(), None).is_none());
}

#[test]
fn only_calls_in_code_of_no_file_are_looked_up() {
    let module = |start: u64, path: &str| Module {
        start,
        end: start + 0x1000,
        path: path.into(),
        ..Module::default()
    };
    let modules = [
        module(0x1000, "/bin/program"),
        module(0x3000, ""),
        module(0x5000, "[anon:jit]"),
        module(0x7000, "/memfd:doublemapper (deleted)"),
    ];
    let addresses = [0x1010, 0x3010, 0x3010, 0x5010, 0x7010, 0x9010, 0];
    let found = calls(addresses.into_iter(), &modules);
    assert_eq!(found, [0x300f, 0x500f, 0x700f, 0x900f]);
}

#[test]
fn a_forked_child_has_the_functions_of_its_parent_too() {
    let folder = TempDir::new().unwrap();
    let process = |pid, forked| Process {
        pid,
        parent: 7,
        forked,
        stacks: vec![
            crate::recording::Node {
                caller: 0,
                address: 0x1011,
            },
            crate::recording::Node {
                caller: 0,
                address: 0x2011,
            },
        ],
        ..Process::default()
    };
    let mut recorded = Recorded::new();
    recorded.temporary = folder.path().to_path_buf();
    recorded.owners = [7, 8, 9].map(|pid| (pid, own_user())).into();
    fs::write(
        folder.path().join("perf-7.map"),
        "1000 100 of_parent\n2000 100 old\n",
    )
    .unwrap();
    fs::write(folder.path().join("perf-8.map"), "2000 100 of_child\n").unwrap();
    let names = recorded.names(&[process(7, false), process(8, true), process(9, false)]);
    let of = |index: usize| [0x1010, 0x2010].map(|call| names[index].name(call));
    assert_eq!(of(0), [Some("of_parent"), Some("old")]);
    assert_eq!(of(1), [Some("of_parent"), Some("of_child")]);
    assert_eq!(of(2), [None, None]);
}

/// If each child read the map, this would take an hour.
#[test]
fn many_children_read_the_map_of_their_parent_once() {
    let folder = TempDir::new().unwrap();
    let text = "0 ffff a function of the parent\n".repeat(300_000) + "1000 100 last\n";
    fs::write(folder.path().join("perf-7.map"), text).unwrap();
    let child = |pid| Process {
        pid,
        parent: 7,
        forked: true,
        stacks: vec![crate::recording::Node {
            caller: 0,
            address: 0x1011,
        }],
        ..Process::default()
    };
    let mut recorded = Recorded::new();
    recorded.temporary = folder.path().to_path_buf();
    recorded.owners = [(7, own_user())].into();
    let names = recorded.names(&(1000..21_000).map(child).collect::<Vec<_>>());
    assert_eq!(names.len(), 20_000);
    assert!(names.iter().all(|names| names.name(0x1010) == Some("last")));
}
