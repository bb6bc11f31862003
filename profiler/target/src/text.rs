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
}
