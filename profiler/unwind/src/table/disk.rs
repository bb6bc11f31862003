//! Keeps tables in the daemon's own directory, so that the next start need not build them.
//!
//! A file a table, named by the key of what it was built from; a head with a version, the numbers, and a hash over all.
//! What does not fit exactly is built anew. Small tables are not kept: building them costs less. At most
//! [`MAX_BYTES`] in all; the longest unused goes first. An error here is never one of the daemon's.

use super::Table;
use super::build::MAX_WORDS;
use profiler_ebpf::UnwindRule;
use std::hash::{DefaultHasher, Hasher};
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Bytes of all files together.
pub const MAX_BYTES: u64 = 128 << 20;
/// Files of the directory that are looked at.
const MAX_FILES: usize = 4096;
/// Tables of fewer rows are built in a millisecond or two.
const MIN_ROWS: usize = 4096;
/// The first word of a file: another with every change of what the numbers below mean.
const MAGIC: u64 = u64::from_le_bytes(*b"EmbRows1");
/// Words of the head: magic, key, page, index, rows, rules, rows read, functions.
const HEAD: usize = 8;
const ENDING: &str = "rows";

/// The directory that tables are kept in.
#[derive(Clone, Debug)]
pub struct Disk {
    dir: PathBuf,
    /// One of those that share it writes at a time: it takes away what another left half written.
    writing: Arc<Mutex<()>>,
}

impl Disk {
    /// Tables in the directory `dir`, which is the daemon's own and is made where it is missing.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn open(dir: &Path) -> std::io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        Ok(Self { dir: dir.to_owned(), writing: Arc::default() })
    }

    fn path(&self, key: u64) -> PathBuf {
        self.dir.join(format!("{key:016x}.{ENDING}"))
    }

    /// The table, if it is there and sound.
    pub fn get(&self, key: u64) -> Option<Table> {
        let path = self.path(key);
        let file = std::fs::File::open(&path).ok()?;
        let length = file.metadata().ok()?.len();
        let most = (HEAD * 8 + 8 + MAX_WORDS * 8) as u64;
        if length > most {
            return None;
        }
        let table = decode(file, length, key)?;
        // Its use: what is longest unused goes first.
        let _ =
            std::fs::File::options().append(true).open(&path).and_then(|f| f.set_modified(SystemTime::now()));
        Some(table)
    }

    /// Keeps a table, unless it is small.
    ///
    /// # Errors
    /// The directory cannot be read, an old file not removed, or the new one not written or renamed. The table is not
    /// kept then.
    pub fn put(&self, key: u64, table: &Table) -> std::io::Result<()> {
        if table.rows.len() < MIN_ROWS {
            return Ok(());
        }
        // Nothing is guarded but files, each of which is whole or has another ending.
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.make_room(length_of(table.index.len(), table.rows.len(), table.rules.len()))?;
        let new = self.dir.join(format!("{key:016x}.new"));
        let file = std::fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        encode(file, key, table)?;
        std::fs::rename(&new, self.path(key))
    }

    fn make_room(&self, bytes: u64) -> std::io::Result<()> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.dir)?.flatten().take(MAX_FILES) {
            let path = entry.path();
            let Ok(meta) = entry.metadata() else { continue };
            match path.extension().and_then(|e| e.to_str()) {
                Some(ENDING) if meta.is_file() => files.push((meta.modified()?, meta.len(), path)),
                // Left by a daemon that ended meanwhile.
                Some("new") if meta.is_file() => std::fs::remove_file(path)?,
                _ => {}
            }
        }
        files.sort();
        let mut all: u64 = files.iter().map(|(_, len, _)| len).sum();
        let mut count = files.len();
        for (_, len, path) in files {
            if all.saturating_add(bytes) <= MAX_BYTES && count < MAX_FILES / 2 {
                break;
            }
            std::fs::remove_file(path)?;
            all -= len;
            count -= 1;
        }
        Ok(())
    }
}

/// Bytes of a file with so many words of the index, rows and rules.
fn length_of(index: usize, rows: usize, rules: usize) -> u64 {
    ((HEAD + rules + 1) * 8 + (index + rows) * 4) as u64
}

/// A file that is written or read once, piece by piece: a whole one beside its table would be twice as much memory.
struct Summed<F> {
    file: F,
    hash: DefaultHasher,
}

impl<F> Summed<F> {
    fn new(file: F) -> Self {
        Self { file, hash: DefaultHasher::new() }
    }
}

impl<F: Write> Summed<F> {
    /// Writes words of `N` bytes.
    fn put<const N: usize>(&mut self, words: impl Iterator<Item = [u8; N]>) -> std::io::Result<()> {
        words.into_iter().try_for_each(|word| {
            self.hash.write(&word);
            self.file.write_all(&word)
        })
    }
}

