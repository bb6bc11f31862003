//! The routes that select nothing: health, metrics, status, and what is no route.
//!
//! In: the state. Out: short answers.

use super::ServeState;
use super::answer::{instant, json};
use super::error::{ApiError, shown};
use super::health;
use super::params::Params;
use super::run::Rendered;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use emberscope_model::WallTime;
use emberscope_store::DiskUsage;
use emberscope_supervise::Health;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Every route, with a sentence each.
pub const ROUTES: &[(&str, &str)] = &[
    ("/", "The page: flame graphs, tables and timelines in a browser."),
    ("/healthz", "200 while sampling goes on, or nothing is to be sampled; else 503 and what does not."),
    ("/readyz", "200 once sampling has begun, while it goes on."),
    ("/metrics", "Prometheus metrics."),
    ("/api/v1/openapi.json", "This API as an OpenAPI document."),
    ("/api/v1/status", "Version, host, JVMs and counters."),
    ("/api/v1/apps", "Spark applications."),
    ("/api/v1/executors", "Their executors."),
    ("/api/v1/stages", "Stages: CPU, waiting and what else they used, exactly and by samples."),
    ("/api/v1/tasks", "The same of each task."),
    ("/api/v1/ledger", "Exact sums by any labels."),
    ("/api/v1/tax", "CPU of JVMs by thread class."),
    ("/api/v1/diff", "Two selections compared, or slow tasks with usual ones."),
    ("/api/v1/labels", "Names to select by."),
    ("/api/v1/labels/{name}/values", "Values of one name."),
    ("/api/v1/flamegraph", "Merged stacks: format=svg, folded or json."),
    ("/api/v1/top", "Methods by self and total."),
    ("/api/v1/processes", "Who ran on the node."),
    ("/api/v1/series", "A selection over time."),
];

/// Answers `/healthz`.
pub async fn healthz() -> Response {
    healthy(&emberscope_supervise::health())
}

fn healthy(health: &Health) -> Response {
    match health.check() {
        Ok(()) => "ok\n".into_response(),
        Err(reason) => ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "unhealthy", reason).into_response(),
    }
}

/// Answers `/readyz`.
pub async fn readyz(State(state): State<Arc<ServeState>>) -> Response {
    match (state.ready)().and_then(|()| emberscope_supervise::health().check()) {
        Ok(()) => "ready\n".into_response(),
        Err(reason) => ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", reason).into_response(),
    }
}

/// Answers `/metrics`.
pub async fn metrics(State(state): State<Arc<ServeState>>) -> Response {
    let work = Arc::clone(&state);
    let work = move || {
        let text = work.metrics.text(&work.store.usage(), work.store.disk().as_ref(), (work.ready)().is_ok());
        let text = text.map_err(|e| ApiError::internal(format!("The metrics cannot be written: {e}")))?;
        let mut headers = HeaderMap::new();
        let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        headers.insert(header::CONTENT_TYPE, kind);
        Ok(Rendered { headers, body: text.into() })
    };
    state.queries.run(work).await
}

/// Answers `/api/v1/status`.
pub async fn status(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    if let Err(error) = Params::of(raw.as_deref(), &[]) {
        return error.into_response();
    }
    let work = Arc::clone(&state);
    state.queries.run(move || Ok(json(HeaderMap::new(), &status_of(&work)))).await
}

/// What the daemon tells of itself, and around it what is known here. Ours wins where names meet.
fn status_of(state: &ServeState) -> Value {
    let mut out = match (state.status)() {
        Value::Object(map) => map,
        other => Map::from_iter([("daemon".to_owned(), other)]),
    };
    let usage = state.store.usage();
    let span = state.store.span().map(|s| json!({ "from": instant(s.from), "until": instant(s.until) }));
    let ready = (state.ready)();
    out.insert("health".into(), health::status());
    out.insert("version".into(), state.version.as_str().into());
    out.insert("node".into(), state.node.as_str().into());
    out.insert("time".into(), instant(WallTime::now()));
    out.insert("ready".into(), ready.is_ok().into());
    out.insert("waiting_for".into(), ready.err().map_or(Value::Null, Value::from));
    out.insert(
        "store".into(),
        json!({
            "windows": usage.windows,
            "bytes": usage.bytes,
            "dropped_for_bytes": usage.dropped_for_bytes,
            "dropped_for_age": usage.dropped_for_age,
            "dropped_for_full": usage.dropped_for_full,
            "window_seconds": state.store.window_length().as_secs_f64(),
            "span": span,
            "disk": state.store.disk().map(|disk| disk_of(&disk)),
        }),
    );
    Value::Object(out)
}

fn disk_of(disk: &DiskUsage) -> Value {
    let shown = |path: &std::path::Path| path.display().to_string();
    let counts = |list: &[(&'static str, u64)]| -> Map<String, Value> {
        list.iter().map(|(what, count)| ((*what).to_owned(), (*count).into())).collect()
    };
    let aside = disk.set_aside_files.iter().map(
        |file| json!({ "path": shown(&file.path), "now": file.now.as_deref().map(shown), "says": file.says }),
    );
    let resolutions = disk.resolutions.iter().map(|(length, blocks, until)| {
        json!({ "window_s": length.as_secs_f64(), "blocks": blocks, "until": until.to_string() })
    });
    let failing = disk.failing.iter().map(|(what, says)| json!({ "what": what, "says": says }));
    json!({
        "blocks": disk.blocks,
        "resolutions": resolutions.collect::<Vec<_>>(),
        "bytes": disk.bytes,
        "journal_bytes": disk.journal_bytes,
        "pending_bytes": disk.pending_bytes,
        "failing": failing.collect::<Vec<_>>(),
        "errors": counts(&disk.errors),
        "unjournaled_windows": disk.unjournaled_windows,
        "recovered_windows": disk.recovered_windows,
        "cut_bytes": disk.cut_bytes,
        "set_aside": disk.set_aside,
        "set_aside_files": aside.collect::<Vec<_>>(),
    })
}

/// Answers 404: there is no such route.
pub async fn unknown_route(uri: Uri) -> ApiError {
    let paths: Vec<String> = ROUTES.iter().map(|(path, _)| (*path).to_owned()).collect();
    let message = format!("There is no route {}; there are: {}.", shown(uri.path()), paths.join(", "));
    ApiError::new(StatusCode::NOT_FOUND, "unknown_route", message).with_choices(paths)
}

/// Answers 405: the route has not this method.
pub async fn wrong_method(method: Method) -> ApiError {
    let message = format!("{} does not work on this route: use GET.", shown(method.as_str()));
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_supervise::{ThreadState, Weight};
    use std::time::Duration;

    #[tokio::test]
    async fn a_sampler_that_is_stuck_is_not_healthy_and_any_other_thread_is() {
        let health = |weight| {
            let (busy_for, limit) = (Some(Duration::from_secs(16)), Duration::from_secs(15));
            Health {
                threads: vec![ThreadState { thread: "t", busy_for, limit, weight }],
                ..Health::default()
            }
        };
        assert_eq!(healthy(&health(Weight::Degraded)).status(), StatusCode::OK);
        let stuck = healthy(&health(Weight::Vital));
        assert_eq!(stuck.status(), StatusCode::SERVICE_UNAVAILABLE);
        let body = axum::body::to_bytes(stuck.into_body(), 1 << 16).await.unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert!(body.contains("the thread t has been stuck for 16 s"), "{body}");
    }
}
