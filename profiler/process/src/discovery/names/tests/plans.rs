//! Plans as they were recorded of a broadcast join (tests/jobs/sql_operators.py), and plans that are none.

use super::*;
use emberscope_model::{SparkFact, SparkPlan};

pub(super) const PLANS: [(&str, &str); 2] = [
    ("3.5.9", include_str!("../recorded/plan-3.5.9.json")),
    ("4.3.0", include_str!("../recorded/plan-4.3.0.json")),
];

/// A driver with so many executions that have ended, all with this plan.
fn driver(executions: u32, status: &'static str, plan: impl Into<String>) -> Server {
    let plan = plan.into();
    server(move |path, stream| {
        let one = |id: u32| {
            json!({"id": id, "description": "q", "status": status, "duration": 7, "successJobIds": [id],
                "submissionTime": "2026-11-21T18:36:11.979GMT"})
        };
        match path {
            path if path.ends_with(APP) => reply(stream, 200, &app(APP, false)),
            path if path.contains("/sql?") => {
                reply(stream, 200, &json!((0..executions).map(one).collect::<Vec<_>>()).to_string());
            }
            path if path.ends_with("?details=true&planDescription=false") => reply(stream, 200, &plan),
            _ => reply(stream, 200, "[]"),
        }
    })
}

fn plans(told: &SparkStages) -> Vec<&SparkFact> {
    told.beside.iter().filter(|fact| fact.kind == SparkFactKind::Plan).collect()
}

fn ask(driver: &Server, before: Option<&SparkStages>) -> SparkStages {
    fetch::stages(&Client::default(), &driver.url, APP, before).unwrap()
}

#[test]
fn recorded_plans_become_facts() {
    for (version, recorded) in PLANS {
        let driver = driver(1, "COMPLETED", recorded);
        let told = ask(&driver, None);
        let [fact] = plans(&told)[..] else { panic!("{version}: {told:?}") };
        let (id, plan) = SparkPlan::of_fact(fact).expect(version);
        assert_eq!((id, plan.nodes().len(), plan.edges().len(), fact.count), (0, 13, 12, 13), "{version}");
        let join = plan.node(8).unwrap();
        assert_eq!((&*join.name, join.codegen), ("BroadcastHashJoin", Some(2)));
        assert_eq!((plan.children(8).collect::<Vec<_>>(), plan.node(13)), (vec![9, 12], None));
        assert!(fact.ended.is_some() && fact.is_bounded());
        let text = fact.description.as_deref().unwrap();
        assert!(!text.contains("number of") && !text.contains('#') && text.len() < 300, "{text}");
    }
}

#[test]
fn a_plan_that_does_not_change_is_asked_for_once() {
    let ended = driver(3, "COMPLETED", PLANS[0].1);
    let first = ask(&ended, None);
    let asked = ended.requests.load(Ordering::SeqCst);
    let second = ask(&ended, Some(&first));
    assert_eq!((ended.requests.load(Ordering::SeqCst) - asked, asked), (5, 6 + 3));
    assert_eq!((plans(&second).len(), second.notes.len()), (3, 0));
    assert_eq!(plans(&first), plans(&second));
    let runs = driver(3, "RUNNING", PLANS[0].1);
    let first = ask(&runs, None);
    ask(&runs, Some(&first));
    assert_eq!(runs.requests.load(Ordering::SeqCst), (6 + 3) + (5 + 3), "settings are asked for once");
}

#[test]
fn plans_of_many_executions_come_answer_by_answer_the_newest_first() {
    let many = driver(100, "COMPLETED", PLANS[0].1);
    let first = ask(&many, None);
    let (count, newest) = (plans(&first).len(), plans(&first)[0].id.clone());
    assert!(count > 0 && count <= 64, "{count}");
    assert_eq!(&*newest, "99");
    assert_eq!(first.notes, [format!("Of {} SQL executions the plan is not read, or not yet.", 100 - count)]);
    assert!(plans(&ask(&many, Some(&first))).len() > count);
}

#[test]
fn what_is_no_plan_says_why_and_is_not_asked_for_again() {
    let node = |id: u64, codegen: Json| json!({"nodeId": id, "nodeName": "Sort", "wholeStageCodegenId": codegen, "metrics": []});
    let graph = |nodes: Vec<Json>, edges: Json| json!({"nodes": nodes, "edges": edges}).to_string();
    let many = |n: u64| (0..n).map(|id| node(id, json!(1))).collect::<Vec<_>>();
    let circle = json!([{"fromId": 0, "toId": 1}, {"fromId": 1, "toId": 0}]);
    // Of 10 MB.
    let large = graph(many(150_000), json!([]));
    assert!(large.len() > 9_000_000, "{}", large.len());
    for (body, want) in [
        (graph(many(500), json!([])), "more than 400 operators"),
        (large, "more than 400 operators"),
        (graph(many(2), circle), "in a circle"),
        (graph([many(2), many(2)].concat(), json!([])), "the same number"),
        (graph(many(1), json!([{"fromId": 0, "toId": 9}])), "no operator at an end"),
        (format!("{{\"nodes\": [], \"desc\": \"{}\"}}", "x".repeat(2 << 20)), "longer than 1024 KiB"),
        ("[[[".to_owned(), "not Spark's"),
    ] {
        let odd = driver(1, "COMPLETED", body);
        let told = ask(&odd, None);
        let [fact] = plans(&told)[..] else { panic!("{want}: {told:?}") };
        assert!(fact.name.contains(want) && fact.description.is_none() && fact.is_bounded(), "{fact:?}");
        ask(&odd, Some(&told));
        assert_eq!(odd.requests.load(Ordering::SeqCst), 6 + 5 + 1, "{want}");
    }
    // A number that is none of a codegen stage.
    for codegen in [json!(-1), json!(1e99), json!(5_000_000_000_u64), json!(1000), Json::Null] {
        let odd = driver(1, "COMPLETED", graph(vec![node(1, codegen)], json!([])));
        let told = ask(&odd, None);
        let (_, plan) = SparkPlan::of_fact(plans(&told)[0]).unwrap();
        assert_eq!(plan.nodes()[0].codegen, None);
    }
}
