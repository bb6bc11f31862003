//! ELF files whose headers, unwind tables, symbols and compressed sections lie. Each has, in its second page, code that
//! runs; all else in it is somebody's guess at what a reader of ELF forgets to check.

use anyhow::{Context as _, Result, ensure};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Counts its argument down.
#[cfg(target_arch = "x86_64")]
const CODE: &[u8] = &[0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3];
#[cfg(target_arch = "aarch64")]
const CODE: &[u8] = &[0x00, 0x04, 0x00, 0xf1, 0xe1, 0xff, 0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6];
/// EM_X86_64, EM_AARCH64 (elf.h).
const MACHINE: u16 = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
const PAGE: u64 = 4096;
/// Bytes that the compressed sections come to.
const INFLATED: u64 = 512 << 20;

/// A section: name, type, flags, contents, entry size, and what its header says instead of the contents' size.
struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    bytes: Vec<u8>,
    entry: u64,
    size: Option<u64>,
    link: u32,
}

impl Section {
    fn new(name: &'static str, kind: u32, bytes: Vec<u8>) -> Self {
        Self { name, kind, flags: 0, bytes, entry: 0, size: None, link: 0 }
    }
}

const PROGBITS: u32 = 1;
const SYMTAB: u32 = 2;
const STRTAB: u32 = 3;
/// SHF_COMPRESSED.
const COMPRESSED: u64 = 0x800;

/// A file of these sections; section 1 is .text.
fn file(sections: &[Section]) -> Vec<u8> {
    let mut bytes = vec![0_u8; 2 * PAGE as usize];
    bytes[PAGE as usize..PAGE as usize + CODE.len()].copy_from_slice(CODE);
    let mut names = b"\0.text\0.shstrtab\0".to_vec();
    let mut headers = vec![[0_u64; 10], [1, 1, 6, PAGE, PAGE, PAGE, 0, 0, 16, 0]];
    for section in sections {
        let name = names.len() as u64;
        names.extend(section.name.bytes().chain([0]));
        let size = section.size.unwrap_or(section.bytes.len() as u64);
        let kind = u64::from(section.kind);
        let link = u64::from(section.link);
        headers.push([name, kind, section.flags, 0, bytes.len() as u64, size, link, 1, 1, section.entry]);
        bytes.extend(&section.bytes);
        bytes.resize(bytes.len().next_multiple_of(16), 0);
    }
    headers.push([7, u64::from(STRTAB), 0, 0, bytes.len() as u64, names.len() as u64, 0, 0, 1, 0]);
    bytes.extend(&names);
    bytes.resize(bytes.len().next_multiple_of(16), 0);
    let at = bytes.len() as u64;
    for [name, kind, flags, addr, offset, size, link, info, align, entry] in &headers {
        for word in [*name as u32, *kind as u32] {
            bytes.extend(word.to_le_bytes());
        }
        for word in [flags, addr, offset, size] {
            bytes.extend(word.to_le_bytes());
        }
        for word in [*link as u32, *info as u32] {
            bytes.extend(word.to_le_bytes());
        }
        for word in [align, entry] {
            bytes.extend(word.to_le_bytes());
        }
    }
    let mut head = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    head.extend(3_u16.to_le_bytes());
    head.extend(MACHINE.to_le_bytes());
    head.extend(1_u32.to_le_bytes());
    for word in [PAGE, 64, at] {
        head.extend(word.to_le_bytes());
    }
    head.extend(0_u32.to_le_bytes());
    for half in [64, 56, 2, 64, headers.len() as u16, headers.len() as u16 - 1] {
        head.extend(half.to_le_bytes());
    }
    // PT_LOAD of the code, PT_GNU_EH_FRAME of the first section of ours.
    let table = headers.get(2).map_or([0, 0], |header| [header[4], header[5]]);
    for (kind, flags, offset, size) in [(1_u32, 5_u32, PAGE, PAGE), (0x6474_e550, 4, table[0], table[1])] {
        head.extend(kind.to_le_bytes());
        head.extend(flags.to_le_bytes());
        for word in [offset, offset, offset, size, size, PAGE] {
            head.extend(word.to_le_bytes());
        }
    }
    bytes[..head.len()].copy_from_slice(&head);
    bytes
}

/// Symbols: (name's offset, address, size).
fn symbols(all: impl Iterator<Item = (u32, u64, u64)>) -> Vec<u8> {
    let mut bytes = vec![0_u8; 24];
    for (name, address, size) in all {
        bytes.extend(name.to_le_bytes());
        bytes.extend([0x12, 0, 1, 0]);
        bytes.extend(address.to_le_bytes());
        bytes.extend(size.to_le_bytes());
    }
    bytes
}

