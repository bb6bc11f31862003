//! The HTTP server: questions in, answers from the store out.
//!
//! In: a [`ServeState`] (the store's door, the daemon's status, its metrics) and a [`ServeConfig`]. Out:
//! the routes of [`emberscope_api::route`], the page's files, and whatever router is merged in (Grafana's Pyroscope calls). Serving
//! never touches a target's /proc: names and labels came with the samples. Every request passes the
//! same gate ([`access`]), gets the same headers, is counted, and is bounded: body, connections
//! (`connection`), queries at once and their time (`run`). Every error is JSON (`error`).

pub mod access;
mod again;
mod answer;
mod app;
mod apps;
mod compare;
mod config;
mod connection;
mod crowd;
pub mod diff;
mod doors;
mod error;
mod figures;
mod flamegraph;
mod guard;
mod health;
mod inherited;
mod labels;
mod ledger;
mod login;
mod metrics;
mod openapi;
mod own;
mod page;
mod params;
mod pauses;
mod peer;
mod plain;
mod processes;
pub mod pyroscope;
mod request;
mod run;
mod runs;
mod secret;
pub mod selector;
mod series;
mod socket;
pub mod spark;
mod sql;
mod stages;
mod tax;
#[cfg(test)]
mod tests;
mod text;
pub mod time;
mod tls;
mod together;
mod top;
mod unread;
mod waits;
mod wall;
mod work;

pub use again::Files;
pub use answer::share_error;
pub use config::{Access, DEFAULT_SOCKET, ServeConfig, ServeError};
pub use connection::{Listener, serve, serve_all};
pub use doors::Doors;
pub use error::ApiError;
pub use metrics::{Archiving, Declared, Metrics, Pushing, Reading, raise_to};
pub use params::{Params, QueryStringError, nearest, pairs};
pub use request::Asked;
pub use run::{Queries, Rendered, Size};
pub use runs::{JOB_METRICS, Prices};
pub use tls::TlsFiles;

use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, middleware};
use emberscope_api::route::{self, Route};
use emberscope_model::{LabelKey, Query, SparkSource, WallTime};
use emberscope_store::{ByJob, ByOperator, Store};
use emberscope_supervise::faults;
use futures_util::FutureExt;
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use together::Key;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

/// Tells what `/api/v1/status` adds; an object. May take its time: it runs where blocking is allowed.
pub type StatusFn = Arc<dyn Fn() -> Value + Send + Sync>;
/// Whether sampling has begun; else a sentence that says what is being waited for. Must not block.
pub type ReadyFn = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// What the routes answer from.
#[derive(Clone)]
pub struct ServeState {
    /// The store that holds the windows.
    pub store: Arc<dyn Store>,
    /// Makes the daemon's own state, for `/api/v1/status`.
    pub status: StatusFn,
    /// All metrics, for `/metrics`.
    pub metrics: Arc<Metrics>,
    /// Tells whether sampling has begun, for `/readyz`.
    pub ready: ReadyFn,
    /// Host name of the node.
    pub node: String,
    /// The daemon's version, as `--version` prints it.
    pub version: String,
    /// The places for queries, and the limits on them.
    pub queries: Queries,
    /// Who asks Spark for its names and figures, where anybody does.
    pub spark: Option<Arc<dyn SparkSource>>,
    /// What hours of cores and memory cost.
    pub prices: Prices,
}

impl ServeState {
    /// Reads a selecting request, runs `work` where it may block, and sends its answer.
    async fn select<F>(&self, raw: Option<String>, route: &Route, work: F) -> Response
    where
        F: FnOnce(&dyn Store, &Params, &Query) -> Result<Rendered, ApiError> + Send + 'static,
    {
        let now = WallTime::now();
        let read = move |params: &Params| Asked::read(params, now);
        // Operators are told by trees.
        let of_operators = raw.as_ref().is_some_and(|raw| raw.contains(LabelKey::Operator.name()));
        let trees = [route::FLAMEGRAPH.path, route::SQL.path].contains(&route.path);
        let size = if trees || of_operators { Size::Tree } else { Size::Sums };
        self.ask(Params::of_route(raw.as_deref(), route), size, read, |store, params, asked| {
            work(store, params, &asked.query(store)?)
        })
        .await
    }

