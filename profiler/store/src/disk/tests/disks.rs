//! Disks that are full, read-only or damaged, and what is old.

use super::*;
use std::fs;

mod journals;

pub(super) fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

#[test]
fn a_clock_that_is_days_ahead_deletes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.append(some(1).remove(0));
    store.settle();
    let whole = samples(&store);
    drop(store);
    // The store was last written an hour after its window; the clock of today is years ahead of that.
    let written = some(1).remove(0).range.until.plus(Duration::from_secs(3600));
    fs::write(dir.path().join("clock"), written.0.to_string()).unwrap();
    let day = Duration::from_secs(86_400);
    let with_age = || DiskStoreConfig { retention_age: day, ..config(dir.path()) };
    for _ in 0..3 {
        let store = DiskStore::open(with_age()).unwrap();
        store.settle();
        assert_eq!((samples(&store), store.usage().dropped_for_age), (whole, 0));
    }
    // A day and an hour later it goes.
    fs::write(dir.path().join("clock"), written.plus(day + day).0.to_string()).unwrap();
    let store = DiskStore::open(with_age()).unwrap();
    store.settle();
    assert_eq!((samples(&store), store.usage().dropped_for_age), (0, 1));
}

#[test]
fn some_of_the_disk_is_kept_free() {
    let root = tempfile::tempdir().unwrap();
    let Some(disk) = Tmpfs::mount(&root.path().join("kept"), "size=4m") else { return };
    let dir = disk.0.join("store");
    let with = |when_full, keep_free| DiskStoreConfig { when_full, keep_free, ..config(&dir) };
    let store = DiskStore::open(with(WhenFull::DropOldest, KeepFree::Bytes(1 << 20))).unwrap();
    let all = some(3);
    store.append(all[0].clone());
    store.settle();
    store.append(all[1].clone());
    store.settle();
    let before = store.disk().unwrap();
    assert_eq!((before.blocks, before.failing.len()), (2, 0), "{before:?}");
    // Somebody else takes what is to be free: blocks go, and nothing is written without room.
    fs::write(disk.0.join("other"), vec![1; 7 << 19]).unwrap();
    store.append(all[2].clone());
    store.settle();
    let (usage, full) = (store.disk().unwrap(), store.usage().dropped_for_full);
    assert!(usage.blocks < 2 && full > 0, "{usage:?}");
    assert!(usage.failing.iter().any(|(_, says)| says.contains("(keep-free)")), "{usage:?}");
    assert!(samples(&store) > 0);
    fs::remove_file(disk.0.join("other")).unwrap();
    store.settle();
    assert!(store.disk().unwrap().failing.is_empty(), "{:?}", store.disk());
    drop(store);
    // What is there stays where nothing is to go for it.
    let store = DiskStore::open(with(WhenFull::Stop, KeepFree::Percent(99))).unwrap();
    let blocks = store.disk().unwrap().blocks;
    store.append(some(4).remove(3));
    assert!(store.disk().unwrap().pending_bytes > 0, "{:?}", store.disk());
    store.settle();
    assert_eq!(store.disk().unwrap().blocks, blocks, "{:?}", store.disk());
    assert_eq!(KeepFree::Auto.bytes(1 << 40), 4 << 30);
    assert_eq!(KeepFree::Auto.bytes(40 << 30), 2 << 30);
    assert_eq!(KeepFree::Auto.bytes(1000), 150);
}

