//! Requests that wait in files: of a server that is away for longer than memory has room for, and over a restart of the
//! daemon.
//!
//! In: requests, with what is known of them. Out: a file each in a directory that is the daemon's alone, whose name
//! says the rest, so that the next start finds them in their order: `NUMBER-UNTIL-PROFILES.request`, the first two in
//! 16 hexadecimal digits. Limits: the caller's, by bytes; [`MAX_REQUEST`] and [`MAX_FILES`] of what is found; and what
//! is to stay free of the file system ([`Keep::has_room`]).

use emberscope_model::WallTime;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most bytes of a request that is read back: one is of some 2 MiB.
const MAX_REQUEST: u64 = 16 << 20;
/// Most files that are looked at: of requests of half a KiB.
const MAX_FILES: usize = 1 << 16;
/// The end of the name of a request's file.
const ENDING: &str = ".request";
/// A request that is being written. It is no request after a crash.
const PART: &str = "unfinished";

/// Whether something may be written to a directory; else why not.
pub type HasRoom = Arc<dyn Fn(&Path) -> io::Result<()> + Send + Sync>;

/// Where requests wait that are too many for memory.
#[derive(Clone)]
pub struct Keep {
    /// The directory. It is made when there is something to keep.
    pub dir: PathBuf,
    /// Asked before each file.
    pub has_room: HasRoom,
}

/// What a file's name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The request's place in the order of requests.
    pub number: u64,
    /// End of the window that its profiles are of.
    pub until: WallTime,
    /// Profiles in it.
    pub profiles: u64,
}

/// The files of one queue.
pub struct Spool(Keep);

impl Kept {
    fn name(self) -> String {
        format!("{:016x}-{:016x}-{}{ENDING}", self.number, self.until.0, self.profiles)
    }

    fn of(name: &str) -> Option<Self> {
        let mut parts = name.strip_suffix(ENDING)?.splitn(3, '-');
        let mut hexadecimal = || u64::from_str_radix(parts.next()?, 16).ok();
        let (number, until) = (hexadecimal()?, WallTime(hexadecimal()?));
        Some(Self { number, until, profiles: parts.next()?.parse().ok()? })
    }
}

impl Spool {
    /// The files of a directory, which need not be there.
    pub fn new(keep: Keep) -> Self {
        Self(keep)
    }

    /// What an earlier daemon left, the oldest first, with its bytes. What is none of its requests is removed.
    pub fn found(&self) -> Vec<(Kept, u64)> {
        let entries = fs::read_dir(&self.0.dir).into_iter().flatten().take(MAX_FILES).filter_map(Result::ok);
        let mut found = Vec::new();
        for entry in entries {
            let known = entry.file_name().to_str().and_then(Kept::of);
            let about = entry.metadata().ok().filter(fs::Metadata::is_file);
            match (known, about.map_or(0, |about| about.len())) {
                (Some(kept), bytes @ 1..=MAX_REQUEST) => found.push((kept, bytes)),
                // Without a length: the machine stopped before the file's bytes were written.
                _ => {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
        found.sort_by_key(|(kept, _)| kept.number);
        found
    }

    /// Writes a request's file.
    ///
    /// # Errors
    /// Too little of the file system is free, or it refuses.
    pub fn keep(&self, kept: Kept, request: &[u8]) -> io::Result<()> {
        let dir = &self.0.dir;
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        (self.0.has_room)(dir)?;
        let part = dir.join(PART);
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
        let written = file.write_all(request).and_then(|()| fs::rename(&part, dir.join(kept.name())));
        if written.is_err() {
            let _ = fs::remove_file(&part);
        }
        written
    }

    /// The request of a file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, kept: Kept) -> io::Result<Arc<[u8]>> {
        let mut request = Vec::new();
        let file = fs::File::open(self.0.dir.join(kept.name()))?;
        file.take(MAX_REQUEST).read_to_end(&mut request)?;
        Ok(request.into())
    }

    /// Removes a request's file.
    pub fn remove(&self, kept: Kept) {
        if let Err(error) = fs::remove_file(self.0.dir.join(kept.name())) {
            tracing::debug!(%error, "a request that was kept in a file stays there");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_say_what_they_are_made_of(number: u64, until: u64, profiles: u64) {
            let kept = Kept { number, until: WallTime(until), profiles };
            prop_assert_eq!(Kept::of(&kept.name()), Some(kept));
        }

        #[test]
        fn any_name_is_read(name in ".{0,40}|[0-9a-f]{1,17}-[0-9a-f]{1,17}-[0-9]{1,21}\\.request") {
            let _ = Kept::of(&name);
        }
    }

    #[test]
    fn what_is_no_request_goes() {
        let dir = tempfile::tempdir().unwrap();
        let spool = Spool::new(Keep { dir: dir.path().join("push"), has_room: Arc::new(|_| Ok(())) });
        assert_eq!(spool.found(), []);
        let kept = |number| Kept { number, until: WallTime(number * 3), profiles: 2 };
        for number in [300, 7] {
            spool.keep(kept(number), b"request").unwrap();
        }
        let put = |name: &str, bytes: &[u8]| fs::write(spool.0.dir.join(name), bytes).unwrap();
        put(PART, b"half");
        put(&kept(8).name(), b"");
        put("7.request", b"?");
        assert_eq!(spool.found(), [(kept(7), 7), (kept(300), 7)]);
        assert_eq!(fs::read_dir(&spool.0.dir).unwrap().count(), 2);
        assert_eq!(&*spool.read(kept(7)).unwrap(), b"request");
        spool.remove(kept(7));
        assert!(spool.read(kept(7)).is_err());
    }
}
