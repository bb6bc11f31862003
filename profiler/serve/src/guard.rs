//! The tokens of a server, and what each opens.
//!
//! In: files, read again when they change; a file that is no good any more leaves the token that was read last. Out:
//! the [`Right`] of an `Authorization` header.

use super::error::shown;
use super::login::Logins;
use super::secret::{self, Stamp, same};
use axum::extract::Request;
use axum::http::header;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What somebody may do; each of them what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// The page's own files and `/healthz`.
    Nothing,
    /// `/metrics` and `/readyz`.
    Metrics,
    /// Whatever can be read.
    Read,
    /// Whatever there is: making login links, too.
    Everything,
}

/// A token's file and what is known of it.
struct Token {
    opens: Right,
    path: PathBuf,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    token: String,
    stamp: Option<Stamp>,
    failing: Option<String>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Who may ask over TCP. Not printed: it holds the tokens.
pub struct Guard {
    tokens: Vec<Token>,
    /// Browsers that are logged in, and links for more.
    pub logins: Logins,
    /// What a link to this server begins with.
    pub link: Option<String>,
    /// Whether the server speaks TLS.
    pub tls: bool,
}

/// What reading a file again came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Again {
    /// The file is as it was.
    Same,
    /// The file had changed and was read.
    Read,
    /// The file is no good, for the first time since it changed: why.
    Bad(String),
}

impl Guard {
    /// A guard with the tokens of these files.
    ///
    /// # Errors
    /// The file, and what is wrong with it and how to mend that; `/dev/urandom` where the system has no random
    /// numbers.
    pub fn new(files: &[(Right, PathBuf)]) -> Result<Self, (PathBuf, String)> {
        let read = |(opens, path): &(Right, PathBuf)| -> Result<Token, (PathBuf, String)> {
            let stamp = Stamp::of(path);
            let token = secret::read_token(path).map_err(|reason| (path.clone(), reason))?;
            let seen = Mutex::new(Seen { token, stamp, failing: None });
            Ok(Token { opens: *opens, path: path.clone(), seen })
        };
        let tokens = files.iter().map(read).collect::<Result<_, _>>()?;
        let logins = Logins::new().map_err(|reason| (PathBuf::from("/dev/urandom"), reason))?;
        Ok(Self { tokens, logins, link: None, tls: false })
    }

    /// A guard with one token that opens all and is of no file: for tests.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn of_token(token: &str) -> Result<Self, String> {
        let seen = Mutex::new(Seen { token: token.to_owned(), ..Seen::default() });
        let token = Token { opens: Right::Everything, path: PathBuf::new(), seen };
        Ok(Self { tokens: vec![token], logins: Logins::new()?, link: None, tls: false })
    }

    /// What an `Authorization` header opens.
    pub fn right_of(&self, given: &[u8]) -> Right {
        let Some((scheme, given)) = given.split_at_checked(7) else { return Right::Nothing };
        if !scheme.eq_ignore_ascii_case(b"bearer ") {
            return Right::Nothing;
        }
        let given = given.trim_ascii();
        // All of them, whichever it is.
        let rights = self.tokens.iter().map(|token| {
            let is = same(locked(&token.seen).token.as_bytes(), given);
            if is { token.opens } else { Right::Nothing }
        });
        rights.fold(Right::Nothing, Ord::max)
    }

    /// What to tell who may not ask, with the mend.
    pub fn mend(&self, request: &Request) -> String {
        let file = self.tokens.iter().map(|token| &token.path).find(|path| !path.as_os_str().is_empty());
        let file = file.map_or("its token file".to_owned(), |path| shown(&path.display().to_string()));
        let wrong = match request.headers().contains_key(header::AUTHORIZATION) {
            true => "This bearer token is not one of this daemon's",
            false => "This daemon wants `Authorization: Bearer` with its token",
        };
        format!(
            "{wrong}: send the one in {file}. On its own machine the emberscope command asks without one, and \
             `emberscope url` prints a link that logs a browser in."
        )
    }

    /// Reads those files again that changed. Out: what came of each.
    pub fn read_again(&self) -> Vec<(&'static str, &Path, Again)> {
        self.tokens.iter().map(|token| (token.name(), token.path.as_path(), self.again(token))).collect()
    }

    fn again(&self, token: &Token) -> Again {
        if token.path.as_os_str().is_empty() {
            return Again::Same;
        }
        let stamp = Stamp::of(&token.path);
        if locked(&token.seen).stamp == stamp {
            return Again::Same;
        }
        let read = secret::read_token(&token.path);
        let mut seen = locked(&token.seen);
        seen.stamp = stamp;
        match read {
            Ok(word) => {
                let other = seen.token != word;
                (seen.token, seen.failing) = (word, None);
                drop(seen);
                // Whoever came by the old token may have logged in with it.
                if other && token.opens == Right::Everything {
                    self.logins.clear();
                }
                Again::Read
            }
            Err(reason) => {
                seen.failing = Some(reason.clone());
                Again::Bad(reason)
            }
        }
    }

    /// Each token's setting, its file, and why that is no good any more.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &Path, Option<String>)> {
        self.tokens
            .iter()
            .map(|token| (token.name(), token.path.as_path(), locked(&token.seen).failing.clone()))
    }
}

impl Token {
    fn name(&self) -> &'static str {
        match self.opens {
            Right::Everything => "token-file",
            Right::Read => "read-token-file",
            Right::Metrics | Right::Nothing => "metrics-token-file",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn put(path: &Path, text: &str, mode: u32) {
        let new = path.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(mode)).unwrap();
        fs::rename(new, path).unwrap();
    }

    #[test]
    fn each_token_opens_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            put(&dir.path().join(name), name, 0o600);
            dir.path().join(name)
        };
        let files = [
            (Right::Everything, file("all")),
            (Right::Read, file("reads")),
            (Right::Metrics, file("counts")),
        ];
        let guard = Guard::new(&files).unwrap();
        for (header, right) in [
            ("Bearer all", Right::Everything),
            ("bearer  reads ", Right::Read),
            ("Bearer counts", Right::Metrics),
            ("Bearer x", Right::Nothing),
            ("Bearer ", Right::Nothing),
            ("Basic all", Right::Nothing),
            ("all", Right::Nothing),
        ] {
            assert_eq!(guard.right_of(header.as_bytes()), right, "{header}");
        }
    }

    #[test]
    fn a_new_token_is_taken_and_a_bad_file_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        put(&path, "one", 0o600);
        let guard = Guard::new(&[(Right::Everything, path.clone())]).unwrap();
        let again = || guard.read_again().pop().unwrap().2;
        assert_eq!(again(), Again::Same);
        put(&path, "two", 0o600);
        assert_eq!(again(), Again::Read);
        let rights = || [b"Bearer one", b"Bearer two"].map(|given| guard.right_of(given));
        assert_eq!(rights(), [Right::Nothing, Right::Everything]);
        put(&path, "three", 0o644);
        assert!(matches!(again(), Again::Bad(reason) if reason.contains("chmod 600")));
        assert_eq!(again(), Again::Same, "said once");
        assert_eq!(rights(), [Right::Nothing, Right::Everything]);
        assert!(guard.files().next().unwrap().2.is_some());
        fs::remove_file(&path).unwrap();
        assert!(matches!(again(), Again::Bad(_)));
        put(&path, "two", 0o600);
        assert_eq!(again(), Again::Read);
        assert!(guard.files().next().unwrap().2.is_none());
    }
}
