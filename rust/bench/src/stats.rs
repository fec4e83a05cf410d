//! Medians, quartiles, geometric means.

/// The value at a share of the sorted values, interpolated between its two neighbours.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = share * (sorted.len().checked_sub(1)? as f64);
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    let between = place - place.floor();
    Some(sorted[below] + (sorted[above] - sorted[below]) * between)
}

pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The mean of the positive values. The others are left out: they have no logarithm.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logs: Vec<f64> = values
        .iter()
        .filter(|value| **value > 0.0)
        .map(|v| v.ln())
        .collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

/// One value in times of another; none if one of them is missing, or the other is 0.
pub fn over(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    let (one, other) = one.zip(other)?;
    (other > 0.0).then_some(one / other)
}

/// The figures of one allocator in one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The median of the layouts' medians.
    pub median: f64,
    /// A quarter of all samples are below.
    pub low: f64,
    /// A quarter of all samples are above.
    pub high: f64,
    pub samples: usize,
}

/// Summarises samples, which are pairs of layout and value.
pub fn summarise(samples: &[(usize, f64)]) -> Option<Summary> {
    let values: Vec<f64> = samples.iter().map(|sample| sample.1).collect();
    let mut layouts: Vec<usize> = samples.iter().map(|sample| sample.0).collect();
    layouts.sort_unstable();
    layouts.dedup();
    let medians: Vec<f64> = layouts
        .iter()
        .filter_map(|&layout| {
            let of_layout: Vec<f64> = samples
                .iter()
                .filter(|sample| sample.0 == layout)
                .map(|sample| sample.1)
                .collect();
            median(&of_layout)
        })
        .collect();
    Some(Summary {
        median: median(&medians)?,
        low: quantile(&values, 0.25)?,
        high: quantile(&values, 0.75)?,
        samples: samples.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.25), Some(2.0));
        assert_eq!(quantile(&[1.0, 2.0], 0.75), Some(1.75));
        assert_eq!(quantile(&[5.0, 1.0], 1.0), Some(5.0));
    }

    #[test]
    fn geometric_means() {
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[0.0]), None);
        let mean = geometric_mean(&[2.0, 8.0]).unwrap();
        assert!((mean - 4.0).abs() < 1e-12);
        let mean = geometric_mean(&[0.0, 0.5, 2.0]).unwrap();
        assert!((mean - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_layout_counts_once_however_many_samples_it_has() {
        let samples = [(0, 1.0), (0, 1.0), (0, 1.0), (0, 1.0), (1, 2.0), (2, 3.0)];
        let summary = summarise(&samples).unwrap();
        assert_eq!(summary.median, 2.0);
        assert_eq!(summary.low, 1.0);
        assert_eq!(summary.samples, 6);
        assert_eq!(summarise(&[]), None);
    }
}
