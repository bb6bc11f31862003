//! `emberscope stages`: the stages whose tasks ran, with what their tasks used.

use super::CliError;
use super::answer::Basis;
use super::ask::{AskArgs, Rows};
use super::figures::{Figures, SparkCpu, how, moment, or_nothing};
use super::selection::Params;
use super::table::{Align, Table};
use super::text::time;
use super::waited::{self, Waited};
use clap::Args;
use emberscope_model::SparkUrl;
use emberscope_process::{NamesConfig, Places, SparkNames};
use emberscope_serve::spark::join_stages;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::time::Duration;

const PATH: &str = "/api/v1/stages";
/// How long a driver or history server may take: its first answer takes seconds.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Flags of `emberscope stages`.
#[derive(Args, Clone, Debug)]
pub struct StagesArgs {
    /// Show each stage's CPU by class of thread: its tasks' own threads, those that these started, and Python
    /// workers.
    #[arg(long, help_heading = "Output")]
    classes: bool,
    #[command(flatten)]
    spark: SparkArgs,
    #[command(flatten)]
    ask: AskArgs,
}

/// Who is asked for names and Spark's own figures.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Names")]
pub struct SparkArgs {
    /// Driver or history server that this command asks for names and Spark's own figures, such as
    /// http://history:18080. Default: the daemon asks what it finds by itself, or is configured with.
    #[arg(long, value_name = "URL")]
    spark_url: Option<SparkUrl>,
}

impl SparkArgs {
    /// As parameters of the API: a daemon fetches no address that a client names, so it is left out.
    pub fn params(&self) -> Params {
        self.spark_url.iter().map(|_| ("join", "no".to_owned())).collect()
    }

    /// Who is asked by ourselves, if anybody is.
    pub fn source(&self) -> Option<SparkNames> {
        let urls = vec![self.spark_url.clone()?];
        Some(SparkNames::new(NamesConfig { urls, ask_found: false }, Places::default()))
    }
}

/// Prints a row for each stage and attempt.
pub fn run(args: &StagesArgs) -> Result<(), CliError> {
    let (params, source) = (args.spark.params(), args.spark.source());
    let amend = |answer: &mut Map<String, Value>| {
        if let Some(source) = &source {
            join_stages(answer, Some(source), PATIENCE);
        }
    };
    match args.classes {
        true => args.ask.run_amended::<ByClass>(PATH, params, &amend),
        false => args.ask.run_amended::<Stages>(PATH, params, &amend),
    }
}

#[derive(Debug, Deserialize)]
struct Stages {
    #[serde(flatten)]
    basis: Basis,
    stages: Vec<Stage>,
}

#[derive(Debug, Deserialize)]
struct Stage {
    #[serde(default, deserialize_with = "or_nothing")]
    app: String,
    #[serde(deserialize_with = "or_nothing")]
    stage: String,
    #[serde(default, deserialize_with = "or_nothing")]
    stage_attempt: String,
    #[serde(default)]
    tasks: u64,
    #[serde(default, deserialize_with = "or_nothing")]
    begun: u64,
    #[serde(default, deserialize_with = "or_nothing")]
    first_seen: String,
    #[serde(default, deserialize_with = "or_nothing")]
    last_seen: String,
    #[serde(flatten)]
    own: Figures,
    #[serde(default)]
    helpers: Figures,
    #[serde(default)]
    python: Figures,
    waited: Option<Waited>,
    #[serde(default)]
    classes: Vec<Class>,
    spark: Option<Spark>,
}

#[derive(Debug, Deserialize)]
struct Class {
    #[serde(deserialize_with = "or_nothing")]
    thread_class: String,
    #[serde(flatten)]
    figures: Figures,
}

/// What Spark says of the stage.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spark {
    name: Option<String>,
    description: Option<String>,
    sql_description: Option<String>,
    status: Option<String>,
    tasks: u64,
    #[serde(flatten)]
    cpu: SparkCpu,
}

impl Spark {
    /// What was set for people before what Spark made.
    fn title(&self) -> String {
        let texts = [&self.description, &self.sql_description, &self.name];
        let mut texts = texts.into_iter().flatten().filter(|text| !text.is_empty());
        let Some(first) = texts.next() else { return String::new() };
        // A call site tells what the stage is; a description which of many.
        match &self.name {
            Some(name) if !name.is_empty() && name != first => format!("{first}: {name}"),
            _ => first.clone(),
        }
    }
}

impl Stage {
    /// `3.0`, with the app where there are several.
    fn number(&self) -> String {
        attempt(&self.stage, &self.stage_attempt)
    }
    /// CPU time a task that Spark's clocks leave out, seconds. None unless what was seen is the whole
    /// stage as Spark counts it: a killed copy's or a retry's time is ours and not Spark's.
    fn overhead(&self) -> Option<f64> {
        let (spark, exact) = (self.spark.as_ref()?, self.own.exact.as_ref()?);
        let whole = spark.tasks == self.tasks && self.begun == self.tasks && self.tasks > 0;
        let complete = spark.status.as_deref().is_none_or(|status| status == "COMPLETE");
        let difference = exact.cpu_seconds - spark.cpu.seconds()?;
        (whole && complete).then(|| difference / self.tasks as f64)
    }
}

/// A number with its attempt: `3.0`; the number alone where there is none.
pub fn attempt(number: &str, attempt: &str) -> String {
    if attempt.is_empty() { number.to_owned() } else { format!("{number}.{attempt}") }
}

impl Stages {
    fn several_apps(&self) -> bool {
        self.stages.iter().any(|stage| Some(&stage.app) != self.stages.first().map(|first| &first.app))
    }
}

