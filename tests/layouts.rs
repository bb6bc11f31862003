//! What the kernel's walker knows of a JVM's code, while processes change: a program in the place of another, a pid
//! that is used again, a libjvm that comes late. Each stack is right or says why not, and never shows another's code.
//!
//! Needs root, the optimised daemon, and JDKs 17 and 25, whose layouts differ in every field; skips else.

use anyhow::{Context as _, Result, ensure};
use emberscope_capture::{Capture, CaptureConfig, CaptureError, HostFeatures};
use emberscope_model::WallTime;
use emberscope_tests::{Daemon, Here, Running, jdk, skip, wait_visible};
use profiler_ebpf::{JvmLayout, RuntimeId};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use xtask::oracle::{Stack, stacks};

mod before;

/// Calls between `work` and `burn` in tests/jobs/Turns.java, the first one too.
const TURNS: usize = 31;
/// Samples that may find no table yet of what was just mapped: those of half a second.
const MOMENT: usize = 250;
/// How a stack may end while its process changes.
const PROPER: [&str; 5] =
    ["root", "jvm_not_ready", "no_frame_pointer", "bad_return_address", "no_user_registers"];

/// What all tests here need.
struct Scene {
    dir: tempfile::TempDir,
    daemon: Daemon,
    java17: PathBuf,
    java25: PathBuf,
    /// tests/fixtures/launch.c
    launcher: PathBuf,
}

impl Scene {
    fn or_skip(test: &str) -> Result<Option<Self>> {
        let Some(here) = Here::or_skip(test) else { return Ok(None) };
        let (Some(java17), Some(java25)) = (jdk(test, 17), jdk(test, 25)) else { return Ok(None) };
        let dir = tempfile::tempdir()?;
        let launcher = dir.path().join("launch");
        let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-fno-omit-frame-pointer", "-pthread"]);
        cc.arg("-I").arg(java17.join("include")).arg("-I").arg(java17.join("include/linux"));
        cc.arg("-o").arg(&launcher).arg(sources.join("fixtures/launch.c")).arg("-ldl");
        ensure!(cc.status().context("cc, which rustc links with")?.success(), "the launcher");
        let source = std::fs::read_to_string(sources.join("jobs/Turns.java"))?;
        for class in ["Before", "After"] {
            let file = dir.path().join(format!("{class}.java"));
            std::fs::write(&file, source.replace("Turns", class))?;
            let mut javac = Command::new(java17.join("bin/javac"));
            let done = javac.args(["-nowarn", "--release", "8", "-d"]).arg(dir.path()).arg(&file).output()?;
            ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }
        let daemon = here.daemon(dir.path(), &["--window", "2s", "--hz", "499"])?;
        Ok(Some(Self { dir, daemon, java17, java25, launcher }))
    }

    /// The launcher, with this class on this JDK.
    fn launch(&self, late: Duration, java: &Path, class: &str) -> Command {
        let mut command = Command::new(&self.launcher);
        command.arg(late.as_millis().to_string()).arg(java.join("lib/server/libjvm.so"));
        command.arg(self.dir.path()).arg(class);
        command
    }

    fn start(&self, command: &mut Command) -> Result<Running> {
        Running::start("the launcher", command, &self.dir.path().join("launch.log"))
    }

    /// What a pid was seen doing in windows that lie within these times.
    fn seen(&self, pid: u32, from: u64, until: u64) -> Result<Seen> {
        wait_visible(&self.daemon, until)?;
        // Windows begin at even seconds.
        let (from, until) = (from.next_multiple_of(2000), until / 2000 * 2000);
        ensure!(from < until, "no whole window from {from} until {until}");
        let query = format!("pid={pid}&from={from}&until={until}&format=json");
        let answer = self.daemon.json(&format!("/api/v1/flamegraph?{query}"))?;
        let ends = serde_json::from_value(answer["quality"]["ends"].clone())?;
        Ok(Seen { stacks: stacks(&answer), ends })
    }
}

