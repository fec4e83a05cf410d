//! A free object would outlive what it borrows.
use slabyard::Recycle;

struct Borrows<'a>(&'a str);

impl<'a> Recycle for Borrows<'a> {
    fn create() -> Self {
        Borrows("")
    }
    fn recycle(&mut self) {}
}

fn main() {}
