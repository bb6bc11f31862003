//! Files in a process's own root, by paths that it was told.
//!
//! Not those on a file system that a program serves (FUSE), as with mapped files: a path that leads through one's mount point is
//! not walked, and what a link leads to is looked at, without asking its server, before it is opened. A link to a server that
//! does not answer, or an overlay above one, holds a thread that can be given up.

use super::{ProcRoot, ReadError};
use emberscope_model::Pid;
use emberscope_target::errand::{About, What};
use emberscope_target::open::{self, Refusal};
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Bytes of a table of mounts that are read.
const MAX_MOUNTS: u64 = 4 << 20;

impl ProcRoot {
    /// Up to `limit` bytes of a file that the process could read by this path of its own: inside its root, a regular file,
    /// its user's or one that everybody may read. On a thread that can be given up, as [`ProcRoot::read_memory`].
    ///
    /// # Errors
    /// [`ReadError::Gone`]: there is none. [`ReadError::Denied`]: it is another user's. [`ReadError::Late`]: it takes longer
    /// than the caller waits. [`ReadError::Failed`]: it is no regular file, on FUSE, or cannot be read.
    pub fn read_inside(&self, pid: Pid, path: PathBuf, limit: usize) -> Result<Vec<u8>, ReadError> {
        let dir = self.path().join(pid.to_string());
        let uid = About::process(&dir, What::Root).uid;
        self.soon(pid, What::Root, move || {
            let mounts = mounts_of(&dir);
            if leads_through_fuse(&mounts, &path) {
                return Err(ReadError::Failed);
            }
            let root = open::root(&dir.join("root")).map_err(refused)?;
            let inside = path.strip_prefix("/").unwrap_or(&path);
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let handle =
                open::in_root(&root, inside, flags, Mode::empty()).map_err(|error| refused(error.into()))?;
            if is_on_fuse(&mounts, &handle) {
                return Err(ReadError::Failed);
            }
            // What was looked at, not what has the path by now.
            let (file, stat) = open::behind(&handle).map_err(refused)?;
            if !is_readable(stat.st_uid, stat.st_mode, uid) {
                return Err(ReadError::Denied);
            }
            let mut bytes = Vec::new();
            file.take(limit as u64).read_to_end(&mut bytes).map_err(|e| ReadError::from_io(&e))?;
            Ok(bytes)
        })
    }
}

/// The mounts that a process sees, as proc_pid_mountinfo(5) has them.
fn mounts_of(dir: &Path) -> String {
    let text = open::read_bounded(&dir.join("mountinfo"), MAX_MOUNTS).unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}

/// Number, mount point, and whether it is FUSE, of each mount.
fn mounts(mountinfo: &str) -> impl Iterator<Item = (u64, &str, bool)> {
    mountinfo.lines().filter_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ');
        Some((fields.next()?.parse().ok()?, fields.nth(3)?, kind.starts_with("fuse")))
    })
}

/// Whether the mount point of a FUSE file system is on a path, as it is written.
fn leads_through_fuse(mountinfo: &str, path: &Path) -> bool {
    // As the table has them (show_mountinfo, fs/proc_namespace.c).
    let escapes = [('\\', "\\134"), (' ', "\\040"), ('\t', "\\011"), ('\n', "\\012")];
    let escape = |path: String, (from, to): (char, &str)| path.replace(from, to);
    let path = escapes.into_iter().fold(path.to_string_lossy().into_owned(), escape);
    mounts(mountinfo).any(|(_, point, is_fuse)| is_fuse && Path::new(&path).starts_with(point))
}

/// Whether a file is on FUSE: by its mount, or where that is in no table (it was detached) if its device has no hardware. Its
/// server is not asked.
fn is_on_fuse(mountinfo: &str, handle: &OwnedFd) -> bool {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let Ok(stat) = rustix::fs::statx(handle, "", flags, StatxFlags::MNT_ID) else { return true };
    let known = |table: &str| {
        let mut mounts = mounts(table);
        mounts.find(|(id, ..)| *id == stat.stx_mnt_id).map(|(.., is_fuse)| is_fuse)
    };
    let known = known(mountinfo).or_else(|| known(&mounts_of(Path::new("/proc/self"))));
    known.unwrap_or(stat.stx_dev_major == 0)
}

/// Whether a user may read a file without his groups: this daemon may read all, and must be no way to.
fn is_readable(owner: u32, mode: u32, uid: u32) -> bool {
    uid == 0 || owner == uid || mode & 0o004 != 0
}

fn refused(refusal: Refusal) -> ReadError {
    match refusal {
        Refusal::ProcessGone | Refusal::Missing => ReadError::Gone,
        _ => ReadError::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_elses_file_is_read() {
        assert!(is_readable(1000, 0o100_400, 1000) && is_readable(0, 0o100_644, 1000));
        assert!(!is_readable(0, 0o100_600, 1000) && !is_readable(1001, 0o100_640, 1000));
        assert!(is_readable(1001, 0o100_600, 0));
    }
    #[test]
    fn nothing_on_fuse_is_opened() {
        let table = "36 35 98:0 / / rw,noatime master:1 - ext3 /dev/root rw\n\
                     4294967295 36 0:52 / /home/u/my\\040mnt rw - fuse.sshfs host:/ rw\nbroken\n";
        let through = |path: &str| leads_through_fuse(table, Path::new(path));
        assert!(through("/home/u/my mnt/conf/p") && through("/home/u/my mnt"));
        assert!(!through("/home/u/my mnt2/p") && !through("/home/u/p"));
        let dir = tempfile::tempdir().unwrap();
        let process = dir.path().join("7");
        std::fs::create_dir_all(process.join("root/home/u/my mnt")).unwrap();
        std::fs::write(process.join("root/home/u/my mnt/p"), "on FUSE").unwrap();
        std::fs::write(process.join("root/home/u/p"), "here").unwrap();
        std::fs::write(process.join("mountinfo"), table).unwrap();
        let read = |path: &str| ProcRoot::new(dir.path()).read_inside(7, path.into(), 100);
        assert_eq!(read("/home/u/p"), Ok(b"here".to_vec()));
        assert_eq!(read("/home/u/my mnt/p"), Err(ReadError::Failed));
        // What a link leads to is known by its mount.
        let handle = open::root(dir.path()).unwrap();
        let stat = rustix::fs::statx(&handle, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).unwrap();
        let of = |kind: &str| format!("{} 1 0:52 / /elsewhere rw - {kind} x rw\n", stat.stx_mnt_id);
        assert!(is_on_fuse(&of("fuse.sshfs"), &handle) && !is_on_fuse(&of("ext4"), &handle));
    }
}
