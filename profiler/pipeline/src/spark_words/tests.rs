//! A driver that lives, one that is elsewhere, and a store that has no window yet.

use super::*;
use emberscope_model::{
    LabelSetBuilder, LostCounts, Row, SparkStage, SparkStages, SparkTasks, Stack, StackEnd, Window,
};
use emberscope_store::{MemoryStore, MemoryStoreConfig};
use std::sync::Mutex;

/// A driver with one stage, which ends at the third answer.
#[derive(Default)]
struct Driver(Mutex<(u64, Vec<String>)>);

impl SparkSource for Driver {
    fn stages(&self, app: &str, _: Duration) -> Joined<SparkStages> {
        let mut state = self.0.lock().unwrap();
        state.1.push(app.to_owned());
        if app.ends_with("slow") {
            return Joined::Asking;
        }
        state.0 += 1;
        let (answer, text): (u64, Arc<str>) = (state.0, "x".into());
        let stage = SparkStage {
            id: 1,
            attempt: 0,
            name: "count at App.scala:7".into(),
            description: None,
            job_ids: [3].into(),
            sql: None,
            status: text,
            tasks: 4,
            executor_cpu_ns: answer.min(3),
            deserialize_cpu_ns: 0,
            run_time_ms: 0,
            submitted: None,
            completed: Some(WallTime(9)).filter(|_| answer >= 3),
        };
        Joined::Ready(Arc::new(SparkStages {
            app: app.into(),
            source: "http://driver:4040".into(),
            pages: String::new(),
            fetched: WallTime(answer),
            completed: false,
            stages: vec![stage],
            beside: vec![],
            notes: vec![],
        }))
    }
    fn told_stages(&self, _: &str) -> Option<Arc<SparkStages>> {
        None
    }
    fn tasks(&self, _: &str, _: u32, _: u32, _: Duration) -> Joined<SparkTasks> {
        Joined::NotAsked("tasks are not read".into())
    }
}

fn window(app: &str) -> Window {
    let until = WallTime::now();
    let row = Row {
        labels: Arc::new(LabelSetBuilder::new().set(LabelKey::App, app).build()),
        stack: Arc::new(Stack { frames: [].into(), end: StackEnd::Root }),
        kind: SampleKind::Cpu,
        count: 1,
        weight: 1,
    };
    Window {
        range: TimeRange { from: until.minus(Duration::from_secs(10)), until },
        rows: vec![row],
        ledger: Vec::new(),
        pauses: Vec::new(),
        processes: Vec::new(),
        lost: LostCounts::default(),
        partial: false,
    }
}

/// Applications of one user.
fn apps(names: &[&str]) -> BTreeMap<String, u32> {
    names.iter().map(|name| ((*name).to_owned(), 1000)).collect()
}

/// CPU of the stage as it is kept.
fn kept(store: &dyn Store, app: &str) -> Vec<u64> {
    let now = WallTime::now();
    let range = TimeRange { from: now.minus(SEEN), until: now };
    store.spark_facts(app, range).unwrap().facts.iter().map(|fact| fact.executor_cpu_ns).collect()
}

#[test]
fn drivers_of_this_node_are_read_while_they_live() {
    let store = Arc::new(MemoryStore::new(MemoryStoreConfig::default()));
    store.append(window("app-1"));
    store.append(window("app-elsewhere"));
    let driver = Arc::new(Driver::default());
    let mut recorder = Recorder::new(store.clone(), driver.clone());
    let now = Instant::now();
    let drivers = apps(&["app-1", "app-not-kept"]);
    recorder.look(&drivers, now);
    assert_eq!(kept(&*store, "app-1"), [1]);
    recorder.look(&drivers, now + LOOK / 2);
    assert_eq!(kept(&*store, "app-1"), [1], "not due yet");
    for (answer, want) in [(1, 2), (2, 3), (3, 3)] {
        recorder.look(&drivers, now + LOOK * answer);
        assert_eq!(kept(&*store, "app-1"), [want]);
    }
    assert_eq!(driver.0.lock().unwrap().1, ["app-1"; 4], "what has no samples here is not asked about");
    assert_eq!(
        recorder.read["app-1"].given.0.len(),
        3,
        "of each answer but the last, which says nothing new"
    );
    assert_eq!(recorder.read["app-1"].all_given, Some(now));
    recorder.look(&drivers, now + EVERY);
    assert_eq!(
        recorder.read["app-1"].all_given,
        Some(now + EVERY),
        "what has not ended is given now and then"
    );
    recorder.look(&apps(&[]), now + EVERY + LOOK);
    assert!(recorder.read.is_empty(), "the driver is gone");
    assert_eq!(kept(&*store, "app-1"), [3], "and its words stay");
}

