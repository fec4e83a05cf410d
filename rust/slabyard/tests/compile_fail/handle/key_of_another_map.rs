use slabyard::{new_key_type, HandleMap};

new_key_type! {
    struct OrderKey;
    struct TradeKey;
}

fn main() {
    let orders = HandleMap::<u32, OrderKey>::with_key();
    let trades = HandleMap::<u32, TradeKey>::with_key();
    trades.get(orders.insert(1));
}
