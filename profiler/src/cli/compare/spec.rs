//! Which run is compared: `app-1`, `NAME`, `NAME@-2`, `NAME@yesterday`, `NAME@14:00..15:00`.
//!
//! In: what was typed. Out: the application, and which of its name's runs or which time. A name may have an `@` of its own.

use super::super::when::{When, range, when};
use jiff::Zoned;

/// What stands between the ends of a time.
const BETWEEN: &str = "..";

/// A run of an application, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSpec {
    app: String,
    run: Option<String>,
    from: Option<When>,
    until: Option<When>,
}

impl RunSpec {
    /// A run of a name.
    pub fn of_name(name: &str, run: &str) -> Self {
        Self { app: name.to_owned(), run: Some(run.to_owned()), from: None, until: None }
    }

    /// The parameters `app`, `run`, `from` and `until`, as far as they are said.
    pub fn params(&self, now: &Zoned) -> [Option<String>; 4] {
        let [from, until] = range(self.from.as_ref(), self.until.as_ref(), now);
        [Some(self.app.clone()), self.run.clone(), from, until]
    }
}

/// Reads a run.
///
/// # Errors
/// A sentence for clap: what stands on a side of `..` is no time.
pub fn run(text: &str) -> Result<RunSpec, String> {
    let whole = || RunSpec { app: text.to_owned(), run: None, from: None, until: None };
    let Some((name, which)) = text.rsplit_once('@').filter(|(name, _)| !name.is_empty()) else {
        return Ok(whole());
    };
    if is_run(which) {
        return Ok(RunSpec::of_name(name, which));
    }
    let end = |text: &str| if text.trim().is_empty() { Ok(None) } else { when(text).map(Some) };
    let (from, until) = match which.split_once(BETWEEN) {
        Some((from, until)) => (end(from)?, end(until)?),
        None => match when(which) {
            Ok(day @ When::Day(_)) => (Some(day.clone()), Some(day)),
            _ => return Ok(whole()),
        },
    };
    Ok(RunSpec { app: name.to_owned(), run: None, from, until })
}

/// `latest`, `-1`, `-2`, ...
fn is_run(text: &str) -> bool {
    let back = text.strip_prefix('-').unwrap_or_default();
    text == "latest" || (!back.is_empty() && back.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(text: &str) -> [Option<String>; 4] {
        let now: Zoned = "2026-11-24T12:00:00[UTC]".parse().unwrap();
        run(text).unwrap().params(&now)
    }

    fn want(values: [&str; 4]) -> [Option<String>; 4] {
        values.map(|value| Some(value.to_owned()).filter(|value| !value.is_empty()))
    }

    #[test]
    fn runs_and_names() {
        for (text, app, run) in [
            ("app-1", "app-1", ""),
            ("etl@-2", "etl", "-2"),
            ("etl@latest", "etl", "latest"),
            ("me@host", "me@host", ""),
            ("me@host@-1", "me@host", "-1"),
            ("@-1", "@-1", ""),
        ] {
            assert_eq!(params(text), want([app, run, "", ""]), "{text}");
        }
    }

    #[test]
    fn times_of_an_application_that_runs_on() {
        let day = ["2026-11-23T00:00:00Z", "2026-11-24T00:00:00Z"];
        assert_eq!(params("stream@yesterday"), want(["stream", "", day[0], day[1]]));
        assert_eq!(params("stream@2026-11-23"), want(["stream", "", day[0], day[1]]));
        let hour = ["2026-11-24T10:00:00Z", "2026-11-24T11:00:00Z"];
        assert_eq!(params("stream@10:00..11:00"), want(["stream", "", hour[0], hour[1]]));
        assert_eq!(params("stream@-2h..-1h"), want(["stream", "", "-2h", "-1h"]));
        assert_eq!(params("stream@10:00.."), want(["stream", "", hour[0], ""]));
        assert!(run("stream@soon..later").unwrap_err().contains("not a time"));
    }
}
