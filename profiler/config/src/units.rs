//! Sizes and durations as people write them: `64MB`, `16MiB`, `10s`, `1h30m`.
//!
//! In: text of a flag or a configuration key. Out: bytes or a [`Duration`]; printed, they read the same
//! again. A unit means one thing: `MB` is a million bytes, `MiB` is 1024 x 1024. No fractions (write the
//! smaller unit), no overflow (an error), nothing guessed (a duration without a unit is refused).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Why a text is no size or duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The text is no size.
    #[error("a size is a whole number of bytes or one with a unit: B, KB, MB, GB, KiB, MiB, GiB (64MB)")]
    Size,
    /// The text is no duration.
    #[error("a duration is whole numbers with units: ms, s, m, h, d, the largest first (10s, 1h30m)")]
    Duration,
    /// The bytes or milliseconds are more than 64 bits hold.
    #[error("the number is too large")]
    TooLarge,
}

const SIZES: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

/// A size, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

impl ByteSize {
    /// As a length in memory.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl FromStr for ByteSize {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = split_number(text).ok_or(UnitError::Size)?;
        let factor = match unit {
            "" => 1,
            unit => SIZES.iter().find(|(name, _)| *name == unit).ok_or(UnitError::Size)?.1,
        };
        let number: u64 = number.parse().map_err(|_| UnitError::TooLarge)?;
        number.checked_mul(factor).map(Self).ok_or(UnitError::TooLarge)
    }
}

/// In the unit that says it with the smallest whole number.
impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = SIZES.iter().filter(|(_, size)| self.0 != 0 && self.0.is_multiple_of(*size));
        let (unit, size) = exact.max_by_key(|(_, size)| *size).copied().unwrap_or(("B", 1));
        write!(f, "{}{unit}", self.0 / size)
    }
}

const STEPS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A length of time in whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval(Duration);

impl Interval {
    /// From seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(Duration::from_secs(secs))
    }
    /// As the standard library has it, whole milliseconds.
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl FromStr for Interval {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (mut rest, mut total, mut last) = (text, 0_u64, u64::MAX);
        loop {
            let (number, tail) = split_number(rest).ok_or(UnitError::Duration)?;
            let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
            let (unit, next) = tail.split_at(unit_end);
            let step = STEPS.iter().find(|(name, _)| *name == unit).ok_or(UnitError::Duration)?.1;
            if step >= last {
                return Err(UnitError::Duration);
            }
            let number: u64 = number.parse().map_err(|_| UnitError::TooLarge)?;
            let ms = number.checked_mul(step).ok_or(UnitError::TooLarge)?;
            total = total.checked_add(ms).ok_or(UnitError::TooLarge)?;
            (rest, last) = (next, step);
            if rest.is_empty() {
                return Ok(Self(Duration::from_millis(total)));
            }
        }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        if left == 0 {
            return f.write_str("0s");
        }
        for (unit, step) in STEPS {
            if left >= step {
                write!(f, "{}{unit}", left / step)?;
                left %= step;
            }
        }
        Ok(())
    }
}

/// Leading digits, at least one, and the rest.
fn split_number(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_read_as_written() {
        let size = |text: &str| text.parse::<ByteSize>().map(|s| s.0);
        assert_eq!(size("64MB"), Ok(64_000_000));
        assert_eq!(size("8MiB"), Ok(8 << 20));
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("0"), Ok(0));
        for bad in ["", "MB", "64 MB", "64mb", "1.5GB", "-1", "+1", "64M"] {
            assert_eq!(size(bad), Err(UnitError::Size), "{bad}");
        }
        assert_eq!(size("99999999999GiB"), Err(UnitError::TooLarge));
        assert_eq!(size("99999999999999999999999"), Err(UnitError::TooLarge));
        assert_eq!(ByteSize(64_000_000).to_string(), "64MB");
        assert_eq!(ByteSize(8 << 20).to_string(), "8MiB");
    }

    #[test]
    fn durations_read_as_written() {
        let duration = |text: &str| text.parse::<Interval>().map(|d| d.get());
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        for bad in ["", "10", "s", "1m1h", "1s1s", "1.5s", "-1s", "1h 30m", "1y"] {
            assert_eq!(duration(bad), Err(UnitError::Duration), "{bad}");
        }
        assert_eq!(duration("999999999999999999d"), Err(UnitError::TooLarge));
    }

    proptest! {
        #[test]
        fn a_size_reads_back(bytes: u64) {
            prop_assert_eq!(ByteSize(bytes).to_string().parse(), Ok(ByteSize(bytes)));
        }
        #[test]
        fn a_duration_reads_back(ms in 0..=u64::MAX) {
            let interval = Interval(Duration::from_millis(ms));
            prop_assert_eq!(interval.to_string().parse(), Ok(interval));
        }
        #[test]
        fn any_text_is_taken_or_refused(text in "\\PC{0,24}") {
            let _ = text.parse::<ByteSize>();
            let _ = text.parse::<Interval>();
        }
        #[test]
        fn near_misses_are_taken_or_refused(text in "[0-9]{0,22}[KMGibBsmhd]{0,3}[0-9]{0,4}[msh]{0,2}") {
            let _ = text.parse::<ByteSize>();
            let _ = text.parse::<Interval>();
        }
    }
}
