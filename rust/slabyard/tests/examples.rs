//! Runs the examples unchanged: each of them checks what it prints.
#![cfg(feature = "std")]

#[path = "../examples/graph.rs"]
mod graph;
#[path = "../examples/order_book.rs"]
mod order_book;
#[path = "../examples/tasks.rs"]
mod tasks;
#[path = "../examples/timer_wheel.rs"]
mod timer_wheel;
#[path = "../examples/work_queue.rs"]
mod work_queue;

#[test]
fn an_order_book() {
    order_book::main();
}

#[test]
fn the_tasks_of_an_async_runtime() {
    tasks::main();
}

#[test]
fn a_timer_wheel_of_several_threads() {
    timer_wheel::main();
}

#[test]
fn a_graph_with_keys() {
    graph::main();
}

#[test]
fn a_scheduler_with_work_queues() {
    work_queue::main();
}
