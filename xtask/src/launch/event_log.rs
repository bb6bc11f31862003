//! Spark's event log: what Spark itself says of each task. The truth that the ledger is held against.
//!
//! In: a file with a JSON object a line, as Spark 3.5 and 4 write it with `spark.eventLog.compress=false`, or
//! the directory `eventlog_v2_APPID` of a rolling log with its files `events_N_APPID`. Out: tasks and stages
//! in the order in which they ended. A last line that is still being written is left out. Fields are those of
//! `JsonProtocol.scala` (core, 3.5.8 and 4.0.2).

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A task that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Stage id.
    pub stage: u64,
    /// Attempt of the stage.
    pub stage_attempt: u64,
    /// Place in the task set: the number in the thread's name.
    pub index: u64,
    /// Attempt of the task.
    pub attempt: u64,
    /// Spark's task id (TID).
    pub tid: u64,
    /// Partition; differs from the index in partial stages. Since Spark 3.3.
    pub partition: Option<u64>,
    /// When the driver sent it off, Unix milliseconds.
    pub launch_ms: u64,
    /// When it ended, Unix milliseconds.
    pub finish_ms: u64,
    /// Executor id.
    pub executor: String,
    /// The executor's host.
    pub host: String,
    /// It failed, killed ones apart.
    pub failed: bool,
    /// It was killed.
    pub killed: bool,
    /// It was a speculative copy.
    pub speculative: bool,
    /// `Executor CPU Time`, nanoseconds; 0 of failed and killed tasks.
    pub cpu_ns: u64,
    /// `Executor Deserialize CPU Time`, nanoseconds; 0 of failed and killed tasks.
    pub deserialize_cpu_ns: u64,
    /// `Executor Deserialize Time`, milliseconds of wall time.
    pub deserialize_ms: u64,
    /// `Executor Run Time`, milliseconds of wall time.
    pub run_ms: u64,
    /// `Result Serialization Time`, milliseconds of wall time.
    pub serialize_ms: u64,
    /// `JVM GC Time`, milliseconds, while it ran.
    pub gc_ms: u64,
}

impl Task {
    /// CPU time of its thread as Spark measured it, nanoseconds.
    pub fn spark_cpu_ns(&self) -> u64 {
        self.cpu_ns + self.deserialize_cpu_ns
    }

    /// Wall time in its thread as Spark measured it, milliseconds.
    pub fn wall_ms(&self) -> u64 {
        self.deserialize_ms + self.run_ms + self.serialize_ms
    }

    /// Whether Spark measured its CPU time.
    pub fn succeeded(&self) -> bool {
        !self.failed && !self.killed
    }
}

/// An attempt of a stage that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// Stage id.
    pub id: u64,
    /// Attempt.
    pub attempt: u64,
    /// Name: the call that made it, and where.
    pub name: String,
    /// Unix milliseconds.
    pub submitted_ms: u64,
    /// Unix milliseconds.
    pub completed_ms: u64,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

/// What is in a log.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    /// The application's id.
    pub app: String,
    /// Tasks that ended.
    pub tasks: Vec<Task>,
    /// Attempts of stages that ended.
    pub stages: Vec<Stage>,
}

impl EventLog {
    /// Reads a log: the file, or the directory of a rolling one.
    pub fn read(path: &Path) -> Result<Self> {
        let mut log = Self::default();
        for file in files(path)? {
            let text =
                std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
            log.add(&text).with_context(|| format!("reading {}", file.display()))?;
        }
        if log.app.is_empty() {
            bail!("{} does not say which application it is of", path.display());
        }
        Ok(log)
    }

    fn add(&mut self, text: &str) -> Result<()> {
        let lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        for (number, line) in lines.enumerate() {
            let event: Value = serde_json::from_str(line).with_context(|| format!("line {}", number + 1))?;
            match event["Event"].as_str() {
                Some("SparkListenerApplicationStart") => self.app = text_of(&event["App ID"]),
                Some("SparkListenerTaskEnd") => self.tasks.push(task(&event)),
                Some("SparkListenerStageCompleted") => self.stages.push(stage(&event["Stage Info"])),
                _ => {}
            }
        }
        Ok(())
    }

    /// Tasks of a stage, whatever its attempt.
    pub fn tasks_of(&self, stage: u64) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(move |task| task.stage == stage)
    }
}

