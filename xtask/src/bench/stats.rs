//! Mean, median, spread and a 95 % interval of a few figures.

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
const T95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// What a few figures say together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Half the width of the 95 % interval of the mean (Student's t); infinite for fewer than two.
    pub half95: f64,
}

impl Summary {
    /// None for no figures at all.
    pub fn of(figures: &[f64]) -> Option<Self> {
        let n = figures.len();
        let mut sorted = figures.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let mean = figures.iter().sum::<f64>() / n as f64;
        let median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
        let half95 = if n < 2 {
            f64::INFINITY
        } else {
            let variance = figures.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
            let t = T95.get(n - 2).copied().unwrap_or(1.96);
            t * (variance / n as f64).sqrt()
        };
        Some(Self { n, mean, median, min, max, half95 })
    }
}

/// The figure that this share of them is not above: the nearest rank. NaN for no figures at all.
pub fn quantile(figures: &[f64], share: f64) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_figures() {
        let ten: Vec<f64> = (1..=10).rev().map(f64::from).collect();
        assert_eq!((quantile(&ten, 0.1), quantile(&ten, 0.9), quantile(&ten, 1.0)), (1.0, 9.0, 10.0));
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn interval_of_known_figures() {
        let s = Summary::of(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!((s.n, s.mean, s.median, s.min, s.max), (4, 2.5, 2.5, 1.0, 4.0));
        // s = 1.29099, s/sqrt(4) = 0.645497, t(3) = 3.182
        assert!((s.half95 - 2.05397).abs() < 1e-4, "{}", s.half95);
        assert_eq!(Summary::of(&[]), None);
        assert!(Summary::of(&[7.0]).unwrap().half95.is_infinite());
    }
}
