//! Asks a daemon.
//!
//! In: a path of the HTTP API and parameters. Out: the body and the `X-Emberscope-*` headers, or an error
//! with its exit code: nobody there, refused, or not a daemon. The daemon's Unix socket unless a URL is named ([`Unix`]);
//! a token goes to the URL that was named with it and nowhere else: no proxy, no redirect followed. Answers up to
//! [`BODY_LIMIT`] bytes.

use super::CliError;
use super::unix::Unix;
use clap::Args;
use emberscope_api::Error;
use emberscope_serve::DEFAULT_SOCKET;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use ureq::http::{HeaderMap, Method};
use ureq::tls::{RootCerts, TlsConfig};

/// Bytes of an answer: a node's flame graph as JSON has some MB.
pub(super) const BODY_LIMIT: u64 = 512 << 20;
/// Bytes of a token file.
const TOKEN_LIMIT: u64 = 4096;
/// Longest wait for a connection: a daemon on the same machine or network answers in far less.
pub(super) const CONNECT: Duration = Duration::from_secs(5);
/// Longest wait for a whole answer. Merging weeks takes seconds; who waits longer has asked for too much.
pub(super) const WHOLE: Duration = Duration::from_secs(300);

/// Which daemon is asked.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Daemon")]
pub struct ClientArgs {
    /// Daemon to query: unix:/PATH of its socket, or http:// or https:// with HOST:PORT, which need a token. The
    /// variable SSL_CERT_FILE names certificates to trust instead of the machine's. Default: the variable
    /// EMBERSCOPE_URL, else unix:/run/emberscope/emberscope.sock.
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// File with the bearer token, for a URL. Default: the variable EMBERSCOPE_TOKEN, else none.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

impl ClientArgs {
    /// A client for the daemon that the flags name. Nobody is asked yet.
    ///
    /// # Errors
    /// [`CliError::File`]: the token file cannot be read. [`CliError::Usage`]: it holds no token, or as for
    /// [`Client::new`].
    pub fn client(&self) -> Result<Client, CliError> {
        let token = match &self.token_file {
            Some(path) => Some(read_token(path)?),
            None => std::env::var("EMBERSCOPE_TOKEN").ok().filter(|token| !token.is_empty()),
        };
        Client::new(&address(self.url.clone(), url_variable()), token)
    }
}

/// The daemon that the environment names.
pub fn url_variable() -> Option<String> {
    std::env::var("EMBERSCOPE_URL").ok()
}

/// Who is asked: the flag's daemon, else the variable's, else the one of this machine.
fn address(flag: Option<String>, variable: Option<String>) -> String {
    flag.or(variable.filter(|url| !url.is_empty())).unwrap_or_else(|| format!("unix:{DEFAULT_SOCKET}"))
}

/// A daemon to ask: its socket, or its URL with a token.
#[derive(Debug)]
pub struct Client {
    way: Way,
    base: String,
}

#[derive(Debug)]
enum Way {
    Url { agent: Box<ureq::Agent>, token: Option<String> },
    Socket(Unix),
}

/// An answer as it came.
pub(super) struct Raw {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// What a daemon answered.
#[derive(Debug)]
pub struct Answered {
    /// The body, at most [`BODY_LIMIT`] bytes.
    pub body: Vec<u8>,
    headers: HeaderMap,
}

impl Answered {
    /// The text of a header; empty when it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

impl Client {
    /// A client for the daemon at `url`: `unix:PATH`, `http://HOST:PORT`, `https://HOST:PORT`, or `HOST:PORT`.
    ///
    /// # Errors
    /// [`CliError::Usage`]: another scheme, or no absolute path behind `unix:`.
    pub fn new(url: &str, token: Option<String>) -> Result<Self, CliError> {
        if let Some(path) = url.strip_prefix("unix:") {
            // `unix:///run/x` is written, too.
            let path = path.strip_prefix("//").unwrap_or(path);
            if !path.starts_with('/') {
                let example = format!("unix:{DEFAULT_SOCKET}");
                return Err(CliError::Usage(format!("--url {url} names no path, such as {example}")));
            }
            return Ok(Self { way: Way::Socket(Unix::at(path)), base: format!("unix:{path}") });
        }
        let base = match url.split_once("://") {
            None => format!("http://{url}"),
            Some(("http" | "https", _)) => url.to_owned(),
            Some((scheme, _)) => {
                return Err(CliError::Usage(format!(
                    "--url speaks unix, http and https, not {scheme}: {url}"
                )));
            }
        };
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::PlatformVerifier)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .tls_config(tls)
            .proxy(None)
            .max_redirects(0)
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(WHOLE))
            .user_agent(concat!("emberscope/", env!("CARGO_PKG_VERSION")))
            .build();
        let way = Way::Url { agent: Box::new(agent.into()), token };
        Ok(Self { way, base: base.trim_end_matches('/').to_owned() })
    }

