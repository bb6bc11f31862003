//! The commands of the command line: what each is for, and who does it.

use super::{CliError, code};
use super::{
    apps, compact, compare, completions, daemon, diff, doctor, executors, export, flamegraph, import, labels,
    pauses, record, runs, serve, sql, stages, status, tasks, tax, top, url,
};
use clap::Subcommand;

/// A command, with its flags.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Sample all processes of this node until stopped, and answer queries over HTTP.
    #[command(after_help = "\
Examples:
  emberscope daemon
  emberscope daemon --config /etc/emberscope.toml --log debug
  emberscope daemon --listen 0.0.0.0:4099 --token-file /etc/emberscope.token
  emberscope daemon --hz 199 --print-config > emberscope.toml

Needs root, or the capabilities that `emberscope doctor` names. SIGTERM and SIGINT stop it cleanly.")]
    Daemon(Box<daemon::DaemonArgs>),
    /// List the Spark applications that were sampled.
    #[command(after_help = "\
Examples:
  emberscope apps
  emberscope apps --from 15m --json
  emberscope apps --from yesterday
  emberscope apps --user etl --url https://node-7:4099 --token-file ~/.emberscope.token")]
    Apps(apps::AppsArgs),
    /// List the runs of jobs, with what each used, and the run where that changed.
    #[command(after_help = "\
Examples:
  emberscope runs --job nightly-etl
  emberscope runs --job nightly-etl --from -7d --json
  emberscope runs --user etl

Applications with the same name and user are runs of one job. Without times, all runs that are kept
are listed. CHANGED marks the run at which CPU time changed: telling a change from chance takes at
least ten runs.")]
    Runs(runs::RunsArgs),
    /// List the executors that were sampled.
    #[command(after_help = "\
Examples:
  emberscope executors --app app-20261121163009-0000
  emberscope executors --app nightly-etl --from 14:00 --until 15:00")]
    Executors(executors::ExecutorsArgs),
    /// List the stages that ran, with what their tasks used: exact and sampled figures.
    #[command(after_help = "\
Examples:
  emberscope stages --app nightly-etl
  emberscope stages --app nightly-etl --classes
  emberscope stages --app nightly-etl --type alloc
  emberscope stages --app nightly-etl --run latest --sort wall -n 10
  emberscope stages --app app-20261121163009-0000 --spark-url http://history:18080 --from -1d

CPU time, run delay and blocked time are from the kernel's own accounts of each task's thread,
whether it was sampled or not.")]
    Stages(stages::StagesArgs),
    /// List the Spark SQL queries that ran, by CPU time, or the operators of one.
    #[command(after_help = "\
Examples:
  emberscope sql --app nightly-etl
  emberscope sql --app nightly-etl --execution 12
  emberscope sql --app nightly-etl --run latest --execution 12 --json

Samples are attributed to operators by the frames of their stacks: generated code by the prefix of
its method, other code by its class. Samples that no frame identifies are in the row `unknown`.")]
    Sql(sql::SqlArgs),
    /// List the tasks that ran, each with what its thread used.
    #[command(after_help = "\
Examples:
  emberscope tasks --app nightly-etl --stage 3
  emberscope tasks --app nightly-etl --stage 3 --sort run-delay --limit 10
  emberscope tasks --app nightly-etl --stage 3 --type lock
  emberscope tasks --app nightly-etl --executor 2 --from -5m --json")]
    Tasks(tasks::TasksArgs),
    /// List the pauses of JVMs: when all threads were stopped, for how long, and why.
    #[command(after_help = "\
Examples:
  emberscope pauses --app nightly-etl
  emberscope pauses --app nightly-etl --executor 2 -n 200 --json

A pause stops a whole JVM: for a garbage collection, or another operation that HotSpot runs at a
safepoint. The column GC of `emberscope stages` is how much of the tasks' time fell into pauses.")]
    Pauses(pauses::PausesArgs),
    /// Show how the CPU time of JVMs splits by thread class: tasks, GC, JIT, ...
    #[command(after_help = "\
Examples:
  emberscope tax --app nightly-etl
  emberscope tax --app nightly-etl --executor 2
  emberscope tax --app nightly-etl --stage 3 --json

Every class is measured; none is a remainder. With --stage the table covers all threads of the JVMs
that ran the stage's tasks, for the time in which these ran.")]
    Tax(tax::TaxArgs),
    /// List the labels that samples have, or the values of one.
    #[command(after_help = "\
Examples:
  emberscope labels
  emberscope labels stage --app nightly-etl
  emberscope labels thread_class --query '{role=\"executor\"}'")]
    Labels(labels::LabelsArgs),
    /// List the methods with the most samples, by self and by total.
    #[command(after_help = "\
