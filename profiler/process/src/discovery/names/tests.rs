//! Answers recorded from real Spark (3.5.9 and 4.3.0: a job with a description, an SQL query of several
//! jobs with skipped stages, a task that failed once), and servers that mean no good.

use super::client::{AskError, Client};
use super::*;
use emberscope_model::{SparkFactKind, SparkFacts};
use serde_json::{Value as Json, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

mod hostile;
mod plans;
mod settings;

const RECORDED: [(&str, &str); 2] =
    [("3.5.9", include_str!("recorded/3.5.9.json")), ("4.3.0", include_str!("recorded/4.3.0.json"))];
const APP: &str = "app-20261121214208-0000";
/// Of the shape of `ExecutorSummary` (core's status/api/v1/api.scala): the driver, and an executor that was removed.
const EXECUTORS: &str = r#"[
    {"id": "driver", "hostPort": "127.0.0.1:40001", "isActive": true, "totalCores": 0, "addTime": "2026-11-21T21:42:02.347GMT"},
    {"id": "1", "hostPort": "127.0.0.1:40002", "isActive": false, "totalCores": 2, "addTime": "2026-11-21T21:42:05.001GMT",
     "removeTime": "2026-11-21T21:43:05.002GMT", "removeReason": "Executor killed by driver."}]"#;

/// A server on loopback that answers each request by `answer`, given its path and query.
pub(super) struct Server {
    pub url: SparkUrl,
    pub requests: Arc<AtomicUsize>,
}

pub(super) fn server(answer: impl Fn(&str, &mut TcpStream) + Send + 'static) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                request.push(byte[0]);
            }
            let request = String::from_utf8(request).unwrap();
            count.fetch_add(1, Ordering::SeqCst);
            answer(request.split(' ').nth(1).unwrap_or_default(), &mut stream);
        }
    });
    Server { url, requests }
}

pub(super) fn reply(stream: &mut TcpStream, status: u16, body: &str) {
    let head = format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
}

fn app(id: &str, completed: bool) -> String {
    let attempt =
        json!({"completed": completed, "startTime": "2026-11-21T21:42:01.347GMT", "sparkUser": "ana"});
    json!({"id": id, "name": "daily sales", "attempts": [attempt]}).to_string()
}

/// Spark as it was recorded, for an application without attempts.
fn spark(recorded: &'static str) -> Server {
    let told: Json = serde_json::from_str(recorded).unwrap();
    server(move |path, stream| {
        let path = path.strip_prefix("/api/v1/applications/").unwrap();
        let body = match path.strip_prefix(APP) {
            Some("") => app(APP, false),
            Some("/stages?details=false") => told["stages"].to_string(),
            Some("/jobs") => told["jobs"].to_string(),
            Some("/allexecutors") => EXECUTORS.to_owned(),
            Some("/environment") => settings::TOLD.to_owned(),
            Some("/sql?details=false&planDescription=false&offset=0&length=500") => told["sql"].to_string(),
            Some("/sql/1?details=true&planDescription=false") => plans::PLANS[0].1.to_owned(),
            Some("/stages/13/0/taskList?offset=0&length=1000&sortBy=ID") => told["tasks"].to_string(),
            _ => return reply(stream, 404, "no such app: x"),
        };
        reply(stream, 200, &body);
    })
}

#[test]
fn recorded_stages_are_joined_with_jobs_and_sql() {
    for (version, recorded) in RECORDED {
        let spark = spark(recorded);
        let told = fetch::stages(&Client::default(), &spark.url, APP, None).unwrap();
        assert_eq!((told.app.as_str(), told.completed, &told.notes), (APP, false, &vec![]), "{version}");
        assert_eq!(told.source, spark.url.as_str());
        let ids: Vec<u32> = told.stages.iter().map(|s| s.id).collect();
        assert_eq!(ids, [0, 1, 2, 4], "{version}: stage 3 was skipped");
        let first = told.get(0, 0).unwrap();
        assert_eq!(&*first.name, "reduceByKey at /jobs/sales.py:7");
        assert_eq!(first.description.as_deref(), Some("load the day's rows"));
        assert_eq!((&*first.job_ids, &first.sql), (&[0][..], &None));
        assert_eq!((&*first.status, first.tasks), ("COMPLETE", 4));
        let (cpu, deserialize) = match version {
            "3.5.9" => (961_923_930, 0),
            _ => (1_258_411_110, 0),
        };
        assert_eq!(first.executor_cpu_ns, cpu);
        assert!(first.deserialize_cpu_ns > deserialize && first.run_time_ms > 100, "{first:?}");
        assert!(first.completed.unwrap() > first.submitted.unwrap());
        let query = told.get(4, 0).unwrap();
        assert_eq!(&*query.job_ids, [2]);
        let sql = query.sql.as_ref().unwrap();
        assert_eq!((sql.id, &*sql.description), (1, "collect at /jobs/sales.py:10"));
        assert_eq!(query.description, None);
    }
}

