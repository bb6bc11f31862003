//! Times as people say them: `yesterday`, `15:00`, `5m`, `2026-11-22 15:00`, a date.
//!
//! In: text of `--from` and `--until`, and what time it is where the command runs: only there it is known what 15:00 is. Out:
//! text as the API reads it (RFC 3339, `-5m`). A day is its beginning as `--from` and its end as `--until`. A time of day is
//! the last one that was; that of `--until` behind a `--from` is the first one after it. What the API reads by itself stays
//! as it is. No I/O but the machine's time zone.

use emberscope_model::WallTime;
use emberscope_serve::time::{TimeError, parse_length, parse_time};
use jiff::Zoned;
use jiff::civil::{Date, Time};

/// What is told where a text is no time.
const FORMS: &str = "use 5m or -5m (ago), 15:00, yesterday, yesterday 15:00, 2026-11-22, 2026-11-22 15:00 (in your time \
                     zone), RFC 3339 (2026-11-21T10:00:00Z), or Unix seconds";

/// A time that was read; which instant it is hangs on now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// The API reads it.
    AsIs(String),
    /// A day, from its beginning to its end.
    Day(Day),
    /// A time of a day; without one, of the last day that it can be.
    Clock(Option<Day>, Time),
}

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Day {
    /// The one that is.
    Today,
    /// The one before.
    Yesterday,
    /// Any other.
    Date(Date),
}

impl Day {
    fn read(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "today" => Some(Self::Today),
            "yesterday" => Some(Self::Yesterday),
            _ if text.len() == "2026-11-22".len() => text.parse().ok().map(Self::Date),
            _ => None,
        }
    }
    fn date(self, now: &Zoned) -> Option<Date> {
        match self {
            Self::Today => Some(now.date()),
            Self::Yesterday => now.date().yesterday().ok(),
            Self::Date(date) => Some(date),
        }
    }
}

/// `15:00` or `15:00:30`.
fn clock(text: &str) -> Option<Time> {
    let is_one = matches!(text.len(), 5 | 8) && text.bytes().all(|b| b.is_ascii_digit() || b == b':');
    if is_one { text.parse().ok() } else { None }
}

/// Reads a time.
///
/// # Errors
/// A sentence for clap: the text has none of the forms.
pub fn when(text: &str) -> Result<When, String> {
    let text = text.trim();
    // Whether it can be hangs on the daemon's now.
    if matches!(parse_time(text, WallTime::now()), Ok(_) | Err(TimeError::OutOfRange)) {
        return Ok(When::AsIs(text.to_owned()));
    }
    if parse_length(text).is_ok() {
        return Ok(When::AsIs(format!("-{text}")));
    }
    if let Some(day) = Day::read(text) {
        return Ok(When::Day(day));
    }
    if let Some(time) = clock(text) {
        return Ok(When::Clock(None, time));
    }
    let both = text.split_once([' ', 'T']);
    let both = both.and_then(|(day, time)| Some((Day::read(day)?, clock(time.trim_start())?)));
    both.map(|(day, time)| When::Clock(Some(day), time)).ok_or_else(|| format!("not a time: {FORMS}"))
}

/// Both ends of a range as the API reads them.
pub fn range(from: Option<&When>, until: Option<&When>, now: &Zoned) -> [Option<String>; 2] {
    let begins = from.map(|from| instant(from, false, now));
    let after = match &begins {
        Some((_, Some(begins))) => Some(begins.clone()),
        _ => None,
    };
    let ends = until.map(|until| match (until, after) {
        (When::Clock(None, time), Some(after)) => {
            let on = |date: Date| date.to_datetime(*time).to_zoned(now.time_zone().clone()).ok();
            let first = on(after.date()).filter(|end| *end > after);
            let next = || after.date().tomorrow().ok().and_then(on);
            text(until, first.or_else(next))
        }
        _ => instant(until, true, now).0,
    });
    // Of a day alone its beginning is the beginning.
    let begins = match (begins, until) {
        (None, Some(day @ When::Day(_))) => Some(instant(day, false, now).0),
        (begins, _) => begins.map(|(text, _)| text),
    };
    [begins, ends]
}

