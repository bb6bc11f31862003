//! What a JVM is and whether it may be asked: facts from its files and from /proc, no side effects.
//!
//! The version comes from the `release` file of the JDK that libjvm.so was loaded from. Whether SIGQUIT
//! is safe comes from SigCgt in `/proc/PID/status` (a JVM that has not installed its handler yet would
//! die of it), from the thread that handles it, and from libjvm being mapped.

use emberscope_target::open::{self, Refusal};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// `Compiler.perfmap` came with JDK 17 (JDK-8254723).
pub const FIRST_WITH_PERFMAP: u32 = 17;

/// Feature release of a version text: `17.0.15` is 17, `1.8.0_392` is 8.
pub fn major(version: &str) -> Option<u32> {
    let mut parts = version.split(|c: char| !c.is_ascii_digit());
    match parts.next()?.parse().ok()? {
        1 => parts.next()?.parse().ok(),
        major => Some(major),
    }
}

/// Version from the `release` file above `libjvm` inside `root`.
pub fn version_of(root: &OwnedFd, libjvm: &Path) -> Option<String> {
    // lib/server/libjvm.so since 9, jre/lib/amd64/server/libjvm.so before.
    for home in libjvm.ancestors().skip(3).take(3) {
        let path = home.join("release");
        let Ok((file, _)) = open::any_regular_file(root, path.strip_prefix("/").unwrap_or(&path)) else {
            continue;
        };
        if let Some(version) = release_version(file) {
            return Some(version);
        }
    }
    None
}

fn release_version(file: File) -> Option<String> {
    let mut text = Vec::new();
    file.take(64 << 10).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find_map(|l| l.strip_prefix("JAVA_VERSION="))?;
    let version = emberscope_target::text::bounded(line.trim().trim_matches('"').as_bytes(), 64);
    major(&version).is_some().then_some(version)
}

/// Whether a process may be sent SIGQUIT to make it open its attach socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The process handles the signal as HotSpot does.
    Ready,
    /// The process is gone, or another one has its pid.
    Gone,
    /// The process does not catch the signal, so the signal would kill it: it is still starting, or runs with -Xrs.
    NotCatching,
    /// The process is stopped: it could not answer.
    Stopped,
    /// libjvm.so is not mapped, or it is another virtual machine than HotSpot.
    NotHotSpot,
    /// `-XX:+DisableAttachMechanism`: the JVM would print a thread dump instead.
    Disabled,
}

/// Looks at `/proc/PID`; the answer holds for this instant only.
pub fn readiness(process_dir: &Path, start_ticks: u64) -> Readiness {
    let read = |name: &str, limit| open::read_bounded(&process_dir.join(name), limit);
    let disabled = |text: &[u8]| text.windows(23).any(|w| w == b"+DisableAttachMechanism");
    if ["cmdline", "environ"].iter().any(|f| read(f, 2 << 20).is_ok_and(|t| disabled(&t))) {
        return Readiness::Disabled;
    }
    let Ok(maps) = open::mappings(process_dir) else { return Readiness::Gone };
    let mapped = |name: &str| maps.mappings.iter().any(|mapping| mapping.module_name().starts_with(name));
    if !mapped("libjvm.so") || mapped("libj9vm") {
        return Readiness::NotHotSpot;
    }
    if !has_signal_dispatcher(process_dir) {
        return Readiness::NotCatching;
    }
    if !emberscope_target::same_process(process_dir, start_ticks) {
        return Readiness::Gone;
    }
    let Ok(status) = read("status", 64 << 10) else { return Readiness::Gone };
    from_status(&String::from_utf8_lossy(&status))
}

/// The part of the readiness that `/proc/PID/status` tells.
fn from_status(status: &str) -> Readiness {
    let field = |name: &str| status.lines().find_map(|l| l.strip_prefix(name)).map(str::trim);
    match field("State:").and_then(|s| s.chars().next()) {
        Some('T' | 't') => return Readiness::Stopped,
        Some('Z' | 'X' | 'x') | None => return Readiness::Gone,
        Some(_) => {}
    }
    let caught = field("SigCgt:").and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0);
    let quit = 1u64 << (libc::SIGQUIT - 1);
    if caught & quit == 0 { Readiness::NotCatching } else { Readiness::Ready }
}

