//! Rows of a comparison: what both runs have, and what one has alone.
//!
//! In: two runs. Out: rows of queries, stages and operators, unsorted. A query is known by its description and then by its plan's
//! operators; a stage by its query and its name, then by its number of tasks and its samples' operators. How unlike they may be is
//! `unlike`'s.

use super::align::{Pair, align};
use super::estimate::{Estimate, Time};
use super::side::{RunQuery, Side, Stage};
use super::unlike::{name, plan_changed, site, unlike_queries, unlike_stages};
use crate::figures::seconds;
use crate::work::{Task, UNKNOWN};
use emberscope_api::{ComparedOperator, ComparedQuery, ComparedStage, ComparedTimes, ComparedWhole};
use emberscope_model::WaitReason;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Two runs, put side by side.
pub struct LinedUp<'r> {
    left: &'r Side,
    right: &'r Side,
    queries: Vec<Pair>,
    stages: Vec<Pair>,
    /// The stages of each query.
    of_query: Vec<Vec<Pair>>,
    runs: [f64; 2],
}

/// A query has its own description; of a job that is none's the job's.
fn description(stage: &Stage) -> Option<&str> {
    let told = stage.told.as_ref()?;
    let texts = [told.sql_description.as_deref(), told.description.as_deref()];
    texts.into_iter().flatten().find(|text| !text.is_empty())
}

fn only(pair: Pair) -> Option<Cow<'static, str>> {
    match pair {
        (Some(_), None) => Some("left".into()),
        (None, Some(_)) => Some("right".into()),
        _ => None,
    }
}

impl<'r> LinedUp<'r> {
    /// Puts two runs side by side.
    pub fn new(left: &'r Side, right: &'r Side) -> Self {
        let at_site = |text: &str| site(text).0.to_owned();
        let of_query = |_, query: &RunQuery| at_site(&query.description);
        let queries = align(&left.queries, &right.queries, of_query, unlike_queries);
        let mut places = [vec![0; left.queries.len()], vec![0; right.queries.len()]];
        for (place, (left, right)) in queries.iter().enumerate() {
            for (of_side, at) in places.iter_mut().zip([left, right]) {
                if let Some(mark) = at.and_then(|at| of_side.get_mut(at)) {
                    *mark = place;
                }
            }
        }
        let place = |side: usize, stage: &Stage| places.get(side)?.get(stage.query?).copied();
        let of_stage = |side: usize, stage: &Stage| {
            let query = place(side, stage);
            let own = query.is_none().then(|| (description(stage).map(at_site), at_site(name(stage))));
            (stage.told.is_some(), stage.id == UNKNOWN, query, own)
        };
        let stages = align(&left.stages, &right.stages, of_stage, unlike_stages);
        let mut of_query = vec![Vec::new(); queries.len()];
        for (l, r) in &stages {
            let of_left = l.and_then(|at| place(0, left.stages.get(at)?));
            let query = of_left.or_else(|| r.and_then(|at| place(1, right.stages.get(at)?)));
            if let Some(its) = query.and_then(|query| of_query.get_mut(query)) {
                its.push((*l, *r));
            }
        }
        let sum = |side: &Side| {
            let tasks = side.stages.iter().flat_map(|stage| &stage.tasks);
            seconds(tasks.map(Task::cpu_ns).fold(0, u64::saturating_add))
        };
        Self { left, right, runs: [sum(left), sum(right)], queries, stages, of_query }
    }

    fn of(&self, (left, right): Pair) -> [Option<&'r Stage>; 2] {
        [left.and_then(|at| self.left.stages.get(at)), right.and_then(|at| self.right.stages.get(at))]
    }

    /// A time of some pairs of stages; None where none has it.
    fn estimate(&self, pairs: &[Pair], time: Time) -> Option<Estimate> {
        let mut sum: Option<Estimate> = None;
        for pair in pairs {
            let [left, right] =
                self.of(*pair).map(|stage| stage.map_or_else(Vec::new, |stage| stage.tasks.iter().collect()));
            if let Some(of_stage) = Estimate::of_tasks(&left, &right, time) {
                sum.get_or_insert_default().add(&of_stage);
            }
        }
        sum
    }

    fn cpu(&self, pairs: &[Pair]) -> Estimate {
        self.estimate(pairs, Time::Cpu).unwrap_or_default()
    }

