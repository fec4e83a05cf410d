//! Who is measured: a cache and the heap with each of the checks, and other allocators.

use core::ffi::{c_uint, CStr};
use slabyard_sys as sys;

/// Checks that are switched on together.
pub struct Check {
    pub name: &'static str,
    /// A cache's flags.
    flags: c_uint,
    /// What is said for the heap.
    options: &'static CStr,
    /// What is said for a cache, beside its flags.
    manner: &'static CStr,
    /// A process is not shared with others.
    alone: bool,
}

const fn check(name: &'static str, flags: c_uint, options: &'static CStr) -> Check {
    Check {
        name,
        flags,
        options,
        manner: c"",
        alone: false,
    }
}

const fn audit(name: &'static str, options: &'static CStr, manner: &'static CStr) -> Check {
    Check {
        manner,
        ..check(name, sys::SY_AUDIT, options)
    }
}

/// One allocation in so many has pages of its own; said when the first is made.
const fn guard(name: &'static str, often: &'static CStr) -> Check {
    Check {
        manner: often,
        alone: true,
        ..check(name, sys::SY_GUARD, often)
    }
}

/// All but what depends on how much the system allows.
const EVERYTHING: Check = Check {
    manner: c"unwind=auto",
    ..check(
        "everything",
        sys::SY_CHECK_FLAGS & !sys::SY_LOCKED,
        c"check,redzone,poison,quarantine,audit,unwind=auto,random,edges,guard,zero,dump=no",
    )
};

/// The system limits what may be locked, so that there may be no figure.
const LOCK: Check = Check {
    alone: true,
    ..check(
        "lock+no-dump",
        sys::SY_LOCKED | sys::SY_NO_DUMP,
        c"lock,dump=no",
    )
};

/// In the order of the tables. The first is what the others are held against.
pub const CHECKS: [Check; 15] = [
    check(OFF, 0, c""),
    check("check", sys::SY_CHECKED, c"check"),
    check("redzone", sys::SY_REDZONE, c"redzone"),
    check("poison", sys::SY_POISON, c"poison"),
    check("quarantine", sys::SY_QUARANTINE, c"quarantine"),
    check("zero", sys::SY_ZERO, c"zero"),
    check("random", sys::SY_RANDOM, c"random"),
    check("edges", sys::SY_EDGES, c"edges"),
    audit("audit", c"audit,unwind=auto", c"unwind=auto"),
    audit("audit-tables", c"audit,unwind=tables", c"unwind=tables"),
    check(
        "check+redzone+poison",
        sys::SY_CHECKED | sys::SY_REDZONE | sys::SY_POISON,
        c"check,redzone,poison",
    ),
    EVERYTHING,
    guard("guard=1/1000", c"guard=1/1000"),
    guard("guard=all", c"guard=all"),
    LOCK,
];

/// Everybody's `malloc`, for context.
pub const PEERS: [&str; 3] = ["glibc", "mimalloc", "mimalloc-secure"];

/// The name of no check at all.
pub const OFF: &str = "off";

/// Whose operations are measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Door {
    Cache,
    Heap,
    Peer,
}

/// One who is measured.
#[derive(Clone, Copy)]
pub struct Who {
    pub door: Door,
    /// Of a peer there is none.
    check: Option<&'static Check>,
    /// Of the check, or of the peer.
    pub what: &'static str,
}

impl Who {
    fn checked(door: Door, check: &'static Check) -> Who {
        Who {
            door,
            check: Some(check),
            what: check.name,
        }
    }

    pub fn name(&self) -> String {
        match self.door {
            Door::Cache => format!("cache/{}", self.what),
            Door::Heap => format!("heap/{}", self.what),
            Door::Peer => self.what.to_owned(),
        }
    }

    /// The name of the loops.
    pub fn loops(&self) -> &'static str {
        match self.door {
            Door::Cache => "cache",
            Door::Heap => "heap",
            Door::Peer => self.what,
        }
    }

    /// A cache's flags.
    pub fn flags(&self) -> c_uint {
        self.check.map_or(0, |check| check.flags)
    }

    /// What is to be said by `sy_set_options` before it is opened, and again before each use.
    pub fn options(&self) -> &'static CStr {
        match (self.door, self.check) {
            (Door::Cache, Some(check)) => check.manner,
            (Door::Heap, Some(check)) => check.options,
            _ => c"",
        }
    }

    /// The classes of the heap have checks for as long as their process lives.
    pub fn alone(&self) -> bool {
        self.door == Door::Heap || self.check.is_some_and(|check| check.alone)
    }

    /// The one without checks beside which it is shown.
    pub fn off(&self) -> String {
        let door = match self.door {
            Door::Cache => "cache",
            Door::Heap | Door::Peer => "heap",
        };
        format!("{door}/{OFF}")
    }
}

/// All, in the order of the tables.
pub fn all() -> Vec<Who> {
    let of = |door| CHECKS.iter().map(move |check| Who::checked(door, check));
    let peers = PEERS.iter().map(|&what| Who {
        door: Door::Peer,
        check: None,
        what,
    });
    of(Door::Cache).chain(of(Door::Heap)).chain(peers).collect()
}

/// The one of that name.
pub fn find(name: &str) -> Option<Who> {
    all().into_iter().find(|who| who.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::kernels::loops;

    #[test]
    fn everybody_is_found_by_name_and_has_loops() {
        for who in all() {
            assert_eq!(find(&who.name()).unwrap().name(), who.name());
            assert!(loops(0, who.loops()).is_some(), "{}", who.name());
            assert!(find(&who.off()).is_some());
        }
    }

    #[test]
    fn each_flag_is_measured() {
        let measured = CHECKS.iter().fold(0, |flags, check| flags | check.flags);
        assert_eq!(measured, sys::SY_CHECK_FLAGS);
    }

    #[test]
    fn only_caches_and_peers_share_a_process() {
        let shared: Vec<Who> = all().into_iter().filter(|who| !who.alone()).collect();
        let alone = CHECKS.iter().filter(|check| check.alone).count();
        assert_eq!(shared.len(), CHECKS.len() - alone + PEERS.len());
        assert!(shared.iter().all(|who| who.door != Door::Heap));
    }
}
