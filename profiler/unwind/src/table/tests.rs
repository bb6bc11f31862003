//! Tables of this machine's libraries, held against gimli's own look-up; and files that lie.

use super::*;
use gimli::{BaseAddresses, EhFrame, LittleEndian, RegisterRule, UnwindContext, UnwindSection};
use profiler_ebpf::{CfaRule, FpRule, ReturnRule, UnwindRule};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::time::Instant;

fn image(path: &Path) -> Option<Image> {
    let file = std::fs::File::open(path).ok()?;
    Image::of_file(&file, file.metadata().ok()?.len(), u64::MAX).ok()
}

fn libraries() -> Vec<PathBuf> {
    let system = Path::new("/usr/lib/x86_64-linux-gnu");
    let mut all: Vec<PathBuf> =
        ["libc.so.6", "libz.so.1", "libstdc++.so.6", "libcrypto.so.3", "ld-linux-x86-64.so.2"]
            .iter()
            .map(|name| system.join(name))
            .collect();
    all.extend(emberscope_testkit::jdks::jdks().iter().map(|jdk| jdk.join("lib/server/libjvm.so")));
    all.push("/proc/self/exe".into());
    all.retain(|path| path.exists());
    all
}

/// What gimli says of an address, in our words; None: it knows no function there, or a rule that ours cannot tell.
fn by_gimli(image: &Image, bases: &BaseAddresses, address: u64) -> Option<UnwindRule> {
    let mut section = EhFrame::new(&image.frames.bytes, LittleEndian);
    section.set_address_size(8);
    let mut context = UnwindContext::new();
    let row = section.unwind_info_for_address(bases, &mut context, address, EhFrame::cie_from_offset).ok()?;
    if row.register(gimli::X86_64::RA) == Some(RegisterRule::Undefined) {
        return Some(UnwindRule::END);
    }
    let gimli::CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { return None };
    let cfa = match *register {
        gimli::X86_64::RSP => CfaRule::Sp,
        gimli::X86_64::RBP => CfaRule::Fp,
        _ => return Some(UnwindRule::UNSUPPORTED),
    };
    let (fp, fp_offset) = match row.register(gimli::X86_64::RBP) {
        Some(RegisterRule::Offset(offset)) => (FpRule::AtCfa, offset as i16),
        None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => (FpRule::Same, 0),
        _ => return None,
    };
    Some(UnwindRule { cfa, cfa_offset: *offset as i32, fp, fp_offset, return_address: ReturnRule::BelowCfa })
}

#[test]
fn tables_say_what_gimli_says() {
    for path in libraries() {
        let image = image(&path).unwrap_or_else(|| panic!("{path:?}"));
        let begun = Instant::now();
        let table = table_of(&image).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        let took = begun.elapsed();
        let (low, high) = image.code().unwrap();
        let unsupported = |rule: &UnwindRule| *rule == UnwindRule::UNSUPPORTED;
        let mask = (1 << profiler_ebpf::RULE_BITS) - 1;
        let of = |word: &u32| table.rules.get((word & mask) as usize).is_some_and(unsupported);
        println!(
            "{}: {} functions, {} rows read, {} kept, {} rules, {} KiB ({:.2} bytes a row read), {took:?}; \
             {} rows unsupported; {} KiB of code",
            path.display(),
            table.functions,
            table.read,
            table.rows.len(),
            table.rules.len(),
            table.words() / 256,
            table.words() as f64 * 4.0 / table.read as f64,
            table.rows.iter().filter(|word| of(word)).count(),
            (high - low) / 1024,
        );
        let bases = BaseAddresses::default().set_eh_frame(image.frames.address);
        // A linear search each, so not too many in the large ones.
        let samples = (20_000_000 / table.read.max(1)).clamp(40, 400) as u64;
        let step = ((high - low) / samples) | 1;
        let (mut same, mut asked) = (0, 0);
        for address in (low..high).step_by(step as usize) {
            let Some(want) = by_gimli(&image, &bases, address) else { continue };
            asked += 1;
            assert_eq!(table.rule(address), Some(want), "{path:?} at {address:x}");
            same += 1;
        }
        assert!(asked > 15 && same == asked, "{path:?}: {same} of {asked}");
    }
}

#[test]
fn the_vdso_has_a_table() {
    let (len, new) = vdso::own().unwrap();
    let table = new.table;
    assert!(len >= 4096);
    assert!(table.functions >= 3 && table.pages() >= 1, "{table:?}");
}

/// One function of 16 bytes at 0x1000 with these instructions, in .eh_frame at 0x2000.
fn small(instructions: &[u8]) -> Image {
    let mut bytes = Vec::new();
    let entry = |bytes: &mut Vec<u8>, body: &[u8]| {
        let len = body.len().next_multiple_of(4);
        bytes.extend((len as u32).to_le_bytes());
        bytes.extend(body);
        bytes.resize(bytes.len() + len - body.len(), 0);
    };
    // Version 1, "zR", factors 1 and -8, RA 16, sdata4 pcrel; CFA is rsp + 8, RA at CFA - 8.
    let head = [0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1];
    entry(&mut bytes, &head);
    let mut body = ((bytes.len() + 4) as u32).to_le_bytes().to_vec();
    let at = 0x2000 + bytes.len() as i64 + 8;
    body.extend(((0x1000 - at) as i32).to_le_bytes());
    body.extend(16u32.to_le_bytes());
    body.push(0);
    body.extend(instructions);
    entry(&mut bytes, &body);
    bytes.extend([0; 4]);
    let code = image::Segment { offset: 0x1000, address: 0x1000, size: 0x1000, code: true };
    Image {
        segments: vec![code],
        frames: image::Section { address: 0x2000, bytes },
        debug: false,
        plain: None,
    }
}

