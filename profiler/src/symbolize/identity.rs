//! Does something as another user, on the calling thread only.
//!
//! Files in a target's /tmp are made, and its attach socket is spoken to, with the target's own user and
//! group: the JVM demands that (or root, where it can see who root is), and whatever a hostile target
//! steers us to is then no more than it could reach itself. The kernel keeps credentials per thread
//! (credentials(7)); the raw system calls leave the other threads alone.

use rustix::process::{Gid, Uid, getegid, geteuid};
use rustix::thread::{set_thread_res_gid, set_thread_res_uid};

/// Runs `work` as `uid` and `gid`. Where that is not allowed (no CAP_SETUID) or not needed it runs as
/// who we are; a JVM accepts root too.
pub fn as_user<T>(uid: u32, gid: u32, work: impl FnOnce() -> T) -> T {
    let _restore = Switched::to(uid, gid);
    work()
}

struct Switched {
    uid: Uid,
    gid: Gid,
}

impl Switched {
    fn to(uid: u32, gid: u32) -> Option<Self> {
        let before = Self { uid: geteuid(), gid: getegid() };
        if uid == u32::MAX || gid == u32::MAX || before.uid.as_raw() == uid {
            return None;
        }
        set_thread_res_gid(None, Gid::from_raw(gid), None).ok()?;
        if set_thread_res_uid(None, Uid::from_raw(uid), None).is_err() {
            let _ = set_thread_res_gid(None, before.gid, None);
            return None;
        }
        Some(before)
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        // Cannot fail: the real and saved ids were kept. If it did, the thread would only have less.
        let _ = set_thread_res_uid(None, self.uid, None);
        let _ = set_thread_res_gid(None, self.gid, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn is_the_other_user_for_a_while_on_this_thread_only() {
        if !geteuid().is_root() {
            eprintln!("skipped: only root can become somebody else");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o1777)).unwrap();
        let file = dir.path().join("f");
        as_user(12345, 23456, || {
            std::fs::write(&file, "").unwrap();
            assert!(std::fs::read("/etc/shadow").is_err());
            assert_eq!(
                std::thread::spawn(|| geteuid().as_raw()).join().unwrap_or(0),
                12345,
                "threads inherit"
            );
        });
        let meta = std::fs::metadata(&file).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (12345, 23456));
        assert!(geteuid().is_root() && getegid().is_root());
        assert!(std::fs::read("/etc/shadow").is_ok(), "capabilities are back");
    }
}
