//! What a directory holds when the store starts: all of it is read, nothing damaged stops it.
//!
//! In: a directory. Out: a store. Blocks whose manifest or lengths are wrong are moved to `damaged`; a
//! journal's torn tail is cut; what a kill left half made is removed; what another version wrote waits in `newer` for a
//! start that knows its format. Only a directory that cannot be used at all is an error.

use super::super::block::BlockError;
use super::super::gaps;
use super::super::imports;
use super::super::journal::{self, JournalError};
use super::*;
use emberscope_supervise::Beat;
use std::collections::HashSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;

/// What a thread of a store does until it is told to stop.
pub(super) type Run = fn(&Shared, &Beat);

/// Longest for one round of a store's thread: merging an hour's blocks on a slow disk.
const STUCK: Duration = Duration::from_secs(1800);
pub(super) const JOURNAL: &str = "journal";
pub(super) const BLOCKS: &str = "blocks";
const DAMAGED: &str = "damaged";
/// What a newer version wrote: the next start that knows its format takes it back.
const NEWER: &str = "newer";

/// Entries of a directory, by name.
fn entries(dir: &Path) -> Result<Vec<PathBuf>, DiskStoreError> {
    let failed = |source| DiskStoreError::Dir { what: "read", path: dir.to_owned(), source };
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        all.push(entry.map_err(failed)?.path());
    }
    all.sort();
    Ok(all)
}

/// Moves something out of the way. None: it stays where it is.
pub(super) fn move_aside(dir: &Path, path: &Path) -> Option<PathBuf> {
    move_to(dir, DAMAGED, path)
}

fn move_to(dir: &Path, name: &str, path: &Path) -> Option<PathBuf> {
    let damaged = dir.join(name);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&damaged);
    let to = damaged.join(path.file_name()?);
    match made.and_then(|()| fs::rename(path, &to)) {
        Ok(()) => Some(to),
        Err(error) => {
            tracing::warn!(%error, file = %path.display(), "cannot be moved away");
            None
        }
    }
}

/// Removes a block's directory, first by a name that a start removes, so that half a block is never read.
pub(super) fn remove(block: &Path) -> io::Result<()> {
    let name = block.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let gone = block.with_file_name(format!(".gone-{name}"));
    fs::rename(block, &gone).and_then(|()| fs::remove_dir_all(&gone))
}

/// Takes back what another version wrote and this one can read: the program was updated again.
fn take_back(dir: &Path) {
    for path in entries(&dir.join(NEWER)).unwrap_or_default() {
        let place = match journal::number_of(&path) {
            Some(_) if journal::is_known(&path) => JOURNAL,
            None if Block::open(&path).is_ok() => BLOCKS,
            _ => continue,
        };
        let to = dir.join(place).join(path.file_name().unwrap_or_default());
        // Never over another of its name.
        let moved =
            if to.exists() { Err(io::ErrorKind::AlreadyExists.into()) } else { fs::rename(&path, &to) };
        match moved {
            Ok(()) => tracing::info!(file = %to.display(), "taken back: this version can read it"),
            Err(error) => tracing::warn!(%error, file = %path.display(), "cannot be taken back"),
        }
    }
}

