//! How a unit test says that it cannot run on this machine: `cargo xtask test` counts it apart, with the reason.
//!
//! libtest calls a test that returns early passed; it runs each in a thread of the test's name. The end-to-end tests have
//! the same in `emberscope_tests::skip`.

use std::io::Write as _;

/// Records that this thread's test cannot run, and why; the test returns after it.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    eprintln!("SKIPPED {test}: {reason}");
    if let Some(path) = std::env::var_os("EMBERSCOPE_SKIP_LOG")
        && let Ok(mut log) = std::fs::OpenOptions::new().create(true).append(true).open(path)
    {
        let _ = writeln!(log, "{test}\t{reason}");
    }
}
