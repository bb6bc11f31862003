//! Slow tasks of a stage, and the usual ones to compare them with.
//!
//! In: one app and one stage. Out: the tenth of its tasks that used most CPU or took longest (at least one), those from
//! the 40th to the 60th percentile, the conditions that select each group's samples, and what the slow ones' longer
//! time went to. CPU is that of the own thread and the helpers, by the ledger, else by samples; what decides between it and
//! wall time is [`By`]. Tasks are slow by time whatever kind of samples is compared: by bytes, what slow ones allocate more of. Limits: [`LEAST`] tasks; [`MOST`] in a group (the slowest, and those in the middle), of which
//! [`LISTED`] are listed.

use super::super::answer::text;
use super::super::error::ApiError;
use super::super::figures::seconds;
use super::super::params::Params;
use super::super::work::{self, Task};
use super::locks::locks;
use super::times::{Times, because};
use axum::http::StatusCode;
use emberscope_api as api;
use emberscope_model::{LabelKey, MatchOp, Matcher, Query, SampleKind, WaitReason};
use emberscope_store::Store;
use std::ops::Range;

/// Fewer tasks have no usual ones and slow ones.
const LEAST: usize = 4;
/// Tasks of a group: each label set of a query is held against every one of them.
const MOST: usize = 1000;
/// Tasks listed of a group.
const LISTED: usize = 100;

/// How many times as far tasks must stand out by wall time as by CPU time to be slow by the former, unless told.
const STANDS_OUT: f64 = 3.0;
/// How many times as long as a usual task one takes that is called long.
const LONG: f64 = 2.0;

/// What makes tasks slow. Unless told it is wall time for `type=wall`, `off-cpu` and `lock`, and where waits were sampled and the
/// longest tasks take twice as long as the usual ones without using much more CPU. Without samples of waits wall time of
/// Spark up to 4.1 has the thread's waiting for its next task in it, which is nobody's slowness: tasks are slow by CPU then,
/// and the answer names the longest one beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// CPU time.
    Cpu,
    /// Wall time of the own thread, by the ledger, else CPU time.
    Wall,
}

impl By {
    const fn slug(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Wall => "wall",
        }
    }
}

/// Tasks that are compared as one.
pub struct Group {
    /// What the tasks are: `median` or `slow`.
    pub name: &'static str,
    /// How many tasks there are.
    pub count: usize,
    /// CPU time of all tasks, nanoseconds.
    pub cpu_ns: u64,
    /// What the wall time of the tasks' own threads went to.
    pub times: Times,
    /// The first of them.
    pub listed: Vec<api::SideTask>,
    tids: Vec<String>,
}

impl Group {
    fn new(name: &'static str, tasks: &[Task]) -> Self {
        Self {
            name,
            count: tasks.len(),
            cpu_ns: tasks.iter().map(Task::cpu_ns).fold(0, u64::saturating_add),
            times: Times::of(tasks),
            listed: tasks.iter().take(LISTED).map(side_task).collect(),
            tids: tasks.iter().map(|task| task.label(LabelKey::Task).to_owned()).collect(),
        }
    }
    /// The query for the samples of these tasks.
    pub fn query(&self, of: &Query) -> Query {
        let mut query = of.clone();
        let op = MatchOp::In(self.tids.clone());
        query.selection.matchers.push(Matcher { key: LabelKey::Task, op });
        query
    }
}

/// A task, for the answer.
fn side_task(task: &Task) -> api::SideTask {
    let label = |key| text(task.label(key));
    api::SideTask {
        task: label(LabelKey::Task),
        task_index: label(LabelKey::TaskIndex),
        task_attempt: label(LabelKey::TaskAttempt),
        stage_attempt: label(LabelKey::StageAttempt),
        executor: label(LabelKey::Executor),
        cpu_seconds: seconds(task.cpu_ns()),
    }
}

/// The two groups, and what they were taken from.
pub struct Slow {
    /// Tasks around the median.
    pub median: Group,
    /// Tasks above the 90th percentile of what makes them slow.
    pub slow: Group,
    /// Tasks, source and percentiles.
    pub answer: api::Slow,
}

/// Looks at the parameters before any work.
///
/// # Errors
/// 400: `app` or `stage` is missing, or given twice; or a parameter is for one side, where `slow=1` makes both.
pub fn check(params: &Params) -> Result<(), ApiError> {
    if let Some(name) = params.sided() {
        let message = format!("`slow=1` makes the two sides itself: ask without `{name}`.");
        return Err(ApiError::bad(name, message));
    }
    for key in [LabelKey::App, LabelKey::Stage] {
        if params.one(key.name())?.is_none_or(str::is_empty) {
            let message = format!("`slow=1` compares the tasks of one stage: say which, with `{key}=`.");
            return Err(ApiError::bad(key.name(), message));
        }
    }
    Ok(())
}

/// Which of a stage's tasks, in the order of what makes them slow, are usual, and which slow.
struct Places {
    usual: Range<usize>,
    slow: Range<usize>,
    /// Places of the percentiles that the answer tells.
    percentiles: [(u8, usize); 3],
}

impl Places {
    /// Of n tasks, from [`LEAST`] on: at least one in each, none in both.
    fn of(n: usize) -> Self {
        let (p40, p60, p90) = (n * 4 / 10, (n * 6).div_ceil(10), n * 9 / 10);
        let beyond = (p60 - p40).saturating_sub(MOST);
        Self {
            usual: p40 + beyond / 2..p60 - beyond.div_ceil(2),
            slow: p90.max(n.saturating_sub(MOST))..n,
            percentiles: [(40, p40), (60, p60.saturating_sub(1)), (90, p90.saturating_sub(1))],
        }
    }
}