Examples:
  emberscope top --app nightly-etl
  emberscope top --app nightly-etl --stage 3,4 --sort total -n 50
  emberscope top --role driver --from -5m --json")]
    Top(top::TopArgs),
    /// Draw a flame graph of the selected samples.
    #[command(after_help = "\
Examples:
  emberscope flamegraph --app nightly-etl -o nightly.svg
  emberscope flamegraph --app nightly-etl --executor 2 --stage 3 --group task -o stage-3.svg
  emberscope flamegraph --app nightly-etl --group stage,thread_class -o by-stage.svg
  emberscope flamegraph --query '{thread_class=~\"gc|jit\"}' --unit ns --format folded | head
  emberscope flamegraph --from 2026-11-21T18:00:00Z --until 2026-11-21T18:05:00Z -o node.json")]
    Flamegraph(flamegraph::FlamegraphArgs),
    /// Write the selected samples to a file for other programs: folded stacks, pprof, JFR, speedscope, HTML, or a
    /// Parquet table.
    #[command(after_help = "\
Examples:
  emberscope export --app nightly-etl -o nightly.pb.gz
  emberscope export --app nightly-etl --group executor,stage -o nightly.parquet
  emberscope export --app nightly-etl -o nightly.jfr
  emberscope export --app nightly-etl --run latest -o nightly.speedscope.json
  emberscope export --app nightly-etl --run latest -o nightly.html
  emberscope export --data-dir /var/lib/emberscope --until yesterday -o yesterday.folded

A Parquet table has a row for each stack, with its labels in columns: those of --group, else node,
app, app_name, role, executor, stage, stage_attempt and thread_class. A JFR recording has an event
for each sample, with its labels as fields: those of --group, else executor, stage, stage_attempt,
task, thread_class, app, and wait with --type off-cpu. With --data-dir no daemon is queried,
whatever EMBERSCOPE_URL says: the command reads the files of a daemon that is not running.")]
    Export(Box<export::ExportArgs>),
    /// Read another profiler's files (folded stacks, pprof, JFR) into a data directory, to query them like
    /// Emberscope's own samples.
    #[command(after_help = "\
Examples:
  emberscope import --data-dir /var/tmp/old --label app=nightly-etl executor-1.jfr
  emberscope import --data-dir /var/tmp/old --hz 100 --from 2026-11-21T18:00:00Z --until 2026-11-21T18:05:00Z old.collapsed
  emberscope import --data-dir /var/tmp/old --label executor=3 cpu.pb.gz
  emberscope import --data-dir /var/lib/emberscope --event-log /var/log/spark-events --app app-20261121163009-0000

Query what was imported with `emberscope serve --data-dir` or `emberscope export --data-dir`. Only
CPU time is imported; samples of other kinds are counted and left out. The label source names the
profiler that took the samples. A file is imported whole or not at all, and only once: it is
recognized by its content.")]
    Import(Box<import::ImportArgs>),
    /// List the methods that explain the difference between two selections, or between slow and usual tasks; or draw
    /// it.
    #[command(after_help = "\
Examples:
  emberscope diff --app nightly-etl --stage 3 --slow
  emberscope diff --app nightly-etl --stage 3 --slow -o slow.svg
  emberscope diff --left app=app-1 --right app=app-2 --stage 3
  emberscope diff --app nightly-etl --left run=-2 --right run=latest
  emberscope diff --app nightly-etl --left run=-2 --right run=latest --type alloc --scale absolute
  emberscope diff --app nightly-etl --left from=-2h,until=-1h --right from=-1h --thread-class task
  emberscope diff --left executor=1 --right executor=2,3 --app nightly-etl --format folded")]
    Diff(Box<diff::DiffArgs>),
    /// Compare two runs of a job: which queries, stages, operators and methods use more or less.
    #[command(after_help = "\
Examples:
  emberscope compare --job nightly-etl --last
  emberscope compare nightly-etl@-2 nightly-etl@-1
  emberscope compare app-20261121163009-0000 app-20261122163011-0000 -o compared.html
  emberscope compare --job nightly-etl --last --fail-over 10% --format junit -o compared.xml

Queries and stages are matched by what they are, not by their numbers. With --fail-over the exit
code is 1 when the CPU time of all tasks grew by more, and by more than twice its error, or that of
a query or stage that is 5 % of a run grew by more even after subtracting twice its error.")]
    Compare(Box<compare::CompareArgs>),
    /// Sample for a while without a daemon, and draw a flame graph.
    #[command(after_help = "\
