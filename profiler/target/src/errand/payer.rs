//! Who answers for what is read of a process: its user, or the one who made the users that it has; and its cgroup.
//!
//! A user with a range in /etc/subuid can be any of its 65,536 users, in a user namespace that is his. So whoever owns the
//! namespace answers for all in it: of nested ones the outermost below ours (`NS_GET_PARENT`, `NS_GET_OWNER_UID`, Linux 4.11;
//! ioctl_nsfs(2)). One that root made (a container's) says nothing: there each user answers for himself. Opening /proc/PID/ns/user takes
//! neither the process's memory nor its mmap_lock (fs/proc/namespaces.c, Linux 6.18).
#![allow(unsafe_code)]

use emberscope_model::{Tenant, cgroup_of};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// User namespaces may be nested so deep (kernel/user_namespace.c).
const MAX_NESTED: usize = 33;
/// Bytes of /proc/PID/cgroup that are read.
const MAX_CGROUP: u64 = 16 << 10;

/// The user who answers for a process of this one; `dir` is its directory in /proc.
pub(super) fn user(dir: &Path, uid: u32) -> u32 {
    owner(dir).filter(|owner| *owner != 0).unwrap_or(uid)
}

/// The cgroup of a process, as a [`Tenant`] has it. /proc/PID/cgroup needs neither its memory nor its mmap_lock.
pub(super) fn group(dir: &Path) -> Option<u64> {
    let mut text = Vec::new();
    File::open(dir.join("cgroup")).ok()?.take(MAX_CGROUP).read_to_end(&mut text).ok()?;
    let lines: Vec<String> = String::from_utf8_lossy(&text).lines().map(str::to_owned).collect();
    Some(Tenant::new(false, 0, &cgroup_of(&lines)).group)
}

/// Who owns the outermost user namespace below ours that a process is in; None: it is in ours, or may not be looked at.
fn owner(dir: &Path) -> Option<u32> {
    let mut namespace = OwnedFd::from(File::open(dir.join("ns/user")).ok()?);
    let mut owner = None;
    for _ in 0..MAX_NESTED {
        // EPERM: it is ours.
        let Some(parent) = parent_of(&namespace) else { break };
        owner = owner_of(&namespace).or(owner);
        namespace = parent;
    }
    owner
}

fn parent_of(namespace: &OwnedFd) -> Option<OwnedFd> {
    // SAFETY: it takes no argument.
    let parent = unsafe { libc::ioctl(namespace.as_raw_fd(), libc::NS_GET_PARENT) };
    // SAFETY: a descriptor that the call made and nobody else has.
    (parent >= 0).then(|| unsafe { OwnedFd::from_raw_fd(parent) })
}

fn owner_of(namespace: &OwnedFd) -> Option<u32> {
    let mut uid: libc::uid_t = 0;
    // SAFETY: it writes a uid_t, into one of ours.
    let done = unsafe { libc::ioctl(namespace.as_raw_fd(), libc::NS_GET_OWNER_UID, &raw mut uid) };
    (done == 0).then_some(uid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    /// `sleep` in a user namespace of its own, or in one within that; None where that is not allowed.
    fn apart(nested: bool) -> Option<Child> {
        let words: &[&str] = if nested { &["-U", "-r", "unshare", "-U"] } else { &["-U"] };
        let mut command = Command::new("unshare");
        command.args(words).args(["sleep", "60"]).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let sleeps = |child: &Child| {
            let comm = std::fs::read_to_string(format!("/proc/{}/comm", child.id()));
            comm.is_ok_and(|comm| comm.trim() == "sleep")
        };
        let until = Instant::now() + Duration::from_secs(10);
        while !sleeps(&child) {
            if Instant::now() > until || !matches!(child.try_wait(), Ok(None)) {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(child)
    }

    #[test]
    fn who_made_a_user_namespace_answers_for_all_in_it() {
        let me = rustix::process::geteuid().as_raw();
        assert_eq!(owner(Path::new("/proc/self")), None, "ours");
        for nested in [false, true] {
            let Some(mut child) = apart(nested) else {
                emberscope_testkit::skip("no user namespaces can be made here");
                return;
            };
            let dir = format!("/proc/{}", child.id());
            let (owner, user) = (owner(Path::new(&dir)), user(Path::new(&dir), 100_007));
            let _ = child.kill();
            let _ = child.wait();
            assert_eq!(owner, Some(me), "nested: {nested}");
            assert_eq!(user, if me == 0 { 100_007 } else { me }, "nested: {nested}");
        }
    }

    #[test]
    fn what_cannot_be_looked_at_answers_for_itself() {
        assert_eq!(user(Path::new("/nowhere/7"), 1000), 1000);
        assert_eq!(group(Path::new("/nowhere/7")), None);
        assert!(group(Path::new("/proc/self")).is_some());
    }
}