/// What tasks are ranked by.
struct Ranks {
    /// Samples of waits tell where a task's own waiting ends.
    waits_sampled: bool,
}

impl Ranks {
    fn of(&self, task: &Task, by: By) -> u64 {
        match task.own.exact {
            Some(_) if by == By::Wall => self.wall_ns(task),
            _ => task.cpu_ns(),
        }
    }
    /// Wall time of the own thread; where waits were sampled, without its waiting for the next task.
    fn wall_ns(&self, task: &Task) -> u64 {
        let Some(sums) = task.own.exact else { return 0 };
        sums.wall_ns.saturating_sub(sums.blocked_ns()).saturating_add(self.blocked_ns(task))
    }
    fn blocked_ns(&self, task: &Task) -> u64 {
        let blocked = task.own.exact.map_or(0, |sums| sums.blocked_ns());
        if self.waits_sampled { blocked.min(task.waits.total_ns()) } else { blocked }
    }
    /// Means of usual and of slow tasks, seconds.
    fn means(&self, tasks: &[Task], by: By) -> (f64, f64) {
        let mut ranks: Vec<u64> = tasks.iter().map(|task| self.of(task, by)).collect();
        ranks.sort_unstable();
        let places = Places::of(ranks.len());
        let mean = |place: Range<usize>| {
            let ranks = ranks.get(place).unwrap_or_default();
            ranks.iter().map(|ns| seconds(*ns)).sum::<f64>() / ranks.len().max(1) as f64
        };
        (mean(places.usual), mean(places.slow))
    }
    /// What makes tasks slow where nobody said it.
    fn stands_out(&self, tasks: &[Task]) -> By {
        let ((usual_cpu, slow_cpu), (usual, slow)) =
            (self.means(tasks, By::Cpu), self.means(tasks, By::Wall));
        let longer = slow - usual;
        let by_wall = self.waits_sampled
            && slow >= LONG * usual
            && longer > 0.0
            && longer >= STANDS_OUT * (slow_cpu - usual_cpu);
        if by_wall { By::Wall } else { By::Cpu }
    }
    /// The longest of the tasks that are not slow by CPU, if it took far longer than the usual ones.
    fn long(&self, usual: &[Task], others: &[Task]) -> Option<api::LongTask> {
        let task = others.iter().max_by_key(|task| self.wall_ns(task))?;
        let wall_seconds = seconds(self.wall_ns(task));
        let sum: f64 = usual.iter().map(|task| seconds(self.wall_ns(task))).sum();
        let usual_wall_seconds = sum / usual.len().max(1) as f64;
        (usual_wall_seconds > 0.0 && wall_seconds >= LONG * usual_wall_seconds).then(|| api::LongTask {
            task: side_task(task),
            wall_seconds,
            blocked_seconds: seconds(self.blocked_ns(task)),
            usual_wall_seconds,
            waits_sampled: self.waits_sampled,
        })
    }
}

/// Divides the query's tasks into usual and slow ones.
///
/// # Errors
/// 404 `unknown_stage`: no task was seen. 422 `too_few_tasks`: fewer than [`LEAST`] were. What the store fails with.
pub fn groups(store: &dyn Store, query: &Query, by: Option<By>) -> Result<Slow, ApiError> {
    let mut tasks = work::tasks(store, query)?;
    if tasks.is_empty() {
        return Err(work::unknown_stage(store, query));
    }
    // Samples are selected by the task's id.
    tasks.retain(|task| !task.label(LabelKey::Task).is_empty());
    let n = tasks.len();
    if n < LEAST {
        let message = format!(
            "{n} tasks of the stage were seen: with fewer than {LEAST} there are no usual and no slow ones."
        );
        let error = ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "too_few_tasks", message);
        return Err(error.of_parameter(LabelKey::Stage.name()));
    }
    let ranks = Ranks { waits_sampled: tasks.iter().any(|task| task.waits.total_ns() > 0) };
    let by = by.unwrap_or_else(|| match query.kind.holds(SampleKind::OffCpu) {
        true => By::Wall,
        false => ranks.stands_out(&tasks),
    });
    tasks.sort_by_key(|task| ranks.of(task, by));
    let places = Places::of(n);
    let of = |place: &Range<usize>| tasks.get(place.clone()).unwrap_or_default();
    let (usual, top) = (of(&places.usual), of(&places.slow));
    let long = match by {
        By::Cpu => ranks.long(usual, of(&(0..places.slow.start))),
        By::Wall => None,
    };
    let exact = tasks.iter().filter(|task| task.is_exact()).count();
    let source = match exact {
        0 => "samples",
        _ if exact == n => "ledger",
        _ => "mixed",
    };
    let at = |place: usize| tasks.get(place).map(|task| seconds(ranks.of(task, by)));
    let by = by.slug();
    let percentiles = places.percentiles.map(|(p, place)| (format!("p{p}_{by}_seconds"), at(place).into()));
    let (median, slow) = (Group::new("median", usual), Group::new("slow", top));
    let because = because((&median.times, median.count), (&slow.times, slow.count));
    let at_locks = because.iter().any(|more| more.of == WaitReason::Lock.slug());
    Ok(Slow {
        answer: api::Slow {
            locks: if at_locks { locks(store, query, [&median, &slow])? } else { Vec::new() },
            because,
            long,
            tasks: n as u64,
            source: source.into(),
            by: by.into(),
            percentiles: percentiles.into_iter().collect(),
        },
        median,
        slow,
    })
}
