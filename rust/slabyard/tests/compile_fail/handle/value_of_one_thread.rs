use slabyard::HandleMap;
use std::rc::Rc;

fn main() {
    let map = HandleMap::new();
    map.insert(Rc::new(1));
    std::thread::scope(|scope| {
        scope.spawn(|| map.clear());
    });
}
