//! The perf map reader and the reader of its names, on any bytes: no panic, limits kept, and the same
//! answer whatever the buffer's size is.
#![cfg_attr(fuzzing, no_main)]

use emberscope_symbolize::{
    perf_map::{Limits, Wanted, scan},
    perf_map_frame,
};
use libfuzzer_sys::fuzz_target;
use std::io::BufReader;

fuzz_target!(|input: (&[u8], u8)| {
    let (bytes, buffer) = input;
    let limits = Limits { file_bytes: 1 << 20, entries: 64, name_bytes: 4096 };
    let wanted = Wanted { addresses: (0..256).map(|i| i * 0x101).collect(), known: vec![0x20..0x30, 0x7000..0x9000] };
    let whole = scan(bytes, &wanted, &limits);
    let pieces = scan(BufReader::with_capacity(usize::from(buffer) + 1, bytes), &wanted, &limits);
    match (whole, pieces) {
        (Ok(a), Ok(b)) => {
            assert_eq!(a, b);
            assert!(a.entries.len() <= 64 && a.entries.iter().map(|e| e.name.len()).sum::<usize>() <= 4096);
            for entry in &a.entries {
                assert!(!perf_map_frame(&entry.name, true).name.is_empty());
                perf_map_frame(&entry.name, false);
            }
        }
        (Err(_), Err(_)) => {}
        (a, b) => panic!("{a:?} {b:?}"),
    }
});
