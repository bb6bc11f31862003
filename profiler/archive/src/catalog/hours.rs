//! Hours of UTC, as names of objects have them.
//!
//! In: instants, or names that somebody wrote. Out: names, or instants. A name is an hour's only if it is exactly what is
//! written for one: whoever may write below `v1/index` chooses the names there.

use emberscope_model::{TimeRange, WallTime};
use std::time::Duration;

/// The range of what may be of any time.
pub(crate) const ALL_TIME: TimeRange = TimeRange { from: WallTime(0), until: WallTime(u64::MAX) };

/// The hour of an instant, as names have it.
pub(crate) fn hour_of(time: WallTime) -> String {
    let second = i64::try_from(time.0 / 1_000_000_000).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(second).map(|t| t.strftime("%Y%m%dT%H").to_string()).unwrap_or_default()
}

/// The hours of a range's first instant and its last.
pub(crate) fn hours_of(range: &TimeRange) -> (String, String) {
    (hour_of(range.from), hour_of(range.until.minus(Duration::from_nanos(1))))
}

/// The first instant of an hour, by its name; None: it is no name of an hour.
pub(crate) fn start_of(hour: &str) -> Option<WallTime> {
    let text =
        format!("{}-{}-{}T{}:00:00Z", hour.get(..4)?, hour.get(4..6)?, hour.get(6..8)?, hour.get(9..11)?);
    let second = text.parse::<jiff::Timestamp>().ok()?.as_second();
    let start = WallTime(u64::try_from(second).ok()?.checked_mul(1_000_000_000)?);
    (hour_of(start) == hour).then_some(start)
}

/// The first instant of a block, by its name (`20261122T080000Z-..`); None: it is no block's.
pub(crate) fn start_of_block(block: &str) -> Option<WallTime> {
    let second = |at: usize| block.get(at..at + 2)?.parse::<u64>().ok();
    let (minutes, seconds) = (second(11)?, second(13)?);
    Some(start_of(block.get(..11)?)?.plus(Duration::from_secs(minutes * 60 + seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_its_beginning() {
        let time = WallTime(1_700_000_000 * 1_000_000_000);
        assert_eq!(hour_of(time), "20231114T22");
        assert_eq!(start_of("20231114T22"), Some(time.floor(Duration::from_secs(3600))));
        let block = |name| start_of_block(name).map(|start| start.0 / 1_000_000_000);
        assert_eq!(block("20231114T221320Z-000000000007"), Some(1_700_000_000));
        assert_eq!(block("20231114T22"), None);
        assert_eq!(block("zzz"), None);
    }

    #[test]
    fn what_only_looks_like_an_hour_is_none() {
        for name in [
            "x",
            "zzzz",
            "2023111é122",
            "20231114T22x0001",
            "20231114T2",
            "20231114x22",
            "20231314T22",
            "20231114T24",
        ] {
            assert_eq!(start_of(name), None, "{name}");
        }
    }
}
