//! `emberscope tasks`: the tasks that ran, each with what its thread used.

use super::CliError;
use super::answer::{Basis, counted};
use super::ask::{AskArgs, Rows};
use super::figures::{Cells, head, how, known, sampled, whose};
use super::selection::Params;
use super::stages::{PATIENCE, SparkArgs, attempt};
use super::table::{Align, Table};
use super::text::time;
use super::waited;
use super::words::word;
use clap::Args;
use emberscope_api::route::{self, Route, param};
use emberscope_api::{SparkTask, Task, TaskOrder, Tasks, Word as _};
use emberscope_model::SampleKind;
use emberscope_serve::spark::{Words, join_tasks};
use serde_json::{Map, Value};

/// Flags of `emberscope tasks`.
#[derive(Args, Clone, Debug)]
pub struct TasksArgs {
    /// List at most N tasks.
    #[arg(short = 'n', long, help_heading = "Output", value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Order, the largest first: cpu (including helpers and Python workers), run-delay (ready to run, but no CPU was
    /// free), blocked, wall, amount (what was sampled of --type); or task, by Spark's id. Default: cpu, with another
    /// --type than cpu amount.
    #[arg(long, help_heading = "Output", value_name = "ORDER", value_parser = word::<TaskOrder>())]
    sort: Option<TaskOrder>,
    #[command(flatten)]
    spark: SparkArgs,
    #[command(flatten)]
    ask: AskArgs,
}

/// Prints a row for each task.
///
/// # Errors
/// As for [`AskArgs::run`]. A server of Spark's that does not answer is no error: a line says so.
pub fn run(args: &TasksArgs) -> Result<(), CliError> {
    let source = args.spark.source();
    let amend = |answer: &mut Map<String, Value>| {
        source
            .as_ref()
            .map(|source| join_tasks(answer, Words { source: Some(source), kept: None }, PATIENCE))
            .is_some()
    };
    args.ask.run_amended::<Tasks>(route::TASKS.path, params(args), &amend)
}

fn params(args: &TasksArgs) -> Params {
    let usual = if args.ask.kind.kind == SampleKind::Cpu { TaskOrder::Cpu } else { TaskOrder::Amount };
    let sort = args.sort.unwrap_or(usual);
    let mut params = vec![(param::LIMIT, args.limit.to_string()), (param::SORT, sort.word().to_owned())];
    params.extend(args.spark.params());
    params
}

/// Spark's word on how a task went.
fn status(spark: &SparkTask) -> String {
    let speculative = if spark.speculative { " speculative" } else { "" };
    format!("{}{speculative}", spark.status).trim_start().to_owned()
}