/// An instant as the API reads it, and where that is known here.
fn instant(when: &When, is_end: bool, now: &Zoned) -> (String, Option<Zoned>) {
    let zoned = |date: Date, time: Time| date.to_datetime(time).to_zoned(now.time_zone().clone()).ok();
    let at = match when {
        When::AsIs(_) => None,
        When::Day(day) => day.date(now).and_then(|date| {
            let date = if is_end { date.tomorrow().ok()? } else { date };
            zoned(date, Time::midnight())
        }),
        When::Clock(Some(day), time) => day.date(now).and_then(|date| zoned(date, *time)),
        When::Clock(None, time) => zoned(now.date(), *time)
            .filter(|at| at <= now)
            .or_else(|| zoned(now.date().yesterday().ok()?, *time)),
    };
    (text(when, at.clone()), at)
}

fn text(when: &When, at: Option<Zoned>) -> String {
    match (when, at) {
        (When::AsIs(text), _) => text.clone(),
        (_, Some(at)) => at.timestamp().to_string(),
        // The calendar ends there; the API refuses it by name.
        (when, None) => format!("{when:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 2026-11-22 15:30 in Vienna, an hour ahead of UTC.
    fn now() -> Zoned {
        let zone = jiff::tz::TimeZone::fixed(jiff::tz::offset(1));
        jiff::civil::date(2026, 11, 22).at(15, 30, 0, 0).to_zoned(zone).unwrap()
    }

    fn of(from: &str, until: &str) -> [String; 2] {
        let read =
            |text: &str| (!text.is_empty()).then(|| when(text).unwrap_or_else(|e| panic!("{text}: {e}")));
        range(read(from).as_ref(), read(until).as_ref(), &now()).map(Option::unwrap_or_default)
    }

    #[test]
    fn what_people_say_is_what_they_mean() {
        for (said, from) in [
            ("15:00", "2026-11-22T14:00:00Z"),
            ("16:00", "2026-11-21T15:00:00Z"),
            ("15:00:30", "2026-11-22T14:00:30Z"),
            ("today", "2026-11-21T23:00:00Z"),
            ("yesterday", "2026-11-20T23:00:00Z"),
            ("Yesterday 9:00", ""),
            ("yesterday 09:00", "2026-11-21T08:00:00Z"),
            ("2026-11-20", "2026-11-19T23:00:00Z"),
            ("2026-11-20 15:00", "2026-11-20T14:00:00Z"),
            ("2026-11-20T15:00", "2026-11-20T14:00:00Z"),
            ("5m", "-5m"),
            ("1h30m", "-1h30m"),
            ("-15m", "-15m"),
            ("now", "now"),
            ("now-2h", "now-2h"),
            ("1795000000", "1795000000"),
            ("2026-11-21T10:00:00Z", "2026-11-21T10:00:00Z"),
        ] {
            match from {
                "" => assert!(when(said).is_err(), "{said}"),
                from => assert_eq!(of(said, "")[0], from, "{said}"),
            }
        }
    }

    #[test]
    fn an_end_is_behind_its_beginning() {
        let day = ["2026-11-20T23:00:00Z", "2026-11-21T23:00:00Z"];
        assert_eq!(of("yesterday", "yesterday"), day);
        assert_eq!(of("", "yesterday"), day, "a day alone is the whole of it");
        assert_eq!(of("14:00", "15:00"), ["2026-11-22T13:00:00Z", "2026-11-22T14:00:00Z"]);
        assert_eq!(of("15:00", "16:00"), ["2026-11-22T14:00:00Z", "2026-11-22T15:00:00Z"], "not yesterday's");
        assert_eq!(of("23:00", "01:00"), ["2026-11-21T22:00:00Z", "2026-11-22T00:00:00Z"]);
        assert_eq!(of("yesterday 14:00", "15:00"), ["2026-11-21T13:00:00Z", "2026-11-21T14:00:00Z"]);
        assert_eq!(of("1h", "15:00"), ["-1h", "2026-11-22T14:00:00Z"]);
        assert_eq!(of("2h", "1h"), ["-2h", "-1h"]);
    }

    #[test]
    fn what_is_no_time_is_told_with_the_forms() {
        for bad in [
            "soon",
            "",
            "25:00",
            "15",
            "15:0",
            "2026-11-31",
            "2026-11-22 late",
            "-15x",
            "5 m",
            "yesterday-1h",
        ] {
            match when(bad) {
                Ok(When::AsIs(number)) => assert_eq!(number, "15", "Unix seconds"),
                other => {
                    let said = other.unwrap_err();
                    assert!(said.contains("15:00") && said.contains("yesterday"), "{bad}: {said}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(said in "\\PC{0,40}|[0-9:T -]{0,20}") {
            if let Ok(when) = when(&said) {
                let _ = range(Some(&when), Some(&when), &now());
            }
        }
    }
}
