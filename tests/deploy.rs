//! The files of deploy/ agree with each other: the same rights, the same port, the same paths.
//!
//! Whether each is valid in its own format is checked by deploy/check/lint.sh, whether all rights are needed
//! by deploy/check/rights.sh; that they are enough for the daemon is tested here.

use anyhow::{Context, Result};
use emberscope_tests::{Here, Running, can_unshare_mounts, skip};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn file(path: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(path);
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}

fn unit_list(unit: &str, key: &str) -> BTreeSet<String> {
    unit.lines()
        .filter_map(|line| line.strip_prefix(key)?.strip_prefix('='))
        .flat_map(str::split_whitespace)
        .map(str::to_owned)
        .collect()
}

fn daemon_set() -> Result<Value> {
    for document in serde_yaml_ng::Deserializer::from_str(&file("kubernetes/daemonset.yaml")?) {
        let value = Value::deserialize(document)?;
        if value["kind"] == "DaemonSet" {
            return Ok(value["spec"]["template"]["spec"].clone());
        }
    }
    anyhow::bail!("no DaemonSet")
}

#[test]
fn unit_and_manifest_give_the_same_rights() -> Result<()> {
    let unit = file("systemd/emberscope.service")?;
    let bounding = unit_list(&unit, "CapabilityBoundingSet");
    assert_eq!(bounding, unit_list(&unit, "AmbientCapabilities"));
    assert!(bounding.contains("CAP_BPF") && !bounding.contains("CAP_SYS_ADMIN"), "{bounding:?}");
    let pod = daemon_set()?;
    let security = &pod["containers"][0]["securityContext"];
    let added: BTreeSet<String> = security["capabilities"]["add"]
        .as_array()
        .context("add")?
        .iter()
        .filter_map(|c| Some(format!("CAP_{}", c.as_str()?)))
        .collect();
    assert_eq!(added, bounding);
    assert_eq!(security["capabilities"]["drop"], serde_json::json!(["ALL"]));
    assert_eq!((&security["privileged"], &pod["hostPID"]), (&Value::Bool(false), &Value::Bool(true)));
    Ok(())
}

#[test]
fn beyond_loopback_there_is_a_token() -> Result<()> {
    let pod = daemon_set()?;
    let container = &pod["containers"][0];
    let args: Vec<&str> =
        container["args"].as_array().context("args")?.iter().filter_map(Value::as_str).collect();
    assert!(args.contains(&"--listen=0.0.0.0:4099"));
    let token = args.iter().find_map(|a| a.strip_prefix("--token-file=")).context("a token file")?;
    let mounts = container["volumeMounts"].as_array().context("mounts")?;
    let mount = mounts.iter().find(|m| m["name"] == "token").context("the token's mount")?;
    assert!(token.starts_with(mount["mountPath"].as_str().context("mountPath")?));
    assert_eq!(container["ports"][0]["containerPort"], 4099);
    let volumes = pod["volumes"].as_array().context("volumes")?;
    let secret = volumes.iter().find(|v| v["name"] == "token").context("the token's volume")?;
    assert_eq!(secret["secret"]["defaultMode"], 0o400);
    Ok(())
}

/// Starts a command as the unit would (deploy/check/least-privilege.sh); DATA stays writable.
const AS_THE_UNIT: &str =
    "#!/bin/sh\nexec CHECK/least-privilege.sh --user nobody --data DATA BINARY \"$@\"\n";

const BUSY: &str = "public class Busy {
    static volatile long sink;
    static long burn(long x) {
        for (int i = 0; i < 1000000; i++) { x = x * 6364136223846793005L + 1; x ^= x >>> 17; }
        return x;
    }
    public static void main(String[] args) {
        long end = System.currentTimeMillis() + 900000;
        while (System.currentTimeMillis() < end) { sink += burn(sink + 1); }
    }
}";

/// A JVM of a user that is not ours, with a /tmp of its own and files that nobody else may read.
const AS_ANOTHER: &str = "mount -t tmpfs -o mode=1777 tmpfs /tmp; umask 077
    exec setpriv --reuid 4242 --regid 4242 --clear-groups \"$@\"";

/// With the unit's capabilities and no others, its system-call filter and no new privileges, the daemon
/// names the compiled code of JVMs of another user and of root, and of those that start after a root's.
#[test]
fn the_units_rights_are_enough() -> Result<()> {
    const NAME: &str = "the_units_rights_are_enough";
    let Some(here) = Here::or_skip(NAME) else { return Ok(()) };
    for tool in ["setpriv", "unshare", "python3", "systemd-analyze"] {
        if Command::new(tool).arg("--version").output().is_err() {
            skip(NAME, &format!("{tool} is not installed"));
            return Ok(());
        }
    }
    if !can_unshare_mounts() {
        skip(NAME, "the root directory is no mount point (a plain chroot): no mounts of one's own");
        return Ok(());
    }
    // The daemon's /tmp is its own: what it and the other user need lies elsewhere, open to them.
    let dir = tempfile::Builder::new().permissions(mode(0o755)).tempdir_in("/var/tmp")?;
    let at = |name: &str| dir.path().join(name);
    std::fs::copy(&here.binary, at("emberscope"))?;
    // The clone may lie in /tmp, or in a home directory that the unit's user cannot enter.
    let mut copy = Command::new("cp");
    copy.arg("-r")
        .args(["check", "systemd"].map(|part| format!("{}/../deploy/{part}", env!("CARGO_MANIFEST_DIR"))));
    assert!(copy.arg(dir.path()).status()?.success());
    let start = AS_THE_UNIT
        .replace("CHECK", &at("check").to_string_lossy())
        .replace("DATA", &at("data").to_string_lossy())
        .replace("BINARY", &at("emberscope").to_string_lossy());
    std::fs::write(at("start"), start)?;
    std::fs::set_permissions(at("start"), mode(0o755))?;
    let here = Here { binary: at("start"), ..here };

    let by_root = here.java("Busy", BUSY).flag("-XX:+PreserveFramePointer").start(dir.path())?;
    let daemon = here.daemon(dir.path(), &["--window", "1s", "--ask-interval", "1s"])?;
    named(&daemon, by_root.pid())?;
    let mut other = Command::new("unshare");
    other.args(["--mount", "sh", "-euc", AS_ANOTHER, "sh"]).arg(here.java.join("bin/java"));
    other.args(["-XX:+PreserveFramePointer", "-cp"]).arg(dir.path()).arg("Busy");
    let other = Running::start("a JVM of another user", &mut other, &at("other.log"))?;
    named(&daemon, other.pid())?;
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid()))?;
    assert!(!status.contains("\nUid:\t0\t") && status.contains("\nNoNewPrivs:\t1\n"), "{status}");
    assert!(status.contains("\nSeccomp:\t2\n"), "{status}");
    daemon.stop()?;
    Ok(())
}

fn mode(bits: u32) -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(bits)
}

/// Waits until the compiled code of a JVM has names.
fn named(daemon: &emberscope_tests::Daemon, pid: u32) -> Result<()> {
    let begun = Instant::now();
    let path = format!("/api/v1/flamegraph?format=folded&pid={pid}");
    loop {
        let stacks = daemon.get(&path)?.body;
        if stacks.lines().any(|line| line.contains("Busy.burn")) {
            return Ok(());
        }
        if begun.elapsed() > Duration::from_secs(180) {
            let jvms = daemon.json("/api/v1/status")?["jvms"].clone();
            anyhow::bail!("process {pid} has no names: {jvms}\n{}", std::fs::read_to_string(daemon.log())?);
        }
        std::thread::sleep(Duration::from_millis(250));
    }
}
