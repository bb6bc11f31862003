//! Rows that Spark tells of, and what is said where it does not.

use super::*;
use emberscope_model::{SparkFact, SparkFactKind, SparkStage, SparkTask, SqlRef};
use emberscope_store::{MemoryStore, MemoryStoreConfig};
use std::sync::{Arc, Mutex};

/// Tells of one application, and remembers what it was asked.
#[derive(Default)]
pub struct Fake(pub Mutex<Vec<String>>);

impl Fake {
    fn tell<T>(&self, app: &str, what: String, value: T) -> Joined<T> {
        self.0.lock().unwrap().push(what);
        match app {
            "app-1" => Joined::Ready(Arc::new(value)),
            "app-2" => Joined::Unreachable("not reachable: it is gone.".into()),
            _ => Joined::Asking,
        }
    }
}

impl SparkSource for Fake {
    fn stages(&self, app: &str, _: Duration) -> Joined<SparkStages> {
        let stage = SparkStage {
            id: 3,
            attempt: 1,
            name: "collect at <b>".into(),
            description: None,
            job_ids: [1, 2].into(),
            sql: Some(SqlRef { id: 7, description: "select 1".into() }),
            status: "ACTIVE".into(),
            tasks: 60,
            executor_cpu_ns: 5,
            deserialize_cpu_ns: 6,
            run_time_ms: 7,
            submitted: Some(WallTime::from_millis(1_795_286_171_979)),
            completed: None,
        };
        let told = SparkStages {
            app: app.into(),
            source: "http://driver:4040".into(),
            pages: "http://driver:4040".into(),
            fetched: WallTime::from_millis(1_795_286_171_979),
            completed: false,
            stages: vec![stage],
            beside: vec![],
            notes: vec!["Jobs are not joined: HTTP 500.".into()],
        };
        self.tell(app, app.to_owned(), told)
    }
    fn told_stages(&self, app: &str) -> Option<Arc<SparkStages>> {
        self.stages(app, Duration::ZERO).value().cloned()
    }
    fn tasks(&self, app: &str, stage: u32, attempt: u32, _: Duration) -> Joined<SparkTasks> {
        let task = SparkTask {
            tid: 77,
            index: 17,
            attempt: 2,
            duration_ms: Some(9),
            executor_cpu_ns: 5,
            deserialize_cpu_ns: 6,
            status: "RUNNING".into(),
            speculative: true,
            executor: "1".into(),
            host: "n1".into(),
            launched: None,
        };
        let told = SparkTasks {
            app: app.into(),
            source: "http://driver:4040".into(),
            fetched: WallTime(0),
            completed: false,
            stage,
            attempt,
            tasks: vec![task],
            notes: vec![],
        };
        self.tell(app, format!("{app} {stage} {attempt}"), told)
    }
}

/// Spark alone, with nothing that is kept.
fn asked(fake: &Fake) -> Words<'_> {
    Words { source: Some(fake), kept: None }
}

fn stages_of(rows: &[(&str, &str, &str)]) -> Map<String, Value> {
    let row = |(app, stage, attempt): &(&str, &str, &str)| json!({"app": app, "stage": stage, "stage_attempt": attempt});
    Map::from_iter([("stages".to_owned(), rows.iter().map(row).collect())])
}

#[test]
fn stages_are_joined_by_number_and_attempt() {
    let fake = Fake::default();
    let mut answer = stages_of(&[("app-1", "3", "0"), ("app-1", "3", "1"), ("app-1", "unknown", "")]);
    join_stages(&mut answer, asked(&fake), WAIT);
    let stages = &answer["stages"];
    assert_eq!((&stages[0]["spark"], &stages[2]["spark"]), (&Value::Null, &Value::Null));
    assert_eq!(
        stages[1]["spark"],
        json!({"page": "http://driver:4040/stages/stage/?id=3&attempt=1", "name": "collect at <b>", "description": null, "job_ids": [1, 2], "sql_id": 7,
               "sql_description": "select 1", "status": "ACTIVE", "tasks": 60, "executor_cpu_ns": 5,
               "deserialize_cpu_ns": 6, "run_time_ms": 7, "submitted": "2026-11-21T18:36:11.979Z",
               "completed": null})
    );
    assert_eq!(
        answer["spark"],
        json!({"state": "ready", "source": "http://driver:4040", "fetched": "2026-11-21T18:36:11.979Z",
               "says": "Jobs are not joined: HTTP 500."})
    );
    assert_eq!(*fake.0.lock().unwrap(), ["app-1"], "once for all of its rows");
}

