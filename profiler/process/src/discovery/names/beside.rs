//! What is read beside stages: jobs, SQL executions and executors, each as a fact.
//!
//! In: one entry of an answer after the other. Out: facts. A fact whose texts or lists are longer than they may be is
//! left out: an application's or executor's id is as long as its driver likes.

use emberscope_model::{SparkFact, SparkFactKind, SparkUrl, WallTime};
use std::sync::Arc;

/// The facts of one answer.
pub struct Beside {
    app: Arc<str>,
    source: Arc<str>,
    fetched: WallTime,
    /// The facts, as they were told.
    pub facts: Vec<SparkFact>,
}

impl Beside {
    /// No facts yet of an application that a server was asked about.
    pub fn new(app: &str, base: &SparkUrl, fetched: WallTime) -> Self {
        Self { app: app.into(), source: base.as_str().into(), fetched, facts: Vec::new() }
    }

    /// A fact that says nothing yet.
    pub fn fact(&self, kind: SparkFactKind, id: String) -> SparkFact {
        SparkFact {
            app: self.app.clone(),
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
            source: self.source.clone(),
            fetched: self.fetched,
        }
    }

    /// Adds a fact.
    pub fn push(&mut self, fact: SparkFact) {
        if fact.is_bounded() {
            self.facts.push(fact);
        }
    }
}
