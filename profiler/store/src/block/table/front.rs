//! Texts that say only what differs from the one before (DELTA_BYTE_ARRAY), as plain ones.
//!
//! In: a page's values. Out: the same as PLAIN has them, at most [`MAX_PAGE`] bytes. Parquet's own decoder reserves
//! room for as many as the page says it has, and makes each of 16,000 texts anew from a prefix that may have megabytes
//! (parquet 60, `encodings/decoding.rs`, `DeltaByteArrayDecoder`): a page of some hundred bytes takes all memory.
//! The format: parquet-format, `Encodings.md`, "Delta encoding" and "Delta Strings".

use super::MAX_PAGE;
use super::varints::{Varints, malformed};
use parquet::errors::ParquetError;

/// The page's texts in PLAIN: each with its length in four bytes. `values` is how many the page has at most.
pub(super) fn to_plain(bytes: &[u8], values: usize, out: &mut Vec<u8>) -> Result<(), ParquetError> {
    let (prefixes, rest) = numbers(bytes, values)?;
    let (suffixes, mut texts) = numbers(rest, values)?;
    if prefixes.len() != suffixes.len() {
        return Err(malformed("has not as many beginnings of texts as ends"));
    }
    // The text before lies in `out` already.
    let (mut start, mut length) = (out.len(), 0);
    for (prefix, suffix) in prefixes.into_iter().zip(suffixes) {
        let (prefix, suffix) = (prefix as usize, suffix as usize);
        let text = texts.split_at_checked(suffix).filter(|_| prefix <= length);
        let (text, rest) = text.ok_or_else(|| malformed("has a text that is longer than its page"))?;
        texts = rest;
        if out.len() + 4 + prefix + suffix > MAX_PAGE {
            return Err(malformed("has a page whose texts are too long"));
        }
        out.extend(((prefix + suffix) as u32).to_le_bytes());
        let now = out.len();
        out.extend_from_within(start..start + prefix);
        out.extend_from_slice(text);
        (start, length) = (now, prefix + suffix);
    }
    Ok(())
}

/// Lengths, bit-packed as distances (DELTA_BINARY_PACKED of 32 bits), and what follows them.
fn numbers(bytes: &[u8], most: usize) -> Result<(Vec<u32>, &[u8]), ParquetError> {
    let mut bits = Varints { rest: bytes, cut: "ends within a page" };
    let (block, minis, count) = (bits.unsigned()?, bits.unsigned()?, bits.unsigned()?);
    let first = bits.signed()?;
    let per_mini = block.checked_div(minis).unwrap_or_default();
    if count > most as u64 {
        return Err(malformed("has more texts than its page"));
    }
    if per_mini == 0 || !per_mini.is_multiple_of(32) || per_mini * minis != block || block > 1 << 16 {
        return Err(malformed("has blocks of numbers of an odd size"));
    }
    let length = |value: i64| match i32::try_from(value) {
        Ok(value) if value >= 0 => Ok(value.cast_unsigned()),
        _ => Err(malformed("has a text of no length")),
    };
    let mut out = Vec::with_capacity(count as usize);
    let mut last = first;
    if count > 0 {
        out.push(length(last)?);
    }
    while (out.len() as u64) < count {
        let least = bits.signed()?;
        for width in bits.bytes(minis as usize)? {
            if out.len() as u64 >= count {
                break;
            }
            let width = usize::from(*width);
            if width > 32 {
                return Err(malformed("ends within a page"));
            }
            let packed = bits.bytes(width * per_mini as usize / 8)?;
            for place in 0..per_mini as usize {
                if out.len() as u64 >= count {
                    break;
                }
                let at = place * width;
                // At most 32 bits from any bit of a byte on: within eight bytes.
                let some = packed.get(at / 8..).unwrap_or_default();
                let word = some.iter().take(8).rev().fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
                let delta = word >> (at % 8) & ((1_u64 << width) - 1);
                last = i64::from((last.wrapping_add(least).wrapping_add(delta.cast_signed())) as i32);
                out.push(length(last)?);
            }
        }
    }
    Ok((out, bits.rest))
}

#[cfg(test)]
mod tests {
    use super::super::{Column, How, TableReader, to_bytes};
    use proptest::prelude::*;

    fn put(out: &mut Vec<u8>, mut value: u64) {
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }

    proptest! {
        #[test]
        fn texts_come_back(texts in prop::collection::vec("[a-c]{0,6}|[a-z]{0,90}|.{0,9}", 0..700)) {
            let mut sorted = texts.clone();
            sorted.sort();
            for texts in [texts, sorted] {
                let column = Column::text("name", How::Front, texts.iter().map(String::as_str));
                let table = TableReader::new(to_bytes("frames", 1, &[column]).unwrap(), "frames").unwrap();
                let mut back = Vec::new();
                table.all_texts("name", |text| back.push(text.unwrap_or("none").to_owned())).unwrap();
                prop_assert_eq!(&back, &texts);
                let some = |place: usize| (!place.is_multiple_of(3)).then(|| texts[place].as_str());
                let column = Column::maybe("name", How::Front, (0..texts.len()).map(some));
                let table = TableReader::new(to_bytes("frames", 1, &[column]).unwrap(), "frames").unwrap();
                let mut place = 0;
                let mut same = true;
                table.all_texts("name", |text| {
                    same &= text == some(place);
                    place += 1;
                }).unwrap();
                prop_assert!(same && place == texts.len());
            }
        }
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut out = Vec::new();
            let _ = super::to_plain(&bytes, 16_384, &mut out);
            prop_assert!(out.len() <= super::MAX_PAGE);
        }
    }

    /// 16,000 lengths: the first, and what each has more than the one before, less `least`.
    fn lengths(first: u64, least: i64, distances: impl Iterator<Item = u64>) -> Vec<u8> {
        let mut out = Vec::new();
        for number in [32 << 10, 1, 16_000, first * 2, ((least << 1) ^ (least >> 63)).cast_unsigned()] {
            put(&mut out, number);
        }
        out.push(17);
        let mut packed = vec![0_u8; 17 * (32 << 10) / 8];
        for (place, distance) in distances.enumerate() {
            for bit in (0..17).filter(|bit| distance >> bit & 1 == 1) {
                let at = place * 17 + bit;
                packed[at / 8] |= 1 << (at % 8);
            }
        }
        out.extend(packed);
        out
    }

    #[test]
    fn a_small_page_of_long_prefixes_is_refused() {
        // One text of 100 KB and 15,999 more that are like it: 1.6 GB.
        let mut page = lengths(0, 0, std::iter::once(100_000).chain(std::iter::repeat_n(0, 15_998)));
        let like = std::iter::once(0).chain(std::iter::repeat_n(100_000, 15_998));
        page.extend(lengths(100_000, -100_000, like));
        page.extend(vec![b'x'; 100_000]);
        let error = super::to_plain(&page, 16_384, &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("too long"), "{error}");
    }
}
