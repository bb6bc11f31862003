//! Logging a browser in: a code that is good once, then a cookie.
//!
//! In: `POST /api/v1/login` of who may do everything (the Unix socket, or the full token). Out: a link
//! `/login?code=...`, good once and for [`CODE_LIFE`]; who opens it gets a cookie (HttpOnly, SameSite=Strict) that is
//! good for [`SESSION_LIFE`] or until the daemon ends. Both are words of 256 random bits, in memory alone, and bounded:
//! at the limit the oldest goes.

use super::config::Access;
use super::error::ApiError;
use super::params::Params;
use super::secret::{random, same};
use axum::Json;
use axum::extract::{RawQuery, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use emberscope_api::{LoginLink, route};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a link is good.
pub const CODE_LIFE: Duration = Duration::from_secs(5 * 60);
/// How long a browser stays logged in: a working day, and the evening after it.
pub const SESSION_LIFE: Duration = Duration::from_secs(16 * 3600);
/// Links that are good at a time: people make them by hand.
const MAX_CODES: usize = 32;
/// Browsers that are logged in at a time.
const MAX_SESSIONS: usize = 256;

/// Words and when they end, the oldest first.
struct Words {
    words: Mutex<VecDeque<(String, Instant)>>,
    most: usize,
    life: Duration,
}

impl Words {
    fn new(most: usize, life: Duration) -> Self {
        Self { words: Mutex::default(), most, life }
    }
    fn locked(&self) -> MutexGuard<'_, VecDeque<(String, Instant)>> {
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        words.retain(|(_, ends)| *ends > now);
        words
    }
    fn make(&self) -> Result<String, String> {
        let word = random()?;
        let mut words = self.locked();
        while words.len() >= self.most {
            words.pop_front();
        }
        words.push_back((word.clone(), Instant::now() + self.life));
        Ok(word)
    }
    fn has(&self, given: &str) -> bool {
        // All of them, so that the time does not tell how far one came.
        self.locked().iter().fold(false, |found, (word, _)| found | same(word.as_bytes(), given.as_bytes()))
    }
    fn take(&self, given: &str) -> bool {
        let mut words = self.locked();
        let before = words.len();
        words.retain(|(word, _)| !same(word.as_bytes(), given.as_bytes()));
        words.len() < before
    }
}

/// The codes and sessions of one server.
pub struct Logins {
    codes: Words,
    sessions: Words,
    /// The cookie's name. Cookies do not know ports: two daemons that are reached as localhost, by tunnels for one,
    /// would have each other's.
    cookie: String,
}

impl Logins {
    /// No codes and no sessions yet.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn new() -> Result<Self, String> {
        let name = random()?;
        Ok(Self {
            codes: Words::new(MAX_CODES, CODE_LIFE),
            sessions: Words::new(MAX_SESSIONS, SESSION_LIFE),
            cookie: format!("emberscope-{}", name.get(..8).unwrap_or_default()),
        })
    }

    /// Whether a request carries the cookie of a browser that is logged in.
    pub fn is_logged_in(&self, headers: &HeaderMap) -> bool {
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.filter(|(name, _)| *name == self.cookie).any(|(_, word)| self.sessions.has(word))
    }

    /// Logs all browsers out, and takes the links back.
    pub fn clear(&self) {
        self.sessions.locked().clear();
        self.codes.locked().clear();
    }

    fn cookie(&self, word: &str, secure: bool) -> String {
        let (name, life) = (&self.cookie, SESSION_LIFE.as_secs());
        let secure = if secure { "; Secure" } else { "" };
        format!("{name}={word}; Path=/; Max-Age={life}; HttpOnly; SameSite=Strict{secure}")
    }
}

/// Answers `POST /api/v1/login`: makes a link.
pub async fn link(State(access): State<Arc<Access>>, RawQuery(raw): RawQuery) -> Response {
    if let Err(error) = Params::of_route(raw.as_deref(), &route::LOGIN) {
        return error.into_response();
    }
    let Access::Guarded(guard) = &*access else {
        return Json(LoginLink { path: "/".to_owned(), ..LoginLink::default() }).into_response();
    };
    match guard.logins.codes.make() {
        Ok(code) => {
            let path = format!("/login?code={code}");
            let url = guard.link.as_ref().map(|base| format!("{base}{path}"));
            Json(LoginLink { path, url, expires_seconds: Some(CODE_LIFE.as_secs()) }).into_response()
        }
        Err(error) => ApiError::internal(format!("No link can be made: {error}.")).into_response(),
    }
}

/// Answers `GET /login?code=...`: logs a browser in.
pub async fn enter(State(access): State<Arc<Access>>, RawQuery(raw): RawQuery, request: Request) -> Response {
    let params = match Params::of(raw.as_deref(), &["code"]) {
        Ok(params) => params,
        Err(error) => return error.into_response(),
    };
    let code = params.one("code").ok().flatten().unwrap_or_default().to_owned();
    // HEAD looks at a link, and must not use it up.
    if *request.method() != Method::GET {
        return ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "Use GET.")
            .into_response();
    }
    // Relative, for a proxy's path.
    let mut home = (StatusCode::SEE_OTHER, [(header::LOCATION, "./")]).into_response();
    let Access::Guarded(guard) = &*access else { return home };
    if !guard.logins.codes.take(&code) {
        if guard.logins.is_logged_in(request.headers()) {
            return home;
        }
        let message = "This link was used before, or is older than five minutes: \
                       `emberscope url` on the daemon's machine prints a new one.";
        return ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message).into_response();
    }
    let cookie = guard.logins.sessions.make().map(|word| guard.logins.cookie(&word, guard.tls));
    match cookie.map(|cookie: String| HeaderValue::from_str(&cookie)) {
        Ok(Ok(cookie)) => {
            home.headers_mut().insert(header::SET_COOKIE, cookie);
            home
        }
        _ => ApiError::internal("No session can be made.").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn words_are_bounded_in_number_and_time() {
        let words = Words::new(2, CODE_LIFE);
        let [first, second, third] = [(); 3].map(|()| words.make().unwrap());
        assert!(!words.has(&first) && words.has(&second) && words.has(&third) && !words.has(""));
        assert!(words.take(&second) && !words.take(&second), "good once");
        tokio::time::advance(CODE_LIFE).await;
        assert!(!words.has(&third));
    }

    #[test]
    fn a_cookie_is_read_among_others() {
        let logins = Logins::new().unwrap();
        let word = logins.sessions.make().unwrap();
        let with = |line: &str| HeaderMap::from_iter([(header::COOKIE, line.parse().unwrap())]);
        let name = &logins.cookie;
        assert!(logins.is_logged_in(&with(&format!("a=b; {name}={word}"))));
        for bad in [format!("{name}=x"), format!("x{name}={word}"), word.clone(), format!("{name}=")] {
            assert!(!logins.is_logged_in(&with(&bad)), "{bad}");
        }
        assert!(!logins.is_logged_in(&HeaderMap::new()));
        logins.clear();
        assert!(!logins.is_logged_in(&with(&format!("{name}={word}"))));
    }
}
