//! What the end-to-end tests share: what `cargo xtask test` tells them, how a test says that it cannot
//! run here, the launchers of `xtask::launch` (Spark jobs, Java programs, the daemon), and the daemon's server over
//! known rows.
//!
//! `cargo xtask test` sets EMBERSCOPE_BIN (the optimised daemon), EMBERSCOPE_VENV (Python with
//! pyspark), EMBERSCOPE_JAVA (the JDK for Spark), `EMBERSCOPE_JAVA17` and its kin for every JDK of the machine, and
//! EMBERSCOPE_SKIP_LOG; and EMBERSCOPE_VENV_NEWEST where a newer Spark has been installed. Run by hand
//! without them, a test that needs one skips itself and says which.
//!
//! ```no_run
//! # use emberscope_tests::*;
//! #[test]
//! fn an_executor_is_known() -> anyhow::Result<()> {
//!     let Some(here) = Here::or_skip("an_executor_is_known") else { return Ok(()) };
//!     let dir = tempfile::tempdir()?;
//!     let daemon = here.daemon(dir.path(), &[])?;
//!     let mut job = here.spark("demo.py", dir.path()).arg("--seconds").arg("20").start()?;
//!     let app = job.wait_fact("app", WARM_UP)?;
//!     assert!(daemon.json("/api/v1/apps")?.to_string().contains(&app));
//!     Ok(())
//! }
//! ```

// What fails here fails a test, and says why: no caller tells errors apart.
#![allow(clippy::missing_errors_doc)]

mod command;
mod elf;
mod fake_store;
mod here;
mod kernel;
pub mod page;
mod server;
mod silent;
mod stolen;
mod visible;

pub use command::{Ran, copy_program, ran};
pub use elf::{Function, function};
pub use fake_store::FakeStore;
pub use here::{Here, WARM_UP, jdk, required};
pub use kernel::{host, tracefs, walking_host};
pub use server::{BEHIND_A_PROXY, Server};
pub use silent::{silent_libjvm, stripped_libjvm};
pub use stolen::Stolen;
pub use visible::{VISIBLE, wait_for, wait_visible};
pub use xtask::launch::{
    Daemon, JavaProgram, Job, Running, SparkJob, daemon::Reply, port::free_port, spark::FRAME_POINTERS,
};

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

/// Whether a program can be given mounts of its own. Not in a plain chroot, whose root is no mount point:
/// unshare cannot make it private.
pub fn can_unshare_mounts() -> bool {
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "true"]).stderr(std::process::Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Whether this process may load BPF programs (root, as far as the tests go).
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
