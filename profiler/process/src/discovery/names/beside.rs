//! What is read beside stages: jobs, SQL executions, executors and settings, each as a fact.
//!
//! In: one entry of an answer after the other. Out: facts. A fact whose texts or lists are longer than they may be is
//! left out: an application's or executor's id is as long as its driver likes.

use super::client::{AskError, Client};
use super::texts::Texts;
use super::wire::{Environment, Executor, First};
use emberscope_model::{SparkFact, SparkFactKind, SparkStages, SparkUrl, WallTime};
use std::sync::Arc;

/// Executors kept; Spark itself keeps 100 dead ones (spark.ui.retainedDeadExecutors).
pub const MAX_EXECUTORS: usize = 2000;

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
        let (app, source) = (self.app.clone(), self.source.clone());
        SparkFact { app, source, fetched: self.fetched, ..SparkFact::new(kind, id) }
    }

    /// Adds a fact.
    pub fn push(&mut self, fact: SparkFact) {
        if fact.is_bounded() {
            self.facts.push(fact);
        }
    }
}

/// Reads executors, those that are gone too.
///
/// # Errors
/// An [`AskError`]: the server does not tell them.
pub fn executors(
    client: &Client,
    base: &SparkUrl,
    path: &str,
    texts: &mut Texts,
    beside: &mut Beside,
) -> Result<(), AskError> {
    let told: First<Executor, MAX_EXECUTORS> = client.get(base, &format!("{path}/allexecutors"))?;
    for executor in told.items {
        beside.push(SparkFact {
            name: texts.keep(&executor.host_port.0),
            description: executor.remove_reason.some().map(|text| texts.keep(text)),
            status: texts.keep(if executor.is_active { "ACTIVE" } else { "REMOVED" }),
            count: executor.total_cores,
            begun: executor.add_time.time(),
            ended: executor.remove_time.time(),
            ..beside.fact(SparkFactKind::Executor, executor.id.0)
        });
    }
    Ok(())
}

/// Says that settings could not be read: they are asked for again.
const UNREAD: &str = "Settings are not read";

/// Reads the settings, or takes them of the answer before: they stay as they were when the application began. Out: why there
/// are none, if so.
pub fn settings(
    client: &Client,
    base: &SparkUrl,
    path: &str,
    before: Option<&SparkStages>,
    beside: &mut Beside,
) -> Option<String> {
    let was_read = |before: &&SparkStages| !before.notes.iter().any(|note| note.starts_with(UNREAD));
    if let Some(before) = before.filter(was_read) {
        let settings = before.beside.iter().filter(|fact| fact.kind == SparkFactKind::Setting);
        beside.facts.extend(settings.cloned());
        return None;
    }
    let told: Environment = match client.get(base, &format!("{path}/environment")) {
        Ok(told) => told,
        // Spark before 2.2 has no such page.
        Err(AskError::NotFound) => return None,
        Err(error) => return Some(format!("{UNREAD}: {error}.")),
    };
    for (name, value) in told.spark_properties.items {
        if let Some(setting) = SparkFact::setting(&name.0, &value.0) {
            let (kind, id) = (setting.kind, (*setting.id).to_owned());
            beside.push(SparkFact { name: setting.name, ..beside.fact(kind, id) });
        }
    }
    None
}
