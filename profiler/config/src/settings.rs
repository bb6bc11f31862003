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
    /// Address and port of the HTTP server: who asks there sends a token. Anything but a loopback address asks for
    /// a token-file.
    required listen ("listen", "ADDR:PORT"): Listen = "127.0.0.1:4099";
    /// Unix socket that the command line asks by, without a token: for root, the daemon's user and the members of its
    /// group. none: there is no socket.
    required socket ("socket", "PATH"): SocketPath = "/run/emberscope/emberscope.sock";
    /// File with the bearer token that opens all; others may not read it. Without it the daemon makes one at its first
    /// start: the file token in data-dir. Read again when it changes, as the files below.
    optional token_file ("token-file", "FILE"): FilePath = "/etc/emberscope/token";
    /// File with a token that reads all that can be asked, and makes no login links.
    optional read_token_file ("read-token-file", "FILE"): FilePath = "/etc/emberscope/read-token";
    /// File with a token for /metrics and /readyz alone. On loopback these need none.
    optional metrics_token_file ("metrics-token-file", "FILE"): FilePath = "/etc/emberscope/metrics-token";
    /// Answer whoever asks on loopback, without a token: every user and every program of this machine. For a machine
    /// of one user.
    required open_loopback ("open-loopback", "BOOL"): bool = "false";
    /// File with the certificate chain of the HTTP server (PEM): with it, it speaks TLS. Read again when it changes.
    optional tls_cert ("tls-cert", "FILE"): FilePath = "/etc/emberscope/tls.crt";
    /// File with its private key (PEM); others may not read it.
    optional tls_key ("tls-key", "FILE"): FilePath = "/etc/emberscope/tls.key";
    /// Address and port of a further server, in the clear, for /healthz, /readyz and /metrics alone: for probes that
    /// come from another machine. /metrics asks for a token there but on loopback.
    optional health_listen ("health-listen", "ADDR:PORT"): Listen = "0.0.0.0:4098";
    /// Directory for the daemon's files. One daemon holds it at a time.
    required data_dir ("data-dir", "DIR"): FilePath = "/var/lib/emberscope";
    /// Samples a second and CPU, 1 to 1000. An odd number does not beat with timers.
    required hz ("hz", "N"): Hz = "99";
    /// Kinds of samples: cpu, and with commas between others: page-faults (a sample each 256 faults; page-faults=N: each N), major-faults (each of them that reads from a disk), context-switches (a sample each 101: odd, as every second may be the idle thread's), off-cpu (where and why threads of tasks wait; from Linux 5.17 on), block-io (how long requests of disks take, and who sends them; block-io=N: each N), alloc (what JVMs allocate: a sample each 512 KiB; alloc=N: each N bytes); and named events, four at most: tracepoints as block:block_rq_issue, perf's as minor-faults or cycles, with =N for a sample each N of them.
    required events ("events", "LIST"): Events = "cpu,off-cpu";
    /// See when JVMs stop all their threads (garbage collections and other safepoints), and what for.
    required pauses ("pauses", "BOOL"): bool = "true";
    /// Length of a window: the grain of time in every answer. It divides a minute.
    required window ("window", "DURATION"): WindowLength = "10s";
    /// Spark applications that are kept, by id or name: a comma list, in which * stands for any text
    /// and ? for any character.
    required apps ("apps", "LIST"): Names = "*";
    /// Executors that are kept, by id: a comma list of ids and ranges (driver,1,3-5), or *.
    required executors ("executors", "LIST"): Executors = "*";
    /// Share of the executors that is kept, above 0, up to 1; the same ones on every node.
    required fraction ("fraction", "SHARE"): Fraction = "1";
    /// Ask JVMs whose memory does not tell it for the names of their compiled code (HotSpot's attach
    /// protocol, JDK 17 and newer).
    /// When false, only perf maps that are already there are read.
    required ask_jvms ("ask-jvms", "BOOL"): bool = "true";
    /// Shortest time between two such questions to the same JVM; failures make it longer.
    required ask_interval ("ask-interval", "DURATION"): Interval = "3s";
    /// Ask Spark drivers and standalone Workers over HTTP for an application's id or name where nothing
    /// else on the node tells it for sure, drivers for the names of stages while they live, so that these are kept
    /// with the windows, and drivers and history servers when an answer is to show names. When false, an application that nothing tells is called unknown, one whose
    /// name is not sure keeps it, and only spark-url is asked.
    required ask_drivers ("ask-drivers", "BOOL"): bool = "true";
    /// Users of this node, by name or number, who run Workers, NodeManagers and history servers for others: what
    /// these start may be of other users' applications. Anybody else's executors go with his own drivers alone.
    required cluster_users ("cluster-users", "LIST"): Names = "root,spark,yarn,hadoop";
    /// What the names of a job's applications have in common, where they differ: a regular expression whose first group
    /// that matches is the job, so that they are its runs (label app_run). What spark.emberscope.run or Airflow says goes first.
    optional run_names ("run-names", "REGEX"): RunNames = "^(.+)-\\d{4}-\\d{2}-\\d{2}$";
    /// What an hour of a core costs that an executor reserves, in any money: with it runs have a cost.
    optional price_core_hour ("price-core-hour", "NUMBER"): Price = "0.05";
    /// What an hour of a GiB of memory costs that an executor reserves, in the same money.
    optional price_gib_hour ("price-gib-hour", "NUMBER"): Price = "0.006";
    /// Spark history servers (or drivers) elsewhere that are asked for names of stages, jobs, SQL
    /// descriptions and Spark's own figures: a comma list of at most 8 URLs, http alone.
    optional spark_url ("spark-url", "URLS"): SparkUrls = "http://history:18080";
    /// Directories where Spark's drivers on this node write event logs (spark.eventLog.dir): a comma list. When a driver
    /// ends, and every half hour before, its own log is read for the names that its REST API did not tell.
    optional event_logs ("event-logs", "DIRS"): LogDirs = "/var/log/spark-events";
    /// debuginfod servers that are asked for the symbols of programs and libraries that were stripped and have
    /// no debug file on the node: a comma list of at most 8 URLs. They learn the build ids of what runs here.
    /// What they send is kept in data-dir, up to 2 GiB.
    optional debuginfod ("debuginfod", "URLS"): DebuginfodUrls = "https://debuginfod.debian.net";
    /// Memory for windows that are not in a block on the disk yet: when half of it is used a block is made
    /// before its hour is over.
    required store_bytes ("store-bytes", "SIZE"): ByteSize = "12MiB";
    /// When the journal is flushed to the disk: window (a power cut costs at most the open window) or never
    /// (it may cost what the kernel had not written yet; a kill costs nothing).
    required fsync ("fsync", "WHEN"): FsyncWhen = "window";
    /// Age at which windows on the disk become a minute long (the windows of a block together); 0s: never.
    required rollup_1m_age ("rollup-1m-age", "DURATION"): Interval = "2d";
    /// Age at which they become ten minutes long; 0s: never.
    required rollup_10m_age ("rollup-10m-age", "DURATION"): Interval = "7d";
    /// Age at which windows go from the disk, by the hour.
    required retention_age ("retention-age", "DURATION"): Interval = "14d";
    /// Disk space for windows: over it the oldest hours go.
    required retention_bytes ("retention-bytes", "SIZE"): ByteSize = "10GiB";
    /// On a full disk: drop (the oldest block goes, the newest windows are kept) or stop (nothing new is
    /// written until there is room; windows wait in memory as far as they fit).
    required when_full ("when-full", "WHAT"): FullDisk = "drop";
    /// Space of data-dir's file system that is left free: bytes, a percentage, or auto (5 %, but 1 GiB at least
    /// and 4 GiB at most; of a small one 15 %). With less it counts as full.
    required keep_free ("keep-free", "SIZE"): FreeSpace = "auto";
    /// Nodes that the call tree of an answer may have, some 100 bytes each, and rows that a table of methods may have.
    required query_nodes ("query-nodes", "N"): QueryNodes = "1000000";
    /// Time that a query of windows on the disk may take; after 30 s no client waits any more.
    required query_time ("query-time", "DURATION"): Interval = "25s";
    /// Bytes of windows on the disk that a query may read.
    required query_bytes ("query-bytes", "SIZE"): ByteSize = "4GiB";
    /// Object store (s3://, gs://, abfs://), HDFS (hdfs://) or directory (file://) that windows are copied to: finished
    /// blocks as they are, the rest some 25 seconds behind. Credentials come from the environment: AWS_*, GOOGLE_*,
    /// AZURE_*, HADOOP_*.
    optional archive ("archive", "URL"): ArchiveUrl = "s3://bucket/emberscope";
    /// Pyroscope server that each closed window is pushed to as well (push.v1), by application, executor,
    /// stage and class of thread; http alone. What it does not take is tried again, then counted and dropped.
    optional push ("push", "URL"): PushUrl = "http://pyroscope:4040";
    /// Tenant of that server (X-Scope-OrgID), where it has several.
    optional push_tenant ("push-tenant", "NAME"): Tenant = "anonymous";
    /// OTLP receiver (an OpenTelemetry collector) that each closed window is pushed to as well, as profiles
    /// (v1development) by process, with stages and tasks; http alone. What it does not take is tried again, then
    /// counted and dropped.
    optional push_otlp ("push-otlp", "URL"): PushUrl = "http://collector:4318";
    /// Ring buffer between the kernel and the daemon: a power of two; by the number of CPUs unless
    /// given. Samples are lost, and counted, when it is full.
    optional ring_bytes ("ring-bytes", "SIZE"): RingBytes = "4MiB";
    /// Name of the node in answers, where the host name will not do.
    optional node ("node", "NAME"): NodeName = "node-1";
    /// Which of the daemon's own messages are logged: error, warn, info, debug, trace, or
    /// target=level with commas between.
    required log ("log", "FILTER"): LogFilter = "info";
    /// How log lines look: text or json.
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
