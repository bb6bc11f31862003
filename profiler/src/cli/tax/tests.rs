//! Taxes as a daemon answers them: of an app, of a stage, by accounts and by samples.

use super::*;
use crate::cli::ask::tests::ask;
use clap::Parser;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    tax: TaxArgs,
}

const HEAD: &str = r#""range":{"from":"2026-11-21T10:00:00.000Z","until":"2026-11-21T10:01:00.000Z"},"windows":6,
    "quality":{"samples":500,"lost":0,"truncated":0}"#;
const TASK: &str = r#"{"thread_class":"task","source":"ledger","cpu_seconds":3.0,"user_seconds":2.5,
    "system_seconds":0.5,"user_error":null,"system_error":null,"share":0.75,"share_error":null,"samples":300,
    "sampled_cpu_seconds":3.03,"sampling_error":0.0577}"#;
const GC: &str = r#"{"thread_class":"gc","source":"ledger","cpu_seconds":1.0,"user_seconds":1.0,"system_seconds":0.0,
    "share":0.25,"share_error":null,"samples":100,"sampled_cpu_seconds":1.01,"sampling_error":0.1}"#;
const SQL: &str = r#"{"thread_class":"sql","source":"ledger","cpu_seconds":0.0,"user_seconds":0.0,"system_seconds":0.0,
    "share":0.0,"samples":0,"sampled_cpu_seconds":0.0,"sampling_error":null}"#;
const TOTAL: &str = r#"{"cpu_seconds":4.0,"user_seconds":3.5,"system_seconds":0.5,"samples":400,
    "sampled_cpu_seconds":4.04,"sampling_error":0.05}"#;

fn body(source: &str, stage: &str, classes: &str) -> String {
    format!(
        r#"{{{HEAD},"source":"{source}","stage":{stage},"total":{TOTAL},"classes":[{classes}],
        "processes":[{{"node":"n1","pid":11,"app":"app-1","app_name":"etl","role":"executor","executor":"1",
        "process":"java","source":"{source}","total":{TOTAL},"classes":[{classes}]}}],
        "beside":[{{"node":"n1","pid":null,"app":"app-1","app_name":null,"role":"python","executor":null,
        "process":"python3","samples":100,"cpu_seconds":1.01,"sampling_error":0.1}}]}}"#
    )
}

#[test]
fn classes_their_sum_and_processes() {
    let classes = [TASK, GC, SQL].join(",");
    let (target, printed, result) =
        ask::<Tax>(&["--app", "etl"], route::TAX.path, vec![], 200, &body("ledger", "null", &classes));
    result.unwrap();
    assert_eq!(target, "/api/v1/tax?app=etl&type=cpu");
    let want = "CLASS      CPU     SHARE     USER    KERNEL           SAMPLED\n\
                task    3.00 s   75.00 %   2.50 s  500.0 ms   3.03 s +- 5.8 %\n\
                gc      1.00 s   25.00 %   1.00 s   0.00 ms  1.01 s +- 10.0 %\n\
                sql    0.00 ms    0.00 %  0.00 ms   0.00 ms                 -\n\
                sum     4.00 s  100.00 %   3.50 s  500.0 ms   4.04 s +- 5.0 %\n\
                exact, from the kernel's accounts of each thread, except SAMPLED: from n samples, +- the standard error 1/sqrt(n)\n\
                \n\
                PID  APP    ROLE      EXECUTOR     CPU    USER    KERNEL     task       gc  BY\n \
                11  app-1  executor  1         4.00 s  3.50 s  500.0 ms  75.00 %  25.00 %  ledger\n\
                \n\
                PID  APP    ROLE    EXECUTOR  PROCESS  SAMPLES               CPU\n  \
                 -  app-1  python  -         python3      100  1.01 s +- 10.0 %\n\
                not JVMs, and in no sum above\n";
    assert!(printed.starts_with(want), "{printed}");
}

#[test]
fn a_stage_says_whose_time_it_is_and_samples_have_errors() {
    let stage = r#"{"tasks":60,"first_seen":"2026-11-21T10:00:03.120Z","last_seen":"2026-11-21T10:00:41.007Z",
        "executors":["1"],"source":"ledger","cpu_seconds":41.9,"sampling_error":null}"#;
    let by_samples = TASK
        .replace("ledger", "samples")
        .replace(r#""user_error":null"#, r#""user_error":0.063"#)
        .replace(r#""share_error":null"#, r#""share_error":0.0217"#);
    let (_, printed, result) =
        ask::<Tax>(&["--stage", "3"], route::TAX.path, vec![], 200, &body("samples", stage, &by_samples));
    result.unwrap();
    assert!(printed.contains("75.00 +- 2.17 %  2.50 s +- 6.3 %"), "{printed}");
    assert!(printed.contains("\nby samples: +- is the standard error"), "{printed}");
    let line = "the JVMs that ran the stage's 60 tasks (41.90 s of CPU, helpers and Python included), with all that they did \
                in the windows from 10:00:03.120Z to 10:00:41.007Z\n";
    assert!(printed.contains(line), "{printed}");
}

#[test]
fn a_figure_that_is_not_sent_is_no_zero() {
    let no_times = r#"{"thread_class":"task","source":"ledger","samples":3,"share":0.5}"#;
    let stage =
        r#"{"tasks":60,"first_seen":"2026-11-21T10:00:03.120Z","last_seen":"2026-11-21T10:00:41.007Z"}"#;
    let body = body("ledger", stage, no_times).replace(r#""cpu_seconds":1.01,"#, "").replace(TOTAL, "{}");
    let (_, printed, result) = ask::<Tax>(&["--stage", "3"], route::TAX.path, vec![], 200, &body);
    result.unwrap();
    let mut lines = printed.lines();
    let mut cells = || lines.next().unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(cells(), ["CLASS", "CPU", "SHARE", "USER", "KERNEL", "SAMPLED"]);
    assert_eq!(cells(), ["task", "-", "50.00", "%", "-", "-", "-"]);
    assert_eq!(cells(), ["sum", "-", "-", "-", "-", "-"]);
    assert!(printed.contains("ran the stage's 60 tasks, with all that they did"), "{printed}");
    assert!(printed.contains("python3      100    -\n") && !printed.contains("0.00 ms"), "{printed}");
}

#[test]
fn an_unknown_stage_and_no_jvm_are_nothing_found() {
    let unknown = r#"{"error":{"code":"unknown_stage","message":"No task of stage `9` was seen; there are: 3.","parameter":"stage"}}"#;
    let error = ask::<Tax>(&["--stage", "9"], route::TAX.path, vec![], 404, unknown).2.unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        (3, "No task of stage `9` was seen; there are: 3.")
    );
    let none = format!(
        r#"{{{HEAD},"source":"ledger","stage":null,"total":{TOTAL},"classes":[{TASK}],"processes":[]}}"#
    );
    let error = ask::<Tax>(&["--process", "cron"], route::TAX.path, vec![], 200, &none).2.unwrap_err();
    assert_eq!(error.code(), 3);
    assert!(error.to_string().starts_with("no JVM with process=cron from"), "{error}");
}

#[test]
fn a_class_is_no_choice_here() {
    let args = Line::try_parse_from(["x", "--thread-class", "gc"]).unwrap().tax;
    let error = run(&args).unwrap_err();
    assert_eq!(error.code(), crate::cli::code::USAGE);
    assert!(error.to_string().contains("emberscope top --thread-class"), "{error}");
}
