//! Every setting of the daemon, once: name, type, default, meaning.
//!
//! The macro makes of the list below the typed [`DaemonConfig`], the flags ([`Settings`], where each may
//! be absent), the reader of one key of the file and the printed configuration.

use super::choice::{Executors, Fraction, Names, Price};
use super::events::Events;
use super::paths::{FilePath, LogDirs, SocketPath};
use super::units::{ByteSize, Interval};
use super::urls::{DebuginfodUrls, SparkUrls};
use super::values::*;
use super::words::{FreeSpace, FsyncWhen, FullDisk, LogFormat};
use toml::de::DeValue;

macro_rules! slot {
    (required $ty:ty) => { $ty };
    (optional $ty:ty) => { Option<$ty> };
    (@fill required $given:expr, $text:literal) => {
        $given.unwrap_or_else(|| $text.parse().unwrap_or_else(|_| unreachable!("the default {} is tested", $text)))
    };
    (@fill optional $given:expr, $text:literal) => { $given };
    (@default required $text:literal) => { Some($text) };
    (@default optional $text:literal) => { None };
    (@line required $key:literal, $value:expr, $text:literal) => { line($key, Some(&$value), $text) };
    (@line optional $key:literal, $value:expr, $text:literal) => { line($key, $value.as_ref(), $text) };
}

macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $mode:ident $field:ident ($key:literal, $name:literal): $ty:ty = $text:literal;)+) => {
        /// What the daemon does. Every value is in range.
        #[derive(Clone, Debug, PartialEq)]
        pub struct DaemonConfig { $($(#[doc = $doc])+ pub $field: slot!($mode $ty),)+ }

        /// Settings of one source: flags, or a file. What is absent is left to the next source.
        #[derive(Clone, Debug, Default, PartialEq, clap::Args)]
        pub struct Settings { $($(#[doc = $doc])+ #[arg(long = $key, value_name = $name, num_args = values(<$ty as Value>::TOML), default_missing_value = "true", help = help(&[$($doc),+], slot!(@default $mode $text)))] pub $field: Option<$ty>,)+ }

        impl Settings {
            /// The names, as in flags and files.
            pub const KEYS: &'static [&'static str] = &[$($key,)+];

            /// These, and where they are silent those below.
            pub fn over(self, below: Self) -> Self {
                Self { $($field: self.$field.or(below.$field),)+ }
            }

            /// Sets one key from a value of the file. None: there is no such key.
            pub(super) fn set(&mut self, key: &str, value: &DeValue<'_>) -> Option<(&'static str, Result<(), Refused>)> {
                match key {
                    $($key => Some(($key, read_value(value).map(|v| self.$field = Some(v)))),)+
                    _ => None,
                }
            }
        }

        impl DaemonConfig {
            /// The settings, and the defaults where they are silent.
            pub fn from_settings(settings: Settings) -> Self {
                Self { $($field: slot!(@fill $mode settings.$field, $text),)+ }
            }

            /// As a configuration file, each key with its meaning as a comment.
            pub fn to_toml(&self) -> String {
                let mut out = String::new();
                $(
                    for doc in [$($doc),+] {
                        out.push_str(format!("#{doc}").trim_end());
                        out.push('\n');
                    }
                    out.push_str(&slot!(@line $mode $key, self.$field, $text));
                    out.push('\n');
                )+
                out
            }

            /// Name, default and meaning of each setting, for the reference page.
            pub fn reference() -> Vec<(&'static str, String, String)> {
                let default = Self::default();
                vec![$(($key, slot!(@line $mode $key, default.$field, $text), [$($doc),+].concat().trim().to_owned()),)+]
            }
        }
    };
}

settings! {
    /// Address and port of the HTTP server; requests there need a token. Any address but a loopback one requires a
    /// token-file.
    required listen ("listen", "ADDR:PORT"): Listen = "127.0.0.1:4099";
    /// Unix socket for the command line, without a token: for root, the daemon's user and the members of its group.
    /// none: no socket.
    required socket ("socket", "PATH"): SocketPath = "/run/emberscope/emberscope.sock";
    /// File with the bearer token for full access; others must not be able to read it. Without it the daemon generates
    /// one at its first start: the file token in data-dir. Read again when it changes, as are the files below.
    optional token_file ("token-file", "FILE"): FilePath = "/etc/emberscope/token";
    /// File with a token for read-only access: all queries, but no login links.
    optional read_token_file ("read-token-file", "FILE"): FilePath = "/etc/emberscope/read-token";
    /// File with a token for /metrics and /readyz only. On loopback these need none.
    optional metrics_token_file ("metrics-token-file", "FILE"): FilePath = "/etc/emberscope/metrics-token";
    /// Answer requests on loopback without a token: from every user and every program of this machine. For a machine
    /// with a single user.
    required open_loopback ("open-loopback", "BOOL"): bool = "false";
    /// File with the certificate chain of the HTTP server (PEM), which turns TLS on. Read again when it changes.
    optional tls_cert ("tls-cert", "FILE"): FilePath = "/etc/emberscope/tls.crt";
    /// File with its private key (PEM); others must not be able to read it.
    optional tls_key ("tls-key", "FILE"): FilePath = "/etc/emberscope/tls.key";
    /// Address and port of a second server, without TLS, for /healthz, /readyz and /metrics only: for probes from
    /// other machines. /metrics needs a token there, except on loopback.
    optional health_listen ("health-listen", "ADDR:PORT"): Listen = "0.0.0.0:4098";
    /// Directory for the daemon's files. Only one daemon can use it at a time.
    required data_dir ("data-dir", "DIR"): FilePath = "/var/lib/emberscope";
    /// Samples per second and CPU, 1 to 1000. An odd number does not fall into step with timers.
    required hz ("hz", "N"): Hz = "99";
    /// Kinds of samples, a comma list: cpu, and others with it: page-faults (a sample every 256 faults; page-faults=N:
    /// every N), major-faults (every fault that reads from a disk), context-switches (a sample every 101: odd, as
    /// every second one may be the idle thread's), off-cpu (where and why threads of tasks wait; Linux 5.17 or newer),
    /// block-io (how long disk requests take, and who sends them; block-io=N: every N), alloc (what JVMs allocate: a
    /// sample every 512 KiB; alloc=N: every N bytes); and at most four named events: tracepoints such as
    /// block:block_rq_issue, perf's events such as minor-faults or cycles, with =N for a sample every N of them.
    required events ("events", "LIST"): Events = "cpu,off-cpu";
    /// Record when JVMs stop all their threads (garbage collections and other safepoints), and why.
    required pauses ("pauses", "BOOL"): bool = "true";
    /// Length of a window: the time resolution of every answer. It must divide a minute.
    required window ("window", "DURATION"): WindowLength = "10s";
    /// Spark applications to keep, by id or name: a comma list, in which * stands for any text and ? for any
    /// character.
    required apps ("apps", "LIST"): Names = "*";
    /// Executors to keep, by id: a comma list of ids and ranges (driver,1,3-5), or *.
    required executors ("executors", "LIST"): Executors = "*";
    /// Share of the executors to keep, above 0, up to 1; the same ones on every node.
    required fraction ("fraction", "SHARE"): Fraction = "1";
    /// Ask JVMs for the names of their compiled code where their memory does not show them (HotSpot's attach protocol,
    /// JDK 17 and newer). When false, only perf maps that are already there are read.
    required ask_jvms ("ask-jvms", "BOOL"): bool = "true";
    /// Shortest time between two such requests to the same JVM; failures make it longer.
    required ask_interval ("ask-interval", "DURATION"): Interval = "3s";
    /// Ask over HTTP: Spark drivers and standalone Workers for an application's id or name, where nothing else on the
    /// node shows it for certain; drivers for the names of stages while they run, so that these are kept with the
    /// windows; drivers and history servers when an answer shows names. When false, an application whose id is not
    /// known is called unknown, one whose name is not certain keeps it, and only spark-url is asked.
    required ask_drivers ("ask-drivers", "BOOL"): bool = "true";
    /// Users of this node, by name or number, who run Workers, NodeManagers and history servers for others: what these
    /// start may belong to other users' applications. Executors of any other user only belong to that user's own
    /// drivers.
    required cluster_users ("cluster-users", "LIST"): Names = "root,spark,yarn,hadoop";
    /// What the names of a job's applications have in common, where they differ: a regular expression whose first
    /// matching group is the job that they are runs of (label app_run). spark.emberscope.run and Airflow's names take
    /// precedence.
    optional run_names ("run-names", "REGEX"): RunNames = "^(.+)-\\d{4}-\\d{2}-\\d{2}$";
    /// Price of an hour of a core that an executor reserves, in any currency: with it runs have a cost.
    optional price_core_hour ("price-core-hour", "NUMBER"): Price = "0.05";
    /// Price of an hour of a GiB of memory that an executor reserves, in the same currency.
    optional price_gib_hour ("price-gib-hour", "NUMBER"): Price = "0.006";
    /// Spark history servers (or drivers) elsewhere to ask for names of stages, jobs, SQL descriptions and Spark's own
    /// figures: a comma list of at most 8 URLs, http only.
    optional spark_url ("spark-url", "URLS"): SparkUrls = "http://history:18080";
    /// Where Spark's drivers on this node write event logs (spark.eventLog.dir): a comma list of directories and of URLs
    /// in an object store or HDFS. When a driver ends, and in directories every half hour while it runs, its own log is
    /// read for names that its REST API did not give. Whoever may write to a URL is believed.
    optional event_logs ("event-logs", "PLACES"): LogDirs = "/var/log/spark-events";
    /// debuginfod servers to ask for the symbols of stripped programs and libraries that have no debug file on the
    /// node: a comma list of at most 8 URLs. They learn the build ids of what runs here. What they send is kept in
    /// data-dir, up to 2 GiB.
    optional debuginfod ("debuginfod", "URLS"): DebuginfodUrls = "https://debuginfod.debian.net";
    /// Memory for windows that are not in a block on disk yet: when half of it is used, a block is written before its
    /// hour is over.
    required store_bytes ("store-bytes", "SIZE"): ByteSize = "12MiB";
    /// When the journal is flushed to disk: window (after each one: a power failure loses at most the open window) or
    /// never (a power failure may lose what the kernel had not written yet; a killed daemon loses none of it).
    required fsync ("fsync", "WHEN"): FsyncWhen = "window";
    /// Age at which windows on disk are merged into windows of a minute (all windows of a block together); 0s: never.
    required rollup_1m_age ("rollup-1m-age", "DURATION"): Interval = "2d";
    /// Age at which they are merged into windows of ten minutes; 0s: never.
    required rollup_10m_age ("rollup-10m-age", "DURATION"): Interval = "7d";
    /// Age at which windows are deleted from disk, an hour at a time.
    required retention_age ("retention-age", "DURATION"): Interval = "14d";
    /// Disk space for windows: beyond it, the oldest hours are deleted.
    required retention_bytes ("retention-bytes", "SIZE"): ByteSize = "10GiB";
    /// On a full disk: drop (the oldest block is deleted, the newest windows are kept) or stop (nothing new is written
    /// until there is space; windows wait in memory as far as they fit).
    required when_full ("when-full", "WHAT"): FullDisk = "drop";
    /// Space to leave free on data-dir's file system: bytes, a percentage, or auto (5 %, but at least 1 GiB and at
    /// most 4 GiB; 15 % of a small one). With less free, the disk counts as full.
    required keep_free ("keep-free", "SIZE"): FreeSpace = "auto";
    /// Most nodes in the call tree of an answer, about 100 bytes each, and most rows in a table of methods.
    required query_nodes ("query-nodes", "N"): QueryNodes = "1000000";
    /// Longest time that a query of windows on disk may take; no client waits for longer than 30 s.
    required query_time ("query-time", "DURATION"): Interval = "25s";
    /// Most bytes of windows on disk that a query may read.
    required query_bytes ("query-bytes", "SIZE"): ByteSize = "4GiB";
    /// Object store (s3://, gs://, abfs://), HDFS (hdfs://) or directory (file://) that windows are copied to:
    /// finished blocks as they are, the rest about 25 seconds behind. Credentials come from the environment: AWS_*,
    /// GOOGLE_*, AZURE_*, HADOOP_*.
    optional archive ("archive", "URL"): ArchiveUrl = "s3://bucket/emberscope";
    /// Pyroscope server to which each closed window is pushed as well (push.v1), by application, executor, stage and
    /// thread class; http only. What it does not accept is retried, then counted and dropped.
    optional push ("push", "URL"): PushUrl = "http://pyroscope:4040";
    /// Tenant on that server (X-Scope-OrgID), if it has several.
    optional push_tenant ("push-tenant", "NAME"): Tenant = "anonymous";
    /// OTLP receiver (an OpenTelemetry collector) to which each closed window is pushed as well, as profiles
    /// (v1development) by process, with stages and tasks; http only. What it does not accept is retried, then counted
    /// and dropped.
    optional push_otlp ("push-otlp", "URL"): PushUrl = "http://collector:4318";
    /// Ring buffer between the kernel and the daemon: a power of two. Default: by the number of CPUs. When it is full,
    /// samples are lost and counted.
    optional ring_bytes ("ring-bytes", "SIZE"): RingBytes = "4MiB";
    /// Name of the node in answers, instead of the host name.
    optional node ("node", "NAME"): NodeName = "node-1";
    /// Which of the daemon's own messages are logged: error, warn, info, debug, trace, or a comma list of
    /// target=level.
    required log ("log", "FILTER"): LogFilter = "info";
    /// Format of log lines: text or json.
    required log_format ("log-format", "FORMAT"): LogFormat = "text";
}

/// How many values a flag takes: a switch may stand alone, which is `true`.
fn values(kind: TomlKind) -> clap::builder::ValueRange {
    match kind {
        TomlKind::Bool => (0..=1).into(),
        _ => 1.into(),
    }
}

/// The help of a flag, as clap writes it for others.
fn help(doc: &[&str], default: Option<&str>) -> String {
    let text = doc.concat();
    let text = text.trim().trim_end_matches('.');
    default.map_or(text.to_owned(), |default| format!("{text} [default: {default}]"))
}

/// `key = value`, or an example in a comment when the setting is absent.
fn line<T: Value>(key: &str, value: Option<&T>, example: &str) -> String {
    let (mark, text) = match value {
        Some(value) => ("", value.to_string()),
        None => ("# ", example.to_owned()),
    };
    let text = match T::TOML {
        TomlKind::Number | TomlKind::Bool => text,
        TomlKind::Text | TomlKind::Size | TomlKind::List => toml::Value::String(text).to_string(),
    };
    format!("{mark}{key} = {text}\n")
}

/// Reads a value by way of its text, so that file and flag take the same.
fn read_value<T: Value>(value: &DeValue<'_>) -> Result<T, Refused> {
    let kind = |kinds: &[TomlKind]| kinds.contains(&T::TOML);
    let text = match value {
        DeValue::String(text) if kind(&[TomlKind::Text, TomlKind::Size, TomlKind::List]) => text.to_string(),
        DeValue::Integer(number) if kind(&[TomlKind::Number, TomlKind::Size]) => number.to_string(),
        DeValue::Float(number) if kind(&[TomlKind::Number]) => number.to_string(),
        DeValue::Boolean(value) if kind(&[TomlKind::Bool]) => value.to_string(),
        DeValue::Array(items) if kind(&[TomlKind::List]) => {
            let items = items.iter().map(|item| match item.get_ref() {
                // A comma would make two of one item.
                DeValue::String(text) if !text.contains(',') => Ok(text.to_string()),
                DeValue::Integer(number) => Ok(number.to_string()),
                _ => Err(Refused("a list of texts without commas".to_owned())),
            });
            items.collect::<Result<Vec<_>, _>>()?.join(",")
        }
        _ => {
            return Err(Refused(
                match T::TOML {
                    TomlKind::Text => "a text in quotes",
                    TomlKind::Size => "a size: a whole number of bytes, or a text such as \"64MB\"",
                    TomlKind::Number => "a number without quotes",
                    TomlKind::Bool => "true or false, without quotes",
                    TomlKind::List => "a text, or a list of texts",
                }
                .to_owned(),
            ));
        }
    };
    text.parse().map_err(|error: T::Err| Refused(error.to_string()))
}
