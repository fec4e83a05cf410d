//! An order book: limit orders that are matched by price, and among equal prices by time.
//!
//! Each order lies in a slot of this thread's bounded pool. So a flood of orders is refused instead
//! of taking all memory. Each order has a key, with which its owner cancels it. The orders of one
//! price are a queue linked by keys, so an order can be removed from the middle at once. If an
//! order was filled meanwhile, its key is refused, even when another order lies in its place.
//!
//! The results of the book are compared with those of a plain list that is searched from end to
//! end.

use slabyard::{new_key_type, Full, LocalHandleMap};
use std::collections::BTreeMap;

mod order_alloc {
    slabyard::bounded_allocator!(super::Order);
}
use order_alloc::{Allocator, BoxSlot};

new_key_type! {
    /// Names an order that rests in the book.
    pub struct OrderKey;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Buy,
    Sell,
}

struct Order {
    id: u64,
    side: Side,
    price: u32,
    left: u32,
    older: Option<OrderKey>,
    newer: Option<OrderKey>,
}

/// The orders of one price, of which there is at least one.
struct Level {
    oldest: OrderKey,
    newest: OrderKey,
}

#[derive(PartialEq, Eq, Debug)]
struct Fill {
    maker: u64,
    taker: u64,
    price: u32,
    quantity: u32,
}

#[derive(Default)]
struct Book {
    orders: LocalHandleMap<BoxSlot, OrderKey>,
    bids: BTreeMap<u32, Level>,
    asks: BTreeMap<u32, Level>,
}

/// Does an order at `price` trade with one of the other side at `best`?
fn crosses(side: Side, price: u32, best: u32) -> bool {
    match side {
        Side::Buy => best <= price,
        Side::Sell => best >= price,
    }
}

impl Book {
    fn levels(&mut self, side: Side) -> &mut BTreeMap<u32, Level> {
        match side {
            Side::Buy => &mut self.bids,
            Side::Sell => &mut self.asks,
        }
    }

    /// The oldest order at the best price that an order of `side` could trade with.
    fn best_against(&self, side: Side, price: u32) -> Option<OrderKey> {
        let (best, level) = match side {
            Side::Buy => self.asks.first_key_value()?,
            Side::Sell => self.bids.last_key_value()?,
        };
        crosses(side, price, *best).then_some(level.oldest)
    }

    /// Trades what can be traded, and keeps the rest. `Ok(None)`: all of it was traded.
    fn submit(
        &mut self,
        mut order: Order,
        fills: &mut Vec<Fill>,
    ) -> Result<Option<OrderKey>, Full<Order>> {
        while order.left > 0 {
            let Some(key) = self.best_against(order.side, order.price) else {
                return self.rest(order).map(Some);
            };
            let maker = &mut self.orders[key];
            let quantity = order.left.min(maker.left);
            order.left -= quantity;
            maker.left -= quantity;
            fills.push(Fill {
                maker: maker.id,
                taker: order.id,
                price: maker.price,
                quantity,
            });
            if maker.left == 0 {
                self.cancel(key);
            }
        }
        Ok(None)
    }

    /// Puts an order at the end of its price's queue; refused if the pool is full.
    fn rest(&mut self, order: Order) -> Result<OrderKey, Full<Order>> {
        let (side, price) = (order.side, order.price);
        let key = self.orders.insert(BoxSlot::try_new(order)?);
        let level = self.levels(side).entry(price).or_insert(Level {
            oldest: key,
            newest: key,
        });
        let before = std::mem::replace(&mut level.newest, key);
        if before != key {
            self.orders[before].newer = Some(key);
            self.orders[key].older = Some(before);
        }
        Ok(key)
    }

    /// Removes an order. `None`: it is no longer in the book.
    fn cancel(&mut self, key: OrderKey) -> Option<u64> {
        let order = self.orders.remove(key)?;
        if let Some(older) = order.older {
            self.orders[older].newer = order.newer;
        }
        if let Some(newer) = order.newer {
            self.orders[newer].older = order.older;
        }
        let levels = self.levels(order.side);
        match (order.older, order.newer) {
            (None, None) => drop(levels.remove(&order.price)),
            (None, Some(newer)) => levels.get_mut(&order.price)?.oldest = newer,
            (Some(older), None) => levels.get_mut(&order.price)?.newest = older,
            (Some(_), Some(_)) => {}
        }
        Some(order.id) // and its slot goes back
    }
}

