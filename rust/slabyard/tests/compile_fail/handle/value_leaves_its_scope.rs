use slabyard::MovableMap;

fn main() {
    let mut map = MovableMap::new();
    let key = map.insert(1);
    let value = map.while_still(|values| values.get(key));
    drop(value);
}
