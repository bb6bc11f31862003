//! Parts of real libraries against the whole, and indexes that lie.

use super::super::elf::OfFile;
use super::super::table_of;
use super::*;
use profiler_ebpf::{PAGE_SHIFT, UnwindRule};

fn library(name: &str) -> Vec<u8> {
    std::fs::read(emberscope_testkit::library(name)).unwrap()
}

/// Each address at which a rule begins, and the one before it, has the same rule in the part as in the whole.
fn same_as_the_whole(bytes: &[u8]) {
    let indexed = Indexed::of(&bytes).unwrap().expect("an index");
    let image = Image::of_bytes(bytes).unwrap();
    let whole = table_of(&image).unwrap();
    let (low, high) = image.code().unwrap();
    let (mut parts, mut functions, mut asked) = (0, 0, 0);
    for part in (low >> PART_SHIFT) as u32..=((high - 1) >> PART_SHIFT) as u32 {
        let code = (u64::from(part) << PART_SHIFT).max(low)..(u64::from(part + 1) << PART_SHIFT).min(high);
        let table = match indexed.part(&bytes, part) {
            Ok(table) => table,
            Err(error) => {
                assert_eq!(error, TableError::Nothing);
                assert!(code.step_by(64).all(|at| whole.rule(at).is_none_or(|rule| rule == UnwindRule::GAP)));
                continue;
            }
        };
        assert!(table.page << PAGE_SHIFT <= code.start && table.pages() <= 64);
        (parts, functions) = (parts + 1, functions + table.functions);
        let rows = table.index.windows(2).enumerate().flat_map(|(page, rows)| {
            let rows = &table.rows[rows[0] as usize..rows[1] as usize];
            let at = (table.page + page as u64) << PAGE_SHIFT;
            rows.iter().map(move |row| at + u64::from(row >> profiler_ebpf::RULE_BITS))
        });
        for at in rows.flat_map(|at| [at.saturating_sub(1), at]).filter(|at| code.contains(at)) {
            assert_eq!(table.rule(at), whole.rule(at), "part {part} at {at:x}");
            asked += 1;
        }
    }
    // A function that reaches over a part's end is in both.
    assert!(parts > 0 && (whole.functions..=whole.functions + parts).contains(&functions));
    assert!(asked > 10_000, "{asked} addresses");
}

#[test]
fn parts_say_what_the_whole_says() {
    for name in ["libc.so.6", "libstdc++.so.6"] {
        same_as_the_whole(&library(name));
    }
}

#[test]
fn the_key_is_of_the_index() {
    let mut bytes = library("libc.so.6");
    let indexed = Indexed::of(&&bytes[..]).unwrap().unwrap();
    let key = indexed.key(&&bytes[..]).unwrap();
    assert_eq!(Indexed::of(&&bytes[..]).unwrap().unwrap().key(&&bytes[..]).unwrap(), key);
    let other = indexed.index.end as usize - 1;
    bytes[other] ^= 1;
    assert_ne!(Indexed::of(&&bytes[..]).unwrap().unwrap().key(&&bytes[..]).unwrap(), key);
    assert_ne!(part_key(key, 1), part_key(key, 2));
}

#[test]
fn an_index_that_lies_is_none_or_leads_to_nothing() {
    let whole = library("libc.so.6");
    let indexed = Indexed::of(&&whole[..]).unwrap().unwrap();
    let head = (indexed.index.start - HEAD) as usize;
    let of = |change: &dyn Fn(&mut [u8])| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        Indexed::of(&&bytes[..]).map(|found| found.map(|it| (it, bytes)))
    };
    // Other encodings, no entries, more than there is room for.
    assert!(of(&|bytes| bytes[head + 3] = 0x1b).unwrap().is_none());
    assert!(of(&|bytes| bytes[head + 8..head + 12].fill(0)).unwrap().is_none());
    assert!(of(&|bytes| bytes[head + 8..head + 12].fill(0xff)).unwrap().is_none());
    // Every entry leads out of the section, into its middle, or to one place.
    let begin = indexed.index.start as usize;
    for word in [0x7fff_ffff_u32, 0, (indexed.frames.address - indexed.base) as u32 + 2] {
        let (lying, bytes) = of(&|bytes| {
            for entry in bytes[begin..indexed.index.end as usize].chunks_exact_mut(8) {
                entry[4..].copy_from_slice(&word.to_le_bytes());
            }
        })
        .unwrap()
        .unwrap();
        for part in 0..8 {
            match lying.part(&&bytes[..], part) {
                Err(TableError::Nothing | TableError::Malformed) => {}
                other => panic!("{word:x}: {other:?}"),
            }
        }
    }
    // No such part, and no such place.
    assert_eq!(indexed.part(&&whole[..], u32::MAX), Err(TableError::Nothing));
    let cut = &whole[..head + 40];
    assert!(indexed.part(&cut, 1).is_err());
    let file = std::fs::File::open("/dev/null").unwrap();
    assert!(matches!(Indexed::of(&OfFile(&file, 0)), Err(TableError::NotElf)));
}

/// A word of the index that leads back and forth makes the search end all the same.
#[test]
fn an_index_without_order_ends() {
    let mut bytes = library("libc.so.6");
    let indexed = Indexed::of(&&bytes[..]).unwrap().unwrap();
    let mut word = 7_u32;
    for at in indexed.index.clone().step_by(4) {
        word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bytes[at as usize..at as usize + 4].copy_from_slice(&word.to_le_bytes());
    }
    for part in 0..16 {
        let _ = indexed.part(&&bytes[..], part);
    }
    for at in (0..bytes.len()).step_by(977) {
        bytes[at] ^= word as u8;
    }
    for part in 0..16 {
        let _ = indexed.part(&&bytes[..], part);
    }
}
