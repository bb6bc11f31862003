//! This machine's kernel for tests that load the BPF programs themselves.

use crate::{is_root, skip};
use emberscope_capture::{Capture, CaptureError, HostFeatures};
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Each of these tests samples the whole machine.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Mounts tracefs, which has the tracepoints' numbers, where there is none, as in a container.
pub fn tracefs() {
    let root = Path::new("/sys/kernel/tracing");
    if !root.join("events").is_dir() {
        let mounted = Command::new("mount").args(["-t", "tracefs", "tracefs"]).arg(root).status();
        assert!(mounted.is_ok_and(|status| status.success()), "tracefs can be mounted at {}", root.display());
    }
}

/// The host's features, if the programs can be loaded here, and the right to do so until it is dropped; None after
/// saying that `test` is skipped and why.
pub fn host(test: &str) -> Option<(HostFeatures, MutexGuard<'static, ()>)> {
    host_with(test, |_| {})
}

/// As [`host`], for tests of the walk: with EMBERSCOPE_WALK_IN_PIECES as on a kernel before 5.17.
pub fn walking_host(test: &str) -> Option<(HostFeatures, MutexGuard<'static, ()>)> {
    let in_pieces = std::env::var_os("EMBERSCOPE_WALK_IN_PIECES").is_some();
    host_with(test, |features| features.bpf_loop &= !in_pieces)
}

fn host_with(
    test: &str,
    change: impl FnOnce(&mut HostFeatures),
) -> Option<(HostFeatures, MutexGuard<'static, ()>)> {
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_root() {
        skip(test, "not root: BPF programs cannot be loaded");
        return None;
    }
    let (features, not_built) = probed();
    if let Some(why) = not_built {
        skip(test, why);
        return None;
    }
    let mut features = features.clone();
    change(&mut features);
    Some((features, guard))
}

/// The host's features, and why no program can be loaded. Once: the verifier takes seconds for all programs.
fn probed() -> &'static (HostFeatures, Option<String>) {
    static PROBED: OnceLock<(HostFeatures, Option<String>)> = OnceLock::new();
    PROBED.get_or_init(|| {
        let features = HostFeatures::probe();
        let not_built = match Capture::smoke(&features) {
            Err(error @ CaptureError::NotBuilt) => Some(error.to_string()),
            _ => None,
        };
        (features, not_built)
    })
}
