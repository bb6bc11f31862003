//! What Spark says of an application, one fact at a time: the form in which a store keeps it with the windows.
//!
//! In: what a server told ([`SparkStages`]). Out: facts, each bounded ([`SparkFact::is_bounded`]), and from facts the
//! same stages again. Everything in a fact is a driver's word, and a driver is any program: a reader of stored facts
//! looks at their bounds again.

use super::{SparkStage, SparkStages, SqlRef, WallTime};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Bytes of one text of a fact.
const MAX_TEXT: usize = 256;
/// Bytes of the text of a plan: 400 operators with their names.
const MAX_PLAN: usize = 32 << 10;
/// Ids that a fact refers to.
const MAX_REFS: usize = 1000;

/// What a fact is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SparkFactKind {
    /// An attempt of a stage.
    Stage,
    /// A job.
    Job,
    /// An execution of Spark SQL.
    Sql,
    /// An executor.
    Executor,
    /// The physical plan of an execution ([`super::SparkPlan`]).
    Plan,
    /// A setting of the application ([`SparkFact::setting`]).
    Setting,
}

impl SparkFactKind {
    /// All kinds.
    pub const ALL: [Self; 6] = [Self::Stage, Self::Job, Self::Sql, Self::Executor, Self::Plan, Self::Setting];

    /// Stable name of the kind.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Stage => "stage",
            Self::Job => "job",
            Self::Sql => "sql",
            Self::Executor => "executor",
            Self::Plan => "plan",
            Self::Setting => "setting",
        }
    }

    /// The kind with this name; None: a later version's.
    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.slug() == slug)
    }
}

/// One thing that Spark says of an application.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SparkFact {
    /// Id of the application.
    pub app: Arc<str>,
    /// What the fact is about.
    pub kind: SparkFactKind,
    /// Id of the stage, job, execution or executor, name of a setting, unique in the application and kind.
    pub id: Arc<str>,
    /// Attempt of a stage, from 0; of the others 0.
    pub attempt: u32,
    /// Name of a stage or job, description of an execution, host and port of an executor, a setting's value, why no plan.
    pub name: Arc<str>,
    /// Description of a stage or job, why an executor was removed, a plan's operators.
    pub description: Option<Arc<str>>,
    /// Spark's word for how it stands; of an executor `ACTIVE` or `REMOVED`.
    pub status: Arc<str>,
    /// Jobs of a stage or an execution, stages of a job, pairs of operators of a plan.
    pub refs: Box<[u32]>,
    /// Tasks of a stage or job, cores of an executor, operators of a plan.
    pub count: u64,
    /// CPU time inside a stage's tasks, nanoseconds.
    pub executor_cpu_ns: u64,
    /// CPU time of reading a stage's tasks in, nanoseconds.
    pub deserialize_cpu_ns: u64,
    /// Wall time inside a stage's tasks, milliseconds.
    pub run_time_ms: u64,
    /// When it was submitted, or the executor added.
    pub begun: Option<WallTime>,
    /// When it ended, or the executor was removed; None: it had not when it was read.
    pub ended: Option<WallTime>,
    /// Base URL of the server that told it.
    pub source: Arc<str>,
    /// When the server was asked.
    pub fetched: WallTime,
}

impl SparkFact {
    /// A fact that says nothing yet.
    pub fn new(kind: SparkFactKind, id: impl Into<Arc<str>>) -> Self {
        Self {
            app: Arc::default(),
            kind,
            id: id.into(),
            attempt: 0,
            name: Arc::default(),
            description: None,
            status: Arc::default(),
            refs: Box::default(),
            count: 0,
            executor_cpu_ns: 0,
            deserialize_cpu_ns: 0,
            run_time_ms: 0,
            begun: None,
            ended: None,
            source: Arc::default(),
            fetched: WallTime(0),
        }
    }

