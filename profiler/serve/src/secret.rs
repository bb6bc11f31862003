//! Files that hold what must not be seen: tokens, and the key of TLS.
//!
//! In: a path that the operator chose. Out: its bytes, or why not, with the mend. A symlink is followed (Kubernetes
//! mounts secrets that way); what it leads to must be a regular file that others cannot read, and is checked once it
//! is open. Also here: a token of our own, made where the operator named none, and a file's [`Stamp`], by which a
//! change is seen.

use ring::rand::{SecureRandom, SystemRandom};
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fchmod, fstat, open, renameat, stat, unlink};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// Largest token file, in bytes.
pub const MAX_TOKEN: usize = 4096;
/// Bytes of chance in what we make ourselves: 256 bits.
const CHANCE: usize = 32;

/// What tells one content of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    file: (u64, u64),
    size: i64,
    changed: (i64, u64),
}

impl Stamp {
    /// The stamp of the file at a path; None where there is none.
    pub fn of(path: &Path) -> Option<Self> {
        stat(path).ok().map(|stat| Self::read(&stat))
    }
    fn read(stat: &Stat) -> Self {
        // The time of the change of the inode, not of the content: a file that is copied with its times is seen too.
        Self {
            file: (stat.st_dev, stat.st_ino),
            size: stat.st_size,
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

/// Reads a file of at most `most` bytes; `private`: others may not read it.
///
/// # Errors
/// A sentence: the file cannot be opened or read, is not a regular one, has more than `most` bytes, or others may use
/// it though it is private.
pub fn read(path: &Path, most: usize, private: bool) -> Result<Vec<u8>, String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = open(path, flags, Mode::empty()).map_err(|e| format!("cannot be opened: {e}"))?;
    let stat = fstat(&fd).map_err(|e| format!("fstat: {e}"))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err("is not a regular file".to_owned());
    }
    if private && stat.st_mode & 0o007 != 0 {
        return Err(format!("others may use it (mode {:04o}): chmod 600 it", stat.st_mode & 0o7777));
    }
    let mut bytes = Vec::new();
    let read = File::from(fd).take(most as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|e| format!("cannot be read: {e}"))?;
    if bytes.len() > most {
        return Err(format!("is larger than {most} bytes"));
    }
    Ok(bytes)
}

/// Reads a token's file.
///
/// # Errors
/// As [`read`], and where the file is empty, or holds anything but one word of ASCII.
pub fn read_token(path: &Path) -> Result<String, String> {
    let bytes = read(path, MAX_TOKEN, true)?;
    let token = bytes.trim_ascii();
    if token.is_empty() {
        return Err("is empty: write a long random token into it, as `openssl rand -hex 32` makes".to_owned());
    }
    // RFC 6750 §2.1: what a client can send behind `Bearer`.
    if !token.iter().all(|b| b.is_ascii_graphic()) {
        return Err("holds more than one word, or bytes that a header cannot carry".to_owned());
    }
    Ok(String::from_utf8_lossy(token).into_owned())
}

/// A word that nobody guesses, of the system's own random numbers.
///
/// # Errors
/// The system has no random numbers.
pub fn random() -> Result<String, String> {
    let mut bytes = [0; CHANCE];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "the system has no random numbers".to_owned())?;
    let mut text = String::with_capacity(2 * CHANCE);
    for byte in bytes {
        // A String takes all.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// Makes a token at `path`, for the daemon and its group, unless one is there. True: it was made. The directory is the
/// daemon's own, so that nobody else has put anything there.
///
/// # Errors
/// A sentence: the file cannot be made, written or renamed, or the system has no random numbers. No token is there
/// then.
pub fn make_token(path: &Path) -> Result<bool, String> {
    if path.symlink_metadata().is_ok() {
        return Ok(false);
    }
    // A name of its own, and then its place: a token is there as a whole or not at all.
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = Path::new(&new);
    let _ = unlink(new);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = open(new, flags, Mode::from_raw_mode(0o600)).map_err(|e| format!("cannot be made: {e}"))?;
    // Past the umask, which a unit has at 0077: the group may read it, as it may use the socket.
    let mode = if super::peer::group().is_some() { 0o640 } else { 0o600 };
    fchmod(&fd, Mode::from_raw_mode(mode)).map_err(|e| format!("chmod: {e}"))?;
    let mut file = File::from(fd);
    let written = file.write_all(format!("{}\n", random()?).as_bytes()).and_then(|()| file.sync_all());
    written.map_err(|e| format!("cannot be written: {e}"))?;
    renameat(CWD, new, CWD, path).map_err(|e| format!("cannot be made: {e}"))?;
    Ok(true)
}

/// Takes the same time wherever the two differ; only the length of what was given can be told.
pub fn same(token: &[u8], given: &[u8]) -> bool {
    let mut differ = token.len() ^ given.len();
    for (i, byte) in given.iter().enumerate() {
        let other = token.get(i % token.len().max(1)).copied().unwrap_or_default();
        differ |= usize::from(std::hint::black_box(byte ^ other));
    }
    std::hint::black_box(differ) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn token(content: &[u8], mode: u32) -> Result<String, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        read_token(&path)
    }

    #[test]
    fn tokens() {
        assert!(same(b"abc", b"abc"));
        for bad in [&b""[..], b"ab", b"abd", b"abcabc", b"abca", b"ABC"] {
            assert!(!same(b"abc", bad), "{bad:?}");
        }
    }

    #[test]
    fn a_token_is_one_word_in_a_private_file() {
        assert_eq!(token(b" s3cret\n", 0o600).unwrap(), "s3cret");
        assert_eq!(token(b"s3cret", 0o440).unwrap(), "s3cret");
        assert!(token(b"s3cret", 0o604).unwrap_err().contains("chmod 600"));
        assert!(token(b" \n", 0o600).unwrap_err().contains("empty"));
        assert!(token(b"two words", 0o600).is_err());
        assert!(token(b"\xff\xfe", 0o600).is_err());
        assert!(token(&[b'a'; MAX_TOKEN + 1], 0o600).unwrap_err().contains("larger"));
    }

    #[test]
    fn what_is_no_regular_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read_token(dir.path()).unwrap_err().contains("regular"));
        assert!(read_token(&dir.path().join("none")).unwrap_err().contains("opened"));
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert!(read_token(&fifo).unwrap_err().contains("regular"));
        let link = dir.path().join("link");
        symlink("/etc/hostname", &link).unwrap();
        assert!(read_token(&link).unwrap_err().contains("others"));
    }

    #[test]
    fn a_token_is_made_once_and_not_for_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        assert!(make_token(&path).unwrap());
        let first = read_token(&path).unwrap();
        let want = if super::super::peer::group().is_some() { 0o640 } else { 0o600 };
        assert_eq!((first.len(), path.metadata().unwrap().permissions().mode() & 0o777), (64, want));
        assert!(!make_token(&path).unwrap());
        assert_eq!(read_token(&path).unwrap(), first);
        assert_ne!(random().unwrap(), random().unwrap());
    }

    #[test]
    fn a_file_that_another_took_the_place_of_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("a"), dir.path().join("b"));
        assert_eq!(Stamp::of(&path), None);
        fs::write(&path, "one").unwrap();
        let first = Stamp::of(&path).unwrap();
        assert_eq!(Stamp::of(&path), Some(first));
        fs::write(&other, "two").unwrap();
        fs::rename(&other, &path).unwrap();
        assert_ne!(Stamp::of(&path), Some(first));
    }
}
