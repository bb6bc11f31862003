//! A Spark job of tests/jobs: a Python script run by `python` with pyspark from a virtual environment, or
//! a Java program or a server of Spark's that the `spark-submit` of the same environment runs.
//!
//! The driver is a JVM; `local-cluster[N,CORES,MB]` starts N executor JVMs of their own. All live in one
//! process group and end with it.

use super::{Running, Yarn, spark_java};
use crate::{places, setup};
use anyhow::{Context as _, Result};
use std::ops::{Deref, DerefMut};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What HotSpot is asked for so that frame pointers lead through its code: for comparing with stacks that need no
/// flag.
pub const FRAME_POINTERS: &str = "-XX:+PreserveFramePointer";
/// The classes of the jobs whose tasks work in methods of telling names, for [`SparkJob::java`].
pub const TASK_JOBS: [&str; 3] = ["TaskJobs", "TaskWork", "BadNames"];
/// The class of the job whose tasks wait.
pub const WAIT_JOBS: [&str; 2] = ["WaitJobs", "KeptLocks"];
/// Locks of that job which a thread `keeper of NAME` holds while tasks wait for them, and the class of each.
pub const KEPT_LOCKS: [(&str, &str); 5] = [
    ("red", "KeptLocks$Red"),
    ("green", "KeptLocks$Green"),
    ("blue", "KeptLocks$Blue"),
    ("fair", "java.util.concurrent.locks.ReentrantLock$FairSync"),
    ("unfair", "java.util.concurrent.locks.ReentrantLock$NonfairSync"),
];
/// Keeps these methods on the stack: a perf map knows no inlined frame.
pub const NOT_INLINED: &str = "-XX:CompileCommand=quiet -XX:CompileCommand=dontinline,TaskWork::*";

#[derive(Clone, Debug)]
enum Program {
    Script(PathBuf),
    /// The main class and its sources.
    Java(String, Vec<PathBuf>),
    /// The main class of a server that Spark brings.
    Server(String),
}

/// What to run and how.
#[derive(Clone, Debug)]
pub struct SparkJob {
    program: Program,
    arguments: Vec<String>,
    master: String,
    confs: Vec<(String, String)>,
    java_options: String,
    java_home: PathBuf,
    venv: PathBuf,
    work_dir: PathBuf,
    user: Option<u32>,
    python_path: Option<PathBuf>,
    environment: Vec<(String, PathBuf)>,
}

impl SparkJob {
    /// A script of tests/jobs, by file name. `work_dir` takes its log, scratch and event log. The master
    /// is `local-cluster[2,1,1024]`: two executor JVMs with a core each.
    pub fn new(script: &str, venv: &Path, java_home: &Path, work_dir: &Path) -> Self {
        let script = Program::Script(jobs().join(script));
        Self::of(script, venv, java_home, work_dir)
    }

    /// Java classes of tests/jobs, each in a file of its name; the first has `main`. Compiled against this
    /// Spark, and given to the executors as a jar.
    pub fn java(classes: &[&str], venv: &Path, java_home: &Path, work_dir: &Path) -> Self {
        let sources = classes.iter().map(|class| jobs().join(format!("{class}.java"))).collect();
        let main = classes.first().copied().unwrap_or_default().to_owned();
        Self::of(Program::Java(main, sources), venv, java_home, work_dir)
    }

    /// A server that is a driver, of a class in Spark's own jars: Spark Connect's, or the one for JDBC.
    pub fn server(class: &str, venv: &Path, java_home: &Path, work_dir: &Path) -> Self {
        Self::of(Program::Server(class.to_owned()), venv, java_home, work_dir)
    }

    fn of(program: Program, venv: &Path, java_home: &Path, work_dir: &Path) -> Self {
        Self {
            program,
            arguments: Vec::new(),
            master: "local-cluster[2,1,1024]".to_owned(),
            confs: Vec::new(),
            java_options: String::new(),
            java_home: java_home.to_owned(),
            venv: venv.to_owned(),
            work_dir: work_dir.to_owned(),
            user: None,
            python_path: None,
            environment: Vec::new(),
        }
    }

