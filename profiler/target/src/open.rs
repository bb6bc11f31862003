//! Opens files of a process that may be hostile: a path or mapping in, a regular file out.
//!
//! Paths are walked by openat2 inside the process's own root (`/proc/PID/root`), with no magic links and
//! no symlink at the end; what is found is looked at (type, owner) through an O_PATH handle, which has no
//! side effects on FIFOs and devices, before it is opened for reading.

mod refusal;

pub use refusal::Refusal;

use super::errand::{self, About, What};
use super::maps::{self, Backing, Mapping, Maps};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, Statx, StatxFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Opens a directory to walk in, for instance `/proc/PID/root`.
///
/// # Errors
/// [`Refusal::ProcessGone`]: there is none. [`Refusal::Missing`]: it is no directory. [`Refusal::Symlink`],
/// [`Refusal::Unreadable`], [`Refusal::Exhausted`]: it cannot be opened.
pub fn root(path: &Path) -> Result<OwnedFd, Refusal> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|e| match e {
        Errno::NOENT | Errno::SRCH => Refusal::ProcessGone,
        other => other.into(),
    })
}

/// A handle (O_PATH) to what `path` is inside `root`, and its attributes.
///
/// # Errors
/// [`Refusal::Missing`]: there is none. [`Refusal::Symlink`]: the end is a symbolic link, or there are too many on the
/// way. [`Refusal::Unreadable`]: it cannot be opened.
pub fn look(root: &OwnedFd, path: &Path) -> Result<(OwnedFd, Stat), Refusal> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = in_root(root, path, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&handle)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
        return Err(Refusal::Symlink);
    }
    Ok((handle, stat))
}

/// Opens `path` by openat2, held inside `root`, never through magic links.
///
/// # Errors
/// What openat2(2) fails with; EAGAIN only after eight more tries.
pub fn in_root(root: &OwnedFd, path: &Path, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let mut tries = 0;
    loop {
        // EAGAIN: something was renamed meanwhile (openat2(2)).
        match rustix::fs::openat2(root, path, flags, mode, resolve) {
            Err(Errno::AGAIN | Errno::INTR) if tries < 8 => tries += 1,
            other => return other,
        }
    }
}

/// Opens the regular file `path` inside `root` for reading, when it belongs to `uid` or to root.
///
/// # Errors
/// As [`look`]. [`Refusal::NotRegular`]: it is no regular file. [`Refusal::WrongOwner`]: it belongs to another user.
pub fn regular_file(root: &OwnedFd, path: &Path, uid: u32) -> Result<(File, Stat), Refusal> {
    let (handle, stat) = look(root, path)?;
    check(&stat, Some(uid))?;
    reopen(&handle, &stat)
}

