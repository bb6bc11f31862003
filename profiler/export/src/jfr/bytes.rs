//! Numbers and texts as a chunk has them: LEB128 of at most nine bytes, texts in UTF-8 or by their number in the pool.

/// Appends an integer.
pub fn long(out: &mut Vec<u8>, value: u64) {
    let mut rest = value;
    for _ in 0..8 {
        if rest < 0x80 {
            break;
        }
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Appends a text of its own.
pub fn text(out: &mut Vec<u8>, text: &str) {
    out.push(3);
    long(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a text of the pool; None: null.
pub fn pooled(out: &mut Vec<u8>, number: Option<u64>) {
    match number {
        None => out.push(0),
        Some(number) => {
            out.push(2);
            long(out, number);
        }
    }
}

/// Appends an event of a type: the size, which counts itself, then the type and the rest.
pub fn framed(out: &mut Vec<u8>, number: u64, body: &[u8]) {
    let mut kind = Vec::with_capacity(2);
    long(&mut kind, number);
    let rest = (kind.len() + body.len()) as u64;
    // A size of n bytes holds less than 2^(7 n).
    let own = (1..9_u64).find(|bytes| (rest + bytes) >> (7 * bytes) == 0).unwrap_or(9);
    long(out, rest + own);
    out.extend_from_slice(&kind);
    out.extend_from_slice(body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_counts_itself() {
        for length in [0_usize, 1, 125, 126, 127, 128, 16_379, 16_380, 16_381, 16_382, 16_383, 16_384] {
            let mut out = Vec::new();
            framed(&mut out, 1, &vec![0; length]);
            let (mut size, mut shift) = (0, 0);
            for byte in &out {
                size |= usize::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            assert_eq!(size, out.len(), "a body of {length}");
        }
    }

    #[test]
    fn the_ninth_byte_is_whole() {
        let mut out = Vec::new();
        long(&mut out, u64::MAX);
        assert_eq!(out, [0xff; 9]);
        out.clear();
        long(&mut out, 55_301);
        assert_eq!(out, [0x85, 0xb0, 0x03]);
    }
}
