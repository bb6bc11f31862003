//! Asks a daemon by its Unix socket.
//!
//! In: a method, a path, parameters. Out: the answer as it came, or an error that says who may ask. The socket is its
//! owner's and its group's; no token goes over it. The limits are the client's.

use super::CliError;
use super::client::{BODY_LIMIT, CONNECT, Raw, WHOLE, query};
use axum::body::{Body, to_bytes};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tokio::net::UnixStream;
use tokio::time::timeout;
use ureq::http::{Method, Request};

/// Bytes that are read of /etc/group.
const GROUPS: u64 = 1 << 20;

/// A daemon's socket.
#[derive(Debug)]
pub struct Unix(PathBuf);

impl Unix {
    /// The socket at a path. Nothing is looked at yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Asks, and waits for the whole answer.
    ///
    /// # Errors
    /// [`CliError::Stranger`]: the socket is for others. [`CliError::Unreachable`]: nobody takes the connection, or
    /// there is no answer in time. [`CliError::Answer`]: what answers speaks no HTTP, breaks off, or sends more than
    /// [`BODY_LIMIT`] bytes. [`CliError::Usage`]: the path or a parameter is none of a URL. [`CliError::Host`]: no
    /// event queue.
    pub fn ask(&self, method: &Method, path: &str, params: &[(&str, &str)]) -> Result<Raw, CliError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|source| CliError::Host { what: "cannot wait for the daemon", source })?;
        let request = Request::builder()
            .method(method)
            .uri(format!("{path}{}", query(params)))
            .header("host", "localhost")
            .header("user-agent", concat!("emberscope/", env!("CARGO_PKG_VERSION")))
            .body(Body::empty())
            .map_err(|error| CliError::Usage(error.to_string()))?;
        let asked = runtime.block_on(async { timeout(WHOLE, self.send(request)).await });
        asked.unwrap_or_else(|_| Err(self.unreachable(format!("no answer in {} s", WHOLE.as_secs()))))
    }

    async fn send(&self, request: Request<Body>) -> Result<Raw, CliError> {
        let stream = match timeout(CONNECT, UnixStream::connect(&self.0)).await {
            Ok(stream) => stream.map_err(|error| self.failed(&error))?,
            Err(_) => return Err(self.unreachable("it takes no connection".to_owned())),
        };
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| self.odd(error))?;
        // Ends with the runtime at the latest.
        tokio::spawn(connection);
        let response = sender.send_request(request).await.map_err(|error| self.odd(error))?;
        let (parts, body) = response.into_parts();
        let limit = usize::try_from(BODY_LIMIT).unwrap_or(usize::MAX);
        let body = to_bytes(Body::new(body), limit).await;
        let body = body.map_err(|error| self.odd(format!("the answer broke off: {error}")))?;
        Ok(Raw { status: parts.status.as_u16(), headers: parts.headers, body: body.to_vec() })
    }

    fn url(&self) -> String {
        format!("unix:{}", self.0.display())
    }
    fn odd(&self, reason: impl ToString) -> CliError {
        CliError::Answer { url: self.url(), reason: reason.to_string() }
    }
    fn unreachable(&self, reason: String) -> CliError {
        CliError::Unreachable { url: self.url(), reason }
    }

    fn failed(&self, error: &io::Error) -> CliError {
        match error.kind() {
            io::ErrorKind::PermissionDenied => {
                CliError::Stranger { path: self.0.clone(), group: group_of(&self.0) }
            }
            _ => self.unreachable(error.to_string()),
        }
    }
}

/// The name of the group that may use a socket: the socket's, or its directory's where one cannot look into that. None:
/// root's, or it cannot be told.
fn group_of(path: &Path) -> Option<String> {
    let there = path.metadata().or_else(|error| match path.parent() {
        Some(dir) => dir.metadata(),
        None => Err(error),
    });
    let gid = there.map(|there| there.gid()).ok().filter(|gid| *gid != 0)?;
    let mut groups = String::new();
    let read = File::open("/etc/group").and_then(|file| file.take(GROUPS).read_to_string(&mut groups));
    let name = read.ok().and_then(|_| name_of(&groups, gid));
    Some(name.map_or_else(|| format!("{gid}"), str::to_owned))
}

/// group(5): `name:password:gid:members`.
fn name_of(groups: &str, gid: u32) -> Option<&str> {
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(gid)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::super::client::Client;
    use super::super::selection::Params;
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;

    /// A daemon that sends these bytes to one who asks. Out: the lines of what was asked.
    fn sending(path: &Path, bytes: &'static str) -> std::thread::JoinHandle<Vec<String>> {
        let listener = UnixListener::bind(path).unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
            let head = lines.take_while(|line| !line.is_empty()).collect();
            stream.write_all(bytes.as_bytes()).unwrap();
            head
        })
    }

    fn client(path: &Path) -> Client {
        Client::new(&format!("unix:{}", path.display()), Some("s3cret".to_owned())).unwrap()
    }

    #[test]
    fn it_asks_and_sends_no_token() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.sock");
        let fake =
            sending(&path, "HTTP/1.1 200 OK\r\nx-emberscope-windows: 3\r\ncontent-length: 2\r\n\r\nok");
        let params: Params = vec![("app", "a b".to_owned())];
        let answered = client(&path).get("/api/v1/apps", &params).unwrap();
        assert_eq!((answered.body.as_slice(), answered.header("x-emberscope-windows")), (&b"ok"[..], "3"));
        let head = fake.join().unwrap();
        assert_eq!(head[0], "GET /api/v1/apps?app=a%20b HTTP/1.1");
        assert!(!head.iter().any(|line| line.contains("s3cret")), "{head:?}");
    }

    #[test]
    fn nobody_there_and_no_daemon_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.sock");
        let error = client(&path).get("/", &Params::new()).unwrap_err();
        assert_eq!(error.code(), super::super::code::UNREACHABLE, "{error}");
        assert!(error.to_string().contains("emberscope daemon"), "{error}");
        let _fake = sending(&path, "220 mail.example ESMTP\r\n\r\n");
        let error = client(&path).get("/", &Params::new()).unwrap_err();
        assert!(error.to_string().contains("does not answer like an emberscope daemon"), "{error}");
    }

    #[test]
    fn groups_have_names() {
        let groups = "root:x:0:\nemberscope:x:998:eve,bob\nodd\n:x:y:\n";
        assert_eq!(name_of(groups, 998), Some("emberscope"));
        assert_eq!(name_of(groups, 5), None);
        let text = |group| CliError::Stranger { path: "/run/x.sock".into(), group }.to_string();
        let by_group = text(Some("emberscope".to_owned()));
        for word in ["/run/x.sock", "not in group emberscope", "usermod", "--token-file"] {
            assert!(by_group.contains(word), "{word}: {by_group}");
        }
        assert!(text(None).contains("only root may. Ask with sudo; or ask over TCP"), "{}", text(None));
    }
}
