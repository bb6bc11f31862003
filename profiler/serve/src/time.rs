//! Reads points of time and lengths of time as people and programs write them.
//!
//! In: text from a query parameter, and what "now" is. Out: [`WallTime`] or [`Duration`]. A point is
//! RFC 3339 (with an offset or `Z`), Unix seconds or milliseconds (both may have a fraction; from
//! [`FIRST_MILLIS`] on a number is milliseconds), `now`, `now-15m`, or `-15m`. A length is numbers with
//! units `ms s m h d`, as `90s` or `1h30m`. Points before 1970 and beyond [`LAST_SECOND`] are refused.
//! Pure: no I/O, no clock; integers all the way, so that milliseconds stay exact; never panics.

use emberscope_model::WallTime;
use std::time::Duration;

/// A bare number from here on is milliseconds: as seconds it would be the year 5138, as milliseconds it
/// is March 1973.
pub const FIRST_MILLIS: u64 = 100_000_000_000;
/// Last second that is understood (the year 2554 is where 64-bit nanoseconds end).
pub const LAST_SECOND: u64 = u64::MAX / 1_000_000_000 - 1;
/// Longest text that is read, in bytes.
const MAX_TEXT: usize = 64;

/// Why a time could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// The text has none of the forms of a time.
    #[error(
        "not a time: use RFC 3339 (2026-11-21T10:00:00Z), Unix seconds or milliseconds, now, now-15m or -15m"
    )]
    NotATime,
    /// The text has not the form of a length.
    #[error("not a length of time: use a number with a unit ms, s, m, h or d, as in 90s or 1h30m")]
    NotALength,
    /// The text is understood, and the time is outside of what can be.
    #[error("the time lies before 1970 or too far ahead")]
    OutOfRange,
}

/// Reads a point of time; `now` is what the text may count from.
///
/// # Errors
/// [`TimeError::NotATime`]: the text has none of the forms. [`TimeError::OutOfRange`]: the time lies before 1970 or
/// after [`LAST_SECOND`].
pub fn parse_time(text: &str, now: WallTime) -> Result<WallTime, TimeError> {
    let text = text.trim();
    if text.len() > MAX_TEXT {
        return Err(TimeError::NotATime);
    }
    if text == "now" {
        return Ok(now);
    }
    if let Some(ago) = text.strip_prefix("now-").or_else(|| text.strip_prefix('-')) {
        let ago = parse_length(ago).map_err(|_| TimeError::NotATime)?;
        let ago = u64::try_from(ago.as_nanos()).map_err(|_| TimeError::OutOfRange)?;
        return now.0.checked_sub(ago).map(WallTime).ok_or(TimeError::OutOfRange);
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) && text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    {
        return unix(text);
    }
    rfc3339(text)
}

/// Reads a length of time; a zero length is one too.
///
/// # Errors
/// [`TimeError::NotALength`]: the text is no sum of numbers with units. [`TimeError::OutOfRange`]: it is too large.
pub fn parse_length(text: &str) -> Result<Duration, TimeError> {
    let mut rest = text;
    if rest.is_empty() || rest.len() > MAX_TEXT {
        return Err(TimeError::NotALength);
    }
    let mut sum = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or(TimeError::NotALength)?;
        let (number, tail) = rest.split_at(digits);
        let number: u64 = number.parse().map_err(|_| TimeError::NotALength)?;
        let unit = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit);
        let millis: u64 = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(TimeError::NotALength),
        };
        let part = number.checked_mul(millis).ok_or(TimeError::OutOfRange)?;
        sum = sum.checked_add(Duration::from_millis(part)).ok_or(TimeError::OutOfRange)?;
        rest = tail;
    }
    Ok(sum)
}

/// Digits with at most one dot among them.
fn unix(text: &str) -> Result<WallTime, TimeError> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.contains('.') || text.ends_with('.') {
        return Err(TimeError::NotATime);
    }
    let whole: u64 = whole.parse().map_err(|_| TimeError::OutOfRange)?;
    let (unit, places) = if whole < FIRST_MILLIS { (1_000_000_000u64, 9) } else { (1_000_000, 6) };
    // Digits beyond a nanosecond are cut off.
    let mut nanos = 0u64;
    for place in 0..places {
        let digit = fraction.as_bytes().get(place).map_or(0, |b| u64::from(b - b'0'));
        nanos = nanos * 10 + digit;
    }
    let total = whole.checked_mul(unit).and_then(|n| n.checked_add(nanos)).ok_or(TimeError::OutOfRange)?;
    bounded(total)
}

