//! Stages as a daemon answers them, with and without what Spark says.

use super::*;
use crate::cli::ask::tests::ask;
use clap::Parser;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    stages: StagesArgs,
}

const HEAD: &str = r#""range":{"from":"2026-11-21T10:00:00.000Z","until":"2026-11-21T10:01:00.000Z"},
    "windows":6,"quality":{"samples":4481,"lost":0,"truncated":0},"count":1"#;
const FIGURES: &str = r#""exact":{"cpu_seconds":41.2,"user_seconds":38.0,"system_seconds":3.2,"wall_seconds":55.0,
    "run_delay_seconds":9.1,"blocked_seconds":4.7,"voluntary_switches":812,"involuntary_switches":4021,
    "minor_faults":20113,"major_faults":3,"read_bytes":1048576,"written_bytes":0,"begun":60},
    "sampled":{"samples":4081,"cpu_seconds":41.22,"sampling_error":0.0157}"#;
const SEEN: &str = r#""first_seen":"2026-11-21T10:00:03.120Z","last_seen":"2026-11-21T10:00:41.007Z""#;
const NO_HELPERS: &str =
    r#""helpers":{"exact":null,"sampled":{"samples":0,"cpu_seconds":0.0,"sampling_error":null}}"#;

fn stage(number: u32, more: &str) -> String {
    format!(
        r#"{{"app":"app-1","app_name":"etl","stage":"{number}","stage_attempt":"0","tasks":60,"begun":60,
        "executors":2,{SEEN},{FIGURES},{more}}}"#
    )
}

fn shown(stages: &[String]) -> String {
    let body = format!(r#"{{{HEAD},"stages":[{}]}}"#, stages.join(","));
    let (_, printed, result) = ask::<Stages>(&["--app", "etl"], route::STAGES.path, vec![], 200, &body);
    result.unwrap();
    printed
}

#[test]
fn a_row_for_each_stage() {
    let unheard = r#"{"app":"app-1","app_name":null,"stage":"unknown","stage_attempt":null,"tasks":1,"begun":null,"executors":1,
        "first_seen":"2026-11-21T10:00:00.000Z","last_seen":"2026-11-21T10:00:10.000Z","exact":null,
        "sampled":{"samples":0,"cpu_seconds":0.0,"sampling_error":null},"classes":[]}"#;
    let want = "STAGE    TASKS      CPU     USER  KERNEL  RUN DELAY  BLOCKED           SAMPLED  FIRST SEEN     LAST SEEN\n\
                3.0         60  41.20 s  38.00 s  3.20 s     9.10 s   4.70 s  41.22 s +- 1.6 %  10:00:03.120Z  10:00:41.007Z\n\
                unknown      1        -        -       -          -        -                 -  10:00:00.000Z  10:00:10.000Z\n\
                exact, from the kernel's accounts of each thread, except SAMPLED: from n samples, +- the standard error 1/sqrt(n)\n\
                6 windows from 2026-11-21T10:00:00.000Z until 2026-11-21T10:01:00.000Z: 4481 samples (+- 1.5 %), 0 lost \
                on the node, 0 with a stack cut short\n";
    assert_eq!(shown(&[stage(3, NO_HELPERS), unheard.to_owned()]), want);
}