#[test]
fn tasks_are_joined_by_their_id() {
    let row = |app: &str, stage: &str, task: &str| json!({"app": app, "stage": stage, "stage_attempt": "0", "task": task});
    let rows = json!([row("app-1", "3", "77"), row("app-1", "3", "78"), row("app-1", "unknown", "77")]);
    let mut answer = Map::from_iter([("tasks".to_owned(), rows)]);
    let fake = Fake::default();
    join_tasks(&mut answer, asked(&fake), WAIT);
    let tasks = &answer["tasks"];
    assert_eq!(
        tasks[0]["spark"],
        json!({"duration_ms": 9, "executor_cpu_ns": 5, "deserialize_cpu_ns": 6, "status": "RUNNING",
               "speculative": true, "attempt": 2, "host": "n1", "launched": null})
    );
    assert_eq!((&tasks[1]["spark"], &tasks[2]["spark"]), (&Value::Null, &Value::Null));
    assert_eq!(*fake.0.lock().unwrap(), ["app-1 3 0"]);
}

#[test]
fn what_could_not_be_told_is_said() {
    let said = |rows: &[(&str, &str, &str)]| {
        let mut answer = stages_of(rows);
        join_stages(&mut answer, asked(&Fake::default()), WAIT);
        (answer["spark"]["state"].clone(), answer["spark"]["says"].as_str().unwrap().to_owned())
    };
    assert_eq!(said(&[]), ("not-asked".into(), String::new()));
    assert_eq!(said(&[("app-2", "1", "0")]), ("unreachable".into(), "not reachable: it is gone.".into()));
    assert_eq!(said(&[("app-9", "1", "0")]).0, "asking");
    assert_eq!(said(&[("app-1", "3", "1"), ("app-2", "1", "0")]).0, "partly");
    let many: Vec<String> = (0..9).map(|i| format!("app-{i}")).collect();
    let many: Vec<_> = many.iter().map(|app| (app.as_str(), "1", "0")).collect();
    let (state, says) = said(&many);
    assert_eq!(state, "partly");
    assert!(says.contains("4 applications at most"), "{says}");
}

#[test]
fn nobody_is_asked_where_nobody_is_to_be() {
    let mut answer = stages_of(&[("app-1", "3", "1")]);
    join_stages(&mut answer, Words::default(), WAIT);
    assert_eq!(answer["stages"][0]["spark"], Value::Null);
    assert_eq!(answer["spark"]["state"], "not-asked");
    let params = |raw| Params::of(Some(raw), &["join"]).unwrap();
    assert_eq!(wanted(&params("")), Ok(true));
    assert_eq!(wanted(&params("join=auto")), Ok(true));
    assert_eq!(wanted(&params("join=no")), Ok(false));
    assert_eq!(wanted(&params("join=yes")).unwrap_err().parameter.as_deref(), Some("join"));
}

/// Stage 3 of attempt 1 as `fake` tells it of an application, as it is kept with a window, and stage 2 as well.
fn kept(fake: &Fake, app: &str) -> MemoryStore {
    let store = MemoryStore::new(MemoryStoreConfig::default());
    keep(&store, fake, app);
    store
}

fn keep(store: &MemoryStore, fake: &Fake, app: &str) {
    let Joined::Ready(told) = fake.stages("app-1", WAIT) else { unreachable!() };
    let mut told = SparkStages { app: app.into(), ..(*told).clone() };
    told.stages.insert(0, SparkStage { id: 2, attempt: 0, ..told.stages[0].clone() });
    let fact = |fact: SparkFact| SparkFact { app: app.into(), ..fact };
    let stage = told.facts().next().unwrap();
    let sql = SparkFact {
        kind: SparkFactKind::Sql,
        id: "7".into(),
        name: "select 1".into(),
        refs: [1, 2].into(),
        ..stage.clone()
    };
    store.learn(&told.facts().chain([sql]).map(fact).collect::<Vec<_>>());
}

