//! The HTTP API as its OpenAPI document tells it: every path with query strings that the input makes, of the document's
//! own parameters and of any others. An answer always, never a 500, and an error is JSON.
#![cfg_attr(fuzzing, no_main)]

mod shared;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use emberscope_serve::{Access, Metrics, Queries, ServeState};
use libfuzzer_sys::fuzz_target;
use shared::{BLOCK, FILES, block_in, fixture, store_of};
use std::sync::{Arc, LazyLock};
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

struct Api {
    runtime: Runtime,
    router: Router,
    /// Paths with the names of their parameters.
    paths: Vec<(String, Vec<String>)>,
}

static API: LazyLock<Api> = LazyLock::new(|| {
    let block = fixture().join("blocks").join(BLOCK);
    let volume = block_in(&block, FILES["manifest.json"].clone()).expect("the fixture's block");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let store = Arc::new(store_of(volume));
    let state = ServeState {
        store: store.clone(),
        status: Arc::new(|| serde_json::json!({})),
        metrics: Arc::new(Metrics::new("0").expect("the metrics")),
        ready: Arc::new(|| Ok(())),
        node: "n".to_owned(),
        version: "0".to_owned(),
        queries: Queries::default(),
        spark: None,
        prices: Default::default(),
    };
    let router = emberscope_serve::router(state, Access::LocalHostOnly, emberscope_serve::pyroscope::router(store, None));
    let (_, text) = get(&runtime, &router, "/api/v1/openapi.json").expect("the document");
    let document: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    let name = |parameter: &serde_json::Value| {
        let given = parameter["name"].as_str().or_else(|| parameter["$ref"].as_str()?.rsplit('/').next());
        given.map(str::to_owned)
    };
    let paths = document["paths"].as_object().expect("paths").iter().filter_map(|(path, item)| {
        let parameters = item["get"].get("parameters")?.as_array()?;
        Some((path.replace("{name}", "app"), parameters.iter().filter_map(name).collect()))
    });
    Api { paths: paths.collect(), runtime, router }
});

/// Status and body; None: no URL.
fn get(runtime: &Runtime, router: &Router, path: &str) -> Option<(StatusCode, Vec<u8>)> {
    let request = Request::get(path).header("host", "localhost").body(Body::empty()).ok()?;
    runtime.block_on(async {
        let Ok(response) = router.clone().oneshot(request).await;
        let status = response.status();
        let body = to_bytes(response.into_body(), 64 << 20).await.expect("a body of bounded size");
        Some((status, body.to_vec()))
    })
}

/// Any bytes as a part of a query string.
fn escaped(bytes: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    bytes.iter().map(|b| if plain(*b) { char::from(*b).to_string() } else { format!("%{b:02X}") }).collect()
}

fuzz_target!(|input: (u8, Vec<(u8, &[u8])>, &[u8])| {
    let (path, pairs, raw) = input;
    let (path, names) = &API.paths[usize::from(path) % API.paths.len()];
    let mut url = format!("{path}?");
    for (key, value) in pairs.iter().take(16) {
        match names.get(usize::from(*key)) {
            Some(name) => url.push_str(&format!("{name}={}&", escaped(value))),
            None => url.push_str(&format!("{}&", escaped(value))),
        }
    }
    // What stands there unescaped, as far as it can in a URL at all.
    url.extend(raw.iter().filter(|b| b.is_ascii_graphic() && **b != b'#').map(|b| char::from(*b)));
    let Some((status, body)) = get(&API.runtime, &API.router, &url) else { return };
    assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR, "{url}");
    if status.is_client_error() && path.starts_with("/api/") {
        let error: serde_json::Value = serde_json::from_slice(&body).expect("an error is JSON");
        assert!(error["error"]["message"].is_string(), "{url}");
    }
});
