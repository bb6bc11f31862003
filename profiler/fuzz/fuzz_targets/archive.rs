//! An archive that somebody else writes to: one object of it, its name or its bytes, is changed, and it is asked. The
//! sound archive has a node's block, an open part and an application's hour that was brought together.
#![cfg_attr(fuzzing, no_main)]

mod shared;

use emberscope_archive::{CompactConfig, Reader, ReaderConfig, compact};
use emberscope_model::{TimeRange, WallTime};
use emberscope_store::{AnswerLimits, BlockFacts, MANIFEST, ShelfStore};
use libfuzzer_sys::fuzz_target;
use shared::{BLOCK, FILES, JOURNAL, ask, manifest_for, scratch, spoil};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

/// The archive's directory, and its objects below it.
static SOUND: LazyLock<(PathBuf, Vec<(PathBuf, Vec<u8>)>)> = LazyLock::new(|| {
    let root = scratch().keep();
    for (name, bytes) in FILES.iter() {
        put(&root.join(format!("v1/nodes/n/blocks/{BLOCK}/{name}")), bytes);
    }
    put(&index(&root, &FILES[MANIFEST]), &FILES[MANIFEST]);
    let open = format!(
        "v1/open/n/20231114T221400Z-000000000002/{:012}-{:012}-{:08x}",
        0,
        JOURNAL.len(),
        crc32fast::hash(&JOURNAL)
    );
    put(&root.join(open), &JOURNAL);
    let config = CompactConfig {
        url: format!("file://{}", root.display()),
        dir: scratch().keep(),
        dir_bytes: 1 << 30,
        memory_bytes: 64 << 20,
        app: None,
        range: TimeRange { from: WallTime(0), until: WallTime::now() },
    };
    compact(&config, |_| {}).expect("the fixture's hour is brought together");
    let mut objects = Vec::new();
    gather(&root, &mut objects);
    (root, objects)
});

fn index(root: &Path, manifest: &[u8]) -> PathBuf {
    root.join(format!("v1/index/20231114T22/n/{BLOCK}.{:08x}", crc32fast::hash(manifest)))
}

fn put(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().expect("a name with a directory")).expect("a directory");
    fs::write(path, bytes).expect("to write an object");
}

fn gather(dir: &Path, into: &mut Vec<(PathBuf, Vec<u8>)>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(dir).expect("a directory").flatten().map(|e| e.path()).collect();
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true => gather(&path, into),
            false => into.push((path.clone(), fs::read(&path).expect("an object"))),
        }
    }
}

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (which, how, changes) = input;
    let (root, objects) = &*SOUND;
    let (path, bytes) = &objects[usize::from(which) % objects.len()];
    let spoiled = spoil(bytes, changes);
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let in_block = path.starts_with(root.join("v1/nodes"));
    // What is put there beside the sound objects or in their place, and goes again.
    let mut added: Vec<PathBuf> = Vec::new();
    match how % 3 {
        // A table of the block, told truly by a manifest and an index of its own.
        0 if in_block && name != MANIFEST => {
            fs::write(path, &spoiled).expect("to write an object");
            let manifest = manifest_for(name, &spoiled);
            added.push(index(root, &manifest));
            put(&index(root, &manifest), &manifest);
            let _ = fs::remove_file(index(root, &FILES[MANIFEST]));
        }
        // A name with odd letters or numbers.
        1 => {
            let odd: String = String::from_utf8_lossy(&spoil(name.as_bytes(), changes))
                .chars()
                .filter(|c| *c != '/' && *c != '\0')
                .take(200)
                .collect();
            let odd = path.with_file_name(if matches!(&*odd, "" | "." | "..") { "odd" } else { &odd });
            if !odd.exists() && fs::write(&odd, bytes).is_ok() {
                added.push(odd);
            }
        }
        _ => fs::write(path, &spoiled).expect("to write an object"),
    }
    let cache = scratch();
    let config = ReaderConfig {
        refresh: Duration::ZERO,
        ..ReaderConfig::new(format!("file://{}", root.display()), cache.path())
    };
    if let Ok(reader) = Reader::open(config) {
        let limits = AnswerLimits { threads: 1, ..AnswerLimits::default() };
        ask(&ShelfStore::new(reader, Duration::from_secs(10), limits));
    }
    let _ = BlockFacts::of(name, spoiled);
    for path in added {
        let _ = fs::remove_file(path);
    }
    put(path, bytes);
    put(&index(root, &FILES[MANIFEST]), &FILES[MANIFEST]);
});
