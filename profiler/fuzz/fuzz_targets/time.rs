//! Points and lengths of time. What is read and written again must be the same instant.
#![cfg_attr(fuzzing, no_main)]

use emberscope_model::WallTime;
use emberscope_serve::time::{parse_length, parse_time};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let now = WallTime(1_795_000_000_000_000_000);
    let _ = parse_length(text);
    if let Ok(time) = parse_time(text, now) {
        // Written with milliseconds, and years beyond 9999 cannot come out of the parser.
        let again = parse_time(&time.to_string(), now);
        assert_eq!(again.map(WallTime::as_millis), Ok(time.as_millis()));
    }
});
