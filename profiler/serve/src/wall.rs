//! What a picture of wall time has besides stacks.
//!
//! In: a query for [`SampleKind::Wall`] and the tree of its samples: time on a CPU, and waits of threads that run a
//! task. Out: the same tree, with the time in which the selected threads waited for a CPU or their cgroup was
//! throttled, and with the part of their tasks' blocked time of which no wait was seen, each as a frame of its own
//! ([`RUN_DELAY`], [`THROTTLED`], [`UNSEEN`]). All are of the ledger, so that a task's wall time is whole. Where
//! reasons of waits are chosen there is nothing to add. Where the tree is grouped by them, time on a CPU is
//! [`ON_CPU`].

use super::error::ApiError;
use emberscope_model::{
    Frame, FrameKind, LabelKey, LedgerTotal, MatchOp, Matcher, Node, NodeId, Query, SampleKind, Selection,
    ThreadClass, Tree,
};
use emberscope_store::{NO_VALUE, Store};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Time in which threads wanted to run and other threads ran.
pub const RUN_DELAY: &str = "[waits for a CPU]";
/// Time in which tasks' threads wanted to run and their cgroup had used up its quota of CPU time.
pub const THROTTLED: &str = "[throttled by a CPU quota]";
/// What stands for a reason of time on a CPU.
pub const ON_CPU: &str = "(on cpu)";
/// Time in which tasks' threads were blocked, and no wait was seen: waits are not sampled, or their records were lost.
pub const UNSEEN: &str = "[unknown: wait not sampled]";

/// Adds the frames of what has no stack, and names the time on a CPU.
///
/// # Errors
/// What the store fails with.
pub fn complete(store: &dyn Store, query: &Query, tree: &mut Tree) -> Result<(), ApiError> {
    let chosen = |m: &Matcher| m.key == LabelKey::Wait && !m.accepts("");
    if query.selection.matchers.iter().any(chosen) {
        return Ok(());
    }
    let by: Vec<LabelKey> = query.group.iter().copied().filter(|key| *key != LabelKey::Wait).collect();
    let frame = |kind, name| Arc::new(Frame::new(kind, name, ""));
    name_time_on_cpu(tree);
    let mut tree = Growing::new(tree);
    let (delay, unseen) = (frame(FrameKind::Label, RUN_DELAY), frame(FrameKind::Unknown, UNSEEN));
    let throttling = frame(FrameKind::Label, THROTTLED);
    for line in store.ledger(query.range, &of_threads(query), &by)? {
        let (queued, throttled) = line.sums.queued_and_throttled_ns();
        tree.add(&query.group, &values(&line), "cpu", &delay, queued);
        tree.add(&query.group, &values(&line), "throttled", &throttling, throttled);
    }
    let waited = waited(store, query, &by)?;
    for line in store.ledger(query.range, &of_tasks(query), &by)? {
        let values = values(&line);
        let seen = waited.get(&values).copied().unwrap_or_default();
        let missed = line.sums.blocked_ns().saturating_sub(seen);
        tree.add(&query.group, &values, NO_VALUE, &unseen, missed);
    }
    Ok(())
}

/// Of the samples only those of CPU time have no reason.
fn name_time_on_cpu(tree: &mut Tree) {
    let none = format!("{}={NO_VALUE}", LabelKey::Wait);
    let on_cpu = Arc::new(Frame::new(FrameKind::Label, format!("{}={ON_CPU}", LabelKey::Wait), ""));
    let is_none = |node: &&mut Node| node.frame.kind == FrameKind::Label && *node.frame.name == *none;
    tree.nodes.iter_mut().filter(is_none).for_each(|node| node.frame = on_cpu.clone());
}

/// The selection, whatever threads wait for: the ledger does not say.
fn of_threads(query: &Query) -> Selection {
    let others = query.selection.matchers.iter().filter(|m| m.key != LabelKey::Wait);
    Selection { matchers: others.cloned().collect() }
}

/// Of that selection, threads while they run a task.
fn of_tasks(query: &Query) -> Selection {
    let mut selection = of_threads(query);
    let task = vec![ThreadClass::Task.slug().to_owned()];
    selection.matchers.push(Matcher { key: LabelKey::ThreadClass, op: MatchOp::In(task) });
    selection.matchers.push(Matcher { key: LabelKey::Task, op: MatchOp::NotIn(vec![String::new()]) });
    selection
}

/// Nanoseconds of the waits that were seen of tasks, by these labels' values.
fn waited(
    store: &dyn Store,
    query: &Query,
    by: &[LabelKey],
) -> Result<BTreeMap<Vec<Arc<str>>, u64>, ApiError> {
    let waits = Query { kind: SampleKind::OffCpu, selection: of_tasks(query), ..query.clone() };
    // As few points as can be: their sum is wanted.
    let step = query.range.duration().max(store.window_length());
    let series = store.series(&waits, step, by)?.into_iter().map(|(labels, points)| {
        let sum = points.iter().fold(0u64, |sum, point| sum.saturating_add(point.weight));
        (labels.into_iter().map(|(_, value)| value).collect(), sum)
    });
    Ok(series.collect())
}

fn values(line: &LedgerTotal) -> Vec<Arc<str>> {
    line.labels.iter().map(|(_, value)| value.clone()).collect()
}

/// A tree that gets more nodes.
struct Growing<'t> {
    tree: &'t mut Tree,
    /// The nodes that are no code, by their parent and frame.
    labels: HashMap<(NodeId, Arc<Frame>), NodeId>,
}

impl<'t> Growing<'t> {
    fn new(tree: &'t mut Tree) -> Self {
        let nodes = tree.nodes.iter().enumerate().skip(1);
        let labels = nodes.filter(|(_, node)| node.frame.kind == FrameKind::Label);
        let labels = labels.map(|(at, node)| ((node.parent, node.frame.clone()), at as NodeId)).collect();
        Self { tree, labels }
    }

    /// Adds a frame of this weight below a group, and the weight to all above it. `wait` is what stands for a reason.
    fn add(&mut self, group: &[LabelKey], values: &[Arc<str>], wait: &str, frame: &Arc<Frame>, weight: u64) {
        if weight == 0 {
            return;
        }
        let mut values = values.iter().map(AsRef::as_ref);
        let mut at = 0;
        for key in group {
            let value = if *key == LabelKey::Wait { Some(wait) } else { values.next() };
            let value = value.filter(|value| !value.is_empty()).unwrap_or(NO_VALUE);
            at = self.child(at, Arc::new(Frame::new(FrameKind::Label, format!("{key}={value}"), "")));
        }
        at = self.child(at, frame.clone());
        if let Some(node) = self.tree.nodes.get_mut(at as usize) {
            node.self_weight = node.self_weight.saturating_add(weight);
        }
        while let Some(node) = self.tree.nodes.get_mut(at as usize) {
            node.total_weight = node.total_weight.saturating_add(weight);
            if at == 0 {
                break;
            }
            at = node.parent;
        }
    }

    /// The node of a frame below another, made if need be.
    fn child(&mut self, parent: NodeId, frame: Arc<Frame>) -> NodeId {
        let nodes = &mut self.tree.nodes;
        *self.labels.entry((parent, frame.clone())).or_insert_with(|| {
            nodes.push(Node::below(parent, frame));
            (nodes.len() - 1) as NodeId
        })
    }
}
