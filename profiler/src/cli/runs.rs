//! `emberscope runs`: the runs of jobs, what each used, and the run where that changed.

use super::CliError;
use super::answer::{Basis, counted};
use super::ask::{AskArgs, Rows};
use super::figures::{Cells, known, moment};
use super::table::{Align, Table};
use super::text::{percent, time, time_within};
use super::waited;
use clap::Args;
use emberscope_api::route::{self, Route, param};
use emberscope_api::{Figures, Run, Runs};
use emberscope_model::SampleKind;

/// Flags of `emberscope runs`.
#[derive(Args, Clone, Debug)]
pub struct RunsArgs {
    /// Only runs of this job: a value of --app-run, or the name of its applications. Default: all jobs.
    #[arg(long, value_name = "NAME", help_heading = "Selection (repeat a flag for several values)")]
    job: Option<String>,
    /// List at most N runs, the latest ones.
    #[arg(short = 'n', long, help_heading = "Output", value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    #[command(flatten)]
    ask: AskArgs,
}

/// Prints a row for each run.
///
/// # Errors
/// As for [`AskArgs::run`].
pub fn run(args: &RunsArgs) -> Result<(), CliError> {
    let mut params = vec![(param::LIMIT, args.limit.to_string())];
    params.extend(args.job.iter().map(|job| (param::JOB, job.clone())));
    args.ask.run::<Runs>(params)
}

/// CPU time: exact, else by samples with its error.
fn cpu(figures: &Figures) -> String {
    match &figures.exact {
        Some(exact) => time(Some(exact.cpu_seconds)),
        None => time_within(figures.sampled.amount(SampleKind::Cpu), figures.sampled.sampling_error),
    }
}

/// `+20.00 % (1.00 s before)`; empty where nothing changed.
fn changed(run: &Run) -> String {
    run.changed.map_or_else(String::new, |change| {
        let growth = change.after_seconds / change.before_seconds.max(f64::MIN_POSITIVE) - 1.0;
        let sign = if growth < 0.0 { "" } else { "+" };
        format!("{sign}{} from here on", percent(Some(growth)))
    })
}

/// A figure of a run.
type Figure = fn(&Run) -> Option<f64>;

/// What executors reserved: columns, each where any run has the figure.
const RESERVED: [(&str, Figure); 3] = [
    ("CORE-HOURS", |run| run.reserved.map(|reserved| reserved.core_hours)),
    ("GIB-HOURS", |run| run.reserved.and_then(|reserved| reserved.gib_hours)),
    ("COST", |run| run.reserved.and_then(|reserved| reserved.cost)),
];

/// A figure with two digits behind the point, of a small one more.
fn hundredths(figure: f64) -> String {
    if figure < 1.0 { format!("{figure:.4}") } else { format!("{figure:.2}") }
}

fn several_jobs(runs: &[Run]) -> bool {
    runs.iter()
        .any(|run| runs.first().is_some_and(|first| (&first.job, &first.user) != (&run.job, &run.user)))
}

