//! The server of `server/serve.rs` over the system's `malloc`, or the one that is preloaded.

#[path = "server/serve.rs"]
mod serve;

fn main() {
    serve::main();
}
