//! A JVM that is killed while the daemon waits for its answer. Alone on the machine: another daemon asks it as well, and its
//! question is seen in the same files.

use anyhow::{Result, ensure};
use emberscope_tests::{Here, Running, silent_libjvm, wait_for};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(180);
/// Without a collection, of which there are ten a second before: it is deaf then.
const DEAF_FOR: Duration = Duration::from_secs(10);

/// Burns CPU in a method of its own until it is killed. With an argument it collects garbage all the while, and counts
/// that in the file of that name.
const BUSY: &str = "import java.nio.file.*;
public class Busy {
    static long work(long x, int rounds, int n) {
        for (int round = 0; round < rounds; round++)
            for (int i = 0; i < n; i++) { x = x * 6364136223846793005L + 1442695040888963407L; x ^= x >>> 29; x *= x | 1; x ^= x >>> 31; x *= x | 3; }
        return x;
    }
    public static void main(String[] args) {
        System.out.println(\"fact started=\" + ProcessHandle.current().pid());
        long x = 1;
        for (int i = 0; i < 20_000; i++) { x = work(x, 1, 1000); }
        if (args.length > 0) {
            Thread collects = new Thread(() -> {
                for (long tick = 0; ; tick++) {
                    try { Files.writeString(Path.of(args[0]), Long.toString(tick)); Thread.sleep(50); }
                    catch (Exception e) { System.exit(1); }
                    System.gc();
                }
            });
            collects.start();
        }
        boolean deaf = args.length > 0;
        while (x != 0) { x = work(x, deaf ? 100_000 : 1, deaf ? Integer.MAX_VALUE : 100_000) | 1; }
    }
}";

/// A loop that never looks whether the JVM wants its threads to halt: while a collection waits for it, all
/// the JVM's other threads do, those that answer us among them. Only C2 compiles such a loop. A run of it takes days: one
/// that ended while the daemon starts would let the JVM answer.
const DEAF: [&str; 4] =
    ["-Xbatch", "-XX:-TieredCompilation", "-XX:-UseCountedLoopSafepoints", "-XX:LoopStripMiningIter=0"];

/// Only a JVM whose memory does not tell the names of its code is asked for them.
#[test]
fn a_jvm_that_is_killed_while_it_is_asked_harms_nobody() -> Result<()> {
    let test = "a_jvm_that_is_killed_while_it_is_asked_harms_nobody";
    let Some(here) = Here::or_skip(test) else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let silent = format!("-XXaltjvm={}", silent_libjvm(&here.java, &dir.path().join("jdk"))?.display());
    let ticks = dir.path().join("ticks");
    let busy = |name: &str, flags: &[&str]| -> Result<Running> {
        let work = dir.path().join(name);
        std::fs::create_dir(&work)?;
        let own = [
            silent.as_str(),
            "-XX:+PreserveFramePointer",
            "-XX:CompileCommand=quiet",
            "-XX:CompileCommand=dontinline,Busy::work",
        ];
        let program =
            own.iter().chain(flags).fold(here.java("Busy", BUSY), |program, flag| program.flag(*flag));
        let program = if flags.is_empty() { program } else { program.arg(ticks.to_string_lossy()) };
        let mut running = program.start(&work)?;
        running.wait_fact("started", SOON)?;
        Ok(running)
    };
    let victim = busy("victim", &DEAF)?;
    let survivor = busy("survivor", &[])?;
    // Not before it is deaf: a JVM that has answered is not asked again. One that only waits for a CPU is not.
    let ticked = || std::fs::read_to_string(&ticks).ok();
    let mut last = (None, Instant::now());
    wait_for("the victim to be deaf", SOON, || {
        let now = ticked();
        if now != last.0 {
            last = (now, Instant::now());
        }
        Ok((last.0.is_some() && last.1.elapsed() > DEAF_FOR).then_some(()))
    })?;
    let daemon = here.daemon(dir.path(), &["--window", "2s", "--ask-interval", "2s"])?;
    let asks = || -> Result<Vec<String>> {
        let metrics = daemon.get("/metrics")?.body;
        let asks = metrics.lines().filter(|line| line.starts_with("emberscope_perf_map_asks_total{"));
        Ok(asks
            .filter(|line| !line.contains("\"answered\"") && !line.ends_with(" 0"))
            .map(str::to_owned)
            .collect())
    };
    // A file tells a JVM to open its socket; a connection to one that was opened before does without.
    let pid = victim.pid();
    let trigger = PathBuf::from(format!("/tmp/.attach_pid{pid}"));
    let socket = format!("/tmp/.java_pid{pid}");
    let asked = || {
        let sockets = std::fs::read_to_string("/proc/net/unix")?;
        let connected = sockets.lines().filter(|line| line.ends_with(&socket)).count() > 1;
        Ok((trigger.exists() || connected).then_some(()))
    };
    wait_for("the daemon to ask", SOON, asked)?;
    drop(victim);
    let gone = |line: &String| line.contains("\"gone\"");
    let failed = || Ok(asks()?.into_iter().find(gone));
    println!("{}", wait_for("an ask that failed", SOON, failed)?);
    // The others are named, and nothing was lost.
    let path = format!("/api/v1/flamegraph?pid={}&format=folded", survivor.pid());
    wait_for("names of the survivor", SOON, || {
        Ok(daemon.get(&path)?.body.contains(";Busy.work ").then_some(()))
    })?;
    let lost = daemon.json("/api/v1/flamegraph?format=json")?["quality"]["lost"].clone();
    ensure!(lost == 0, "lost {lost} samples");
    ensure!(daemon.stop()?.success());
    Ok(())
}
