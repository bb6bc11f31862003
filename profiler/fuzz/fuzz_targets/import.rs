//! Readers of other profilers' files, on any bytes taken for any of the formats: no panic, no end of memory.
#![cfg_attr(fuzzing, no_main)]

use emberscope_import::{Events, Format, Told, read};
use emberscope_model::ThreadClass;
use libfuzzer_sys::fuzz_target;
use std::time::Duration;

fuzz_target!(|input: (u8, bool, &[u8])| {
    let (kind, nanoseconds, bytes) = input;
    let format = Format::ALL[usize::from(kind) % Format::ALL.len()];
    let all: Vec<Events> = Events::all().collect();
    let events = all.get(usize::from(kind / 4) % all.len()).copied().unwrap_or(Events::Cpu);
    let told = Told {
        range: None,
        written_ns: 1_795_334_403_000_000_000,
        period: Some(Duration::from_millis(10)),
        nanoseconds,
        events,
        window: Duration::from_secs(10),
        class_of: |_| ThreadClass::Other,
    };
    if let Ok(imported) = read(bytes, Some(format), &told) {
        let rows = imported.windows.iter().flat_map(|window| &window.rows);
        assert!(rows.map(|row| u128::from(row.count)).sum::<u128>() >= u128::from(imported.sampled.count));
    }
});
