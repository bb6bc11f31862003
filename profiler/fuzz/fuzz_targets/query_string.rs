//! The query string, and the whole of a request's reading.
#![cfg_attr(fuzzing, no_main)]

use emberscope_model::WallTime;
use emberscope_serve::{Asked, Params};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(params) = Params::selecting(Some(text), &["group"]) {
        let _ = Asked::read(&params, WallTime(1_795_000_000_000_000_000));
    }
});
