//! Spark's event logs, of any bytes: plain, packed, cut. Nothing but what is bounded comes out.
#![cfg_attr(fuzzing, no_main)]

use emberscope_import::{Bounds, EventLog};
use emberscope_model::SparkFactKind;
use libfuzzer_sys::fuzz_target;

const BOUNDS: Bounds = Bounds { log: 1 << 20, line: 1 << 16, each: 20, operators: 100 };

/// How packed logs begin: with zstd, lz4 and snappy, as Spark's codecs write them.
const BEGINS: [&[u8]; 4] =
    [b"", &[0x28, 0xb5, 0x2f, 0xfd], b"LZ4Block", &[0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0]];

fuzz_target!(|input: (u8, &[u8])| {
    let (begin, bytes) = input;
    let path = std::env::temp_dir().join(format!("emberscope-fuzz-event-log-{}", std::process::id()));
    let begin = BEGINS[usize::from(begin) % BEGINS.len()];
    std::fs::write(&path, [begin, bytes].concat()).unwrap();
    let log = EventLog::find(&path, None).unwrap().remove(0);
    let told = log.read_within(BOUNDS);
    std::fs::remove_file(&path).unwrap();
    let Ok(told) = told else { return };
    assert!(!told.app.is_empty() && told.first <= told.last);
    for kind in SparkFactKind::ALL {
        assert!(told.facts.iter().filter(|fact| fact.kind == kind).count() <= BOUNDS.each);
    }
    assert!(told.facts.iter().all(|fact| fact.is_bounded() && *fact.app == *told.app));
    assert!(told.remarks.len() <= 32, "{:?}", told.remarks);
});