impl Rows for Runs {
    const WHAT: &'static str = "run";
    const ROUTE: &'static Route = &route::RUNS;
    fn table(&self, basis: &Basis) -> Table {
        let mut columns = vec![
            ("RUN", Align::Right),
            ("APP", Align::Left),
            ("BEGAN", Align::Left),
            ("ENDED", Align::Left),
            ("WALL", Align::Right),
            ("CPU", Align::Right),
            ("TASKS' CPU", Align::Right),
            ("STAGES", Align::Right),
            (waited::HEAD, Align::Left),
            ("CHANGED", Align::Left),
        ];
        let told =
            RESERVED.into_iter().filter(|(_, figure)| self.runs.iter().any(|run| figure(run).is_some()));
        let told: Vec<(&'static str, Figure)> = told.collect();
        columns.extend(told.iter().map(|(name, _)| (*name, Align::Right)));
        let several = several_jobs(&self.runs);
        if several {
            columns.splice(0..0, [("JOB", Align::Left), ("USER", Align::Left)]);
        }
        let mut table = Table::new(&columns);
        table.give_way(&["ENDED", "USER", "STAGES", waited::HEAD, "GIB-HOURS", "CORE-HOURS"]);
        let (from, until) = basis.range();
        for run in &self.runs {
            let job = if several { vec![known(&run.job), known(&run.user)] } else { Vec::new() };
            let ended = match run.running {
                true => "running".to_owned(),
                false => moment(run.ended.as_ref(), from, until),
            };
            let reserved = told.iter().map(|(_, figure)| figure(run).map(hundredths).unwrap_or_default());
            table.row(
                job.into_iter()
                    .chain([
                        run.run.map(|run| run.to_string()).unwrap_or_default(),
                        run.app.clone(),
                        moment(Some(&run.begun), from, until),
                        ended,
                        time(Some(run.wall_seconds)),
                        cpu(&run.cpu),
                        if run.tasks.is_empty() { String::new() } else { cpu(&run.tasks) },
                        run.stages.to_string(),
                        waited::cell(run.waited.as_ref(), run.tasks.exact.as_ref()),
                        changed(run),
                    ])
                    .chain(reserved),
            );
        }
        if self.cut > 0 {
            table.note(format!("and {}: see them with --limit", counted(self.cut, "earlier run")));
        }
        table.note(
            "RUN: for --run with --app NAME, and for NAME@RUN; CPU: of all threads, from the kernel's accounts, or from \
             samples with +- the standard error"
                .to_owned(),
        );
        if !told.is_empty() {
            table.note(
                "CORE-HOURS, GIB-HOURS: what its executors reserved on all nodes, as Spark reports; COST: by the settings \
                 price-core-hour and price-gib-hour"
                    .to_owned(),
            );
        }
        if self.runs.iter().any(|run| run.changed.is_some()) {
            table.note(
                "CHANGED: chance alone marks a run in one of a hundred jobs that did not change".to_owned(),
            );
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::super::ask::tests::ask;
    use super::*;

    const HEAD: &str = r#""range":{"from":"2026-11-21T17:00:00.000Z","until":"2026-11-21T19:00:00.000Z"},
        "windows":720,"quality":{"samples":400,"lost":0}"#;

    fn row(name: &str, app: &str, more: &str) -> String {
        format!(
            r#"{{"app":"{app}","job":"{name}","app_name":"{name}","user":"ann","run":-2,"begun":"2026-11-21T17:00:03.000Z",
            "ended":"2026-11-21T17:01:03.000Z","wall_seconds":60.0,"stages":3,
            "exact":{{"cpu_seconds":41.5}},"sampled":{{"samples":4000,"cpu_seconds":41.0,"sampling_error":0.016}},
            "tasks":{{"exact":{{"cpu_seconds":30.0,"wall_seconds":50.0,"run_delay_seconds":5.0}},"sampled":{{"samples":9}}}}{more}}}"#
        )
    }

    #[test]
    fn a_row_for_each_run() {
        let change = r#","changed":{"before_seconds":40.0,"after_seconds":48.0,"chance":0.001},"waited":{"seconds":9.0,"by":{"shuffle":9.0}}"#;
        let running = r#","run":-1,"ended":null,"running":true,"exact":null"#;
        let body = format!(
            r#"{{{HEAD},"count":3,"cut":1,"runs":[{},{}]}}"#,
            row("etl", "app-1", change),
            row("etl", "app-2", running)
                .replacen(r#""exact":{"cpu_seconds":41.5},"#, "", 1)
                .replacen(r#""run":-2,"#, "", 1)
                .replacen(r#""ended":"2026-11-21T17:01:03.000Z","#, "", 1)
        );
        let params = vec![(param::LIMIT, "2".to_owned()), (param::JOB, "etl".to_owned())];
        let (target, printed, result) = ask::<Runs>(&["--user", "ann"], route::RUNS.path, params, 200, &body);
        result.unwrap();
        assert_eq!(target, "/api/v1/runs?user=ann&type=cpu&limit=2&job=etl");
        assert!(
            printed.contains("app-1  17:00:03.000Z  17:01:03.000Z  60.00 s") && printed.contains("41.50 s"),
            "{printed}"
        );
        assert!(printed.contains("shuffle 18 %, cpu 10 %  +20.00 % from here on"), "{printed}");
        assert!(printed.contains("running") && printed.contains("41.00 s +- 1.6 %"), "{printed}");
        assert!(printed.contains("and 1 earlier run:") && !printed.contains("JOB"), "{printed}");
        assert!(!printed.contains("CORE-HOURS"), "{printed}");
    }

    #[test]
    fn what_executors_reserved_has_columns_where_it_is_known() {
        let reserved = |more: &str| format!(r#","reserved":{{"executors":2,"core_hours":12.5{more}}}"#);
        let print = |one: &str, other: &str| {
            let rows = [row("etl", "app-1", one), row("etl", "app-2", other)].join(",");
            let body = format!(r#"{{{HEAD},"count":2,"runs":[{rows}]}}"#);
            let (_, printed, result) = ask::<Runs>(&[], route::RUNS.path, Vec::new(), 200, &body);
            result.unwrap();
            printed
        };
        let printed = print(&reserved(r#","gib_hours":0.25,"cost":3.0"#), "");
        assert!(printed.contains("CORE-HOURS  GIB-HOURS  COST"), "{printed}");
        assert!(printed.contains("12.50     0.2500  3.00"), "{printed}");
        let printed = print(&reserved(""), "");
        assert!(printed.contains("CORE-HOURS") && !printed.contains("GIB-HOURS  "), "{printed}");
    }

    #[test]
    fn jobs_are_told_apart_where_there_are_several() {
        let body =
            format!(r#"{{{HEAD},"count":2,"runs":[{},{}]}}"#, row("etl", "a", ""), row("report", "b", ""));
        let (_, printed, result) = ask::<Runs>(&[], route::RUNS.path, Vec::new(), 200, &body);
        result.unwrap();
        assert!(printed.contains("JOB     USER") && printed.contains("report  ann"), "{printed}");
        assert!(!printed.contains("CHANGED:"), "{printed}");
    }
}
