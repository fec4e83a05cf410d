//! Repeats the lives of a place's objects with an epoch for each group of them, and counts the memory
//! that the slabs hold, beside that of a cache without epochs.
//!
//! The memory is counted at moments that divide the recorded run into equal times, each time after all
//! free memory was given back. So what epochs save is memory that could not come back without them.

use super::groups::{self, Groups, Way, NONE};
use super::lives::Life;
use super::trial::{fastest, repeat_until, Cache, Maker};
use anyhow::Result;
use core::ffi::c_void;
use slabyard_sys as sys;

/// All objects of a phase are in its epoch if that saves so much of what it saves to leave out those
/// that outlive it: a program need not know these then.
const SAVES_AS_MUCH: f64 = 0.8;

/// Bytes that the slabs hold.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Held {
    /// On average over the run.
    pub mean: f64,
    /// When most objects were live.
    pub most: f64,
}

/// What epochs for the objects of a place do.
#[derive(Clone, Copy, Debug)]
pub struct Epochs {
    pub way: Way,
    pub count: usize,
    pub apart: f64,
    pub without: Held,
    pub with: Held,
    /// Nanoseconds of an allocation or a free. `None`: not known, because several threads allocate the
    /// objects, and the trial has one.
    pub ns: Option<f64>,
}

impl Epochs {
    /// Bytes, on average over the run.
    pub fn saved(&self) -> f64 {
        self.without.mean - self.with.mean
    }
}

/// Allocates objects from the epochs of their groups. The epoch is closed behind its last object.
struct Grouped<'a> {
    cache: Cache,
    groups: &'a Groups,
    /// For each group, the objects to come.
    left: Vec<u32>,
    epochs: Vec<*mut sys::sy_epoch>,
    next: usize,
    current: u32,
}

impl<'a> Grouped<'a> {
    fn new(size: usize, groups: &'a Groups) -> Result<Self> {
        let mut grouped = Grouped {
            cache: Cache::new(size, sys::SY_EPOCHS)?,
            groups,
            left: Vec::new(),
            epochs: vec![std::ptr::null_mut(); groups.count],
            next: 0,
            current: NONE,
        };
        grouped.rewind();
        Ok(grouped)
    }

    fn rewind(&mut self) {
        self.next = 0;
        self.left = vec![0; self.groups.count];
        for &group in self.groups.of.iter().filter(|&&group| group != NONE) {
            self.left[group as usize] += 1;
        }
    }

    fn leave(&mut self) {
        if self.current != NONE {
            // SAFETY: this thread is in the epoch.
            unsafe { sys::sy_epoch_end(self.epochs[self.current as usize]) };
        }
        self.current = NONE;
    }

    /// False: there is no memory.
    fn enter(&mut self, group: u32) -> bool {
        self.leave();
        if group == NONE {
            return true;
        }
        let epoch = &mut self.epochs[group as usize];
        if epoch.is_null() {
            // SAFETY: an epoch needs no name.
            *epoch = unsafe { sys::sy_epoch_create(std::ptr::null()) };
        }
        // SAFETY: the epoch is open.
        let entered = !epoch.is_null() && unsafe { sys::sy_epoch_begin(*epoch) } == 0;
        if entered {
            self.current = group;
        }
        entered
    }

    fn close(&mut self, group: u32) {
        self.leave();
        let epoch = std::mem::replace(&mut self.epochs[group as usize], std::ptr::null_mut());
        // SAFETY: the epoch is open, and not used any more.
        unsafe { sys::sy_epoch_close(epoch) };
    }
}

impl Maker for Grouped<'_> {
    fn make(&mut self) -> *mut c_void {
        if self.next == self.groups.of.len() {
            self.rewind();
        }
        let group = self.groups.of[self.next];
        if group != self.current && !self.enter(group) {
            return std::ptr::null_mut();
        }
        let object = self.cache.make();
        self.next += 1;
        if group != NONE {
            self.left[group as usize] -= 1;
            if self.left[group as usize] == 0 {
                self.close(group);
            }
        }
        object
    }

    unsafe fn end(&mut self, object: *mut c_void) {
        // SAFETY: as the caller says.
        unsafe { self.cache.end(object) }
    }
}

impl Drop for Grouped<'_> {
    /// A trial that had no memory ends within epochs.
    fn drop(&mut self) {
        self.leave();
        for &epoch in self.epochs.iter().filter(|epoch| !epoch.is_null()) {
            // SAFETY: the epoch is open.
            unsafe { sys::sy_epoch_close(epoch) };
        }
    }
}

/// The change after which most objects are live.
fn peak(life: &Life) -> usize {
    let (mut live, mut most, mut at) = (0u64, 0, 0);
    for (index, change) in life.changes.iter().enumerate() {
        live = if change.begins { live + 1 } else { live - 1 };
        if live > most {
            (most, at) = (live, index + 1);
        }
    }
    at
}

/// Repeats a life, and counts the memory that `cache` says.
fn held<M: Maker>(life: &Life, maker: &mut M, cache: impl Fn(&M) -> &Cache) -> Result<Held> {
    let peak = peak(life);
    let (mut sum, mut most) = (0.0, 0.0);
    let mut moments = life.moments.iter().copied().peekable();
    let mut objects = vec![std::ptr::null_mut(); life.slots()];
    repeat_until(life, maker, &mut objects, |done, maker| {
        if done == peak {
            most = cache(maker).settled_bytes() as f64;
        }
        let bytes = moments.peek().filter(|&&at| at <= done);
        let bytes = bytes.map(|_| cache(maker).settled_bytes() as f64);
        while moments.next_if(|&at| at <= done).is_some() {
            sum += bytes.unwrap_or(0.0);
        }
    })?;
    Ok(Held {
        mean: sum / life.moments.len() as f64,
        most,
    })
}

/// The way to use epochs that saves most memory. `None`: none saves any.
pub fn best(life: &Life, size: usize) -> Result<Option<Epochs>> {
    if life.moments.is_empty() {
        return Ok(None);
    }
    let size = size.max(1);
    let without = held(life, &mut Cache::new(size, 0)?, |cache| cache)?;
    let mut best: Option<(Groups, Epochs)> = None;
    for groups in groups::of(life) {
        let with = held(life, &mut Grouped::new(size, &groups)?, |one| &one.cache)?;
        let (way, count, apart) = (groups.way, groups.count, groups.apart);
        let epochs = Epochs {
            way,
            count,
            apart,
            without,
            with,
            ns: None,
        };
        let before = best.as_ref().map_or(0.0, |(_, best)| best.saved());
        if before < SAVES_AS_MUCH * epochs.saved() {
            best = Some((groups, epochs));
        }
    }
    let Some((groups, mut epochs)) = best else {
        return Ok(None);
    };
    if life.in_one_thread {
        epochs.ns = Some(fastest(life, &mut Grouped::new(size, &groups)?)?);
    }
    Ok(Some(epochs))
}
