//! Who may ask: the gate before every route.
//!
//! In: a request and [`Access`]. Out: the same request, or an error. Without a token the Host header must
//! be a name or address of this machine: a web page that had its own name point at 127.0.0.1 (DNS
//! rebinding) sends its name there. With a token, every route but `/healthz` and the page's files wants it; the comparison
//! takes the same time wherever the two differ. Also here: the largest request body.

use super::config::Access;
use super::error::{ApiError, shown};
use super::page;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// Largest request body, in bytes.
pub const MAX_BODY: usize = 1 << 20;

/// The middleware.
pub async fn gate(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    match check(&access, &request) {
        Ok(()) => next.run(request).await,
        // Pyroscope's clients read errors in another shape.
        Err(error) => match super::pyroscope::refused(request.uri().path(), error.status, &error.message) {
            Some(error) => error.into_response(),
            None => error.into_response(),
        },
    }
}

fn check(access: &Access, request: &Request) -> Result<(), ApiError> {
    match access {
        Access::LocalHostOnly => check_host(request)?,
        Access::Token(_) if is_open(request.uri().path()) => {}
        Access::Token(token) => check_token(token, request)?,
    }
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<u64>().ok());
    if length.is_some_and(|n| n > MAX_BODY as u64) {
        let message = format!("The request is larger than {MAX_BODY} bytes.");
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "request_too_large", message));
    }
    Ok(())
}

/// What wants no token: whether the daemon lives, and the page's own files. A browser cannot send a token with the
/// first; the page asks for it, and sends it with all that it asks.
fn is_open(path: &str) -> bool {
    path == "/healthz" || page::is_public(path)
}

fn check_host(request: &Request) -> Result<(), ApiError> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = hosts.next().and_then(|v| v.to_str().ok());
    // An absolute request target goes before the header (RFC 9112 §3.2.2), so both must do.
    let target = request.uri().authority().map(Authority::as_str);
    let good = hosts.next().is_none() && host.is_some_and(is_local) && target.is_none_or(is_local);
    if good {
        return Ok(());
    }
    let host = target.filter(|t| !is_local(t)).or(host).unwrap_or("no host");
    let message = format!(
        "Without a token this daemon answers only as localhost, 127.0.0.1 or [::1], not as {}: use one of these, or set a token file.",
        shown(host)
    );
    Err(ApiError::new(StatusCode::FORBIDDEN, "forbidden_host", message))
}

/// Any port will do: a tunnel ends on another.
fn is_local(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    if host.contains('@') {
        return false;
    }
    let name = authority.host();
    let ip = match name.strip_prefix('[').and_then(|n| n.strip_suffix(']')) {
        Some(inner) => inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => name.parse::<IpAddr>().ok(),
    };
    name.eq_ignore_ascii_case("localhost") || ip.is_some_and(|ip| ip.to_canonical().is_loopback())
}

fn check_token(token: &str, request: &Request) -> Result<(), ApiError> {
    let given = request.headers().get(header::AUTHORIZATION).map(|v| v.as_bytes());
    let given = given.and_then(|v| v.split_at_checked(7));
    match given {
        Some((scheme, given)) if scheme.eq_ignore_ascii_case(b"bearer ") => {
            if same(token.as_bytes(), given.trim_ascii()) {
                return Ok(());
            }
            Err(ApiError::new(
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                "The bearer token is not the right one.",
            ))
        }
        _ => {
            let message = "This daemon wants `Authorization: Bearer` with the token of its token file.";
            Err(ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message))
        }
    }
}

/// Takes the same time wherever the two differ; only the length of what was given can be told.
fn same(token: &[u8], given: &[u8]) -> bool {
    let mut differ = token.len() ^ given.len();
    for (i, byte) in given.iter().enumerate() {
        let other = token.get(i % token.len().max(1)).copied().unwrap_or_default();
        differ |= usize::from(std::hint::black_box(byte ^ other));
    }
    std::hint::black_box(differ) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        for good in [
            "localhost",
            "LOCALHOST:4099",
            "127.0.0.1",
            "127.0.0.1:80",
            "127.1.2.3",
            "[::1]",
            "[::1]:4099",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(is_local(good), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]",
            "0.0.0.0",
            "127.0.0.1@evil.example",
            "evil@127.0.0.1",
            "::1",
            "[127.0.0.1]",
            "2130706433",
        ] {
            assert!(!is_local(bad), "{bad}");
        }
    }

    #[test]
    fn tokens() {
        assert!(same(b"abc", b"abc"));
        for bad in [&b""[..], b"ab", b"abd", b"abcabc", b"abca", b"ABC"] {
            assert!(!same(b"abc", bad), "{bad:?}");
        }
    }
}
