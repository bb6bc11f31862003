//! Joins what Spark says of stages and tasks to the rows of an answer.
//!
//! In: an answer with rows that name `app`, `stage`, `stage_attempt` (and `task`), and a [`SparkSource`].
//! Out: the same answer; each row has `spark` (null where Spark told nothing), and so has the answer, with
//! the source, the state and a sentence. Waits for Spark once, at most `wait`. No request can name a
//! server: the source knows those of the daemon's configuration and those found on its node, and no
//! other, or a client could have a daemon with root's rights fetch any address.

use super::answer::instant;
use super::error::ApiError;
use super::params::Params;
use emberscope_model::{Joined, SparkSource, SparkStage, SparkStages, SparkTask, SparkTasks, WallTime};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long an answer waits for Spark.
pub const WAIT: Duration = Duration::from_secs(3);
/// Applications, or stages for their tasks, that are asked about in one answer.
pub const MAX_ASKED: usize = 4;

/// The value of `join=`: whether Spark is asked. The default is `auto`.
pub fn wanted(params: &Params) -> Result<bool, ApiError> {
    params.choice("join", &[("auto", true), ("no", false)], true)
}

/// Adds `spark` to each of `answer.stages`. `source` is None where nobody is to be asked.
pub fn join_stages(answer: &mut Map<String, Value>, source: Option<&dyn SparkSource>, wait: Duration) {
    join::<SparkStages>(answer, source, wait);
}

/// Adds `spark` to each of `answer.tasks`.
pub fn join_tasks(answer: &mut Map<String, Value>, source: Option<&dyn SparkSource>, wait: Duration) {
    join::<SparkTasks>(answer, source, wait);
}

/// What Spark told that belongs to rows of one kind.
trait Told: Sized {
    /// What it is asked about.
    type Key: Ord;
    /// The answer's rows.
    const ROWS: &'static str;
    /// Keys, for people.
    const KEYS: &'static str;
    fn key(row: &Value) -> Option<Self::Key>;
    fn ask(source: &dyn SparkSource, key: &Self::Key, wait: Duration) -> Joined<Self>;
    fn of_row(&self, row: &Value) -> Option<Value>;
    fn origin(&self) -> (&str, WallTime, &[String]);
}

impl Told for SparkStages {
    type Key = String;
    const ROWS: &'static str = "stages";
    const KEYS: &'static str = "applications";
    fn key(row: &Value) -> Option<String> {
        // A stage without a number is none that Spark knows.
        number::<u32>(row, "stage").and_then(|_| text(row, "app"))
    }
    fn ask(source: &dyn SparkSource, app: &String, wait: Duration) -> Joined<Self> {
        source.stages(app, wait)
    }
    fn of_row(&self, row: &Value) -> Option<Value> {
        self.get(number(row, "stage")?, number(row, "stage_attempt")?).map(|told| stage(told, &self.pages))
    }
    fn origin(&self) -> (&str, WallTime, &[String]) {
        (&self.source, self.fetched, &self.notes)
    }
}

impl Told for SparkTasks {
    type Key = (String, u32, u32);
    const ROWS: &'static str = "tasks";
    const KEYS: &'static str = "stages";
    fn key(row: &Value) -> Option<Self::Key> {
        Some((text(row, "app")?, number(row, "stage")?, number(row, "stage_attempt")?))
    }
    fn ask(source: &dyn SparkSource, (app, stage, attempt): &Self::Key, wait: Duration) -> Joined<Self> {
        source.tasks(app, *stage, *attempt, wait)
    }
    fn of_row(&self, row: &Value) -> Option<Value> {
        self.get(number(row, "task")?).map(task)
    }
    fn origin(&self) -> (&str, WallTime, &[String]) {
        (&self.source, self.fetched, &self.notes)
    }
}

/// Asks about each key of the rows, at most [`MAX_ASKED`], and adds what was told.
fn join<T: Told>(answer: &mut Map<String, Value>, source: Option<&dyn SparkSource>, wait: Duration) {
    let Some(Value::Array(rows)) = answer.get_mut(T::ROWS) else { return };
    let until = Instant::now() + wait;
    let mut told: BTreeMap<T::Key, Joined<T>> = BTreeMap::new();
    let mut left_out = false;
    for row in rows {
        let mut value = Value::Null;
        if let (Some(source), Some(key)) = (source, T::key(row)) {
            if told.len() < MAX_ASKED || told.contains_key(&key) {
                let left = || until.saturating_duration_since(Instant::now());
                let joined = told.entry(key).or_insert_with_key(|key| T::ask(source, key, left()));
                value = joined.value().and_then(|told| told.of_row(row)).unwrap_or_default();
            } else {
                left_out = true;
            }
        }
        if let Value::Object(row) = row {
            row.insert("spark".into(), value);
        }
    }
    answer.insert("spark".into(), origin(source.is_some(), told.values(), left_out));
}

