//! Spoils a block, its manifest or a journal so that no checksum tells, and asks for all that it has.
//!
//! In: how many times, and a seed. Out: a line of figures. Panics where something is refused and not named; ends the
//! process where something takes more than [`LIMIT`].

use super::*;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[path = "dice.rs"]
mod dice;
use dice::*;

#[path = "resealed.rs"]
pub mod resealed;

/// Memory for reading, beside what the program has when it begins.
const LIMIT: u64 = 512 << 20;
/// The first bytes of a zstd frame.
const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// One block or part, until it is set aside.
struct One {
    name: &'static str,
    volume: Volume,
    aside: Mutex<Option<String>>,
}

impl Shelf for One {
    fn each(
        &self,
        _: &Touch<'_>,
        take: &mut dyn FnMut(&Volume) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        if self.aside.lock().unwrap().is_some() {
            return Ok(());
        }
        // As the archive's reader does.
        catch_unwind(AssertUnwindSafe(|| take(&self.volume))).unwrap_or_else(|_| {
            Err(StoreError::Unreadable { path: self.name.into(), says: "makes the reader panic".to_owned() })
        })
    }
    fn span(&self) -> Option<TimeRange> {
        self.volume.range()
    }
    fn set_aside(&self, dir: &Path, says: &str) -> Result<(), StoreError> {
        assert!(dir.to_string_lossy().contains(self.name) && !says.is_empty(), "{dir:?} {says:?}");
        *self.aside.lock().unwrap() = Some(says.to_owned());
        Ok(())
    }
    fn usage(&self) -> StoreUsage {
        StoreUsage::default()
    }
}

/// All files are there.
struct There;

impl Fetch for There {
    fn fetch(&self, _: &str) -> std::io::Result<()> {
        Ok(())
    }
}

#[derive(Default)]
struct Counts {
    read: u64,
    refused: u64,
    limits: u64,
}

impl Counts {
    /// Asks everything.
    fn ask(&mut self, name: &'static str, volume: Volume) {
        let one = One { name, volume, aside: Mutex::default() };
        let store = ShelfStore::new(one, Duration::from_secs(10), AnswerLimits::default());
        let all = TimeRange { from: WallTime(0), until: WallTime(1 << 62) };
        let query = Query {
            range: all,
            selection: Selection::default(),
            kind: SampleKind::Cpu,
            group: vec![LabelKey::Stage],
            detail: Detail { lines: true, kinds: true },
        };
        let answered = [
            store.merge(&query).map(drop),
            store.merge(&Query { group: Vec::new(), ..query.clone() }).map(drop),
            store.methods(&query).map(drop),
            store.totals(&query).map(drop),
            store.values(&query, LabelKey::App).map(drop),
            store.series(&query, Duration::from_secs(60), &[LabelKey::Stage]).map(drop),
            store.ledger(all, &query.selection, &[LabelKey::Stage]).map(drop),
        ];
        let _ = store.processes(all, &query.selection);
        if store.shelf().aside.lock().unwrap().is_some() {
            self.refused += 1;
            return;
        }
        match answered.into_iter().find_map(Result::err) {
            None => self.read += 1,
            Some(error @ (StoreError::TooLarge { .. } | StoreError::TooLong { .. })) => {
                assert!(!error.to_string().is_empty());
                self.limits += 1;
            }
            Some(error) => panic!("neither read nor set aside: {error}"),
        }
    }
}

const BLOCK: &str = "20231114T220000Z-000000000001";

/// A block whose file is as `bytes`, with a manifest that knows it so.
fn ask_block(counts: &mut Counts, dir: &Path, manifest: &[u8]) {
    match BlockFacts::of(BLOCK, manifest.to_vec()) {
        Err(error) => {
            assert!(error.to_string().contains(BLOCK), "{error}");
            counts.refused += 1;
        }
        Ok(facts) => match Volume::block(dir.to_owned(), &facts, Arc::new(There)) {
            Err(_) => counts.refused += 1,
            Ok(volume) => counts.ask(BLOCK, volume),
        },
    }
}