#[test]
fn what_is_told_beside_stages_becomes_facts() {
    for (version, recorded) in RECORDED {
        let spark = spark(recorded);
        let told = fetch::stages(&Client::default(), &spark.url, APP, None).unwrap();
        let of = |kind| told.beside.iter().filter(move |fact| fact.kind == kind);
        let job = of(SparkFactKind::Job).find(|job| &*job.id == "2").unwrap();
        assert_eq!((&*job.refs, &*job.status, job.count), (&[3, 4][..], "SUCCEEDED", 5), "{version}");
        assert!(job.ended.unwrap() > job.begun.unwrap());
        let sql = of(SparkFactKind::Sql).find(|sql| &*sql.id == "1").unwrap();
        assert_eq!((&*sql.name, sql.ended.is_some()), ("collect at /jobs/sales.py:10", true));
        assert!(sql.refs.contains(&2), "{sql:?}");
        let executors: Vec<_> = of(SparkFactKind::Executor).collect();
        let gone = executors.iter().find(|executor| &*executor.id == "1").unwrap();
        assert_eq!(gone.description.as_deref(), Some("Executor killed by driver."));
        assert_eq!((&*gone.status, gone.count, gone.ended.is_some()), ("REMOVED", 2, true));
        assert_eq!(executors.iter().map(|executor| executor.ended).filter(Option::is_none).count(), 1);
        let kept = SparkFacts { facts: told.facts().collect(), left_out: 0 };
        let again = SparkStages::of_facts(APP, kept).unwrap();
        assert_eq!(again.stages, told.stages, "{version}: the same from facts");
    }
}

#[test]
fn recorded_tasks_tell_their_fate() {
    for (version, recorded) in RECORDED {
        let spark = spark(recorded);
        let told = fetch::tasks(&Client::default(), &spark.url, APP, 13, 0).unwrap();
        assert_eq!((told.stage, told.attempt, told.tasks.len()), (13, 0, 3), "{version}");
        let failed = told.tasks.iter().find(|t| &*t.status == "FAILED").unwrap();
        assert_eq!((failed.index, failed.attempt, failed.executor_cpu_ns), (1, 0, 0));
        let again = told.tasks.iter().find(|t| t.attempt == 1).unwrap();
        assert_eq!((again.index, &*again.status), (1, "SUCCESS"));
        assert!(again.executor_cpu_ns > 1_000_000 && again.deserialize_cpu_ns > 100_000, "{again:?}");
        assert!(again.duration_ms.unwrap() > 10 && again.launched.unwrap() > failed.launched.unwrap());
        assert_eq!((&*again.executor, &*again.host, again.speculative), ("0", "127.0.0.1", false));
        assert_eq!(told.get(again.tid), Some(again));
    }
}

#[test]
fn the_newest_attempt_of_an_application_is_asked_for() {
    // The shape that a history server of Spark 3.5.9 gave for two attempts; without the attempt its paths are 404.
    let told = r#"{"id": "application_1795297000000_0008", "name": "daily sales", "attempts": [
        {"attemptId": "1", "startTime": "2026-11-21T21:42:02.347GMT", "completed": true},
        {"attemptId": "2", "startTime": "2026-11-21T21:42:03.347GMT", "completed": true}]}"#;
    let id = "application_1795297000000_0008";
    let history = server(move |path, stream| match path.strip_prefix("/api/v1/applications/").unwrap() {
        path if path == id => reply(stream, 200, told),
        path if path.starts_with(&format!("{id}/2/")) && !path.contains("/sql") => reply(stream, 200, "[]"),
        path if path.starts_with(&format!("{id}/2/sql")) => reply(stream, 404, ""),
        _ => reply(stream, 404, ""),
    });
    let told = fetch::stages(&Client::default(), &history.url, id, None).unwrap();
    assert!(told.completed && told.stages.is_empty() && told.notes.is_empty());
    assert_eq!(fetch::tasks(&Client::default(), &history.url, id, 1, 0).unwrap().tasks, []);
}

