//! Text for terminals.
//!
//! In: names from outside (applications, methods, processes) that may hold anything. Out: text in which
//! nothing moves the cursor, changes colours or reorders a line; and figures as text.

use emberscope_model::SampleKind;
use std::borrow::Cow;

/// Text with every character that a terminal would act on written as `\u{1b}`.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Controls (C0, DEL, C1), line separators and the marks that change the direction of text.
pub(super) fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Seconds for people: `1.23 s`; empty when not known.
pub fn seconds(seconds: Option<f64>) -> String {
    seconds.map(|seconds| format!("{seconds:.2} s")).unwrap_or_default()
}

/// A short time in seconds for people: `0.43 ms`, `17.7 ms`, `3.70 s`; empty when not known.
pub fn time(seconds: Option<f64>) -> String {
    seconds.map(|seconds| signed_time(seconds).replacen('+', "", 1)).unwrap_or_default()
}

/// The same for a difference, with its sign.
pub fn signed_time(seconds: f64) -> String {
    let ms = 1e3 * seconds;
    match ms.abs() {
        // Rounded to one decimal it would say 1000.0 ms.
        999.95.. => format!("{seconds:+.2} s"),
        10.0.. => format!("{ms:+.1} ms"),
        // Nothing has no sign.
        ..0.005 => "0.00 ms".to_owned(),
        _ => format!("{ms:+.2} ms"),
    }
}

/// An amount of a kind of samples for people, without the unit where it is a count: `3.70 s`, `1.2 MiB`, `20113`; empty when
/// not known.
pub fn amount(amount: Option<f64>, kind: SampleKind) -> String {
    amount.map(|amount| signed_amount(amount, kind).replacen('+', "", 1)).unwrap_or_default()
}

/// The same for a difference, with its sign.
pub fn signed_amount(amount: f64, kind: SampleKind) -> String {
    match kind.facts().unit {
        _ if kind.is_time() => signed_time(amount),
        "bytes" => {
            // Nothing has no sign.
            let sign = if amount >= 0.5 { "+" } else { "-" };
            let size = amount.abs().round() as u64;
            format!("{}{}", if size > 0 { sign } else { "" }, bytes(Some(size)))
        }
        _ => signed_count(amount),
    }
}

/// A count, which is whole unless it was scaled: `+300`, `-2.50`.
fn signed_count(count: f64) -> String {
    match count.abs() {
        ..0.005 => "0".to_owned(),
        _ if count.fract() == 0.0 => format!("{count:+.0}"),
        ..10.0 => format!("{count:+.2}"),
        ..100.0 => format!("{count:+.1}"),
        _ => format!("{count:+.0}"),
    }
}

/// An amount of a kind with its relative standard error: `1.02 s +- 3.0 %`; empty when not known.
pub fn amount_within(of: Option<f64>, error: Option<f64>, kind: SampleKind) -> String {
    match error {
        Some(error) if of.is_some() => format!("{} +- {:.1} %", amount(of, kind), 100.0 * error),
        _ => amount(of, kind),
    }
}

/// The same of a time.
pub fn time_within(seconds: Option<f64>, error: Option<f64>) -> String {
    amount_within(seconds, error, SampleKind::Cpu)
}

/// Bytes for people: `512 B`, `1.2 KiB`; empty when not known.
pub fn bytes(bytes: Option<u64>) -> String {
    let Some(bytes) = bytes else { return String::new() };
    let mut amount = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if amount < 1023.95 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{amount:.1} {unit}") };
        }
        amount /= 1024.0;
    }
    format!("{amount:.1} TiB")
}

/// A share for people: `12.34 %`; empty when not known.
pub fn percent(share: Option<f64>) -> String {
    share.map(|share| format!("{:.2} %", 100.0 * share)).unwrap_or_default()
}

/// A share with its standard error: `12.34 +- 0.50 %`; empty when not known.
pub fn percent_within(share: Option<f64>, error: Option<f64>) -> String {
    match (share, error) {
        (Some(share), Some(error)) => format!("{:.2} +- {:.2} %", 100.0 * share, 100.0 * error),
        (share, _) => percent(share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn figures_are_for_people() {
        assert_eq!((seconds(Some(1.234)), seconds(None)), ("1.23 s".to_owned(), String::new()));
        assert_eq!((percent(Some(0.125)), percent(None)), ("12.50 %".to_owned(), String::new()));
        assert_eq!(percent_within(Some(0.5), Some(0.0125)), "50.00 +- 1.25 %");
        assert_eq!(
            (percent_within(Some(0.5), None), percent_within(None, Some(0.1))),
            ("50.00 %".to_owned(), String::new())
        );
        let times = [0.0, 0.00043, 0.009994, 0.0177, 0.99994, 0.99996, 3700.0];
        let want = ["0.00 ms", "0.43 ms", "9.99 ms", "17.7 ms", "999.9 ms", "1.00 s", "3700.00 s"];
        assert_eq!(times.map(|seconds| time(Some(seconds))), want);
        assert_eq!((signed_time(0.0042), signed_time(-2.5)), ("+4.20 ms".to_owned(), "-2.50 s".to_owned()));
        assert_eq!([signed_time(-1e-9), signed_time(0.0)], ["0.00 ms"; 2]);
        assert_eq!(time_within(Some(4.0), Some(0.05)), "4.00 s +- 5.0 %");
        assert_eq!(
            (time_within(Some(4.0), None), time_within(None, Some(0.1))),
            ("4.00 s".to_owned(), String::new())
        );
        let sizes = [0, 1023, 1536, 1 << 20, u64::MAX];
        assert_eq!(sizes.map(|n| bytes(Some(n))), ["0 B", "1023 B", "1.5 KiB", "1.0 MiB", "16777216.0 TiB"]);
        assert_eq!((time(None), bytes(None)), Default::default());
    }

    #[test]
    fn amounts_are_in_the_unit_of_their_kind() {
        use SampleKind::{Alloc, Cpu, Lock, PageFaults};
        let of = |kind: SampleKind| [1.5, -2048.0, 0.0].map(|amount| signed_amount(amount, kind));
        assert_eq!(of(Alloc), ["+2 B", "-2.0 KiB", "0 B"]);
        assert_eq!(of(Lock), of(Cpu));
        assert_eq!(of(PageFaults), ["+1.50", "-2048", "0"]);
        let counts = [20113.0, 12.34, 123.4, -0.001].map(|count| amount(Some(count), PageFaults));
        assert_eq!(counts, ["20113", "12.3", "123", "0"]);
        assert_eq!(amount_within(Some(1_572_864.0), Some(0.05), Alloc), "1.5 MiB +- 5.0 %");
        assert_eq!((amount(None, Alloc), amount_within(None, Some(0.1), Alloc)), Default::default());
    }

    proptest! {
        #[test]
        fn nothing_acts_after_cleaning(text in any::<String>()) {
            prop_assert!(!clean(&text).chars().any(acts));
        }
    }
}
