//! Bodies of Pyroscope's query API over Connect, protobuf and JSON, to every method: an answer always, never a 500.
#![cfg_attr(fuzzing, no_main)]

mod shared;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use emberscope_serve::pyroscope;
use libfuzzer_sys::fuzz_target;
use shared::{BLOCK, FILES, block_in, fixture, store_of};
use std::sync::{Arc, LazyLock};
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

const METHODS: [&str; 12] = [
    "querier.v1.QuerierService/ProfileTypes",
    "querier.v1.QuerierService/LabelNames",
    "querier.v1.QuerierService/LabelValues",
    "querier.v1.QuerierService/Series",
    "querier.v1.QuerierService/GetProfileStats",
    "querier.v1.QuerierService/SelectMergeStacktraces",
    "querier.v1.QuerierService/SelectMergeSpanProfile",
    "querier.v1.QuerierService/SelectMergeProfile",
    "querier.v1.QuerierService/Diff",
    "querier.v1.QuerierService/SelectSeries",
    "querier.v1.QuerierService/AnalyzeQuery",
    "settings.v1.SettingsService/Get",
];

static ROUTER: LazyLock<(Runtime, Router)> = LazyLock::new(|| {
    let block = fixture().join("blocks").join(BLOCK);
    let volume = block_in(&block, FILES["manifest.json"].clone()).expect("the fixture's block");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    (runtime, pyroscope::router(Arc::new(store_of(volume)), None))
});

fuzz_target!(|input: (u8, bool, &[u8])| {
    let (method, json, body) = input;
    let (runtime, router) = &*ROUTER;
    let method = METHODS[usize::from(method) % METHODS.len()];
    let kind = if json { "application/json" } else { "application/proto" };
    let request = Request::post(format!("/{method}")).header("content-type", kind);
    let request = request.header("connect-protocol-version", "1").body(Body::from(body.to_vec()));
    let answered = runtime.block_on(router.clone().oneshot(request.expect("a request")));
    let Ok(response) = answered;
    assert_ne!(response.status(), StatusCode::INTERNAL_SERVER_ERROR, "{method}");
});
