//! Labels of threads: one shared set for each (process, what its thread does).
//!
//! In: a process's labels and a [`ThreadLabel`]. Out: a set that is the same allocation each time, since
//! windows count by address. A set that was not asked for within [`KEPT_NS`] is forgotten. At most
//! [`Limits::label_sets`] with a task are kept; beyond that a task's becomes [`OTHER`], unless its tenant holds no more
//! than his share: then sets of those who hold more go. Sets without a task
//! are few for each process (a class, and known or not) and always made.

use super::name::TaskId;
use super::table::Limits;
use emberscope_model::{Excess, FastSet, LabelKey, LabelSet, LabelSetBuilder, Tenant, ThreadClass, shrink};
use std::collections::HashMap;
use std::sync::Arc;

/// The stage of a task of which no more is known.
pub const UNKNOWN: &str = "unknown";
/// The stage of tasks that were too many to be told apart.
pub const OTHER: &str = "other";
/// How long a set is kept that nobody asks for: several windows, so that within one it stays the same.
const KEPT_NS: u64 = 60_000_000_000;

/// A task, as labels tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Task {
    /// A task that its numbers tell.
    Known(TaskId),
    /// A task over a limit.
    Folded,
    /// There is, or may be, a task.
    Unknown,
}

/// What labels say of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ThreadLabel {
    pub class: ThreadClass,
    pub task: Option<Task>,
}

impl ThreadLabel {
    /// `process`'s labels and these.
    fn added_to(&self, process: &LabelSet) -> LabelSet {
        let set = LabelSetBuilder::from_set(process).set(LabelKey::ThreadClass, self.class.slug());
        match self.task {
            None => set,
            Some(Task::Unknown) => set.set(LabelKey::Stage, UNKNOWN),
            Some(Task::Folded) => set.set(LabelKey::Stage, OTHER),
            Some(Task::Known(TaskId { stage: None, tid, .. })) => {
                set.set(LabelKey::Stage, UNKNOWN).set(LabelKey::Task, tid.to_string())
            }
            Some(Task::Known(TaskId { stage: Some(stage), stage_attempt, index, attempt, tid })) => set
                .set(LabelKey::Stage, stage.to_string())
                .set(LabelKey::StageAttempt, stage_attempt.to_string())
                .set(LabelKey::TaskIndex, index.to_string())
                .set(LabelKey::TaskAttempt, attempt.to_string())
                .set(LabelKey::Task, tid.to_string()),
        }
        .build()
    }
}

#[derive(Debug)]
struct Cached {
    /// Holds the allocation whose address is in the key.
    process: Arc<LabelSet>,
    labels: Arc<LabelSet>,
    used_ns: u64,
    tenant: Tenant,
}

/// The shared sets, by the process's labels and what its thread does.
#[derive(Debug, Default)]
pub(super) struct LabelCache {
    sets: HashMap<(usize, ThreadLabel), Cached>,
    /// How many of `sets` have a known task.
    of_tasks: usize,
    /// Who was found to hold more than his share since the last sweep.
    crowding: FastSet<Tenant>,
}

impl LabelCache {
    /// The set, and whether its task had to be folded.
    pub fn get(
        &mut self,
        (process, tenant): (&Arc<LabelSet>, Tenant),
        mut label: ThreadLabel,
        now_ns: u64,
        limits: &Limits,
    ) -> (Arc<LabelSet>, bool) {
        let address = Arc::as_ptr(process) as usize;
        let mut folded = false;
        if is_of_task(&label)
            && self.of_tasks >= limits.label_sets
            && !self.sets.contains_key(&(address, label))
            && !self.make_room(tenant, limits.label_sets)
        {
            label.task = Some(Task::Folded);
            folded = true;
        }
        let cached = self.sets.entry((address, label)).or_insert_with(|| {
            self.of_tasks += usize::from(is_of_task(&label));
            let labels = Arc::new(label.added_to(process));
            Cached { process: process.clone(), labels, used_ns: now_ns, tenant }
        });
        cached.used_ns = cached.used_ns.max(now_ns);
        (cached.labels.clone(), folded)
    }

    /// Makes room for a set of this tenant's; false when he is one of those who hold too much.
    fn make_room(&mut self, tenant: Tenant, limit: usize) -> bool {
        if self.crowding.contains(&tenant) {
            return false;
        }
        let of_tasks = self.sets.iter().filter(|((_, label), _)| is_of_task(label));
        let mut order: Vec<_> = of_tasks.map(|(key, set)| (set.used_ns, set.tenant, *key)).collect();
        order.sort_unstable_by_key(|(used_ns, ..)| *used_ns);
        let held = order.iter().map(|(_, tenant, _)| (*tenant, 1));
        let mut excess = Excess::over(limit.saturating_sub((limit / 8).max(1)), held);
        if excess.take(&tenant, 0) {
            self.crowding.insert(tenant);
            return false;
        }
        for (_, tenant, key) in order {
            if excess.take(&tenant, 1) {
                self.sets.remove(&key);
                self.of_tasks -= 1;
            }
        }
        self.of_tasks < limit
    }

    /// Forgets what was not asked for of late.
    pub fn sweep(&mut self, now_ns: u64) {
        self.crowding.clear();
        self.retain(|cached| now_ns.saturating_sub(cached.used_ns) < KEPT_NS);
    }

