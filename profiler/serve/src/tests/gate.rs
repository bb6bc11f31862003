//! Who gets in: hosts, tokens, bodies; and what every answer carries.

use super::*;

async fn as_host(host: Option<&str>) -> Got {
    let mut request = Request::builder().uri("/api/v1/apps");
    if let Some(host) = host {
        request = request.header(header::HOST, host);
    }
    send(app(), request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn a_page_with_a_name_of_its_own_reads_nothing() {
    for host in ["localhost:4099", "127.0.0.1:4099", "[::1]:4099", "localhost"] {
        assert_eq!(as_host(Some(host)).await.status, 200, "{host}");
    }
    for host in ["evil.example", "evil.example:4099", "127.0.0.1.evil.example", "10.1.2.3:4099"] {
        let message = as_host(Some(host)).await.refused(403, "forbidden_host", None);
        assert!(message.contains(host), "{message}");
    }
    as_host(None).await.refused(403, "forbidden_host", None);
}

#[tokio::test]
async fn an_absolute_target_and_a_second_host_are_checked_too() {
    let got = send(app(), request("GET", "http://evil.example/api/v1/apps")).await;
    got.refused(403, "forbidden_host", None);
    let mut twice = request("GET", "/api/v1/apps");
    twice.headers_mut().append(header::HOST, "evil.example".parse().unwrap());
    send(app(), twice).await.refused(403, "forbidden_host", None);
}

#[tokio::test]
async fn a_token_opens_every_route_and_nothing_else_does() {
    let app = || router(state(three_windows()), Access::token("s3cret").unwrap(), Router::new());
    let with = |uri: &str, value: Option<&str>| {
        let mut request = request("GET", uri);
        request.headers_mut().insert(header::HOST, "profiles.example".parse().unwrap());
        if let Some(value) = value {
            request.headers_mut().insert(header::AUTHORIZATION, value.parse().unwrap());
        }
        request
    };
    // The page's files say nothing of the node; it asks for the token itself.
    for uri in ["/healthz", "/", "/ui/app.js"] {
        assert_eq!(send(app(), with(uri, None)).await.status, 200, "{uri}");
    }
    for uri in [
        "/readyz",
        "/metrics",
        "/api/v1/status",
        "/api/v1/apps",
        "/nowhere",
        "/healthz/",
        "//healthz",
        "/ui/",
        "/ui/nothing.js",
        "//",
        "/ui/../metrics",
        "/ui/%2e%2e/metrics",
    ] {
        let got = send(app(), with(uri, None)).await;
        got.refused(401, "unauthorized", None);
        assert_eq!(got.header("www-authenticate"), "Bearer");
    }
    for wrong in [
        "Bearer wrong",
        "Bearer s3cre",
        "Bearer s3crets",
        "Bearer ",
        "Basic s3cret",
        "s3cret",
        "Bearers3cret",
    ] {
        send(app(), with("/api/v1/apps", Some(wrong))).await.refused(401, "unauthorized", None);
    }
    for right in ["Bearer s3cret", "bearer s3cret", "Bearer  s3cret "] {
        assert_eq!(send(app(), with("/api/v1/apps", Some(right))).await.status, 200, "{right}");
    }
}

#[tokio::test]
async fn merged_routes_stand_behind_the_gate() {
    let more = Router::new().route("/more", axum::routing::post(|body: String| async move { body }));
    let app = || router(state(three_windows()), Access::token("t").unwrap(), more.clone());
    send(app(), request("POST", "/more")).await.refused(401, "unauthorized", None);
    let mut good = request("POST", "/more");
    good.headers_mut().insert(header::AUTHORIZATION, "Bearer t".parse().unwrap());
    *good.body_mut() = Body::from("hello");
    assert_eq!(send(app(), good).await.text(), "hello");
}

#[tokio::test]
async fn large_bodies_are_refused_with_and_without_a_length() {
    let more =
        Router::new().route("/more", axum::routing::post(|body: axum::body::Bytes| async move { body }));
    let app = || router(state(three_windows()), Access::LocalHostOnly, more.clone());
    let size = crate::access::MAX_BODY + 1;
    let mut declared = request("POST", "/more");
    declared.headers_mut().insert(header::CONTENT_LENGTH, size.to_string().parse().unwrap());
    send(app(), declared).await.refused(413, "request_too_large", None);
    let mut streamed = request("POST", "/more");
    *streamed.body_mut() = Body::from(vec![b'x'; size]);
    send(app(), streamed).await.refused(413, "request_too_large", None);
}

#[tokio::test]
async fn every_answer_carries_the_safe_headers() {
    for uri in [
        "/",
        "/ui/app.js",
        "/healthz",
        "/metrics",
        "/api/v1/apps",
        "/api/v1/flamegraph",
        "/nowhere",
        "/api/v1/apps?x=1",
    ] {
        let got = get(uri).await;
        assert_eq!(got.header("x-content-type-options"), "nosniff", "{uri}");
        assert_eq!(got.header("cross-origin-resource-policy"), "same-origin", "{uri}");
        let page = uri == "/" || uri.starts_with("/ui/");
        assert_eq!(got.header("cache-control"), if page { "no-cache" } else { "no-store" }, "{uri}");
        let policy = got.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'"), "{uri}: {policy}");
        assert!(!got.headers.contains_key("access-control-allow-origin"), "{uri}");
    }
    let policy = get_all("/api/v1/flamegraph?format=svg").await;
    let policy = policy.header("content-security-policy");
    assert!(policy.contains("sandbox allow-scripts") && !policy.contains("allow-same-origin"), "{policy}");
}

#[tokio::test]
async fn gzip_when_the_client_takes_it() {
    let mut packed = request("GET", &format!("/api/v1/flamegraph?format=json&{}", within(0, 30)));
    packed.headers_mut().insert(header::ACCEPT_ENCODING, "gzip".parse().unwrap());
    let got = send(app(), packed).await;
    assert_eq!(got.header("content-encoding"), "gzip");
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&got.body[..]), &mut text).unwrap();
    let plain = get_all("/api/v1/flamegraph?format=json").await;
    assert!(!plain.headers.contains_key("content-encoding"));
    assert_eq!(text, plain.text());
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    for uri in ["/", "/healthz", "/metrics", "/api/v1/apps", "/api/v1/flamegraph"] {
        let got = send(app(), request("HEAD", uri)).await;
        assert_eq!(got.status, 200, "{uri}");
        assert!(got.body.is_empty(), "{uri}");
        assert_eq!(got.header("content-type"), get(uri).await.header("content-type"), "{uri}");
    }
}

#[tokio::test]
async fn pyroscopes_clients_are_refused_in_their_own_words() {
    let calls = || crate::pyroscope::router(Arc::new(three_windows()), None);
    let path = "/querier.v1.QuerierService/ProfileTypes";
    let locked = router(state(three_windows()), Access::token("s3cret").unwrap(), calls());
    let got = send(locked, request("POST", path)).await;
    assert_eq!((got.status.as_u16(), got.json()["code"].as_str()), (401, Some("unauthenticated")));
    assert_eq!(got.header("www-authenticate"), "Bearer");
    let local = router(state(three_windows()), Access::LocalHostOnly, calls());
    let mut foreign = request("POST", path);
    foreign.headers_mut().insert(header::HOST, "evil.example".parse().unwrap());
    let got = send(local, foreign).await;
    assert_eq!((got.status.as_u16(), got.json()["code"].as_str()), (403, Some("permission_denied")));
}
