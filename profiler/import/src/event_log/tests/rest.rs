//! What recorded logs tell, held against what the same application's REST API said.

use super::*;
use emberscope_model::PlanNode;
use emberscope_target::spark_words::Words;
use serde_json::Value;
use std::collections::BTreeMap;

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

pub(super) fn sorted(facts: &[SparkFact]) -> Vec<String> {
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