    /// A process is called otherwise from now on.
    pub fn forget_process(&mut self, process: &LabelSet) {
        self.retain(|cached| *cached.process != *process);
    }

    /// How many sets there are.
    pub fn len(&self) -> usize {
        self.sets.len()
    }

    fn retain(&mut self, keep: impl Fn(&Cached) -> bool) {
        self.sets.retain(|_, cached| keep(cached));
        self.of_tasks = self.sets.keys().filter(|(_, label)| is_of_task(label)).count();
        shrink(&mut self.sets);
    }
}

fn is_of_task(label: &ThreadLabel) -> bool {
    matches!(label.task, Some(Task::Known(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process() -> Arc<LabelSet> {
        Arc::new(LabelSetBuilder::new().set(LabelKey::App, "a").set(LabelKey::Pid, "9").build())
    }
    fn known(tid: u64) -> ThreadLabel {
        let id = TaskId { stage: Some(3), stage_attempt: 1, index: 2, attempt: 0, tid };
        ThreadLabel { class: ThreadClass::Task, task: Some(Task::Known(id)) }
    }
    fn pairs(set: &LabelSet) -> Vec<(&str, &str)> {
        set.iter().map(|(k, v)| (k.name(), &**v)).filter(|(k, _)| !["app", "pid"].contains(k)).collect()
    }

    #[test]
    fn what_labels_say() {
        let (mut cache, process, limits) = (LabelCache::default(), process(), Limits::default());
        let mut of = |label| cache.get((&process, Tenant::default()), label, 0, &limits).0;
        assert_eq!(
            pairs(&of(known(7))),
            [
                ("stage", "3"),
                ("stage_attempt", "1"),
                ("task_index", "2"),
                ("task_attempt", "0"),
                ("task", "7"),
                ("thread_class", "task")
            ]
        );
        let old = TaskId { stage: None, stage_attempt: 0, index: 0, attempt: 0, tid: 7 };
        let old = ThreadLabel { task: Some(Task::Known(old)), ..known(0) };
        assert_eq!(pairs(&of(old)), [("stage", "unknown"), ("task", "7"), ("thread_class", "task")]);
        let unknown = ThreadLabel { class: ThreadClass::Python, task: Some(Task::Unknown) };
        assert_eq!(pairs(&of(unknown)), [("stage", "unknown"), ("thread_class", "python")]);
        assert_eq!(pairs(&of(ThreadLabel { class: ThreadClass::Gc, task: None })), [("thread_class", "gc")]);
    }

    #[test]
    fn one_allocation_for_each_until_it_is_swept() {
        let (mut cache, process, limits) = (LabelCache::default(), process(), Limits::default());
        let first = cache.get((&process, Tenant::default()), known(1), 0, &limits).0;
        assert!(Arc::ptr_eq(
            &first,
            &cache.get((&process, Tenant::default()), known(1), KEPT_NS - 1, &limits).0
        ));
        assert!(!Arc::ptr_eq(&first, &cache.get((&process, Tenant::default()), known(2), 0, &limits).0));
        cache.sweep(KEPT_NS);
        assert_eq!(cache.len(), 1);
        assert!(Arc::ptr_eq(&first, &cache.get((&process, Tenant::default()), known(1), KEPT_NS, &limits).0));
        cache.forget_process(&process);
        assert_eq!((cache.len(), cache.of_tasks), (0, 0));
    }

    #[test]
    fn too_many_tasks_fold() {
        let (mut cache, process) = (LabelCache::default(), process());
        let limits = Limits { label_sets: 2, ..Limits::default() };
        for tid in 0..2 {
            assert!(!cache.get((&process, Tenant::default()), known(tid), 0, &limits).1);
        }
        for tid in 2..100 {
            let (labels, folded) = cache.get((&process, Tenant::default()), known(tid), 0, &limits);
            assert!(folded);
            assert_eq!(pairs(&labels), [("stage", "other"), ("thread_class", "task")]);
        }
        assert_eq!(cache.len(), 3);
        assert!(!cache.get((&process, Tenant::default()), known(1), 0, &limits).1, "what is there stays");
    }

    #[test]
    fn a_flooders_tasks_fold_and_not_his_neighbours() {
        let (mut cache, flood, job) = (LabelCache::default(), process(), Arc::new(LabelSet::default()));
        let limits = Limits { label_sets: 64, ..Limits::default() };
        let (flooder, neighbour) = (Tenant { uid: 65534, ..Tenant::default() }, Tenant::default());
        for tid in 0..1_000 {
            cache.get((&flood, flooder), known(tid), tid, &limits);
        }
        for tid in 0..20 {
            let (labels, folded) = cache.get((&job, neighbour), known(tid), 2_000, &limits);
            assert!(!folded && labels.get(LabelKey::Task) == tid.to_string());
            cache.get((&flood, flooder), known(5_000 + tid), 2_000, &limits);
        }
        assert!(cache.of_tasks <= 64);
        let folded = |tid| cache.get((&flood, flooder), known(tid), 2_000, &limits).1;
        assert!((9_000..9_100).any(folded), "his own fold");
        assert!(!cache.get((&job, neighbour), known(3), 2_000, &limits).1);
    }
}
