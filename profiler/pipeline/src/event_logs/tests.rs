//! Logs of a driver that ends, of somebody else, of another application, and one that is not there.

use super::*;
use emberscope_model::{LabelSetBuilder, LostCounts, Row, Stack, StackEnd, Window};
use emberscope_store::{MemoryStore, MemoryStoreConfig};
use std::fs;

const START: &str = r#"{"Event":"SparkListenerApplicationStart","App Name":"etl","App ID":"app-1","Timestamp":1700000000000,"User":"ann"}
{"Event":"SparkListenerStageCompleted","Stage Info":{"Stage ID":3,"Stage Attempt ID":0,"Stage Name":"count at App.scala:7","Number of Tasks":4,"Submission Time":1700000001000,"Completion Time":1700000002000}}
"#;
const END: &str = r#"{"Event":"SparkListenerApplicationEnd","Timestamp":1700000003000}
"#;

struct Here {
    dir: tempfile::TempDir,
    store: Arc<dyn Store>,
    logs: EventLogs,
    now: Instant,
}

fn here() -> Here {
    let store = MemoryStore::new(MemoryStoreConfig::default());
    let until = WallTime::now();
    let row = Row {
        labels: Arc::new(LabelSetBuilder::new().set(LabelKey::App, "app-1").build()),
        stack: Arc::new(Stack { frames: [].into(), end: StackEnd::Root }),
        kind: SampleKind::Cpu,
        count: 1,
        weight: 1,
    };
    store.append(Window {
        range: TimeRange { from: until.minus(Duration::from_secs(10)), until },
        rows: vec![row],
        ledger: Vec::new(),
        pauses: Vec::new(),
        processes: Vec::new(),
        lost: LostCounts::default(),
        partial: false,
    });
    let (dir, store): (_, Arc<dyn Store>) = (tempfile::tempdir().unwrap(), Arc::new(store));
    let brought = dir.path().join("brought");
    let logs = EventLogs::new(&store, &[LogPlace::Dir(dir.path().to_owned())], brought);
    Here { dir, store, logs, now: Instant::now() }
}

impl Here {
    fn write(&self, name: &str, text: &[&str]) {
        fs::write(self.dir.path().join(name), text.concat()).unwrap();
    }

    /// A look so many seconds after the first, with or without the driver.
    fn look(&mut self, seconds: u64, user: Option<u32>) {
        let drivers = user.map(|user| ("app-1".to_owned(), user)).into_iter().collect();
        self.logs.look(&drivers, self.now + Duration::from_secs(seconds));
    }

    /// Names of stages that are kept.
    fn kept(&self) -> Vec<String> {
        let now = WallTime::now();
        let range = TimeRange { from: now.minus(SEEN), until: now };
        let facts = self.store.spark_facts("app-1", range).unwrap().facts;
        facts.into_iter().map(|fact| fact.name.to_string()).collect()
    }
}

fn me() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[test]
fn a_log_is_read_when_its_driver_has_ended() {
    let mut here = here();
    here.write("app-1.inprogress", &[START]);
    here.look(0, Some(me()));
    here.look(60, Some(me()));
    assert!(here.kept().is_empty(), "it is not due");
    here.look(70, None);
    here.look(75, None);
    assert!(here.kept().is_empty(), "the driver has just ended");
    fs::remove_file(here.dir.path().join("app-1.inprogress")).unwrap();
    here.write("app-1", &[START, END]);
    here.look(80, None);
    assert_eq!(here.kept(), ["count at App.scala:7"]);
    assert!(here.logs.apps.is_empty(), "and is done with");
}

#[test]
fn a_log_that_goes_on_is_read_now_and_then() {
    let mut here = here();
    here.write("app-1.inprogress", &[START]);
    here.look(0, Some(me()));
    here.look(EVERY.as_secs(), Some(me()));
    assert_eq!(here.kept(), ["count at App.scala:7"]);
    assert_eq!(here.logs.apps["app-1"].due, here.now + 2 * EVERY);
}

#[test]
fn a_log_without_an_end_is_looked_for_some_times() {
    let mut here = here();
    here.look(0, Some(me()));
    here.look(10, None);
    let dues = [20, 60, 220, 860];
    for (at, due) in dues.into_iter().enumerate() {
        assert_eq!(here.logs.apps["app-1"].due, here.now + Duration::from_secs(due), "{at}");
        here.look(due, None);
    }
    assert!(here.logs.apps.is_empty() && here.kept().is_empty());
}

#[test]
fn what_is_not_its_users_or_not_its_own_is_not_believed() {
    let mut here = here();
    here.write("app-1", &[START, END]);
    here.look(0, Some(me() + 1));
    here.look(10, None);
    here.look(20, None);
    assert!(here.kept().is_empty(), "another user's file");
    let other = START.replace("app-1", "app-2");
    here.write("app-1", &[&other, END]);
    here.look(100, Some(me()));
    here.look(110, None);
    here.look(130, None);
    assert!(here.kept().is_empty(), "another application's log");
    let elsewhere = here.dir.path().join("elsewhere");
    here.write("elsewhere", &[START, END]);
    fs::remove_file(here.dir.path().join("app-1")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, here.dir.path().join("app-1")).unwrap();
    here.look(1000, None);
    assert!(here.kept().is_empty(), "a link");
}

#[test]
fn a_log_elsewhere_is_brought_when_its_driver_has_ended() {
    let mut here = here();
    let there = tempfile::tempdir().unwrap();
    fs::write(there.path().join("app-1"), [START, END].concat()).unwrap();
    here.logs.places = vec![LogPlace::Url(format!("file://{}", there.path().display()))];
    here.look(0, Some(me() + 1));
    here.look(EVERY.as_secs(), Some(me() + 1));
    assert!(here.kept().is_empty(), "its driver runs");
    here.look(EVERY.as_secs() + 10, None);
    here.look(EVERY.as_secs() + 30, None);
    assert_eq!(here.kept(), ["count at App.scala:7"]);
    assert!(here.logs.apps.is_empty() && !here.logs.brought.exists());
}

#[test]
fn a_user_of_many_applications_leaves_room_for_others() {
    let mut here = here();
    let mut drivers: BTreeMap<String, u32> = (0..500).map(|n| (format!("app-flood-{n:03}"), 65534)).collect();
    drivers.insert("app-z".to_owned(), me());
    here.logs.look(&drivers, here.now);
    assert_eq!((here.logs.of(65534), here.logs.of(me())), (MAX_OF_USER, 1));
    // Of two that are due, the one comes first whose user had less of the thread's time.
    here.logs.spent.insert(65534, Duration::from_secs(60));
    here.logs.look(&BTreeMap::new(), here.now + LOOK);
    here.logs.look(&BTreeMap::new(), here.now + LOOK + AFTER);
    assert!(!here.logs.apps.contains_key("app-z"), "it has no samples, so it is done with");
    assert_eq!(here.logs.of(65534), MAX_OF_USER);
}
