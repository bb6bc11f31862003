//! The flags by which samples are chosen, shared by every command that asks for some.
//!
//! In: flags. Out: parameters of the HTTP API, or labels for a recording. Each label of the reference is
//! a flag of the same name; given twice it means either. The daemon judges the values.

use super::completions::values_of;
use super::values::{classes, deploys, near, roles, waits};
use super::when::{When, range, when};
use clap::Args;
use emberscope_model::LabelKey;

macro_rules! label_flags {
    ($($(#[doc = $doc:literal])+ $field:ident $key:ident $name:literal $([$($more:tt)+])?;)+) => {
        /// Labels that samples must have.
        #[derive(Args, Clone, Debug, Default)]
        #[command(next_help_heading = "Selection (repeat a flag for several values)")]
        pub struct LabelArgs { $($(#[doc = $doc])+ #[arg(long, value_name = $name, add = values_of(LabelKey::$key) $(, $($more)+)?)] pub $field: Vec<String>,)+ }

        impl LabelArgs {
            /// The labels that were asked for, each with the values it may have.
            pub fn chosen(&self) -> Vec<(LabelKey, &[String])> {
                let all = [$((LabelKey::$key, self.$field.as_slice()),)+];
                all.into_iter().filter(|(_, values)| !values.is_empty()).collect()
            }
        }
    };
}

label_flags! {
    /// Spark application: its id, else its name.
    app App "ID|NAME";
    /// Application name.
    app_name AppName "NAME";
    /// Job that applications are runs of: their name, what run-names makes of it, or what was set when they were
    /// started.
    app_run AppRun "JOB";
    /// Executor id; in local mode `driver`. Several: 1,2 (likewise for all numbers, roles and classes).
    executor Executor "ID" [value_delimiter = ','];
    /// Stage id.
    stage Stage "ID" [value_delimiter = ','];
    /// Attempt of the stage.
    stage_attempt StageAttempt "N" [value_delimiter = ','];
    /// Task: Spark's task id (TID).
    task Task "TID" [value_delimiter = ','];
    /// Index of the task in its stage.
    task_index TaskIndex "N" [value_delimiter = ','];
    /// Attempt of the task.
    task_attempt TaskAttempt "N" [value_delimiter = ','];
    /// driver, executor, python, app-master, shuffle-service, node-manager, master, worker,
    /// history-server or other.
    role Role "ROLE" [value_delimiter = ',', value_parser = near(roles)];
    /// Class of the thread: task, gc, jit, vm, rpc, shuffle, ...
    thread_class ThreadClass "CLASS" [value_delimiter = ',', value_parser = near(classes)];
    /// Why a thread waited: python, shuffle, storage, network, lock, gc, sleep, idle or other.
    wait Wait "REASON" [value_delimiter = ',', value_parser = near(waits)];
    /// Class of the lock that a thread waited for.
    lock Lock "CLASS";
    /// Name of the thread that held that lock.
    lock_owner LockOwner "THREAD";
    /// Named event, such as block:block_rq_issue.
    event Event "NAME";
    /// Effective user of the process, according to the kernel.
    user User "NAME";
    /// User that the program itself reports.
    spark_user SparkUser "NAME";
    /// Program name of the process.
    process Process "NAME";
    /// Process id.
    pid Pid "PID" [value_delimiter = ','];
    /// Container id.
    container Container "ID";
    /// How it was deployed: local, local-cluster, standalone, yarn, kubernetes or unknown.
    deploy Deploy "KIND" [value_delimiter = ',', value_parser = near(deploys)];
    /// Node.
    node Node "NAME";
    /// Service name, as Grafana shows it.
    service_name ServiceName "NAME";
    /// Profiler that took imported samples: jfr, async-profiler, pprof, ...; empty: Emberscope itself.
    source Source "NAME";
    /// Spark's job that the stage belongs to, by Spark's number; needs --app.
    spark_job SparkJob "ID" [value_delimiter = ','];
    /// Spark SQL execution (a query) that the stage belongs to, by Spark's number; needs --app.
    sql Sql "ID" [value_delimiter = ','];
    /// Spark SQL operator, by the stack: Sort, unknown, ... For flamegraph, export, top, diff and labels.
    operator Operator "NAME";
}

/// What a stored answer is chosen by: labels, a selector, time.
#[derive(Args, Clone, Debug, Default)]
pub struct SelectArgs {
    #[command(flatten)]
    /// By label.
    pub labels: LabelArgs,
    /// PromQL selector on the labels, such as {app="app-1",stage=~"3|4"}.
    #[arg(long, value_name = "SELECTOR", help_heading = "Selection (repeat a flag for several values)")]
    pub query: Option<String>,
    /// Which run of the application that --app names: latest, -1 (the same), -2 (the one before), ... Without times: the
    /// whole run, however long ago.
    #[arg(long, value_name = "RUN", allow_hyphen_values = true)]
    #[arg(help_heading = "Selection (repeat a flag for several values)")]
    pub run: Option<String>,
    #[command(flatten)]
    /// By time.
    pub time: TimeArgs,
}

/// Of when. Absent: the last hour.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Time")]
pub struct TimeArgs {
    /// Start: 5m, -5m or now-5m (ago); 15:00, yesterday, yesterday 15:00, 2026-11-22 or 2026-11-22 15:00, in the time
    /// zone of this machine; RFC 3339, Unix seconds or milliseconds. Default: an hour before --until.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = when)]
    pub from: Option<When>,
    /// End, not included; for a day, the end of that day. Default: now.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = when)]
    pub until: Option<When>,
}

/// Parameters of a request.
pub type Params = Vec<(&'static str, String)>;

impl SelectArgs {
    /// The choice as parameters of the API.
    pub fn params(&self) -> Params {
        let mut params = Params::new();
        for (key, values) in self.labels.chosen() {
            params.extend(values.iter().map(|value| (key.name(), value.clone())));
        }
        let [from, until] = range(self.time.from.as_ref(), self.time.until.as_ref(), &jiff::Zoned::now());
        let others =
            [("query", self.query.clone()), ("run", self.run.clone()), ("from", from), ("until", until)];
        params.extend(others.into_iter().filter_map(|(name, value)| Some((name, value?))));
        params
    }
    /// Labels and selector as words for messages; empty when nothing was chosen.
    pub fn describe(&self) -> String {
        let owned = self.labels.chosen().into_iter().map(|(key, values)| (key, values.to_vec()));
        let labels = describe(&owned.collect::<Vec<_>>());
        let run = self.run.as_ref().map(|run| format!("run={run}"));
        let words = [Some(labels).filter(|labels| !labels.is_empty()), run, self.query.clone()];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// Labels as words: `app=etl stage=3 stage=4`.
pub fn describe(labels: &[(LabelKey, Vec<String>)]) -> String {
    let pairs =
        labels.iter().flat_map(|(key, values)| values.iter().map(move |value| format!("{key}={value}")));
    pairs.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        select: SelectArgs,
    }

    #[test]
    fn every_label_is_a_flag_of_its_name() {
        for key in LabelKey::ASKED {
            let flag = format!("--{}", key.name().replace('_', "-"));
            let line = Line::try_parse_from(["x", flag.as_str(), "a", flag.as_str(), "b"]).unwrap();
            let twice = vec![(key.name(), "a".to_owned()), (key.name(), "b".to_owned())];
            assert_eq!(line.select.params(), twice, "{flag}");
        }
    }

    #[test]
    fn several_values_stand_in_one_flag() {
        let line = Line::try_parse_from(["x", "--stage", "1,2", "--role", "executor,python", "--app", "a,b"])
            .unwrap();
        let want = [("app", "a,b"), ("stage", "1"), ("stage", "2"), ("role", "executor"), ("role", "python")];
        assert_eq!(line.select.params(), want.map(|(k, v)| (k, v.to_owned())), "a name may hold a comma");
        let slip = Line::try_parse_from(["x", "--role", "exec"]).err().unwrap().to_string();
        assert!(slip.contains("'exec' for '--role <ROLE>': did you mean executor?"), "{slip}");
    }

    #[test]
    fn times_may_begin_with_a_dash() {
        let line =
            Line::try_parse_from(["x", "--from", "-15m", "--until", "now", "--query", "{a=\"b\"}"]).unwrap();
        let want =
            [("query", "{a=\"b\"}"), ("from", "-15m"), ("until", "now")].map(|(k, v)| (k, v.to_owned()));
        assert_eq!(line.select.params(), want);
        assert_eq!(line.select.describe(), "{a=\"b\"}");
    }

    #[test]
    fn runs_and_times_are_told_as_people_say_them() {
        let line = Line::try_parse_from(["x", "--app", "etl", "--run", "-1", "--from", "5m"]).unwrap();
        let want = [("app", "etl"), ("run", "-1"), ("from", "-5m")].map(|(k, v)| (k, v.to_owned()));
        assert_eq!(line.select.params(), want);
        assert_eq!(line.select.describe(), "app=etl run=-1");
        let line = Line::try_parse_from(["x", "--from", "2026-11-22 15:00", "--until", "16:00"]).unwrap();
        assert!(
            line.select.params().iter().all(|(_, value)| value.ends_with('Z')),
            "{:?}",
            line.select.params()
        );
        let error = Line::try_parse_from(["x", "--until", "soon"]).err().unwrap().to_string();
        assert!(error.contains("'soon' for '--until <TIME>'") && error.contains("yesterday"), "{error}");
    }
}
