//! The daemon's life and its refusals: what cannot start says why and what mends it, what runs goes on.
//!
//! Each test starts the optimised daemon on the real kernel, most of them with short windows so that an
//! answer comes soon. What needs Spark is in applications/.

use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, Here, Reply, Running, can_unshare_mounts, copy_program, ran, skip, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Short windows, for answers soon.
const QUICK: [&str; 2] = ["--window", "2s"];
const SOON: Duration = Duration::from_secs(180);

/// A program that only burns CPU.
fn spinner(dir: &Path) -> Result<Running> {
    let mut shell = Command::new("sh");
    shell.args(["-c", "while :; do :; done"]);
    Running::start("a busy shell", &mut shell, &dir.join("spinner.log"))
}

/// Samples of a process in all windows so far.
fn samples_of(daemon: &Daemon, pid: u32) -> Result<u64> {
    let answer = daemon.json(&format!("/api/v1/flamegraph?pid={pid}&format=json"))?;
    answer["quality"]["samples"].as_u64().context("no samples in the answer")
}

fn kill(pid: u32, signal: Signal) -> Result<()> {
    let pid = Pid::from_raw(i32::try_from(pid)?).context("pid 0")?;
    Ok(kill_process(pid, signal)?)
}

/// The arguments of a daemon that is expected to refuse.
fn daemon_words(binary: &Path, data_dir: &Path, more: &[&str]) -> Vec<String> {
    let mut words = vec![binary.display().to_string(), "daemon".to_owned(), "--log".into(), "warn".into()];
    words.extend(["--data-dir".to_owned(), data_dir.display().to_string()]);
    // Others run on this machine.
    words.extend(["--socket".to_owned(), data_dir.join("emberscope.sock").display().to_string()]);
    words.extend(more.iter().map(|&word| word.to_owned()));
    words
}

#[test]
fn what_cannot_start_says_why_and_what_mends_it() -> Result<()> {
    let test = "what_cannot_start_says_why_and_what_mends_it";
    let Some(here) = Here::or_skip(test) else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let free = ["--listen", "127.0.0.1:0"];
    let data = dir.path().join("data");
    let refused = |data: &Path, more: &[&str]| ran(daemon_words(&here.binary, data, more));

    // Beyond loopback without a token.
    let open = refused(&data, &["--listen", "0.0.0.0:0"])?;
    open.refused(2, &["0.0.0.0:0", "other machines", "set token-file", "127.0.0.1"])?;

    // A key that there is not, in the file and as a flag.
    let config = dir.path().join("emberscope.toml");
    std::fs::write(&config, "hz = 99\nwindo = \"10s\"\n")?;
    let config = config.display().to_string();
    refused(&data, &["--config", &config])?.refused(2, &[&config, "line 2", "\"windo\"", "\"window\""])?;
    let flag = refused(&data, &["--ring-byte", "4KiB"])?;
    ensure!(flag.code == 2 && flag.err.contains("--ring-bytes"), "{flag:#?}");
    refused(&data, &["--config", "/nowhere.toml"])?.refused(2, &["/nowhere.toml", "No such file"])?;

    // A data directory that cannot be.
    let file = dir.path().join("file");
    std::fs::write(&file, "")?;
    refused(&file.join("data"), &free)?.refused(1, &["file/data", "Not a directory", "--data-dir"])?;
    refused(Path::new("/proc/emberscope"), &free)?.refused(1, &["/proc/emberscope", "--data-dir"])?;

    // Another daemon has the port, or the directory.
    let first = here.daemon(dir.path(), &QUICK)?;
    let address = first.url().trim_start_matches("http://");
    let port = refused(&dir.path().join("other"), &["--listen", address])?;
    port.refused(1, &[address, "in use", "stop it or choose another address", "listen"])?;
    let pid = first.pid().to_string();
    let second = refused(&data, &free)?;
    second.refused(1, &["another emberscope daemon", &pid, "stop it", "--data-dir"])?;
    // The first one does not mind.
    ensure!(first.get("/healthz")?.status == 200);
    ensure!(first.stop()?.success());
    Ok(())
}

/// Puts a sysctl back when it goes.
struct Sysctl(PathBuf, String);

impl Sysctl {
    fn set(path: &str, value: &str) -> Result<Self> {
        let before = std::fs::read_to_string(path)?;
        std::fs::write(path, value).with_context(|| format!("writing {path}"))?;
        Ok(Self(path.into(), before))
    }
}

impl Drop for Sysctl {
    fn drop(&mut self) {
        let _ = std::fs::write(&self.0, &self.1);
    }
}