#[test]
fn rows_gaps_and_ends_of_a_small_function() {
    // 4 bytes on: CFA rsp + 16, rbp at CFA - 16; 4 more: CFA by r10; 4 more: no return address.
    let table = table_of(&small(&[0x44, 0x0e, 16, 0x86, 2, 0x44, 0x0d, 10, 0x44, 0x07, 16])).unwrap();
    let rule = |address| table.rule(address).unwrap();
    assert_eq!(
        rule(0x1000),
        UnwindRule {
            cfa: CfaRule::Sp,
            cfa_offset: 8,
            fp: FpRule::Same,
            fp_offset: 0,
            return_address: ReturnRule::BelowCfa
        }
    );
    let pushed = UnwindRule {
        cfa: CfaRule::Sp,
        cfa_offset: 16,
        fp: FpRule::AtCfa,
        fp_offset: -16,
        return_address: ReturnRule::BelowCfa,
    };
    assert_eq!((rule(0x1003).cfa_offset, rule(0x1004), rule(0x1007)), (8, pushed, pushed));
    assert_eq!((rule(0x1008), rule(0x100b)), (UnwindRule::UNSUPPORTED, UnwindRule::UNSUPPORTED));
    assert_eq!((rule(0x100c), rule(0x100f)), (UnwindRule::END, UnwindRule::END));
    assert_eq!((rule(0x1010), rule(0x1fff)), (UnwindRule::GAP, UnwindRule::GAP));
    assert_eq!((table.rule(0xfff), table.rule(0x2000)), (None, None));
    let words = table.numbered(&(100..).take(table.rules.len()).collect::<Vec<_>>());
    assert_eq!((words.len(), words[0], words[1]), (table.words(), 2, table.words() as u32));
    for (word, row) in words.iter().skip(2).zip(&table.rows) {
        assert_eq!(*word, row + 100);
    }
}

#[test]
fn a_compressed_section_is_read_and_bounded() {
    use std::io::Write;
    let pack = |bytes: &[u8], kind: u32, size: u64| {
        let mut writer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        writer.write_all(bytes).unwrap();
        let head = [u64::from(kind), size, 1].map(u64::to_le_bytes).concat();
        [head, writer.finish().unwrap()].concat()
    };
    let zeros = vec![0; 10 << 20];
    assert_eq!(elf::unpacked(&pack(&zeros, 1, 10 << 20), 10 << 20), Ok(zeros.clone()));
    assert_eq!(elf::unpacked(&pack(&zeros, 1, 100), 10 << 20).map(|all| all.len()), Ok(100), "as it says");
    let too_much = Err(TableError::TooMuch("bytes of unwind information"));
    assert_eq!(elf::unpacked(&pack(&zeros, 1, u64::MAX), 1 << 20), too_much);
    assert_eq!(elf::unpacked(&pack(&zeros, 1, 11 << 20), 64 << 20), Err(TableError::Malformed));
    assert_eq!(elf::unpacked(&pack(&zeros, 2, 1), 64 << 20), Err(TableError::Nothing));
    assert_eq!(elf::unpacked(&[1; 23], 64 << 20), Err(TableError::Malformed));
}

#[test]
fn code_that_is_too_large_is_refused() {
    let mut image = small(&[]);
    image.segments[0].size = 4 << 30;
    assert_eq!(table_of(&image), Err(TableError::TooMuch("pages of code")));
    image.segments[0].size = u64::MAX;
    assert_eq!(table_of(&image), Err(TableError::Malformed));
    image.segments.clear();
    assert_eq!(table_of(&image), Err(TableError::Nothing));
    assert_eq!(
        table_of(&Image { frames: image::Section::default(), ..small(&[]) }),
        Err(TableError::Nothing)
    );
}

#[test]
fn rows_without_unwind_information_hold_up_to_the_next() {
    let image = Image { frames: image::Section::default(), ..small(&[]) };
    let table = build::of_rows(&image, &[(0x1000, UnwindRule::END), (0x1010, UnwindRule::GAP)]).unwrap();
    let rules = [0x1000, 0x100f, 0x1010, 0x1fff].map(|address| table.rule(address).unwrap());
    assert_eq!(rules, [UnwindRule::END, UnwindRule::END, UnwindRule::GAP, UnwindRule::GAP]);
    assert_eq!((table.rule(0xfff), table.rule(0x2000)), (None, None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_instructions_end(instructions in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(table) = table_of(&small(&instructions)) {
            prop_assert!(table.rows.len() <= 4096 + 2);
            prop_assert!(table.index.is_sorted());
            for address in 0x1000..0x1020 { table.rule(address); }
        }
    }

    #[test]
    fn a_spoilt_file_is_read_or_refused(
        spoils in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        headers in any::<bool>(),
        cut in any::<prop::sample::Index>(),
    ) {
        static BYTES: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {
            std::fs::read("/usr/lib/x86_64-linux-gnu/libz.so.1").unwrap()
        });
        let mut bytes = BYTES.clone();
        let frames = Image::of_bytes(&bytes).unwrap().frames;
        for (at, value) in spoils {
            // Headers, or the unwind information.
            let place = if headers { at.index(1024) } else { frames.address as usize + at.index(frames.bytes.len()) };
            if let Some(byte) = bytes.get_mut(place) { *byte = value; }
        }
        if cut.index(4) == 0 { bytes.truncate(cut.index(bytes.len())); }
        if let Ok(image) = Image::of_bytes(&bytes)
            && let Ok(table) = table_of(&image)
        {
            prop_assert!(table.words() <= 4 << 20);
            image.key();
        }
    }
}
