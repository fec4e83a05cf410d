use slabyard::MovableMap;
use std::rc::Rc;

fn main() {
    MovableMap::<Rc<u32>>::new();
}
