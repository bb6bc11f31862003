//! Text that a target wrote, made harmless to keep: valid UTF-8, no control characters, bounded length.
//! Escaping for HTML, SVG or JSON is the business of whoever shows it.

/// Longest name that is kept; longer ones end in `…`. Deep Scala closures reach 300 to 400 bytes.
pub const MAX_NAME: usize = 1024;

/// `bytes` as text of at most `limit` bytes (and `…` where it was cut).
pub fn bounded(bytes: &[u8], limit: usize) -> String {
    let cut = bytes.len() > limit;
    let kept = bytes.get(..limit).unwrap_or(bytes);
    let mut text = String::with_capacity(kept.len());
    for c in String::from_utf8_lossy(kept).chars() {
        text.push(if c.is_control() { '?' } else { c });
    }
    if cut {
        if text.ends_with(char::REPLACEMENT_CHARACTER) {
            text.pop();
        }
        text.push('…');
    }
    text
}

/// `bytes` as text of at most `limit` bytes. What is not UTF-8 and control characters become U+FFFD, so
/// that a value can neither break a line of a log nor hide in a terminal.
pub fn clean(bytes: &[u8], limit: usize) -> String {
    let head = bytes.get(..limit).unwrap_or(bytes);
    let mut text = String::with_capacity(head.len());
    for c in String::from_utf8_lossy(head).chars() {
        let c = if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
        if text.len() + c.len_utf8() > limit {
            break;
        }
        text.push(c);
    }
    text
}

/// `text` cut to at most `limit` bytes at a character's end.
pub fn cut(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// Two digits a byte: build ids in names of files, digests.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_and_cleans() {
        assert_eq!(bounded(b"java.lang.Object", 64), "java.lang.Object");
        assert_eq!(bounded(b"a\x1b[31m\nb", 64), "a?[31m?b");
        assert_eq!(bounded(b"abcdef", 3), "abc…");
        assert_eq!(bounded("aé".as_bytes(), 2), "a…");
        assert_eq!(bounded(&[0xff, 0xfe], 8).chars().count(), 2);
    }

    #[test]
    fn text_is_bounded_and_on_one_line() {
        assert_eq!(clean(b"a\nb\x1b[31m", 100), "a\u{fffd}b\u{fffd}[31m");
        assert_eq!(clean("é".as_bytes(), 1), "", "a replacement does not fit");
        assert_eq!(clean("daily é".as_bytes(), 100), "daily é");
        assert!(clean(&[0xff; 100], 32).len() <= 32);
    }

    #[test]
    fn cut_keeps_characters_whole() {
        assert_eq!(cut("aéb", 2), "a");
        assert_eq!(cut("aéb", 3), "aé");
        assert_eq!(cut("ab", 9), "ab");
    }
}
