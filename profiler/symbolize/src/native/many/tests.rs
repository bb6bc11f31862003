//! What is packed is what blazesym says of the same file; nobody's names make it large or slow.

use super::*;
use crate::native::starts::Starts;
use crate::native::symbols::{Read, Symbols};
use crate::native::tests::functions;
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

#[test]
fn packed_symbols_are_those_that_blazesym_finds() {
    // This test's own program: Rust, C and hand-written code.
    let path = Path::new("/proc/self/exe");
    let file = File::open(path).unwrap();
    let headers = Headers::read(&file, file.metadata().unwrap().len()).unwrap();
    let segments = headers.segments(&file).unwrap();
    let image = || headers.image(&file, 256 << 20).unwrap();
    let many = Many::of(&image(), &segments, 256 << 20).unwrap();
    let (copied, packed) = (image().bytes, many.bytes());
    assert!(2 * packed < copied, "{packed} bytes of {copied}");
    let few = Symbols::of(Read::Few(Starts::of(&image()), image()));
    let many = Symbols::of(Read::Many(many));
    let mut names: HashMap<u64, Vec<String>> = HashMap::new();
    for (name, address) in functions(path) {
        names.entry(address).or_default().push(name);
    }
    let step = (names.len() / 2_000).max(1);
    let (mut asked, mut alike) = (0, 0);
    for address in names.keys().step_by(step).flat_map(|start| [*start, start + 1, start + 37, start + 4096])
    {
        let (by_few, by_many) = (few.name(address), many.name(address));
        asked += 1;
        if by_few == by_many {
            alike += 1;
            continue;
        }
        let (few, many) = by_few.clone().zip(by_many.clone()).unwrap_or_else(|| {
            panic!("{address:#x}: {by_few:?}, packed {by_many:?}");
        });
        // Of some names of one place each has one; and blazesym's hold to wherever a symbol of any kind begins.
        let same_place = names.values().any(|all| all.contains(&few.0) && all.contains(&many.0));
        assert!(few.0 == many.0 || same_place, "{address:#x}: {few:?}, packed {many:?}");
        assert!(many.1.start <= few.1.start && few.1.end <= many.1.end, "{few:?}, packed {many:?}");
    }
    assert!(asked >= 4_000 && alike * 10 > asked * 9, "{alike} of {asked}");
}

/// Start, size, whether it is global, where its name is.
type Told = (u64, u64, bool, u32);

fn packed(all: &[Told], names: &[u8], limit: u64) -> Result<Packed, ElfError> {
    let code = [Range { start: 0, end: u64::MAX }];
    let entry = |(start, size, global, name): &Told| {
        let mut raw = name.to_le_bytes().to_vec();
        raw.extend([u8::from(*global) << 4 | 2, 0, 7, 0]);
        raw.extend(start.to_le_bytes().into_iter().chain(size.to_le_bytes()));
        Entry::of(&raw, &code).unwrap()
    };
    let (file, range) = (of(names), (3, names.len() as u64));
    pack(all.iter().map(entry).collect(), &mut Names::of(&file, range), limit)
}

/// A file with these names behind something else.
fn of(names: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&[b"...", names].concat()).unwrap();
    file
}

#[test]
fn the_longest_of_a_place_is_its_name_and_one_without_a_size_goes_on() {
    let names: &[u8] = b"\0local\0global\0label\0after\0";
    let at = |text: &str| {
        let text = text.as_bytes();
        names.windows(text.len()).position(|part| part == text).unwrap() as u32
    };
    let all = [
        (100, 20, false, at("local")),
        (100, 20, true, at("global")),
        (100, 0, true, at("label")),
        (150, 10, false, at("after")),
    ];
    let of = |own: &[Told]| Many {
        own: packed(own, names, 1 << 20).unwrap(),
        exported: packed(&all, names, 1 << 20).unwrap(),
    };
    let many = of(&all);
    assert_eq!(many.name(99), None);
    assert_eq!(many.name(100), Some(("global".to_owned(), 100..120)));
    assert_eq!(many.name(119), Some(("global".to_owned(), 100..120)));
    assert_eq!(many.name(120), Some(("label".to_owned(), 120..121)));
    assert_eq!(many.name(149), Some(("label".to_owned(), 149..150)));
    assert_eq!(many.name(155), Some(("after".to_owned(), 150..160)));
    assert_eq!(many.name(160), None);
    // What is exported has no name where it does not reach, and all of its place where nothing else is there.
    let exported = of(&[]);
    assert_eq!(exported.name(110), Some(("global".to_owned(), 100..120)));
    assert_eq!(exported.name(130), None);
    let beside = of(&[(10, 5, false, at("local"))]);
    assert_eq!(beside.name(110), Some(("global".to_owned(), 110..111)));
}

#[test]
fn names_within_each_other_and_too_many_are_refused() {
    // Each symbol's name is the rest of all that is there.
    let names = [vec![b'x'; 60_000], vec![0]].concat();
    let all: Vec<_> = (0..1_000).map(|at| (16 * u64::from(at), 16, false, at)).collect();
    assert!(matches!(packed(&all, &names, 16 << 20), Err(ElfError::TooLarge(_))));
    // Nor do they end, and each is looked at.
    let endless = vec![b'x'; 60_000];
    assert!(matches!(packed(&all, &endless, 16 << 20), Err(ElfError::TooLarge(_))));
    let all: Vec<_> = (0..10_000).map(|at| (16 * u64::from(at), 16, false, 6 * at)).collect();
    let distinct: Vec<u8> = (0..10_000).flat_map(|at| format!("{at:05}\0").into_bytes()).collect();
    assert!(matches!(packed(&all, &distinct, 10_000), Err(ElfError::TooLarge(_))));
    assert_eq!(packed(&all, &distinct, 1 << 20).unwrap().len(), 10_000);
}

#[test]
fn what_is_no_text_or_does_not_end_is_no_name() {
    let long = [vec![b'y'; MAX_NAME], vec![0]].concat();
    let name = |bytes: &[u8], offset| {
        let file = of(bytes);
        Names::of(&file, (3, bytes.len() as u64)).at(offset, &mut Vec::new()).unwrap().len()
    };
    assert_eq!([name(b"\xff\0", 0), name(b"endless", 0), name(b"x\0", 70), name(b"x\0", 1)], [0; 4]);
    assert_eq!([name(b"xyz\0", 1), name(&long, 0), name(&long, 1)], [2, 0, MAX_NAME - 1]);
}

#[test]
fn a_table_with_more_names_than_are_held_is_read_all_the_same() {
    let count = PIECES as u32 * PIECE as u32 / 16 * 2;
    let bytes: Vec<u8> = (0..count).flat_map(|nth| format!("{nth:015}\0").into_bytes()).collect();
    let file = of(&bytes);
    let (mut names, mut buffer) = (Names::of(&file, (3, bytes.len() as u64)), Vec::new());
    for nth in (0..4 * count).step_by(997).map(|nth| nth * 7 % count) {
        assert_eq!(names.at(16 * nth, &mut buffer).unwrap(), format!("{nth:015}"));
    }
    assert_eq!(names.pieces.1.len() as u64, PIECES);
}
