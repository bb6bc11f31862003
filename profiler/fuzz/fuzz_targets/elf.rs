//! Program files that lie: unwind tables and names of frames, from any file. No panic, no hang, limits kept.
//!
//! The first byte chooses what the others are: a file as it is; places and bytes that spoil a sound file, which is
//! looked at itself or packed into another one's .gnu_debugdata; or a section of a sound file: .eh_frame, .debug_frame,
//! .gnu_debugdata, .gopclntab, the index of .eh_frame, .eh_frame behind a sound one, or code of which nothing tells.
#![cfg_attr(fuzzing, no_main)]

use emberscope_symbolize::native_names;
use emberscope_unwind::table::{Image, Table, part_of, table_of};
use libfuzzer_sys::fuzz_target;
use lzma_rust2::{XzOptions, XzWriter};
use std::fs::File;
use std::io::Write;
use std::sync::LazyLock;

/// As the daemon has it, and so little that nearly all files' symbols stay where they are.
const SYMBOL_BYTES: [u64; 2] = [20 << 20, 800];
/// Where the file's code is, in the file and in memory.
const CODE: (u64, u64) = (0x1000, 0x40_1000);

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    match choice % 10 {
        0 => look(bytes),
        1 => look(&spoilt(bytes)),
        2 => look(&elf(&[(".eh_frame", bytes)])),
        3 => look(&elf(&[(".debug_frame", bytes)])),
        4 => look(&elf(&[(".gnu_debugdata", bytes)])),
        5 => look(&elf(&[(".gopclntab", bytes), (".text", &[0xc3; 64])])),
        6 => look(&elf(&[(".eh_frame", &frames()), (".eh_frame_hdr", bytes)])),
        7 => look(&elf(&[(".eh_frame", bytes), (".eh_frame_hdr", &index(FIRST, bytes.len()))])),
        8 => look(&coded(bytes)),
        _ => look(&elf(&[(".gnu_debugdata", &packed(&spoilt(bytes)))])),
    }
});

fn look(bytes: &[u8]) {
    let file = rustix::fs::memfd_create("fuzzed", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let mut file = File::from(file);
    file.write_all(bytes).unwrap();
    let size = bytes.len() as u64;
    if let Ok(image) = Image::of_file(&file, size, u64::MAX) {
        let told = Image { plain: None, ..image.clone() };
        assert!(image.plain.is_some() || Image::of_bytes(bytes) == Ok(told));
        image.key();
        image.address_at(CODE.0);
        if let Ok(table) = table_of(&image) {
            judge(&table);
        }
    }
    for part in [0, 15, 16, 17, u32::MAX] {
        if let Ok(table) = part_of(&file, size, part) {
            assert!(table.pages() <= 64);
            judge(&table);
        }
    }
    let offsets = [0, CODE.0, CODE.0 + 1, CODE.0 + 63, size, u64::MAX];
    for limit in SYMBOL_BYTES {
        if let Ok(names) = native_names(&file, &offsets, limit) {
            assert!(names.iter().flatten().all(|name| name.len() <= 8192));
        }
    }
}

/// A file whose code are these bytes, of which nothing else tells.
fn coded(bytes: &[u8]) -> Vec<u8> {
    let mut file = elf(&[]);
    file.resize(CODE.0 as usize, 0);
    file.extend(bytes);
    file.resize(CODE.0 as usize + 4096, 0xcc);
    file
}

/// What the walker leans on.
fn judge(table: &Table) {
    assert!(table.words() <= 4 << 20 && table.rules.len() <= 4098);
    assert!(
        table.index.is_sorted() && table.index.last().is_some_and(|end| *end as usize == table.rows.len())
    );
    let page = |nth: u32| table.page.wrapping_add(u64::from(nth)).wrapping_shl(12);
    let last = table.pages().saturating_sub(1);
    for address in [page(0), page(0) | 0xfff, page(last / 2) | 0x10, page(last), page(last) | 0xfff] {
        assert!(table.pages() == 0 || table.rule(address).is_some());
    }
    assert_eq!(table.rule(page(table.pages())), None);
}

/// A sound file with bytes of it replaced: two bytes say where, two are put there.
fn spoilt(bytes: &[u8]) -> Vec<u8> {
    static SOUND: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let (names, symbols) = symbols();
        let inner = packed(&elf(&[(".strtab", &names), (".symtab", &symbols)]));
        let parts: [(&str, &[u8]); 8] = [
            (".text", &[0xc3; 64]),
            (".eh_frame", &frames()),
            (".eh_frame_hdr", &index(FIRST + 64, frames().len())),
            (".debug_frame", &frames()),
            (".strtab", &names),
            (".dynsym", &symbols),
            (".note.gnu.build-id", b"\x04\0\0\0\x08\0\0\0\x03\0\0\0GNU\x0012345678"),
            (".gnu_debugdata", &inner),
        ];
        elf(&parts)
    });
    let mut file = SOUND.clone();
    for change in bytes.chunks_exact(4) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
        if let Some(place) = file.get_mut(at..at + 2) {
            place.copy_from_slice(&change[2..]);
        }
    }
    file
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(0)).unwrap();
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

