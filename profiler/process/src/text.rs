//! Text from other processes: bounded, valid UTF-8, on one line.

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

/// The part after the last slash.
pub fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn base_names() {
        assert_eq!(base_name("/usr/bin/java"), "java");
        assert_eq!(base_name("java"), "java");
        assert_eq!(base_name("/"), "");
    }
}
