//! Differences as a daemon answers them, and calls that are wrong.

use super::*;
use crate::cli::code;
use crate::cli::fake::Fake;
use clap::Parser;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    diff: DiffArgs,
}

fn line(flags: &[&str]) -> Result<DiffArgs, String> {
    let line = Line::try_parse_from(std::iter::once(&"x").chain(flags));
    line.map(|line| line.diff).map_err(|error| error.to_string())
}

const SLOW: &str = r#"{"scale":"task","window_seconds":10,"span":null,
 "left":{"name":"median","range":{"from":"A","until":"B"},"windows":6,"quality":{"samples":1210,"lost":0,"truncated":0},
         "samples":1210,"cpu_seconds":12.2,"sampling_error":0.0287,"factor":0.0833,"tasks":[],"task_count":12,"task_cpu_seconds":12.3},
 "right":{"name":"slow","range":{"from":"A","until":"B"},"windows":6,"quality":{"samples":400,"lost":0,"truncated":2},
         "samples":400,"cpu_seconds":18.1,"sampling_error":0.05,"factor":0.166,"tasks":[],"task_count":6,"task_cpu_seconds":18.6},
 "slow":{"tasks":60,"source":"ledger","p40_cpu_seconds":0.97,"p60_cpu_seconds":1.04,"p90_cpu_seconds":2.9,"by":"cpu",
  "because":[{"of":"shuffle","seconds":1.42,"share":0.71},{"of":"run_delay","seconds":0.58,"share":0.29},{"of":"gc","seconds":0.001,"share":0.0005}]},
 "total":{"left_seconds":1.02,"right_seconds":3.1,"difference":2.08,"difference_error":0.13},
 "cause":{"name":"Job.slow","module":""},"sort":"self","methods":341,"cut":340,
 "diff":[{"name":"Job.slow","module":"","kinds":["java"],
   "self":{"left_seconds":0.0,"right_seconds":2.0,"difference":2.0,"difference_error":0.1,"left_samples":0,"right_samples":400},
   "total":{"left_seconds":0.0,"right_seconds":2.05,"difference":2.05,"difference_error":0.1,"left_samples":0,"right_samples":410}}]}"#;

fn listed(flags: &[&str], status: u16, body: &str) -> (String, String, Result<(), CliError>) {
    let fake = Fake::answering(status, &[], body);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let result = list(&line(flags).unwrap(), &fake.client(None), None, &mut out, &mut err);
    (fake.request().target, String::from_utf8([out, err].concat()).unwrap(), result)
}

#[test]
fn slow_tasks_against_the_usual_ones() {
    let (target, printed, result) = listed(&["--app", "etl", "--stage", "3", "--slow"], 200, SLOW);
    result.unwrap();
    assert_eq!(target, "/api/v1/diff?app=etl&stage=3&type=cpu&slow=1&format=json&sort=self&limit=30");
    let want = "               SELF     LEFT   RIGHT                TOTAL  METHOD    MODULE\n\
                +2.00 s +- 100.0 ms  0.00 ms  2.00 s  +2.05 s +- 100.0 ms  Job.slow  -\n\
                +2.08 s +- 130.0 ms   1.02 s  3.10 s                    -  (all)     -\n\
                and 340 more methods: see them with --limit\n\
                most of the difference comes from Job.slow\n\
                of the stage's 60 tasks, right are those that used the most CPU (above the 90th percentile, 2.90 s), \
                left those from the 40th to the 60th (970.0 ms to 1.04 s)\n\
                slow because of: shuffle 71 % (1.42 s a task), run delay 29 % (580.0 ms a task)\n\
                by samples; times are per task; +- is the standard error, sqrt(l^2/m + r^2/n) of times l and r of \
                m and n samples\n\
                left (median): 12 tasks of 12.30 s CPU in all, 12.20 s sampled, 6 windows from A until B: 1210 samples \
                (+- 2.9 %), 0 lost on the node, 0 with a stack cut short\n\
                right (slow): 6 tasks of 18.60 s CPU in all, 18.10 s sampled, 6 windows from A until B: 400 samples \
                (+- 5.0 %), 0 lost on the node, 2 with a stack cut short\n";
    assert_eq!(printed.trim_start(), want.trim_start());
}