#[test]
fn what_spark_says_stands_beside() {
    let spark = |name: &str, status: &str, tasks: u32| {
        format!(
            r#"{NO_HELPERS},"spark":{{"name":"{name}","description":null,"job_ids":[1],"sql_id":4,
            "sql_description":"nightly \u001b[31m","status":"{status}","tasks":{tasks},"executor_cpu_ns":40000000000,
            "deserialize_cpu_ns":900000000,"run_time_ms":54000}}"#
        )
    };
    let (whole, part) = (spark("save at Etl.scala:12", "COMPLETE", 60), spark("", "COMPLETE", 61));
    let printed =
        shown(&[stage(3, &whole), stage(4, &part), stage(5, &spark("", "ACTIVE", 60)), stage(6, NO_HELPERS)]);
    let lines: Vec<&str> = printed.lines().collect();
    let cells = |line: usize| {
        lines[line].split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>()
    };
    assert_eq!(cells(0)[..5], ["STAGE", "TASKS", "CPU", "SPARK'S CPU", "OVERHEAD A TASK"]);
    assert_eq!(cells(1)[..5], ["3.0", "60", "41.20 s", "40.90 s", "5.00 ms"]);
    assert_eq!(cells(1).last(), Some(&"nightly \\u{1b}[31m: save at Etl.scala:12"));
    // Retries, or a stage that still runs: Spark's sum is not of the same tasks.
    for line in [2, 3] {
        assert_eq!(cells(line)[3..5], ["40.90 s", "-"], "{printed}");
    }
    assert_eq!((cells(4)[3], cells(4).last()), ("-", Some(&"-")), "{printed}");
    assert!(printed.contains("OVERHEAD A TASK: (CPU - SPARK'S CPU) / TASKS"), "{printed}");
}