/// Names, and two symbols.
fn symbols() -> (Vec<u8>, Vec<u8>) {
    let mut symbols = vec![0; 24];
    for (name, at) in [(1u32, CODE.1), (9, CODE.1 + 32)] {
        symbols.extend(name.to_le_bytes());
        symbols.extend([0x12, 0, 1, 0]);
        symbols.extend(at.to_le_bytes());
        symbols.extend(32u64.to_le_bytes());
    }
    (b"\0_ZN1a1bE\0_ZN1a1bE\0".to_vec(), symbols)
}

/// A CIE and one function of 64 bytes.
fn frames() -> Vec<u8> {
    let mut bytes = vec![20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0, 0, 0, 0, 0];
    bytes.extend([32, 0, 0, 0, 28, 0, 0, 0]);
    bytes.extend(CODE.1.to_le_bytes());
    bytes.extend(64u64.to_le_bytes());
    bytes.extend([0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0, 0, 0, 0]);
    bytes
}

/// Where the first section is, behind two program headers.
const FIRST: u64 = 64 + 2 * 56;

/// The index of .eh_frame, which lies at `frames` and has so many bytes, right before it: of one function.
fn index(frames: u64, bytes: usize) -> Vec<u8> {
    let at = frames + bytes as u64;
    let from = |base: u64, to: u64| (to.wrapping_sub(base) as u32).to_le_bytes();
    let words = [from(at + 4, frames), 1u32.to_le_bytes(), from(at, CODE.1), from(at, frames + 24)];
    [&[1, 0x1b, 3, 0x3b][..], words.as_flattened()].concat()
}

/// A file with these sections and a segment of code.
fn elf(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut file = vec![0; 64];
    let word = |file: &mut Vec<u8>, at: usize, value: u64, len: usize| {
        file[at..at + len].copy_from_slice(&value.to_le_bytes()[..len]);
    };
    file[..6].copy_from_slice(b"\x7fELF\x02\x01");
    for (at, value, len) in [
        (16, 3, 2),
        (18, 62, 2),
        (20, 1, 4),
        (24, CODE.1, 8),
        (32, 64, 8),
        (52, 64, 2),
        (54, 56, 2),
        (56, 2, 2),
    ] {
        word(&mut file, at, value, len);
    }
    file.resize(FIRST as usize, 0);
    for (at, value, len) in
        [(0, 1, 4), (4, 5, 4), (8, CODE.0, 8), (16, CODE.1, 8), (32, 4096, 8), (40, 4096, 8)]
    {
        word(&mut file, 64 + at, value, len);
    }
    let mut headers = vec![0; 64];
    let mut names = vec![0];
    for (name, bytes) in parts.iter().chain([&(".shstrtab", &[][..])]) {
        let nth = |wanted: &str| parts.iter().position(|(name, _)| *name == wanted).map_or(0, |nth| nth + 1);
        let kind = match *name {
            ".symtab" => 2,
            ".dynsym" => 11,
            ".strtab" | ".shstrtab" => 3,
            ".note.gnu.build-id" => 7,
            _ => 1,
        };
        let at = headers.len();
        headers.resize(at + 64, 0);
        let name_at = names.len();
        names.extend(name.bytes().chain([0]));
        let bytes = if *name == ".shstrtab" { &names[..] } else { *bytes };
        let address = if *name == ".text" { CODE.1 } else { file.len() as u64 };
        let fields = [
            (0, name_at as u64, 4),
            (4, kind, 4),
            (16, address, 8),
            (24, file.len() as u64, 8),
            (32, bytes.len() as u64, 8),
            (40, if kind == 2 || kind == 11 { nth(".strtab") as u64 } else { 0 }, 4),
            (56, if kind == 2 || kind == 11 { 24 } else { 0 }, 8),
        ];
        for (field, value, len) in fields {
            word(&mut headers, at + field, value, len);
        }
        if *name == ".eh_frame_hdr" {
            let (from, len) = (file.len() as u64, bytes.len() as u64);
            for (at, value, len) in [(0, 0x6474_e550, 4), (8, from, 8), (16, from, 8), (32, len, 8)] {
                word(&mut file, 64 + 56 + at, value, len);
            }
        }
        file.extend(bytes);
    }
    let (at, count) = (file.len() as u64, (headers.len() / 64) as u64);
    for (field, value, len) in [(40, at, 8), (58, 64, 2), (60, count, 2), (62, count - 1, 2)] {
        word(&mut file, field, value, len);
    }
    file.extend(headers);
    file
}
