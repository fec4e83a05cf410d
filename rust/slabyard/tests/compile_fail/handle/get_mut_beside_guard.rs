use slabyard::HandleMap;

fn main() {
    let mut map = HandleMap::new();
    let key = map.insert(1);
    let guard = map.get(key);
    map.get_mut(key);
    drop(guard);
}
