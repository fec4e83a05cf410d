//! Few survivors keep less memory where objects move. In a process of its own, because other tests
//! would change its resident memory.

use slabyard_bench::alone::job::{Effort, Job};
use slabyard_bench::alone::Row as _;
use slabyard_bench::survivors::Row;
use std::time::Duration;

#[test]
fn few_survivors_keep_less_memory_where_they_move() {
    let left = |who: &str| {
        let job = Job {
            row: Row::find("memory-random/256/5").unwrap(),
            who: who.to_owned(),
            effort: Effort {
                sample: Duration::from_micros(200),
                layouts: vec![1],
                seed: 3,
            },
        };
        job.figures().unwrap()[0].value
    };
    assert!(left("MovableMap") < 25.0 && left("HandleMap") > 50.0);
}