/// The numbers of parts that are there but not answered for: no other is to have one of them.
fn numbers_aside(dir: &Path) -> impl Iterator<Item = u64> {
    let all = [NEWER, JOURNAL, BLOCKS].map(|name| entries(&dir.join(name)).unwrap_or_default());
    all.into_iter().flatten().filter_map(|path| {
        let of_block = || path.file_name()?.to_str()?.rsplit_once('-')?.1.parse().ok();
        // A name that somebody made up is not to use up all numbers.
        journal::number_of(&path).or_else(of_block).filter(|number| *number < u64::from(u32::MAX))
    })
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

fn read_blocks(dir: &Path, health: &mut Health) -> Result<Vec<Arc<Block>>, DiskStoreError> {
    let mut blocks = Vec::new();
    for path in entries(&dir.join(BLOCKS))? {
        if is_hidden(&path) {
            // Not finished, or on its way out.
            let _ = fs::remove_dir_all(&path);
            continue;
        }
        match Block::open(&path) {
            Ok(block) => {
                block.sweep();
                blocks.push(Arc::new(block));
            }
            Err(error) => {
                let newer = matches!(error, BlockError::Version { .. });
                let range = gaps::of_block(&path);
                let now = move_to(dir, if newer { NEWER } else { DAMAGED }, &path);
                health.set_aside(&path, now.as_deref(), &error.to_string(), range);
            }
        }
    }
    let mut blocks = without_merged(dir, blocks, health);
    blocks.sort_by_key(|block| block.part());
    Ok(blocks)
}

/// Removes blocks that another took the place of: a kill came between its name and this. Should that one be damaged,
/// they are what is answered for.
fn without_merged(dir: &Path, blocks: Vec<Arc<Block>>, health: &mut Health) -> Vec<Arc<Block>> {
    let names: HashSet<String> = blocks.iter().map(|block| block.name().to_owned()).collect();
    let mut gone: HashSet<String> = HashSet::new();
    for block in blocks.iter().filter(|block| block.merged().iter().any(|name| names.contains(name))) {
        match block.check_all() {
            Ok(()) => gone.extend(block.merged().iter().cloned()),
            Err(problem) => {
                let now = move_aside(dir, block.dir());
                // Those that it took the place of are answered for instead.
                health.set_aside(block.dir(), now.as_deref(), &problem.to_string(), None);
                gone.insert(block.name().to_owned());
            }
        }
    }
    let (old, kept): (Vec<_>, Vec<_>) = blocks.into_iter().partition(|block| gone.contains(block.name()));
    for block in old.iter().filter(|block| block.dir().exists()) {
        // Where it cannot be removed it is not answered for all the same.
        if let Err(error) = remove(block.dir()) {
            health.failed(health::Failing::Remove, &error.to_string());
        }
    }
    kept
}

/// What earlier starts set aside: answers lack it still.
fn read_left(dir: &Path, health: &mut Health) {
    let [mut left, newer, cut] =
        [DAMAGED, NEWER, JOURNAL].map(|name| entries(&dir.join(name)).unwrap_or_default());
    left.extend(newer);
    left.extend(cut.into_iter().filter(|path| path.extension().is_some_and(|end| end == DAMAGED)));
    gaps::left(left, &dir.join(BLOCKS), &mut health.missing);
}

/// Whether a part is in a block, or in one that took its place.
fn is_in(block: &Block, part: u64) -> bool {
    let number = |name: &String| name.rsplit_once('-')?.1.parse::<u64>().ok();
    block.part() == part || block.merged().iter().filter_map(number).any(|merged| merged == part)
}

/// Parts of journals whose block is not there, by number; the last with its file.
type Parts = (Vec<(u64, Part, u64)>, Option<super::super::journal::Segment>);

fn read_journals(dir: &Path, blocks: &[Arc<Block>], health: &mut Health) -> Result<Parts, DiskStoreError> {
    let (mut parts, mut last) = (Vec::new(), None);
    for path in entries(&dir.join(JOURNAL))? {
        let Some(number) = journal::number_of(&path) else { continue };
        if blocks.iter().any(|block| is_in(block, number)) {
            // The kill came between the block's name and this.
            let _ = fs::remove_file(&path);
            continue;
        }
        match journal::open(&path, Fsync::Never) {
            Ok(None) => {
                health.cut_bytes += fs::metadata(&path).map_or(0, |file| file.len());
                let _ = fs::remove_file(&path);
            }
            Ok(Some(opened)) => {
                health.cut_bytes += opened.cut;
                if opened.cut > 0 {
                    let file = path.display();
                    tracing::warn!(%file, bytes = opened.cut, "the end of a journal was torn and is cut off");
                }
                if let Some(kept) = opened.kept {
                    let range = gaps::of_rest(&kept, opened.part.facts.span());
                    let says = "damaged before its end: what follows was cut off";
                    health.set_aside(&path, Some(&kept), says, range);
                }
                health.recovered_windows += opened.part.facts.windows.len() as u64;
                let length = opened.segment.length();
                parts.push((number, opened.part, length));
                last = Some(opened.segment);
            }
            Err(error) => {
                let newer = matches!(error, JournalError::Version { .. });
                let range = gaps::of_journal(&path);
                let now = move_to(dir, if newer { NEWER } else { DAMAGED }, &path);
                health.set_aside(&path, now.as_deref(), &error.to_string(), range);
            }
        }
    }
    Ok((parts, last))
}

impl DiskStore {
    /// Opens the store of a directory, made where it is missing, with all that the directory holds.
    ///
    /// # Errors
    /// [`DiskStoreError::Dir`]: a directory cannot be made or read, or the blocks of a finished import cannot be moved
    /// to their place. [`DiskStoreError::Thread`]: a thread cannot be started. Damaged files are no error: they are
    /// set aside.
    pub fn open(config: DiskStoreConfig) -> Result<Self, DiskStoreError> {
        for path in [config.dir.clone(), config.dir.join(JOURNAL), config.dir.join(BLOCKS)] {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
            made.map_err(|source| DiskStoreError::Dir { what: "make", path, source })?;
        }
        imports::finish(&config.dir)?;
        take_back(&config.dir);
        let mut health = Health::default();
        read_left(&config.dir, &mut health);
        let blocks = read_blocks(&config.dir, &mut health)?;
        let (mut parts, last) = read_journals(&config.dir, &blocks, &mut health)?;
        let newest = parts.iter().map(|(number, ..)| *number).chain(blocks.iter().map(|block| block.part()));
        let next = newest.chain(numbers_aside(&config.dir)).max().map_or(1, |newest| newest + 1);
        let (mut journal, mut open) = (Journal::default(), OpenPart { number: next, part: Part::default() });
        // After what was taken back, or set aside, its number has successors already: then it is sealed.
        let goes_on = parts.last().is_some_and(|(number, ..)| number + 1 == next);
        if let Some(segment) = last.filter(|_| goes_on)
            && let Some((number, part, _)) = parts.pop()
        {
            // Where it left off; a new stretch of time seals it.
            (journal, open) = (Journal::going_on(segment), OpenPart { number, part });
        }
        journal.sealed_bytes = parts.iter().map(|(_, _, bytes)| bytes).sum();
        let sealed = parts.into_iter().map(|(number, part, _)| (number, Arc::new(part))).collect();
        let (recovered, cut, count) = (health.recovered_windows, health.cut_bytes, blocks.len());
        tracing::info!(dir = %config.dir.display(), blocks = count, windows = recovered, cut, "opened the store");
        let clock = Clock::start(&config.dir);
        let shared = Arc::new(Shared {
            config,
            working: Mutex::new(()),
            merging: Mutex::default(),
            journal: Mutex::new(journal),
            held: RwLock::new(Held { sealed, blocks }),
            open: RwLock::new(open),
            tasks: Mutex::new(VecDeque::from([Task::Seal])),
            wake: Condvar::new(),
            health: Mutex::new(health),
            stopping: AtomicBool::new(false),
            asked: AtomicU64::new(1),
            clock,
            removed: Mutex::default(),
        });
        Self::started(shared, |name, shared, run| {
            emberscope_supervise::spawn(name, STUCK, move |beat| run(&shared, beat))
        })
    }

    /// Starts the threads of a store by `spawn`. Those that were started before one that cannot be are told to stop
    /// and waited for.
    ///
    /// # Errors
    /// [`DiskStoreError::Thread`]: a thread cannot be started.
    pub(super) fn started(
        shared: Arc<Shared>,
        mut spawn: impl FnMut(&'static str, Arc<Shared>, Run) -> io::Result<JoinHandle<()>>,
    ) -> Result<Self, DiskStoreError> {
        // Its drop ends the threads that it holds.
        let store = Self { shared, threads: Mutex::default() };
        for (name, run) in [("journal", journaling::run as Run), ("blocks", blocks::run)] {
            let started = spawn(name, store.shared.clone(), run).map_err(DiskStoreError::Thread)?;
            lock(&store.threads).push(started);
        }
        Ok(store)
    }
}