/// Whom the figures are from, and what is to be said of them.
fn origin<'a, T: Told + 'a>(
    asked: bool,
    told: impl Iterator<Item = &'a Joined<T>> + Clone,
    left_out: bool,
) -> Value {
    let mut says: BTreeSet<&str> = told.clone().map(Joined::says).filter(|text| !text.is_empty()).collect();
    let mut sources = BTreeSet::new();
    let mut fetched: Option<WallTime> = None;
    for value in told.clone().filter_map(Joined::value) {
        let (source, at, notes) = value.origin();
        sources.insert(source);
        fetched = Some(fetched.map_or(at, |earlier| earlier.min(at)));
        says.extend(notes.iter().map(String::as_str));
    }
    let too_many =
        format!("Spark is asked about {MAX_ASKED} {} at most in one answer: select fewer.", T::KEYS);
    says.extend(left_out.then_some(too_many.as_str()));
    says.extend((!asked).then_some("Spark was not asked."));
    let mut states: BTreeSet<&str> = told.map(Joined::state).collect();
    states.extend(left_out.then_some("not-asked"));
    let state = match (states.pop_first(), states.is_empty()) {
        (None, _) => "not-asked",
        (Some(one), true) => one,
        (Some(_), false) => "partly",
    };
    let list = |words: BTreeSet<&str>, between: &str| words.into_iter().collect::<Vec<_>>().join(between);
    json!({
        "state": state,
        "source": if sources.is_empty() { Value::Null } else { list(sources, ", ").into() },
        "fetched": fetched.map(instant),
        "says": list(says, " "),
    })
}

fn text(row: &Value, key: &str) -> Option<String> {
    row.get(key)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A label that is a number.
fn number<N: std::str::FromStr>(row: &Value, key: &str) -> Option<N> {
    row.get(key)?.as_str()?.parse().ok()
}

fn stage(stage: &SparkStage, pages: &str) -> Value {
    json!({
        "page": format!("{pages}/stages/stage/?id={}&attempt={}", stage.id, stage.attempt),
        "name": &*stage.name,
        "description": stage.description.as_deref(),
        "job_ids": &*stage.job_ids,
        "sql_id": stage.sql.as_ref().map(|sql| sql.id),
        "sql_description": stage.sql.as_ref().map(|sql| &*sql.description),
        "status": &*stage.status,
        "tasks": stage.tasks,
        "executor_cpu_ns": stage.executor_cpu_ns,
        "deserialize_cpu_ns": stage.deserialize_cpu_ns,
        "run_time_ms": stage.run_time_ms,
        "submitted": stage.submitted.map(instant),
        "completed": stage.completed.map(instant),
    })
}

fn task(task: &SparkTask) -> Value {
    json!({
        "duration_ms": task.duration_ms,
        "executor_cpu_ns": task.executor_cpu_ns,
        "deserialize_cpu_ns": task.deserialize_cpu_ns,
        "status": &*task.status,
        "speculative": task.speculative,
        "attempt": task.attempt,
        "host": &*task.host,
        "launched": task.launched.map(instant),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use emberscope_model::SqlRef;
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
                notes: vec!["Jobs are not joined: HTTP 500.".into()],
            };
            self.tell(app, app.to_owned(), told)
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

    fn stages_of(rows: &[(&str, &str, &str)]) -> Map<String, Value> {
        let row = |(app, stage, attempt): &(&str, &str, &str)| json!({"app": app, "stage": stage, "stage_attempt": attempt});
        Map::from_iter([("stages".to_owned(), rows.iter().map(row).collect())])
    }

    #[test]
    fn stages_are_joined_by_number_and_attempt() {
        let fake = Fake::default();
        let mut answer = stages_of(&[("app-1", "3", "0"), ("app-1", "3", "1"), ("app-1", "unknown", "")]);
        join_stages(&mut answer, Some(&fake), WAIT);
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
        join_tasks(&mut answer, Some(&fake), WAIT);
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
            join_stages(&mut answer, Some(&Fake::default()), WAIT);
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
        join_stages(&mut answer, None, WAIT);
        assert_eq!(answer["stages"][0]["spark"], Value::Null);
        assert_eq!(answer["spark"]["state"], "not-asked");
        let params = |raw| Params::of(Some(raw), &["join"]).unwrap();
        assert_eq!(wanted(&params("")), Ok(true));
        assert_eq!(wanted(&params("join=auto")), Ok(true));
        assert_eq!(wanted(&params("join=no")), Ok(false));
        assert_eq!(wanted(&params("join=yes")).unwrap_err().parameter.as_deref(), Some("join"));
    }
}