impl<F: Read> Summed<F> {
    /// The next word; None: the file ends or cannot be read.
    fn word<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut word = [0; N];
        self.file.read_exact(&mut word).ok()?;
        self.hash.write(&word);
        Some(word)
    }

    /// So many words of four bytes.
    fn words(&mut self, count: usize) -> Option<Vec<u32>> {
        let mut words = Vec::with_capacity(count);
        for _ in 0..count {
            words.push(u32::from_le_bytes(self.word()?));
        }
        Some(words)
    }
}

fn encode(file: impl Write, key: u64, table: &Table) -> std::io::Result<()> {
    let mut file = Summed::new(BufWriter::new(file));
    let (index, rows, rules) = (table.index.len(), table.rows.len(), table.rules.len());
    let head = [index as u64, rows as u64, rules as u64, table.read as u64, table.functions as u64];
    file.put([MAGIC, key, table.page].into_iter().chain(head).map(u64::to_le_bytes))?;
    file.put(table.rules.iter().map(|rule| rule.word().to_le_bytes()))?;
    file.put(table.index.iter().chain(&table.rows).map(|word| word.to_le_bytes()))?;
    let sum = file.hash.finish();
    file.file.write_all(&sum.to_le_bytes())?;
    file.file.flush()
}

/// The table of a file of so many bytes.
fn decode(file: impl Read, length: u64, key: u64) -> Option<Table> {
    let mut file = Summed::new(BufReader::new(file));
    let mut head = [0; HEAD];
    for word in &mut head {
        *word = u64::from_le_bytes(file.word()?);
    }
    let [magic, own_key, page, numbers @ ..] = head;
    if (magic, own_key) != (MAGIC, key) {
        return None;
    }
    // Before anything is allocated.
    let number = |n: u64| usize::try_from(n).ok().filter(|n| *n <= MAX_WORDS);
    let [Some(index), Some(rows), Some(rules), Some(read), Some(functions)] = numbers.map(number) else {
        return None;
    };
    if length != length_of(index, rows, rules) {
        return None;
    }
    let mut known = Vec::with_capacity(rules);
    for _ in 0..rules {
        known.push(UnwindRule::from_word(u64::from_le_bytes(file.word()?))?);
    }
    let table =
        Table { page, index: file.words(index)?, rows: file.words(rows)?, rules: known, read, functions };
    let sum = file.hash.finish();
    if u64::from_le_bytes(file.word()?) != sum {
        return None;
    }
    // The walker bounds all; this is against a file of another build with the right hash.
    let sound = table.index.is_sorted() && table.index.last().is_none_or(|end| *end as usize == rows);
    sound.then_some(table)
}

#[cfg(test)]
mod tests {
    use super::super::{Image, table_of};
    use super::*;

    fn table() -> (u64, Table) {
        let file = std::fs::File::open(emberscope_testkit::library("libc.so.6")).unwrap();
        let image = Image::of_file(&file, file.metadata().unwrap().len(), u64::MAX).unwrap();
        (image.key(), table_of(&image).unwrap())
    }

    #[test]
    fn a_table_comes_back_and_rubbish_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::open(&dir.path().join("unwind")).unwrap();
        let (key, table) = table();
        assert_eq!(disk.get(key), None);
        disk.put(key, &table).unwrap();
        assert_eq!(disk.get(key).as_ref(), Some(&table));
        let path = disk.path(key);
        let whole = std::fs::read(&path).unwrap();
        let decode = |bytes: &[u8], key| decode(bytes, bytes.len() as u64, key);
        assert_eq!(decode(&whole, key + 1), None, "another file's");
        for at in [0, 9, 30, HEAD * 8 + 3, whole.len() / 2, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(disk.get(key), None, "byte {at}");
        }
        for len in [0, 7, 8, 64, 72, whole.len() - 4] {
            std::fs::write(&path, &whole[..len]).unwrap();
            assert_eq!(disk.get(key), None, "{len} bytes");
        }
        // With a right hash and wrong numbers.
        for word in 3..HEAD {
            let mut bytes = whole[..whole.len() - 8].to_vec();
            bytes[word * 8..word * 8 + 8].copy_from_slice(&u64::MAX.to_le_bytes());
            let mut hash = DefaultHasher::new();
            hash.write(&bytes);
            let sum = hash.finish();
            bytes.extend_from_slice(&sum.to_le_bytes());
            assert_eq!(decode(&bytes, key), None, "word {word}");
        }
    }

    #[test]
    fn the_longest_unused_goes_first() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::open(dir.path()).unwrap();
        let (_, table) = table();
        disk.put(1, &table).unwrap();
        let filler = dir.path().join(format!("{:016x}.{ENDING}", 2));
        std::fs::File::create(&filler).unwrap().set_len(MAX_BYTES).unwrap();
        let old = SystemTime::now() - std::time::Duration::from_secs(60);
        std::fs::File::options().append(true).open(&filler).unwrap().set_modified(old).unwrap();
        std::fs::write(dir.path().join("3.new"), "x").unwrap();
        disk.put(3, &table).unwrap();
        assert!(!filler.exists() && disk.get(1).is_some() && disk.get(3).is_some());
        assert!(!dir.path().join("3.new").exists());
    }
}
