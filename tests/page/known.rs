//! Known rows: two applications with two stages each, one of them and a method named to do harm, on a node of such a
//! name too.

use super::EVIL;
use anyhow::Result;
use emberscope_model::LabelKey::{App, AppName, Executor, Role, Stage, ThreadClass};
use emberscope_serve::Access;
use emberscope_tests::{FakeStore, Server};
use std::time::{SystemTime, UNIX_EPOCH};

/// Serves them; the address.
pub fn serve(access: Access) -> Result<String> {
    let mut store = FakeStore::default();
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let long: &'static str = Box::leak(format!("Job.run;Long.{}", "x".repeat(10_000)).into_boxed_str());
    let evil: &'static str =
        Box::leak(format!("Job.run;{};Job.leaf", EVIL.replace(';', "")).into_boxed_str());
    for (app, name) in [("app-1", "etl"), ("app-2", EVIL)] {
        for (stage, executor, ago) in [("0", "1", 120), ("1", "2", 60)] {
            let labels = [
                (App, app),
                (AppName, name),
                (Role, "executor"),
                (Executor, executor),
                (Stage, stage),
                (ThreadClass, "task"),
            ];
            store.add(now - ago, &labels, "Job.run;Job.work;java.util.Arrays.sort", 60);
            store.add(now - ago, &labels, "Job.run;Job.other", if stage == "0" { 10 } else { 40 });
            store.add(now - ago, &labels, evil, 20);
            store.add(now - ago, &labels, long, 10);
        }
    }
    let server = Server { access, node: EVIL, ..Server::of(store)? };
    Ok(format!("http://127.0.0.1:{}", server.start()?))
}
