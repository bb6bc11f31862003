//! `/api/v1/pauses`: when JVMs stood still, and what for.
//!
//! In: a selection of processes (labels of threads select nothing here: a pause is of a whole JVM) and `limit`. Out: the
//! longest pauses, by their begin, and the sums of all by JVM and cause.

use super::ServeState;
use super::answer::{head, headers, json, text, whole};
use super::figures::seconds;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use emberscope_api::route::{self, param};
use emberscope_api::{Pause, PauseCause, PausedJvm, Pauses};
use emberscope_model as model;
use emberscope_model::{LabelKey, LabelSet};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why an answer has no pause though there are windows.
const NOTHING: &str = "No pause of a JVM of this selection is kept in these windows; where a JVM's pauses cannot be seen, \
                       its `pauses_say` in /api/v1/status says why.";

/// Answers `/api/v1/pauses`.
pub async fn pauses(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    state
        .select(raw, &route::PAUSES, |store, params, query| {
            let limit = params.number_of(&route::PAUSES, param::LIMIT)?;
            let summary = store.summary(query)?;
            let kept = store.pauses(query.range, &query.selection)?;
            let mut head = head(&summary, store);
            if kept.pauses.is_empty() && summary.windows > 0 {
                head.note = Some(NOTHING.to_owned());
            }
            let content = content(kept, limit);
            Ok(json(headers(&summary, store), &Value::Object(whole(head, content))))
        })
        .await
}

fn content(kept: model::Pauses, limit: usize) -> Pauses {
    let mut sums: BTreeMap<(PausedJvm, Arc<str>), (u64, u64, u64)> = BTreeMap::new();
    for pause in &kept.pauses {
        let sum = sums.entry((jvm(&pause.labels), pause.cause.clone())).or_default();
        *sum = (sum.0 + 1, sum.1.saturating_add(pause.length_ns), sum.2.max(pause.length_ns));
    }
    let mut causes: Vec<_> = sums.into_iter().collect();
    causes.sort_by_key(|(_, (_, all, _))| Reverse(*all));
    let count = kept.pauses.len() as u64 + kept.left_out;
    let all = kept.pauses.iter().fold(0u64, |sum, pause| sum.saturating_add(pause.length_ns));
    let mut pauses = kept.pauses;
    if pauses.len() > limit {
        pauses.sort_by_key(|pause| Reverse(pause.length_ns));
        pauses.truncate(limit);
        pauses.sort_by_key(|pause| pause.began);
    }
    let cause =
        |((jvm, cause), (count, all, longest)): ((PausedJvm, Arc<str>), (u64, u64, u64))| PauseCause {
            jvm,
            cause: text(&cause),
            count,
            seconds: seconds(all),
            longest_seconds: seconds(longest),
        };
    let pause = |pause: model::Pause| Pause {
        jvm: jvm(&pause.labels),
        began: pause.began.into(),
        began_ns: pause.began.0,
        seconds: seconds(pause.length_ns),
        cause: text(&pause.cause),
    };
    Pauses {
        count,
        cut: count - pauses.len() as u64,
        seconds: seconds(all),
        causes: causes.into_iter().map(cause).collect(),
        pauses: pauses.into_iter().map(pause).collect(),
    }
}

fn jvm(labels: &LabelSet) -> PausedJvm {
    let of = |key| text(labels.get(key));
    PausedJvm {
        app: of(LabelKey::App),
        executor: of(LabelKey::Executor),
        role: of(LabelKey::Role),
        node: of(LabelKey::Node),
        pid: of(LabelKey::Pid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_model::{LabelSetBuilder, WallTime};

    #[test]
    fn the_longest_are_listed_and_all_are_summed_up() {
        let labels =
            Arc::new(LabelSetBuilder::new().set(LabelKey::App, "a").set(LabelKey::Executor, "1").build());
        let pause = |ms: u64, cause: &str| model::Pause {
            labels: labels.clone(),
            began: WallTime(ms * 1_000_000_000),
            length_ns: ms * 1_000_000,
            cause: cause.into(),
        };
        let pauses = vec![pause(3, "Full"), pause(1, ""), pause(2, "Full")];
        let answer = content(model::Pauses { pauses, left_out: 4 }, 2);
        assert_eq!((answer.count, answer.cut, answer.seconds), (7, 5, 0.006));
        let listed: Vec<f64> = answer.pauses.iter().map(|pause| pause.seconds).collect();
        assert_eq!(listed, [0.002, 0.003], "by their begin");
        let causes: Vec<_> =
            answer.causes.iter().map(|sum| (sum.cause.as_deref(), sum.count, sum.longest_seconds)).collect();
        assert_eq!(causes, [(Some("Full"), 2, 0.003), (None, 1, 0.001)]);
        assert_eq!(answer.causes[0].jvm.executor.as_deref(), Some("1"));
    }
}
