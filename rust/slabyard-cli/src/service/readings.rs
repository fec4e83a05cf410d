//! Figures in the output of a load: those of the usual load generators, and those that the user names.

use anyhow::{bail, Context, Result};
use regex_lite::Regex;
use serde::Serialize;

/// Whether more of a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    More,
    Less,
    Unknown,
}

/// A figure that is read from text: the mean of all that match.
#[derive(Clone, Debug)]
pub struct Reader {
    pub name: String,
    pub better: Better,
    patterns: Vec<Regex>,
}

/// How the usual load generators write the requests in a second: redis-benchmark and its kind; wrk,
/// hey and oha; ab; pgbench; h2load; memtier_benchmark.
const RATES: [&str; 6] = [
    r"([\d.,]+) requests per second",
    r"(?m)^\s*Requests/sec:\s*([\d.,]+)",
    r"(?m)^Requests per second:\s*([\d.,]+)",
    r"(?m)^tps = ([\d.,]+)",
    r"finished in [^,]+, ([\d.]+) req/s",
    r"(?m)^Totals\s+([\d.]+)",
];

/// How they write the latency that 99 of 100 answers do not exceed, with or without a unit:
/// redis-benchmark's table; wrk, ab and hey; oha.
const TAILS: [&str; 3] = [
    r"avg\s+min\s+p50\s+p95\s+p99\s+max\s+(?:[\d.]+\s+){4}([\d.]+)",
    r"(?m)^\s*99%\s+(?:in\s+)?([\d.]+)\s*(us|ms|s|secs)?\b",
    r"(?m)^\s*99\.00% in ([\d.]+)\s*(us|ms|s|secs)?\b",
];

fn reader(name: &str, better: Better, patterns: &[&str]) -> Reader {
    let compiled = patterns.iter().map(|text| Regex::new(text));
    Reader {
        name: name.to_string(),
        better,
        patterns: compiled.map(|one| one.expect("a constant")).collect(),
    }
}

/// The readers of figures that many load generators print.
pub fn usual() -> Vec<Reader> {
    vec![
        reader("requests/s", Better::More, &RATES),
        reader("p99 ms", Better::Less, &TAILS),
    ]
}

/// Parses `NAME=REGEX`, where the regular expression has one group.
pub fn parse(text: &str) -> Result<Reader> {
    let Some((name, pattern)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
        bail!("a figure is given as NAME=REGEX");
    };
    let pattern = Regex::new(pattern).context("not a regular expression")?;
    if pattern.captures_len() != 2 {
        bail!("the regular expression needs one group, as in 'p99: ([0-9.]+)'");
    }
    Ok(Reader {
        name: name.to_string(),
        better: Better::Unknown,
        patterns: vec![pattern],
    })
}

/// How many milliseconds a unit has. Without one, load generators mean milliseconds.
fn milliseconds(unit: Option<&str>) -> f64 {
    match unit {
        Some("us") => 1e-3,
        Some("s" | "secs") => 1e3,
        _ => 1.0,
    }
}

impl Reader {
    /// The mean of all figures that the first fitting pattern finds.
    pub fn read(&self, text: &str) -> Option<f64> {
        let found = |pattern: &Regex| {
            let all = pattern.captures_iter(text).filter_map(|captures| {
                let digits = captures.get(1)?.as_str().replace(',', "");
                let unit = captures.get(2).map(|unit| unit.as_str());
                Some(digits.parse::<f64>().ok()? * milliseconds(unit))
            });
            let all: Vec<f64> = all.collect();
            (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
        };
        self.patterns.iter().find_map(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual_figures(text: &str) -> [Option<f64>; 2] {
        let [rate, tail] = &usual()[..] else {
            panic!("two readers");
        };
        [rate.read(text), tail.read(text)]
    }

    #[test]
    fn the_usual_load_generators_are_understood() {
        let redis = "Summary:\n  throughput summary: 121654.50 requests per second\n  latency summary (msec):\n\
            \x20         avg       min       p50       p95       p99       max\n\
            \x20       0.215     0.096     0.207     0.287     0.391     1.007\n";
        assert_eq!(usual_figures(redis), [Some(121654.5), Some(0.391)]);
        let quiet = "SET: 100.00 requests per second, p50=0.2 msec\nGET: 300.00 requests per second, p50=0.2\n";
        assert_eq!(usual_figures(quiet), [Some(200.0), None]);
        let wrk = "  Latency Distribution\n     50%  635.00us\n     99%    2.10ms\nRequests/sec:  75112.04\n";
        assert_eq!(usual_figures(wrk), [Some(75112.04), Some(2.1)]);
        let ab = "Requests per second:    1,234.50 [#/sec] (mean)\n  98%     11\n  99%     17\n 100%     20\n";
        assert_eq!(usual_figures(ab), [Some(1234.5), Some(17.0)]);
        let hey = "  Requests/sec:\t4567.1\n  99% in 0.0042 secs\n";
        assert_eq!(usual_figures(hey), [Some(4567.1), Some(4.2)]);
        let pgbench = "latency average = 1.5 ms\ntps = 665.25 (without initial connection time)\n";
        assert_eq!(usual_figures(pgbench), [Some(665.25), None]);
        assert_eq!(usual_figures("nothing of this kind"), [None, None]);
    }

    #[test]
    fn a_user_names_figures_by_a_pattern_with_a_group() {
        let reader = parse("lag=lag of ([0-9.]+) s").unwrap();
        assert_eq!(reader.name, "lag");
        assert_eq!(reader.read("a lag of 1.5 s, a lag of 2.5 s"), Some(2.0));
        assert_eq!(reader.read("a lag of . s"), None);
        for wrong in [
            "lag",
            "=x(1)",
            "lag=(",
            "lag=no group",
            "lag=(two) (groups)",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
