//! Who is who on the machine, and what each can read: a directory open to all with copies of what Spark needs and with
//! the attackers' programs, the Spark job as one user without rights, the attackers as another.

use super::slice::Slice;
use crate::launch::{Job, Running, SparkJob};
use crate::setup::{SparkKit, python};
use crate::step;
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The victim: `nobody`. Hadoop's login wants a name for its uid, and this one has one on every system.
const VICTIM: u32 = 65534;
/// The attackers; a uid that has no name, no group and nothing else.
pub const ATTACKER: u32 = 64002;
/// Longest wait for a program to say that it is under way.
pub const TIMEOUT: Duration = Duration::from_secs(300);
/// What the attackers' programs and ours share, and their sources.
const HEADER: &str = include_str!("programs/hostile.h");
const PROGRAMS: [(&str, &str); 15] = [
    ("mappings", include_str!("programs/mappings.c")),
    ("pieces", include_str!("programs/pieces.c")),
    ("forks", include_str!("programs/forks.c")),
    ("threads", include_str!("programs/threads.c")),
    ("large", include_str!("programs/large.c")),
    ("lookalikes", include_str!("programs/lookalikes.c")),
    // As drivers' programs are called.
    ("java", include_str!("programs/drivers.c")),
    ("stacks", include_str!("programs/stacks.c")),
    ("mapper", include_str!("programs/mapper.c")),
    ("http", include_str!("programs/http.c")),
    ("jvmlies", include_str!("programs/jvmlies.c")),
    ("fuse", include_str!("programs/fuse.c")),
    ("onfuse", include_str!("programs/onfuse.c")),
    ("library", include_str!("programs/library.c")),
    ("timer", include_str!("programs/timer.c")),
];

/// The machine as the attacks find it.
pub struct Host {
    /// Readable by everybody.
    pub dir: PathBuf,
    /// Where Spark is, readable by everybody.
    pub kit: SparkKit,
    /// How long an attack lasts.
    pub seconds: u64,
    /// The application of the victim.
    pub app: String,
    /// The attackers' share of the CPUs, where there are control groups.
    slice: Option<Slice>,
}

