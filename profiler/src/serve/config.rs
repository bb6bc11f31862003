//! Where the server listens, and who may ask.
//!
//! In: [`ServeConfig`]. Out: [`Access`] (what each request must show) and the bound socket. Loopback needs
//! no token; any other address is refused without one. The token file must be a regular file that others
//! cannot read, at most [`MAX_TOKEN`] bytes; it is read once, at the start.

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tokio::net::TcpListener;

/// Largest token file, in bytes.
pub const MAX_TOKEN: usize = 4096;
/// Where the daemon listens unless told: Spark's own pages are 4040 to 4056.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:4099";

/// What the operator chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeConfig {
    /// Address and port.
    pub listen: SocketAddr,
    /// File with the bearer token.
    pub token_file: Option<PathBuf>,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 4099)), token_file: None }
    }
}

/// Why the server cannot start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Would be open to the network.
    #[error(
        "listening on {listen} lets the network read profiles: name a file with a bearer token (--token-file), or listen on 127.0.0.1"
    )]
    Exposed {
        /// The address.
        listen: SocketAddr,
    },
    /// The token file is no good.
    #[error("token file {}: {reason}", path.display())]
    Token {
        /// Which file.
        path: PathBuf,
        /// What is wrong, and the mend.
        reason: String,
    },
    /// The port is taken.
    #[error(
        "{listen} is in use: another daemon or program listens there; stop it or choose another address (--listen)"
    )]
    InUse {
        /// The address.
        listen: SocketAddr,
    },
    /// The socket could not be bound.
    #[error("cannot listen on {listen}: {source}")]
    Bind {
        /// The address.
        listen: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
}

/// What a request must show.
#[derive(Clone)]
pub enum Access {
    /// Loopback without a token: the Host header must name this machine, so that no web page can reach
    /// us under a name of its own (DNS rebinding).
    LocalHostOnly,
    /// `Authorization: Bearer` with this token.
    Token(String),
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::LocalHostOnly => "LocalHostOnly",
            Self::Token(_) => "Token(..)",
        })
    }
}

impl ServeConfig {
    /// What requests must show; an error when the address would be open to the network.
    pub fn access(&self) -> Result<Access, ServeError> {
        match &self.token_file {
            Some(path) => read_token(path)
                .map(Access::Token)
                .map_err(|reason| ServeError::Token { path: path.clone(), reason }),
            None if self.listen.ip().to_canonical().is_loopback() => Ok(Access::LocalHostOnly),
            None => Err(ServeError::Exposed { listen: self.listen }),
        }
    }

    /// Binds the socket.
    pub async fn bind(&self) -> Result<TcpListener, ServeError> {
        let listen = self.listen;
        TcpListener::bind(listen).await.map_err(|source| match source.kind() {
            std::io::ErrorKind::AddrInUse => ServeError::InUse { listen },
            _ => ServeError::Bind { listen, source },
        })
    }
}

/// Reads a token. A symlink is followed (the path is the operator's, and Kubernetes mounts secrets that
/// way); what it leads to is checked once it is open.
fn read_token(path: &Path) -> Result<String, String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = open(path, flags, Mode::empty()).map_err(|e| format!("cannot be opened: {e}"))?;
    let stat = fstat(&fd).map_err(|e| format!("fstat: {e}"))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err("is not a regular file".to_owned());
    }
    if stat.st_mode & 0o007 != 0 {
        return Err(format!("others may use it (mode {:04o}): chmod 600 it", stat.st_mode & 0o7777));
    }
    let mut bytes = Vec::new();
    let read = File::from(fd).take(MAX_TOKEN as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|e| format!("cannot be read: {e}"))?;
    if bytes.len() > MAX_TOKEN {
        return Err(format!("is larger than {MAX_TOKEN} bytes"));
    }
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
    fn the_default_is_the_documented_one() {
        assert_eq!(ServeConfig::default().listen.to_string(), DEFAULT_LISTEN);
    }

    #[test]
    fn only_loopback_goes_without_a_token() {
        for (listen, open) in [
            ("127.0.0.1:1", true),
            ("127.9.9.9:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("0.0.0.0:1", false),
            ("[::]:1", false),
            ("10.0.0.1:1", false),
        ] {
            let config = ServeConfig { listen: listen.parse().unwrap(), token_file: None };
            let access = config.access();
            assert_eq!(access.is_ok(), open, "{listen}");
            if let Err(error) = access {
                assert!(error.to_string().contains("--token-file"), "{error}");
            }
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
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert!(read_token(&fifo).unwrap_err().contains("regular"));
        let link = dir.path().join("link");
        symlink("/etc/hostname", &link).unwrap();
        assert!(read_token(&link).unwrap_err().contains("others"));
    }

    #[tokio::test]
    async fn a_port_in_use_is_named() {
        let first = ServeConfig { listen: "127.0.0.1:0".parse().unwrap(), token_file: None };
        let taken = first.bind().await.unwrap();
        let second = ServeConfig { listen: taken.local_addr().unwrap(), token_file: None };
        assert!(matches!(second.bind().await, Err(ServeError::InUse { .. })));
    }

    #[test]
    fn a_token_is_not_printed() {
        assert_eq!(format!("{:?}", Access::Token("s3cret".into())), "Token(..)");
    }
}