/// A symbol table and its names, which are sections 2 and 3.
fn with_symbols(table: Vec<u8>, names: Vec<u8>) -> Vec<u8> {
    let mut symtab = Section::new(".symtab", SYMTAB, table);
    (symtab.entry, symtab.link) = (24, 3);
    file(&[symtab, Section::new(".strtab", STRTAB, names)])
}

/// A plain file with a field of its header, or of section header 2, overwritten.
fn spoiled(at: usize, value: &[u8]) -> Vec<u8> {
    let mut bytes = with_symbols(symbols([(1, PAGE, 16)].into_iter()), b"\0name\0".to_vec());
    bytes[at..at + value.len()].copy_from_slice(value);
    bytes
}

/// The same of a section's header.
fn spoiled_section(field: usize, value: u64) -> Vec<u8> {
    let mut bytes = with_symbols(symbols([(1, PAGE, 16)].into_iter()), b"\0name\0".to_vec());
    let table = u64::from_le_bytes(bytes[40..48].try_into().unwrap_or_default()) as usize;
    bytes[table + 128 + field..table + 128 + field + 8].copy_from_slice(&value.to_le_bytes());
    bytes
}

/// `.eh_frame` of one length, over and over.
fn frames(record: &[u8], times: usize) -> Vec<u8> {
    file(&[Section::new(".eh_frame", PROGBITS, record.repeat(times))])
}

/// All files by name.
fn all() -> Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    let mut add = |name: &str, bytes: Vec<u8>| files.push((name.to_owned(), bytes));
    let most = u64::MAX.to_le_bytes();
    for (name, at, value) in [
        ("phoff", 32, &most[..]),
        ("shoff", 40, &most),
        ("shoff-inside-text", 40, &PAGE.to_le_bytes()),
        ("phentsize", 54, &[1, 0]),
        ("phnum", 56, &[0xff, 0xff]),
        ("shentsize", 58, &[1, 0]),
        ("shnum", 60, &[0xff, 0xff]),
        ("shnum-0", 60, &[0, 0]),
        ("shstrndx", 62, &[0xff, 0xff]),
        ("class-32", 4, &[1]),
        ("big-endian", 5, &[2]),
        ("load-size", 64 + 32, &most),
        ("load-offset", 64 + 8, &most),
        ("load-address", 64 + 16, &most),
    ] {
        add(name, spoiled(at, value));
    }
    for (name, field, value) in [
        ("symtab-offset", 24, u64::MAX - 8),
        ("symtab-size", 32, u64::MAX),
        ("symtab-size-tb", 32, 1 << 40),
        ("symtab-link", 40, 0xffff_ffff),
        ("symtab-link-self", 40, 2),
        ("symtab-entry-0", 56, 0),
        ("symtab-entry-1", 56, 1),
        ("symtab-entry-most", 56, u64::MAX),
    ] {
        add(name, spoiled_section(field, value));
    }
    // A million symbols at one address, each with a name of up to a megabyte that is the tail of the last one's.
    let mut long = vec![b'n'; 1 << 20];
    long.push(0);
    add("names-overlap", with_symbols(symbols((0..1_000_000).map(|i| (i, PAGE, 16))), long.clone()));
    add("names-cover-all", with_symbols(symbols((0..1_000_000).map(|i| (i % 7, 0, u64::MAX))), long.clone()));
    let mangled = format!("\0{}\0", super::names::small()).into_bytes();
    add("names-mangled", with_symbols(symbols((0..100_000).map(|i| (1, PAGE + i % 8, 1))), mangled));
    // Records of .eh_frame (LSB, 10.6): lengths of nothing, of everything, of themselves; FDEs that point at FDEs.
    add("frames-endless", frames(&[4, 0, 0, 0, 0, 0, 0, 0], 1 << 20));
    add("frames-huge", frames(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], 4));
    add("frames-loop", frames(&[12, 0, 0, 0, 4, 0, 0, 0, 0, 0x10, 0, 0, 0, 0x10, 0, 0], 1 << 18));
    let mut cie = vec![20, 0, 0, 0, 0, 0, 0, 0, 1];
    cie.extend(b"zPLR\0\x01\x78\x10\xff\xff\xff\xff\x0f\xff\xff");
    add("frames-augmentation", frames(&cie, 1 << 16));
    // One CIE, and FDEs for every byte of code, each with a stack of remembered states.
    let mut deep =
        vec![20, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0];
    let mut fde = Vec::new();
    fde.extend(1020_u32.to_le_bytes());
    fde.extend(28_u32.to_le_bytes());
    fde.extend((PAGE as u32).to_le_bytes());
    fde.extend(PAGE.to_le_bytes()[..4].iter());
    fde.push(0);
    fde.resize(1024, 0x0a);
    deep.extend(fde);
    add("frames-states", file(&[Section::new(".eh_frame", PROGBITS, deep)]));
    let mut index = vec![1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0];
    index.extend(u32::MAX.to_le_bytes());
    index.resize(4096, 0xff);
    add("index-count", file(&[Section::new(".eh_frame_hdr", PROGBITS, index)]));
    // Sections that inflate: what they say they come to, and what they come to.
    let zeros = zlib_of_zeros()?;
    let mut old = b"ZLIB".to_vec();
    old.extend(u64::MAX.to_be_bytes());
    old.extend(&zeros);
    add("zdebug-most", file(&[Section::new(".zdebug_info", PROGBITS, old.clone())]));
    old[4..12].copy_from_slice(&INFLATED.to_be_bytes());
    add("zdebug-bomb", file(&[Section::new(".zdebug_line", PROGBITS, old)]));
    for (name, section, says) in [
        ("compressed-most", ".debug_info", u64::MAX),
        ("compressed-symbols", ".symtab", INFLATED),
        ("compressed-frames", ".eh_frame", INFLATED),
    ] {
        // Elf64_Chdr: ELFCOMPRESS_ZLIB, reserved, size, alignment.
        let mut bytes = vec![1, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend(says.to_le_bytes());
        bytes.extend(1_u64.to_le_bytes());
        bytes.extend(&zeros);
        let kind = if section == ".symtab" { SYMTAB } else { PROGBITS };
        let mut section = Section::new(section, kind, bytes);
        (section.flags, section.entry) = (COMPRESSED, 24);
        add(name, file(&[section]));
    }
    if let Ok(xz) = filtered("xz", &["-c", "-1", "-T1"], INFLATED) {
        add("debugdata-bomb", file(&[Section::new(".gnu_debugdata", PROGBITS, xz)]));
    }
    // Debug links to what is no file, and build ids of a megabyte.
    add(
        "debuglink-device",
        file(&[Section::new(".gnu_debuglink", PROGBITS, b"../../../../../dev/zero\0\0\0\0\0".to_vec())]),
    );
    let mut note = Vec::new();
    for word in [4_u32, 1 << 20, 3] {
        note.extend(word.to_le_bytes());
    }
    note.extend(b"GNU\0");
    note.resize((1 << 20) + 16, 0xab);
    add("build-id", file(&[Section::new(".note.gnu.build-id", 7, note)]));
    Ok(files)
}

