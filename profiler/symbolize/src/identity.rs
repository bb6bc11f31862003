//! Does something as another user, on the calling thread only.
//!
//! Files in a target's /tmp are made, and its attach socket is spoken to, with the target's own user and
//! group: the JVM demands that (or root, where it can see who root is), and whatever a hostile target
//! steers us to is then no more than it could reach itself. So the effective capabilities go too: the
//! kernel drops them only where an effective user 0 becomes another (capabilities(7)), and a daemon with a
//! user of its own would keep them. The kernel keeps credentials per thread (credentials(7)); the raw
//! system calls leave the other threads alone.

use rustix::process::{Gid, Uid, getegid, geteuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, get_keep_capabilities, set_capabilities,
    set_keep_capabilities, set_thread_res_gid, set_thread_res_uid,
};

/// Runs `work` as `uid` and `gid`, without capabilities. Where that is not allowed (no CAP_SETUID) it runs
/// as who we are; a JVM accepts root too.
pub fn as_user<T>(uid: u32, gid: u32, work: impl FnOnce() -> T) -> T {
    let _restore = Switched::to(uid, gid);
    work()
}

struct Switched {
    uid: Uid,
    gid: Gid,
    capabilities: CapabilitySets,
    keep: bool,
}

impl Switched {
    fn to(uid: u32, gid: u32) -> Option<Self> {
        let capabilities = capabilities(None).ok()?;
        let keep = get_keep_capabilities().ok()?;
        let before = Self { uid: geteuid(), gid: getegid(), capabilities, keep };
        // Root stays root, with what it may: a target that is root can reach as much.
        let root_to_root = uid == 0 && before.uid.is_root();
        if uid == u32::MAX || gid == u32::MAX || root_to_root {
            return None;
        }
        // From here on, dropping `before` puts back whatever was changed.
        // Without it a thread whose only 0 was its effective user comes back with nothing permitted.
        set_keep_capabilities(true).ok()?;
        if before.uid.as_raw() != uid || before.gid.as_raw() != gid {
            set_thread_res_gid(None, Gid::from_raw(gid), None).ok()?;
            set_thread_res_uid(None, Uid::from_raw(uid), None).ok()?;
        }
        let none = CapabilitySets { effective: CapabilitySet::empty(), ..capabilities };
        set_capabilities(None, none).ok()?;
        Some(before)
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        // Cannot fail: the real and saved ids and the permitted set were kept. If it did, the thread would
        // only have less.
        let _ = set_thread_res_uid(None, self.uid, None);
        let _ = set_thread_res_gid(None, self.gid, None);
        let _ = set_capabilities(None, self.capabilities);
        let _ = set_keep_capabilities(self.keep);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn is_the_other_user_for_a_while_on_this_thread_only() {
        if !geteuid().is_root() {
            emberscope_testkit::skip("only root can become somebody else");
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

    /// As systemd's `User=` with `AmbientCapabilities=` leaves a thread.
    fn become_service(uid: u32, keep: CapabilitySet) {
        rustix::thread::set_keep_capabilities(true).unwrap();
        let ids = (Gid::from_raw(uid), Uid::from_raw(uid));
        set_thread_res_gid(ids.0, ids.0, ids.0).unwrap();
        set_thread_res_uid(ids.1, ids.1, ids.1).unwrap();
        let sets = CapabilitySets { effective: keep, permitted: keep, inheritable: CapabilitySet::empty() };
        set_capabilities(None, sets).unwrap();
        set_keep_capabilities(false).unwrap();
    }

    #[test]
    fn a_service_with_capabilities_has_none_while_it_is_another_user() {
        if !geteuid().is_root() {
            emberscope_testkit::skip("only root can become somebody else");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let secret = dir.path().join("secret");
        std::fs::write(&secret, "").unwrap();
        std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        // A thread of its own: what it gives up, it does not get back.
        let service = move || {
            let keep = CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::DAC_READ_SEARCH;
            become_service(12345, keep);
            assert!(std::fs::read(&secret).is_ok(), "the capability works");
            // Another user, the service's own user, root.
            for uid in [23456, 12345, 0, 23456] {
                as_user(uid, uid, || {
                    assert_eq!((geteuid().as_raw(), getegid().as_raw()), (uid, uid));
                    assert!(capabilities(None).unwrap().effective.is_empty(), "as {uid}");
                    assert_eq!(std::fs::read(&secret).is_ok(), uid == 0, "as {uid}");
                });
                assert_eq!((geteuid().as_raw(), getegid().as_raw()), (12345, 12345));
                assert_eq!(capabilities(None).unwrap().effective, keep, "back from {uid}");
                assert!(std::fs::read(&secret).is_ok(), "back from {uid}");
            }
        };
        std::thread::spawn(service).join().unwrap();
    }
}