#[test]
fn without_jobs_and_sql_stages_stand_alone_and_say_so() {
    let half = server(|path, stream| match path {
        path if path.ends_with(APP) => reply(stream, 200, &app(APP, true)),
        path if path.contains("/stages") => {
            reply(stream, 200, r#"[{"stageId": 1, "attemptId": 0, "status": "ACTIVE"}]"#);
        }
        path if path.contains("/sql") => reply(stream, 500, ""),
        _ => reply(stream, 200, r#"{"not": "a list"}"#),
    });
    let told = fetch::stages(&Client::default(), &half.url, APP, None).unwrap();
    assert_eq!((told.stages.len(), told.stages[0].tasks, told.stages[0].submitted), (1, 0, None));
    assert!(told.notes[0].starts_with("Jobs are not joined: its answer is not Spark's"), "{:?}", told.notes);
    assert_eq!(told.notes[1], "SQL executions are not joined: HTTP 500.");
}

fn names(urls: &[&SparkUrl]) -> SparkNames {
    let config = NamesConfig { urls: urls.iter().map(|url| (*url).clone()).collect(), ask_found: true };
    SparkNames::new(config, Places::default())
}

const WAIT: Duration = Duration::from_secs(10);

#[test]
fn a_question_is_asked_once_and_its_answer_kept() {
    let spark = spark(RECORDED[0].1);
    let names = Arc::new(names(&[&spark.url]));
    assert_eq!(names.stages(APP, Duration::ZERO), Joined::Asking);
    let askers: Vec<_> = (0..4)
        .map(|_| {
            let names = Arc::clone(&names);
            thread::spawn(move || names.stages(APP, WAIT))
        })
        .collect();
    for asker in askers {
        assert_eq!(asker.join().unwrap().value().unwrap().stages.len(), 4);
    }
    assert!(matches!(names.stages(APP, Duration::ZERO), Joined::Ready(_)));
    let asked = "application, stages, jobs, SQL, executors, settings, a plan";
    assert_eq!(spark.requests.load(Ordering::SeqCst), 7, "{asked}");
    assert_eq!(names.tasks(APP, 13, 0, WAIT).value().unwrap().tasks.len(), 3);
    let counters = names.counters();
    assert_eq!((counters.asked, counters.failed, counters.kept), (2, 0, 2));
    assert!(counters.bytes > 500 && counters.bytes < 10_000, "{counters:?}");
}

#[test]
fn a_failure_is_told_and_not_repeated_at_once() {
    let unknown = server(|_, stream| reply(stream, 404, "no such app"));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let closed: SparkUrl = format!("http://{closed}").parse().unwrap();
    let names = names(&[&closed, &unknown.url]);
    for _ in 0..3 {
        let told = names.stages(APP, WAIT);
        let Joined::Unreachable(says) = told else { panic!("{told:?}") };
        assert!(says.starts_with("not reachable: the server named at http://127.0.0.1:"), "{says}");
        assert!(says.contains("refused") && says.ends_with("does not know it (HTTP 404)."), "{says}");
    }
    assert_eq!(unknown.requests.load(Ordering::SeqCst), 1);
    assert_eq!((names.counters().asked, names.counters().failed), (1, 1));
}

#[test]
fn nobody_is_asked_where_there_is_nobody_or_the_id_is_odd() {
    let nobody = names(&[]);
    let told = nobody.stages(APP, WAIT);
    assert!(matches!(&told, Joined::NotAsked(says) if says.contains("spark-url")), "{told:?}");
    let quiet = SparkNames::new(NamesConfig::default(), Places::default());
    assert!(quiet.stages(APP, WAIT).says().contains("ask-drivers"));
    let unknown = server(|_, stream| reply(stream, 404, ""));
    let named = names(&[&unknown.url]);
    for id in ["", "..", "../x", "a/b", "a?b", "a b", "é", &"x".repeat(300)] {
        assert_eq!(named.stages(id, WAIT).state(), "not-asked", "{id}");
    }
    assert_eq!(unknown.requests.load(Ordering::SeqCst), 0);
}

#[test]
fn too_many_questions_are_refused_and_old_answers_go() {
    let stuck = server(|_, stream| {
        thread::sleep(Duration::from_millis(20));
        reply(stream, 404, "");
    });
    let names = names(&[&stuck.url]);
    let ask = |i: u32| names.tasks(APP, i, 0, Duration::ZERO);
    for i in 0..MAX_QUEUE as u32 + 5 {
        ask(i);
    }
    assert!(names.counters().refused > 0);
    let end = Instant::now() + WAIT;
    for i in 0.. {
        names.tasks(APP, 1000 + i, 0, WAIT);
        if names.counters().evicted > 0 || Instant::now() > end {
            break;
        }
    }
    let counters = names.counters();
    assert!(counters.evicted > 0 && counters.kept <= MAX_KEPT, "{counters:?}");
}

#[test]
fn what_was_told_is_told_again_when_spark_is_gone() {
    let question = Question { app: APP.to_owned(), tasks: None };
    let told = SparkStages {
        app: APP.into(),
        source: "http://driver:4040".into(),
        pages: "http://driver:4040".into(),
        fetched: emberscope_model::WallTime::from_millis(1_795_286_171_979),
        completed: false,
        stages: vec![],
        beside: vec![],
        notes: vec![],
    };
    let mut kept = Kept::default();
    kept.begin(&question);
    assert!(kept.is_pending(&question) && !kept.is_due(&question));
    kept.end(&question, Ok(told.keep()), Duration::ZERO);
    assert!(matches!(kept.tell::<SparkStages>(&question, None), Joined::Ready(_)));
    assert!(matches!(kept.tell::<SparkStages>(&question, Some("gone")), Joined::Ready(_)), "still fresh");
    kept.begin(&question);
    let Joined::Stale(_, says) = kept.tell::<SparkStages>(&question, None) else { panic!() };
    assert!(says.starts_with("As of 2026-11-21T18:36:11.979Z; Spark has been asked again"), "{says}");
    kept.end(&question, Err("not reachable: x.".into()), Duration::ZERO);
    let Joined::Stale(_, says) = kept.tell::<SparkStages>(&question, None) else { panic!() };
    assert_eq!(says, "As of 2026-11-21T18:36:11.979Z. Since then: not reachable: x.");
}