impl Rows for Tasks {
    const WHAT: &'static str = "task";
    const ROUTE: &'static Route = &route::TASKS;
    fn table(&self, basis: &Basis) -> Table {
        let kind = basis.kind();
        let first = self.tasks.first();
        let apps = self.tasks.iter().any(|task| Some(&task.app) != first.map(|first| &first.app));
        let stage = |task: &Task| (task.stage.clone(), task.stage_attempt.clone());
        let stages = apps || self.tasks.iter().any(|task| Some(stage(task)) != first.map(stage));
        let joined = self.tasks.iter().any(|task| task.spark.is_some());
        let helped = self.tasks.iter().any(|task| !task.helpers.is_empty());
        let python = self.tasks.iter().any(|task| !task.python.is_empty());
        let (left, right) = (|name| (name, Align::Left), |name| (name, Align::Right));
        let mut columns = Vec::new();
        columns.extend(apps.then_some(left("APP")));
        columns.extend(stages.then_some(left("STAGE")));
        columns.extend(["TASK", "TID", "EXECUTOR"].map(left));
        columns.push(right("CPU"));
        columns.extend(helped.then_some(right("HELPERS")));
        columns.extend(python.then_some(right("PYTHON")));
        columns.extend(python.then_some(right("PYTHON WAIT")));
        columns.extend(["RUN DELAY", "BLOCKED", "WALL"].map(right));
        let waits = self.tasks.iter().any(|task| task.waited.is_some());
        columns.extend(waits.then_some(left(waited::HEAD)));
        columns.extend(["SWITCHES V/I", "FAULTS MIN/MAJ", "READ", "WRITTEN", head(kind)].map(right));
        if joined {
            columns.extend(["SPARK'S CPU", "DURATION"].map(right));
            columns.push(left("STATUS"));
        }
        let mut table = Table::new(&columns);
        table.give_way(&[
            "WRITTEN",
            "READ",
            "FAULTS MIN/MAJ",
            "SWITCHES V/I",
            "SPARK'S CPU",
            "DURATION",
            "SAMPLED",
        ]);
        for task in &self.tasks {
            let mut row = Vec::new();
            row.extend(apps.then(|| known(&task.app)));
            row.extend(stages.then(|| attempt(&task.stage, &task.stage_attempt)));
            let index = attempt(&task.task_index, &task.task_attempt);
            row.extend([index, known(&task.task), known(&task.executor)]);
            row.push(task.own.exact_time(|exact| exact.cpu_seconds));
            row.extend(helped.then(|| task.helpers.exact_time(|exact| exact.cpu_seconds)));
            row.extend(python.then(|| task.python.exact_time(|exact| exact.cpu_seconds)));
            row.extend(python.then(|| task.own.exact_time(|exact| exact.python_wait_seconds)));
            row.extend([
                task.own.exact_time(|exact| exact.run_delay_seconds),
                task.own.exact_time(|exact| exact.blocked_seconds),
                task.own.exact_time(|exact| exact.wall_seconds),
            ]);
            row.extend(waits.then(|| waited::cell(task.waited.as_ref(), task.own.exact.as_ref())));
            row.extend([
                task.own.exact_pair(|exact| (exact.voluntary_switches, exact.involuntary_switches)),
                task.own.exact_pair(|exact| (exact.minor_faults, exact.major_faults)),
                task.own.exact_bytes(|exact| exact.read_bytes),
                task.own.exact_bytes(|exact| exact.written_bytes),
                sampled(&task.own, [&task.helpers, &task.python], kind),
            ]);
            if joined {
                let spark = task.spark.as_ref();
                row.extend([
                    time(spark.and_then(|spark| spark.cpu.seconds())),
                    time(spark.and_then(|spark| spark.duration_ms).map(|ms| ms as f64 / 1e3)),
                    spark.map(status).unwrap_or_default(),
                ]);
            }
            table.row(row);
        }
        if self.cut > 0 {
            table.note(format!("and {}: see them with --limit", counted(self.cut, "more task")));
        }
        let how = how(self.tasks.iter().map(|task| &task.own), kind);
        [Some(how), whose(kind)].into_iter().flatten().for_each(|note| table.note(note));
        if waits {
            table.note(waited::NOTE.to_owned());
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::super::ask::tests::ask;
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        tasks: TasksArgs,
    }

    const EXACT: &str = r#""exact":{"cpu_seconds":0.8471,"user_seconds":0.8,"system_seconds":0.0471,"wall_seconds":3.7,
        "run_delay_seconds":2.7,"blocked_seconds":0.1529,"voluntary_switches":12,"involuntary_switches":402,
        "minor_faults":2011,"major_faults":3,"read_bytes":1572864,"written_bytes":0,"begun":1}"#;

