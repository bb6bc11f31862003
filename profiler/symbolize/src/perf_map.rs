//! One pass over a perf map: addresses that want a name in, entries out. Of 200 MB only what was sampled is kept.
//!
//! A line is `start size name` in hexadecimal, with `0x` (HotSpot) or without (everybody else). The writer may be at
//! work: a last line without its newline is left out. Where entries overlap the later line wins (agents append;
//! HotSpot writes each block once). Anything else is skipped and counted, and a file that begins with [`RUBBISH`]
//! bytes without one good line, or has more bad lines than good ones, is refused.

use std::io::{self, BufRead, Read};
use std::ops::Range;

/// Longest line that is understood; HotSpot's reach a few hundred bytes.
pub const MAX_LINE: usize = 8192;
/// So many bytes without a single entry and it is no perf map.
pub const RUBBISH: u64 = 1 << 20;
/// More bad lines than this, and than good ones, and it is no perf map either.
const BAD_LINES: u64 = 1000;
/// Longest name that is taken over; cut again, with care, when it becomes a frame.
const MAX_KEPT_NAME: usize = 2048;
/// Code larger than this is no code: the interpreter, the largest blob, takes 200 KB.
const MAX_CODE: u64 = 64 << 20;

/// What a reader is looking for. Both are sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Addresses without a name.
    pub addresses: Vec<u64>,
    /// Code that has a name already: entries that touch it are wanted too, for they are newer. Disjoint.
    pub known: Vec<Range<u64>>,
}

impl Wanted {
    fn wants(&self, code: &Range<u64>) -> bool {
        let at = self.addresses.partition_point(|a| *a < code.start);
        if self.addresses.get(at).is_some_and(|a| *a < code.end) {
            return true;
        }
        let at = self.known.partition_point(|k| k.end <= code.start);
        self.known.get(at).is_some_and(|k| k.start < code.end)
    }
}

/// Limits of one reading.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most bytes of the file that are read.
    pub file_bytes: u64,
    /// Most entries that are kept.
    pub entries: usize,
    /// Most bytes of the names of those entries.
    pub name_bytes: usize,
}

/// An entry that was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Addresses of the code.
    pub code: Range<u64>,
    /// The code's name as the file has it, cut.
    pub name: Box<[u8]>,
}

/// What one reading gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Entries that were wanted, in the file's order: later ones win.
    pub entries: Vec<Entry>,
    /// Good lines in the file.
    pub lines: u64,
    /// Lines that could not be understood.
    pub bad_lines: u64,
    /// Bytes of the file that were read.
    pub bytes: u64,
    /// The file goes on beyond the limit.
    pub cut: bool,
    /// Wanted entries that the limits left out.
    pub dropped: u64,
}

/// Why a reading gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The file cannot be read to its end.
    #[error("reading the perf map: {0}")]
    Io(#[from] io::Error),
    /// The file does not look like a perf map, as far as these bytes of it.
    #[error("its first {0} bytes are not a perf map")]
    Rubbish(u64),
}

/// Reads `reader` to its end or to the limit.
///
/// # Errors
/// [`ScanError::Io`]; [`ScanError::Rubbish`]: no good line, or more bad ones than good ones. Nothing is kept then.
pub fn scan(mut reader: impl BufRead, wanted: &Wanted, limits: &Limits) -> Result<Scan, ScanError> {
    let mut scan = Scan::default();
    let mut line: Vec<u8> = Vec::with_capacity(MAX_LINE);
    let mut name_bytes = 0usize;
    // Within a line that is too long to be one.
    let mut too_long = false;
    loop {
        line.clear();
        let read = reader.by_ref().take(MAX_LINE as u64).read_until(b'\n', &mut line)?;
        scan.bytes += read as u64;
        match line.strip_suffix(b"\n") {
            Some(_) if too_long => {
                too_long = false;
                scan.bad_lines += 1;
            }
            Some(whole) => take_line(whole, wanted, limits, &mut scan, &mut name_bytes),
            // The end of the file, perhaps amid a line.
            None if read < MAX_LINE => break,
            None => too_long = true,
        }
        if (scan.lines == 0 && scan.bytes >= RUBBISH) || scan.bad_lines > BAD_LINES.max(scan.lines) {
            return Err(ScanError::Rubbish(scan.bytes));
        }
        if scan.bytes >= limits.file_bytes {
            scan.cut = true;
            break;
        }
    }
    if scan.lines == 0 && (scan.bad_lines > 0 || too_long) {
        return Err(ScanError::Rubbish(scan.bytes));
    }
    Ok(scan)
}

