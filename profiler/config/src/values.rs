//! The types of the settings: each reads from the text of a flag or of the configuration file, says in
//! its error what is allowed, and prints as the text it was read from.
//!
//! In: untrusted text. Out: a value in its range. What an id or a file means is for the rooms that use
//! it; here only the shape is checked.

use super::choice::{Executors, Fraction, Names, Price};
use super::events::Events;
use super::paths::{FilePath, LogDirs, SocketPath};
use super::units::{ByteSize, Interval};
use super::urls::{DebuginfodUrls, SparkUrls};
use super::words::{FreeSpace, FsyncWhen, FullDisk, LogFormat};
use emberscope_model::scrub;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// Why a value is refused: what would be allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

pub(super) fn refused<T>(allowed: impl Into<String>) -> Result<T, Refused> {
    Err(Refused(allowed.into()))
}

/// How a value stands in TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TomlKind {
    /// In quotes.
    Text,
    /// In quotes, or a plain whole number.
    Size,
    /// A plain number.
    Number,
    /// `true` or `false`.
    Bool,
    /// In quotes, or a list whose items are joined by commas.
    List,
}

/// A type that settings have.
pub trait Value: FromStr<Err: fmt::Display> + fmt::Display {
    /// How it stands in TOML.
    const TOML: TomlKind;
}

macro_rules! toml_kinds {
    ($($ty:ty = $kind:ident;)+) => { $(impl Value for $ty { const TOML: TomlKind = TomlKind::$kind; })+ };
}

toml_kinds! {
    Listen = Text;
    FilePath = Text;
    SocketPath = Text;
    LogDirs = List;
    Hz = Number;
    QueryNodes = Number;
    Interval = Text;
    WindowLength = Text;
    Names = List;
    Executors = List;
    Fraction = Number;
    Price = Number;
    Events = List;
    bool = Bool;
    ByteSize = Size;
    RingBytes = Size;
    LogFilter = Text;
    LogFormat = Text;
    FsyncWhen = Text;
    FullDisk = Text;
    FreeSpace = Text;
    NodeName = Text;
    SparkUrls = List;
    DebuginfodUrls = List;
    ArchiveUrl = Text;
    PushUrl = Text;
    Tenant = Text;
    RunNames = Text;
}

macro_rules! parsed {
    ($(#[$doc:meta])* $name:ident($inner:ty), $parse:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name($inner);
        impl $name {
            /// The value, in its range.
            pub fn get(&self) -> &$inner { &self.0 }
        }
        impl FromStr for $name {
            type Err = Refused;
            fn from_str(text: &str) -> Result<Self, Refused> {
                let parse: fn(&str) -> Result<$inner, Refused> = $parse;
                parse(text).map(Self)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { self.0.fmt(f) }
        }
    };
}

pub(super) use parsed;

parsed!(
    /// Address and port to listen on.
    Listen(SocketAddr),
    |text| {
        // std's resolver would look names up: `localhost` is the one that needs none.
        let text = text.strip_prefix("localhost:").map_or(text.to_owned(), |port| format!("127.0.0.1:{port}"));
        text.parse().or_else(|_| refused("an IP address and a port, such as 127.0.0.1:4099 or [::1]:4099"))
    }
);

parsed!(
    /// Samples a second and CPU.
    Hz(u32),
    |text| match text.parse() {
        Ok(hz @ 1..=1000) => Ok(hz),
        _ => refused("a whole number from 1 to 1000"),
    }
);

parsed!(
    /// Nodes of a call tree: one takes some 100 bytes.
    QueryNodes(u32),
    |text| match text.parse() {
        Ok(nodes @ 1000..=10_000_000) => Ok(nodes),
        _ => refused("a whole number from 1000 to 10000000"),
    }
);

parsed!(
    /// Length of a window: it divides a minute, so that windows line up with the clock.
    WindowLength(Interval),
    |text| {
        let allowed = "whole seconds that divide a minute: 1s, 2s, 5s, 10s, 15s, 20s, 30s, 1m";
        match text.parse::<Interval>() {
            Ok(length) if [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60].contains(&length.get().as_secs())
                && length.get().subsec_millis() == 0 => Ok(length),
            _ => refused(allowed),
        }
    }
);

parsed!(
    /// Bytes of the ring buffer between kernel and daemon.
    RingBytes(ByteSize),
    |text| match text.parse::<ByteSize>() {
        // The kernel takes powers of two of whole pages only (bpf(2), BPF_MAP_TYPE_RINGBUF).
        Ok(size) if size.0.is_power_of_two() && (1 << 12..=1 << 30).contains(&size.0) => Ok(size),
        _ => refused("a power of two from 4KiB to 1GiB, such as 4MiB"),
    }
);

parsed!(
    /// Base URL of a server that profiles are pushed to.
    PushUrl(String),
    |text| {
        let rest = text.strip_prefix("http://").unwrap_or_default();
        let host = rest.split('/').next().unwrap_or_default();
        let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '?' | '#' | '@');
        // The HTTP client here has no TLS: what leaves the node in the clear should be seen to.
        if host.trim_matches(':').is_empty() || text.len() > 2048 || text.contains(odd) {
            return refused("an http URL without user, query and fragment, such as http://pyroscope:4040");
        }
        Ok(text.trim_end_matches('/').to_owned())
    }
);

parsed!(
    /// A tenant of such a server, as HTTP's headers can carry it.
    Tenant(String),
    |text| {
        // Grafana's rule for tenant ids (dskit, tenant/tenant.go).
        let fits = |c: char| c.is_ascii_alphanumeric() || "!-_.*'()".contains(c);
        match (1..=150).contains(&text.len()) && text.chars().all(fits) {
            true => Ok(text.to_owned()),
            false => refused("1 to 150 letters, digits and !-_.*'()"),
        }
    }
);

parsed!(
    /// Which of the daemon's own messages are logged.
    LogFilter(String),
    |text| match text.parse::<tracing_subscriber::EnvFilter>() {
        Ok(_) if !text.trim().is_empty() => Ok(text.to_owned()),
        _ => refused("off, error, warn, info, debug, trace, or target=level with commas between"),
    }
);

parsed!(
    /// The node's name, where the host name will not do.
    NodeName(String),
    |text| {
        let good = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
        if (1..=253).contains(&text.len()) && text.chars().all(good) {
            Ok(text.to_owned())
        } else {
            refused("1 to 253 letters, digits, dots, dashes and underscores")
        }
    }
);

parsed!(
    /// What the names of a job's applications have in common.
    RunNames(String),
    |text| match emberscope_model::RunNames::new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => refused(format!("a regular expression with a group, such as ^(.+)-[0-9-]+$: {error}")),
    }
);

