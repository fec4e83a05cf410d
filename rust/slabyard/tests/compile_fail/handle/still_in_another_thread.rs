use slabyard::MovableMap;

fn main() {
    let mut map = MovableMap::new();
    let key = map.insert(1);
    map.while_still(|values| {
        std::thread::scope(|scope| {
            scope.spawn(|| values.get(key).copied());
        });
    });
}
