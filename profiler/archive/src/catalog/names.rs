//! What a list says by the names in it: hours, blocks, open parts. Whoever may write there chooses the names.
//!
//! In: objects and directories. Out: what their names tell, and those names that only look as if they told something.
//! Limit: [`MAX_HOURS`] hours of a range.

use super::super::layout::{self, BlockName, Piece, chain};
use super::super::remote::Object;
use super::hours::{hours_of, start_of, start_of_block};
use emberscope_model::{MissingPart, TimeRange, WallTime};
use std::collections::BTreeMap;

/// Hours that a question may touch: a year.
const MAX_HOURS: usize = 366 * 24;
/// The range of what no window lies in.
pub(crate) const NO_TIME: TimeRange = TimeRange { from: WallTime(0), until: WallTime(0) };

/// Open parts: by node and block the pieces, in a row.
pub(crate) type OpenParts = BTreeMap<(String, String), Vec<Piece>>;

/// What is told of a list: the nodes that were left out, whose windows in the range answers lack; and names that are none of
/// an archive's, for which they lack nothing.
pub(crate) fn told(
    below: &str,
    left_out: &[(String, String)],
    range: TimeRange,
    foreign: &[String],
) -> Vec<MissingPart> {
    let example = foreign.first().map(|name| {
        let says =
            format!("{} names that are none of an archive's are ignored, such as {name:?}", foreign.len());
        MissingPart::new(below, NO_TIME, &says)
    });
    left_out.iter().map(|(place, says)| MissingPart::new(place, range, says)).chain(example).collect()
}

/// The blocks that an hour's objects tell of, of two manifests of one the newer; and names that only look like theirs.
pub(crate) fn blocks_of(mut objects: Vec<Object>) -> (Vec<BlockName>, Vec<String>) {
    objects.sort_by_key(|object| std::cmp::Reverse(object.put_ms));
    let (mut names, mut foreign) = (Vec::new(), Vec::new());
    for object in objects {
        match BlockName::of(&object.name) {
            Some(name) if layout::index(&name.host, &name.block, name.crc32) == object.name => {
                names.push(name)
            }
            Some(_) => foreign.push(object.name),
            None => {}
        }
    }
    names.sort_by(|a, b| (&a.host, &a.block).cmp(&(&b.host, &b.block)));
    names.dedup_by(|next, kept| (&next.host, &next.block) == (&kept.host, &kept.block));
    (names, foreign)
}

/// The open parts that objects are pieces of; and names that only look like theirs.
pub(crate) fn parts_of(objects: Vec<Object>) -> (OpenParts, Vec<String>) {
    let (mut parts, mut foreign) = (OpenParts::new(), Vec::new());
    for object in objects {
        match Piece::of(&object.name) {
            Some(piece) if start_of_block(&piece.block).is_some() => {
                parts.entry((piece.host.clone(), piece.block.clone())).or_default().push(piece);
            }
            Some(_) => foreign.push(object.name),
            None => {}
        }
    }
    (parts.into_iter().map(|(part, pieces)| (part, chain(pieces))).collect(), foreign)
}

/// Those hours that may share an instant with a range: of more than [`MAX_HOURS`] the newest, and what that leaves out.
pub(crate) fn hours_within(hours: &[String], range: &TimeRange) -> (Vec<String>, Option<MissingPart>) {
    let (first, last) = hours_of(range);
    let mut hours: Vec<String> =
        hours.iter().filter(|hour| **hour >= first && **hour <= last).cloned().collect();
    let more = hours.len().saturating_sub(MAX_HOURS);
    let kept = hours.split_off(more);
    let until = kept.first().and_then(|hour| start_of(hour)).filter(|_| more > 0);
    let old = until.map(|until| {
        let says = format!("{more} hours are left out: an answer reads the newest {MAX_HOURS} of its range");
        MissingPart::new(&format!("before {until}"), TimeRange { from: range.from, until }, &says)
    });
    (kept, old)
}

#[cfg(test)]
mod tests {
    use super::super::hours::{ALL_TIME, hour_of};
    use super::*;
    use std::time::Duration;

    #[test]
    fn hours_that_are_too_many_are_named() {
        let hour = |number: u64| hour_of(WallTime(0).plus(Duration::from_secs(number * 3600)));
        let mut hours: Vec<String> = (0..MAX_HOURS as u64).map(hour).collect();
        assert_eq!(hours_within(&hours, &ALL_TIME), (hours.clone(), None));
        hours.push(hour(MAX_HOURS as u64));
        let (kept, old) = hours_within(&hours, &ALL_TIME);
        assert_eq!(kept, hours[1..]);
        let old = old.unwrap();
        assert!(old.says.starts_with("1 hours are left out"), "{old:?}");
        assert_eq!(hour_of(old.range.until), hours[1]);
    }

    #[test]
    fn a_name_is_exactly_as_it_is_written() {
        let object = |name: &str| Object { name: name.to_owned(), bytes: 1, put_ms: 0 };
        let good = "v1/index/20231114T22/b/20231114T220000Z-000000000001.0000abcd";
        let other_hour = good.replacen("T22", "T23", 1);
        let large = good.replace("abcd", "ABCD");
        let (blocks, foreign) =
            blocks_of([good, &other_hour, &large, "v1/index/20231114T22/b"].map(object).into());
        assert_eq!((blocks.len(), blocks[0].crc32, foreign), (1, 0xabcd, vec![other_hour, large]));
        let good = "v1/open/b/20231114T220000Z-000000000001/000000000000-000000000009-0000abcd";
        let odd = "v1/open/b/zzz/000000000000-000000000009-0000abcd";
        let (parts, foreign) = parts_of([good, odd].map(object).into());
        assert_eq!((parts.len(), foreign.as_slice()), (1, &[odd.to_owned()][..]));
        let told = told("v1/open", &[("v1/open/c".to_owned(), "has much".to_owned())], ALL_TIME, &foreign);
        let told: Vec<_> = told.iter().map(|part| (part.name.as_str(), part.range.is_empty())).collect();
        assert_eq!(told, [("v1/open/c", false), ("v1/open", true)]);
    }
}