#[test]
fn helpers_and_apps_have_columns_where_there_are_any() {
    let helped = stage(3, &format!(r#""helpers":{{{FIGURES}}}"#));
    let other = stage(3, NO_HELPERS).replace("app-1", "app-2");
    let printed = shown(&[helped, other]);
    assert!(printed.starts_with("APP    STAGE  TASKS"), "{printed}");
    assert!(printed.lines().next().unwrap().contains("HELPERS"), "{printed}");
    assert!(printed.lines().any(|line| line.starts_with("app-2  3.0")), "{printed}");
    assert!(!printed.contains("PYTHON"), "{printed}");
    let python = stage(3, &format!(r#"{NO_HELPERS},"python":{{{FIGURES}}}"#));
    let printed = shown(&[python, stage(4, NO_HELPERS)]);
    let header = printed.lines().next().unwrap();
    assert!(header.contains("PYTHON") && !header.contains("HELPERS"), "{printed}");
    assert!(printed.contains("PYTHON: CPU of the tasks' Python workers"), "{printed}");
}

#[test]
fn classes_have_rows_of_their_own() {
    let classes = format!(
        r#"{NO_HELPERS},"classes":[{{"thread_class":"task",{FIGURES}}},
        {{"thread_class":"python","exact":null,"sampled":{{"samples":100,"cpu_seconds":1.01,"sampling_error":0.1}}}}]"#
    );
    let body = format!(r#"{{{HEAD},"stages":[{}]}}"#, stage(3, &classes));
    let args = Line::try_parse_from(["x", "--classes", "--spark-url", "http://h:18080"]).unwrap().stages;
    assert!(args.classes);
    let (target, printed, result) = ask::<ByClass>(&[], route::STAGES.path, args.spark.params(), 200, &body);
    result.unwrap();
    assert_eq!(target, "/api/v1/stages?type=cpu&join=no", "the daemon fetches no address of a client's");
    assert!(args.spark.source().is_some());
    let want = "STAGE  CLASS       CPU     USER  KERNEL  RUN DELAY           SAMPLED\n\
                3.0    task    41.20 s  38.00 s  3.20 s     9.10 s  41.22 s +- 1.6 %\n\
                3.0    python        -        -       -          -  1.01 s +- 10.0 %\n";
    assert!(printed.starts_with(want), "{printed}");
}

#[test]
fn of_another_kind_there_is_its_amount() {
    let of_kind = |samples: u32, bytes: u64, error: f64| {
        format!(r#""sampled":{{"samples":{samples},"allocated_bytes":{bytes},"sampling_error":{error}}}"#)
    };
    let (exact, _) = FIGURES.split_once(r#""sampled""#).unwrap();
    let of = |number: u32, own: String, helpers: String| {
        let figures = format!("{exact}{own}");
        let more = format!(
            r#""helpers":{{"exact":null,{helpers}}},"classes":[{{"thread_class":"task",{figures}}}]"#
        );
        stage(number, &more).replace(FIGURES, &figures)
    };
    let rows = [
        of(4, of_kind(300, 3 << 20, 0.0577), of_kind(100, 1 << 20, 0.1)),
        of(3, of_kind(0, 0, 0.0), of_kind(0, 0, 0.0)),
    ];
    let body = format!(r#"{{"type":"alloc",{HEAD},"stages":[{}]}}"#, rows.join(","));
    let flags = ["--app", "etl", "--type", "alloc"];
    let (target, printed, result) = ask::<Stages>(&flags, route::STAGES.path, vec![], 200, &body);
    result.unwrap();
    assert_eq!(target, "/api/v1/stages?app=etl&type=alloc");
    let lines: Vec<Vec<&str>> = printed
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    let at = lines[0].iter().position(|name| *name == "ALLOCATED").unwrap();
    assert_eq!((lines[1][0], lines[1][at]), ("4.0", "4.0 MiB +- 5.0 %"), "{printed}");
    assert_eq!((lines[2][0], lines[2][at]), ("3.0", "-"), "{printed}");
    assert_eq!((lines[1][2], lines[2][2]), ("41.20 s", "41.20 s"), "what is exact stays: {printed}");
    assert!(printed.contains("accounts of each thread, except ALLOCATED: from n samples"), "{printed}");
    assert!(printed.contains("ALLOCATED: allocated memory, of the tasks' own threads,"), "{printed}");
    let (_, printed, _) = ask::<ByClass>(&flags, route::STAGES.path, vec![], 200, &body);
    assert!(printed.lines().next().unwrap().ends_with("ALLOCATED"), "{printed}");
    assert!(printed.lines().nth(1).unwrap().ends_with("3.0 MiB +- 5.8 %"), "{printed}");
}

#[test]
fn no_stage_is_nothing_found() {
    let (_, printed, result) = ask::<Stages>(
        &["--stage", "99"],
        route::STAGES.path,
        vec![],
        200,
        &format!(r#"{{{HEAD},"stages":[]}}"#),
    );
    let error = result.unwrap_err();
    assert_eq!((printed.as_str(), error.code()), ("", crate::cli::code::NOTHING));
    assert!(error.to_string().starts_with("no stage with stage=99 from 2026-"), "{error}");
}

#[test]
fn stages_are_asked_for_in_an_order_and_not_all() {
    let params = |flags: &[&str]| {
        let line =
            Line::try_parse_from(std::iter::once(&"x").chain(flags)).map_err(|error| error.to_string());
        line.map(|line| line.stages.params())
    };
    assert!(params(&["--app", "etl"]).unwrap().is_empty());
    let want = [("sort", "run_delay"), ("limit", "5")].map(|(name, value)| (name, value.to_owned()));
    assert_eq!(params(&["--sort", "run-delay", "-n", "5"]).unwrap(), want);
    assert!(params(&["--sort", "stage"]).unwrap().is_empty(), "the daemon's own order");
    let by_number = [("sort", "stage".to_owned())];
    assert_eq!(params(&["--sort", "stage", "--type", "alloc"]).unwrap(), by_number);
    assert_eq!(params(&["--sort", "amount"]).unwrap(), [("sort", "amount".to_owned())]);
    let typo = params(&["--sort", "walls"]).unwrap_err();
    assert!(typo.contains("'wall'"), "{typo}");
    let body = format!(r#"{{{HEAD},"cut":7,"stages":[{}]}}"#, stage(3, NO_HELPERS));
    let (_, printed, _) = ask::<Stages>(&["--app", "etl"], route::STAGES.path, vec![], 200, &body);
    assert!(printed.contains("and 7 more stages: see them with --limit\n"), "{printed}");
}
