//! The server of `server/serve.rs` with the crate `slabyard` as its global allocator.

#[path = "server/serve.rs"]
mod serve;

#[global_allocator]
static ALLOCATOR: slabyard::Slabyard = slabyard::Slabyard;

fn main() {
    serve::main();
}