    fn task(tid: u32, more: &str) -> String {
        format!(
            r#"{{"app":"app-1","stage":"3","stage_attempt":"0","task_index":"17","task_attempt":"1","task":"{tid}",
            "executor":"1","node":"n1","first_seen":"A","last_seen":"B",{EXACT},
            "sampled":{{"samples":100,"cpu_seconds":0.85,"sampling_error":0.1}}{more}}}"#
        )
    }

    fn shown(flags: &[&str], cut: u32, tasks: &[String]) -> (String, String) {
        let line = Line::try_parse_from(std::iter::once(&"x").chain(flags)).unwrap().tasks;
        let body = format!(
            r#"{{"range":{{"from":"A","until":"B"}},"windows":1,"quality":{{"samples":100}},"count":60,"cut":{cut},
            "sort":"run_delay","tasks":[{}]}}"#,
            tasks.join(",")
        );
        let (target, printed, result) =
            ask::<Tasks>(&["--stage", "3"], route::TASKS.path, params(&line), 200, &body);
        result.unwrap();
        (target, printed)
    }

    #[test]
    fn a_row_for_each_task() {
        let unheard = r#"{"app":"app-1","stage":"3","stage_attempt":"0","task_index":null,"task_attempt":null,"task":"62",
            "executor":null,"first_seen":null,"last_seen":null,"exact":null,"sampled":{"samples":0,"cpu_seconds":0.0,"sampling_error":null}}"#;
        let flags = ["--sort", "run-delay", "--limit", "2"];
        let (target, printed) = shown(&flags, 58, &[task(77, ""), unheard.to_owned()]);
        assert_eq!(target, "/api/v1/tasks?stage=3&type=cpu&limit=2&sort=run_delay");
        let want = "TASK  TID  EXECUTOR       CPU  RUN DELAY   BLOCKED    WALL  SWITCHES V/I  FAULTS MIN/MAJ     READ  WRITTEN             SAMPLED\n\
                    17.1  77   1         847.1 ms     2.70 s  152.9 ms  3.70 s        12/402          2011/3  1.5 MiB      0 B  850.0 ms +- 10.0 %\n\
                    -     62   -                -          -         -       -             -               -        -        -                   -\n\
                    and 58 more tasks: see them with --limit\n\
                    exact, from the kernel's accounts of each thread, except SAMPLED: from n samples, +- the standard error 1/sqrt(n)\n";
        assert!(printed.starts_with(want), "{printed}");
    }

    #[test]
    fn what_spark_says_and_other_stages_have_columns() {
        let spark = r#","spark":{"duration_ms":3710,"executor_cpu_ns":800000000,"deserialize_cpu_ns":18000000,
            "status":"KILLED","speculative":true,"attempt":1}"#;
        let (_, printed) =
            shown(&[], 0, &[task(77, spark), task(78, "").replace(r#""stage":"3""#, r#""stage":"4""#)]);
        let lines: Vec<&str> = printed.lines().collect();
        assert!(
            lines[0].starts_with("STAGE  TASK  TID") && lines[2].starts_with("4.0    17.1  78"),
            "{printed}"
        );
        assert!(lines[0].ends_with("SPARK'S CPU  DURATION  STATUS"), "{printed}");
        assert!(lines[1].ends_with("   818.0 ms    3.71 s  KILLED speculative"), "{printed}");
        assert!(lines[2].ends_with("         -         -  -"), "{printed}");
    }

    #[test]
    fn of_another_kind_there_is_its_amount_and_most_of_it_comes_first() {
        let asked = |flags: &[&str]| {
            let line = Line::try_parse_from(std::iter::once(&"x").chain(flags)).unwrap().tasks;
            params(&line).into_iter().find(|(name, _)| *name == param::SORT).unwrap().1
        };
        assert_eq!(asked(&[]), "cpu");
        assert_eq!(asked(&["--type", "page-faults"]), "amount");
        assert_eq!(asked(&["--type", "page-faults", "--sort", "wall"]), "wall");
        let of = r#""page_faults":25600,"#;
        let body = format!(
            r#"{{"type":"page-faults","range":{{"from":"A","until":"B"}},"windows":1,"quality":{{"samples":100}},
            "count":1,"cut":0,"sort":"amount","tasks":[{}]}}"#,
            task(77, "").replace(r#""cpu_seconds":0.85,"#, of)
        );
        let flags = ["--type", "page-faults"];
        let (_, printed, result) = ask::<Tasks>(&flags, route::TASKS.path, vec![], 200, &body);
        result.unwrap();
        let mut lines = printed.lines();
        assert!(lines.next().unwrap().ends_with("WRITTEN           FAULTS"), "{printed}");
        assert!(lines.next().unwrap().ends_with("0 B  25600 +- 10.0 %"), "{printed}");
        assert!(printed.contains("\nFAULTS: page faults, of the tasks' own threads,"), "{printed}");
    }

    #[test]
    fn an_order_that_is_none_is_a_mistake_of_the_caller() {
        for flags in [["x", "--sort", "name"], ["x", "--limit", "0"]] {
            assert!(Line::try_parse_from(flags).is_err(), "{flags:?}");
        }
    }
}