/// Spoils a record, and makes its checksum that of what it is now.
fn spoil_journal(journal: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut records = resealed::records(journal);
    let place = dice.roll(records.len());
    spoil(&mut records[place], dice, false);
    records.retain(|record| !record.is_empty());
    resealed::journal_of(journal, &records)
}

/// What is read of the store of the tests.
struct Sound {
    files: BTreeMap<String, Vec<u8>>,
    manifest: Vec<u8>,
    journal: Vec<u8>,
}

fn sound() -> Sound {
    let store = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/store-1");
    let block: PathBuf = blocks_of(&store).unwrap().remove(0);
    let facts = BlockFacts::read(&block).unwrap();
    let read = |file: &String| (file.clone(), std::fs::read(block.join(file)).unwrap());
    let files = facts.files.iter().map(|(file, ..)| read(file)).collect();
    let journal = JournalReader::open(&journals_of(&store).unwrap()[0].1).unwrap();
    let journal = journal.records(0, usize::MAX).unwrap().unwrap();
    Sound { files, manifest: std::fs::read(block.join(MANIFEST)).unwrap(), journal }
}

/// Kilobytes that /proc/self/status tells.
fn status(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").trim().parse().unwrap_or_default()
}

/// Does it, in this process.
pub fn run(count: u64, seed: u64) -> String {
    std::panic::set_hook(Box::new(|_| {}));
    let all = Some((status("VmSize") << 10) + LIMIT);
    rustix::process::setrlimit(
        rustix::process::Resource::As,
        rustix::process::Rlimit { current: all, maximum: all },
    )
    .unwrap();
    let sound = sound();
    let place = std::env::temp_dir().join(format!("emberscope-bad-{}", std::process::id()));
    let dir = place.join(BLOCK);
    std::fs::create_dir_all(&dir).unwrap();
    for (file, bytes) in &sound.files {
        std::fs::write(dir.join(file), bytes).unwrap();
    }
    let mut counts = Counts::default();
    ask_block(&mut counts, &dir, &sound.manifest);
    let volume = Volume::journal();
    let whole = volume.append(&sound.journal);
    counts.ask("journal", volume);
    assert!(whole && counts.read == 2, "what is sound is read");
    counts.read = 0;
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..count {
        match dice.roll(10) {
            0 => {
                let volume = Volume::journal();
                let journal = spoil_journal(&sound.journal, &mut dice);
                match catch_unwind(AssertUnwindSafe(|| volume.append(&journal))) {
                    Ok(true) => counts.ask("journal", volume),
                    _ => counts.refused += 1,
                }
            }
            1 => {
                let mut manifest = sound.manifest.clone();
                spoil(&mut manifest, &mut dice, false);
                ask_block(&mut counts, &dir, &manifest);
            }
            kind => {
                let place = dice.roll(sound.files.len());
                let (file, good) = sound.files.iter().nth(place).unwrap();
                let mut bytes = good.clone();
                for _ in 0..1 + dice.roll(2) {
                    if kind > 5 || spoil_page(&mut bytes, &mut dice).is_none() {
                        spoil(&mut bytes, &mut dice, false);
                    }
                }
                std::fs::write(dir.join(file), &bytes).unwrap();
                ask_block(&mut counts, &dir, &resealed::with_file(&sound.manifest, file, &bytes));
                std::fs::write(dir.join(file), good).unwrap();
            }
        }
    }
    let _ = std::fs::remove_dir_all(&place);
    let Counts { read, refused, limits } = counts;
    assert_eq!(read + refused + limits, count);
    format!(
        "bad objects: {count} spoiled, {read} read, {refused} set aside by name, {limits} over an answer's limits, \
         0 aborts, peak memory {} MiB of {} allowed",
        status("VmHWM") >> 10,
        LIMIT >> 20,
    )
}
