//! What the targets on stored files share: a sound store, ways to spoil it, and questions that read all of it.
//!
//! In: tests/fixtures/store-1, a block and a journal. Checksums are made right again after every change, as a hostile
//! writer's would be: what is tried is what lies behind them.
#![allow(dead_code)]

use emberscope_model::{Detail, LabelKey, Query, SampleKind, Selection, TimeRange, WallTime};
use emberscope_store::{
    AnswerLimits, BlockFacts, Fetch, MANIFEST, Shelf, ShelfStore, Store, StoreError, StoreUsage, Touch,
    Volume,
};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

#[path = "../../../archive/examples/bad_blocks/resealed.rs"]
mod resealed;

/// The block's directory in the fixture, and what blocks are called.
pub const BLOCK: &str = "20231114T221320Z-000000000001";

pub fn fixture() -> PathBuf {
    // Compiled in two packages, at different depths.
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    above.map(|dir| dir.join("tests/fixtures/store-1")).find(|dir| dir.is_dir()).expect("the fixture")
}

/// The block's files by name, the manifest among them.
pub static FILES: LazyLock<BTreeMap<String, Vec<u8>>> = LazyLock::new(|| {
    let dir = std::fs::read_dir(fixture().join("blocks").join(BLOCK)).expect("the fixture");
    let file = |entry: io::Result<std::fs::DirEntry>| {
        let entry = entry.ok()?;
        Some((entry.file_name().into_string().ok()?, std::fs::read(entry.path()).ok()?))
    };
    dir.filter_map(file).collect()
});

/// The journal's bytes.
pub static JOURNAL: LazyLock<Vec<u8>> =
    LazyLock::new(|| std::fs::read(fixture().join("journal/000000000002.journal")).expect("the fixture"));

/// Each four bytes of `changes` are a place and what stands there from now on; a place beyond the end cuts the file.
pub fn spoil(sound: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut bytes = sound.to_vec();
    for change in changes.chunks_exact(4) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
        match at.checked_sub(0xff00) {
            Some(short) => bytes.truncate(bytes.len().saturating_sub(short)),
            None => {
                let at = at % bytes.len().max(1);
                if let Some(place) = bytes.get_mut(at) {
                    *place = change[2];
                }
                // The next one too, or not.
                if change[3] & 1 == 0
                    && let Some(place) = bytes.get_mut(at + 1)
                {
                    *place = change[3] >> 1;
                }
            }
        }
    }
    bytes
}

/// A manifest that tells the truth of a changed file.
pub fn manifest_for(file: &str, bytes: &[u8]) -> Vec<u8> {
    resealed::with_file(&FILES[MANIFEST], file, bytes)
}

/// A journal's records without their frames.
pub fn records() -> Vec<Vec<u8>> {
    resealed::records(&JOURNAL)
}

/// A journal of these records, its checksums right.
pub fn journal_of(records: &[Vec<u8>]) -> Vec<u8> {
    resealed::journal_of(&JOURNAL, records)
}

/// A directory in memory where the system has one.
pub fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a scratch directory")
}

/// A shelf with one volume.
#[derive(Debug)]
pub struct One(pub Volume);

impl Shelf for One {
    fn each(
        &self,
        _: &Touch<'_>,
        take: &mut dyn FnMut(&Volume) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        take(&self.0)
    }
    fn span(&self) -> Option<TimeRange> {
        self.0.range()
    }
    fn set_aside(&self, _: &Path, says: &str) -> Result<(), StoreError> {
        // Not shown again: the question ends here.
        Err(StoreError::Away { says: says.to_owned() })
    }
    fn usage(&self) -> StoreUsage {
        StoreUsage::default()
    }
}

/// All files are there already.
#[derive(Debug)]
struct There;

impl Fetch for There {
    fn fetch(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

/// A store of one volume.
pub fn store_of(volume: Volume) -> ShelfStore<One> {
    let limits = AnswerLimits { nodes: 100_000, threads: 1, ..AnswerLimits::default() };
    ShelfStore::new(One(volume), Duration::from_secs(10), limits)
}

/// The block of a directory, if its manifest can be read.
pub fn block_in(dir: &Path, manifest: Vec<u8>) -> Option<Volume> {
    let facts = BlockFacts::of(BLOCK, manifest).ok()?;
    Volume::block(dir.to_owned(), &facts, Arc::new(There)).ok()
}

/// Where the Parquet crate's code lies.
const PARQUET: &str = "/parquet-";

/// Runs what reads Parquet files. A panic of that crate is no finding: who reads files of others
/// unwinds and sets the file aside (docs/store.md). Anywhere else it is one, as is the end of memory or time.
pub fn reading(work: impl FnOnce()) {
    static HOOK: LazyLock<()> = LazyLock::new(|| {
        // In place of libFuzzer's own, which ends the process at any panic.
        std::panic::set_hook(Box::new(|panicked| {
            if !panicked.location().is_some_and(|place| place.file().contains(PARQUET)) {
                eprintln!("{panicked}\n{}", std::backtrace::Backtrace::force_capture());
                std::process::abort();
            }
        }));
    });
    LazyLock::force(&HOOK);
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
}

/// Every kind of question there is. What they answer does not matter, that they end does.
pub fn ask(store: &dyn Store) {
    let range = store.span().unwrap_or(TimeRange { from: WallTime(0), until: WallTime(u64::MAX / 2) });
    let query = |group: Vec<LabelKey>| Query {
        range,
        selection: Selection::all(),
        kind: SampleKind::Cpu,
        group,
        detail: Detail { lines: true, kinds: true },
    };
    reading(|| drop(store.merge(&query(vec![LabelKey::Stage]))));
    reading(|| drop(store.methods(&query(Vec::new()))));
    reading(|| drop(store.totals(&query(Vec::new()))));
    reading(|| drop(store.values(&query(Vec::new()), LabelKey::App)));
    let by = [LabelKey::App, LabelKey::Task];
    reading(|| drop(store.series(&query(Vec::new()), Duration::from_secs(10), &by)));
    reading(|| drop(store.ledger(range, &Selection::all(), &[LabelKey::Stage])));
    reading(|| drop(store.processes(range, &Selection::all())));
}
