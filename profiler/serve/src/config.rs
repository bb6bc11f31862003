//! Where the server listens, and who may ask.
//!
//! In: [`ServeConfig`]. Out: [`Doors`]: the sockets, bound here or handed over by the service manager
//! ([`super::inherited`]), and [`Access`], what a request must show. Over TCP that is a token, on loopback too, unless
//! the operator opened loopback; any address beyond loopback is refused without a token that the operator chose. Where
//! none was chosen one is made, in the directory that is named for it.

use super::connection::Listener;
use super::doors::{Doors, link};
use super::guard::{Guard, Right};
use super::inherited::Inherited;
use super::secret;
use super::socket::{self, SocketError};
use super::tls::{Certificate, TlsFiles};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::{TcpListener, UnixListener};

/// The Unix socket that the daemon has unless told.
pub const DEFAULT_SOCKET: &str = "/run/emberscope/emberscope.sock";

/// The settings that name files which are read again when they change.
pub const FILES: [&str; 4] = ["token-file", "read-token-file", "metrics-token-file", "tls-cert"];

/// Where the operator wants the server to listen, and who may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeConfig {
    /// Address and port of HTTP.
    pub listen: SocketAddr,
    /// Path of the Unix socket; None: there is none.
    pub socket: Option<PathBuf>,
    /// Address and port for health alone; None: there is none.
    pub health: Option<SocketAddr>,
    /// File with the token that opens all.
    pub token_file: Option<PathBuf>,
    /// File with a token that reads.
    pub read_token_file: Option<PathBuf>,
    /// File with a token for metrics.
    pub metrics_token_file: Option<PathBuf>,
    /// Directory of our own in which a token is made where `token_file` is None.
    pub own_dir: PathBuf,
    /// Loopback asks for no token.
    pub open_loopback: bool,
    /// The certificate, where TLS is spoken.
    pub tls: Option<TlsFiles>,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 4099)),
            socket: None,
            health: None,
            token_file: None,
            read_token_file: None,
            metrics_token_file: None,
            own_dir: PathBuf::from("/var/lib/emberscope"),
            open_loopback: false,
            tls: None,
        }
    }
}

/// Why the server cannot start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address would be open to the network.
    #[error(
        "listening on {listen} lets the network read profiles: name a file with a bearer token (--token-file), or listen on 127.0.0.1"
    )]
    Exposed {
        /// The address and port.
        listen: SocketAddr,
    },
    /// The server is to ask for no token where others reach it.
    #[error("--open-loopback is for loopback, and {listen} is not: leave it out, or listen on 127.0.0.1")]
    OpenToAll {
        /// The address and port.
        listen: SocketAddr,
    },
    /// The token file is no good.
    #[error("token file {}: {reason}", path.display())]
    Token {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong, and the mend.
        reason: String,
    },
    /// The certificate is no good.
    #[error("TLS: {0}")]
    Tls(String),
    /// The port is taken.
    #[error(
        "{listen} is in use: another daemon or program listens there; stop it or choose another address (--listen). \
         `ss -ltnp` names it; tokens that were sent to that port went to it"
    )]
    InUse {
        /// The address and port.
        listen: SocketAddr,
    },
    /// The port could not be bound.
    #[error("cannot listen on {listen}: {source}")]
    Bind {
        /// The address and port.
        listen: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// The Unix socket could not be bound.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// What the service manager handed over is no good.
    #[error("{0}")]
    Inherited(String),
}

/// What a request must show.
#[derive(Clone)]
pub enum Access {
    /// Loopback without a token: the Host header must name this machine, so that no web page can reach
    /// us under a name of its own (DNS rebinding).
    LocalHostOnly,
    /// A token, or the cookie of a browser that is logged in.
    Guarded(Arc<Guard>),
}

impl Access {
    /// Access by one token that opens all.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn token(token: &str) -> Result<Self, String> {
        Ok(Self::Guarded(Arc::new(Guard::of_token(token)?)))
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::LocalHostOnly => "LocalHostOnly",
            Self::Guarded(_) => "Guarded(..)",
        })
    }
}

