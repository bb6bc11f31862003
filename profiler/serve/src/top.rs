//! `/api/v1/top`: methods by the time in them and below them.
//!
//! In: [`emberscope_store::Store::methods`]. Out: JSON, the rows sorted as [`emberscope_export::sort`] does. Limits:
//! `limit` rows; the answer says how many there are.

use super::ServeState;
use super::answer::{share, share_error, table};
use axum::extract::{RawQuery, State};
use axum::response::Response;
use emberscope_api::route::{self, param};
use emberscope_api::{Amount, Cost, Method, MethodOrder, Top, Word as _};
use emberscope_export::{Method as Row, sort};
use emberscope_model::{MethodAnswer, SampleKind, Summary};
use std::sync::Arc;

/// `/api/v1/top`
pub async fn top(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    state
        .select(raw, &route::TOP, |store, params, query| {
            let order = params.word(param::SORT, MethodOrder::Own)?;
            let limit = params.number_of(&route::TOP, param::LIMIT)?;
            let MethodAnswer { methods, range, windows, quality } = store.methods(query)?;
            let summary = Summary { range, windows, quality };
            let mut methods: Vec<Row<'_>> = methods.iter().map(Row::of).collect();
            sort(&mut methods, order == MethodOrder::Total);
            let count = methods.len();
            methods.truncate(limit);
            let rows = methods.iter().map(|method| row(method, summary.quality.samples, query.kind));
            let content = Top { sort: order.word().into(), methods: count as u64, top: rows.collect() };
            Ok(table(&summary, store, content))
        })
        .await
}

fn row<'a>(method: &Row<'a>, samples: u64, kind: SampleKind) -> Method<'a> {
    let cost = |cost: emberscope_export::Cost| Cost {
        amount: Amount::new(kind, cost.count, cost.weight),
        share: share(cost.count, samples),
        share_error: share_error(cost.count, samples),
    };
    Method {
        name: method.name.into(),
        module: method.module.into(),
        kinds: method.kinds.iter().map(|kind| (*kind).into()).collect(),
        own: cost(method.own),
        total: cost(method.total),
    }
}
