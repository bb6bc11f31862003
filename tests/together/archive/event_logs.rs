//! Spark's event logs on each storage, imported from there by their URL.

use anyhow::{Context as _, Result, ensure};
use emberscope_archive::Remote;
use emberscope_tests::Here;
use std::path::Path;
use std::process::{Command, Output};
use xtask::launch::Storage;

/// Where the logs are, below the storage's URL.
pub const PLACE: &str = "events";
/// A log that Spark 3.5.9 wrote, and its application.
const LOG: &[u8] = include_bytes!("../../../profiler/import/src/event_log/recorded/3.5.9.log");
const APP: &str = "app-20261126075840-0000";

/// Puts a log there as a file, a rolling one as two, and what Spark leaves beside them.
pub async fn put(remote: &Remote) -> Result<()> {
    remote.put(&format!("{PLACE}/{APP}"), LOG.to_vec()).await?;
    let half = LOG.len() / 2;
    let cut = LOG.iter().skip(half).position(|byte| *byte == b'\n').context("a line's end")? + half + 1;
    let (begin, end) = LOG.split_at(cut);
    let dir = format!("{PLACE}/eventlog_v2_{APP}");
    remote.put(&format!("{dir}/events_1_{APP}"), begin.to_vec()).await?;
    remote.put(&format!("{dir}/events_2_{APP}"), end.to_vec()).await?;
    remote.put(&format!("{dir}/appstatus_{APP}"), Vec::new()).await?;
    remote.put(&format!("{PLACE}/app-other"), b"no log".to_vec()).await?;
    Ok(())
}

/// Imports them as a user does.
pub fn are_imported(here: &Here, storage: &dyn Storage, url: &str, dir: &Path) -> Result<()> {
    let import = |data: &str, more: &[&str]| -> Result<Output> {
        let data = dir.join(data);
        let mut command = Command::new(&here.binary);
        command.arg("import").arg("--data-dir").arg(&data).args(more).envs(storage.environment());
        let out = command.output()?;
        let left: Vec<_> = std::fs::read_dir(&data)?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        ensure!(!left.iter().any(|name| name.contains("brought")), "{left:?}");
        Ok(out)
    };
    let said =
        |out: &Output| String::from_utf8_lossy(&[&out.stdout[..], &out.stderr[..]].concat()).into_owned();
    let place = format!("{url}/{PLACE}");
    let told = format!("{APP} (event log job)");

    let all = import("all-logs", &["--event-log", &place])?;
    let text = said(&all);
    ensure!(all.status.success(), "{text}");
    // The rolling log has the same bytes.
    let same = format!("eventlog_v2_{APP}: was imported already, as {APP}");
    ensure!(text.matches(&told).count() == 1 && text.contains(&same), "a file and a rolling log: {text}");
    ensure!(
        text.contains("app-other: it is no event log of Spark") && text.contains("passed over"),
        "{text}"
    );
    let again = import("all-logs", &["--event-log", &place])?;
    ensure!(again.status.success() && !said(&again).contains(&told), "{}", said(&again));

    for (data, one) in
        [("file", format!("{place}/{APP}")), ("rolling", format!("{place}/eventlog_v2_{APP}/"))]
    {
        let out = import(data, &["--event-log", &one])?;
        ensure!(out.status.success() && said(&out).contains(&told), "{one}: {}", said(&out));
    }
    let of_app = import("of-app", &["--event-log", &place, "--app", APP])?;
    ensure!(of_app.status.success() && !said(&of_app).contains("app-other"), "{}", said(&of_app));
    let none = import("none", &["--event-log", &place, "--app", "app-9"])?;
    ensure!(
        none.status.code() == Some(3) && said(&none).contains("there is no event log"),
        "{}",
        said(&none)
    );
    Ok(())
}
