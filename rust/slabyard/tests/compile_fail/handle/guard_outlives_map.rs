use slabyard::HandleMap;

fn main() {
    let map = HandleMap::new();
    let key = map.insert(1);
    let guard = map.get(key);
    drop(map);
    drop(guard);
}
