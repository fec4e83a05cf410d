use slabyard::HandleMap;

fn main() {
    let map: HandleMap<&'static str> = HandleMap::new();
    let shorter: &HandleMap<&str> = &map;
    let text = String::from("gone");
    let key = shorter.insert(&text);
    drop(text);
    println!("{}", *map.get(key).unwrap());
}
