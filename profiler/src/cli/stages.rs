//! `emberscope stages`: the stages whose tasks ran, with what their tasks used.

use super::CliError;
use super::answer::{Basis, counted};
use super::ask::{AskArgs, Rows};
use super::figures::{Cells, head, how, known, whose};
use super::selection::Params;
use super::table::{Align, Table};
use super::words::word;
use clap::Args;
use emberscope_api::route::{self, Route, param};
use emberscope_api::{ClassFigures, Join, SparkStage, Stage, StageOrder, Stages, Word as _};
use emberscope_model::{SampleKind, SparkUrl};
use emberscope_process::{NamesConfig, Places, SparkNames};
use emberscope_serve::spark::{Words, join_stages};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::time::Duration;

mod shown;

use shown::Shown;

/// How long a driver or history server may take: its first answer takes seconds.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Flags of `emberscope stages`.
#[derive(Args, Clone, Debug)]
pub struct StagesArgs {
    /// Show each stage's CPU time, and what was sampled, by thread class: its tasks' own threads, the threads that they
    /// started, and Python workers.
    #[arg(long, help_heading = "Output")]
    classes: bool,
    /// List at most N stages. Default: all.
    #[arg(short = 'n', long, help_heading = "Output", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: Option<u32>,
    /// Order, the largest first: cpu (including helpers and Python workers), run-delay (ready to run, but no CPU was
    /// free), blocked, wall, amount (what was sampled of --type); or stage, by number. Default: stage, with another
    /// --type than cpu amount.
    #[arg(long, help_heading = "Output", value_name = "ORDER", value_parser = word::<StageOrder>())]
    sort: Option<StageOrder>,
    #[command(flatten)]
    spark: SparkArgs,
    #[command(flatten)]
    ask: AskArgs,
}

impl StagesArgs {
    fn params(&self) -> Params {
        let mut params = self.spark.params();
        // What is usual is not said: an older daemon does not know the parameters.
        let is_cpu = self.ask.kind.kind == SampleKind::Cpu;
        let sort = self.sort.filter(|sort| !is_cpu || *sort != StageOrder::Stage);
        params.extend(sort.map(|sort| (param::SORT, sort.word().to_owned())));
        params.extend(self.limit.map(|limit| (param::LIMIT, limit.to_string())));
        params
    }
}

/// Who is asked for names and Spark's own figures.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Names")]
pub struct SparkArgs {
    /// Driver or history server that this command asks for names and Spark's own figures, such as
    /// http://history:18080. Default: the daemon asks those that it finds or is configured with.
    #[arg(long, value_name = "URL")]
    spark_url: Option<SparkUrl>,
}

impl SparkArgs {
    /// The choice as parameters of the API: a daemon fetches no address that a client names, so the address is left
    /// out.
    pub fn params(&self) -> Params {
        self.spark_url.iter().map(|_| (param::JOIN, Join::No.word().to_owned())).collect()
    }

    /// The server that this command asks by itself; None: the daemon does.
    pub fn source(&self) -> Option<SparkNames> {
        let urls = vec![self.spark_url.clone()?];
        Some(SparkNames::new(NamesConfig { urls, ask_found: false }, Places::default()))
    }
}

/// Prints a row for each stage and attempt.
///
/// # Errors
/// As for [`AskArgs::run`]. A server of Spark's that does not answer is no error: a line says so.
pub fn run(args: &StagesArgs) -> Result<(), CliError> {
    let (params, source) = (args.params(), args.spark.source());
    let amend = |answer: &mut Map<String, Value>| {
        source
            .as_ref()
            .map(|source| join_stages(answer, Words { source: Some(source), kept: None }, PATIENCE))
            .is_some()
    };
    let path = route::STAGES.path;
    match args.classes {
        true => args.ask.run_amended::<ByClass>(path, params, &amend),
        false => args.ask.run_amended::<Stages>(path, params, &amend),
    }
}

