//! The contenders: a cache and the heap with each of the checks, and other allocators.

use core::ffi::{c_uint, CStr};
use slabyard_sys as sys;

/// Checks that are switched on together.
pub struct Check {
    pub name: &'static str,
    /// The flags of a cache.
    flags: c_uint,
    /// The options of the process for the heap.
    options: &'static CStr,
    /// The options of the process for a cache, in addition to its flags.
    manner: &'static CStr,
    /// The contender has a process of its own.
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

/// One allocation in `often` has pages of its own. The rate is set before the first allocation.
const fn guard(name: &'static str, often: &'static CStr) -> Check {
    Check {
        manner: often,
        alone: true,
        ..check(name, sys::SY_GUARD, often)
    }
}

/// All checks but locked memory, which depends on a limit of the system.
const EVERYTHING: Check = Check {
    manner: c"unwind=auto",
    ..check(
        "everything",
        sys::SY_CHECK_FLAGS & !sys::SY_LOCKED,
        c"check,redzone,poison,quarantine,audit,unwind=auto,random,edges,guard,zero,dump=no",
    )
};

/// The system limits locked memory, so there may be no figure.
const LOCK: Check = Check {
    alone: true,
    ..check(
        "lock+no-dump",
        sys::SY_LOCKED | sys::SY_NO_DUMP,
        c"lock,dump=no",
    )
};

/// All checks in the order of the tables. The ratios are relative to the first.
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

/// Other allocators, for context.
pub const PEERS: [&str; 3] = ["glibc", "mimalloc", "mimalloc-secure"];

/// The name for no checks.
pub const OFF: &str = "off";

/// The interface whose operations are measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interface {
    Cache,
    Heap,
    Peer,
}

/// One contender.
#[derive(Clone, Copy)]
pub struct Contender {
    pub interface: Interface,
    /// `None` for a peer.
    check: Option<&'static Check>,
    /// The name of the check or of the peer.
    pub what: &'static str,
}

impl Contender {
    fn checked(interface: Interface, check: &'static Check) -> Contender {
        Contender {
            interface,
            check: Some(check),
            what: check.name,
        }
    }

    pub fn name(&self) -> String {
        match self.interface {
            Interface::Cache => format!("cache/{}", self.what),
            Interface::Heap => format!("heap/{}", self.what),
            Interface::Peer => self.what.to_owned(),
        }
    }

    /// The name of the loops.
    pub fn loops(&self) -> &'static str {
        match self.interface {
            Interface::Cache => "cache",
            Interface::Heap => "heap",
            Interface::Peer => self.what,
        }
    }

    /// The flags of a cache.
    pub fn flags(&self) -> c_uint {
        self.check.map_or(0, |check| check.flags)
    }

    /// The options to pass to `sy_set_options` before it is opened, and again before each use.
    pub fn options(&self) -> &'static CStr {
        match (self.interface, self.check) {
            (Interface::Cache, Some(check)) => check.manner,
            (Interface::Heap, Some(check)) => check.options,
            _ => c"",
        }
    }

    /// Whether it needs a process of its own. The heap does: its checks cannot change in a process.
    pub fn alone(&self) -> bool {
        self.interface == Interface::Heap || self.check.is_some_and(|check| check.alone)
    }

    /// The name of the contender without checks that it is compared with.
    pub fn off(&self) -> String {
        let interface = match self.interface {
            Interface::Cache => "cache",
            Interface::Heap | Interface::Peer => "heap",
        };
        format!("{interface}/{OFF}")
    }
}

/// All, in the order of the tables.
pub fn all() -> Vec<Contender> {
    let of = |interface| {
        CHECKS
            .iter()
            .map(move |check| Contender::checked(interface, check))
    };
    let peers = PEERS.iter().map(|&what| Contender {
        interface: Interface::Peer,
        check: None,
        what,
    });
    of(Interface::Cache)
        .chain(of(Interface::Heap))
        .chain(peers)
        .collect()
}

/// Finds a contender by its name.
pub fn find(name: &str) -> Option<Contender> {
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
        let shared: Vec<Contender> = all().into_iter().filter(|who| !who.alone()).collect();
        let alone = CHECKS.iter().filter(|check| check.alone).count();
        assert_eq!(shared.len(), CHECKS.len() - alone + PEERS.len());
        assert!(shared.iter().all(|who| who.interface != Interface::Heap));
    }
}