    /// Runs `read` and `work` where they may block, and sends the answer: compiling regular expressions takes a
    /// query's place, too.
    async fn ask<A, F>(
        &self,
        params: Result<Params, ApiError>,
        size: Size,
        read: impl FnOnce(&Params) -> Result<A, ApiError> + Send + 'static,
        work: F,
    ) -> Response
    where
        F: FnOnce(&dyn Store, &Params, &A) -> Result<Rendered, ApiError> + Send + 'static,
    {
        let params = match params {
            Ok(params) => params,
            Err(error) => return error.into_response(),
        };
        let store = Arc::clone(&self.store);
        let key = Key::of(&work, &params, WallTime::now().floor(store.window_length()));
        let spark = self.spark.clone();
        let work = move || {
            let by_operator = ByOperator::new(store.as_ref());
            work(&ByJob::new(&by_operator, spark.as_deref()), &params, &read(&params)?)
        };
        match key {
            Some(key) => self.queries.run_once(key, size, work).await,
            None => self.queries.run(size, work).await,
        }
    }
}

/// What is served where health alone is asked for: no page, no API. `/readyz` is open there, `/metrics` is not.
pub fn health_router(state: ServeState, access: Access) -> Router {
    let (state, access) = (Arc::new(state), Arc::new(access));
    Router::new()
        .route(route::METRICS.path, get(plain::metrics))
        .layer(from_fn_with_state(access, access::gate))
        .route(route::HEALTHZ.path, get(plain::healthz))
        .route(route::READYZ.path, get(plain::readyz))
        .with_state(Arc::clone(&state))
        .fallback(plain::unknown_route)
        .layer(middleware::map_response(async |r: Response| error::always_json(r)))
        .layer(from_fn(secure))
        .layer(from_fn_with_state(Arc::clone(&state.metrics), count))
}

/// All routes, behind the gate. `more` is merged in and stands behind it too.
pub fn router(state: ServeState, access: Access, more: Router) -> Router {
    let (state, access) = (Arc::new(state), Arc::new(access));
    let logins = Router::new()
        .route("/login", get(login::enter))
        .route(route::LOGIN.path, post(login::link))
        .with_state(Arc::clone(&access));
    let api = Router::new()
        .route(route::PAGE.path, get(page::index))
        .route("/ui/{*file}", get(page::file))
        .route(route::HEALTHZ.path, get(plain::healthz))
        .route(route::READYZ.path, get(plain::readyz))
        .route(route::METRICS.path, get(plain::metrics))
        .route(route::OPENAPI.path, get(openapi::openapi))
        .route(route::STATUS.path, get(plain::status))
        .route(route::APPS.path, get(apps::apps))
        .route(route::EXECUTORS.path, get(apps::executors))
        .route(route::STAGES.path, get(stages::stages))
        .route(route::TASKS.path, get(stages::tasks))
        .route(route::SQL.path, get(sql::sql))
        .route(route::LEDGER.path, get(ledger::ledger))
        .route(route::TAX.path, get(tax::tax))
        .route(route::DIFF.path, get(diff::diff))
        .route(route::LABELS.path, get(labels::names))
        .route(route::LABEL_VALUES.path, get(labels::values))
        .route(route::FLAMEGRAPH.path, get(flamegraph::flamegraph))
        .route(route::TOP.path, get(top::top))
        .route(route::PROCESSES.path, get(processes::processes))
        .route(route::SERIES.path, get(series::series))
        .route(route::PAUSES.path, get(pauses::pauses))
        .route(route::RUNS.path, get(runs::runs))
        .route(route::JOB_METRICS.path, get(runs::metrics))
        .route(route::COMPARE.path, get(compare::compare))
        .with_state(Arc::clone(&state));
    api.merge(logins)
        .merge(more)
        .fallback(plain::unknown_route)
        .method_not_allowed_fallback(plain::wrong_method)
        // 6 MB of a flame graph: 87 ms instead of 338, and 747 KB instead of 641.
        .layer(CompressionLayer::new().gzip(true).quality(CompressionLevel::Fastest))
        .layer(DefaultBodyLimit::max(access::MAX_BODY))
        .layer(from_fn_with_state(access, access::gate))
        .layer(middleware::map_response(async |r: Response| error::always_json(r)))
        .layer(from_fn(secure))
        .layer(from_fn_with_state(Arc::clone(&state.metrics), count))
}

/// Headers that every answer carries. A route that sets its own content policy or caching keeps it.
async fn secure(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let policy = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox");
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(policy);
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Counts answers by route (its pattern, never the path as asked) and code. A panic on the way to one is a 500.
async fn count(State(metrics): State<Arc<Metrics>>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let answered = AssertUnwindSafe(async {
        faults::point("http");
        next.run(request).await
    });
    let failed = |_| ApiError::internal("The request failed; the daemon's log says more.").into_response();
    let response = answered.catch_unwind().await.unwrap_or_else(failed);
    let route = route.as_ref().map_or("other", MatchedPath::as_str);
    metrics.http.requests.with_label_values(&[route, response.status().as_str()]).inc();
    response
}
