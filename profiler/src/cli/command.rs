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
    /// Sample all processes of this node until told to stop, and answer questions over HTTP.
    #[command(after_help = "\
Examples:
  emberscope daemon
  emberscope daemon --config /etc/emberscope.toml --log debug
  emberscope daemon --listen 0.0.0.0:4099 --token-file /etc/emberscope.token
  emberscope daemon --hz 199 --print-config > emberscope.toml

Needs root, or the capabilities that `emberscope doctor` names. SIGTERM and SIGINT end it in order.")]
    Daemon(Box<daemon::DaemonArgs>),
    /// List the Spark applications that were sampled.
    #[command(after_help = "\
Examples:
  emberscope apps
  emberscope apps --from 15m --json
  emberscope apps --from yesterday
  emberscope apps --user etl --url https://node-7:4099 --token-file ~/.emberscope.token")]
    Apps(apps::AppsArgs),
    /// List the runs of jobs, with what each used, and from which run on that is another.
    #[command(after_help = "\
Examples:
  emberscope runs --job nightly-etl
  emberscope runs --job nightly-etl --from -7d --json
  emberscope runs --user etl

Applications of one name and user are runs of one job. Without times: all that are kept. CHANGED marks the run
from which on CPU time is another than before: it takes ten runs at least to tell that from chance.")]
    Runs(runs::RunsArgs),
    /// List the executors that were sampled.
    #[command(after_help = "\
Examples:
  emberscope executors --app app-20261121163009-0000
  emberscope executors --app nightly-etl --from 14:00 --until 15:00")]
    Executors(executors::ExecutorsArgs),
    /// List the stages that ran, with what their tasks used: exact, and by samples.
    #[command(after_help = "\
Examples:
  emberscope stages --app nightly-etl
  emberscope stages --app nightly-etl --classes
  emberscope stages --app nightly-etl --run latest --sort wall -n 10
  emberscope stages --app app-20261121163009-0000 --spark-url http://history:18080 --from -1d

CPU, waiting for a CPU (RUN DELAY) and waiting for anything else (BLOCKED) are the kernel's own
accounts of each task's thread, whether it was sampled or not.")]
    Stages(stages::StagesArgs),
    /// List the queries of Spark SQL that ran, by CPU; or the operators of one.
    #[command(after_help = "\
Examples:
  emberscope sql --app nightly-etl
  emberscope sql --app nightly-etl --execution 12
  emberscope sql --app nightly-etl --run latest --execution 12 --json

A sample is put to an operator by the frames of its stack: generated code by the prefix of its method,
other code by its class. What no frame tells is the row unknown.")]
    Sql(sql::SqlArgs),
    /// List the tasks that ran, each with what its thread used.
    #[command(after_help = "\
Examples:
  emberscope tasks --app nightly-etl --stage 3
  emberscope tasks --app nightly-etl --stage 3 --sort run-delay --limit 10
  emberscope tasks --app nightly-etl --executor 2 --from -5m --json")]
    Tasks(tasks::TasksArgs),
    /// List the pauses of JVMs: when all threads stood still, for how long, and what for.
    #[command(after_help = "\
Examples:
  emberscope pauses --app nightly-etl
  emberscope pauses --app nightly-etl --executor 2 -n 200 --json

A pause is of a whole JVM: garbage collections and all else for which HotSpot stops its threads at a
safepoint. How much of a stage's time fell into them is its column GC.")]
    Pauses(pauses::PausesArgs),
    /// Show how the CPU time of JVMs splits by class of thread: tasks, GC, JIT, ...
    #[command(after_help = "\
Examples:
  emberscope tax --app nightly-etl
  emberscope tax --app nightly-etl --executor 2
  emberscope tax --app nightly-etl --stage 3 --json

Every class is measured, none is what was left over. With --stage it is the whole tax of the time
in which the stage's tasks ran, of the JVMs that ran them.")]
    Tax(tax::TaxArgs),
    /// List the labels that samples have, or the values of one.
    #[command(after_help = "\
Examples:
  emberscope labels
  emberscope labels stage --app nightly-etl
  emberscope labels thread_class --query '{role=\"executor\"}'")]
    Labels(labels::LabelsArgs),
    /// List the methods with most samples, by self and by total.
    #[command(after_help = "\
Examples:
  emberscope top --app nightly-etl
  emberscope top --app nightly-etl --stage 3,4 --sort total -n 50
  emberscope top --role driver --from -5m --json")]
    Top(top::TopArgs),
    /// Make a flame graph of the chosen samples.
    #[command(after_help = "\
Examples:
  emberscope flamegraph --app nightly-etl -o nightly.svg
  emberscope flamegraph --app nightly-etl --executor 2 --stage 3 --group task -o stage-3.svg
  emberscope flamegraph --app nightly-etl --group stage,thread_class -o by-stage.svg
  emberscope flamegraph --query '{thread_class=~\"gc|jit\"}' --unit ns --format folded | head
  emberscope flamegraph --from 2026-11-21T18:00:00Z --until 2026-11-21T18:05:00Z -o node.json")]
    Flamegraph(flamegraph::FlamegraphArgs),
    /// Write the chosen samples as a file for other programs: folded stacks, pprof, JFR, speedscope, HTML, or a Parquet table.
    #[command(after_help = "\
Examples:
  emberscope export --app nightly-etl -o nightly.pb.gz
  emberscope export --app nightly-etl --group executor,stage -o nightly.parquet
  emberscope export --app nightly-etl -o nightly.jfr
  emberscope export --app nightly-etl --run latest -o nightly.speedscope.json
  emberscope export --app nightly-etl --run latest -o nightly.html
  emberscope export --data-dir /var/lib/emberscope --until yesterday -o yesterday.folded