    /// Adds an argument of the program.
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Sets `spark.master`: `local[2]`, `local-cluster[2,1,1024]`.
    pub fn master(mut self, master: impl Into<String>) -> Self {
        self.master = master.into();
        self
    }

    /// Sets a Spark property.
    pub fn conf(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.confs.push((key.into(), value.into()));
        self
    }

    /// Flags for the JVMs of driver and executors.
    pub fn java_options(mut self, options: impl Into<String>) -> Self {
        self.java_options = options.into();
        self
    }

    /// Runs it as this user, without groups and rights: we are root, and he can read all that it needs.
    pub fn user(mut self, uid: u32) -> Self {
        self.user = Some(uid);
        self
    }

    /// A directory of packages that its Python programs import, the workers too.
    pub fn packages(mut self, dir: impl Into<PathBuf>) -> Self {
        self.python_path = Some(dir.into());
        self
    }

    /// Runs it on YARN, in client or cluster mode: its executors, and in cluster mode its driver too, on this JDK and with this
    /// Spark's jars, each of 600 MiB.
    pub fn yarn(mut self, cluster: &Yarn, mode: &str) -> Result<Self> {
        let home = self.home()?;
        self.environment.push(("HADOOP_CONF_DIR".to_owned(), cluster.conf()));
        let java = self.java_home.display().to_string();
        Ok(self
            .master("yarn")
            .conf("spark.submit.deployMode", mode)
            .conf("spark.yarn.jars", format!("local:{}/*", home.join("jars").display()))
            .conf("spark.yarn.appMasterEnv.JAVA_HOME", &java)
            .conf("spark.executorEnv.JAVA_HOME", &java)
            // Where the driver listens, and where its executors look for it.
            .conf("spark.yarn.appMasterEnv.SPARK_LOCAL_IP", "127.0.0.1")
            .conf("spark.executorEnv.SPARK_LOCAL_IP", "127.0.0.1")
            .conf("spark.driver.memory", "600m")
            .conf("spark.executor.memory", "600m"))
    }

    /// Writes Spark's event log to [`Job::event_log`], as one file that is not compressed.
    pub fn event_log(self) -> Self {
        let dir = format!("file://{}", self.work_dir.join("events").display());
        self.conf("spark.eventLog.enabled", "true")
            .conf("spark.eventLog.dir", dir)
            .conf("spark.eventLog.compress", "false")
            .conf("spark.eventLog.rolling.enabled", "false")
    }

