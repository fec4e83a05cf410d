//! How often the screen is brought up to date.

use crate::ui::span;
use std::time::Duration;

/// The interval unless you ask for another.
pub const USUAL: Duration = Duration::from_secs(2);

/// Then the looks may take this part of a processor; for larger processes the interval grows.
const PART: u32 = 3;
const OF: u32 = 100;

/// The intervals that the keys choose, in milliseconds.
const STEPS: [u64; 9] = [250, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 300_000];

#[derive(Debug)]
pub struct Pace {
    asked: Option<Duration>,
    cost: Duration,
}

impl Pace {
    pub fn new(asked: Option<Duration>) -> Self {
        Pace {
            asked,
            cost: Duration::ZERO,
        }
    }

    /// Notes what a look cost.
    pub fn note(&mut self, cost: Duration) {
        self.cost = cost;
    }

    /// The time from the start of a look to that of the next.
    pub fn interval(&self) -> Duration {
        match self.asked {
            Some(asked) => asked,
            None => USUAL.max(self.cost * OF / PART),
        }
    }

    pub fn slower(&mut self) {
        let now = self.interval();
        let mut steps = STEPS.map(Duration::from_millis).into_iter();
        self.asked = Some(steps.find(|&step| step > now).unwrap_or(now));
    }

    pub fn faster(&mut self) {
        let now = self.interval();
        let mut steps = STEPS.map(Duration::from_millis).into_iter().rev();
        self.asked = Some(steps.find(|&step| step < now).unwrap_or(now));
    }

    pub fn words(&self) -> String {
        span(self.interval().as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expensive_looks_are_rare_unless_you_ask() {
        let mut pace = Pace::new(None);
        pace.note(Duration::from_millis(59));
        assert_eq!(pace.interval(), USUAL);
        pace.note(Duration::from_millis(300));
        assert_eq!(pace.interval(), Duration::from_secs(10));
        pace.slower();
        assert_eq!(pace.words(), "30 s");
        pace.faster();
        pace.faster();
        assert_eq!(pace.words(), "5 s");
        let pace = Pace::new(Some(Duration::from_millis(1500)));
        assert_eq!(pace.words(), "1.5 s");
    }

    #[test]
    fn the_keys_stop_at_the_ends() {
        let mut pace = Pace::new(None);
        for _ in 0..20 {
            pace.slower();
        }
        assert_eq!(pace.words(), "5 min");
        for _ in 0..20 {
            pace.faster();
        }
        assert_eq!(pace.words(), "0.25 s");
    }
}
