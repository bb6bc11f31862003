//! A daemon with the rights of the unit, and with none.

use super::*;
use emberscope_supervise::rights;
use emberscope_tests::{Daemon, VISIBLE, copy_program, wait_for};
use rustix::thread::CapabilitySet;

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
    copy_program(&here.binary, &at("emberscope"))?;
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
    // A server of debug files that has none, and a program that was stripped.
    let server = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", server.local_addr()?);
    std::thread::spawn(move || has_nothing(&server));
    let mut stripped = Command::new("sha256sum");
    let _stripped = Running::start("a stripped program", stripped.arg("/dev/zero"), &at("stripped.log"))?;

    let more = ["--window", "1s", "--ask-interval", "1s", "--debuginfod", &url];
    let daemon = here.daemon(dir.path(), &more)?;
    named(&daemon, by_root.pid())?;
    probed(&daemon)?;
    let mut other = Command::new("unshare");
    other.args(["--mount", "sh", "-euc", AS_ANOTHER, "sh"]).arg(here.java.join("bin/java"));
    other.args(["-XX:+PreserveFramePointer", "-cp"]).arg(dir.path()).arg("Busy");
    let other = Running::start("a JVM of another user", &mut other, &at("other.log"))?;
    named(&daemon, other.pid())?;
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid()))?;
    assert!(!status.contains("\nUid:\t0\t") && status.contains("\nNoNewPrivs:\t1\n"), "{status}");
    assert!(status.contains("\nSeccomp:\t2\n"), "{status}");
    only_their_own(daemon.pid())?;
    let begun = Instant::now();
    while daemon.json("/api/v1/status")?["debuginfod"]["absent"].as_u64().unwrap_or(0) == 0 {
        anyhow::ensure!(begun.elapsed() < Duration::from_secs(60), "the server was not asked");
        std::thread::sleep(Duration::from_millis(250));
    }
    daemon.stop()?;
    Ok(())
}

/// Names of threads are seen as they are given, and no more than that is lacking: kernels differ in what they ask for.
fn probed(daemon: &Daemon) -> Result<()> {
    wait_for("a probe on the JVM's library", VISIBLE, || {
        let status = daemon.json("/api/v1/status")?;
        Ok((status["attribution"]["name_probes"].as_u64() > Some(0)).then_some(()))
    })
}

/// Answers every request with 404.
fn has_nothing(server: &TcpListener) {
    for mut stream in server.incoming().flatten() {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 404 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
}

/// Each thread of a daemon that is not root has what the table has for it at most; the sampling one, of the process's
/// name, is never another user, and alone goes before others.
fn only_their_own(pid: u32) -> Result<()> {
    let mut seen = BTreeSet::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let task = task?;
        let main = task.file_name().to_string_lossy() == pid.to_string();
        // One that ends meanwhile has nothing.
        let Ok(status) = std::fs::read_to_string(task.path().join("status")) else { continue };
        let field = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let set = |key: &str| u64::from_str_radix(field(key)?, 16).ok();
        let name = field("Name:").context("Name")?.to_owned();
        let Ok(stat) = std::fs::read_to_string(task.path().join("stat")) else { continue };
        assert_eq!(nice(&stat)? < 0, main, "{name}: {stat}");
        let (effective, permitted) = (set("CapEff:").context("CapEff")?, set("CapPrm:").context("CapPrm")?);
        if main {
            let users = rights::of("reader").bits() & !rights::of("errand").bits();
            let aside = users | CapabilitySet::SYS_ADMIN.bits();
            assert!(effective != 0 && effective & aside == 0, "{name}: {effective:x}");
            continue;
        }
        assert!(
            rights::THREADS.iter().any(|(known, _)| *known == name),
            "the thread {name:?} has no row in profiler/supervise/src/rights.rs"
        );
        assert_eq!(
            permitted & !rights::of(&name).bits(),
            0,
            "{name} may do more than its row: {permitted:x}"
        );
        if name == "http" {
            assert_eq!((effective, permitted), (0, 0), "{name}");
        }
        seen.insert(name);
    }
    for name in ["http", "reader", "journal", "debuginfod"] {
        assert!(seen.contains(name), "no thread {name} in {seen:?}");
    }
    Ok(())
}

/// Of /proc/PID/task/TID/stat: the 19th field, the 17th behind the name (proc_pid_stat(5)).
fn nice(stat: &str) -> Result<i32> {
    let (_, behind) = stat.rsplit_once(')').context("a stat without a name")?;
    behind.split_whitespace().nth(16).and_then(|nice| nice.parse().ok()).context("a stat without nice")
}

/// Another process of the daemon's user cannot read its memory: /proc/PID is root's then (Linux fs/proc/base.c,
/// `task_dump_owner`). `serve` reads no other process and so becomes no other user, which hides it as well.
#[test]
fn its_memory_is_hidden_from_its_own_user() -> Result<()> {
    const NAME: &str = "its_memory_is_hidden_from_its_own_user";
    let Some(here) = Here::or_skip(NAME) else { return Ok(()) };
    if Command::new("setpriv").arg("--version").output().is_err() {
        skip(NAME, "setpriv is not installed");
        return Ok(());
    }
    let dir = tempfile::Builder::new().permissions(mode(0o755)).tempdir_in("/var/tmp")?;
    std::fs::create_dir(dir.path().join("cache"))?;
    std::fs::set_permissions(dir.path().join("cache"), mode(0o777))?;
    copy_program(&here.binary, &dir.path().join("emberscope"))?;
    std::fs::create_dir(dir.path().join("archive"))?;
    let mut serve = Command::new("setpriv");
    serve.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(dir.path().join("emberscope"));
    serve.args(["serve", "--listen", "127.0.0.1:0", "--store"]);
    serve.arg(format!("file://{}", dir.path().join("archive").display()));
    serve.arg("--cache-dir").arg(dir.path().join("cache"));
    let serve = Running::start("emberscope serve", &mut serve, &dir.path().join("serve.log"))?;
    let begun = Instant::now();
    loop {
        let log = std::fs::read_to_string(dir.path().join("serve.log"))?;
        if log.contains("answering") {
            break;
        }
        anyhow::ensure!(begun.elapsed() < Duration::from_secs(60), "it does not start: {log}");
        std::thread::sleep(Duration::from_millis(100));
    }
    let own = std::fs::metadata(format!("/proc/{}/environ", serve.pid()))?;
    let user = std::fs::read_to_string(format!("/proc/{}/status", serve.pid()))?;
    assert!(user.contains("\nUid:\t65534\t"), "{user}");
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&own), 0, "/proc/PID belongs to its user");
    Ok(())
}

fn mode(bits: u32) -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(bits)
}

/// Waits until the compiled code of a JVM has names.
fn named(daemon: &Daemon, pid: u32) -> Result<()> {
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
