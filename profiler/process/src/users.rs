//! Names of user ids, from the host's passwd file.
//!
//! Read directly and not through NSS: a look-up in LDAP may block for minutes, and the daemon is on its
//! sampling path. An id that the file does not have reads as its number. The file is read again when its
//! time of change moves, looked at no more than once in [`RECHECK`].

use super::text::clean;
use std::collections::HashMap;
use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

/// Bytes read of the passwd file: some 80,000 users.
pub const MAX_PASSWD: usize = 8 << 20;
/// How often at most the file's time of change is looked at.
pub const RECHECK: Duration = Duration::from_secs(10);

/// Names of users by id, as the passwd file had them when it was read last.
#[derive(Debug)]
pub struct Users {
    path: PathBuf,
    names: HashMap<u32, String>,
    modified: Option<SystemTime>,
    checked: Option<Instant>,
}

impl Users {
    /// The names in the file at `path`. Nothing is read yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), names: HashMap::new(), modified: None, checked: None }
    }

    /// The host's: /etc/passwd.
    pub fn host() -> Self {
        Self::new("/etc/passwd")
    }

    /// The name of a user, else the number.
    pub fn name(&mut self, uid: u32) -> String {
        self.refresh();
        self.names.get(&uid).cloned().unwrap_or_else(|| uid.to_string())
    }

    fn refresh(&mut self) {
        if self.checked.is_some_and(|at| at.elapsed() < RECHECK) {
            return;
        }
        self.checked = Some(Instant::now());
        let modified = std::fs::metadata(&self.path).and_then(|m| m.modified()).ok();
        if modified == self.modified {
            return;
        }
        self.modified = modified;
        let mut bytes = Vec::new();
        if let Ok(file) = std::fs::File::open(&self.path)
            && file.take(MAX_PASSWD as u64).read_to_end(&mut bytes).is_ok()
        {
            self.names = parse(&bytes);
        }
    }
}

/// `name:password:uid:...`; the first of an id counts, as in getpwuid(3).
fn parse(bytes: &[u8]) -> HashMap<u32, String> {
    let mut names = HashMap::new();
    for line in bytes.split(|b| *b == b'\n') {
        let mut fields = line.split(|b| *b == b':');
        let (Some(name), Some(_), Some(uid)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        if let Some(uid) = std::str::from_utf8(uid).ok().and_then(|u| u.parse().ok())
            && !name.is_empty()
        {
            names.entry(uid).or_insert_with(|| clean(name, 64));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        let names =
            parse(b"root:x:0:0::/root:/bin/sh\ntoor:x:0:0::/:\nbad\nx:y:z:\n:x:7:\nspark:x:185:0::/:\n");
        assert_eq!(names.len(), 2);
        assert_eq!((names[&0].as_str(), names[&185].as_str()), ("root", "spark"));
    }

    #[test]
    fn an_unknown_id_is_its_number_and_a_missing_file_is_survived() {
        assert_eq!(Users::new("/nonexistent/passwd").name(4242), "4242");
        assert_eq!(Users::host().name(0), "root");
    }
}
