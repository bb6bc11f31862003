//! Reads a block: its facts and stacks as a whole, of its rows only what a selection needs.
//!
//! In: a directory with a manifest. Out: a [`View`]. Facts and stacks are kept once read, until
//! [`Block::let_go`]; rows are read from the file each time. A file whose length or checksum is not the
//! manifest's is a [`BlockProblem`], and so is a table that points to what is not there.

use super::super::error::StoreError;
use super::super::facts::Stacks;
use super::super::flat::Shapes;
use super::super::spark::SparkWords;
use super::fetch::Fetch;
use super::manifest::ImportFacts;
use super::table::Room;
use super::*;
use emberscope_model::TimeRange;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

mod file;
mod files;
mod index;
mod pauses;
mod pool;
mod spark;
mod stacks;
mod tables;
mod view;

pub(crate) use index::Index;
pub(crate) use view::OpenBlock;
pub(super) use view::read_rows;

/// Memory for the rows of all tables but those of stacks and the ledger: 1.3 million groups.
const INDEX_ROOM: u64 = 128 << 20;
/// For frames, nodes and stacks.
const STACKS_ROOM: u64 = 96 << 20;
/// For the ledger: 800,000 lines.
const LEDGER_ROOM: u64 = 128 << 20;

/// Reads what may be damaged or made to harm: a panic of a decoder is a problem of the block.
pub(super) fn guarded<T>(read: impl FnOnce() -> Result<T, BlockProblem>) -> Result<T, BlockProblem> {
    // What `read` changes is either its own, or what its caller gives up with the problem: nothing of the block is
    // changed before it was read as a whole.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).unwrap_or_else(|payload| {
        let says = payload.downcast_ref::<String>().map(String::as_str);
        let says = says.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("panicked");
        Err(BlockProblem::says("a table", format!("cannot be decoded: {says}")))
    })
}

#[derive(Debug, Default)]
struct Kept {
    index: Option<Arc<Index>>,
    stacks: Option<Arc<Stacks>>,
    spark: Option<Arc<SparkWords>>,
    /// Bytes of memory that `index` takes, estimated.
    index_bytes: usize,
    stack_bytes: usize,
}

/// A block on the disk, with what is kept of it in memory.
#[derive(Debug)]
pub(crate) struct Block {
    dir: PathBuf,
    manifest: Mutex<Manifest>,
    range: TimeRange,
    part: u64,
    windows: u64,
    window_ns: Option<u64>,
    import: Option<ImportFacts>,
    merged: Vec<String>,
    kept: Mutex<Kept>,
    shapes: Shapes,
    /// Another block has the directory now, and files of this one went.
    retired: AtomicBool,
    /// The files of rows were found as the manifest has them.
    checked: AtomicBool,
    /// When it was last asked, by the store's count of questions.
    used: AtomicU64,
    /// What brings files that are not there.
    fetch: Fetched,
}

/// Who brings a block's files, where they are not all there.
#[derive(Clone, Default)]
struct Fetched(Option<Arc<dyn Fetch>>);