impl Host {
    /// Makes the directory; `app` is filled in later.
    pub fn new(kit: &SparkKit, seconds: u64) -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("emberscope-hostile-{}", std::process::id()));
        open_dir(&dir)?;
        let mut host = Self { dir, kit: kit.clone(), seconds, app: String::new(), slice: Slice::new() };
        host.kit.venv = host.copied(&kit.venv, "venv")?;
        // A local cluster's workers write below Spark's home, whoever they are.
        let home = python::spark_home(&host.kit.venv).context("the environment has no Spark")?;
        Self::writable(&home.join("work"))?;
        host.kit.jdk.home = host.readable(&kit.jdk.home, "jdk")?;
        Ok(host)
    }

    /// The tree, or a copy if strangers cannot get to it.
    fn readable(&self, tree: &Path, name: &str) -> Result<PathBuf> {
        let open = |dir: &Path| dir.metadata().is_ok_and(|found| found.permissions().mode() & 0o5 == 0o5);
        if tree.ancestors().all(open) {
            return Ok(tree.to_owned());
        }
        self.copied(tree, name)
    }

    /// Links to all files of a tree, in directories of our own. Where the two are on different file systems the files are
    /// copied.
    fn copied(&self, tree: &Path, name: &str) -> Result<PathBuf> {
        let copy = self.dir.join(name);
        for how in ["-al", "-a"] {
            let _ = std::fs::remove_dir_all(&copy);
            if Command::new("cp").arg(how).arg(tree).arg(&copy).output()?.status.success() {
                return Ok(copy);
            }
        }
        bail!("cannot copy {} to {}", tree.display(), copy.display())
    }

    /// A directory of a copy's, for anybody to write to, as `/tmp`.
    fn writable(dir: &Path) -> Result<()> {
        std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        let all = std::fs::Permissions::from_mode(0o1777);
        std::fs::set_permissions(dir, all).with_context(|| format!("opening {} to all", dir.display()))
    }

    /// The victim's job: warm, its executors busy until it is dropped. `conf` is added to its properties.
    pub fn victim(&self, name: &str, master: &str, conf: &[(&str, &str)]) -> Result<(Job, Vec<u32>)> {
        let work = self.dir.join(name);
        let script = self.dir.join("fixed_work.py");
        std::fs::write(&script, include_bytes!("../../../../tests/jobs/fixed_work.py"))?;
        let script = script.to_str().context("the directory for temporary files is not UTF-8")?;
        let mut job = SparkJob::new(script, &self.kit.venv, &self.kit.jdk.home, &work)
            .arg("2000000")
            .master(master)
            .user(VICTIM);
        for (key, value) in conf {
            job = job.conf(*key, *value);
        }
        let mut job = job.start()?;
        job.wait_fact("app", TIMEOUT)?;
        let executors = job.fact("executors").context("the job names no executors")?;
        // More runs than fit into the time.
        for run in 1..=100_000 {
            std::fs::write(work.join(format!("go.{run}")), "").context("starting a run")?;
        }
        Ok((job, executors.split(',').filter_map(|pid| pid.parse().ok()).collect()))
    }

    /// Compiles one of the attackers' programs; `library` is `library.so`.
    pub fn program(&self, name: &str) -> Result<PathBuf> {
        let source = PROGRAMS.iter().find(|(known, _)| *known == name).context("no such program")?.1;
        std::fs::write(self.dir.join("hostile.h"), HEADER)?;
        self.compile(name, source)
    }

    /// Compiles a source in C.
    pub fn compile(&self, name: &str, text: &str) -> Result<PathBuf> {
        let source = self.dir.join(format!("{name}.c"));
        std::fs::write(&source, text).with_context(|| format!("writing {}", source.display()))?;
        let program = self.dir.join(if name == "library" { "library.so" } else { name });
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-fno-omit-frame-pointer", "-pthread", "-o"]).arg(&program).arg(&source).arg("-ldl");
        if name == "library" {
            cc.args(["-shared", "-fPIC"]);
        }
        let output = cc.output().context("cannot start cc")?;
        if !output.status.success() {
            bail!("{} failed\n{}", step::shown(&cc), String::from_utf8_lossy(&output.stderr));
        }
        Ok(program)
    }

    /// Starts a program as an attacker, its seconds as the first argument.
    pub fn attack(&self, program: &Path, words: &[String]) -> Result<Running> {
        let mut command = Command::new(program);
        // It ends by itself, too, somewhat later than we end it.
        command.arg((self.seconds + 120).to_string()).args(words);
        self.attack_with(&mut command)
    }

    /// Starts any command as an attacker.
    pub fn attack_with(&self, command: &mut Command) -> Result<Running> {
        // From root to a uid that is not: the kernel takes all capabilities (capabilities(7)), and std the groups.
        command.uid(ATTACKER).gid(ATTACKER).current_dir("/tmp").env_clear();
        match &self.slice {
            Some(slice) => slice.with(|| self.begin(command)),
            None => self.begin(command),
        }
    }

    /// Starts a command as it is.
    pub fn begin(&self, command: &mut Command) -> Result<Running> {
        let what = command.get_program().to_string_lossy().into_owned();
        let mut log = self.dir.join("attack-1.log");
        for n in 2.. {
            if !log.exists() {
                break;
            }
            log = self.dir.join(format!("attack-{n}.log"));
        }
        Running::start(&what, command, &log)
    }

    /// Starts what samples the processes from one Unix millisecond to another without a profiler, as root.
    pub fn clock(&self, (from, until): (u64, u64), pids: &[u32]) -> Result<Running> {
        let mut command = Command::new(self.program("timer")?);
        command.args([from, until].map(|ms| ms.to_string())).args(pids.iter().map(u32::to_string));
        self.begin(&mut command)
    }

    /// A directory of an attacker's own.
    pub fn attackers_dir(&self, name: &str) -> Result<PathBuf> {
        let dir = self.dir.join(name);
        open_dir(&dir)?;
        std::os::unix::fs::chown(&dir, Some(ATTACKER), Some(ATTACKER)).context("giving a directory away")?;
        Ok(dir)
    }

    /// The victim's libjvm.so.
    pub fn libjvm(&self) -> PathBuf {
        self.kit.jdk.home.join("lib/server/libjvm.so")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// What [`Host::clock`] sampled of each process, in seconds, once its time is over.
pub fn sampled(mut clock: Running, pids: &[u32]) -> Result<BTreeMap<u32, f64>> {
    clock.wait(Duration::from_secs(30))?;
    let of = |pid: &u32| Some((*pid, clock.fact(&pid.to_string())?.parse().ok()?));
    Ok(pids.iter().filter_map(of).collect())
}

fn open_dir(dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(dir, open).with_context(|| format!("opening {} to all", dir.display()))
}
