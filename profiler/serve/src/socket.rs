//! The Unix socket that the command line asks by.
//!
//! In: a path. Out: a listening socket of mode 0660, so that its owner and its group may connect (0600 where the group
//! is root's: [`super::peer::group`]), in a directory that is made for them alone where it is missing. One that a
//! killed daemon left behind is taken away; one that answers is another daemon's. It goes with the daemon, unless
//! another took its place.

use rustix::fs::{Mode, chmod, stat};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another daemon answers at the path.
    #[error("another daemon answers at {}: stop it, or give this one another --socket", path.display())]
    InUse {
        /// Path of the socket.
        path: PathBuf,
    },
    /// Something else is at the path.
    #[error("{} is there and is no socket: remove it, or choose another --socket", path.display())]
    Taken {
        /// Path of the socket.
        path: PathBuf,
    },
    /// The system refuses.
    #[error(
        "cannot {what} {}: {source}; choose another --socket (`none`: the command line then needs a token)",
        path.display()
    )]
    Os {
        /// The operation, as a verb with what it is done to: `listen at`.
        what: &'static str,
        /// Path of the socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// The file of a socket; dropping it takes the file away.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    file: Identity,
}

/// Device, inode and time of the last change: an inode's number comes again soon.
type Identity = (u64, u64, i64, u64);

impl SocketFile {
    /// Path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path) == Some(self.file) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<Identity> {
    stat(path).ok().map(|stat| (stat.st_dev, stat.st_ino, stat.st_ctime, stat.st_ctime_nsec))
}

/// Listens at `path`.
///
/// # Errors
/// [`SocketError::InUse`]: another daemon answers there. [`SocketError::Taken`]: something else is there.
/// [`SocketError::Os`]: the directory or the socket cannot be made, or a left-over not removed.
pub fn bind(path: &Path) -> Result<(UnixListener, SocketFile), SocketError> {
    let failed = |what, source| SocketError::Os { what, path: path.to_owned(), source };
    if let Some(dir) = path.parent() {
        let made = DirBuilder::new().recursive(true).mode(0o750).create(dir);
        made.map_err(|source| failed("make the directory of", source))?;
    }
    match path.symlink_metadata() {
        Ok(there) if !there.file_type().is_socket() => {
            return Err(SocketError::Taken { path: path.to_owned() });
        }
        Ok(_) => match UnixStream::connect(path) {
            // Nobody listens any more.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path).map_err(|source| failed("remove the left-over", source))?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(failed("look at", source)),
            Ok(_) => return Err(SocketError::InUse { path: path.to_owned() }),
        },
        Err(_) => {}
    }
    let listener = UnixListener::bind(path).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => SocketError::InUse { path: path.to_owned() },
        _ => failed("listen at", source),
    })?;
    // Past the umask, whatever it is. Who slips in before is asked who he is all the same.
    let mode = if super::peer::group().is_some() { 0o660 } else { 0o600 };
    chmod(path, Mode::from_raw_mode(mode)).map_err(|error| failed("set the mode of", error.into()))?;
    let file = identity(path).ok_or_else(|| failed("look at", io::ErrorKind::NotFound.into()))?;
    Ok((listener, SocketFile { path: path.to_owned(), file }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn it_is_made_for_owner_and_group_and_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/x.sock");
        let (_listener, file) = bind(&path).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let want = if super::super::peer::group().is_some() { 0o660 } else { 0o600 };
        assert_eq!((mode(&path), mode(path.parent().unwrap()) & !0o750), (want, 0));
        assert!(matches!(bind(&path), Err(SocketError::InUse { .. })), "the second is told");
        assert!(path.exists());
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn a_left_over_is_taken_away_and_another_s_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let (_first, old) = bind(&path).unwrap();
        // Somebody removed it, and another daemon made its own.
        std::fs::remove_file(&path).unwrap();
        // File systems' clocks go by the tick, of 10 ms at most.
        std::thread::sleep(std::time::Duration::from_millis(30));
        let (_second, _file) = bind(&path).unwrap();
        drop(old);
        assert!(path.exists());
        let plain = dir.path().join("plain");
        std::fs::write(&plain, "").unwrap();
        assert!(matches!(bind(&plain), Err(SocketError::Taken { .. })));
        assert!(plain.exists());
    }
}