/// The files of a log, in order.
fn files(path: &Path) -> Result<Vec<PathBuf>> {
    let compressed = |file: &Path| file.extension().is_some_and(|end| end != "inprogress");
    if !path.is_dir() {
        if compressed(path) {
            bail!("{} is compressed: set spark.eventLog.compress=false", path.display());
        }
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).with_context(|| format!("reading {}", path.display()))? {
        let file = entry.with_context(|| format!("reading {}", path.display()))?.path();
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(number) = name.strip_prefix("events_").and_then(|rest| rest.split('_').next()) else {
            continue;
        };
        if compressed(&file) {
            bail!("{} is compressed: set spark.eventLog.compress=false", file.display());
        }
        found.push((number.parse::<u64>().with_context(|| format!("the number of {name}"))?, file));
    }
    found.sort();
    Ok(found.into_iter().map(|(_, file)| file).collect())
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn task(event: &Value) -> Task {
    let (info, metrics) = (&event["Task Info"], &event["Task Metrics"]);
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let flag = |name: &str| info[name].as_bool().unwrap_or_default();
    Task {
        stage: number(&event["Stage ID"]),
        stage_attempt: number(&event["Stage Attempt ID"]),
        index: number(&info["Index"]),
        attempt: number(&info["Attempt"]),
        tid: number(&info["Task ID"]),
        partition: info["Partition ID"].as_u64(),
        launch_ms: number(&info["Launch Time"]),
        finish_ms: number(&info["Finish Time"]),
        executor: text_of(&info["Executor ID"]),
        host: text_of(&info["Host"]),
        failed: flag("Failed"),
        killed: flag("Killed"),
        speculative: flag("Speculative"),
        cpu_ns: number(&metrics["Executor CPU Time"]),
        deserialize_cpu_ns: number(&metrics["Executor Deserialize CPU Time"]),
        deserialize_ms: number(&metrics["Executor Deserialize Time"]),
        run_ms: number(&metrics["Executor Run Time"]),
        serialize_ms: number(&metrics["Result Serialization Time"]),
        gc_ms: number(&metrics["JVM GC Time"]),
    }
}

fn stage(info: &Value) -> Stage {
    let number = |name: &str| info[name].as_u64().unwrap_or_default();
    Stage {
        id: number("Stage ID"),
        attempt: number("Stage Attempt ID"),
        name: text_of(&info["Stage Name"]),
        submitted_ms: number("Submission Time"),
        completed_ms: number("Completion Time"),
        failure: info["Failure Reason"].as_str().map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Lines of Spark 3.5.9, cut to what is read.
    const LOG: &str = concat!(
        r#"{"Event":"SparkListenerApplicationStart","App Name":"task jobs","App ID":"app-1","User":"u"}"#,
        "\n",
        r#"{"Event":"SparkListenerTaskEnd","Stage ID":3,"Stage Attempt ID":1,"Task Type":"ResultTask","Task Info":{"Task ID":17,"Index":2,"Attempt":1,"Partition ID":5,"Launch Time":100,"Executor ID":"0","Host":"127.0.0.1","Speculative":true,"Finish Time":150,"Failed":false,"Killed":false},"Task Metrics":{"Executor Deserialize Time":3,"Executor Deserialize CPU Time":7,"Executor Run Time":40,"Executor CPU Time":9,"JVM GC Time":1,"Result Serialization Time":2}}"#,
        "\n",
        r#"{"Event":"SparkListenerStageCompleted","Stage Info":{"Stage ID":3,"Stage Attempt ID":1,"Stage Name":"collect at A.java:1","Submission Time":90,"Completion Time":160}}"#,
        "\n",
        r#"{"Event":"SparkListenerTaskEnd","Stage"#,
    );

    #[test]
    fn a_task_and_its_stage() {
        let mut log = EventLog::default();
        log.add(LOG).unwrap();
        assert_eq!((log.app.as_str(), log.tasks.len(), log.stages.len()), ("app-1", 1, 1));
        let task = log.tasks_of(3).next().unwrap();
        assert_eq!((task.stage_attempt, task.index, task.attempt, task.tid), (1, 2, 1, 17));
        assert_eq!((task.partition, task.spark_cpu_ns(), task.speculative), (Some(5), 16, true));
        assert!(task.succeeded() && task.wall_ms() == 45 && log.tasks_of(4).next().is_none());
        assert_eq!(log.stages[0].name, "collect at A.java:1");
    }

    #[test]
    fn rolled_files_are_read_in_order_and_compressed_ones_refused() {
        let dir = std::env::temp_dir().join(format!("xtask-events-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        for name in ["events_10_app-1.inprogress", "events_9_app-1", "appstatus_app-1"] {
            std::fs::write(dir.join(name), "").unwrap();
        }
        let names: Vec<_> = files(&dir).unwrap().iter().map(|f| f.file_name().unwrap().to_owned()).collect();
        assert_eq!(names, ["events_9_app-1", "events_10_app-1.inprogress"]);
        std::fs::write(dir.join("events_1_app-1.zstd"), "").unwrap();
        assert!(files(&dir).unwrap_err().to_string().contains("spark.eventLog.compress=false"));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
