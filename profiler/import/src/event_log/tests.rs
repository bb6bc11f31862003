//! Recorded logs against what the same application's REST API said; logs that are cut, rolled, and made to harm.

use super::*;
use emberscope_model::{SparkFactKind, SparkPlan};
use rest::sorted;
use std::fs;
use std::path::Path;

mod rest;
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
