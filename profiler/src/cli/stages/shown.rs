//! The columns of stages: which are there, what they hold of a stage, what they mean.

use super::super::figures::{Cells, head, known, moment, sampled};
use super::super::table::{Align, Table};
use super::super::text::time;
use super::super::waited;
use super::{number, overhead, title};
use emberscope_api::Stage;
use emberscope_model::SampleKind;

/// Columns that are there only if a stage of the answer has something in them, and what samples count.
pub(super) struct Shown {
    kind: SampleKind,
    /// There is more than one application.
    pub(super) several_apps: bool,
    /// Spark told something of the stages.
    pub(super) joined: bool,
    /// Tasks started threads.
    helped: bool,
    /// Tasks have Python workers.
    python: bool,
    /// Pauses of JVMs fell into tasks.
    gc: bool,
    /// It is known what tasks waited for.
    waits: bool,
}

impl Shown {
    pub(super) fn of(stages: &[Stage], kind: SampleKind) -> Self {
        Self {
            kind,
            several_apps: stages
                .iter()
                .any(|stage| Some(&stage.app) != stages.first().map(|first| &first.app)),
            joined: stages.iter().any(|stage| stage.spark.is_some()),
            helped: stages.iter().any(|stage| !stage.helpers.is_empty()),
            python: stages.iter().any(|stage| !stage.python.is_empty()),
            gc: stages.iter().any(|stage| paused(stage) > 0.0),
            waits: stages.iter().any(|stage| stage.waited.is_some()),
        }
    }

    pub(super) fn columns(&self) -> Vec<(&'static str, Align)> {
        let mut columns = vec![("STAGE", Align::Left), ("TASKS", Align::Right), ("CPU", Align::Right)];
        if self.several_apps {
            columns.insert(0, ("APP", Align::Left));
        }
        if self.joined {
            columns.extend([("SPARK'S CPU", Align::Right), ("OVERHEAD A TASK", Align::Right)]);
        }
        columns.extend(["USER", "KERNEL", "RUN DELAY", "BLOCKED"].map(|name| (name, Align::Right)));
        columns.extend(self.gc.then_some(("GC", Align::Right)));
        if self.helped {
            columns.push(("HELPERS", Align::Right));
        }
        if self.python {
            columns.extend([("PYTHON", Align::Right), ("PYTHON WAIT", Align::Right)]);
        }
        columns.extend(self.waits.then_some((waited::HEAD, Align::Left)));
        let seen = ["FIRST SEEN", "LAST SEEN"].map(|name| (name, Align::Left));
        columns.extend([(head(self.kind), Align::Right)].into_iter().chain(seen));
        if self.joined {
            columns.push(("NAME", Align::Left));
        }
        columns
    }

    /// A stage's cells, as [`Shown::columns`] has them; `from` and `until` are the answer's.
    pub(super) fn cells(&self, stage: &Stage, (from, until): (&str, &str)) -> Vec<String> {
        let mut row = Vec::new();
        if self.several_apps {
            row.push(known(&stage.app));
        }
        row.extend([number(stage), stage.tasks.to_string(), stage.own.exact_time(|exact| exact.cpu_seconds)]);
        if self.joined {
            let spark = stage.spark.as_ref().and_then(|spark| spark.cpu.seconds());
            row.extend([time(spark), time(overhead(stage))]);
        }
        row.extend([
            stage.own.exact_time(|exact| exact.user_seconds),
            stage.own.exact_time(|exact| exact.system_seconds),
            stage.own.exact_time(|exact| exact.run_delay_seconds),
            stage.own.exact_time(|exact| exact.blocked_seconds),
        ]);
        row.extend(self.gc.then(|| stage.own.exact_time(|exact| exact.paused_seconds)));
        if self.helped {
            row.push(stage.helpers.exact_time(|exact| exact.cpu_seconds));
        }
        if self.python {
            row.push(stage.python.exact_time(|exact| exact.cpu_seconds));
            row.push(stage.own.exact_time(|exact| exact.python_wait_seconds));
        }
        row.extend(self.waits.then(|| waited::cell(stage.waited.as_ref(), stage.own.exact.as_ref())));
        row.extend([
            sampled(&stage.own, [&stage.helpers, &stage.python], self.kind),
            moment(stage.first_seen.as_ref(), from, until),
            moment(stage.last_seen.as_ref(), from, until),
        ]);
        if self.joined {
            row.push(stage.spark.as_ref().map(title).unwrap_or_default());
        }
        row
    }

    /// What the columns mean.
    pub(super) fn notes(&self, table: &mut Table) {
        if self.gc {
            table.note(
                "GC: how much of the tasks' time fell into pauses; emberscope pauses lists them".to_owned(),
            );
        }
        if self.waits {
            table.note(waited::NOTE.to_owned());
        }
        if self.helped {
            table.note("HELPERS: CPU of threads that tasks started, in none of the other columns".to_owned());
        }
        if self.python {
            table.note(
                "PYTHON: CPU of the tasks' Python workers, in none of the other columns; PYTHON WAIT: the part of BLOCKED in \
                 which the tasks slept until Python woke them"
                    .to_owned(),
            );
        }
        if self.joined {
            table.note(
                "SPARK'S CPU: executorCpuTime and executorDeserializeCpuTime, as Spark reports; OVERHEAD A TASK: \
                 (CPU - SPARK'S CPU) / TASKS, of ended stages whose every task was seen, once and whole"
                    .to_owned(),
            );
        }
    }
}

fn paused(stage: &Stage) -> f64 {
    stage.own.exact.as_ref().map_or(0.0, |exact| exact.paused_seconds)
}
