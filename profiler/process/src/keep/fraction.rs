//! `--fraction`: a share of the executors, the same ones on every node.
//!
//! Decided by a hash of the ids alone; each executor has a place in [0, 1), and a fraction takes those below
//! it, so that a larger one holds all of a smaller.

use super::{KeepError, cut_for_message};
use std::str::FromStr;

/// A share of the executors, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fraction(f64);

impl Default for Fraction {
    fn default() -> Self {
        Self(1.0)
    }
}

impl Fraction {
    /// A share of this size.
    ///
    /// # Errors
    /// [`KeepError::Fraction`]: the number is not from 0 to 1, both included.
    pub fn new(share: f64) -> Result<Self, KeepError> {
        if (0.0..=1.0).contains(&share) {
            Ok(Self(share))
        } else {
            Err(KeepError::Fraction { text: share.to_string() })
        }
    }

    pub(super) fn matches(self, app: &str, executor: &str) -> bool {
        // 53 bits are exact in an f64, and the largest is below 1.
        let place = (hash(app, executor) >> 11) as f64 / (1u64 << 53) as f64;
        place < self.0
    }
}

impl FromStr for Fraction {
    type Err = KeepError;
    fn from_str(text: &str) -> Result<Self, KeepError> {
        let bad = || KeepError::Fraction { text: cut_for_message(text) };
        Self::new(text.trim().parse().map_err(|_| bad())?).map_err(|_| bad())
    }
}

/// FNV-1a over both ids with a NUL between, then a finaliser that spreads it over all bits (the one of
/// SplitMix64). Part of the user interface: changing it changes which executors a fraction chooses.
pub(super) fn hash(app: &str, executor: &str) -> u64 {
    let mut h = 0xcbf2_9ce4_8422_2325u64;
    for byte in app.bytes().chain([0]).chain(executor.bytes()) {
        h = (h ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    h ^ (h >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_larger_fraction_holds_a_smaller_one(app in "[a-z0-9-]{1,20}", e in "[0-9]{1,4}", a in 0.0f64..=1.0, b in 0.0f64..=1.0) {
            let (small, large) = (Fraction::new(a.min(b)).unwrap(), Fraction::new(a.max(b)).unwrap());
            prop_assert!(!small.matches(&app, &e) || large.matches(&app, &e));
        }
    }
}
