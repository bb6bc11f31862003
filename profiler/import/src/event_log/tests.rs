//! Recorded logs against what the same application's REST API said; logs that are cut, rolled, and made to harm.

use super::*;
use emberscope_model::{PlanNode, SparkFactKind, SparkPlan};
use emberscope_target::spark_words::Words;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

mod settings;

/// Logs and REST answers of one run each, recorded just before `stop()`: joins, a subquery, an exchange that is used
/// again, a cached table, a job that failed and a query that failed; with AQE and without. Cut to what is read.
///
/// Up to 3.0 REST has no SQL, nor the CPU time of reading tasks in: that is of the log alone.
const RECORDED: [(&str, &[u8], &str); 4] = [
    ("2.4.8", include_bytes!("recorded/2.4.8.log"), include_str!("recorded/2.4.8.json")),
    ("3.1.3", include_bytes!("recorded/3.1.3.log"), include_str!("recorded/3.1.3.json")),
    ("3.5.9", include_bytes!("recorded/3.5.9.log"), include_str!("recorded/3.5.9.json")),
    ("4.3.0", include_bytes!("recorded/4.3.0.log.zstd"), include_str!("recorded/4.3.0.json")),
];

fn read(bytes: &[u8]) -> Result<EventLogFacts, ImportError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app-1.log");
    fs::write(&path, bytes).unwrap();
    EventLog::find(&path, None)?.remove(0).read()
}

fn words(value: &Value) -> String {
    serde_json::from_value::<Words>(value.clone()).unwrap().0
}

