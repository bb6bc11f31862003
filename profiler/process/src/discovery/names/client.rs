//! One conversation with one of Spark's web servers: bounded GETs whose JSON is read as it comes.
//!
//! In: a base URL that was configured or found on this node (never one that a client named), a path that
//! is built here. Out: a value, or why there is none. No redirects (YARN answers with one: its pages are
//! behind its proxy), no proxy, no cookies. Bounded: time of a request and of the conversation, bytes of
//! a body and of each text in it, depth (serde_json's 128).

use crate::text::clean;
use emberscope_model::SparkUrl;
use serde::de::DeserializeOwned;
use std::io::{self, BufReader, Read};
use std::time::{Duration, Instant};

/// Time for one request. A driver's first answer took 20 s on a busy machine; a history server reads an
/// application's whole log for its first one.
pub const REQUEST: Duration = Duration::from_secs(25);
/// Time for all requests of one question.
pub const CONVERSATION: Duration = Duration::from_secs(60);
/// Bytes of a body. A stage is 3 KB and more with its accumulators, and Spark keeps 1,000 of them
/// (spark.ui.retainedStages); a task is 2 to 5 KB, and 1,000 are asked for at a time.
pub const MAX_BODY: u64 = 32 << 20;
/// Bytes of one text in a body; the longest are call stacks and SQL statements.
pub const MAX_TEXT: usize = 1 << 20;
/// Bytes shown of a foreign error.
const MAX_SHOWN: usize = 160;

/// Why a server gave no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// There is no connection, or it broke; what the client says, cleaned.
    #[error("{0}")]
    Connection(String),
    /// The server is slow: there was no answer within this time.
    #[error("no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// HTTP 404: the server does not know the application, stage or page.
    #[error("does not know it (HTTP 404)")]
    NotFound,
    /// HTTP 401 or 403: the server wants a login.
    #[error("wants a login (HTTP {0}), which this daemon does not have")]
    Login(u16),
    /// HTTP 3xx: the server sends elsewhere.
    #[error("sends elsewhere (HTTP {0}), which is not followed: name a history server with spark-url")]
    Redirect(u16),
    /// Any other status.
    #[error("HTTP {0}")]
    Status(u16),
    /// The body has more than [`MAX_BODY`] bytes.
    #[error("its answer is longer than {} MiB", MAX_BODY >> 20)]
    TooLarge,
    /// A text in the body has more than [`MAX_TEXT`] bytes.
    #[error("a text in its answer is longer than {} KiB", MAX_TEXT >> 10)]
    LongText,
    /// The body is not JSON, or not of the shape that Spark gives it; what the reader says, cleaned.
    #[error("its answer is not Spark's: {0}")]
    NotSpark(String),
}

/// The conversation: a time until which it may go on.
#[derive(Debug)]
pub struct Client {
    agent: ureq::Agent,
    until: Instant,
    request: Duration,
}

impl Default for Client {
    fn default() -> Self {
        Self::new(REQUEST, CONVERSATION)
    }
}

impl Client {
    /// A conversation with these times, which begins now.
    pub fn new(request: Duration, conversation: Duration) -> Self {
        let agent = ureq::Agent::config_builder()
            .timeout_connect(Some(Duration::from_secs(3).min(request)))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .proxy(None)
            .user_agent(concat!("emberscope/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        Self { agent, until: Instant::now() + conversation, request }
    }

    /// GETs `base/api/v1/applications/path`.
    ///
    /// # Errors
    /// An [`AskError`]: no connection, no time left, a status other than 200, a body that is too large or not of this
    /// type.
    pub fn get<T: DeserializeOwned>(&self, base: &SparkUrl, path: &str) -> Result<T, AskError> {
        let time = self.request.min(self.until.saturating_duration_since(Instant::now()));
        if time.is_zero() {
            return Err(AskError::TimedOut(CONVERSATION));
        }
        let url = format!("{base}/api/v1/applications/{path}");
        let request = self.agent.get(url).config().timeout_global(Some(time)).build();
        let mut response = request.call().map_err(|error| failed(&error, time))?;
        match response.status().as_u16() {
            200 => {}
            404 => return Err(AskError::NotFound),
            status @ (401 | 403) => return Err(AskError::Login(status)),
            status @ 300..=399 => return Err(AskError::Redirect(status)),
            status => return Err(AskError::Status(status)),
        }
        let body = response.body_mut().with_config().limit(MAX_BODY).reader();
        serde_json::from_reader(BufReader::new(ShortTexts::new(body)))
            .map_err(|error| unreadable(error, time))
    }
}

fn failed(error: &ureq::Error, time: Duration) -> AskError {
    match error {
        ureq::Error::Timeout(_) => AskError::TimedOut(time),
        ureq::Error::BodyExceedsLimit(_) => AskError::TooLarge,
        other => AskError::Connection(clean(other.to_string().as_bytes(), MAX_SHOWN)),
    }
}

fn unreadable(error: serde_json::Error, time: Duration) -> AskError {
    if !error.is_io() {
        return AskError::NotSpark(clean(error.to_string().as_bytes(), MAX_SHOWN));
    }
    let error = io::Error::from(error);
    if error.get_ref().is_some_and(|inner| inner.is::<LongText>()) {
        return AskError::LongText;
    }
    match error.get_ref().and_then(|inner| inner.downcast_ref::<ureq::Error>()) {
        Some(inner) => failed(inner, time),
        None if error.kind() == io::ErrorKind::TimedOut => AskError::TimedOut(time),
        None => AskError::Connection(clean(error.to_string().as_bytes(), MAX_SHOWN)),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a text is too long")]
struct LongText;

/// JSON on its way to the parser, which would hold a text of any length whole: ends at one that is longer
/// than [`MAX_TEXT`].
struct ShortTexts<R> {
    inner: R,
    in_text: bool,
    escaped: bool,
    length: usize,
}

impl<R> ShortTexts<R> {
    fn new(inner: R) -> Self {
        Self { inner, in_text: false, escaped: false, length: 0 }
    }
}

impl<R: Read> Read for ShortTexts<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        for byte in buffer.get(..read).unwrap_or_default() {
            match (self.in_text, byte) {
                (true, _) if self.escaped => self.escaped = false,
                (true, b'\\') => self.escaped = true,
                (in_text, b'"') => (self.in_text, self.length) = (!in_text, 0),
                // A number too is held whole.
                (false, b' ' | b'\n' | b',') => self.length = 0,
                _ => {}
            }
            self.length += 1;
            if self.length > MAX_TEXT {
                return Err(io::Error::other(LongText));
            }
        }
        Ok(read)
    }
}