#[test]
fn of_more_applications_than_are_asked_about_it_is_told_what_is_kept() {
    let (fake, store) = (Fake::default(), MemoryStore::new(MemoryStoreConfig::default()));
    let apps: Vec<String> = (10..50).map(|i| format!("app-{i}")).collect();
    apps.iter().for_each(|app| keep(&store, &fake, app));
    fake.0.lock().unwrap().clear();
    let kept = KeptWords::of(&store, TimeRange { from: WallTime(0), until: WallTime(1) });
    let joined = |count: usize| {
        let rows: Vec<_> = apps.iter().take(count).map(|app| (app.as_str(), "3", "1")).collect();
        let mut answer = stages_of(&rows);
        join_stages(&mut answer, Words { source: Some(&fake), kept: Some(&kept) }, WAIT);
        let rows = answer["stages"].as_array().unwrap();
        let told = rows.iter().filter(|row| row["spark"]["name"] == "collect at <b>").count();
        (told, answer["spark"]["says"].as_str().unwrap().contains("4 applications at most"))
    };
    assert_eq!(joined(MAX_KEPT), (MAX_KEPT, false));
    assert_eq!(fake.0.lock().unwrap().len(), MAX_ASKED, "of the others nobody is asked");
    assert_eq!(joined(40), (MAX_KEPT, true), "more are left out, and that is said");
}

#[test]
fn what_is_kept_stands_in_for_a_driver_that_is_gone() {
    let fake = Fake::default();
    let store = kept(&fake, "app-2");
    let range = TimeRange { from: WallTime(0), until: WallTime(1) };
    let kept = KeptWords::of(&store, range);
    let mut live = stages_of(&[("app-1", "3", "1")]);
    join_stages(&mut live, asked(&fake), WAIT);
    let mut live = live["stages"][0]["spark"].clone();
    live["page"] = "".into();
    for source in [Some(&fake as &dyn SparkSource), None] {
        let mut answer = stages_of(&[("app-2", "3", "1"), ("app-2", "4", "0"), ("app-9", "3", "1")]);
        join_stages(&mut answer, Words { source, kept: Some(&kept) }, WAIT);
        assert_eq!(answer["stages"][0]["spark"], live, "as the driver said it, but for its pages");
        assert_eq!(answer["stages"][1]["spark"], Value::Null, "not known");
        assert_eq!(answer["stages"][2]["spark"], Value::Null, "nothing is kept");
        let says = answer["spark"]["says"].as_str().unwrap();
        let why = if source.is_some() { "not reachable: it is gone." } else { "Spark was not asked." };
        let when = "As kept with the windows, read at 2026-11-21T18:36:11.979Z.";
        assert!(says.contains(&format!("{when} {why}")), "{says}");
        assert_eq!(
            (&answer["spark"]["state"], &answer["spark"]["source"]),
            (&json!("partly"), &json!("http://driver:4040"))
        );
    }
}

#[test]
fn what_spark_no_longer_has_is_told_beside_what_it_has() {
    let fake = Fake::default();
    let store = kept(&fake, "app-1");
    let kept = KeptWords::of(&store, TimeRange { from: WallTime(0), until: WallTime(1) });
    let mut answer = stages_of(&[("app-1", "3", "1"), ("app-1", "2", "0")]);
    join_stages(&mut answer, Words { source: Some(&fake), kept: Some(&kept) }, WAIT);
    let [new, old] = [0, 1].map(|row| answer["stages"][row]["spark"].clone());
    assert_eq!((&new["name"], &old["name"]), (&json!("collect at <b>"), &json!("collect at <b>")));
    assert_eq!(new["page"], "http://driver:4040/stages/stage/?id=3&attempt=1");
    assert_eq!(old["page"], "");
    assert_eq!(answer["spark"]["state"], "ready");
    assert!(answer["spark"]["says"].as_str().unwrap().contains("What Spark no longer has is as kept"));
}
