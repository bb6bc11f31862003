//! The reader of blocks on Parquet files that were changed at will, lengths and checksums in the manifest told anew:
//! no panic, no end of memory, whatever is asked.
#![cfg_attr(fuzzing, no_main)]

mod shared;

use libfuzzer_sys::fuzz_target;
use shared::{FILES, ask, block_in, manifest_for, scratch, spoil, store_of};
use std::path::PathBuf;
use std::sync::LazyLock;

/// A copy of the sound block; a file is spoiled in it and put back.
static DIR: LazyLock<PathBuf> = LazyLock::new(|| {
    let dir = scratch().keep();
    for (name, bytes) in FILES.iter() {
        std::fs::write(dir.join(name), bytes).expect("a copy of the fixture");
    }
    dir
});

fuzz_target!(|input: (u8, &[u8])| {
    let (which, changes) = input;
    let tables: Vec<&String> = FILES.keys().filter(|name| name.ends_with(".parquet")).collect();
    let name = tables[usize::from(which) % tables.len()];
    let spoiled = spoil(&FILES[name], changes);
    std::fs::write(DIR.join(name), &spoiled).expect("to write the file");
    if let Some(volume) = block_in(&DIR, manifest_for(name, &spoiled)) {
        ask(&store_of(volume));
    }
    std::fs::write(DIR.join(name), &FILES[name]).expect("to put the file back");
});
