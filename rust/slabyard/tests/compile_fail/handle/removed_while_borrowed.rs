use slabyard::MovableMap;

fn main() {
    let mut map = MovableMap::new();
    let key = map.insert(1);
    map.while_still(|values| {
        let value = values.get(key);
        values.remove(key);
        drop(value);
    });
}