fn millis(value: &Value) -> Option<WallTime> {
    let text = value.as_str()?.strip_suffix("GMT")?.to_owned() + "Z";
    let time: jiff::Timestamp = text.parse().unwrap();
    Some(WallTime::from_millis(time.as_millisecond() as u64))
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

/// A fact as a line: kind, id, attempt, and what else both sides tell.
fn line(fact: &SparkFact) -> String {
    let SparkFact { kind, id, attempt, name, description, status, refs, count, .. } = fact;
    let figures = (fact.executor_cpu_ns, fact.deserialize_cpu_ns, fact.run_time_ms, fact.begun, fact.ended);
    format!("{kind:?} {id} {attempt}: {name:?} {description:?} {status} {refs:?} {count} {figures:?}")
}

/// What REST said, as the same lines.
fn said(rest: &Value) -> Vec<String> {
    let empty = |kind| SparkFact { kind, ..SparkFact::new(kind, "") };
    let text = |value: &Value| Some(words(value)).filter(|text| !text.is_empty()).map(Into::into);
    let all = |name: &str| rest[name].as_array().unwrap().iter();
    let mut facts = Vec::new();
    let mut jobs_of: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for job in all("jobs") {
        let id = job["jobId"].as_u64().unwrap() as u32;
        ids(&job["stageIds"]).into_iter().for_each(|stage| jobs_of.entry(stage).or_default().push(id));
        facts.push(SparkFact {
            id: id.to_string().into(),
            name: words(&job["name"]).into(),
            description: text(&job["description"]),
            status: words(&job["status"]).into(),
            refs: ids(&job["stageIds"]).into(),
            count: job["numTasks"].as_u64().unwrap(),
            begun: millis(&job["submissionTime"]),
            ended: millis(&job["completionTime"]),
            ..empty(SparkFactKind::Job)
        });
    }
    for stage in all("stages").filter(|stage| stage["status"] != "SKIPPED") {
        let id = stage["stageId"].as_u64().unwrap() as u32;
        let mut refs = jobs_of.get(&id).cloned().unwrap_or_default();
        refs.sort_unstable();
        facts.push(SparkFact {
            id: id.to_string().into(),
            attempt: stage["attemptId"].as_u64().unwrap() as u32,
            name: words(&stage["name"]).into(),
            description: text(&stage["description"]),
            status: words(&stage["status"]).into(),
            refs: refs.into(),
            count: stage["numTasks"].as_u64().unwrap(),
            executor_cpu_ns: stage["executorCpuTime"].as_u64().unwrap(),
            deserialize_cpu_ns: stage["executorDeserializeCpuTime"].as_u64().unwrap_or(0),
            run_time_ms: stage["executorRunTime"].as_u64().unwrap(),
            begun: millis(&stage["submissionTime"]),
            ended: millis(&stage["completionTime"]),
            ..empty(SparkFactKind::Stage)
        });
    }
    for sql in all("sql") {
        let lists = ["runningJobIds", "successJobIds", "failedJobIds"];
        let mut refs: Vec<u32> = lists.iter().flat_map(|list| ids(&sql[list])).collect();
        refs.sort_unstable();
        let begun = millis(&sql["submissionTime"]);
        let length = std::time::Duration::from_millis(sql["duration"].as_u64().unwrap());
        let fact = SparkFact {
            id: sql["id"].to_string().into(),
            name: words(&sql["description"]).into(),
            status: words(&sql["status"]).into(),
            refs: refs.into(),
            begun,
            ended: begun.map(|begun| begun.plus(length)),
            ..empty(SparkFactKind::Sql)
        };
        if !fact.refs.is_empty() {
            facts.push(SparkPlan::fact(rest_plan(sql).as_ref().map_err(Clone::clone), &fact));
        }
        facts.push(fact);
    }
    for executor in all("executors") {
        facts.push(SparkFact {
            id: words(&executor["id"]).into(),
            name: words(&executor["hostPort"]).into(),
            status: "ACTIVE".into(),
            count: executor["totalCores"].as_u64().unwrap(),
            begun: millis(&executor["addTime"]),
            ..empty(SparkFactKind::Executor)
        });
    }
    sorted(&facts)
}

fn rest_plan(sql: &Value) -> Result<SparkPlan, String> {
    let number = |value: &Value| value.as_u64().map(|number| number as u32);
    let nodes = sql["nodes"].as_array().unwrap().iter().map(|node| PlanNode {
        id: number(&node["nodeId"]).unwrap(),
        name: words(&node["nodeName"]).into(),
        codegen: number(&node["wholeStageCodegenId"]),
    });
    let edges = sql["edges"].as_array().unwrap().iter();
    let edges = edges.map(|edge| (number(&edge["fromId"]).unwrap(), number(&edge["toId"]).unwrap()));
    SparkPlan::new(nodes.collect(), edges.collect()).map_err(|problem| problem.to_string())
}

fn sorted(facts: &[SparkFact]) -> Vec<String> {
    let mut lines: Vec<String> = facts.iter().map(line).collect();
    lines.sort();
    lines
}

/// What was recorded just before the end, when the executor still ran.
fn before_the_end(mut facts: Vec<SparkFact>) -> Vec<SparkFact> {
    for fact in facts.iter_mut().filter(|fact| fact.kind == SparkFactKind::Executor) {
        (fact.status, fact.ended, fact.description) = ("ACTIVE".into(), None, None);
    }
    facts
}

/// What REST of this version can say.
fn of_rest(version: &str, mut facts: Vec<SparkFact>) -> Vec<SparkFact> {
    if version < "3.0" {
        facts.retain(|fact| ![SparkFactKind::Sql, SparkFactKind::Plan].contains(&fact.kind));
        facts.iter_mut().for_each(|fact| fact.deserialize_cpu_ns = 0);
    }
    facts
}

/// Plans, stages, jobs and executions.
fn counted(facts: &[SparkFact]) -> [usize; 4] {
    let kinds = [SparkFactKind::Plan, SparkFactKind::Stage, SparkFactKind::Job, SparkFactKind::Sql];
    kinds.map(|kind| facts.iter().filter(|fact| fact.kind == kind).count())
}

#[test]
fn a_log_says_what_rest_says() {
    for (version, log, rest) in RECORDED {
        let rest: Value = serde_json::from_str(rest).unwrap();
        let told = read(log).unwrap();
        assert_eq!((Some(&*told.app), &*told.name), (rest["app"].as_str(), "event log job"), "{version}");
        assert_eq!(told.remarks, [""; 0], "{version}");
        let is_plan = |fact: &&SparkFact| fact.kind == SparkFactKind::Plan && fact.count > 0;
        let plans = told.facts.iter().filter(is_plan).count();
        let counts = counted(&told.facts);
        let (told, said) = (sorted(&of_rest(version, before_the_end(told.facts))), said(&rest));
        for (ours, theirs) in told.iter().zip(&said) {
            assert_eq!(ours, theirs, "{version}");
        }
        assert_eq!(told.len(), said.len(), "{version}");
        let want = if version < "3.5" { [6, 19, 10, 8] } else { [5, 19, 15, 7] };
        assert_eq!(counts, want, "{version}");
        assert_eq!(plans, want[0], "{version}: each has operators");
        assert!(!told.concat().contains("hunter2"), "{version}: a secret");
    }
}

#[test]
fn a_log_that_is_cut_is_read_as_far_as_it_goes() {
    let (_, plain, _) = RECORDED[2];
    let whole = read(plain).unwrap().facts.len();
    let told = read(&plain[..plain.len() / 2 + 7]).unwrap();
    assert!(told.facts.len() > whole / 4 && told.facts.len() < whole, "{} of {whole}", told.facts.len());
    assert!(told.remarks[0].contains("app-1.log ends inside line"), "{:?}", told.remarks);
    assert!(told.remarks[1].contains("no end of the application"), "{:?}", told.remarks);
    // Frames of some 10 KB, as Spark flushes them; the last one is torn.
    let mut packed = Vec::new();
    for some in plain.chunks(10_000) {
        packed.extend(zstd::stream::encode_all(some, 3).unwrap());
    }
    packed.truncate(packed.len() * 2 / 3);
    let told = read(&packed).unwrap();
    assert!(told.facts.len() > whole / 4 && told.facts.len() < whole, "{} of {whole}", told.facts.len());
    assert!(told.remarks[0].contains("app-1.log ends in line"), "{:?}", told.remarks);
}

#[test]
fn lines_that_make_no_sense_are_passed_over_and_counted() {
    let (_, plain, _) = RECORDED[2];
    let (whole, mut spoilt) = (read(plain).unwrap(), Vec::new());
    let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
    let deep = [&b"{\"Event\":\"SparkListenerStageSubmitted\",\"Stage Info\":"[..], &deep, b"}"].concat();
    let long = vec![b'x'; Bounds::default().line + 1];
    let bad: [&[u8]; 6] = [
        b"no event",
        b"\xff\xfe",
        b"{\"Event\":\"SparkListenerJobStart\",\"Job ID\":-1}",
        b"{\"Event\":\"SparkListenerTaskEnd\"",
        &deep,
        &long,
    ];
    for (number, text) in plain.split(|byte| *byte == b'\n').filter(|text| !text.is_empty()).enumerate() {
        spoilt.extend([text, b"\n"].concat());
        if let Some(bad) = bad.get(number) {
            spoilt.extend([bad, &b"\n"[..]].concat());
        }
    }
    let told = read(&spoilt).unwrap();
    assert_eq!(told.facts, whole.facts);
    assert_eq!(told.remarks, ["Of 6 lines no event can be read, first line 2 of app-1.log."]);
}

#[test]
fn what_a_log_tells_is_bounded() {
    let mut log = String::from(
        "{\"Event\":\"SparkListenerApplicationStart\",\"App ID\":\"app-1\",\"Timestamp\":1790000000000}\n",
    );
    for id in 0..100_100 {
        log += &format!(
            "{{\"Event\":\"SparkListenerJobStart\",\"Job ID\":{id},\"Submission Time\":1790000000000,\"Stage IDs\":[{id}]}}\n"
        );
    }
    log += "{\"Event\":\"SparkListenerApplicationEnd\",\"Timestamp\":18446744073709551615}\n";
    let told = read(log.as_bytes()).unwrap();
    assert_eq!(told.facts.len(), 100_000);
    assert_eq!(told.remarks, ["100 of what it tells are over the limits, and are not kept."]);
    assert_eq!(told.last, WallTime::from_millis(1_790_000_000_000), "a time that makes no sense is none");
    assert!(matches!(read(b"{}\n"), Err(ImportError::NoApplication)));
}

/// An execution whose operators stand above each other.
fn tower(height: usize) -> Vec<u8> {
    let mut plan = String::new();
    for _ in 0..height {
        plan += r#"{"nodeName":"Project","simpleString":"a \"quoted\" ] text\\","children":["#;
    }
    plan += r#"{"nodeName":"Range","children":[],"metadata":{"a":"}"},"metrics":[{"nodeName":"x"}]}"#;
    plan += &r#"],"metrics":[{"name":"n","accumulatorId":1}]}"#.repeat(height);
    let start = r#"{"Event":"SparkListenerApplicationStart","App ID":"app-1","Timestamp":1790000000000}"#;
    let event = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart";
    format!(
        "{start}\n{{\"Event\":\"{event}\",\"executionId\":3,\"sparkPlanInfo\":{plan},\"time\":1790000000000}}\n{}\n",
        r#"{"Event":"SparkListenerJobStart","Job ID":1,"Properties":{"spark.sql.execution.id":"3"}}"#
    )
    .into_bytes()
}

#[test]
fn a_plan_is_whole_or_says_why_it_is_not_there() {
    for (height, operators) in [(0, 1), (1, 2), (399, 400), (400, 0), (999, 0), (100_000, 0)] {
        let told = read(&tower(height)).unwrap();
        let plan = told.facts.iter().find(|fact| fact.kind == SparkFactKind::Plan).unwrap();
        assert_eq!(plan.count, operators, "{height}: {}", plan.name);
        assert_eq!(plan.name.is_empty(), operators > 0, "{height}");
        assert_eq!(SparkPlan::of_fact(plan).map_or(0, |(_, plan)| plan.edges().len() as u64 + 1), operators);
    }
}

fn write(dir: &Path, files: &[(&str, &[u8])]) {
    fs::create_dir_all(dir).unwrap();
    files.iter().for_each(|(name, bytes)| fs::write(dir.join(name), bytes).unwrap());
}

#[test]
fn files_of_a_rolling_log_are_read_in_order_and_gaps_are_told() {
    let (_, plain, _) = RECORDED[2];
    let whole = read(plain).unwrap();
    let at = |part: usize| {
        let near = plain.len() / 3 * part;
        near + plain[near..].iter().position(|byte| *byte == b'\n').unwrap() + 1
    };
    let (one, two, three) = (&plain[..at(1)], &plain[at(1)..at(2)], &plain[at(2)..]);
    let two_packed = zstd::stream::encode_all(two, 3).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("eventlog_v2_app-1");
    let files = [("events_9_app-1", one), ("events_10_app-1.zstd", &two_packed), ("events_11_app-1", three)];
    write(&log, &files);
    write(&log, &[("appstatus_app-1", b""), (".events_9_app-1.crc", b"x")]);
    let log_of = |path: &Path, app| EventLog::find(path, app).map(|mut logs| logs.remove(0));
    let told = log_of(&log, None).unwrap().read().unwrap();
    assert_eq!(sorted(&told.facts), sorted(&whole.facts));
    assert_eq!(told.remarks, ["Its files before number 9 are missing."]);
    // What was compacted stands for what was before it.
    write(&log, &[("events_10_app-1.compact", &[one, two].concat())]);
    let told = log_of(dir.path(), Some("app-1")).unwrap().read().unwrap();
    assert_eq!((sorted(&told.facts), told.remarks), (sorted(&whole.facts), vec![]));
    fs::rename(log.join("events_11_app-1"), log.join("events_13_app-1")).unwrap();
    let told = log_of(dir.path(), Some("APP-1")).unwrap().read().unwrap();
    assert_eq!(told.remarks, ["Its files between numbers 10 and 13 are missing."]);
    assert!(matches!(log_of(dir.path(), Some("app")), Err(ImportError::NoLog)));
    let path = dir.path().join("app-2_1.lzf.inprogress");
    fs::write(&path, "x").unwrap();
    let error = log_of(dir.path(), Some("app-2")).unwrap().read().unwrap_err().to_string();
    assert!(error.contains("lzf") && error.contains("spark.eventLog.compression.codec=zstd"), "{error}");
}