    fn times(&self, pairs: &[Pair]) -> ComparedTimes {
        let of = |time| self.estimate(pairs, time).map(|estimate| estimate.change(None));
        let mut waits = [[0_u64; 2]; WaitReason::ALL.len()];
        for pair in pairs {
            for (side, stage) in self.of(*pair).into_iter().enumerate() {
                let tasks = stage.map_or_else(Default::default, |stage| stage.tasks.iter());
                for (reason, ns) in tasks.flat_map(|task| task.waits.by_reason()) {
                    if let Some(sum) = waits.get_mut(reason as usize).and_then(|sums| sums.get_mut(side)) {
                        *sum = sum.saturating_add(ns);
                    }
                }
            }
        }
        let waited = WaitReason::ALL.into_iter().zip(waits).filter(|(_, both)| *both != [0, 0]);
        ComparedTimes {
            task_wall: of(Time::Wall),
            run_delay: of(Time::RunDelay),
            blocked: of(Time::Blocked),
            waited: waited.map(|(reason, both)| (reason.slug().into(), both.map(seconds))).collect(),
        }
    }

    /// Both runs as a whole.
    pub fn whole(&self) -> ComparedWhole {
        let cpu = self.cpu(&self.stages);
        let sides = [self.left, self.right];
        let beside = sides.map(|side| {
            let tasks = side.stages.iter().flat_map(|stage| &stage.tasks).map(Task::all);
            let (samples, weight, exact) =
                tasks.fold((0_u64, 0_u64, 0_u64), |(samples, weight, exact), of| {
                    let more = of.exact.map_or(0, |sums| sums.accounts.cpu_ns);
                    (samples + of.samples, weight.saturating_add(of.weight), exact.saturating_add(more))
                });
            let all = &side.all;
            let time = match all.exact {
                Some(sums) => sums.accounts.cpu_ns.saturating_sub(exact),
                None => all.weight.saturating_sub(weight),
            };
            (seconds(time), all.samples.saturating_sub(samples))
        });
        let beside = Estimate::of_samples(beside.map(|(time, _)| time), beside.map(|(_, samples)| samples));
        let wall = sides.map(|side| side.seen.map(|seen| seen.until.as_secs_f64() - seen.from.as_secs_f64()));
        let wall = match wall {
            [Some(left), Some(right)] => Some(Estimate::once([left, right]).change(None)),
            _ => None,
        };
        ComparedWhole {
            cpu: cpu.change(Some(self.runs)),
            beside: beside.change(None),
            wall,
            times: self.times(&self.stages),
        }
    }

    /// A row for each stage.
    pub fn stages(&self) -> Vec<ComparedStage> {
        let row = |pair: &Pair| {
            let [left, right] = self.of(*pair);
            let of_both = [right, left].into_iter().flatten();
            let id = |stage: Option<&Stage>| stage.map(|stage| stage.id.clone());
            let tasks = |stage: Option<&Stage>| stage.map_or(0, |stage| stage.tasks.len() as u64);
            ComparedStage {
                name: of_both.clone().find(|stage| stage.told.is_some()).map(|stage| name(stage).to_owned()),
                description: of_both.clone().find_map(description).map(str::to_owned),
                only: only(*pair),
                left_stage: id(left),
                right_stage: id(right),
                left_tasks: tasks(left),
                right_tasks: tasks(right),
                cpu: self.cpu(&[*pair]).with_cold_code().change(Some(self.runs)),
                times: self.times(&[*pair]),
            }
        };
        self.stages.iter().map(row).collect()
    }

    /// A row for each query.
    pub fn queries(&self) -> Vec<ComparedQuery> {
        let row = |(pair, stages): (&Pair, &Vec<Pair>)| {
            let left = pair.0.and_then(|at| self.left.queries.get(at));
            let right = pair.1.and_then(|at| self.right.queries.get(at));
            ComparedQuery {
                description: right.or(left).map(|query| query.description.clone()).unwrap_or_default(),
                only: only(*pair),
                left_execution: left.map(|query| query.execution),
                right_execution: right.map(|query| query.execution),
                plan_changed: left.zip(right).and_then(|(left, right)| plan_changed(left, right)),
                cpu: self.cpu(stages).with_cold_code().change(Some(self.runs)),
                times: self.times(stages),
            }
        };
        self.queries.iter().zip(&self.of_query).map(row).collect()
    }

    /// A row for each operator that has samples.
    pub fn operators(&self) -> Vec<ComparedOperator> {
        let sides = [self.left, self.right].map(Side::operators);
        let names: BTreeSet<Cow<'static, str>> = sides.iter().flat_map(|of| of.keys().cloned()).collect();
        let row = |name: Cow<'static, str>| {
            let of = sides.each_ref().map(|side| side.get(&name).copied().unwrap_or_default());
            let times = of.map(|samples| seconds(samples.weight));
            let estimate = Estimate::of_samples(times, of.map(|samples| samples.count));
            ComparedOperator { operator: name.into_owned(), cpu: estimate.change(Some(self.runs)) }
        };
        names.into_iter().map(row).collect()
    }
}