#[test]
fn without_rights_the_missing_ones_are_named() -> Result<()> {
    let test = "without_rights_the_missing_ones_are_named";
    let Some(here) = Here::or_skip(test) else { return Ok(()) };
    if ran(["setpriv", "--version"])?.code != 0 {
        skip(test, "there is no setpriv (package util-linux)");
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    // nobody must get at the binary, wherever the build stands.
    let binary = dir.path().join("emberscope");
    copy_program(&here.binary, &binary)?;
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755))?;
    let data = dir.path().join("data");
    std::fs::create_dir(&data)?;
    std::fs::set_permissions(&data, PermissionsExt::from_mode(0o777))?;
    let with = |rights: &[&str], data: &Path| {
        let words = daemon_words(&binary, data, &["--listen", "127.0.0.1:0"]);
        ran(std::iter::once("setpriv").chain(rights.iter().copied()).map(str::to_owned).chain(words))
    };
    let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    with(&nobody, &data)?.refused(1, &["CAP_BPF and CAP_PERFMON", "run as root", "capabilities"])?;
    with(&nobody, &dir.path().join("mine"))?.refused(1, &["mine", "Permission denied", "--data-dir"])?;

    // perf_event_paranoid is in the way of who lacks CAP_PERFMON, and of nobody else.
    let _paranoid = Sysctl::set("/proc/sys/kernel/perf_event_paranoid", "4")?;
    let no_perfmon = ["--bounding-set", "-perfmon,-sys_admin", "--inh-caps", "-perfmon,-sys_admin"];
    with(&no_perfmon, &data)?.refused(1, &["needs CAP_PERFMON: run as root or give"])?;
    let record = ["record", "--duration", "1s", "-o", "-"];
    let words = no_perfmon.iter().copied().chain([binary.to_str().context("path")?]).chain(record);
    ran(std::iter::once("setpriv").chain(words))?.refused(1, &["needs CAP_PERFMON"])?;
    ensure!(here.daemon(dir.path(), &QUICK)?.stop()?.success());
    Ok(())
}

#[test]
fn a_kernel_without_type_information_is_sampled_with_less() -> Result<()> {
    let test = "a_kernel_without_type_information_is_sampled_with_less";
    let Some(mut here) = Here::or_skip(test) else { return Ok(()) };
    if !can_unshare_mounts() {
        skip(test, "the root directory is no mount point (a plain chroot): no mounts of one's own");
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    // In a mount namespace of its own, with nothing where the kernel shows its types.
    let script = dir.path().join("without-btf");
    let hide = "mount -t tmpfs none /sys/kernel/btf && exec \"$@\"";
    let text = format!("#!/bin/sh\nexec unshare -m sh -c '{hide}' sh '{}' \"$@\"\n", here.binary.display());
    std::fs::write(&script, text)?;
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755))?;
    if !Path::new("/sys/kernel/btf").is_dir() {
        skip(test, "this kernel has no BTF to hide: every other test is this one");
        return Ok(());
    }
    here.binary = script.clone();

    let doctor = ran([script.as_os_str(), "doctor".as_ref(), "--json".as_ref()])?.good()?;
    let doctor: Value = serde_json::from_str(&doctor.out).with_context(|| doctor.out.clone())?;
    let text = doctor.to_string();
    ensure!(text.contains("CONFIG_DEBUG_INFO_BTF"), "the doctor names no mend: {doctor:#}");

    let daemon = here.daemon(dir.path(), &QUICK)?;
    let busy = spinner(dir.path())?;
    wait_for("samples without BTF", SOON, || Ok((samples_of(&daemon, busy.pid())? > 100).then_some(())))?;
    let status = daemon.json("/api/v1/status")?;
    let findings = status["host"]["findings"].as_array().context("no findings")?.clone();
    let state = |name: &str| findings.iter().find(|f| f["name"] == name).cloned().unwrap_or_default();
    let btf = state("btf");
    ensure!(btf["state"] == "degraded" && btf["value"] == "no", "{status:#}");
    let says = btf["says"].as_str().unwrap_or_default();
    ensure!(
        says.contains("scanning") && says.contains("no user stack"),
        "what is missing is not said: {btf}"
    );
    // A process that starts now is found all the same.
    let later = spinner(dir.path())?;
    wait_for(
        "a process that came later",
        SOON,
        || Ok((samples_of(&daemon, later.pid())? > 0).then_some(())),
    )?;
    let lost = daemon.json("/api/v1/flamegraph?format=json")?["quality"]["lost"].clone();
    ensure!(lost == 0, "lost {lost} samples");
    ensure!(daemon.stop()?.success());
    Ok(())
}

fn error_of(reply: &Reply, status: u16, code: &str) -> Result<Value> {
    ensure!(reply.status == status, "{} instead of {status}: {}", reply.status, reply.body);
    let body: Value = serde_json::from_str(&reply.body).with_context(|| reply.body.clone())?;
    ensure!(body["error"]["code"] == code, "{code} expected: {body}");
    let message = body["error"]["message"].as_str().unwrap_or_default();
    ensure!(!message.is_empty() && message.lines().count() == 1, "not one sentence: {body}");
    Ok(body["error"].clone())
}

