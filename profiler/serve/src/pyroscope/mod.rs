//! Pyroscope's query API (querier.v1.QuerierService over Connect), which Grafana's bundled data source
//! grafana-pyroscope-datasource speaks.
//!
//! In: `POST .../querier.v1.QuerierService/<Method>` in protobuf or JSON. Out: the store's windows as
//! profile types, labels, flame graphs, comparisons, pprof and time series. Beside it what Grafana's app for
//! profiles asks: `GET .../pyroscope/render-diff`, and settings.v1.SettingsService/Get, of which there are
//! none. The router can be nested below any path; a tenant header (X-Scope-OrgID) is accepted and changes
//! nothing, a node has one tenant. Who may ask is decided before the router. Written against Pyroscope's
//! protos of github.com/grafana/pyroscope/api v1.6.0, by hand: the messages are few and no protoc is needed.
//!
//! Not offered: SelectHeatmap, AnalyzeQuery, keeping settings (`unimplemented`), pushing.

mod asked;
mod comparing;
mod connect;
mod error;
mod json;
mod labels;
mod levels;
mod matching;
mod profiles;
mod request;
mod response;
mod select;
mod tree;
pub mod types;

use axum::Router;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use emberscope_model::{SparkSource, WallTime};
use emberscope_store::{ByJob, ByOperator, Store};
use error::CallError;
pub(super) use error::refused;
use request::GetSettingsRequest;
use response::GetSettingsResponse;
use std::sync::Arc;

/// What is asked.
#[derive(Clone)]
struct Sources {
    store: Arc<dyn Store>,
    /// Who asks Spark, where anybody does.
    spark: Option<Arc<dyn SparkSource>>,
}

impl Sources {
    /// The store, to be asked for what no set of labels has, too.
    fn asked<R>(&self, work: impl FnOnce(&dyn Store) -> R) -> R {
        work(&ByJob::new(&ByOperator::new(&*self.store), self.spark.as_deref()))
    }
}

/// The service's methods, answered from `store`; `spark` is who asks Spark, where anybody does.
pub fn router(store: Arc<dyn Store>, spark: Option<Arc<dyn SparkSource>>) -> Router {
    Router::new()
        .route("/querier.v1.QuerierService/{method}", post(querier))
        .route("/settings.v1.SettingsService/{method}", post(settings))
        .route("/pyroscope/render-diff", get(render_diff))
        .with_state(Sources { store, spark })
}

/// `GET /pyroscope/render-diff`, an older call than Connect's: its errors are Connect's all the same.
async fn render_diff(State(sources): State<Sources>, RawQuery(raw): RawQuery) -> Response {
    let now = WallTime::now();
    // Its selectors are compiled in the call's turn.
    let work = move || {
        let diff = comparing::RenderDiff::read(raw.as_deref().unwrap_or_default(), now)?;
        sources.asked(|store| diff.answer(store))
    };
    connect::plain_json(work).await
}

async fn settings(Path(method): Path<String>, request: Request) -> Response {
    match method.as_str() {
        "Get" => connect::unary(request, |_: GetSettingsRequest| Ok(GetSettingsResponse {})).await,
        _ => connect::refuse(request, CallError::unimplemented("settings are not kept here")).await,
    }
}

async fn querier(State(sources): State<Sources>, Path(method): Path<String>, request: Request) -> Response {
    match method.as_str() {
        "ProfileTypes" => {
            connect::unary(request, move |r| sources.asked(|store| labels::profile_types(store, r))).await
        }
        "LabelNames" => {
            connect::unary(request, move |r| sources.asked(|store| labels::label_names(store, r))).await
        }
        "LabelValues" => {
            connect::unary(request, move |r| sources.asked(|store| labels::label_values(store, r))).await
        }
        "Series" => connect::unary(request, move |r| sources.asked(|store| labels::series(store, r))).await,
        "GetProfileStats" => {
            connect::unary(request, move |r| sources.asked(|store| labels::stats(store, r))).await
        }
        "SelectMergeStacktraces" => {
            connect::sampled(request, move |r| sources.asked(|store| profiles::stacktraces(store, r))).await
        }
        "SelectMergeSpanProfile" => {
            connect::sampled(request, move |r| sources.asked(|store| profiles::spans(store, r))).await
        }
        "SelectMergeProfile" => {
            connect::sampled(request, move |r| sources.asked(|store| profiles::profile(store, r))).await
        }
        "Diff" => connect::sampled(request, move |r| sources.asked(|store| comparing::diff(store, r))).await,
        "SelectSeries" => {
            connect::sampled(request, move |r| sources.asked(|store| profiles::series(store, r))).await
        }
        _ => {
            let error = CallError::unimplemented(format!("{method:?} is not offered by this QuerierService"));
            connect::refuse(request, error).await
        }
    }
}
