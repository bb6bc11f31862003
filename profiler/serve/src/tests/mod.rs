//! The server against a small store in memory, through its whole router.

mod answers;
mod compare;
mod diff;
mod fake;
mod gate;
mod job_runs;
mod jobs;
mod kinds;
mod limits;
mod login;
mod openapi;
mod refusals;
mod runs;
mod slow;
mod spark;
mod sql;
mod tasks;
mod tax;
mod tls;

use super::{Access, Metrics, Queries, ServeState, router};
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, header};
use emberscope_store::Store;
use fake::{FakeStore, START, three_windows};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceExt;

/// An answer, read.
#[derive(Debug)]
pub struct Got {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Got {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
    fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), "application/json", "{}", self.text());
        serde_json::from_slice(&self.body).unwrap()
    }
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", self.headers)).to_str().unwrap()
    }
    /// Checks status, code and parameter; gives the message.
    fn refused(&self, status: u16, code: &str, parameter: Option<&str>) -> String {
        let error = &self.json()["error"];
        assert_eq!(self.status, status, "{error}");
        assert_eq!(error["code"], code, "{error}");
        assert_eq!(error["parameter"], json!(parameter), "{error}");
        error["message"].as_str().unwrap().to_owned()
    }
}

/// Seconds with two decimals: weights of waits are stored to three digits.
fn hundredths(seconds: &Value) -> Value {
    seconds.as_f64().map_or(Value::Null, |seconds| json!((seconds * 100.0).round() / 100.0))
}

fn state(store: impl Store + 'static) -> ServeState {
    ServeState {
        store: Arc::new(store),
        status: Arc::new(|| json!({ "jvms": 2, "version": "not this" })),
        metrics: Arc::new(Metrics::new("1.2.3").unwrap()),
        ready: Arc::new(|| Ok(())),
        node: "n<1>".into(),
        version: "1.2.3".into(),
        queries: Queries::default(),
        spark: None,
        prices: Default::default(),
    }
}

fn app() -> Router {
    router(state(three_windows()), Access::LocalHostOnly, Router::new())
}

async fn send(app: Router, request: Request<Body>) -> Got {
    let response = app.oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap().to_vec();
    Got { status: parts.status, headers: parts.headers, body }
}

fn request(method: &str, uri: &str) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri(uri)
        .header(header::HOST, "localhost:4099")
        .body(Body::empty())
        .unwrap()
}

async fn get(uri: &str) -> Got {
    send(app(), request("GET", uri)).await
}

/// A path with the range of the three windows.
async fn get_all(path_and_query: &str) -> Got {
    let sign = if path_and_query.contains('?') { '&' } else { '?' };
    get(&format!("{path_and_query}{sign}from={START}&until={}", START + 30)).await
}

/// An app's answer over the three windows.
fn within(from: u64, until: u64) -> String {
    format!("from={}&until={}", START + from, START + until)
}

const SECOND: Duration = Duration::from_secs(1);