#[test]
fn bad_questions_get_errors_with_the_mend() -> Result<()> {
    let Some(here) = Here::or_skip("bad_questions_get_errors_with_the_mend") else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let daemon = here.daemon(dir.path(), &QUICK)?;
    let busy = spinner(dir.path())?;
    wait_for("a window", SOON, || Ok((samples_of(&daemon, busy.pid())? > 0).then_some(())))?;

    for (query, code, parameter, says) in [
        ("format=png", "bad_parameter", "format", "svg"),
        ("unit=s", "bad_parameter", "unit", "ns"),
        ("type=heap", "bad_parameter", "type", "cpu"),
        ("from=yesterday", "bad_parameter", "from", "yesterday"),
        ("from=now&until=now-1m", "bad_parameter", "from", "before"),
        ("from=1700000000&until=1700000000", "bad_parameter", "from", "before"),
        ("group=stages", "bad_parameter", "group", "`stage`"),
        ("max_nodes=0", "bad_parameter", "max_nodes", "1"),
        ("query=%7Bpid%3D", "bad_parameter", "query", "query"),
        ("query=%7Bexeuctor%3D%221%22%7D", "bad_parameter", "query", "`executor`"),
        ("exeuctor=1", "unknown_parameter", "exeuctor", "`executor`"),
    ] {
        let reply = daemon.get(&format!("/api/v1/flamegraph?{query}"))?;
        let error = error_of(&reply, 400, code).with_context(|| query.to_owned())?;
        ensure!(error["parameter"] == parameter, "{query}: {error}");
        ensure!(error["message"].as_str().is_some_and(|m| m.contains(says)), "{query}: {error}");
    }
    error_of(&daemon.get("/api/v1/flamegraph?a=%zz")?, 400, "bad_query_string")?;
    let unknown = error_of(&daemon.get("/api/v1/flamegraph?app=app-0")?, 404, "unknown_app")?;
    ensure!(unknown["parameter"] == "app" && unknown["message"].to_string().contains("app-0"), "{unknown}");
    ensure!(daemon.get("/api/v1/flamegraf")?.status == 404);

    // Before the first sample: an empty answer that says which windows there are.
    let reply = daemon.get("/api/v1/flamegraph?from=1700000000&until=1700000060&format=json")?;
    ensure!(reply.status == 200, "{}", reply.body);
    let early: Value = serde_json::from_str(&reply.body)?;
    ensure!(early["windows"] == 0 && early["quality"]["samples"] == 0 && early["total"] == 0, "{early}");
    let span = early["span"]["from"].as_str().context("no span")?;
    ensure!(early["note"].as_str().is_some_and(|note| note.contains(span)), "{early}");

    // By the command line: codes that a script can tell apart.
    let url = daemon.url();
    let binary = here.binary.display().to_string();
    let ask = |words: &[&str]| ran([binary.as_str()].iter().chain(words).chain(&["--url", url]).copied());
    ask(&["top", "--app", "app-0"])?.refused(3, &["app-0"])?;
    ask(&["top", "--from", "now", "--until", "now-1m"])?.refused(2, &["from", "before"])?;
    ask(&["executors", "--from", "1700000000", "--until", "1700000060"])?
        .refused(3, &["No closed window", span])?;
    let nobody = ran([binary.as_str(), "apps", "--url", "http://127.0.0.1:1"])?;
    nobody.refused(4, &["http://127.0.0.1:1", "start one with `emberscope daemon`"])?;
    let status = ask(&["status"])?.good()?;
    ensure!(status.out.contains("perf_event_paranoid"), "{}", status.out);
    ensure!(daemon.stop()?.success());
    Ok(())
}

#[test]
fn an_end_in_order_and_one_by_force_leave_nothing_in_the_way() -> Result<()> {
    let test = "an_end_in_order_and_one_by_force_leave_nothing_in_the_way";
    let Some(here) = Here::or_skip(test) else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let first = here.daemon(dir.path(), &QUICK)?;
    kill(first.pid(), Signal::KILL)?;
    drop(first);
    let second = here.daemon(dir.path(), &QUICK)?;
    let log = second.log().to_owned();
    let status = second.stop()?;
    ensure!(status.code() == Some(0), "{status}");
    let log = std::fs::read_to_string(log)?;
    ensure!(log.contains("stopped") && !log.contains("ERROR") && !log.contains("panicked"), "{log}");
    // SIGINT is an order, too.
    let mut shell = Command::new(&here.binary);
    shell.arg("daemon").arg("--data-dir").arg(dir.path().join("data")).args(["--listen", "127.0.0.1:0"]);
    shell.args(["--socket", "none"]);
    let mut third = Running::start("the daemon", &mut shell, &dir.path().join("third.log"))?;
    let sampling =
        || Ok(std::fs::read_to_string(dir.path().join("third.log"))?.contains("sampling").then_some(()));
    wait_for("the third daemon", SOON, sampling)?;
    kill(third.pid(), Signal::INT)?;
    third.wait(SOON)
}
