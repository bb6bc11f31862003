//! Archives on real servers: what `emberscope serve` answers from one is what the daemon answers that wrote it, also
//! after the server was away and after `emberscope compact`; who is refused is told and disturbs nothing.
//!
//! S3 is versitygw, built from tests/s3-server, and Google's storage the same behind a door for its tokens; Azure's is
//! azurite, which tests/azure-server pins, in node; HDFS is Hadoop's minicluster in a JVM. One body for all, and one test
//! for each, which starts its server once. No Spark: the processes of this machine are enough.

mod event_logs;
mod nodes;
mod policy;
mod refusals;
mod starts;
mod storage;
use refusals::*;
use starts::*;

use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, Here, Running, skip, wait_for, wait_visible};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use xtask::launch::{Azure, Gs, Hdfs, S3, Storage, azure, gs, hdfs, s3};

/// Short windows; half of the memory makes a block.
const SMALL: [&str; 4] = ["--window", "2s", "--store-bytes", "512KiB"];
const WINDOW_MS: u64 = 2_000;
/// How long what takes seconds may take on a crowded machine.
const PATIENCE: Duration = Duration::from_secs(180);

fn now_ms() -> Result<u64> {
    Ok(u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?)
}

/// Starts a server in a directory; None after saying that the test is skipped.
type Start = fn(&Here, &str, &Path) -> Result<Option<Box<dyn Storage>>>;

fn busy(dir: &Path) -> Result<Running> {
    let mut shell = Command::new("sh");
    shell.args(["-c", "while :; do :; done"]);
    Running::start("a busy shell", &mut shell, &dir.join("busy.log"))
}

fn archive(daemon: &Daemon) -> Result<Value> {
    Ok(daemon.json("/api/v1/status")?["archive"].clone())
}

fn wait<T>(what: &str, look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    wait_for(what, PATIENCE, look)
}

/// Waits until all that is visible now is in the archive.
fn wait_copied(daemon: &Daemon) -> Result<()> {
    let (begun, mut last, mut rounds) = (Instant::now(), 0.0_f64, 0);
    wait("everything is copied", || {
        let archive = archive(daemon)?;
        let behind = archive["behind_seconds"].as_f64().context("behind_seconds")?;
        // The second round that ended since then began after it.
        let ended = begun.elapsed().as_secs_f64() - behind;
        rounds += u32::from(ended > last + 1.0);
        last = last.max(ended);
        Ok((rounds >= 2).then_some(()))
    })
}

fn questions(range: &str) -> Vec<String> {
    vec![
        format!("/api/v1/flamegraph?format=json&{range}"),
        format!("/api/v1/flamegraph?format=folded&group=role,pid&annotate=1&{range}"),
        format!("/api/v1/flamegraph?role=other&format=folded&unit=ns&{range}"),
        format!("/api/v1/series?by=role&step=4s&{range}"),
        format!("/api/v1/ledger?by=role,thread_class&{range}"),
        format!("/api/v1/labels/pid/values?{range}"),
        format!("/api/v1/labels?{range}"),
        format!("/api/v1/processes?{range}"),
        format!("/api/v1/top?{range}"),
        format!("/api/v1/apps?{range}"),
    ]
}

/// As answered, but for the span of all windows that are kept.
fn answer(daemon: &Daemon, path: &str) -> Result<String> {
    let reply = daemon.get(path)?;
    ensure!(reply.status == 200, "GET {path} was answered {}: {}", reply.status, reply.body);
    let Ok(Value::Object(mut answer)) = serde_json::from_str(&reply.body) else { return Ok(reply.body) };
    answer.remove("span");
    Ok(Value::Object(answer).to_string())
}

fn ensure_same(daemon: &Daemon, server: &Daemon, range: &str) -> Result<()> {
    for question in questions(range) {
        let (one, other) = (answer(daemon, &question)?, answer(server, &question)?);
        let first = one.lines().zip(other.lines()).find(|(one, other)| one != other);
        let at = first.map(|(one, other)| {
            let place = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count().saturating_sub(60);
            let short = |line: &str| line.chars().skip(place).take(300).collect::<String>();
            (short(one), short(other))
        });
        ensure!(one == other, "{question} is answered otherwise: {at:?}");
    }
    Ok(())
}

