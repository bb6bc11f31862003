//! Bad objects of an archive by the thousand, in a process that may not have more than 512 MiB:
//! `cargo run --release -p emberscope-archive --example bad_blocks -- 10000 [SEED]`.
//!
//! In: the block and the journal of tests/fixtures/store-1, and how often they are spoiled. Out: one line, and failure
//! where the process ended by itself or what was refused was not named.

mod spoil;

use emberscope_model::{Detail, LabelKey, Query, SampleKind, Selection, TimeRange, WallTime};
use emberscope_store::{
    AnswerLimits, BlockFacts, Fetch, JournalReader, MANIFEST, Shelf, ShelfStore, Store, StoreError,
    StoreUsage, Touch, Volume, blocks_of, journals_of,
};
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |place: usize, default: u64| words.get(place).and_then(|word| word.parse().ok()).unwrap_or(default);
    if words.first().is_some_and(|word| word == "--child") {
        println!("{}", spoil::run(number(1, 0), number(2, 1)));
        return ExitCode::SUCCESS;
    }
    let (count, seed) = (number(0, 10_000).to_string(), number(1, 1).to_string());
    let child = std::env::current_exe()
        .and_then(|program| Command::new(program).args(["--child", &count, &seed]).status());
    match child {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(status) => {
            println!("bad objects: FAILED, the process that read them ended by itself: {status}");
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("bad objects: FAILED, {error}");
            ExitCode::FAILURE
        }
    }
}