Examples:
  emberscope record --duration 30s -o node.svg
  emberscope record --duration 1m --app nightly-etl -o nightly.svg
  emberscope record --duration 10s --pid 4242 --hz 499 --format folded

Needs root, or the capabilities that `emberscope doctor` names. Ctrl-C ends it early;
what was sampled until then is written. A daemon may run at the same time.")]
    Record(record::RecordArgs),
    /// Answer queries over HTTP from an archive, for all nodes that write to it, or from a data directory.
    #[command(after_help = "\
Examples:
  emberscope serve --store s3://bucket/emberscope
  emberscope serve --store gs://bucket/emberscope --cache-dir /mnt/cache --cache-bytes 20GiB
  emberscope serve --store file:///mnt/shared/emberscope --listen 0.0.0.0:4099 --token-file /etc/emberscope.token
  emberscope serve --data-dir /var/tmp/old

Nothing is sampled, and only a cache is kept. --data-dir names the store of a daemon that is not
running, or of `emberscope import`; nothing in it is deleted by age. The other commands query this
server with --url, like a daemon; /api/v1/status says how reading the archive goes.")]
    Serve(Box<serve::ServeArgs>),
    /// Compact an archive: one block per application and hour for all nodes, so that queries need few reads.
    #[command(after_help = "\
Examples:
  emberscope compact --store s3://bucket/emberscope
  emberscope compact --store s3://bucket/emberscope --app application_1700000000000_0042 --from -6h --json

Run it every hour from a timer: what is compacted already stays as it is. Sums do not change. Tasks
are summed up by stage; queries about tasks are answered from the nodes' own blocks.")]
    Compact(Box<compact::CompactArgs>),
    /// Show a daemon's state: version, host, store, losses.
    #[command(after_help = "\
Examples:
  emberscope status
  emberscope status --json --url unix:/tmp/emberscope.sock")]
    Status(status::StatusArgs),
    /// Print a link that logs a browser in: it works once, within five minutes.
    #[command(after_help = "\
Examples:
  emberscope url
  emberscope url --base http://localhost:14099

The page is at the address that the daemon listens on. Through a tunnel (ssh -L 14099:127.0.0.1:4099
NODE) the address is different: give it with --base. The browser stays logged in for 16 hours, or
until the daemon stops.")]
    Url(url::UrlArgs),
    /// Show what this host allows, what is missing, and how to fix it.
    #[command(after_help = "\
Examples:
  emberscope doctor
  emberscope doctor --config /etc/emberscope.toml --json

The exit code is 0 when sampling can work, 1 when it cannot. Run it as the same user, and with the
same capabilities, as the daemon.")]
    Doctor(doctor::DoctorArgs),
    /// Print what a shell needs to complete commands, flags, and the values of labels.
    #[command(after_help = "\
Examples:
  emberscope completions bash > /etc/bash_completion.d/emberscope
  emberscope completions zsh > ~/.zfunc/_emberscope
  emberscope completions fish > ~/.config/fish/completions/emberscope.fish

At each completion the script runs emberscope, which asks the daemon for values such as application
names: the one of --url or of EMBERSCOPE_URL, for a second at most.")]
    Completions(completions::CompletionsArgs),
}

impl Command {
    /// Does what was asked. Out: the exit code.
    ///
    /// # Errors
    /// As [`super::Cli::run`].
    pub fn run(self) -> Result<u8, CliError> {
        match self {
            Self::Daemon(args) => daemon::run(*args)?,
            Self::Apps(args) => apps::run(&args)?,
            Self::Runs(args) => runs::run(&args)?,
            Self::Executors(args) => executors::run(&args)?,
            Self::Stages(args) => stages::run(&args)?,
            Self::Sql(args) => sql::run(&args)?,
            Self::Tasks(args) => tasks::run(&args)?,
            Self::Pauses(args) => pauses::run(&args)?,
            Self::Tax(args) => tax::run(&args)?,
            Self::Labels(args) => labels::run(&args)?,
            Self::Top(args) => top::run(&args)?,
            Self::Flamegraph(args) => flamegraph::run(&args)?,
            Self::Export(args) => export::run(&args)?,
            Self::Import(args) => import::run(&args)?,
            Self::Diff(args) => diff::run(&args)?,
            Self::Compare(args) => return compare::run(&args),
            Self::Record(args) => record::run(args)?,
            Self::Serve(args) => serve::run(&args)?,
            Self::Compact(args) => compact::run(&args)?,
            Self::Status(args) => status::run(&args)?,
            Self::Url(args) => url::run(&args)?,
            Self::Doctor(args) => return doctor::run(args),
            Self::Completions(args) => completions::run(&args)?,
        }
        Ok(code::OK)
    }
}
