//! The processes of a selection, and what each of their classes used.
//!
//! In: the ledger's lines, sums of samples and process records of a query. Out: JVMs with their parts, and
//! what runs beside them. A process is a JVM when the ledger knows it, when its record says so, or when
//! its samples carry a class, but for PySpark's Python, which has both and is none. For a JVM without a ledger the
//! merged stacks say which samples hit the kernel. Limits: the store's.

use super::part::{Part, Sampled, Source};
use crate::answer::text;
use crate::error::ApiError;
use crate::figures::seconds;
use crate::work::{Class, class_at, class_of, place};
use emberscope_api::{Beside, PartOf, Who};
use emberscope_model::{
    FrameKind, LabelKey, LedgerSums, MatchOp, Matcher, Query, Role, Tree, sampling_error,
};
use emberscope_store::Store;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What tells processes apart, in the order of [`KEYS`].
type Key = [Arc<str>; KEYS.len()];

const KEYS: [LabelKey; 5] =
    [LabelKey::Node, LabelKey::App, LabelKey::Role, LabelKey::Executor, LabelKey::Pid];
const BY: [LabelKey; 8] = [
    LabelKey::Node,
    LabelKey::App,
    LabelKey::Role,
    LabelKey::Executor,
    LabelKey::Pid,
    LabelKey::ThreadClass,
    LabelKey::AppName,
    LabelKey::Process,
];
/// Prefix frames by which the merged stacks tell whose samples they are.
const GROUP: [LabelKey; 6] =
    [LabelKey::Node, LabelKey::App, LabelKey::Role, LabelKey::Executor, LabelKey::Pid, LabelKey::ThreadClass];

/// A process, and what its classes of threads used.
#[derive(Default)]
pub struct Process {
    app_name: Arc<str>,
    comm: Arc<str>,
    is_jvm: bool,
    ledger: BTreeMap<Class, LedgerSums>,
    samples: BTreeMap<Class, Sampled>,
    /// Samples by class: in user mode, and in the kernel. Only of a JVM without a ledger.
    modes: BTreeMap<Class, [Sampled; 2]>,
}

/// The processes, by their labels.
pub struct Processes(BTreeMap<Key, Process>);

/// All processes of a query for which `wanted` says yes.
///
/// # Errors
/// What the store fails with.
pub fn processes(
    store: &dyn Store,
    query: &Query,
    wanted: impl Fn(&dyn Fn(LabelKey) -> Arc<str>) -> bool,
) -> Result<Processes, ApiError> {
    let mut all: BTreeMap<Key, Process> = BTreeMap::new();
    let entry = |all: &mut BTreeMap<Key, Process>,
                 value: &dyn Fn(LabelKey) -> Arc<str>,
                 add: &mut dyn FnMut(&mut Process)| {
        if wanted(value) {
            let process = all.entry(KEYS.map(value)).or_default();
            process.app_name = value(LabelKey::AppName);
            process.comm = value(LabelKey::Process);
            add(process);
        }
    };
    for line in store.ledger(query.range, &query.selection, &BY)? {
        let value = |key| line.label(key).cloned().unwrap_or_default();
        entry(&mut all, &value, &mut |process| {
            process.is_jvm |= *value(LabelKey::Role) != *Role::Python.slug();
            let class = place(class_of(&value(LabelKey::ThreadClass)));
            process.ledger.entry(class).or_default().add(&line.sums);
        });
    }
    for total in store.totals(query)? {
        let value =
            |key| total.labels.iter().find(|(k, _)| *k == key).map(|(_, v)| v.clone()).unwrap_or_default();
        entry(&mut all, &value, &mut |process| {
            let class = class_of(total.labels.get(LabelKey::ThreadClass));
            process.is_jvm |= class.is_some() && total.labels.get(LabelKey::Role) != Role::Python.slug();
            process.samples.entry(place(class)).or_default().add(total.count, total.weight);
        });
    }
    for record in store.processes(query.range, &query.selection) {
        let value =
            |key| record.labels.iter().find(|(k, _)| *k == key).map(|(_, v)| v.clone()).unwrap_or_default();
        if let Some(process) = all.get_mut(&KEYS.map(value)) {
            process.is_jvm |= record.jvm.is_some();
        }
    }
    modes(store, query, &mut all)?;
    Ok(Processes(all))
}

/// Splits the samples of the JVMs without a ledger.
fn modes(store: &dyn Store, query: &Query, all: &mut BTreeMap<Key, Process>) -> Result<(), ApiError> {
    let sampled = all.iter().filter(|(_, process)| process.is_jvm && process.ledger.is_empty());
    let pids: Vec<String> = sampled.filter_map(|(key, _)| key.last()).map(|pid| pid.to_string()).collect();
    if pids.is_empty() {
        return Ok(());
    }
    let mut query = Query { group: GROUP.to_vec(), ..query.clone() };
    query.selection.matchers.push(Matcher { key: LabelKey::Pid, op: MatchOp::In(pids) });
    for (values, [user, system]) in leaves(&store.merge(&query)?.tree) {
        let [node, app, role, executor, pid, class] = values;
        let Some(process) = all.get_mut(&[node, app, role, executor, pid]) else { continue };
        let modes = process.modes.entry(place(class_of(&class))).or_default();
        for (sum, add) in modes.iter_mut().zip([user, system]) {
            sum.add(add.samples, add.weight);
        }
    }
    Ok(())
}