impl Rows for Stages {
    const WHAT: &'static str = "stage";
    fn basis(&self) -> &Basis {
        &self.basis
    }
    fn table(&self) -> Table {
        let several_apps = self.several_apps();
        let joined = self.stages.iter().any(|stage| stage.spark.is_some());
        let helped = self.stages.iter().any(|stage| !stage.helpers.is_empty());
        let python = self.stages.iter().any(|stage| !stage.python.is_empty());
        let mut columns = vec![("STAGE", Align::Left), ("TASKS", Align::Right), ("CPU", Align::Right)];
        if several_apps {
            columns.insert(0, ("APP", Align::Left));
        }
        if joined {
            columns.extend([("SPARK'S CPU", Align::Right), ("OVERHEAD A TASK", Align::Right)]);
        }
        columns.extend(["USER", "KERNEL", "RUN DELAY", "BLOCKED"].map(|name| (name, Align::Right)));
        if helped {
            columns.push(("HELPERS", Align::Right));
        }
        if python {
            columns.extend([("PYTHON", Align::Right), ("PYTHON WAIT", Align::Right)]);
        }
        let waits = self.stages.iter().any(|stage| stage.waited.is_some());
        columns.extend(waits.then_some((waited::HEAD, Align::Left)));
        columns.extend([("SAMPLED", Align::Right), ("FIRST SEEN", Align::Left), ("LAST SEEN", Align::Left)]);
        if joined {
            columns.push(("NAME", Align::Left));
        }
        let mut table = Table::new(&columns);
        table.give_way(&["LAST SEEN", "FIRST SEEN", "KERNEL", "USER", "SPARK'S CPU", "BLOCKED", "SAMPLED"]);
        if joined {
            table.cut_last();
        }
        let (from, until) = self.basis.range();
        for stage in &self.stages {
            let mut row = Vec::new();
            if several_apps {
                row.push(stage.app.clone());
            }
            row.extend([
                stage.number(),
                stage.tasks.to_string(),
                stage.own.exact_time(|exact| exact.cpu_seconds),
            ]);
            if joined {
                let spark = stage.spark.as_ref().and_then(|spark| spark.cpu.seconds());
                row.extend([time(spark), time(stage.overhead())]);
            }
            row.extend([
                stage.own.exact_time(|exact| exact.user_seconds),
                stage.own.exact_time(|exact| exact.system_seconds),
                stage.own.exact_time(|exact| exact.run_delay_seconds),
                stage.own.exact_time(|exact| exact.blocked_seconds),
            ]);
            if helped {
                row.push(stage.helpers.exact_time(|exact| exact.cpu_seconds));
            }
            if python {
                row.push(stage.python.exact_time(|exact| exact.cpu_seconds));
                row.push(stage.own.exact_time(|exact| exact.python_wait_seconds));
            }
            row.extend(waits.then(|| waited::cell(stage.waited.as_ref(), &stage.own)));
            row.extend([
                stage.own.sampled_time(),
                moment(&stage.first_seen, from, until),
                moment(&stage.last_seen, from, until),
            ]);
            if joined {
                row.push(stage.spark.as_ref().map(Spark::title).unwrap_or_default());
            }
            table.row(row);
        }
        table.note(how(self.stages.iter().map(|stage| &stage.own)));
        if waits {
            table.note(waited::NOTE.to_owned());
        }
        if helped {
            table.note("HELPERS: CPU of threads that tasks started, in none of the other columns".to_owned());
        }
        if python {
            table.note(
                "PYTHON: CPU of the tasks' Python workers, in none of the other columns; PYTHON WAIT: the part of BLOCKED in \
                 which the tasks slept until Python woke them"
                    .to_owned(),
            );
        }
        if joined {
            table.note(
                "SPARK'S CPU: executorCpuTime and executorDeserializeCpuTime, as Spark tells; OVERHEAD A TASK: \
                 (CPU - SPARK'S CPU) / TASKS, of ended stages whose every task was seen, once and whole"
                    .to_owned(),
            );
        }
        table
    }
}

/// The same answer, by class of thread.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct ByClass(Stages);

impl Rows for ByClass {
    const WHAT: &'static str = "stage";
    fn basis(&self) -> &Basis {
        &self.0.basis
    }
    fn table(&self) -> Table {
        let several_apps = self.0.several_apps();
        let mut columns = vec![("STAGE", Align::Left), ("CLASS", Align::Left)];
        if several_apps {
            columns.insert(0, ("APP", Align::Left));
        }
        columns.extend(["CPU", "USER", "KERNEL", "RUN DELAY", "SAMPLED"].map(|name| (name, Align::Right)));
        let mut table = Table::new(&columns);
        for stage in &self.0.stages {
            for Class { thread_class, figures } in &stage.classes {
                let mut row = vec![stage.number(), thread_class.clone()];
                if several_apps {
                    row.insert(0, stage.app.clone());
                }
                row.extend([
                    figures.exact_time(|exact| exact.cpu_seconds),
                    figures.exact_time(|exact| exact.user_seconds),
                    figures.exact_time(|exact| exact.system_seconds),
                    figures.exact_time(|exact| exact.run_delay_seconds),
                    figures.sampled_time(),
                ]);
                table.row(row);
            }
        }
        table.note(how(self.0.stages.iter().flat_map(|stage| &stage.classes).map(|class| &class.figures)));
        table
            .note("what JVMs do beside their tasks has no stage: emberscope tax --stage tells it".to_owned());
        table
    }
}

#[cfg(test)]
mod tests;
