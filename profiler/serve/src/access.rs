//! Who may ask: the gate before every route.
//!
//! In: a request, the connection's `Peer` and [`Access`]. Out: the same request, or an error that says the mend. The
//! Unix socket opens all to whom the kernel names as its owner or one of its group. Over TCP, loopback too, a request
//! shows a token (`Guard`) or the cookie of a browser that is logged in (`super::login`); on loopback `/readyz` and
//! `/metrics` want neither, for they name no application, and `/healthz` and the page's files never do.
//!
//! A web page that has its own name point at 127.0.0.1 (DNS rebinding) sends its name in the Host header: where no
//! token is shown and there is no TLS, that must name this machine. A cookie is taken from this origin's own pages
//! alone. Also here: the largest request body.

use super::config::Access;
use super::crowd::Activity;
use super::error::{ApiError, shown};
use super::guard::{Guard, Right};
use super::page;
use super::peer::Peer;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderName, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// Largest request body, in bytes.
pub const MAX_BODY: usize = 1 << 20;

/// The middleware that asks who may ask, before a request reaches its route.
pub async fn gate(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    match check(&access, &request) {
        Ok(shown) => {
            if let (Shown::Right, Some(connection)) = (shown, request.extensions().get::<Arc<Activity>>()) {
                connection.entitle();
            }
            next.run(request).await
        }
        // Pyroscope's clients read errors in another shape.
        Err(error) => match super::pyroscope::refused(request.uri().path(), error.status, &error.message) {
            Some(error) => error.into_response(),
            None => error.into_response(),
        },
    }
}

/// What a request that may be answered has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// It asks for what anybody may have.
    Nothing,
    /// It may ask for samples.
    Right,
}

fn check(access: &Access, request: &Request) -> Result<Shown, ApiError> {
    let peer = request.extensions().get::<Peer>().copied().unwrap_or(Peer::HERE);
    let shown = match (peer, access) {
        (Peer::Unix { allowed: true, .. }, _) => Shown::Right,
        (Peer::Unix { uid, .. }, _) => return Err(stranger(uid)),
        // The health listener may be reached from elsewhere; a Host header proves nothing.
        (Peer::Tcp { loopback: false, .. }, Access::LocalHostOnly) => {
            let message = "Only loopback is open here: ask on this machine.";
            return Err(ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message));
        }
        (Peer::Tcp { .. }, Access::LocalHostOnly) => {
            check_host(request)?;
            Shown::Right
        }
        (Peer::Tcp { loopback, tls }, Access::Guarded(guard)) => check_tcp(guard, loopback, tls, request)?,
    };
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<u64>().ok());
    if length.is_some_and(|n| n > MAX_BODY as u64) {
        let message = format!("The request is larger than {MAX_BODY} bytes.");
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "request_too_large", message));
    }
    Ok(shown)
}

fn stranger(uid: u32) -> ApiError {
    let message = match super::peer::group() {
        Some(group) => format!(
            "User {uid} may not ask here: root, the daemon's user and the members of its group (gid {group}) may. \
             Have yourself added to the group (usermod -aG) and log in again, or ask with sudo."
        ),
        None => format!("User {uid} may not ask here: root may. Ask with sudo."),
    };
    ApiError::new(StatusCode::FORBIDDEN, "forbidden_peer", message)
}

/// What a route wants of who asks for it over TCP.
fn wanted(request: &Request) -> Right {
    match request.uri().path() {
        "/healthz" | "/login" => Right::Nothing,
        path if page::is_public(path) => Right::Nothing,
        "/readyz" | "/metrics" => Right::Metrics,
        // A login is worth more than a token that only reads.
        "/api/v1/login" => Right::Everything,
        _ => Right::Read,
    }
}

fn check_tcp(guard: &Guard, loopback: bool, tls: bool, request: &Request) -> Result<Shown, ApiError> {
    let wanted = wanted(request);
    if wanted == Right::Nothing {
        return Ok(Shown::Nothing);
    }
    let has = match request.headers().get(header::AUTHORIZATION).map(|value| value.as_bytes()) {
        Some(given) => guard.right_of(given),
        None if guard.logins.is_logged_in(request.headers()) => {
            check_origin(request)?;
            if loopback && !tls {
                check_host(request)?;
            }
            Right::Everything
        }
        None if wanted == Right::Metrics && loopback && has_local_host(request) => return Ok(Shown::Nothing),
        None => Right::Nothing,
    };
    if has >= wanted {
        return Ok(Shown::Right);
    }
    Err(match has {
        Right::Nothing => ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", guard.mend(request)),
        Right::Metrics => {
            let message = "This token opens /metrics, /readyz and /healthz alone.";
            ApiError::new(StatusCode::FORBIDDEN, "forbidden_token", message)
        }
        _ => {
            let message =
                "This token reads, and makes no login links: ask with the full one, or by the socket.";
            ApiError::new(StatusCode::FORBIDDEN, "forbidden_token", message)
        }
    })
}

/// Whether a request with a cookie comes from this origin. Another port of this machine is the same site, and
/// SameSite=Strict does not keep its pages from asking; browsers say so in Sec-Fetch-Site (Fetch Metadata), and those
/// that do not send it say their origin with whatever is no GET.
fn check_origin(request: &Request) -> Result<(), ApiError> {
    let text = |name: HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
    let site = text(HeaderName::from_static("sec-fetch-site"));
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let host = text(header::HOST).unwrap_or_default();
    let origin = text(header::ORIGIN);
    let own = origin.and_then(|origin| origin.split_once("://")).is_some_and(|(_, origin)| origin == host);
    let good = match site {
        Some("same-origin") => true,
        // Typed, or a bookmark.
        Some("none") => reads,
        Some(_) => false,
        None => own || (reads && origin.is_none()),
    };
    if good {
        return Ok(());
    }
    let message = "The cookie of this daemon is for its own page: a page of another origin asked.";
    Err(ApiError::new(StatusCode::FORBIDDEN, "forbidden_origin", message))
}

/// What the Host header and an absolute target name, if that is not this machine alone.
fn foreign_host(request: &Request) -> Option<String> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = hosts.next().and_then(|v| v.to_str().ok());
    // An absolute request target goes before the header (RFC 9112 §3.2.2), so both must do.
    let target = request.uri().authority().map(Authority::as_str);
    let good = hosts.next().is_none() && host.is_some_and(is_local) && target.is_none_or(is_local);
    let named = || target.filter(|t| !is_local(t)).or(host).unwrap_or("no host");
    (!good).then(|| shown(named()))
}

fn has_local_host(request: &Request) -> bool {
    foreign_host(request).is_none()
}

fn check_host(request: &Request) -> Result<(), ApiError> {
    let Some(host) = foreign_host(request) else { return Ok(()) };
    let message = format!(
        "Without a token this daemon answers only as localhost, 127.0.0.1 or [::1], not as {host}: \
         use one of these, or send the token."
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
}