/// Samples by the values of the prefix frames: those whose leaf is not the kernel's, and those whose is.
fn leaves(tree: &Tree) -> BTreeMap<[Arc<str>; GROUP.len()], [Sampled; 2]> {
    let mut values: Vec<Vec<Arc<str>>> = Vec::new();
    let mut group_of: Vec<Option<usize>> = Vec::with_capacity(tree.nodes.len());
    let mut out = BTreeMap::new();
    // A parent stands before its children.
    for (at, node) in tree.nodes.iter().enumerate() {
        let above = if at == 0 { None } else { group_of.get(node.parent as usize).copied().flatten() };
        let known = above.and_then(|group| values.get(group));
        let depth = known.map_or(0, Vec::len);
        let group = if at > 0 && node.frame.kind == FrameKind::Label && depth < GROUP.len() {
            let mut path = known.cloned().unwrap_or_default();
            let value = node.frame.name.split_once('=').map_or("", |(_, value)| value);
            path.push(Arc::from(if value == emberscope_store::NO_VALUE { "" } else { value }));
            values.push(path);
            Some(values.len() - 1)
        } else {
            above
        };
        group_of.push(group);
        let whole = group.and_then(|group| values.get(group)).and_then(|v| v.clone().try_into().ok());
        if let Some(key) = whole
            && node.self_count > 0
        {
            let sums: &mut [Sampled; 2] = out.entry(key).or_default();
            if let Some(sum) = sums.get_mut(usize::from(node.frame.kind == FrameKind::Kernel)) {
                sum.add(node.self_count, node.self_weight);
            }
        }
    }
    out
}

impl Processes {
    /// The JVMs and, of each, its parts by class.
    pub fn jvms(&self) -> impl Iterator<Item = (Jvm<'_>, BTreeMap<Class, Part>)> {
        self.0
            .iter()
            .filter(|(_, process)| process.is_jvm)
            .map(|(key, process)| (Jvm { key, process }, process.parts()))
    }
    /// What is no JVM, the busiest first.
    pub fn beside(&self) -> Vec<Beside> {
        let mut rows: Vec<(u64, Beside)> = Vec::new();
        for (key, process) in self.0.iter().filter(|(_, process)| !process.is_jvm) {
            let mut sum = Sampled::default();
            process.samples.values().for_each(|s| sum.add(s.samples, s.weight));
            let exact = process.ledger.values().map(|sums| sums.accounts.cpu_ns).reduce(u64::saturating_add);
            let cpu_ns = exact.unwrap_or(sum.weight);
            let row = Beside {
                who: Jvm { key, process }.who(),
                source: if exact.is_some() { Source::Ledger } else { Source::Samples }.slug().into(),
                samples: sum.samples,
                cpu_seconds: Some(seconds(cpu_ns)),
                sampling_error: sampling_error(sum.samples).filter(|_| exact.is_none()),
            };
            rows.push((cpu_ns, row));
        }
        rows.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        rows.into_iter().map(|(_, row)| row).collect()
    }
}

impl Process {
    fn parts(&self) -> BTreeMap<Class, Part> {
        let mut parts = BTreeMap::new();
        if self.ledger.is_empty() {
            for (class, [user, system]) in &self.modes {
                parts.insert(*class, Part::sampled(*user, *system));
            }
            return parts;
        }
        for class in self.ledger.keys().chain(self.samples.keys()) {
            let sums = self.ledger.get(class).copied().unwrap_or_default();
            let beside = self.samples.get(class).copied().unwrap_or_default();
            parts.insert(*class, Part::exact(&sums, beside));
        }
        parts
    }
}

/// A process and its labels.
pub struct Jvm<'a> {
    key: &'a Key,
    process: &'a Process,
}

impl Jvm<'_> {
    /// Which process it is, for its row.
    pub fn who(&self) -> Who {
        let [node, app, role, executor, pid] = self.key;
        Who {
            node: text(node),
            pid: pid.parse().ok(),
            app: text(app),
            app_name: text(&self.process.app_name),
            role: text(role),
            executor: text(executor),
            process: text(&self.process.comm),
        }
    }
}

/// Rows of classes: all that there are, and no class where it occurs.
pub fn class_rows(parts: &BTreeMap<Class, Part>, whole: &Part, all: bool) -> Vec<PartOf> {
    let none = Part::default();
    let row = |class: Class| {
        let part = parts.get(&class).unwrap_or(&none);
        let name = class_at(class);
        let shown = !part.is_empty() || (all && name.is_some());
        shown.then(|| part.answer_of(whole, name))
    };
    (0..=place(None)).filter_map(row).collect()
}