    /// GET, whatever the body.
    ///
    /// # Errors
    /// [`CliError::Unreachable`]: nobody answers in time. [`CliError::Stranger`]: the socket is for others.
    /// [`CliError::Api`]: the daemon refuses, with its sentence. [`CliError::Answer`]: it is no daemon that answers.
    /// [`CliError::Usage`]: the URL is no address.
    pub fn get(&self, path: &str, params: &[(impl AsRef<str>, String)]) -> Result<Answered, CliError> {
        let params = params.iter().map(|(name, value)| (name.as_ref(), value.as_str()));
        self.taken(self.ask(&Method::GET, path, &params.collect::<Vec<_>>())?)
    }

    /// POST of nothing.
    ///
    /// # Errors
    /// As for [`Self::get`].
    pub fn post(&self, path: &str) -> Result<Answered, CliError> {
        self.taken(self.ask(&Method::POST, path, &[])?)
    }

    fn taken(&self, Raw { status, headers, body }: Raw) -> Result<Answered, CliError> {
        match status {
            200 => Ok(Answered { body, headers }),
            _ => Err(self.refused(status, &body)),
        }
    }

    fn ask(&self, method: &Method, path: &str, params: &[(&str, &str)]) -> Result<Raw, CliError> {
        let (agent, token) = match &self.way {
            Way::Socket(unix) => return unix.ask(method, path, params),
            Way::Url { agent, token } => (agent, token),
        };
        let url = format!("{}{path}{}", self.base, query(params));
        let mut request = ureq::http::Request::builder().method(method).uri(url);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(()).map_err(|error| self.failed(error.into()))?;
        let mut response = agent.run(request).map_err(|error| self.failed(error))?;
        let body = response.body_mut().with_config().limit(BODY_LIMIT).read_to_vec();
        let body = body.map_err(|error| self.odd(format!("the answer broke off: {error}")))?;
        Ok(Raw { status: response.status().as_u16(), headers: response.headers().clone(), body })
    }

    /// GET, a JSON body: its text for `--json` and its value.
    ///
    /// # Errors
    /// As for [`Self::get`]; [`CliError::Answer`] also for a body that is not UTF-8, no JSON, or of another shape.
    pub fn get_json<T: DeserializeOwned>(
        &self,
        path: &str,
        params: &[(impl AsRef<str>, String)],
    ) -> Result<(String, T), CliError> {
        let answered = self.get(path, params)?;
        let text =
            String::from_utf8(answered.body).map_err(|_| self.odd("its answer is not UTF-8".to_owned()))?;
        let value = serde_json::from_str(&text).map_err(|error| self.odd(format!("its answer: {error}")))?;
        Ok((text, value))
    }

    fn failed(&self, error: ureq::Error) -> CliError {
        match error {
            ureq::Error::BadUri(_) | ureq::Error::Http(_) => {
                CliError::Usage(format!("--url {} is no address such as http://127.0.0.1:4099", self.base))
            }
            ureq::Error::Protocol(_) | ureq::Error::LargeResponseHeader(..) => self.odd(error.to_string()),
            ureq::Error::Io(source) => self.unreachable(source.to_string()),
            other => self.unreachable(other.to_string()),
        }
    }

    fn unreachable(&self, reason: String) -> CliError {
        CliError::Unreachable { url: self.base.clone(), reason }
    }

    /// The error of an answer that no daemon gives.
    pub fn odd(&self, reason: String) -> CliError {
        CliError::Answer { url: self.base.clone(), reason }
    }

    /// An error of the API: `{"error":{"code","message","parameter"}}`.
    fn refused(&self, status: u16, body: &[u8]) -> CliError {
        let Ok(Error { error }) = serde_json::from_slice(body) else {
            return self.odd(format!("HTTP status {status}"));
        };
        if error.code == "unknown_route" {
            return self.odd(format!("{} (is it of another version?)", error.message.trim_end_matches('.')));
        }
        let mut message = error.message;
        if let Some(parameter) =
            error.parameter.filter(|name| !name.is_empty() && !message.contains(name.as_str()))
        {
            message = format!("{parameter}: {message}");
        }
        if matches!(self.way, Way::Url { .. }) && (status == 401 || status == 403) {
            message.push_str(" (name a file with the token by --token-file, or set EMBERSCOPE_TOKEN)");
        }
        CliError::Api { status, message }
    }
}

/// The parameters as a URL carries them, with the question mark; nothing when there are none.
pub(super) fn query(params: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let mut put = |text: &str| {
        for byte in text.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b',' | b':' => {
                    out.push(char::from(byte));
                }
                _ => out.push_str(&format!("%{byte:02X}")),
            }
        }
        std::mem::take(&mut out)
    };
    let pairs = params.iter().enumerate().map(|(index, (name, value))| {
        let mark = if index == 0 { '?' } else { '&' };
        format!("{mark}{}={}", put(name), put(value))
    });
    pairs.collect()
}

/// What a token file holds, without the white space around it.
fn read_token(path: &Path) -> Result<String, CliError> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(TOKEN_LIMIT).read_to_string(&mut text));
    read.map_err(|source| CliError::File { what: "read the token file", path: path.to_owned(), source })?;
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(CliError::Usage(format!("the file {} holds no bearer token", path.display())));
    }
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests;