/// The same book as a plain list, in the order of arrival.
#[derive(Default)]
struct List(Vec<Order>);

impl List {
    fn submit(&mut self, mut order: Order, limit: usize, fills: &mut Vec<Fill>) -> bool {
        while order.left > 0 {
            let others = self.0.iter_mut();
            let crossing = others
                .filter(|it| it.side != order.side && crosses(order.side, order.price, it.price));
            let best = match order.side {
                Side::Buy => crossing.min_by_key(|it| (it.price, it.id)),
                Side::Sell => crossing.min_by_key(|it| (u32::MAX - it.price, it.id)),
            };
            let Some(maker) = best else {
                if self.0.len() == limit {
                    return false;
                }
                self.0.push(order);
                return true;
            };
            let quantity = order.left.min(maker.left);
            order.left -= quantity;
            maker.left -= quantity;
            fills.push(Fill {
                maker: maker.id,
                taker: order.id,
                price: maker.price,
                quantity,
            });
            self.0.retain(|it| it.left > 0);
        }
        true
    }

    fn cancel(&mut self, id: u64) -> bool {
        let before = self.0.len();
        self.0.retain(|it| it.id != id);
        self.0.len() < before
    }
}

/// Pseudo-random numbers (xorshift).
fn next(state: &mut u64, below: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) % below
}

pub fn main() {
    const LIMIT: usize = 100;
    let orders = if cfg!(miri) { 300 } else { 50_000 };

    Allocator::builder()
        .capacity(LIMIT)
        .build()
        .expect("there is memory for a hundred orders");
    let (mut book, mut list) = (Book::default(), List::default());
    let (mut fills, mut expected) = (Vec::new(), Vec::new());
    let mut sent: Vec<(OrderKey, u64)> = Vec::new();
    let (mut cancelled, mut too_late, mut refused) = (0, 0, 0);
    let mut state = 0x2545_f491_4f6c_dd1d;
    for id in 0..orders {
        let side = [Side::Buy, Side::Sell][next(&mut state, 2) as usize];
        let price = 1000 + next(&mut state, 40) as u32;
        let price = if side == Side::Buy { price - 8 } else { price };
        let left = 1 + next(&mut state, 50) as u32;
        let order = || Order {
            id,
            side,
            price,
            left,
            older: None,
            newer: None,
        };
        let done = book.submit(order(), &mut fills);
        assert_eq!(list.submit(order(), LIMIT, &mut expected), done.is_ok());
        match done {
            Ok(Some(key)) => sent.push((key, id)),
            Ok(None) => {}
            Err(Full(rest)) => {
                assert!(rest.id == id && book.orders.len() == LIMIT);
                refused += 1;
            }
        }
        if next(&mut state, 3) > 0 && !sent.is_empty() {
            let at = next(&mut state, sent.len() as u64) as usize;
            let (key, id) = sent[at];
            if next(&mut state, 2) == 0 {
                sent.swap_remove(at); // else it may be tried again
            }
            let was_there = list.cancel(id);
            assert_eq!(book.cancel(key), was_there.then_some(id));
            *(if was_there {
                &mut cancelled
            } else {
                &mut too_late
            }) += 1;
        }
        assert_eq!(book.orders.len(), list.0.len());
        assert_eq!(Allocator::in_use(), list.0.len());
    }
    assert_eq!(fills, expected);
    assert!(cancelled > 0 && too_late > 0 && !fills.is_empty());
    assert!(refused > 0 || cfg!(miri));

    let resting = book.orders.len();
    drop(book);
    assert_eq!(Allocator::in_use(), 0);
    println!(
        "{orders} orders: {} fills, {cancelled} cancelled, {too_late} cancelled too late, \
         {refused} refused, {resting} left",
        fills.len()
    );
}