    /// Starts it.
    pub fn start(&self) -> Result<Job> {
        for dir in [&self.work_dir, &self.work_dir.join("events"), &self.work_dir.join("scratch")] {
            std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
            std::os::unix::fs::chown(dir, self.user, self.user)
                .with_context(|| format!("giving {} away", dir.display()))?;
        }
        let (what, mut command) = self.command()?;
        command
            .current_dir(&self.work_dir)
            .env("JAVA_HOME", &self.java_home)
            .env("PYSPARK_PYTHON", self.venv.join("bin/python"))
            .env("PYTHONUNBUFFERED", "1")
            // Without a locale Java takes names of applications for ASCII.
            .env("LC_ALL", "C.UTF-8")
            .env("SPARK_LOCAL_IP", "127.0.0.1")
            .env("SPARK_LOCAL_DIRS", self.work_dir.join("scratch"))
            .env_remove("SPARK_CONF_DIR")
            .env_remove("PYTHONPATH");
        if let Some(packages) = &self.python_path {
            command.env("PYTHONPATH", packages);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(uid) = self.user {
            command.uid(uid).gid(uid).env("HOME", &self.work_dir);
        }
        let running = Running::start(&what, &mut command, &self.work_dir.join("job.log"))?;
        Ok(Job { running, events: self.work_dir.join("events") })
    }

    /// What it is called in errors, and what starts it.
    fn command(&self) -> Result<(String, Command)> {
        match &self.program {
            Program::Script(script) => {
                let mut python = Command::new(self.venv.join("bin/python"));
                python.arg(script).args(&self.arguments).env_remove("SPARK_HOME");
                // pyspark splits this with shlex.
                let words: Vec<_> =
                    self.submit_words().iter().map(|word| crate::step::quoted(word)).collect();
                python.env("PYSPARK_SUBMIT_ARGS", format!("{} pyspark-shell", words.join(" ")));
                Ok((format!("the Spark job {}", script.display()), python))
            }
            Program::Server(class) => {
                let home = self.home()?;
                let mut submit = Command::new(home.join("bin/spark-submit"));
                submit.args(self.submit_words()).args(["--class", class, "spark-internal"]);
                submit.args(&self.arguments).env("SPARK_HOME", home);
                Ok((format!("Spark's server {class}"), submit))
            }
            Program::Java(main, sources) => {
                let home = self.home()?;
                let jar = spark_java::jar(sources, &home, &self.java_home, &self.work_dir)?;
                let mut submit = Command::new(home.join("bin/spark-submit"));
                submit.args(self.submit_words()).args(["--class", main]).arg(jar).args(&self.arguments);
                submit.env("SPARK_HOME", home);
                Ok((format!("the Spark job {main}"), submit))
            }
        }
    }

    /// SPARK_HOME.
    fn home(&self) -> Result<PathBuf> {
        let home = setup::python::spark_home(&self.venv);
        home.with_context(|| format!("no pyspark in {}", self.venv.display()))
    }

    fn submit_words(&self) -> Vec<String> {
        let mut words = vec!["--master".to_owned(), self.master.clone()];
        let mut conf = |key: &str, value: &str| {
            words.push("--conf".to_owned());
            words.push(format!("{key}={value}"));
        };
        if !self.java_options.is_empty() {
            conf("spark.driver.extraJavaOptions", &self.java_options);
            conf("spark.executor.extraJavaOptions", &self.java_options);
        }
        conf("spark.driver.bindAddress", "127.0.0.1");
        conf("spark.driver.host", "127.0.0.1");
        conf("spark.ui.showConsoleProgress", "false");
        for (key, value) in &self.confs {
            conf(key, value);
        }
        words
    }
}

fn jobs() -> PathBuf {
    places::workspace().join("tests/jobs")
}

/// A running Spark job. Our scripts print the facts `app` (the application's id) and `done`.
pub struct Job {
    running: Running,
    events: PathBuf,
}

impl Job {
    /// Spark's event log: one JSON object a line. None before the application has started, or without
    /// [`SparkJob::event_log`]. It is written out to the last event when a job of Spark's ends.
    pub fn event_log(&self) -> Option<PathBuf> {
        std::fs::read_dir(&self.events).ok()?.flatten().map(|entry| entry.path()).next()
    }
}

impl Deref for Job {
    type Target = Running;
    fn deref(&self) -> &Running {
        &self.running
    }
}

impl DerefMut for Job {
    fn deref_mut(&mut self) -> &mut Running {
        &mut self.running
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_become_words() {
        let job = SparkJob::new("x.py", Path::new("/venv"), Path::new("/jdk"), Path::new("/work"))
            .master("local[2]")
            .java_options("-Xint -XX:+A")
            .conf("spark.a", "b c");
        let words = job.submit_words();
        assert!(
            words.starts_with(
                &["--master", "local[2]", "--conf", "spark.driver.extraJavaOptions=-Xint -XX:+A"]
                    .map(str::to_owned)
            )
        );
        let (_, python) = job.command().unwrap();
        let args = python.get_envs().find(|(key, _)| *key == "PYSPARK_SUBMIT_ARGS").unwrap().1.unwrap();
        assert!(args.to_str().unwrap().ends_with(" --conf 'spark.a=b c' pyspark-shell"), "{args:?}");
    }
}
