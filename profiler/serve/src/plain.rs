//! The routes that select nothing: health, metrics, status, and what is no route.
//!
//! In: the state. Out: short answers.

use super::ServeState;
use super::answer::{self, json};
use super::error::{ApiError, shown};
use super::health;
use super::params::Params;
use super::run::Size;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use emberscope_api::{Disk, Failing, Resolution, SetAside, Status, Store, route};
use emberscope_model::WallTime;
use emberscope_store::DiskUsage;
use emberscope_supervise::Health;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;

/// `/healthz`
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
        answer::metrics(text)
    };
    state.queries.run(Size::Sums, work).await
}

/// Answers `/api/v1/status`.
pub async fn status(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    if let Err(error) = Params::of_route(raw.as_deref(), &route::STATUS) {
        return error.into_response();
    }
    let work = Arc::clone(&state);
    state.queries.run(Size::Sums, move || Ok(json(HeaderMap::new(), &status_of(&work)))).await
}

/// What the daemon tells of itself, and around it what is known here. Ours wins where names meet.
fn status_of(state: &ServeState) -> Value {
    let daemon = match (state.status)() {
        Value::Object(map) => map,
        other => Map::from_iter([("daemon".to_owned(), other)]),
    };
    let usage = state.store.usage();
    let ready = (state.ready)();
    let store = Store {
        windows: usage.windows as u64,
        bytes: usage.bytes as u64,
        dropped_for_bytes: usage.dropped_for_bytes,
        dropped_for_age: usage.dropped_for_age,
        dropped_for_full: usage.dropped_for_full,
        spark_facts: usage.facts,
        spark_facts_refused: usage.facts_refused,
        window_seconds: state.store.window_length().as_secs_f64(),
        span: state.store.span().map(Into::into),
        disk: state.store.disk().map(|disk| disk_of(&disk)),
    };
    json!(Status {
        daemon,
        health: health::status(),
        version: state.version.clone(),
        node: state.node.clone(),
        time: WallTime::now().into(),
        ready: ready.is_ok(),
        waiting_for: ready.err(),
        store,
    })
}

fn disk_of(disk: &DiskUsage) -> Disk {
    let shown = |path: &Path| path.display().to_string();
    let aside = disk.set_aside_files.iter().map(|file| SetAside {
        path: shown(&file.path),
        now: file.now.as_deref().map(shown),
        says: file.says.clone(),
    });
    let resolutions = disk.resolutions.iter().map(|(length, blocks, until)| Resolution {
        window_s: length.as_secs_f64(),
        blocks: *blocks as u64,
        until: (*until).into(),
    });
    let failing =
        disk.failing.iter().map(|(what, says)| Failing { what: (*what).into(), says: says.clone() });
    Disk {
        blocks: disk.blocks as u64,
        resolutions: resolutions.collect(),
        bytes: disk.bytes,
        journal_bytes: disk.journal_bytes,
        pending_bytes: disk.pending_bytes,
        failing: failing.collect(),
        errors: disk.errors.iter().map(|(what, count)| ((*what).into(), *count)).collect(),
        unjournaled_windows: disk.unjournaled_windows,
        recovered_windows: disk.recovered_windows,
        cut_bytes: disk.cut_bytes,
        set_aside: disk.set_aside,
        set_aside_files: aside.collect(),
    }
}

/// Answers 404: there is no such route.
pub async fn unknown_route(uri: Uri) -> ApiError {
    let paths: Vec<String> = route::ROUTES.iter().map(|route| route.path.to_owned()).collect();
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