impl std::fmt::Debug for Fetched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Fetched" } else { "There" })
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is kept is whole or absent, whoever panicked.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Block {
    /// A block whose manifest was read or written just now.
    pub fn new(dir: PathBuf, manifest: Manifest) -> Self {
        Self {
            dir,
            range: manifest.range(),
            part: manifest.part,
            windows: manifest.windows,
            window_ns: manifest.window_ns,
            import: manifest.import.clone(),
            merged: manifest.merged.keys().cloned().collect(),
            retired: AtomicBool::new(false),
            manifest: Mutex::new(manifest),
            kept: Mutex::default(),
            shapes: Shapes::default(),
            checked: AtomicBool::new(false),
            used: AtomicU64::new(0),
            fetch: Fetched::default(),
        }
    }

    /// A block whose files come as they are asked for, each looked at by who brings it.
    pub fn fetched(dir: PathBuf, manifest: Manifest, fetch: Arc<dyn Fetch>) -> Self {
        let mut block = Self::new(dir, manifest);
        (block.checked, block.fetch) = (AtomicBool::new(true), Fetched(Some(fetch)));
        block
    }

    /// Opens a directory. Only the manifest is read, and the files' lengths compared.
    ///
    /// # Errors
    /// [`BlockError::Damaged`]: the manifest cannot be read, or a file has not the length that it names.
    /// [`BlockError::Version`]: the block is of another format.
    pub fn open(dir: &Path) -> Result<Self, BlockError> {
        let manifest = Manifest::read(dir)?;
        for (name, facts) in &manifest.files {
            let length = std::fs::metadata(dir.join(name)).map(|file| file.len());
            if length.as_ref().ok() != Some(&facts.bytes) {
                let has = length.map_or_else(|e| e.to_string(), |length| format!("{length} bytes"));
                let says = format!("{name} should have {} bytes: {has}", facts.bytes);
                return Err(BlockError::Damaged { path: dir.to_owned(), says });
            }
        }
        Ok(Self::new(dir.to_owned(), manifest))
    }

    /// Removes files that its manifest does not name: a kill came before they were to hold, or after they did.
    pub fn sweep(&self) {
        let manifest = lock(&self.manifest);
        for entry in std::fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_waste = name.to_str().is_some_and(|name| {
                name == ".manifest" || name.ends_with(".parquet") && !manifest.files.contains_key(name)
            });
            if is_waste {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    /// The block's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
    /// From the start of the block's first window to the end of the last one.
    pub fn range(&self) -> TimeRange {
        self.range
    }
    /// Number of the part that the block was made of; of a merged block that of the last part.
    pub fn part(&self) -> u64 {
        self.part
    }
    /// How many windows the block has.
    pub fn windows(&self) -> u64 {
        self.windows
    }
    /// Length of the windows where they were made coarser.
    pub fn window_length(&self) -> Option<Duration> {
        self.window_ns.map(Duration::from_nanos)
    }
    /// What the block was imported from; None: from a journal of this store.
    pub fn import(&self) -> Option<&ImportFacts> {
        self.import.as_ref()
    }
    /// Names of the blocks that it took the place of.
    pub fn merged(&self) -> &[String] {
        &self.merged
    }
    /// The name of the block's directory.
    pub fn name(&self) -> &str {
        self.dir.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }
    /// Bytes of the tables on the disk.
    pub fn bytes(&self) -> u64 {
        lock(&self.manifest).bytes()
    }
    /// When the block was last asked, by the store's count of questions.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Forgets the tables that were read: the next question reads them again.
    pub fn let_go(&self) {
        let kept = std::mem::take(&mut *lock(&self.kept));
        self.shapes.let_go();
        let frames = kept.stacks.as_ref().map_or(0, |stacks| stacks.frames.len());
        drop(kept);
        if frames > 0 {
            pool::let_go(frames);
        }
    }

    /// Of frames that several blocks have each pays its part, and more when others let them go.
    pub fn weigh(&self) {
        let mut kept = lock(&self.kept);
        kept.stack_bytes = kept.stacks.as_ref().map_or(0, |stacks| stacks.bytes());
    }

    /// Bytes of memory that tables of the block take, estimated.
    pub fn kept_bytes(&self) -> usize {
        let kept = lock(&self.kept);
        let spark = kept.spark.as_ref().map_or(0, |words| words.bytes());
        kept.index_bytes + kept.stack_bytes + spark + self.shapes.bytes()
    }

    /// Opens the block for a query, which is the `asked`-th.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`]: a small table cannot be brought or read, or points to what is not there. The path
    /// is empty where the block is retired.
    pub fn view(&self, asked: u64) -> Result<OpenBlock<'_>, StoreError> {
        self.used.store(asked, Ordering::Relaxed);
        let index = self.index().map_err(|problem| self.unreadable(problem))?;
        Ok(OpenBlock::new(self, index))
    }

    pub(super) fn index(&self) -> Result<Arc<Index>, BlockProblem> {
        let index = lock(&self.kept).index.clone();
        if let Some(index) = index {
            return Ok(index);
        }
        let index = Arc::new(guarded(|| tables::index(self, &Room::new(INDEX_ROOM)))?);
        let bytes = index.bytes();
        let mut kept = lock(&self.kept);
        (kept.index, kept.index_bytes) = (Some(index.clone()), bytes);
        Ok(index)
    }

    fn stacks(&self) -> Result<Arc<Stacks>, BlockProblem> {
        let stacks = lock(&self.kept).stacks.clone();
        if let Some(stacks) = stacks {
            return Ok(stacks);
        }
        let stacks = Arc::new(guarded(|| stacks::stacks(self, &Room::new(STACKS_ROOM)))?);
        let bytes = stacks.bytes();
        let mut kept = lock(&self.kept);
        (kept.stacks, kept.stack_bytes) = (Some(stacks.clone()), bytes);
        Ok(stacks)
    }

    /// Another block has the directory: what this one cannot read from now on is no damage.
    pub fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    pub(super) fn manifest(&self) -> &Mutex<Manifest> {
        &self.manifest
    }

    /// What a query is told whose block cannot be read.
    pub fn unreadable_now(&self, says: &str) -> StoreError {
        self.unreadable(BlockProblem::says(manifest::NAME, says.to_owned()))
    }

    fn unreadable(&self, problem: BlockProblem) -> StoreError {
        // What is there now is another's: nothing is wrong with it.
        let path = if self.retired.load(Ordering::Acquire) { PathBuf::new() } else { self.dir.clone() };
        StoreError::Unreadable { path, says: problem.to_string() }
    }
}
