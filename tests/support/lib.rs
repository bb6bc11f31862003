//! What the end-to-end tests share.

use std::io::Write;

/// Records that a test could not run and why; `cargo xtask test` counts these. The caller returns
/// after it.
pub fn skip(test: &str, reason: &str) {
    eprintln!("SKIPPED {test}: {reason}");
    if let Some(path) = std::env::var_os("EMBERSCOPE_SKIP_LOG")
        && let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(path)
    {
        let _ = writeln!(file, "{test}\t{reason}");
    }
}

/// Whether this process may load BPF programs (root, as far as the tests go).
pub fn is_root() -> bool {
    // SAFETY: geteuid has no preconditions and cannot fail.
    #[allow(unsafe_code)]
    unsafe {
        libc::geteuid() == 0
    }
}
