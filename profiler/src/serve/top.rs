//! `/api/v1/top`: methods by the time in them and below them.
//!
//! In: the merged tree. Out: rows by name and module. A method that calls itself counts once for each
//! stack, at its outermost frame, so no total exceeds the whole. Prefix frames do not occur here: `group`
//! is not a parameter. Limits: `limit` rows; the answer says how many there are.

use super::ServeState;
use super::answer::{amount, head, headers, json, share, share_error, summary_of};
use crate::model::{Answer, SampleKind, Tree};
use axum::extract::{RawQuery, State};
use axum::response::Response;
use serde_json::{Map, Value};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Rows unless told.
const DEFAULT_LIMIT: usize = 50;
/// Most rows.
const MAX_LIMIT: usize = 100_000;

/// Samples and weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Samples.
    pub count: u64,
    /// Their weight.
    pub weight: u64,
}

/// One method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method<'a> {
    /// Its name.
    pub name: &'a str,
    /// Library, executable or kernel module.
    pub module: &'a str,
    /// Kinds of code it ran as.
    pub kinds: BTreeSet<&'static str>,
    /// Samples that ended in it.
    pub own: Cost,
    /// Samples that ended in it or below.
    pub total: Cost,
}

/// Sums a tree by method, in order of first occurrence.
pub fn methods(tree: &Tree) -> Vec<Method<'_>> {
    let mut index: HashMap<(&str, &str), usize> = HashMap::new();
    let mut out: Vec<Method<'_>> = Vec::new();
    // Method of each node; none of the root.
    let mut of_node: Vec<Option<usize>> = Vec::with_capacity(tree.nodes.len());
    for (at, node) in tree.nodes.iter().enumerate() {
        if at == 0 {
            of_node.push(None);
            continue;
        }
        let (name, module) = (node.frame.name.as_ref(), node.frame.module.as_ref());
        let method = *index.entry((name, module)).or_insert_with(|| {
            out.push(Method {
                name,
                module,
                kinds: BTreeSet::new(),
                own: Cost::default(),
                total: Cost::default(),
            });
            out.len() - 1
        });
        let outermost = !has_caller(tree, &of_node, at, method);
        of_node.push(Some(method));
        if let Some(row) = out.get_mut(method) {
            row.kinds.insert(node.frame.kind.slug());
            row.own.count = row.own.count.saturating_add(node.self_count);
            row.own.weight = row.own.weight.saturating_add(node.self_weight);
            if outermost {
                row.total.count = row.total.count.saturating_add(node.total_count);
                row.total.weight = row.total.weight.saturating_add(node.total_weight);
            }
        }
    }
    out
}

/// Whether the method stands above this node. Parents stand before their children in the tree.
fn has_caller(tree: &Tree, of_node: &[Option<usize>], at: usize, method: usize) -> bool {
    let mut at = at;
    loop {
        let Some(parent) = tree.nodes.get(at).map(|n| n.parent as usize).filter(|p| *p < at) else {
            return false;
        };
        if of_node.get(parent).copied().flatten() == Some(method) {
            return true;
        }
        at = parent;
    }
}

/// `/api/v1/top`
pub async fn top(State(state): State<Arc<ServeState>>, RawQuery(raw): RawQuery) -> Response {
    state
        .select(raw, &["limit", "sort"], |store, params, query| {
            let by_total = params.choice("sort", &[("self", false), ("total", true)], false)?;
            let limit = params.number("limit", 1, MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT);
            let answer = store.merge(query)?;
            let mut methods = methods(&answer.tree);
            methods.sort_by_key(|m| {
                let keys =
                    if by_total { (m.total.weight, m.own.weight) } else { (m.own.weight, m.total.weight) };
                (Reverse(keys), m.name, m.module)
            });
            let count = methods.len();
            methods.truncate(limit);
            let rows = methods.iter().map(|method| row(method, &answer, query.kind));
            let summary = summary_of(&answer);
            let mut out = head(&summary, store);
            out.insert("sort".into(), if by_total { "total" } else { "self" }.into());
            out.insert("methods".into(), count.into());
            out.insert("top".into(), rows.collect());
            Ok(json(headers(&summary, store), &Value::Object(out)))
        })
        .await
}

fn row(method: &Method<'_>, answer: &Answer, kind: SampleKind) -> Value {
    let samples = answer.quality.samples;
    let cost = |cost: Cost| {
        let mut out = amount(kind, cost.count, cost.weight);
        let share = share(cost.count, samples);
        out.insert("share".into(), serde_json::json!(share));
        out.insert("share_error".into(), serde_json::json!(share_error(cost.count, samples)));
        Value::Object(out)
    };
    let mut row = Map::new();
    row.insert("name".into(), method.name.into());
    row.insert("module".into(), method.module.into());
    row.insert("kinds".into(), method.kinds.iter().copied().collect());
    row.insert("self".into(), cost(method.own));
    row.insert("total".into(), cost(method.total));
    Value::Object(row)
}