A Parquet table has a line for each stack, with its labels in columns: those of --group, else node, app,
app_name, role, executor, stage, stage_attempt and thread_class. A JFR recording has an event for each
sample, with its labels as fields: those of --group, else executor, stage, stage_attempt, task,
thread_class, app, and wait with --type off-cpu. With --data-dir no daemon is asked, whatever
EMBERSCOPE_URL says: it reads the files of one that does not run.")]
    Export(Box<export::ExportArgs>),
    /// Read another profiler's files (folded stacks, pprof, JFR) into a data directory, to ask for them as for our own.
    #[command(after_help = "\
Examples:
  emberscope import --data-dir /var/tmp/old --label app=nightly-etl executor-1.jfr
  emberscope import --data-dir /var/tmp/old --hz 100 --from 2026-11-21T18:00:00Z --until 2026-11-21T18:05:00Z old.collapsed
  emberscope import --data-dir /var/tmp/old --label executor=3 cpu.pb.gz
  emberscope import --data-dir /var/lib/emberscope --event-log /var/log/spark-events --app app-20261121163009-0000

Ask with `emberscope serve --data-dir` or `emberscope export --data-dir`. Only CPU time is imported; samples of other kinds are counted and left out. The label source says who
sampled. A file is imported whole or not at all, and once: it is known by its content.")]
    Import(Box<import::ImportArgs>),
    /// List the methods that make the difference of two selections, or of slow tasks; or draw it.
    #[command(after_help = "\
Examples:
  emberscope diff --app nightly-etl --stage 3 --slow
  emberscope diff --app nightly-etl --stage 3 --slow -o slow.svg
  emberscope diff --left app=app-1 --right app=app-2 --stage 3
  emberscope diff --app nightly-etl --left run=-2 --right run=latest
  emberscope diff --app nightly-etl --left from=-2h,until=-1h --right from=-1h --thread-class task
  emberscope diff --left executor=1 --right executor=2,3 --app nightly-etl --format folded")]
    Diff(Box<diff::DiffArgs>),
    /// Compare two runs of a job: queries, stages, operators and methods by what they use more or less.
    #[command(after_help = "\
Examples:
  emberscope compare --job nightly-etl --last
  emberscope compare nightly-etl@-2 nightly-etl@-1
  emberscope compare app-20261121163009-0000 app-20261122163011-0000 -o compared.html
  emberscope compare --job nightly-etl --last --fail-over 10% --format junit -o compared.xml

Queries and stages are put side by side by what they are, not by their numbers. With --fail-over
it ends with 1 when the CPU time of all tasks grew by more, and by more than twice its error, or
that of a query or stage that is 5 % of a run by more even with twice its error taken off.")]
    Compare(Box<compare::CompareArgs>),
    /// Sample for a while without a daemon, and make a flame graph.
    #[command(after_help = "\
Examples:
  emberscope record --duration 30s -o node.svg
  emberscope record --duration 1m --app nightly-etl -o nightly.svg
  emberscope record --duration 10s --pid 4242 --hz 499 --format folded

Needs root, or the capabilities that `emberscope doctor` names. Ctrl-C ends it early;
what was sampled until then is written. A daemon may run at the same time.")]
    Record(record::RecordArgs),
    /// Answer questions over HTTP from an archive, for all nodes that wrote there, or from a data directory.
    #[command(after_help = "\
Examples:
  emberscope serve --store s3://bucket/emberscope
  emberscope serve --store gs://bucket/emberscope --cache-dir /mnt/cache --cache-bytes 20GiB
  emberscope serve --store file:///mnt/shared/emberscope --listen 0.0.0.0:4099 --token-file /etc/emberscope.token
  emberscope serve --data-dir /var/tmp/old

Nothing is sampled and nothing is kept but a cache. With --data-dir it is the store of a daemon that does
not run, or of `emberscope import`; nothing goes from it by age. The other commands ask it with --url, as they ask
a daemon; /api/v1/status tells how reading goes.")]
    Serve(Box<serve::ServeArgs>),
    /// Bring an archive's hours together: of an application one block for all nodes, so that it is few reads.
    #[command(after_help = "\
Examples:
  emberscope compact --store s3://bucket/emberscope
  emberscope compact --store s3://bucket/emberscope --app application_1700000000000_0042 --from -6h --json

Every hour by a timer is right: what is there already stays as it is. Sums do not change; tasks are
summed up to their stages, and who asks for tasks is answered from the nodes' own blocks.")]
    Compact(Box<compact::CompactArgs>),
    /// Show a daemon's state: version, host, store, losses.
    #[command(after_help = "\
Examples:
  emberscope status
  emberscope status --json --url unix:/tmp/emberscope.sock")]
    Status(status::StatusArgs),
    /// Print a link that logs a browser in: it is good once, and for five minutes.
    #[command(after_help = "\
Examples:
  emberscope url
  emberscope url --base http://localhost:14099

The page is at the address that the daemon listens on. By a tunnel (ssh -L 14099:127.0.0.1:4099 NODE) it is
at another: --base names it. The browser stays logged in for 16 hours, or until the daemon ends.")]
    Url(url::UrlArgs),
    /// Tell what this host allows, what is missing, and the mend.
    #[command(after_help = "\
Examples:
  emberscope doctor
  emberscope doctor --config /etc/emberscope.toml --json

Ends with 0 when sampling can work, with 1 when it cannot. Run it as the daemon will run.")]
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