#[test]
fn a_damaged_block_is_set_aside_and_the_rest_answers() {
    let root = tempfile::tempdir().unwrap();
    let made = root.path().join("made");
    let store = open(&made);
    let all = some(4);
    for (number, window) in all.iter().enumerate() {
        store.append(window.clone());
        if number == 1 {
            store.settle();
        }
    }
    store.settle();
    let (first, whole) = (store.merge(&query(20, 40)).unwrap().quality.samples, samples(&store));
    assert!(first > 0 && first < whole);
    drop(store);
    let names: Vec<_> = files(&files(&made.join("blocks"))[0])
        .iter()
        .map(|file| file.file_name().unwrap().to_owned())
        .collect();
    assert_eq!(names.len(), 15, "{names:?}");
    for name in names {
        for damage in 0..3 {
            let dir = root.path().join("copy");
            let copied = std::process::Command::new("cp").arg("-r").arg(&made).arg(&dir).status().unwrap();
            assert!(copied.success());
            let file = files(&dir.join("blocks"))[0].join(&name);
            let mut bytes = fs::read(&file).unwrap();
            let middle = bytes.len() / 2;
            match damage {
                0 => bytes[middle] ^= 0xff,
                1 => bytes.truncate(middle),
                _ => fs::remove_file(&file).unwrap(),
            }
            if damage < 2 {
                fs::write(&file, bytes).unwrap();
            }
            let store = open(&dir);
            // Each table is read by one of these.
            let asked = query(0, 1000);
            let by_task = Query { group: vec![LabelKey::Task], ..query(0, 15) };
            let _ = (store.merge(&by_task), store.ledger(asked.range, &asked.selection, &[]));
            let got = samples(&store);
            let usage = store.disk().unwrap();
            let json = name == "manifest.json" && damage == 0 && usage.set_aside == 0;
            assert!(json || (got, usage.set_aside) == (first, 1), "{name:?} {damage}: {got} {usage:?}");
            assert!(json || usage.set_aside_files[0].now.as_ref().is_some_and(|path| path.exists()));
            drop(store);
            assert!(json || samples(&open(&dir)) == first, "and the next start has nothing to say");
            fs::remove_dir_all(&dir).unwrap();
        }
    }
}

#[test]
fn what_is_old_or_too_much_goes() {
    let dir = tempfile::tempdir().unwrap();
    let keeping = DiskStoreConfig { block_length: Duration::from_secs(10), ..config(dir.path()) };
    // Two weeks are long gone by for what began in 2023.
    let retention_age = DiskStoreConfig::new("").retention_age;
    let store = DiskStore::open(DiskStoreConfig { retention_age, ..keeping.clone() }).unwrap();
    some(3).into_iter().for_each(|window| store.append(window));
    store.settle();
    let usage = store.usage();
    assert_eq!((usage.windows, usage.dropped_for_age), (0, 3));
    drop(store);
    let store = DiskStore::open(keeping.clone()).unwrap();
    some(6).into_iter().for_each(|window| store.append(window));
    store.settle();
    let bytes = store.disk().unwrap().bytes;
    assert_eq!(store.disk().unwrap().blocks, 6);
    drop(store);
    let store = DiskStore::open(DiskStoreConfig { retention_bytes: bytes * 2 / 3, ..keeping }).unwrap();
    store.settle();
    let (disk, usage) = (store.disk().unwrap(), store.usage());
    assert!(disk.bytes <= bytes * 2 / 3 && disk.blocks >= 3, "{disk:?}");
    assert_eq!(usage.dropped_for_bytes + usage.windows as u64, 6);
    assert_eq!(files(&dir.path().join("blocks")).len(), disk.blocks);
    assert_eq!(store.span().unwrap().until, at(60), "the oldest went");
}

#[test]
fn directories_are_the_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("store");
    let store = open(&dir);
    some(2).into_iter().for_each(|window| store.append(window));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&files(&dir.join("journal"))[0]), 0o600);
    store.settle();
    let block = files(&dir.join("blocks")).remove(0);
    for path in [&dir, &dir.join("journal"), &dir.join("blocks"), &block] {
        assert_eq!(mode(path), 0o700, "{path:?}");
    }
    assert!(files(&block).iter().all(|file| mode(file) == 0o600));
}

/// A file system of its own, of some size; None where this process may not mount.
pub(super) struct Tmpfs(pub PathBuf);