#[test]
fn what_lies_within_the_error_is_no_difference() {
    let flags = ["--app", "etl", "--stage", "3", "--slow", "--by", "cpu"];
    let within =
        SLOW.replace(r#""cause":{"name":"Job.slow","module":""}"#, r#""cause":null,"significant":false"#);
    let (target, printed, result) = listed(&flags, 200, &within);
    result.unwrap();
    assert!(target.contains("&slow=1&by=cpu&"), "{target}");
    let want =
        "no significant difference: neither the whole nor a method differs by more than chance explains\n";
    assert!(printed.contains(want) && !printed.contains("comes from"), "{printed}");
    // A daemon that says both is not believed about the cause.
    let both = SLOW.replace(r#""sort":"self""#, r#""sort":"self","significant":false"#);
    let (_, printed, _) = listed(&flags, 200, &both);
    assert!(printed.contains(want) && !printed.contains("comes from"), "{printed}");
}

#[test]
fn slow_by_wall_time_is_told() {
    let flags = ["--app", "etl", "--stage", "3", "--slow"];
    let long = r#""by":"cpu","long":{"task":"77","task_index":"29","task_attempt":"0","executor":"1","cpu_seconds":4.1,
        "wall_seconds":16.2,"blocked_seconds":12.1,"usual_wall_seconds":4.2,"waits_sampled":false}"#;
    let (_, printed, result) = listed(&flags, 200, &SLOW.replace(r#""by":"cpu""#, long));
    result.unwrap();
    let want = "task 29.0 on executor 1 took 16.20 s, 12.10 s of it blocked, where the usual ones took 4.20 s: compare \
                with --by wall; up to Spark 4.1";
    assert!(printed.contains(want), "{printed}");
    let sampled = long.replace("false", "true");
    let (_, printed, _) = listed(&flags, 200, &SLOW.replace(r#""by":"cpu""#, &sampled));
    assert!(printed.contains("compare with --by wall\n"), "{printed}");
    let wall = SLOW
        .replace("_cpu_seconds\":0.97", "_wall_seconds\":0.97")
        .replace(r#""by":"cpu""#, r#""by":"wall""#);
    let (_, printed, _) = listed(&flags, 200, &wall);
    assert!(
        printed.contains("right are those that took the longest") && printed.contains("--type wall"),
        "{printed}"
    );
}

#[test]
fn what_is_no_time_has_its_unit_in_every_heading() {
    let of = |kind: &str, key: &str| {
        let body = SLOW.replace("left_seconds", "left_amount").replace("right_seconds", "right_amount");
        let body = body.replace(r#""left":{"name""#, &format!(r#""left":{{"type":"{kind}","name""#));
        let body = body.replace(r#""right":{"name""#, &format!(r#""right":{{"type":"{kind}","name""#));
        // Of the sides themselves, not of their tasks.
        let body = body.replace(r#","cpu_seconds":12.2"#, &format!(r#","{key}":12582912"#));
        let body = body.replace(r#","cpu_seconds":18.1"#, &format!(r#","{key}":25165824"#));
        let total = r#""left_amount":1.02,"right_amount":3.1,"difference":2.08,"difference_error":0.13"#;
        let sides = r#""left_amount":1048576.0,"right_amount":4194304.0"#;
        body.replace(total, &format!(r#"{sides},"difference":3145728.0,"difference_error":524288.0"#))
    };
    let flags = ["--app", "etl", "--stage", "3", "--slow", "--type", "alloc"];
    let (target, printed, result) = listed(&flags, 200, &of("alloc", "allocated_bytes"));
    result.unwrap();
    assert_eq!(target, "/api/v1/diff?app=etl&stage=3&type=alloc&slow=1&format=json&sort=self&limit=30");
    let head = printed.lines().next().unwrap().split("  ").map(str::trim);
    let head: Vec<&str> = head.filter(|name| !name.is_empty()).collect();
    assert_eq!(head[..4], ["SELF BYTES", "LEFT BYTES", "RIGHT BYTES", "TOTAL BYTES"], "{printed}");
    let whole = printed.lines().find(|line| line.contains("(all)")).unwrap();
    assert!(whole.trim_start().starts_with("+3.0 MiB +- 512.0 KiB"), "{printed}");
    assert!(whole.contains("  1.0 MiB") && whole.contains("  4.0 MiB"), "{printed}");
    assert!(printed.contains("\nmethods are compared by allocated memory\n"), "{printed}");
    let how = "by samples of allocated memory; bytes are per task; +- is the standard error, sqrt(l^2/m + r^2/n) of \
               bytes l and r of m and n samples\n";
    assert!(printed.contains(how), "{printed}");
    assert!(printed.contains("12 tasks of 12.30 s CPU in all, 12.0 MiB sampled, 6 windows"), "{printed}");
    let (_, printed, _) = listed(&flags, 200, &of("page-faults", "page_faults"));
    let whole = printed.lines().find(|line| line.contains("(all)")).unwrap();
    assert!(whole.trim_start().starts_with("+3145728 +- 524288  "), "{printed}");
    assert!(printed.contains("12582912 faults sampled"), "{printed}");
    let (_, printed, _) = listed(&flags, 200, &SLOW.replace(r#"{"name""#, r#"{"type":"off-cpu","name""#));
    assert!(printed.trim_start().starts_with("SELF     LEFT   RIGHT"), "{printed}");
    assert!(printed.contains("by samples of waiting; times are per task;"), "{printed}");
}

#[test]
fn two_sides_and_what_holds_for_both() {
    let body = SLOW.replace(r#""sort":"self""#, r#""sort":"total""#).replace("Job.slow", "Job\\u001b[2J");
    let flags = [
        "--left",
        "app=a,stage=3,4",
        "--right",
        "app=b,from=-1h",
        "--thread-class",
        "task",
        "--sort",
        "total",
        "--scale",
        "absolute",
        "--limit",
        "5",
    ];
    let (target, printed, result) = listed(&flags, 200, &body);
    result.unwrap();
    let want = "/api/v1/diff?thread_class=task&type=cpu&left.app=a&left.stage=3&left.stage=4&right.app=b&right.from=-1h\
                &scale=absolute&format=json&sort=total&limit=5";
    assert_eq!(target, want);
    assert!(printed.trim_start().starts_with("TOTAL     LEFT   RIGHT"), "{printed}");
    assert!(printed.contains("Job\\u{1b}[2J") && !printed.contains('\u{1b}'), "{printed}");
}

#[test]
fn json_is_passed_on_and_an_empty_side_is_nothing_found() {
    let (_, printed, result) = listed(&["--app", "a", "--stage", "3", "--slow", "--json"], 200, SLOW);
    result.unwrap();
    assert_eq!(printed, format!("{SLOW}\n"));
    let empty = SLOW.replacen(r#""quality":{"samples":1210"#, r#""quality":{"samples":0"#, 1);
    let error = listed(&["--left", "stage=99", "--app", "etl"], 200, &empty).2.unwrap_err();
    assert_eq!(error.code(), code::NOTHING);
    assert_eq!(error.to_string(), "no sample on the left side with stage=99 app=etl from A until B");
}

#[test]
fn refusals_of_the_daemon_have_their_codes() {
    let refused = |status, code: &str| {
        let body = format!(r#"{{"error":{{"code":"{code}","message":"No.","parameter":"stage"}}}}"#);
        listed(&["--app", "a", "--stage", "9", "--slow"], status, &body).2.unwrap_err()
    };
    let error = refused(404, "unknown_stage");
    assert_eq!((error.code(), error.to_string().as_str()), (code::NOTHING, "stage: No."));
    assert_eq!(refused(422, "too_few_tasks").code(), code::FAILURE);
}

#[test]
fn a_figure_that_is_not_sent_is_no_zero() {
    let body = SLOW
        .replace(r#","task_cpu_seconds":12.3"#, "")
        .replace(r#""left_seconds":1.02,"right_seconds":3.1,"difference":2.08,"difference_error":0.13"#, "")
        .replace(r#""left_seconds":0.0,"right_seconds":2.0,"difference":2.0,"#, r#""right_seconds":2.0,"#);
    let (_, printed, result) = listed(&["--app", "etl", "--stage", "3", "--slow"], 200, &body);
    result.unwrap();
    let row = |name: &str| {
        let line = printed.lines().find(|line| line.contains(name)).unwrap();
        line.split_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(row("Job.slow")[..4], ["-", "-", "2.00", "s"]);
    assert_eq!(row("(all)"), ["-", "-", "-", "-", "(all)", "-"]);
    assert!(printed.contains("left (median): 12 tasks, 12.20 s sampled, "), "{printed}");
}

#[test]
fn a_picture_goes_to_a_file_and_both_sides_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("slow.svg");
    let headers = [
        ("X-Emberscope-Samples", "400"),
        ("X-Emberscope-Windows", "6"),
        ("X-Emberscope-Left-Samples", "100"),
        ("X-Emberscope-Left-Windows", "1"),
    ];
    let drawn = |headers: &[(&str, &str)], flags: &[&str]| {
        let fake = Fake::answering(200, headers, "<svg/>");
        let args = line(flags).unwrap();
        let graph = args.output.decide().unwrap().unwrap();
        let mut err = Vec::new();
        let result = draw(&args, &graph, &fake.client(None), &mut err);
        (fake.request().target, String::from_utf8(err).unwrap(), result)
    };
    let flags = ["--left", "stage=3", "--right", "stage=4", "--app", "a", "-o", file.to_str().unwrap()];
    let (target, told, result) = drawn(&headers, &flags);
    result.unwrap();
    assert_eq!(target, "/api/v1/diff?app=a&type=cpu&left.stage=3&right.stage=4&format=svg");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "<svg/>");
    assert!(told.contains("slow.svg: 6 windows") && told.contains("\nagainst 1 window from"), "{told}");

    let json = [&flags[..6], &["--format", "json", "-o", file.to_str().unwrap()]].concat();
    let (target, ..) = drawn(&headers, &json);
    assert!(target.ends_with("&format=json&sort=self&limit=30&nodes=1"), "{target}");

    std::fs::remove_file(&file).unwrap();
    let (_, told, result) = drawn(&headers[..2], &flags);
    let error = result.unwrap_err();
    assert_eq!((told.as_str(), error.code(), file.exists()), ("", code::NOTHING, false));
    assert!(error.to_string().starts_with("no sample on the left side with stage=3 app=a"), "{error}");
}

#[test]
fn calls_that_are_wrong_say_what_is_missing() {
    let wrong = |flags: &[&str]| line(flags).unwrap_err();
    assert!(wrong(&["--slow", "--app", "a"]).contains("--stage"), "{}", wrong(&["--slow", "--app", "a"]));
    assert!(wrong(&["--slow", "--stage", "3"]).contains("--app"));
    assert!(wrong(&[]).contains("--left"));
    let typo = wrong(&["--left", "stgae=3", "--right", "stage=4"]);
    assert!(typo.contains("did you mean `stage`?") && typo.contains("--left"), "{typo}");
    assert!(
        wrong(&["--slow", "--app", "a", "--stage", "3", "--left", "stage=4"]).contains("cannot be used with")
    );
    assert!(wrong(&["--left", "stage=3", "--json", "-o", "a.svg"]).contains("cannot be used with"));
    assert!(wrong(&["--left", "stage=3", "--by", "wall"]).contains("--slow"));
    assert!(line(&["--right", "stage=3"]).is_ok());
    let one = line(&["--left", "stage=3", "-o", "a.speedscope.json"]).unwrap().output.decide().unwrap_err();
    assert!(one.code() == code::USAGE && one.to_string().contains("hold one answer"), "{one}");
    let ending = line(&["--left", "stage=3", "-o", "a.png"]).unwrap().output.decide().unwrap_err();
    assert_eq!(ending.code(), code::USAGE);
}