/// [`INFLATED`] zeros as a zlib stream: gzip's deflate with another head and sum.
fn zlib_of_zeros() -> Result<Vec<u8>> {
    let gzip = filtered("gzip", &["-n", "-1", "-c"], INFLATED)?;
    let deflate = gzip.get(10..gzip.len().saturating_sub(8)).context("gzip's output is short")?;
    let mut bytes = vec![0x78, 0x01];
    bytes.extend(deflate);
    // Adler-32 of n zeros.
    bytes.extend(((((INFLATED % 65521) as u32) << 16) | 1).to_be_bytes());
    Ok(bytes)
}

/// What a program makes of so many zeros.
fn filtered(program: &str, words: &[&str], zeros: u64) -> Result<Vec<u8>> {
    let mut child = Command::new(program)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let mut input = child.stdin.take().context("no pipe")?;
    let feeder = std::thread::spawn(move || {
        let block = vec![0_u8; 1 << 20];
        (0..zeros >> 20).all(|_| input.write_all(&block).is_ok())
    });
    let output = child.wait_with_output().with_context(|| format!("waiting for {program}"))?;
    ensure!(feeder.join().unwrap_or(false) && output.status.success(), "{program} failed");
    Ok(output.stdout)
}

/// Writes all into a directory.
pub fn write(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for (name, bytes) in all()? {
        let path = dir.join(name);
        std::fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))?;
        paths.push(path);
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_in_the_second_page() {
        let bytes = with_symbols(symbols([(1, PAGE, 16)].into_iter()), b"\0name\0".to_vec());
        assert_eq!(&bytes[4096..4096 + CODE.len()], CODE);
        assert_eq!(&bytes[..4], b"\x7fELF");
        // Four headers of ours and the null one, the last of them the names'.
        assert_eq!((bytes[60], bytes[62]), (5, 4));
        let table = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
        assert_eq!(bytes.len(), table + 5 * 64);
    }
}
