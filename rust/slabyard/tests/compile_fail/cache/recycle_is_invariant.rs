//! A function for texts that live for ever would be called with a shorter-lived text.
use slabyard::{Recycle, RecycleCache};

struct Call<F>(Option<F>);

impl<F: Send + 'static> Recycle for Call<F> {
    fn create() -> Self {
        Call(None)
    }
    fn recycle(&mut self) {}
}

fn keep(text: &'static str) {
    std::thread::spawn(move || println!("{text}"));
}

fn main() {
    let cache: RecycleCache<Call<for<'a> fn(&'a str)>> = RecycleCache::new("call");
    let of_static: &RecycleCache<Call<fn(&'static str)>> = &cache;
    of_static.get().0 = Some(keep);
    let text = String::from("gone");
    (cache.get().0.unwrap())(&text);
}
