//! What the calls about samples have in common: type, selector and times, read, and what is found.
//!
//! In: a request's fields. Out: [`Asked`], which asks the store and puts the answer into the form that is
//! wanted. A call site keeps the stacks that begin with its functions; what it leaves out is in no sum.

use super::error::{CallError, Code};
use super::levels::flame_graph;
use super::matching::{matched, range};
use super::response::FlameGraph;
use super::select::StackTraceSelector;
use super::tree::tree_bytes;
use super::types::Type;
use emberscope_export::Shape;
use emberscope_export::pprof::{self, Profile};
use emberscope_model::{Answer, Detail, Query, TimeRange, Tree, grouped, implied};
use emberscope_store::Store;

/// Bars of a flame graph when the request does not say, as Pyroscope's default.
pub const DEFAULT_NODES: usize = 8192;
/// Most bars that may be asked for.
pub const MAX_NODES: usize = 1 << 20;
/// Most functions of a call site: stacks are at most so deep.
const MAX_SITE: usize = 1024;

/// A request's type, selector and times, read. Without a type or query it finds nothing.
pub struct Asked {
    /// The type; None: there is no such type.
    pub of: Option<&'static Type>,
    /// The question to the store; None: nothing can be found.
    pub query: Option<Query>,
    /// The time range as asked.
    pub range: TimeRange,
    /// In which the tree is wanted.
    shape: Shape,
}

impl Asked {
    /// Reads a request's type, selector and times.
    ///
    /// # Errors
    /// `invalid_argument`: the type's id or the selector makes no sense, or the times are missing or wrong.
    pub fn new(type_id: &str, selector: &str, start: i64, end: i64) -> Result<Self, CallError> {
        let of = Type::find(type_id)?;
        let range = range(start, end)?;
        let matched = matched(selector)?;
        let (mut selection, shape) = (matched.selection, matched.shape);
        let more = of.and_then(|of| implied(of.kind, &selection.matchers));
        selection.matchers.extend(more);
        let query = of.filter(|of| matched.types.contains(of)).map(|of| Query {
            range,
            group: grouped(of.kind, &selection.matchers, Vec::new()),
            selection,
            kind: of.kind,
            detail: Detail::default(),
        });
        Ok(Self { of, query, range, shape })
    }
    /// The merged stacks that begin with `site`, functions from the root.
    ///
    /// # Errors
    /// What the store fails with.
    pub fn merge(&self, store: &dyn Store, site: &[String]) -> Result<Option<Answer>, CallError> {
        let Some(query) = &self.query else { return Ok(None) };
        let mut answer = store.merge(query)?;
        keep_below(&mut answer.tree, site);
        answer.tree = self.shape.of(answer.tree);
        Ok(Some(answer))
    }
    /// The answer as bars.
    pub fn flame_graph(&self, found: Option<Answer>, nodes: usize) -> Option<FlameGraph> {
        let (of, answer) = (self.of?, found?);
        flame_graph(&answer.tree, of.unit, nodes)
    }
    /// The answer in Pyroscope's tree form; empty when there is no sample.
    pub fn tree(&self, found: Option<Answer>, nodes: usize) -> Vec<u8> {
        let (Some(of), Some(answer)) = (self.of, found) else { return Vec::new() };
        tree_bytes(&answer.tree, of.unit, nodes)
    }
    /// The answer as pprof; the default message when there is nothing.
    ///
    /// # Errors
    /// `resource_exhausted`: the stacks have more frames than a profile may.
    pub fn pprof(&self, found: Option<Answer>) -> Result<Profile, CallError> {
        match (self.of, found) {
            (Some(of), Some(answer)) => pprof::profile(&answer, &[of.unit])
                .map_err(|error| CallError::new(Code::ResourceExhausted, error.to_string())),
            _ => Ok(Profile::default()),
        }
    }
}

/// How many bars are wanted; [`DEFAULT_NODES`] unless the request says.
///
/// # Errors
/// `invalid_argument`: the number is below 0 or above [`MAX_NODES`].
pub fn max_nodes(asked: Option<i64>) -> Result<usize, CallError> {
    match usize::try_from(asked.unwrap_or(0)) {
        Ok(0) => Ok(DEFAULT_NODES),
        Ok(nodes) if nodes <= MAX_NODES => Ok(nodes),
        _ => Err(CallError::invalid(format!("max_nodes must be 0 to {MAX_NODES}"))),
    }
}

/// A request's call site; empty: every stack.
///
/// # Errors
/// `unimplemented`: Go's PGO form is asked for. `invalid_argument`: there are more than [`MAX_SITE`] functions.
pub fn call_site(selector: Option<StackTraceSelector>) -> Result<Vec<String>, CallError> {
    let Some(selector) = selector else { return Ok(Vec::new()) };
    if selector.go_pgo.is_some() {
        return Err(CallError::unimplemented("profiles for Go's PGO are not offered: ask without go_pgo"));
    }
    if selector.call_site.len() > MAX_SITE {
        return Err(CallError::invalid(format!("call_site has more than {MAX_SITE} functions")));
    }
    Ok(selector.call_site.into_iter().map(|location| location.name).collect())
}

/// Takes the values of stacks that do not begin with `site` out of the tree.
fn keep_below(tree: &mut Tree, site: &[String]) {
    if site.is_empty() {
        return;
    }
    // How many functions of the site a node's path has matched; None: it went another way.
    let mut matched: Vec<Option<usize>> = Vec::with_capacity(tree.nodes.len());
    let mut nodes = std::mem::take(&mut tree.nodes);
    for (index, node) in nodes.iter_mut().enumerate() {
        let before = if index == 0 { None } else { matched.get(node.parent as usize).copied().flatten() };
        let here = match before {
            _ if index == 0 => Some(0),
            Some(n) if n == site.len() => Some(n),
            Some(n) if site.get(n).is_some_and(|name| **name == *node.frame.name) => Some(n + 1),
            _ => None,
        };
        if here != Some(site.len()) {
            (node.self_count, node.self_weight) = (0, 0);
        }
        (node.total_count, node.total_weight) = (node.self_count, node.self_weight);
        matched.push(here);
    }
    *tree = Tree::with_totals(nodes);
}
