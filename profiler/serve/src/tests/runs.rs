//! Several runs of one application's name: which one is meant.

use super::*;
use emberscope_model::LabelKey;
use emberscope_store::{MemoryStore, Store};
use jobs::{RUN, labels, row, thread, window};

/// Three runs of `etl`, a window each; the ids do not tell which was the last.
fn store() -> MemoryStore {
    let store = MemoryStore::new(Default::default());
    for (number, id) in [(0, "app-7"), (1, "app-9"), (2, "app-3")] {
        let process =
            labels(&[(LabelKey::App, id), (LabelKey::AppName, "etl"), (LabelKey::Role, "executor")]);
        let samples = 10 * (number + 1);
        let row = row(&thread(&process, "task", "1", "0", "0"), &[RUN], samples);
        store.append(window(number, vec![row], Vec::new(), Vec::new()));
    }
    store
}

async fn ask(query: &str) -> Got {
    let app = router(state(store()), Access::LocalHostOnly, Router::new());
    send(app, request("GET", &format!("/api/v1/{query}"))).await
}

#[tokio::test]
async fn a_run_is_told_from_the_last_one_on() {
    for (run, from, samples) in [("latest", 20, 30), ("-1", 20, 30), ("-2", 10, 20), ("-3", 0, 10)] {
        // Without times it is the run's own, however long ago.
        let body = ask(&format!("top?app=etl&run={run}")).await.json();
        assert_eq!(body["quality"]["samples"], samples, "{run}");
        let begun = emberscope_model::WallTime::from_millis((START + from) * 1000).to_string();
        assert_eq!(body["range"]["from"], json!(begun), "{run}");
    }
    // Of the runs in a range.
    let body = ask(&format!("top?app=etl&run=latest&{}", within(0, 20))).await.json();
    assert_eq!(body["quality"]["samples"], 20);
    let body = ask("top?app=app-9&run=-1").await.json();
    assert_eq!(body["quality"]["samples"], 20);
    let two = ask("diff?app=etl&left.run=-2&right.run=-1&format=json").await.json();
    assert_eq!((&two["left"]["samples"], &two["right"]["samples"]), (&json!(20), &json!(30)));
}

#[tokio::test]
async fn a_name_of_several_runs_offers_them_with_their_times() {
    let got = ask(&format!("top?app=etl&{}", within(0, 30))).await;
    let message = got.refused(409, "ambiguous_app", Some("app"));
    let time = |at: u64| emberscope_model::WallTime::from_millis((START + at) * 1000);
    let last = format!("app-3 from {} until {}", time(20), time(30));
    assert!(message.contains("app-7, app-9, app-3; or for the last by run=latest"), "{message}");
    assert!(message.ends_with(&last), "{message}");
    // In the store, and not in the last hour.
    let message = ask("top?app=etl").await.refused(409, "ambiguous_app", Some("app"));
    assert!(message.ends_with(&last), "{message}");
}

#[tokio::test]
async fn what_is_no_run_is_told() {
    let got = ask("top?app=etl&run=-4").await;
    let message = got.refused(404, "unknown_run", Some("run"));
    assert!(message.starts_with("`run=-4`: of `etl` there are fewer runs: app-7 from"), "{message}");
    assert_eq!(got.json()["error"]["choices"], json!(["-1", "-2", "-3"]));
    for run in ["0", "-0", "1", "last", "", "-", "--1", "-99999999999999999999999"] {
        let message = ask(&format!("top?app=etl&run={run}")).await.refused(400, "bad_parameter", Some("run"));
        assert!(message.contains("must be latest, -1"), "{message}");
    }
    for apps in ["", "app=&", "app=etl&app=app-9&"] {
        let message = ask(&format!("top?{apps}run=-1")).await.refused(400, "bad_parameter", Some("run"));
        assert!(message.contains("name one, with `app=`"), "{message}");
    }
    ask("top?app=nope&run=-1").await.refused(404, "unknown_app", Some("app"));
}
