//! Names made safe for formats in which some characters mean something.
//!
//! A name comes from an observed program and may hold anything. In: a name; out: one that keeps a line
//! of folded stacks one line and one stack, and that XML 1.0 can carry (control characters have no
//! place in it, not even escaped). Escaping of `<`, `&` and quotes is the SVG writer's.

use std::borrow::Cow;

/// Cleans a name: `;` becomes `:`, line breaks, control characters, bidirectional overrides and the
/// two code points that XML forbids become spaces; space at the ends goes; nothing becomes `(empty)`.
/// `between` replaces the space before a last word of digits (`worker 12`), which readers of folded
/// stacks would take for a count.
pub(super) fn clean(name: &str, between: char) -> Cow<'_, str> {
    let replaced: Cow<str> = if name.chars().any(|c| c == ';' || unfit(c)) {
        name.chars()
            .map(|c| {
                if c == ';' {
                    ':'
                } else if unfit(c) {
                    ' '
                } else {
                    c
                }
            })
            .collect()
    } else {
        Cow::Borrowed(name)
    };
    let trimmed = match replaced {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    };
    if trimmed.is_empty() {
        return Cow::Borrowed("(empty)");
    }
    match trimmed.rsplit_once(' ') {
        Some((before, last)) if last.chars().all(|c| c.is_ascii_digit() || c == '.') => {
            Cow::Owned(format!("{}{between}{last}", before.trim_end()))
        }
        _ => trimmed,
    }
}

/// Without the characters that XML and a single line cannot carry; for titles.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if unfit(c) { ' ' } else { c }).collect()
}

/// A multiple, for people: `12,345`.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn unfit(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(c, '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_cleaned() {
        let clean = |name| clean(name, '_').into_owned();
        assert_eq!(clean("java.lang.Thread.run"), "java.lang.Thread.run");
        assert_eq!(clean("operator new(unsigned long)"), "operator new(unsigned long)");
        assert_eq!(clean("[u8; 8]"), "[u8: 8]");
        assert_eq!(clean(" a\r\nb\0 "), "a  b");
        assert_eq!(clean("worker 12"), "worker_12");
        assert_eq!(clean("a 1 2"), "a 1_2");
        assert_eq!(clean(" \t"), "(empty)");
        assert_eq!(clean("12"), "12");
        assert_eq!(clean("ünïcode::<T>"), "ünïcode::<T>");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }

    proptest! {
        #[test]
        fn a_clean_name_is_one_word_of_a_line(name in any::<String>()) {
            let once = clean(&name, '_').into_owned();
            prop_assert!(!once.is_empty() && once.trim() == once);
            prop_assert!(!once.contains([';', '\n', '\r', '\0']));
            prop_assert_eq!(clean(&once, '_').into_owned(), once.clone());
            // No reader finds a count in it.
            let last = once.rsplit_once(' ').map_or("x", |(_, last)| last);
            prop_assert!(last.parse::<f64>().is_err() || !last.chars().all(|c| c.is_ascii_digit()));
        }
    }
}