    /// What the fact says, without who said it and when.
    fn said(&self) -> impl Hash + PartialEq + '_ {
        let Self { app, kind, id, attempt, name, description, status, refs, count, .. } = self;
        let times = (self.executor_cpu_ns, self.deserialize_cpu_ns, self.run_time_ms, self.begun, self.ended);
        ((app, kind, id, attempt), (name, description, status, refs, count), times)
    }

    /// Whether two facts say the same, whoever said it and when.
    pub fn says_what(&self, other: &Self) -> bool {
        self.said() == other.said()
    }

    /// A hash of what the fact says, whoever said it and when.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.said().hash(&mut hasher);
        hasher.finish()
    }

    /// Whether texts and lists are as long as they may be.
    pub fn is_bounded(&self) -> bool {
        let texts = [&self.app, &self.id, &self.name, &self.status, &self.source];
        let described = if self.kind == SparkFactKind::Plan { MAX_PLAN } else { MAX_TEXT };
        texts.into_iter().all(|text| text.len() <= MAX_TEXT)
            && self.description.as_ref().is_none_or(|text| text.len() <= described)
            && self.refs.len() <= MAX_REFS
    }

    /// Bytes of memory that the fact takes, estimated; a text that several share counts for each.
    pub fn bytes(&self) -> usize {
        let texts = self.id.len() + self.name.len() + self.status.len();
        size_of::<Self>()
            + texts
            + self.description.as_ref().map_or(0, |text| text.len())
            + self.refs.len() * 4
    }
}

/// The facts of an application that a store keeps, as far as they fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SparkFacts {
    /// The facts, by kind, id and attempt.
    pub facts: Vec<SparkFact>,
    /// Facts that are kept and did not fit into the answer.
    pub left_out: u64,
}

impl SparkStages {
    /// All that was told, as facts.
    pub fn facts(&self) -> impl Iterator<Item = SparkFact> {
        let (app, source): (Arc<str>, Arc<str>) = (self.app.as_str().into(), self.source.as_str().into());
        let stages = self.stages.iter().map(move |stage| SparkFact {
            app: app.clone(),
            kind: SparkFactKind::Stage,
            id: stage.id.to_string().into(),
            attempt: stage.attempt,
            name: stage.name.clone(),
            description: stage.description.clone(),
            status: stage.status.clone(),
            refs: stage.job_ids.clone(),
            count: stage.tasks,
            executor_cpu_ns: stage.executor_cpu_ns,
            deserialize_cpu_ns: stage.deserialize_cpu_ns,
            run_time_ms: stage.run_time_ms,
            begun: stage.submitted,
            ended: stage.completed,
            source: source.clone(),
            fetched: self.fetched,
        });
        stages.chain(self.beside.iter().cloned())
    }