struct Seen {
    stacks: Vec<Stack>,
    ends: BTreeMap<String, usize>,
}

impl Seen {
    fn all(&self) -> usize {
        self.ends.values().sum()
    }
    fn count(&self, which: impl Fn(&Stack) -> bool) -> usize {
        self.stacks.iter().filter(|stack| which(stack)).map(|stack| stack.count).sum()
    }
    /// Samples with a frame of this class.
    fn of(&self, class: &str) -> usize {
        self.count(|stack| has(stack, class))
    }
    /// Samples with a function of the launcher.
    fn native(&self, function: &str) -> usize {
        self.count(|stack| stack.user().any(|frame| frame.kind == "native" && frame.name == function))
    }
    /// Nearly all stacks of the class's worker are as it makes them, to the thread's start.
    fn is_right(&self, class: &str) -> Result<()> {
        let all = self.of(class);
        let right = self.count(|stack| {
            let methods: Vec<String> = stack.java().iter().map(|frame| frame.name.clone()).collect();
            let own: Vec<&str> =
                methods.iter().filter_map(|name| name.strip_prefix(&format!("{class}."))).collect();
            let turns = own.iter().filter(|name| **name == "turn").count();
            let whole = match own.last() {
                Some(&"burn") => turns == TURNS,
                _ => turns <= TURNS,
            };
            has(stack, class) && own.first().is_some_and(|n| *n == "work") && whole && stack.is_rooted()
        });
        ensure!(
            all > 100 && right * 100 >= all * 99,
            "{right} of {all} of {class} are right: {:?}",
            self.ends
        );
        Ok(())
    }
    /// Ends that say that a stack was misread are rare, as in any JVM that starts.
    fn ends_properly(&self) -> Result<()> {
        let proper: usize =
            self.ends.iter().filter(|(end, _)| PROPER.contains(&end.as_str())).map(|(_, count)| count).sum();
        // A libjvm's table is made in some 60 ms, by a thread that gives way to all others.
        let moment = self.ends.get("table_not_ready").copied().unwrap_or_default().min(MOMENT);
        ensure!((proper + moment) * 100 + 200 >= self.all() * 99, "of {} ended: {:?}", self.all(), self.ends);
        Ok(())
    }
}

fn has(stack: &Stack, class: &str) -> bool {
    stack.java().iter().any(|frame| frame.name.strip_prefix(class).is_some_and(|rest| rest.starts_with('.')))
}

fn now() -> u64 {
    WallTime::now().0 / 1_000_000
}

fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// When the pid runs a program whose path contains this.
fn wait_program(pid: u32, part: &str) -> Result<u64> {
    let begun = Instant::now();
    loop {
        let exe = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        if exe.to_string_lossy().contains(part) {
            return Ok(now());
        }
        ensure!(begun.elapsed() < Duration::from_secs(60), "{pid} runs {exe:?} and never {part}");
        pause(2);
    }
}

#[test]
fn a_libjvm_that_is_mapped_late() -> Result<()> {
    let Some(scene) = Scene::or_skip("a_libjvm_that_is_mapped_late")? else { return Ok(()) };
    let begun = now();
    let process = scene.start(scene.launch(Duration::from_secs(5), &scene.java25, "After").arg("0"))?;
    pause(12_000);
    let pid = process.pid();
    let before = scene.seen(pid, begun, begun + 4_500)?;
    ensure!(before.native("before_the_jvm") > 100 && before.of("After") == 0, "{:?}", before.ends);
    scene.seen(pid, begun + 6_500, begun + 12_000)?.is_right("After")?;
    scene.seen(pid, begun, begun + 12_000)?.ends_properly()
}