/// Name of a stage: what was set for people before what Spark made.
fn title(spark: &SparkStage) -> String {
    let texts = [spark.description.as_deref(), spark.sql_description.as_deref(), Some(&*spark.name)];
    let mut texts = texts.into_iter().flatten().filter(|text| !text.is_empty());
    let Some(first) = texts.next() else { return String::new() };
    // A call site tells what the stage is; a description which of many.
    match &*spark.name {
        "" => first.to_owned(),
        name if name == first => first.to_owned(),
        name => format!("{first}: {name}"),
    }
}

/// `3.0`
fn number(stage: &Stage) -> String {
    attempt(&stage.stage, &stage.stage_attempt)
}

/// CPU time a task that Spark's clocks leave out, seconds. None unless what was seen is the whole
/// stage as Spark counts it: a killed copy's or a retry's time is ours and not Spark's.
fn overhead(stage: &Stage) -> Option<f64> {
    let (spark, exact) = (stage.spark.as_ref()?, stage.own.exact.as_ref()?);
    let whole = spark.tasks == stage.tasks && stage.begun == Some(stage.tasks) && stage.tasks > 0;
    let complete = spark.status.is_empty() || spark.status == "COMPLETE";
    let difference = exact.cpu_seconds - spark.cpu.seconds()?;
    (whole && complete).then(|| difference / stage.tasks as f64)
}

/// A number with its attempt: `3.0`; the number alone where there is none.
pub fn attempt(number: &Option<String>, attempt: &Option<String>) -> String {
    let number = known(number);
    match attempt.as_deref() {
        None | Some("") => number,
        Some(attempt) => format!("{number}.{attempt}"),
    }
}

impl Rows for Stages {
    const WHAT: &'static str = "stage";
    const ROUTE: &'static Route = &route::STAGES;
    fn table(&self, basis: &Basis) -> Table {
        let shown = Shown::of(&self.stages, basis.kind());
        let mut table = Table::new(&shown.columns());
        table.give_way(&["LAST SEEN", "FIRST SEEN", "KERNEL", "USER", "SPARK'S CPU", "BLOCKED", "SAMPLED"]);
        if shown.joined {
            table.cut_last();
        }
        for stage in &self.stages {
            table.row(shown.cells(stage, basis.range()));
        }
        let how = how(self.stages.iter().map(|stage| &stage.own), basis.kind());
        [Some(how), whose(basis.kind())].into_iter().flatten().for_each(|note| table.note(note));
        if self.cut > 0 {
            table.note(format!("and {}: see them with --limit", counted(self.cut, "more stage")));
        }
        shown.notes(&mut table);
        table
    }
}

/// The same answer, by class of thread.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct ByClass(Stages);

impl Rows for ByClass {
    const WHAT: &'static str = "stage";
    const ROUTE: &'static Route = &route::STAGES;
    fn table(&self, basis: &Basis) -> Table {
        let kind = basis.kind();
        let several_apps = Shown::of(&self.0.stages, kind).several_apps;
        let mut columns = vec![("STAGE", Align::Left), ("CLASS", Align::Left)];
        if several_apps {
            columns.insert(0, ("APP", Align::Left));
        }
        columns.extend(["CPU", "USER", "KERNEL", "RUN DELAY", head(kind)].map(|name| (name, Align::Right)));
        let mut table = Table::new(&columns);
        for stage in &self.0.stages {
            for ClassFigures { thread_class, figures } in &stage.classes {
                let mut row = vec![number(stage), thread_class.clone().unwrap_or_default().into_owned()];
                if several_apps {
                    row.insert(0, known(&stage.app));
                }
                row.extend([
                    figures.exact_time(|exact| exact.cpu_seconds),
                    figures.exact_time(|exact| exact.user_seconds),
                    figures.exact_time(|exact| exact.system_seconds),
                    figures.exact_time(|exact| exact.run_delay_seconds),
                    figures.sampled(kind),
                ]);
                table.row(row);
            }
        }
        let figures = self.0.stages.iter().flat_map(|stage| &stage.classes).map(|class| &class.figures);
        table.note(how(figures, kind));
        table
            .note("what JVMs do beyond their tasks has no stage: emberscope tax --stage shows it".to_owned());
        table
    }
}

#[cfg(test)]
mod tests;
