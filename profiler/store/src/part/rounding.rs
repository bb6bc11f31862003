//! What was measured is kept to three digits: how long a wait lasted, how large an allocation was.
//!
//! Of a wait of 213,482,911 ns the last digits are 3 of the 4 bytes that its row takes, and tell nobody anything. In: the
//! weights of a window's rows, one after the other. Out: weights of at most [`DIGITS`] binary digits, each within one of
//! the last of them: 0.4 % at most. What a row has too much the next ones have too little, so that a sum of many
//! is as exact as its largest row: nothing is gained or lost.

/// Binary digits of a weight.
const DIGITS: u32 = 9;

/// Rounds the rows of a kind.
#[derive(Debug, Default)]
pub(super) struct Rounding {
    /// What the rows so far have too little.
    owed: i128,
}

impl Rounding {
    /// A row's weight with few digits: what is below the last of them is dropped or made a whole one, as more is owed.
    pub fn round(&mut self, weight: u64) -> u64 {
        let unit = 1_u64 << (u64::BITS - weight.leading_zeros()).saturating_sub(DIGITS);
        let over = weight % unit;
        if over == 0 {
            return weight;
        }
        let (down, owed) = (weight - over, self.owed + i128::from(over));
        let up = if owed * 2 > i128::from(unit) { down.checked_add(unit) } else { None };
        self.owed = owed - if up.is_some() { i128::from(unit) } else { 0 };
        up.unwrap_or(down)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_digits_are_kept_as_they_are() {
        let mut rounding = Rounding::default();
        for weight in [0, 1, 511, 512, 512 << 10, 3 * (512 << 10), u64::MAX - (u64::MAX >> 9)] {
            assert_eq!(rounding.round(weight), weight);
        }
        assert_eq!(rounding.owed, 0);
        assert_eq!([513, 513, 513, 513].map(|weight| rounding.round(weight)), [512, 514, 512, 514]);
        assert_eq!(rounding.round(u64::MAX), u64::MAX - (u64::MAX >> 9), "there is nothing above");
    }

    proptest! {
        #[test]
        fn a_row_is_near_and_their_sum_nearer(weights in proptest::collection::vec(1u64..1 << 40, 1..300)) {
            let mut rounding = Rounding::default();
            let rounded: Vec<u64> = weights.iter().map(|weight| rounding.round(*weight)).collect();
            for (rounded, weight) in rounded.iter().zip(&weights) {
                prop_assert!(rounded.abs_diff(*weight) <= weight >> (DIGITS - 1));
                prop_assert!(rounded >> rounded.trailing_zeros() < 1 << DIGITS);
            }
            let sum = |of: &[u64]| of.iter().sum::<u64>();
            let (largest, off) = (weights.iter().max().unwrap(), sum(&rounded).abs_diff(sum(&weights)));
            prop_assert!(off <= largest >> (DIGITS - 1), "{off} of {}", sum(&weights));
        }
    }
}
