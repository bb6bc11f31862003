//! Event logs in a directory where many users write: each is believed only of its owner.
//!
//! In: the directory, an application, the user of its driver. Out: that user's logs of the application, and why others of its
//! name are not. A name in such a directory may be a link, a FIFO, or the place of a file system that a user's program
//! serves: each file is opened below the directory, through no link and no mount, and looked at once it is open.

use super::super::ImportError;
use super::EventLog;
use super::files::MAX_LOGS;
use emberscope_target::open::{self, Refusal};
use rustix::fs::FileType;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Refused logs that are named.
const MAX_NAMED: usize = 8;

/// A file that has to be a user's.
#[derive(Clone, Debug)]
pub(super) struct Own {
    /// The directory that all users' logs are in.
    root: Arc<OwnedFd>,
    /// The way from there.
    path: PathBuf,
    user: u32,
}

impl Own {
    fn open(&self, kind: FileType) -> Result<OwnedFd, Refusal> {
        open::below(&self.root, &self.path, kind, self.user)
    }

    /// The file, open.
    pub fn file(&self) -> Result<File, Refusal> {
        self.open(FileType::RegularFile).map(File::from)
    }

    /// What has this name in the directory.
    pub fn inside(&self, name: &OsStr) -> Self {
        Self { path: self.path.join(name), ..self.clone() }
    }
}

/// What there is of an application.
#[derive(Debug, Default)]
pub struct OwnLogs {
    /// The user's logs, by name.
    pub logs: Vec<EventLog>,
    /// Logs of that name that are not read, the first eight, and why.
    pub refused: Vec<(PathBuf, Refusal)>,
}

impl EventLog {
    /// A user's logs of an application in a directory where others write, too. They are read only as long as they are
    /// that user's.
    ///
    /// # Errors
    /// [`ImportError::Read`]: the directory cannot be listed.
    pub fn find_of(dir: &Path, app: &str, user: u32) -> Result<OwnLogs, ImportError> {
        let root =
            open::root(dir).map_err(|refusal| ImportError::Read(io::Error::other(refusal.sentence())))?;
        let here = Own { root: Arc::new(root), path: PathBuf::new(), user };
        let mut found = OwnLogs::default();
        for entry in fs::read_dir(dir).map_err(ImportError::Read)? {
            let entry = entry.map_err(ImportError::Read)?;
            let name = entry.file_name();
            // Told by the directory: what has the name is not asked.
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !Self::is_named(&name.to_string_lossy(), is_dir, Some(app)) {
                continue;
            }
            match own_log(entry.path(), is_dir, &here.inside(&name))? {
                Ok(log) => found.logs.extend(log),
                Err(refusal) if found.refused.len() < MAX_NAMED => {
                    found.refused.push((entry.path(), refusal))
                }
                Err(_) => {}
            }
            if found.logs.len() >= MAX_LOGS {
                break;
            }
        }
        found.logs.sort_by(|a, b| a.path().cmp(b.path()));
        Ok(found)
    }
}

/// The log at `path`, if it is the user's; None: a directory without a log.
fn own_log(path: PathBuf, is_dir: bool, own: &Own) -> Result<Result<Option<EventLog>, Refusal>, ImportError> {
    if !is_dir {
        return Ok(own.file().map(|_| Some(EventLog::file(path, Some(own.clone())))));
    }
    match own.open(FileType::Directory) {
        Ok(opened) => {
            let listed = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
            EventLog::rolling(&path, &listed, Some(own)).map(Ok)
        }
        Err(refusal) => Ok(Err(refusal)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const LINE: &str = r#"{"Event":"SparkListenerApplicationStart","App Name":"etl","App ID":"app-1","Timestamp":1700000000000,"User":"ann"}"#;

    fn me() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn found(dir: &Path, user: u32) -> (usize, Vec<Refusal>) {
        let found = EventLog::find_of(dir, "app-1", user).unwrap();
        (found.logs.len(), found.refused.into_iter().map(|(_, refusal)| refusal).collect())
    }

    #[test]
    fn a_log_is_its_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("app-1"), LINE).unwrap();
        fs::write(dir.path().join("app-2"), LINE).unwrap();
        assert_eq!(found(dir.path(), me()), (1, vec![]));
        assert_eq!(found(dir.path(), me() + 1), (0, vec![Refusal::WrongOwner]));
        assert_eq!(
            EventLog::find_of(dir.path(), "app-1", me()).unwrap().logs[0].read().unwrap().app,
            "app-1"
        );
        assert!(EventLog::find_of(&dir.path().join("gone"), "app-1", me()).is_err());
    }

    #[test]
    fn files_of_a_rolling_log_are_no_links_to_others_files() {
        let dir = tempfile::tempdir().unwrap();
        let secret = dir.path().join("secret");
        fs::write(&secret, LINE).unwrap();
        let rolling = dir.path().join("eventlog_v2_app-1");
        fs::create_dir(&rolling).unwrap();
        symlink(&secret, rolling.join("events_1_app-1")).unwrap();
        let logs = EventLog::find_of(dir.path(), "app-1", me()).unwrap().logs;
        let error = logs[0].read().unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{error}");
        fs::remove_file(rolling.join("events_1_app-1")).unwrap();
        fs::write(rolling.join("events_1_app-1"), LINE).unwrap();
        let log = EventLog::find_of(dir.path(), "app-1", me()).unwrap().logs.remove(0);
        assert_eq!(log.read().unwrap().app, "app-1");
        // It is replaced after it was found.
        fs::remove_dir_all(&rolling).unwrap();
        symlink(dir.path(), &rolling).unwrap();
        fs::write(dir.path().join("events_1_app-1"), LINE).unwrap();
        assert!(log.read().is_err());
        assert_eq!(found(dir.path(), me()), (0, vec![]), "a link is no directory of a rolling log");
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("app-1");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert_eq!(found(dir.path(), me()), (0, vec![Refusal::NotRegular]));
        fs::remove_file(&fifo).unwrap();
        symlink("/etc/passwd", &fifo).unwrap();
        assert_eq!(found(dir.path(), me()), (0, vec![Refusal::Symlink]));
    }
}