impl Tmpfs {
    pub(super) fn mount(path: &Path, options: &str) -> Option<Self> {
        fs::create_dir_all(path).unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "none"])
            .arg(path)
            .output()
            .is_ok_and(|out| out.status.success());
        if !mounted {
            emberscope_testkit::skip("this process may not mount a tmpfs");
        }
        mounted.then(|| Self(path.to_owned()))
    }
    fn again(&self, options: &str) {
        let options = format!("remount,{options}");
        let done = std::process::Command::new("mount").args(["-o", &options]).arg(&self.0).status().unwrap();
        assert!(done.success(), "remount {options}");
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_costs_no_answer_and_recovers() {
    let root = tempfile::tempdir().unwrap();
    let Some(disk) = Tmpfs::mount(&root.path().join("small"), "size=16k") else { return };
    let store = open(&disk.0);
    let all = some(60);
    let mut expected = 0;
    for window in &all {
        expected += window.rows.iter().map(|row| row.count).sum::<u64>();
        store.append(window.clone());
    }
    assert_eq!(samples(&store), expected, "all is answered from memory");
    let usage = store.disk().unwrap();
    assert!(
        usage.failing.iter().any(|(what, says)| *what == "journal" && says.contains("space")),
        "{usage:?}"
    );
    assert!(usage.pending_bytes > 0);
    store.settle();
    let usage = store.disk().unwrap();
    assert!(usage.failing.iter().any(|(what, _)| *what == "block"), "{usage:?}");
    assert_eq!(samples(&store), expected);
    // Room again: the block is written, and nothing is missing after the next start.
    disk.again("size=8m");
    store.settle();
    let usage = store.disk().unwrap();
    assert!(usage.failing.is_empty() && usage.blocks > 0, "{usage:?}");
    assert_eq!(samples(&store), expected);
    drop(store);
    assert_eq!(samples(&open(&disk.0)), expected);
}

#[test]
fn a_disk_that_becomes_read_only_costs_no_answer_and_recovers() {
    let root = tempfile::tempdir().unwrap();
    let Some(disk) = Tmpfs::mount(&root.path().join("ro"), "size=8m") else { return };
    let store = open(&disk.0);
    let all = some(6);
    let count = |windows: &[Window]| windows.iter().flat_map(|w| &w.rows).map(|row| row.count).sum::<u64>();
    all[..2].iter().for_each(|window| store.append(window.clone()));
    store.settle();
    // A file that is open for writing keeps a file system from becoming read-only.
    disk.again("ro");
    all[2..4].iter().for_each(|window| store.append(window.clone()));
    let usage = store.disk().unwrap();
    assert!(
        usage.failing.iter().any(|(what, says)| *what == "journal" && says.contains("Read-only")),
        "{usage:?}"
    );
    assert_eq!(samples(&store), count(&all[..4]));
    disk.again("rw");
    all[4..].iter().for_each(|window| store.append(window.clone()));
    let usage = store.disk().unwrap();
    assert!(usage.failing.is_empty() && usage.pending_bytes == 0, "{usage:?}");
    assert!(usage.errors.iter().any(|(what, count)| *what == "journal" && *count >= 2));
    drop(store);
    assert_eq!(samples(&open(&disk.0)), count(&all), "what waited is in the journal");
}

#[test]
fn memory_is_bounded_when_no_block_can_be_written() {
    let root = tempfile::tempdir().unwrap();
    let Some(disk) = Tmpfs::mount(&root.path().join("full"), "size=64k") else { return };
    let limit = 300_000;
    let store = DiskStore::open(DiskStoreConfig { memory_bytes: limit, ..config(&disk.0) }).unwrap();
    for round in 0..40 {
        for mut window in some(10) {
            window.range = range(round * 100, round * 100 + 10);
            store.append(window);
        }
        store.settle();
    }
    let usage = store.usage();
    assert!(usage.bytes <= limit, "{usage:?}");
    assert!(usage.dropped_for_bytes > 0 && usage.windows > 0, "{usage:?}");
}