parsed!(
    /// An archive: an object store, or a directory.
    ArchiveUrl(String),
    |text| {
        const SCHEMES: [&str; 8] = ["s3", "s3a", "gs", "abfs", "abfss", "az", "hdfs", "file"];
        let known = text.split_once("://").is_some_and(|(scheme, rest)| {
            // A directory is written with three slashes, and so may be the default file system of Hadoop.
            let slash = rest.starts_with('/');
            SCHEMES.contains(&scheme) && !rest.is_empty() && (scheme == "hdfs" || (scheme == "file") == slash)
        });
        let plain = !text.chars().any(|c| c.is_whitespace() || c.is_control() || "?#".contains(c));
        // It is logged and shown: keys come from the environment.
        match known && plain && scrub(text) == text {
            true => Ok(text.to_owned()),
            false => refused(
                "s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX, \
                 hdfs://NAMENODE:PORT/PATH or file:///DIRECTORY",
            ),
        }
    }
);

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn takes<T: Value>(good: &[&str], bad: &[&str]) {
        for text in good {
            assert_eq!(text.parse::<T>().map(|v| v.to_string()).ok().as_deref(), Some(*text));
        }
        for text in bad {
            assert!(text.parse::<T>().is_err(), "{text:?} was taken");
        }
    }

    #[test]
    fn values_have_their_ranges() {
        takes::<Listen>(&["127.0.0.1:4099", "[::1]:80"], &["4099", "host:80", "127.0.0.1", "1.2.3.4:99999"]);
        takes::<Hz>(&["1", "99", "1000"], &["0", "1001", "-5", "99.5", ""]);
        takes::<WindowLength>(&["1s", "10s", "1m"], &["0s", "7s", "1500ms", "2m", "10"]);
        takes::<RingBytes>(&["4KiB", "8MiB"], &["0", "4095", "3MiB", "8MB", "2GiB"]);
        takes::<LogFilter>(&["info", "emberscope=debug,warn"], &["", "loud=very"]);
        takes::<SocketPath>(&["/run/x.sock", "none"], &["", "x.sock", &format!("/{}", "x".repeat(107))]);
        takes::<FsyncWhen>(&["window", "never"], &["always", ""]);
        takes::<FullDisk>(&["drop", "stop"], &["oldest", ""]);
        takes::<FreeSpace>(&["auto", "2GiB", "10%", "0B"], &["100%", "-1%", "all", ""]);
        takes::<LogFormat>(&["text", "json"], &["xml", ""]);
        takes::<NodeName>(&["node-1.example"], &["", "a b", "x\u{1b}[31m"]);
        takes::<PushUrl>(
            &["http://pyroscope:4040", "http://[::1]:4040/behind/a/proxy"],
            &[
                "",
                "pyroscope:4040",
                "https://pyroscope",
                "http://",
                "http:///x",
                "http://a b",
                "http://u:p@h",
                "http://h?q",
            ],
        );
        takes::<Tenant>(&["team-1", "a"], &["", "a b", "a|b", "a/b", "ä"]);
        assert_eq!("localhost:80".parse::<Listen>().unwrap().to_string(), "127.0.0.1:80");
    }
}