/// A store that an earlier version wrote, of an hour that is over, and where its daemon keeps it.
fn old_hour(data: &Path) -> Result<()> {
    let blocks = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/store-1/blocks");
    std::fs::create_dir_all(data.join("store"))?;
    let copied = Command::new("cp").arg("-r").arg(blocks).arg(data.join("store")).status()?;
    ensure!(copied.success(), "the old hour cannot be copied");
    Ok(())
}

/// What a test of answers does.
struct Course {
    /// What windows may take before they become a block.
    memory: &'static str,
    /// Blocks that are in the archive before it is asked.
    blocks: u64,
    /// Whether the storage goes away and comes back.
    away: bool,
}

/// Blocks every few seconds.
const MANY: Course = Course { memory: "512KiB", blocks: 3, away: true };
/// The old hour is the only block, and all else pieces of a journal.
const FEW: Course = Course { memory: "64MiB", blocks: 1, away: true };

/// Of the old hour.
const OLD: &str = "from=2023-11-14T22:00:00Z&until=2023-11-14T23:00:00Z";

/// Brings the old hour together; what is told of it.
fn compact(here: &Here, storage: &dyn Storage, url: &str, dir: &Path) -> Result<Vec<Value>> {
    let range = ["--from", "2023-11-14T22:00:00Z", "--until", "2023-11-14T23:00:00Z"];
    let mut command = Command::new(&here.binary);
    command.args(["compact", "--json", "--store", url]).args(range).arg("--cache-dir").arg(dir);
    let out = command.envs(storage.environment()).output()?;
    ensure!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let lines = String::from_utf8(out.stdout)?;
    lines.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// All that is asked of a storage, on one server.
fn holds(test: &str, start: Start, course: Option<&Course>) -> Result<()> {
    let Some(here) = Here::or_skip(test) else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let Some(mut storage) = start(&here, test, &dir.path().join("storage"))? else { return Ok(()) };
    storage::does_what_archives_need(&*storage).context("what archives need of it")?;
    let logs = dir.path().join("logs");
    std::fs::create_dir(&logs)?;
    event_logs::are_imported(&here, &*storage, &storage.url(storage::BELOW), &logs).context("event logs")?;
    let refused = dir.path().join("refused");
    std::fs::create_dir(&refused)?;
    a_refusal_is_told_and_disturbs_nothing(&here, &*storage, &refused).context("a refusal")?;
    match course {
        None => Ok(()),
        Some(course) => an_archive_answers_as_the_daemon_does(&here, &mut *storage, dir.path(), course),
    }
}

fn an_archive_answers_as_the_daemon_does(
    here: &Here,
    storage: &mut dyn Storage,
    dir: &Path,
    course: &Course,
) -> Result<()> {
    let url = storage.url("a/prefix");
    let keep =
        ["--archive", &url, "--retention-age", "9000d", "--rollup-1m-age", "0s", "--rollup-10m-age", "0s"];
    let arguments = [&["--window", "2s", "--store-bytes", course.memory][..], &keep].concat();
    let data = dir.join("data");
    old_hour(&data)?;
    let daemon = Daemon::start_in(&here.binary, &data, &arguments, &storage.environment())?;
    let _busy = busy(dir)?;
    let from = now_ms()? / WINDOW_MS * WINDOW_MS;
    wait("the first blocks are in the archive", || {
        Ok((archive(&daemon)?["blocks"].as_u64() >= Some(course.blocks)).then_some(()))
    })?;
    // Windows that are in no block yet.
    wait_visible(&daemon, from + 4 * WINDOW_MS)?;
    let until = now_ms()? / WINDOW_MS * WINDOW_MS;
    wait_visible(&daemon, until)?;
    wait_copied(&daemon)?;
    let serve = ["--window", "2s", "--refresh", "1s"];
    let cache = dir.join("cache");
    let server = Daemon::serve(&here.binary, &cache, &url, &serve, &storage.environment())?;
    wait("the server is ready", || Ok((server.get("/readyz")?.status == 200).then_some(())))?;
    let range = format!("from={from}&until={until}");
    ensure_same(&daemon, &server, &range).context("the first time")?;
    ensure_same(&daemon, &server, OLD).context("the old hour")?;
    let page = server.get("/")?;
    ensure!(page.status == 200 && page.body.contains("<title"), "no page: {}", page.status);

    if course.away {
        a_storage_goes_and_comes(storage, &url, (&daemon, &server), from, until)?;
    }
    ensure!(server.stop()?.success());

    let made = compact(here, storage, &url, &dir.join("compact"))?;
    ensure!(!made.is_empty() && made.iter().all(|one| one["unchanged"] == false), "{made:?}");
    let again = compact(here, storage, &url, &dir.join("compact"))?;
    ensure!(again.len() == 1 && again[0]["unchanged"] == true, "{again:?}");
    let cache = dir.join("cache-2");
    let server = Daemon::serve(&here.binary, &cache, &url, &serve, &storage.environment())?;
    wait("the server is ready", || Ok((server.get("/readyz")?.status == 200).then_some(())))?;
    for one in made {
        let app = one["app"].as_str().context("app")?;
        let question = format!("/api/v1/flamegraph?app={app}&group=stage&format=folded&unit=ns&{OLD}");
        let (ours, theirs) = (answer(&daemon, &question)?, answer(&server, &question)?);
        ensure!(!ours.is_empty() && ours == theirs, "{question}: {ours}\nis not\n{theirs}");
    }
    ensure!(daemon.stop()?.success() && server.stop()?.success());
    Ok(())
}

/// What was copied is answered meanwhile; what was seen meanwhile is copied then.
fn a_storage_goes_and_comes(
    storage: &mut dyn Storage,
    url: &str,
    (daemon, server): (&Daemon, &Daemon),
    from: u64,
    until: u64,
) -> Result<()> {
    let range = format!("from={from}&until={until}");
    storage.end();
    let failing =
        wait("the failure is told", || Ok(archive(daemon)?["failing"].as_str().map(str::to_owned)))?;
    ensure!(failing.contains(url), "{failing}");
    // Sampling goes on, and what was seen is answered.
    let later = now_ms()? / WINDOW_MS * WINDOW_MS + 3 * WINDOW_MS;
    wait_visible(daemon, later)?;
    ensure_same(daemon, server, &range).context("while the storage is away")?;
    let status = wait("the server tells it too", || {
        let archive = server.json("/api/v1/status")?["archive"].clone();
        Ok(archive["failing"].is_string().then_some(archive))
    })?;
    ensure!(status["set_aside"] == 0, "{status}");

    storage.begin()?;
    wait("it is written again", || Ok(archive(daemon)?["failing"].is_null().then_some(())))?;
    wait_copied(daemon)?;
    // Lists of a second ago.
    std::thread::sleep(Duration::from_secs(3));
    ensure_same(daemon, server, &format!("from={from}&until={later}")).context("when it is back")?;
    let (written, read) = (archive(daemon)?, server.json("/api/v1/status")?["archive"].clone());
    ensure!(written["errors"]["failed"].as_u64() > Some(0) && written["missed_blocks"] == 0, "{written}");
    ensure!(read["failing"].is_null() && read["set_aside"] == 0, "{read}");
    let metrics = server.get("/metrics")?.body;
    ensure!(metrics.contains("emberscope_archive_read_files_total"), "{metrics}");
    Ok(())
}

#[test]
fn an_archive_on_s3_answers_as_the_daemon_does() -> Result<()> {
    holds("an_archive_on_s3_answers_as_the_daemon_does", start_s3, Some(&MANY))
}

#[test]
fn an_archive_on_azure_answers_as_the_daemon_does() -> Result<()> {
    // A minute less: what a daemon does about errors is the same for all.
    let stays = Course { away: false, ..FEW };
    holds("an_archive_on_azure_answers_as_the_daemon_does", start_azure, Some(&stays))
}

#[test]
fn an_archive_on_hdfs_answers_as_the_daemon_does() -> Result<()> {
    // A block of fifteen files every few seconds is more than a namenode and a datanode in one small JVM take on a busy
    // machine.
    holds("an_archive_on_hdfs_answers_as_the_daemon_does", start_hdfs, Some(&FEW))
}

#[test]
fn gs_does_what_archives_need_and_refuses() -> Result<()> {
    holds("gs_does_what_archives_need_and_refuses", start_gs, None)
}
