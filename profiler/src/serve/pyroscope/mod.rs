//! Pyroscope's query API (querier.v1.QuerierService over Connect), which Grafana's bundled data source
//! grafana-pyroscope-datasource speaks.
//!
//! In: `POST .../querier.v1.QuerierService/<Method>` in protobuf or JSON. Out: the store's windows as
//! profile types, labels, flame graphs, pprof and time series. The router can be nested below any
//! path; a tenant header (X-Scope-OrgID) is accepted and changes nothing, a node has one tenant.
//! Who may ask is decided before the router. Written against Pyroscope's protos of
//! github.com/grafana/pyroscope/api v1.6.0, by hand: the messages are few and no protoc is needed.
//!
//! Not offered: SelectHeatmap, Diff, AnalyzeQuery (`unimplemented`), pushing, settings.

mod connect;
mod error;
mod json;
mod labels;
mod levels;
mod matching;
mod pprof;
mod profile;
mod profiles;
mod request;
mod response;
mod select;
pub mod types;

use crate::store::Store;
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::routing::post;
use error::CallError;
use std::sync::Arc;

/// The service's methods, answered from `store`.
pub fn router(store: Arc<dyn Store>) -> Router {
    Router::new().route("/querier.v1.QuerierService/{method}", post(querier)).with_state(store)
}

async fn querier(
    State(store): State<Arc<dyn Store>>,
    Path(method): Path<String>,
    request: Request,
) -> Response {
    match method.as_str() {
        "ProfileTypes" => connect::unary(request, move |r| labels::profile_types(&*store, r)).await,
        "LabelNames" => connect::unary(request, move |r| labels::label_names(&*store, r)).await,
        "LabelValues" => connect::unary(request, move |r| labels::label_values(&*store, r)).await,
        "Series" => connect::unary(request, move |r| labels::series(&*store, r)).await,
        "GetProfileStats" => connect::unary(request, move |r| labels::stats(&*store, r)).await,
        "SelectMergeStacktraces" => {
            connect::sampled(request, move |r| profiles::stacktraces(&*store, r)).await
        }
        "SelectMergeSpanProfile" => connect::sampled(request, move |r| profiles::spans(&*store, r)).await,
        "SelectMergeProfile" => connect::sampled(request, move |r| profiles::profile(&*store, r)).await,
        "SelectSeries" => connect::sampled(request, move |r| profiles::series(&*store, r)).await,
        _ => {
            let error = CallError::unimplemented(format!("{method:?} is not offered by this QuerierService"));
            connect::refuse(request, error).await
        }
    }
}
