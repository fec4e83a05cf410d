//! A free object would be dropped by another thread.
use slabyard::Recycle;
use std::rc::Rc;

struct Counts(Rc<u32>);

impl Recycle for Counts {
    fn create() -> Self {
        Counts(Rc::new(1))
    }
    fn recycle(&mut self) {}
}

fn main() {}