#[test]
fn what_the_store_does_not_take_is_given_to_it_again() {
    let dir = tempfile::tempdir().unwrap();
    let config = emberscope_store::DiskStoreConfig::new(dir.path());
    let store = Arc::new(emberscope_store::DiskStore::open(config).unwrap());
    store.append(window("app-1"));
    store.settle();
    let mut recorder = Recorder::new(store.clone(), Arc::new(Driver::default()));
    let now = Instant::now();
    recorder.look(&apps(&["app-1"]), now);
    assert_eq!(kept(&*store, "app-1"), [0; 0], "there is no window to keep it with");
    store.append(window("app-1"));
    recorder.look(&apps(&["app-1"]), now + LOOK);
    assert_eq!(kept(&*store, "app-1"), [2]);
}

#[test]
fn one_question_is_under_way_and_who_does_not_answer_waits_for_the_others() {
    let store = Arc::new(MemoryStore::new(MemoryStoreConfig::default()));
    let all = ["a-slow", "b-slow", "c"];
    all.iter().for_each(|app| store.append(window(app)));
    let driver = Arc::new(Driver::default());
    let mut recorder = Recorder::new(store.clone(), driver.clone());
    let now = Instant::now();
    for look in 0..4 {
        recorder.look(&apps(&all), now + LOOK * look);
    }
    assert_eq!(driver.0.lock().unwrap().1, ["a-slow", "b-slow", "c", "a-slow", "b-slow"]);
    assert_eq!(kept(&*store, "c"), [1]);
}

#[test]
fn drivers_of_one_user_are_no_reason_not_to_ask_anothers() {
    let many = (0..1000).map(|n| (format!("aaa-{n:04}"), 666));
    let drivers: BTreeMap<String, u32> = many.chain([("app-1".to_owned(), 185)]).collect();
    let asked = shared(&drivers);
    assert_eq!((asked.len(), asked[0].0.as_str()), (MAX_APPS, "aaa-0000"), "the oldest of a user stay");
    assert_eq!(asked.last(), Some(&(&"app-1".to_owned(), 185)));
    assert_eq!(shared(&apps(&["a", "b"])).len(), 2);
}

#[test]
fn who_waits_for_his_slow_drivers_comes_after_the_others() {
    let store = Arc::new(MemoryStore::new(MemoryStoreConfig::default()));
    ["a", "b-slow", "c", "d"].iter().for_each(|app| store.append(window(app)));
    let driver = Arc::new(Driver::default());
    let mut recorder = Recorder::new(store, driver.clone());
    let user = |app: &str| if app == "d" { 185 } else { 666 };
    let drivers: BTreeMap<String, u32> =
        ["a", "b-slow", "c", "d"].map(|app| (app.to_owned(), user(app))).into();
    recorder.waited.insert(666, Duration::from_secs(60));
    recorder.look(&drivers, Instant::now());
    assert_eq!(driver.0.lock().unwrap().1, ["d", "a", "b-slow"]);
    assert!(recorder.waited[&666] > Duration::from_secs(60));
    recorder.look(&BTreeMap::from([("d".to_owned(), 185)]), Instant::now() + LOOK);
    assert_eq!(recorder.waited.keys().collect::<Vec<_>>(), [&185]);
}
