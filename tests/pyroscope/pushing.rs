//! Windows pushed to a server that Pyroscope's own protos generate (tests/pyroscope-client, `receive`).

use super::client;
use anyhow::{Context as _, Result, ensure};
use emberscope_model::{
    Frame, FrameKind, LabelKey, LabelSetBuilder, LostCounts, Row, SampleKind, Stack, StackEnd, TimeRange,
    WallTime, Window,
};
use emberscope_push::{Protocol, PushConfig, Pusher};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Two tasks of one stage, and one of another.
fn window(until: WallTime) -> Window {
    let range = TimeRange { from: until.minus(Duration::from_secs(10)), until };
    let row = |stage: &str, task: &str, count: u64| {
        let frames = ["java.lang.Thread.run", "org.example.Job.work"];
        let frames = frames.map(|name| Arc::new(Frame::new(FrameKind::JavaCompiled, name, "")));
        let labels = [
            (LabelKey::ServiceName, "nightly-etl"),
            (LabelKey::Node, "n1"),
            (LabelKey::App, "app-1"),
            (LabelKey::Executor, "2"),
            (LabelKey::Stage, stage),
            (LabelKey::Task, task),
        ];
        let labels = labels.iter().fold(LabelSetBuilder::new(), |set, (key, value)| set.set(*key, *value));
        let (labels, stack) =
            (Arc::new(labels.build()), Arc::new(Stack { frames: frames.into(), end: StackEnd::Root }));
        Row { labels, stack, kind: SampleKind::Cpu, count, weight: count * 10_101_010 }
    };
    let rows = vec![row("3", "7", 4), row("3", "8", 2), row("4", "9", 5)];
    Window {
        range,
        rows,
        ledger: Vec::new(),
        pauses: Vec::new(),
        processes: Vec::new(),
        lost: LostCounts::default(),
        partial: false,
    }
}

#[test]
fn what_is_pushed_is_read_by_pyroscopes_own_protos() -> Result<()> {
    let Some(client) = client("what_is_pushed_is_read_by_pyroscopes_own_protos")? else { return Ok(()) };
    // The first request is turned away: it comes again.
    let mut server = Command::new(client);
    let mut server = server.args(["receive", "1"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(server.stdout.take().context("no output")?).lines();
    let address = lines.next().context("the server did not start")??;
    let tenant = Some("team".to_owned());
    let protocol = Protocol::Pyroscope;
    let pusher = Pusher::start(PushConfig { protocol, url: format!("http://{address}"), tenant }, None)?;
    let until = WallTime::now();
    pusher.offer(&window(until));
    let mut series: Vec<Value> = Vec::new();
    for _ in 0..2 {
        series.push(serde_json::from_str(&lines.next().context("the server went")??)?);
    }
    series.sort_by_key(|one| one["labels"]["stage"].to_string());
    for (one, (stage, count)) in series.iter().zip([("3", 6_i64), ("4", 5)]) {
        let labels = json!({
            "__name__": "process_cpu", "service_name": "nightly-etl", "node": "n1", "app": "app-1",
            "executor": "2", "stage": stage,
        });
        ensure!(one["labels"] == labels && one["tenant"] == "team", "{one}");
        let sums = json!({ "samples:count": count, "cpu:nanoseconds": count * 10_101_010 });
        ensure!(one["sums"] == sums && one["period"] == "cpu:nanoseconds", "{one}");
        ensure!(one["length_ns"] == 10_000_000_000_i64, "{one}");
        ensure!(one["from_ns"].as_i64() == i64::try_from(until.0 - 10_000_000_000).ok(), "{one}");
        ensure!(
            one["stacks"][0]["functions"] == json!(["org.example.Job.work", "java.lang.Thread.run"]),
            "{one}"
        );
        ensure!(one["id"].as_str().is_some_and(|id| id.len() == 36), "{one}");
    }
    let state = pusher.state();
    ensure!(state.retries == 1 && state.dropped == [0; 7], "{state:?}");
    drop(pusher);
    server.kill()?;
    server.wait()?;
    Ok(())
}