fn take_line(line: &[u8], wanted: &Wanted, limits: &Limits, scan: &mut Scan, name_bytes: &mut usize) {
    let Some((code, name)) = parse_line(line) else {
        scan.bad_lines += 1;
        return;
    };
    let wanted = wanted.wants(&code);
    if wanted && name.iter().any(|b| *b < b' ') {
        scan.bad_lines += 1;
        return;
    }
    scan.lines += 1;
    if !wanted {
        return;
    }
    let name = name.get(..MAX_KEPT_NAME).unwrap_or(name);
    if scan.entries.len() >= limits.entries || *name_bytes + name.len() > limits.name_bytes {
        scan.dropped += 1;
        return;
    }
    *name_bytes += name.len();
    scan.entries.push(Entry { code, name: name.into() });
}

/// One line without its newline. Code of no length is refused: nothing can lie in it.
pub fn parse_line(line: &[u8]) -> Option<(Range<u64>, &[u8])> {
    let (start, rest) = hex(line)?;
    let (size, rest) = hex(rest)?;
    let end = start.checked_add(size)?;
    let rest = rest.strip_suffix(b"\r").unwrap_or(rest);
    (size > 0 && size <= MAX_CODE && !rest.is_empty()).then_some((start..end, rest))
}

/// A hexadecimal number and the blank after it.
fn hex(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")).unwrap_or(text);
    let mut value = 0u64;
    for (at, byte) in text.iter().enumerate() {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            b' ' if at > 0 => return Some((value, text.get(at + 1..)?)),
            _ => return None,
        };
        if value >> 60 != 0 {
            return None;
        }
        value = value << 4 | u64::from(digit);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits { file_bytes: 1 << 30, entries: 1000, name_bytes: 1 << 20 };

    fn wanted(addresses: &[u64]) -> Wanted {
        Wanted { addresses: addresses.to_vec(), known: Vec::new() }
    }
    fn names(scan: &Scan) -> Vec<String> {
        scan.entries.iter().map(|e| String::from_utf8_lossy(&e.name).into_owned()).collect()
    }

    #[test]
    fn both_spellings() {
        let text = b"0x00007f816cec71a0 0x00000000000000d0 java.lang.String java.io.File.getPath()\n7f816cec8000 1F plain\n";
        let got =
            scan(&text[..], &wanted(&[0x7f816cec71a5, 0x7f816cec801e, 0x7f816cec801f]), &LIMITS).unwrap();
        assert_eq!(names(&got), ["java.lang.String java.io.File.getPath()", "plain"]);
        assert_eq!((got.lines, got.bad_lines, got.bytes), (2, 0, text.len() as u64));
        assert_eq!(got.entries[0].code, 0x7f816cec71a0..0x7f816cec7270);
    }

    #[test]
    fn a_half_written_last_line_is_left_out() {
        let text = b"1000 10 whole\n2000 10 ha";
        let got = scan(&text[..], &wanted(&[0x1000, 0x2000]), &LIMITS).unwrap();
        assert_eq!(names(&got), ["whole"]);
        let got = scan(&b"0x10"[..], &wanted(&[0x1000]), &LIMITS).unwrap();
        assert_eq!((got.lines, got.entries.len()), (0, 0), "a file that was just begun is no rubbish");
    }

    #[test]
    fn only_what_is_wanted_is_kept() {
        let text: String = (0..10_000).map(|i| format!("{:x} 10 m{i}\n", i * 16)).collect();
        let mut want = wanted(&[0x105]);
        want.known = vec![0x208..0x218, 0x1000..0x1001];
        let got = scan(text.as_bytes(), &want, &LIMITS).unwrap();
        assert_eq!(names(&got), ["m16", "m32", "m33", "m256"]);
        assert_eq!(got.lines, 10_000);
    }

    #[test]
    fn limits_hold_and_are_counted() {
        let text: String = (0..100).map(|i| format!("{:x} 10 m{i}\n", i * 16)).collect();
        let all: Vec<u64> = (0..100).map(|i| i * 16).collect();
        let got = scan(text.as_bytes(), &wanted(&all), &Limits { entries: 10, ..LIMITS }).unwrap();
        assert_eq!((got.entries.len(), got.dropped), (10, 90));
        let got = scan(text.as_bytes(), &wanted(&all), &Limits { name_bytes: 6, ..LIMITS }).unwrap();
        assert_eq!((got.entries.len(), got.dropped), (3, 97));
        let got = scan(text.as_bytes(), &wanted(&all), &Limits { file_bytes: 50, ..LIMITS }).unwrap();
        assert!(got.cut && got.bytes < 70);
    }

    #[test]
    fn rubbish_is_refused_early() {
        let zeros = io::Read::take(io::repeat(0), 10 << 30);
        let result = scan(io::BufReader::new(zeros), &wanted(&[1]), &LIMITS);
        assert!(matches!(result, Err(ScanError::Rubbish(n)) if n <= RUBBISH + 65536));
        let text = b"\x7fELF\x02\x01\n\n\xff\xfe\n";
        assert!(matches!(scan(&text[..], &wanted(&[1]), &LIMITS), Err(ScanError::Rubbish(_))));
        let lines = b"not a map\n".repeat(200_000);
        assert!(matches!(scan(&lines[..], &wanted(&[1]), &LIMITS), Err(ScanError::Rubbish(_))));
    }

    #[test]
    fn good_lines_among_bad_ones() {
        let mut text =
            b"1000 10 a\nzzz\n10 0 empty\nffffffffffffffff 10 wraps\n12345678123456789 1 wide\n2000 10 \n"
                .to_vec();
        text.extend(b"x".repeat(MAX_LINE * 3));
        text.extend(b"\n3000 10 b\n");
        let got = scan(&text[..], &wanted(&[0x10, 0x1000, 0x2000, 0x3000]), &LIMITS).unwrap();
        assert_eq!(names(&got), ["a", "b"]);
        assert_eq!((got.lines, got.bad_lines), (2, 6));
    }

    #[test]
    fn golden_maps_of_real_jvms() {
        for (text, lines) in [
            (&include_bytes!("testdata/jdk17.map")[..], 786),
            (&include_bytes!("testdata/jdk25.map")[..], 846),
        ] {
            let starts: Vec<u64> = {
                let mut all: Vec<u64> =
                    text.split(|b| *b == b'\n').filter_map(parse_line).map(|(code, _)| code.start).collect();
                all.sort_unstable();
                all
            };
            let got = scan(text, &wanted(&starts), &LIMITS).unwrap();
            assert_eq!((got.lines, got.bad_lines, got.entries.len()), (lines, 0, lines as usize));
        }
    }

    proptest! {
        #[test]
        fn takes_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..2000), buffer in 1usize..64) {
            let _ = scan(io::BufReader::with_capacity(buffer, &bytes[..]), &wanted(&[0, 1, 0x1000]), &LIMITS);
        }

        /// Any buffer size gives what the whole text gives, and later lines come later.
        #[test]
        fn finds_every_wanted_entry(
            rows in proptest::collection::vec((0u64..1 << 16, 1u64..256, "[ -~]{1,40}", any::<bool>()), 1..60),
            buffer in 1usize..300,
            address in 0u64..1 << 16,
        ) {
            let mut text = String::new();
            for (start, size, name, prefix) in &rows {
                let p = if *prefix { "0x" } else { "" };
                text.push_str(&format!("{p}{start:x} {p}{size:x} {name}\n"));
            }
            let got = scan(io::BufReader::with_capacity(buffer, text.as_bytes()), &wanted(&[address]), &LIMITS).unwrap();
            let expected: Vec<&str> = rows.iter()
                .filter(|(start, size, ..)| (*start..start + size).contains(&address))
                .map(|r| r.2.as_str()).collect();
            prop_assert_eq!(names(&got), expected);
        }
    }
}