/// Opens the regular file `path` inside `root`, whoever owns it; symlinks that stay inside are followed.
///
/// # Errors
/// As [`look`], but for a link at the end. [`Refusal::NotRegular`]: it is no regular file.
pub fn any_regular_file(root: &OwnedFd, path: &Path) -> Result<(File, Stat), Refusal> {
    behind(&in_root(root, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

/// Opens for reading the regular file that a handle (O_PATH) stands for, whoever owns it and whatever its path is now.
///
/// # Errors
/// [`Refusal::NotRegular`]: it is no regular file. [`Refusal::Unreadable`], [`Refusal::Exhausted`]: it cannot be opened.
pub fn behind(handle: &OwnedFd) -> Result<(File, Stat), Refusal> {
    let stat = rustix::fs::fstat(handle)?;
    check(&stat, None)?;
    reopen(handle, &stat)
}

/// Opens `path` below `root` for reading, when it is of this type and belongs to `uid`: through no link, and through nothing
/// that is mounted below `root`, so that no file system that a user's program serves (FUSE) is asked.
///
/// # Errors
/// [`Refusal::Missing`]: there is none. [`Refusal::Symlink`]: there is a link on the way. [`Refusal::SlowFilesystem`]:
/// something is mounted there. [`Refusal::NotRegular`]: it is of another type. [`Refusal::WrongOwner`]: it belongs to
/// another user. [`Refusal::Unreadable`], [`Refusal::Exhausted`]: it cannot be opened.
pub fn below(root: &OwnedFd, path: &Path, kind: FileType, uid: u32) -> Result<OwnedFd, Refusal> {
    // Without waiting for the other end of a FIFO.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let opened =
        rustix::fs::openat2(root, path, flags, Mode::empty(), resolve).map_err(|error| match error {
            Errno::XDEV => Refusal::SlowFilesystem,
            other => other.into(),
        })?;
    let stat = rustix::fs::fstat(&opened)?;
    if FileType::from_raw_mode(stat.st_mode) != kind {
        return Err(Refusal::NotRegular);
    }
    if stat.st_uid == uid { Ok(opened) } else { Err(Refusal::WrongOwner) }
}

fn check(stat: &Stat, uid: Option<u32>) -> Result<(), Refusal> {
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Refusal::NotRegular);
    }
    match uid {
        Some(uid) if stat.st_uid != uid && stat.st_uid != 0 => Err(Refusal::WrongOwner),
        _ => Ok(()),
    }
}

/// Opens for reading what an O_PATH handle stands for: the very same inode, whatever its path is now.
fn reopen(handle: &OwnedFd, stat: &Stat) -> Result<(File, Stat), Refusal> {
    let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let fd = rustix::fs::open(link, flags, Mode::empty())?;
    Ok((File::from(fd), *stat))
}

/// Where the kernel lists a mapping, or its first piece.
fn listed(process_dir: &Path, mapping: &Mapping) -> PathBuf {
    process_dir.join("map_files").join(format!("{:x}-{:x}", mapping.start, mapping.first_end))
}

/// Opens the file behind a mapping. `/proc/PID/map_files` gives the mapped inode itself, also when it was
/// deleted or replaced; without the capability for that (CAP_CHECKPOINT_RESTORE) or when the process has
/// ended, the path is tried in the process's root and in ours, and taken only if the inode is the same.
///
/// # Errors
/// [`Refusal::NotRegular`]: the mapping has no regular file. [`Refusal::SlowFilesystem`]: it may be on FUSE.
/// [`Refusal::Missing`]: another inode has the path. [`Refusal::ProcessGone`], [`Refusal::Symlink`],
/// [`Refusal::Unreadable`]: as [`root`] and [`look`].
pub fn mapped_file(process_dir: &Path, mapping: &Mapping) -> Result<(File, Stat), Refusal> {
    let Backing::File { path, .. } = &mapping.backing else { return Err(Refusal::NotRegular) };
    if is_fuse(process_dir, mapping.device) {
        return Err(Refusal::SlowFilesystem);
    }
    let direct = listed(process_dir, mapping);
    if let Ok(handle) = rustix::fs::open(&direct, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        let stat = rustix::fs::fstat(&handle)?;
        check(&stat, None)?;
        return reopen(&handle, &stat);
    }
    let relative = path.strip_prefix("/").unwrap_or(path);
    let mut last = Refusal::ProcessGone;
    for base in [process_dir.join("root").as_path(), Path::new("/")] {
        let found = root(base).and_then(|base| look(&base, relative));
        match found {
            Ok((handle, stat)) if same_inode(&stat, mapping) => {
                check(&stat, None)?;
                return reopen(&handle, &stat);
            }
            Ok(_) => last = Refusal::Missing,
            Err(refusal) => last = refusal,
        }
    }
    Err(last)
}

/// What is known of the file behind a mapping, without opening it or asking a file system's server; None where
/// `map_files` may not be followed (see [`mapped_file`]).
pub fn mapped_stat(process_dir: &Path, mapping: &Mapping) -> Option<Statx> {
    let direct = listed(process_dir, mapping);
    let flags = AtFlags::STATX_DONT_SYNC;
    rustix::fs::statx(CWD, &direct, flags, StatxFlags::BASIC_STATS).ok()
}

/// Whether `stat` is the inode that the kernel printed in maps. Devices with major 0 (btrfs subvolumes,
/// overlayfs) are printed otherwise than stat tells them, so there the inode number alone must do.
fn same_inode(stat: &Stat, mapping: &Mapping) -> bool {
    let device = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
    stat.st_ino == mapping.inode && (device == mapping.device || (device.0 == 0 && mapping.device.0 == 0))
}

/// Whether a device is served by a program of somebody (FUSE), which could let us wait for ever: found out
/// without touching it. Devices without hardware (major 0) that are mounted nowhere count as such, for a
/// FUSE mount can be detached while a file of it stays mapped.
fn is_fuse(process_dir: &Path, device: (u32, u32)) -> bool {
    for file in [process_dir.join("mountinfo"), Path::new("/proc/self/mountinfo").to_path_buf()] {
        let text = read_bounded(&file, 4 << 20).unwrap_or_default();
        if let Some(kind) = filesystem_of(&String::from_utf8_lossy(&text), device) {
            return kind.starts_with("fuse");
        }
    }
    device.0 == 0
}

/// Type of the file system with this device in a mountinfo table (proc_pid_mountinfo(5)).
fn filesystem_of(mountinfo: &str, device: (u32, u32)) -> Option<&str> {
    let device = format!("{}:{}", device.0, device.1);
    mountinfo.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        (mount.split(' ').nth(2)? == device).then(|| kind.split(' ').next())?
    })
}

