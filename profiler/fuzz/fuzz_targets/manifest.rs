//! A block's manifest from anybody: any text, and a sound one that was changed. What is read of it leads out of no
//! directory, and questions over the block end.
#![cfg_attr(fuzzing, no_main)]

mod shared;

use emberscope_store::{BlockFacts, MANIFEST};
use libfuzzer_sys::fuzz_target;
use shared::{BLOCK, FILES, ask, block_in, fixture, spoil, store_of};

fuzz_target!(|input: (bool, &[u8])| {
    let (whole, bytes) = input;
    let manifest = if whole { bytes.to_vec() } else { spoil(&FILES[MANIFEST], bytes) };
    if let Ok(facts) = BlockFacts::of(BLOCK, manifest.clone()) {
        assert!(facts.files.iter().all(|(name, ..)| !name.contains('/') && !name.starts_with('.')));
        let _ = (facts.crc32(), facts.bytes());
        if let Some(volume) = block_in(&fixture().join("blocks").join(BLOCK), manifest) {
            ask(&store_of(volume));
        }
    }
});
