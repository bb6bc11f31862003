//! Peers, rights of tokens, and logging a browser in: over the whole router.

use super::*;
use crate::guard::{Guard, Right};
use crate::peer::Peer;
use axum::http::HeaderName;

const API: &str = "/api/v1/apps";

fn guarded() -> Router {
    router(state(three_windows()), Access::token("s3cret").unwrap(), Router::new())
}

fn from(peer: Peer, method: &str, uri: &str) -> Request<Body> {
    let mut request = request(method, uri);
    request.extensions_mut().insert(peer);
    request
}

fn with(mut request: Request<Body>, headers: &[(&str, &str)]) -> Request<Body> {
    for (name, value) in headers {
        let name: HeaderName = name.parse().unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    request
}

#[tokio::test]
async fn loopback_wants_the_token_and_says_the_mend() {
    let got = send(guarded(), request("GET", API)).await;
    let message = got.refused(401, "unauthorized", None);
    for mend in ["Authorization: Bearer", "emberscope url", "emberscope command"] {
        assert!(message.contains(mend), "{message}");
    }
    send(guarded(), request("POST", "/api/v1/login")).await.refused(401, "unauthorized", None);
}

#[tokio::test]
async fn health_and_metrics_are_open_on_loopback_and_name_no_application() {
    for uri in ["/healthz", "/readyz", "/metrics"] {
        let got = send(guarded(), request("GET", uri)).await;
        assert_eq!(got.status, 200, "{uri}");
        for word in ["app-1", "app-2", "etl", "executor=", "user=", "app="] {
            assert!(!got.text().contains(word), "{uri} tells {word}: {}", got.text());
        }
    }
    let far = Peer::Tcp { loopback: false, tls: false };
    for uri in ["/readyz", "/metrics"] {
        send(guarded(), from(far, "GET", uri)).await.refused(401, "unauthorized", None);
        // Nor by a name that was made to lead here.
        let foreign = with(request("GET", uri), &[("host", "evil.example")]);
        send(guarded(), foreign).await.refused(401, "unauthorized", None);
    }
    assert_eq!(send(guarded(), from(far, "GET", "/healthz")).await.status, 200);
}

#[tokio::test]
async fn the_health_listener_has_health_alone() {
    let far = Peer::Tcp { loopback: false, tls: false };
    for access in [Access::token("s3cret").unwrap(), Access::LocalHostOnly] {
        let app = || crate::health_router(state(three_windows()), access.clone());
        for uri in ["/healthz", "/readyz"] {
            assert_eq!(send(app(), from(far, "GET", uri)).await.status, 200, "{uri}");
        }
        send(app(), from(far, "GET", "/metrics")).await.refused(401, "unauthorized", None);
        assert_eq!(send(app(), request("GET", "/metrics")).await.status, 200);
        for uri in ["/", "/api/v1/apps", "/login"] {
            send(app(), request("GET", uri)).await.refused(404, "unknown_route", None);
        }
    }
    let asked = with(from(far, "GET", "/metrics"), &[("authorization", "Bearer s3cret")]);
    let app = crate::health_router(state(three_windows()), Access::token("s3cret").unwrap());
    assert_eq!(send(app, asked).await.status, 200);
}

#[tokio::test]
async fn the_unix_socket_is_for_whom_the_kernel_names() {
    let ours = Peer::Unix { uid: 7, allowed: true };
    let other = Peer::Unix { uid: 65534, allowed: false };
    for access in [Access::token("s3cret").unwrap(), Access::LocalHostOnly] {
        let app = || router(state(three_windows()), access.clone(), Router::new());
        assert_eq!(send(app(), from(ours, "GET", API)).await.status, 200);
        // Even with a token: nobody else has business there.
        let asked = with(from(other, "GET", API), &[("authorization", "Bearer s3cret")]);
        let message = send(app(), asked).await.refused(403, "forbidden_peer", None);
        assert!(message.contains("65534") && message.contains("with sudo"), "{message}");
    }
}

#[tokio::test]
async fn a_token_opens_what_it_is_for() {
    let dir = tempfile::tempdir().unwrap();
    let file = |word: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = dir.path().join(word);
        std::fs::write(&path, word).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        path
    };
    let files =
        [(Right::Everything, file("all")), (Right::Read, file("reads")), (Right::Metrics, file("counts"))];
    let access = Access::Guarded(Arc::new(Guard::new(&files).unwrap()));
    let far = Peer::Tcp { loopback: false, tls: false };
    for (method, uri, opened_by) in [
        ("GET", "/metrics", &["all", "reads", "counts"][..]),
        ("GET", "/readyz", &["all", "reads", "counts"][..]),
        ("GET", API, &["all", "reads"][..]),
        ("GET", "/api/v1/status", &["all", "reads"][..]),
        ("GET", "/api/v1/flamegraph", &["all", "reads"][..]),
        ("POST", "/api/v1/login", &["all"][..]),
    ] {
        for word in ["all", "reads", "counts"] {
            let bearer = format!("Bearer {word}");
            let asked = with(from(far, method, uri), &[("authorization", &bearer)]);
            let app = router(state(three_windows()), access.clone(), Router::new());
            let got = send(app, asked).await;
            match opened_by.contains(&word) {
                true => assert_eq!(got.status, 200, "{word} {uri}"),
                false => drop(got.refused(403, "forbidden_token", None)),
            }
        }
    }
}