fn rfc3339(text: &str) -> Result<WallTime, TimeError> {
    // `+` in a query string means a space: `10:00:00+01:00` that was not escaped arrives as
    // `10:00:00 01:00`.
    let mut text = text.to_owned();
    if let Some(at) = text.len().checked_sub(6)
        && text.is_char_boundary(at)
        && text[at..].starts_with(' ')
        && text[..at].contains(':')
    {
        text.replace_range(at..=at, "+");
    }
    // jiff reads more than RFC 3339 (calendar and time-zone annotations): those are not ours.
    if text.contains('[') {
        return Err(TimeError::NotATime);
    }
    let time: jiff::Timestamp = text.parse().map_err(|_| TimeError::NotATime)?;
    bounded(u64::try_from(time.as_nanosecond()).map_err(|_| TimeError::OutOfRange)?)
}

fn bounded(nanos: u64) -> Result<WallTime, TimeError> {
    if nanos / 1_000_000_000 > LAST_SECOND { Err(TimeError::OutOfRange) } else { Ok(WallTime(nanos)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: WallTime = WallTime(1_795_000_000_000_000_000);

    fn at(text: &str) -> u64 {
        parse_time(text, NOW).unwrap_or_else(|e| panic!("{text}: {e}")).0
    }

    #[test]
    fn every_form_of_the_same_instant() {
        let want = 1_795_000_000_250_000_000;
        for text in [
            "1795000000.25",
            "1795000000250",
            "1795000000250.0",
            "2026-11-18T11:06:40.25Z",
            "2026-11-18T12:06:40.250+01:00",
            "2026-11-18T12:06:40.250 01:00",
            "2026-11-18T10:36:40.25-00:30",
            "2026-11-18t11:06:40.25z",
            " 1795000000.25 ",
        ] {
            assert_eq!(at(text), want, "{text}");
        }
    }

    #[test]
    fn relative_to_now() {
        assert_eq!(at("now"), NOW.0);
        assert_eq!(at("now-15m"), NOW.0 - 900_000_000_000);
        assert_eq!(at("-15m"), NOW.0 - 900_000_000_000);
        assert_eq!(at("-1h30m"), NOW.0 - 5_400_000_000_000);
        assert_eq!(at("now-250ms"), NOW.0 - 250_000_000);
        assert_eq!(at("-2d"), NOW.0 - 172_800_000_000_000);
    }

    #[test]
    fn milliseconds_begin_at_the_limit() {
        assert_eq!(at("0"), 0);
        assert_eq!(at("1.5"), 1_500_000_000);
        assert_eq!(at("1.0000000019"), 1_000_000_001);
        assert_eq!(at("100000000000"), 100_000_000_000 * 1_000_000);
        assert_eq!(parse_time("99999999999", NOW), Err(TimeError::OutOfRange));
    }

    #[test]
    fn what_is_no_time() {
        for bad in [
            "",
            "-",
            "now-",
            "now+5m",
            "yesterday",
            "15m",
            "-15",
            "-15x",
            "1.2.3",
            "1.",
            ".5",
            "1e9",
            "2026-11-18",
            "2026-11-18T11:06:40",
            "2026-11-18T11:06:40Z[UTC]",
            "0x10",
            "--5m",
            "é00000",
            "- 5m",
            "-m",
        ] {
            assert_eq!(parse_time(bad, NOW), Err(TimeError::NotATime), "{bad:?}");
        }
        for far in
            ["1969-12-31T23:59:59Z", "4000-12-31T23:59:59Z", "99999999999999999999", "-999999999d", "-36500d"]
        {
            assert_eq!(parse_time(far, NOW), Err(TimeError::OutOfRange), "{far:?}");
        }
    }

    #[test]
    fn lengths() {
        assert_eq!(parse_length("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_length("1m500ms"), Ok(Duration::from_millis(60_500)));
        for bad in ["", "5", "s", "5 s", "1.5h", "5S", "-5s", "99999999999999999999s"] {
            assert_eq!(parse_length(bad), Err(TimeError::NotALength), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,70}|[0-9.:TZ+ nowmshd-]{0,40}") {
            let _ = parse_time(&text, NOW);
            let _ = parse_length(&text);
        }

        #[test]
        fn what_we_write_we_read(ms in 0u64..4_000_000_000_000) {
            let time = WallTime::from_millis(ms);
            prop_assert_eq!(parse_time(&time.to_string(), NOW), Ok(time));
            if ms >= FIRST_MILLIS {
                prop_assert_eq!(parse_time(&ms.to_string(), NOW), Ok(time));
            }
            let seconds = format!("{}.{:03}", ms / 1000, ms % 1000);
            prop_assert_eq!(parse_time(&seconds, NOW), Ok(time));
        }
    }
}
