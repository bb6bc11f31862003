//! Symbols that were taken out of a file: where distributions put them, and how to know that they are its own.
//!
//! In: a stripped file and its path. Out: the symbols of its debug file, by build id below /usr/lib/debug/.build-id or
//! by .gnu_debuglink beside it (gdb's manual, "Separate Debug Files"), else of its .gnu_debugdata, an ELF file packed
//! with xz. Debug files are looked for on the node, not in containers: a file system of a container may be
//! served by a program that never answers. Only files of root, or of who owns the file itself, are taken, and only
//! with the same build id (without one: the same checksum).

use emberscope_target::elf::{Headers, Image, memory_file};
use emberscope_target::open;
use emberscope_target::text::hex;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where debug files are.
const DEBUG: &str = "usr/lib/debug";
/// Largest .gnu_debuglink: a name and a checksum.
const MAX_LINK: u64 = 4096 + 8;
/// Largest file whose checksum is taken.
const MAX_SUMMED: u64 = 64 << 20;
/// Largest .gnu_debugdata, and what it may unpack to: that of Fedora's libjvm has 1.2 MB and 9 MB.
const MAX_PACKED: u64 = 4 << 20;
const MAX_UNPACKED: u64 = 24 << 20;
/// Memory for unpacking, KiB: `xz -6`, the usual, wants 9 MiB (xz(1)).
const UNPACK_KB: u32 = 12 << 10;

/// The symbols that were taken out of `file`, if they can be had and take at most `limit` bytes.
/// `fetched`: where a server's debug file is, if it came.
pub fn find(
    headers: &Headers,
    (file, metadata): (&File, &Metadata),
    path: &Path,
    fetched: Option<&Path>,
    limit: u64,
) -> Option<Image> {
    find_below(Path::new("/"), headers, (file, metadata), (path, fetched), limit)
        .or_else(|| unpacked(&headers.section(file, ".gnu_debugdata", MAX_PACKED)?, limit))
}

pub(super) fn find_below(
    root: &Path,
    headers: &Headers,
    (file, metadata): (&File, &Metadata),
    (path, fetched): (&Path, Option<&Path>),
    limit: u64,
) -> Option<Image> {
    let root = open::root(root).ok()?;
    let id = headers.build_id(file);
    let link = headers.section(file, ".gnu_debuglink", MAX_LINK).and_then(|link| Link::parse(&link));
    let by_id = id.as_deref().map(by_build_id);
    let linked = link.iter().flat_map(|link| link.places(path));
    let fetched = fetched.map(Path::to_owned);
    by_id.into_iter().chain(linked).chain(fetched).find_map(|place| {
        let (found, stat) = open::any_regular_file(&root, &place).ok()?;
        if stat.st_uid != 0 && stat.st_uid != metadata.uid() {
            return None;
        }
        let theirs = Headers::read(&found, stat.st_size as u64).ok()?;
        let same = match &id {
            Some(id) => theirs.build_id(&found).as_ref() == Some(id),
            None => link.as_ref().is_some_and(|link| checksum(&found) == Some(link.checksum)),
        };
        let symbols = theirs.symbol_tables().iter().any(|table| !table.dynamic);
        (same && symbols).then(|| theirs.image(&found, limit).ok())?
    })
}

/// What .gnu_debuglink says.
struct Link {
    name: PathBuf,
    checksum: u32,
}

impl Link {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().position(|byte| *byte == 0)?;
        let name = OsStr::from_bytes(bytes.get(..end)?);
        // A name, not a way to somewhere else.
        let plain = !name.is_empty() && Path::new(name).file_name() == Some(name);
        let at = (end + 1).next_multiple_of(4);
        let checksum = u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?);
        plain.then(|| Self { name: name.into(), checksum })
    }

    /// Relative to the root.
    fn places(&self, path: &Path) -> impl Iterator<Item = PathBuf> {
        let dir = path.parent().unwrap_or(Path::new("/"));
        let dir = dir.strip_prefix("/").unwrap_or(dir).to_owned();
        // A file beside it with its own name is itself.
        let beside = (path.file_name() != Some(self.name.as_os_str())).then(|| dir.join(&self.name));
        let others = [dir.join(".debug").join(&self.name), Path::new(DEBUG).join(&dir).join(&self.name)];
        beside.into_iter().chain(others)
    }
}

fn by_build_id(id: &[u8]) -> PathBuf {
    let (first, rest) = id.split_at(1.min(id.len()));
    Path::new(DEBUG).join(".build-id").join(hex(first)).join(format!("{}.debug", hex(rest)))
}

/// The CRC-32 of a file that is not too large for that.
fn checksum(file: &File) -> Option<u32> {
    let mut crc = flate2::Crc::new();
    let mut buffer = vec![0; 64 << 10];
    if file.metadata().ok()?.len() > MAX_SUMMED {
        return None;
    }
    // It may grow meanwhile.
    let mut file = file.take(MAX_SUMMED);
    loop {
        match file.read(&mut buffer).ok()? {
            0 => return Some(crc.sum()),
            read => crc.update(buffer.get(..read)?),
        }
    }
}

/// The symbols in an ELF file packed with xz.
fn unpacked(packed: &[u8], limit: u64) -> Option<Image> {
    let reader = lzma_rust2::XzReader::new_mem_limit(packed, false, UNPACK_KB);
    let mut file = memory_file().ok()?;
    let size = std::io::copy(&mut reader.take(MAX_UNPACKED + 1), &mut file).ok()?;
    if size > MAX_UNPACKED {
        return None;
    }
    file.flush().ok()?;
    let headers = Headers::read(&file, size).ok()?;
    headers.image(&file, limit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lzma_rust2::{XzOptions, XzWriter};

    /// 64 MiB of nothing are 10 KB.
    fn packed(bytes: u64) -> Vec<u8> {
        let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(0)).unwrap();
        std::io::copy(&mut std::io::repeat(0).take(bytes), &mut writer).unwrap();
        writer.finish().unwrap()
    }

    #[test]
    fn a_packed_file_that_grows_too_much_is_left_out() {
        let bomb = packed(4 * MAX_UNPACKED);
        assert!((bomb.len() as u64) < MAX_PACKED, "{}", bomb.len());
        assert!(unpacked(&bomb, u64::MAX).is_none());
        // It is no ELF file, and small: read to its end.
        assert!(unpacked(&packed(4096), u64::MAX).is_none());
    }
}