    /// The stages that facts of an application tell of; None: they tell of none. Its server's pages are not known.
    pub fn of_facts(app: &str, kept: SparkFacts) -> Option<Self> {
        let (of_stages, beside): (Vec<_>, Vec<_>) =
            kept.facts.into_iter().partition(|fact| fact.kind == SparkFactKind::Stage);
        let mut sql: HashMap<u32, SqlRef> = HashMap::new();
        let mut executions: Vec<(u64, &SparkFact)> = (beside.iter())
            .filter(|fact| fact.kind == SparkFactKind::Sql)
            .filter_map(|fact| Some((fact.id.parse().ok()?, fact)))
            .collect();
        executions.sort_by_key(|(id, _)| *id);
        for (id, fact) in executions {
            for job in &fact.refs {
                sql.insert(*job, SqlRef { id, description: fact.name.clone() });
            }
        }
        let newest = of_stages.iter().max_by_key(|fact| fact.fetched)?;
        let (source, fetched) = (newest.source.to_string(), newest.fetched);
        let stage = |fact: SparkFact| {
            Some(SparkStage {
                id: fact.id.parse().ok()?,
                attempt: fact.attempt,
                name: fact.name,
                description: fact.description,
                sql: fact.refs.iter().rev().find_map(|job| sql.get(job)).cloned(),
                job_ids: fact.refs,
                status: fact.status,
                tasks: fact.count,
                executor_cpu_ns: fact.executor_cpu_ns,
                deserialize_cpu_ns: fact.deserialize_cpu_ns,
                run_time_ms: fact.run_time_ms,
                submitted: fact.begun,
                completed: fact.ended,
            })
        };
        let mut stages: Vec<SparkStage> = of_stages.into_iter().filter_map(stage).collect();
        stages.sort_by_key(|stage| (stage.id, stage.attempt));
        let notes = match kept.left_out {
            0 => Vec::new(),
            more => vec![format!("Of what is kept {more} facts are not joined: ask for a shorter time.")],
        };
        let (app, pages) = (app.to_owned(), String::new());
        Some(Self { app, source, pages, fetched, completed: true, stages, beside, notes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(kind: SparkFactKind, id: &str, refs: &[u32]) -> SparkFact {
        SparkFact {
            app: "app-1".into(),
            name: format!("{} {id}", kind.slug()).into(),
            status: "COMPLETE".into(),
            refs: refs.into(),
            count: 4,
            executor_cpu_ns: 1,
            deserialize_cpu_ns: 2,
            run_time_ms: 3,
            begun: Some(WallTime(5)),
            source: "http://driver:4040".into(),
            fetched: WallTime(9),
            ..SparkFact::new(kind, id)
        }
    }

    #[test]
    fn stages_become_facts_and_stages_again() {
        let facts = vec![
            fact(SparkFactKind::Stage, "10", &[3]),
            fact(SparkFactKind::Stage, "9", &[1, 2]),
            fact(SparkFactKind::Job, "2", &[9]),
            fact(SparkFactKind::Sql, "7", &[2]),
            fact(SparkFactKind::Executor, "driver", &[]),
        ];
        let stages = SparkStages::of_facts("app-1", SparkFacts { facts, left_out: 0 }).expect("stages");
        let ids: Vec<u32> = stages.stages.iter().map(|stage| stage.id).collect();
        assert_eq!((ids, stages.pages.as_str(), &stages.notes), (vec![9, 10], "", &vec![]));
        let sql = stages.get(9, 0).and_then(|stage| stage.sql.clone()).expect("its job is the execution's");
        assert_eq!((sql.id, &*sql.description), (7, "sql 7"));
        assert_eq!(stages.get(10, 0).map(|stage| stage.sql.clone()), Some(None));
        let again = SparkFacts { facts: stages.facts().collect(), left_out: 0 };
        assert_eq!(SparkStages::of_facts("app-1", again), Some(stages));
    }

    #[test]
    fn what_is_not_there_or_does_not_fit_is_said() {
        let none = SparkFacts { facts: vec![fact(SparkFactKind::Job, "1", &[])], left_out: 0 };
        assert_eq!(SparkStages::of_facts("app-1", none), None);
        let some = SparkFacts { facts: vec![fact(SparkFactKind::Stage, "1", &[])], left_out: 3 };
        let notes = SparkStages::of_facts("app-1", some).expect("a stage").notes;
        assert_eq!(notes, ["Of what is kept 3 facts are not joined: ask for a shorter time."]);
    }

    #[test]
    fn a_fact_is_what_it_says_and_has_bounds() {
        let one = fact(SparkFactKind::Stage, "1", &[1]);
        let later = SparkFact { fetched: WallTime(10), source: "http://history".into(), ..one.clone() };
        assert!(one.says_what(&later) && one != later);
        assert_eq!(one.digest(), later.digest());
        assert_ne!(one.digest(), SparkFact { count: 5, ..one.clone() }.digest());
        assert!(!one.says_what(&SparkFact { ended: Some(WallTime(7)), ..one.clone() }));
        assert!(one.is_bounded());
        assert!(!SparkFact { name: "x".repeat(257).into(), ..one.clone() }.is_bounded());
        assert!(!SparkFact { refs: vec![0; 1001].into(), ..one }.is_bounded());
        for kind in SparkFactKind::ALL {
            assert_eq!(SparkFactKind::from_slug(kind.slug()), Some(kind));
        }
        assert_eq!(SparkFactKind::from_slug("later"), None);
    }
}