/// Reads at most `limit` bytes of a file of /proc; these files have no size.
///
/// # Errors
/// [`Refusal::ProcessGone`]: there is no such file. [`Refusal::Unreadable`]: any other error.
pub fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, Refusal> {
    let file = File::open(path).map_err(io_refusal)?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).map_err(io_refusal)?;
    Ok(bytes)
}

/// How long a thread that may wait waits for a file of /proc that is made from a process's memory.
const PATIENCE: Duration = Duration::from_millis(500);

/// The mappings of a process. `process_dir` is `/proc/PID`.
///
/// # Errors
/// [`Refusal::ProcessGone`]: the process ended. [`Refusal::Exhausted`], [`Refusal::Unreadable`]: they cannot be read.
pub fn mappings(process_dir: &Path) -> Result<Maps, Refusal> {
    File::open(process_dir.join("maps")).and_then(maps::parse).map_err(io_refusal)
}

/// The same, for threads that may wait: on one that can be given up.
///
/// # Errors
/// As [`mappings`]. [`Refusal::Late`]: it takes longer than half a second, or the process is left alone.
pub fn mappings_soon(process_dir: &Path) -> Result<Maps, Refusal> {
    let (dir, about) = (process_dir.to_owned(), About::process(process_dir, What::Maps));
    errand::background().run(about, PATIENCE, move || mappings(&dir)).done().unwrap_or(Err(Refusal::Late))
}

/// Removes a name inside `root`: only of a regular file that belongs to `uid` or to root.
///
/// # Errors
/// As [`regular_file`]; [`Refusal::Unreadable`]: unlinkat(2) fails. The file is there then.
pub fn remove_file(root: &OwnedFd, path: &Path, uid: u32) -> Result<(), Refusal> {
    let (_, stat) = look(root, path)?;
    check(&stat, Some(uid))?;
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name();
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = in_root(root, parent, flags, Mode::empty())?;
    rustix::fs::unlinkat(parent.as_fd(), name.ok_or(Refusal::Missing)?, AtFlags::empty())
        .map_err(Refusal::from)
}

fn io_refusal(error: std::io::Error) -> Refusal {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ESRCH) => Refusal::ProcessGone,
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM) => Refusal::Exhausted,
        _ => Refusal::Unreadable,
    }
}

#[cfg(test)]
mod tests;