/// HotSpot's thread that takes signals; made just before the handler is installed (os.cpp
/// `initialize_jdk_signal_support`). The kernel cuts its name at 15 bytes.
fn has_signal_dispatcher(process_dir: &Path) -> bool {
    let Ok(tasks) = std::fs::read_dir(process_dir.join("task")) else { return false };
    tasks.take(4096).flatten().any(|task| {
        open::read_bounded(&task.path().join("comm"), 64)
            .is_ok_and(|name| name.starts_with(b"Signal Dispatch"))
    })
}

/// Where a JVM with this pid in its own namespace puts its map, inside its root.
pub fn map_path(nspid: u32) -> PathBuf {
    PathBuf::from(format!("tmp/perf-{nspid}.map"))
}

/// Whether the JVM may write its map to this path. True: its own regular file is there; false: nothing is.
///
/// # Errors
/// [`Refusal`]: something else is there, or it cannot be looked at. Another user's symlink would make the JVM
/// overwrite what it points to.
pub fn safe_to_write(root: &OwnedFd, path: &Path, uid: u32) -> Result<bool, Refusal> {
    match open::regular_file(root, path, uid) {
        Ok(_) => Ok(true),
        Err(Refusal::Missing) => Ok(false),
        Err(refusal) => Err(refusal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn majors() {
        for (text, expected) in [
            ("17.0.15", Some(17)),
            ("25", Some(25)),
            ("1.8.0_392", Some(8)),
            ("11.0.2", Some(11)),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(major(text), expected, "{text}");
        }
        assert_eq!(major("26-ea"), Some(26));
    }

    #[test]
    fn versions_of_both_layouts() {
        let dir = tempfile::tempdir().unwrap();
        let jdk = dir.path().join("opt/jdk");
        std::fs::create_dir_all(&jdk).unwrap();
        std::fs::write(jdk.join("release"), "IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"1.8.0_392\"\n").unwrap();
        let root = open::root(dir.path()).unwrap();
        let find = |path: &str| version_of(&root, Path::new(path));
        assert_eq!(find("/opt/jdk/jre/lib/amd64/server/libjvm.so").as_deref(), Some("1.8.0_392"));
        assert_eq!(find("/opt/jdk/lib/server/libjvm.so").as_deref(), Some("1.8.0_392"));
        assert_eq!(find("/elsewhere/lib/server/libjvm.so"), None);
        std::fs::write(jdk.join("release"), [0u8, 255, 3]).unwrap();
        assert_eq!(find("/opt/jdk/lib/server/libjvm.so"), None);
    }

    #[test]
    fn no_signal_to_who_does_not_catch_it() {
        let status =
            |state, mask| from_status(&format!("Name:\tjava\nState:\t{state} (x)\nSigCgt:\t{mask}\n"));
        assert_eq!(status("S", "0000000101005ccd"), Readiness::Ready);
        assert_eq!(status("S", "0000000101005cc9"), Readiness::NotCatching);
        assert_eq!(status("S", "garbage"), Readiness::NotCatching);
        assert_eq!(status("T", "0000000101005ccd"), Readiness::Stopped);
        assert_eq!(status("Z", "0000000101005ccd"), Readiness::Gone);
        assert_eq!(from_status(""), Readiness::Gone);
    }

    #[test]
    fn we_are_no_hotspot() {
        assert_eq!(readiness(Path::new("/proc/self"), 0), Readiness::NotHotSpot);
        assert_eq!(readiness(Path::new("/proc/4194305"), 0), Readiness::Gone);
        assert!(emberscope_target::same_process(Path::new("/proc/self"), 0));
        assert!(!emberscope_target::same_process(Path::new("/proc/self"), 1));
    }
}
