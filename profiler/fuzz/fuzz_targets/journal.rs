//! A journal from anybody: records that were changed, doubled, swapped or are any bytes, their checksums right; and
//! any bytes after a sound header.
#![cfg_attr(fuzzing, no_main)]

mod shared;

use emberscope_store::Volume;
use libfuzzer_sys::fuzz_target;
use shared::{JOURNAL, ask, journal_of, records, spoil, store_of};

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (how, which, bytes) = input;
    let mut all = records();
    let at = usize::from(which) % all.len().max(1);
    let journal = match how % 4 {
        0 => {
            all[at] = spoil(&all[at], bytes);
            journal_of(&all)
        }
        1 => {
            all.push(bytes.to_vec());
            journal_of(&all)
        }
        2 => {
            let again = spoil(&all[at], bytes);
            all.insert(0, again);
            journal_of(&all)
        }
        _ => [&JOURNAL[..24], bytes].concat(),
    };
    let volume = Volume::journal();
    let sound = volume.append(&journal);
    let _ = (sound, volume.range(), volume.windows(), volume.kept_bytes());
    ask(&store_of(volume));
});