#[test]
fn a_jvm_in_the_place_of_another() -> Result<()> {
    let Some(scene) = Scene::or_skip("a_jvm_in_the_place_of_another")? else { return Ok(()) };
    let begun = now();
    let mut command = scene.launch(Duration::ZERO, &scene.java17, "Before");
    command.arg("6000").arg(scene.java25.join("bin/java")).arg("-cp").arg(scene.dir.path()).arg("After");
    let process = scene.start(&mut command)?;
    let pid = process.pid();
    let exec = wait_program(pid, "/bin/java")?;
    pause(8_000);
    let end = now();
    let before = scene.seen(pid, begun + 1_500, exec)?;
    before.is_right("Before")?;
    ensure!(before.of("After") == 0);
    let after = scene.seen(pid, exec, end)?;
    ensure!(after.of("Before") == 0, "{} samples of the program before", after.of("Before"));
    scene.seen(pid, exec + 1_500, end)?.is_right("After")?;
    scene.seen(pid, begun, end)?.ends_properly()
}

#[test]
fn a_program_that_is_no_jvm_in_the_place_of_one() -> Result<()> {
    let Some(scene) = Scene::or_skip("a_program_that_is_no_jvm_in_the_place_of_one")? else { return Ok(()) };
    let copy = scene.dir.path().join("burns");
    std::fs::copy(&scene.launcher, &copy)?;
    let begun = now();
    let mut command = scene.launch(Duration::ZERO, &scene.java25, "Before");
    let process = scene.start(command.arg("4000").arg(&copy).arg("burn"))?;
    let pid = process.pid();
    let exec = wait_program(pid, "/burns")?;
    pause(5_000);
    let after = scene.seen(pid, exec, now())?;
    let native = after.native("after_the_jvm");
    ensure!(native > 100 && native * 100 >= after.all() * 99, "{native} of {}", after.all());
    let java = after.count(|stack| stack.user().any(|frame| frame.is_java() || frame.kind == "stub"));
    ensure!(java == 0, "{java} samples with Java frames");
    let of_jvms = after.ends.keys().filter(|end| end.starts_with("jvm_")).count();
    ensure!(of_jvms == 0, "ends of JVMs where there is none: {:?}", after.ends);
    scene.seen(pid, begun, now())?.ends_properly()
}

#[test]
fn a_pid_that_is_used_again() -> Result<()> {
    let Some(scene) = Scene::or_skip("a_pid_that_is_used_again")? else { return Ok(()) };
    let mut first = scene.launch(Duration::ZERO, &scene.java17, "Before");
    let process = scene.start(first.arg("0"))?;
    let pid = process.pid();
    pause(5_000);
    process.signal(Signal::KILL);
    drop(process);
    // Some that end while they are being looked at.
    for lives_ms in [20, 40, 60, 80, 120, 200, 400, 700] {
        let mut next = scene.launch(Duration::ZERO, &scene.java17, "Before");
        let process = with_pid(&scene, next.arg("0"), pid)?;
        pause(lives_ms);
        end(process, pid)?;
    }
    let begun = now();
    let mut last = scene.launch(Duration::ZERO, &scene.java25, "After");
    let process = with_pid(&scene, last.arg("0"), pid)?;
    pause(8_000);
    let after = scene.seen(pid, begun, now())?;
    ensure!(after.of("Before") == 0, "{} samples of who had the pid before", after.of("Before"));
    after.ends_properly()?;
    scene.seen(pid, begun + 1_500, now())?.is_right("After")?;
    drop(process);
    Ok(())
}

/// Ends what has the pid, whose parent, the launcher, sees it off: nobody is to wait for init.
fn end(mut process: Running, pid: u32) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("no pid")?;
    kill_process(pid, Signal::KILL)?;
    let begun = Instant::now();
    while process.ended()?.is_none() {
        ensure!(begun.elapsed() < Duration::from_secs(30), "the launcher does not end");
        pause(1);
    }
    Ok(())
}

/// Starts the launcher under a pid that nobody has any more.
fn with_pid(scene: &Scene, words: &Command, pid: u32) -> Result<Running> {
    let mut command = Command::new(words.get_program());
    command.arg("as").arg(pid.to_string()).args(words.get_args());
    let process = scene.start(&mut command)?;
    let launcher = scene.launcher.file_name().context("the launcher's name")?.to_string_lossy();
    wait_program(pid, &launcher)?;
    Ok(process)
}