impl ServeConfig {
    /// Opens the doors: reads the tokens and the certificate, and binds. What the service manager opened is taken in
    /// place of what would be bound.
    ///
    /// # Errors
    /// [`ServeError::Exposed`], [`ServeError::OpenToAll`]: the network could ask without a token.
    /// [`ServeError::Token`], [`ServeError::Tls`]: a file of these is no good. [`ServeError::InUse`],
    /// [`ServeError::Bind`], [`ServeError::Socket`]: an address or path cannot be listened at.
    /// [`ServeError::Inherited`]: the service manager's sockets are none. Nothing listens then.
    pub async fn open(&self) -> Result<Doors, ServeError> {
        let inherited = Inherited::take().map_err(ServeError::Inherited)?;
        let certificate = self.tls.clone().map(Certificate::new).transpose().map_err(ServeError::Tls)?;
        let mut tcp = from_std(inherited.tcp)?;
        let addresses = match tcp.is_empty() {
            true => vec![self.listen],
            false => tcp.iter().map(|listener| local(listener, self.listen)).collect::<Result<_, _>>()?,
        };
        // Before the port is bound: nobody connects who would then be refused.
        let guarded = self.access(&addresses)?;
        if tcp.is_empty() {
            tcp.push(bind(self.listen).await?);
        }
        let address = match tcp.first() {
            Some(listener) => local(listener, self.listen)?,
            None => self.listen,
        };
        let mut health = from_std(inherited.health)?;
        if let (true, Some(listen)) = (health.is_empty(), self.health) {
            health.push(bind(listen).await?);
        }
        let (mut unix, mut socket) = (Vec::new(), None);
        for listener in inherited.unix {
            unix.push(of_unix(listener)?);
        }
        if let (true, Some(path)) = (unix.is_empty(), &self.socket) {
            let (listener, file) = socket::bind(path)?;
            unix.push(of_unix(listener)?);
            socket = Some(file);
        }
        let (access, token_file) = match guarded {
            Some((mut guard, token_file)) => {
                guard.tls = certificate.is_some();
                guard.link = Some(link(address, guard.tls));
                (Access::Guarded(Arc::new(guard)), Some(token_file))
            }
            None => (Access::LocalHostOnly, None),
        };
        let acceptor = certificate.as_ref().map(|c| c.acceptor()).transpose().map_err(ServeError::Tls)?;
        let tcp = tcp.into_iter().map(|listener| match &acceptor {
            Some(acceptor) => Listener::Tls(listener, acceptor.clone()),
            None => Listener::Tcp(listener),
        });
        Ok(Doors {
            listeners: tcp.chain(unix.into_iter().map(Listener::Unix)).collect(),
            health: health.into_iter().map(Listener::Tcp).collect(),
            access,
            certificate,
            address,
            socket,
            token_file,
        })
    }

    /// The tokens, and the file of the full one; None: loopback is open. An error when an address would be open to the
    /// network.
    fn access(&self, addresses: &[SocketAddr]) -> Result<Option<(Guard, PathBuf)>, ServeError> {
        let beyond = addresses.iter().find(|address| !address.ip().to_canonical().is_loopback());
        match beyond {
            Some(&listen) if self.open_loopback => return Err(ServeError::OpenToAll { listen }),
            Some(&listen) if self.token_file.is_none() => return Err(ServeError::Exposed { listen }),
            _ if self.open_loopback => return Ok(None),
            _ => {}
        }
        let full = match &self.token_file {
            Some(path) => path.clone(),
            None => self.own_token()?,
        };
        let mut files = vec![(Right::Everything, full.clone())];
        files.extend(self.read_token_file.clone().map(|path| (Right::Read, path)));
        files.extend(self.metrics_token_file.clone().map(|path| (Right::Metrics, path)));
        let guard = Guard::new(&files).map_err(|(path, reason)| ServeError::Token { path, reason })?;
        Ok(Some((guard, full)))
    }

    fn own_token(&self) -> Result<PathBuf, ServeError> {
        let path = self.own_dir.join("token");
        match secret::make_token(&path) {
            Ok(made) => {
                if made {
                    tracing::info!(file = %path.display(), "made a token for HTTP over TCP");
                }
                Ok(path)
            }
            Err(reason) => Err(ServeError::Token { path, reason }),
        }
    }
}

fn local(listener: &TcpListener, listen: SocketAddr) -> Result<SocketAddr, ServeError> {
    listener.local_addr().map_err(|source| ServeError::Bind { listen, source })
}

fn from_std(listeners: Vec<std::net::TcpListener>) -> Result<Vec<TcpListener>, ServeError> {
    let one = |listener: std::net::TcpListener| {
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    };
    let all = listeners.into_iter().map(one).collect::<std::io::Result<_>>();
    all.map_err(|error| ServeError::Inherited(format!("a socket of the service manager: {error}")))
}

fn of_unix(listener: std::os::unix::net::UnixListener) -> Result<UnixListener, ServeError> {
    let one = listener.set_nonblocking(true).and_then(|()| UnixListener::from_std(listener));
    one.map_err(|error| ServeError::Inherited(format!("the Unix socket: {error}")))
}

async fn bind(listen: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(listen).await.map_err(|source| match source.kind() {
        std::io::ErrorKind::AddrInUse => ServeError::InUse { listen },
        _ => ServeError::Bind { listen, source },
    })
}

#[cfg(test)]
mod tests;