/// A link's path, made as the command line makes it.
async fn link(app: &Router) -> String {
    let ours = Peer::Unix { uid: 0, allowed: true };
    let got = send(app.clone(), from(ours, "POST", "/api/v1/login")).await.json();
    assert_eq!(got["expires_seconds"], 300);
    got["path"].as_str().unwrap().to_owned()
}

/// The cookie of a browser that opened a link.
async fn log_in(app: &Router) -> String {
    let got = send(app.clone(), request("GET", &link(app).await)).await;
    assert_eq!((got.status.as_u16(), got.header("location")), (303, "./"));
    let cookie = got.header("set-cookie").to_owned();
    for part in ["Path=/", "HttpOnly", "SameSite=Strict", "Max-Age="] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Secure"), "there is no TLS: {cookie}");
    cookie.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_link_is_good_once() {
    let app = guarded();
    let path = link(&app).await;
    let looked = send(app.clone(), request("HEAD", &path)).await;
    assert_eq!(looked.status, 405, "a look does not use it up");
    assert_eq!(send(app.clone(), request("GET", &path)).await.status, 303);
    let message = send(app.clone(), request("GET", &path)).await.refused(401, "unauthorized", None);
    assert!(message.contains("emberscope url"), "{message}");
    for bad in ["/login", "/login?code=", "/login?code=x"] {
        send(app.clone(), request("GET", bad)).await.refused(401, "unauthorized", None);
    }
}

#[tokio::test]
async fn a_cookie_is_taken_from_this_origin_alone() {
    let app = guarded();
    let cookie = log_in(&app).await;
    let asked = |method, uri, more: &[(&str, &str)]| {
        with(request(method, uri), &[&[("cookie", cookie.as_str())][..], more].concat())
    };
    for more in [
        &[][..],
        &[("sec-fetch-site", "same-origin")],
        &[("sec-fetch-site", "none")],
        &[("origin", "http://localhost")],
    ] {
        let got = send(app.clone(), asked("GET", API, &[&[("host", "localhost")][..], more].concat())).await;
        assert_eq!(got.status, 200, "{more:?}");
    }
    for (method, more) in [
        ("GET", ("sec-fetch-site", "same-site")),
        ("GET", ("sec-fetch-site", "cross-site")),
        ("GET", ("origin", "http://127.0.0.1:4040")),
        ("POST", ("origin", "http://127.0.0.1:4040")),
        ("POST", ("sec-fetch-site", "none")),
        ("POST", ("accept", "*/*")),
    ] {
        let uri = if method == "POST" { "/api/v1/login" } else { API };
        let got = send(app.clone(), asked(method, uri, &[("host", "127.0.0.1:4099"), more])).await;
        got.refused(403, "forbidden_origin", None);
    }
    let rebound = asked("GET", API, &[("host", "evil.example"), ("sec-fetch-site", "same-origin")]);
    send(app.clone(), rebound).await.refused(403, "forbidden_host", None);
    // A browser that is in goes on by a link that was used.
    let again = asked("GET", "/login?code=x", &[]);
    assert_eq!(send(app, again).await.status, 303);
}

#[tokio::test]
async fn expressions_take_a_query_s_place() {
    let mut state = state(three_windows());
    state.queries = Queries::new(0, Duration::from_millis(10), SECOND);
    let app = router(state, Access::LocalHostOnly, Router::new());
    // Read before there is a place, this one would be a 400.
    let got = send(app, request("GET", "/api/v1/apps?query={stage=~%22(%22}")).await;
    got.refused(503, "busy", None);
}
