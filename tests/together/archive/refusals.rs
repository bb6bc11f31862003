//! Who is refused, and what is not there.

use super::*;

pub(super) fn a_refusal_is_told_and_disturbs_nothing(
    here: &Here,
    storage: &dyn Storage,
    dir: &Path,
) -> Result<()> {
    let (wrong, mend) = storage.refused();
    let url = storage.url("x");
    let arguments = [&SMALL[..], &["--archive", &url]].concat();
    let daemon = Daemon::start_in(&here.binary, &dir.join("data"), &arguments, &wrong)?;
    let says = wait("the failure is told", || Ok(archive(&daemon)?["failing"].as_str().map(str::to_owned)))?;
    ensure!(says.contains("credentials") && says.contains(mend), "{says}");
    wait_visible(&daemon, now_ms()? + 2 * WINDOW_MS)?;
    let server = Daemon::serve(&here.binary, &dir.join("cache"), &url, &["--refresh", "1s"], &wrong)?;
    let ready = wait("it says why it is not ready", || {
        let reply = server.get("/readyz")?;
        Ok((reply.status == 503 && reply.body.contains("credentials")).then_some(reply.body))
    })?;
    ensure!(ready.contains(mend), "{ready}");
    let reply = server.get("/api/v1/flamegraph?format=json")?;
    ensure!(
        reply.status == 503 && reply.body.contains("archive_unavailable"),
        "{}: {}",
        reply.status,
        reply.body
    );
    Ok(())
}

#[test]
pub(super) fn a_bucket_that_is_not_there_is_told() -> Result<()> {
    const TEST: &str = "a_bucket_that_is_not_there_is_told";
    let Some(here) = Here::or_skip(TEST) else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let Some(storage) = start_s3(&here, TEST, &dir.path().join("storage"))? else { return Ok(()) };
    let none =
        Daemon::serve(&here.binary, &dir.path().join("cache"), "s3://none/x", &[], &storage.environment())?;
    wait("it is told", || {
        let reply = none.get("/readyz")?;
        Ok((reply.status == 503 && reply.body.contains("no such object or bucket")).then_some(()))
    })
}
