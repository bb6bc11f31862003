//! What the daemon and a one-off recording are told to do.
//!
//! In: flags, a TOML file, defaults; a flag beats the file, the file beats the default, and all three
//! have the same names. Out: a [`DaemonConfig`] or [`RecordConfig`] whose values are in range and fit
//! together. Every setting is declared once, in `settings`: its flag, its key in the file, its help
//! and `deploy/emberscope.toml` come from there.

mod choice;
mod events;
mod file;
mod paths;
mod record;
mod settings;
mod units;
mod urls;
mod values;
mod words;

pub use choice::{Executors, Fraction, Names, Price};
pub use events::{Events, Sampled};
pub use file::read_file;
pub use paths::{FilePath, LogDirs, LogPlace, SocketPath};
pub use record::{RecordConfig, SelectError};
pub use settings::{DaemonConfig, Settings};
pub use units::{ByteSize, Interval, UnitError};
pub use urls::{DebuginfodUrls, SparkUrls};
pub use values::{
    ArchiveUrl, Hz, Listen, LogFilter, NodeName, PushUrl, QueryNodes, Refused, RingBytes, Tenant, TomlKind,
    Value, WindowLength,
};
pub use words::{FreeSpace, FsyncWhen, FullDisk, LogFormat};

use std::path::{Path, PathBuf};

/// Why there is no configuration. Each says what to change.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration file {}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// The file system's error.
        #[source]
        source: std::io::Error,
    },
    /// The file is larger than any configuration is.
    #[error("the configuration file {} is larger than {limit} bytes", path.display())]
    TooLarge {
        /// Which file.
        path: PathBuf,
        /// Most bytes that are read.
        limit: u64,
    },
    /// The file is no TOML.
    #[error("{}, line {line}: {message}", path.display())]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// Line of the mistake, from 1.
        line: usize,
        /// What the TOML reader says.
        message: String,
    },
    /// A key that is no setting.
    #[error("{}, line {line}: unknown key {key:?}; the nearest is {nearest:?}", path.display())]
    UnknownKey {
        /// Which file.
        path: PathBuf,
        /// Line of the key, from 1.
        line: usize,
        /// The key, as it stands in the file.
        key: String,
        /// The setting whose name is most like it.
        nearest: &'static str,
    },
    /// A value that its setting cannot have.
    #[error("{}, line {line}: {key} = {value} is refused; allowed is {allowed}", path.display())]
    BadValue {
        /// Which file.
        path: PathBuf,
        /// Line of the key, from 1.
        line: usize,
        /// Name of the setting.
        key: &'static str,
        /// The value, as it stands in the file.
        value: String,
        /// What the setting can have, in words.
        allowed: String,
    },
    /// Reachable from other machines, and open to all who ask.
    #[error(
        "listen = {listen} can be reached from other machines, which asks for a bearer token: \
         set token-file to a file that holds one, or listen on 127.0.0.1"
    )]
    Exposed {
        /// The address that `listen` has.
        listen: Listen,
    },
    /// Reachable from other machines, and told to ask for no token.
    #[error(
        "open-loopback is for loopback addresses, and listen = {listen} can be reached from other machines: \
         listen on 127.0.0.1, or leave open-loopback out"
    )]
    OpenToAll {
        /// The address that `listen` has.
        listen: Listen,
    },
    /// A certificate without its key, or the other way round.
    #[error("tls-cert and tls-key go together: one of them is missing")]
    HalfTls,
}

impl DaemonConfig {
    /// Defaults, then the file, then the flags; checked as a whole.
    ///
    /// # Errors
    /// As for [`read_file`]; and where the settings do not fit together [`ConfigError::Exposed`],
    /// [`ConfigError::OpenToAll`] or [`ConfigError::HalfTls`].
    pub fn load(file: Option<&Path>, flags: Settings) -> Result<Self, ConfigError> {
        let below = file.map(read_file).transpose()?.unwrap_or_default();
        let config = Self::from_settings(flags.over(below));
        config.check()?;
        Ok(config)
    }

    /// Whether the settings fit together.
    fn check(&self) -> Result<(), ConfigError> {
        // `to_canonical` sees 127.0.0.1 behind ::ffff:127.0.0.1.
        if !self.listen.get().ip().to_canonical().is_loopback() {
            if self.open_loopback {
                return Err(ConfigError::OpenToAll { listen: self.listen.clone() });
            }
            if self.token_file.is_none() {
                return Err(ConfigError::Exposed { listen: self.listen.clone() });
            }
        }
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            return Err(ConfigError::HalfTls);
        }
        Ok(())
    }
}

impl Default for DaemonConfig {
    fn default() -> Self {
        Self::from_settings(Settings::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    /// What an upgrade finds.
    #[test]
    fn the_file_of_version_0_1_is_read() {
        let old = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/config-0.1.toml");
        let config = DaemonConfig::load(Some(Path::new(old)), Settings::default()).unwrap();
        assert_eq!(*config.hz.get(), 99);
        assert_eq!(config.node.unwrap().get(), "node-1");
        assert!(config.archive.is_some() && config.push.is_some() && config.debuginfod.is_some());
    }

    #[test]
    fn a_flag_beats_the_file_and_the_file_beats_the_default() {
        let file = file("hz = 49\nnode = \"from-file\"\n");
        let flags = Settings { hz: "199".parse().ok(), ..Settings::default() };
        let config = DaemonConfig::load(Some(file.path()), flags).unwrap();
        assert_eq!(*config.hz.get(), 199);
        assert_eq!(config.node.unwrap().get(), "from-file");
        assert_eq!(config.listen, DaemonConfig::default().listen);
    }

    #[test]
    fn beyond_loopback_asks_for_a_token() {
        let listen = |addr: &str, token: Option<&str>| {
            let flags = Settings {
                listen: addr.parse().ok(),
                token_file: token.and_then(|t| t.parse().ok()),
                ..Settings::default()
            };
            DaemonConfig::load(None, flags)
        };
        for addr in ["0.0.0.0:4099", "[::]:4099", "10.0.0.1:4099", "[::ffff:10.0.0.1]:4099"] {
            let refused = listen(addr, None).unwrap_err().to_string();
            assert!(refused.contains(addr) && refused.contains("token-file"), "{refused}");
            assert!(listen(addr, Some("/run/token")).is_ok());
        }
        for addr in ["127.0.0.1:1", "127.1.2.3:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(listen(addr, None).is_ok(), "{addr}");
        }
        let open =
            Settings { listen: "0.0.0.0:1".parse().ok(), open_loopback: Some(true), ..Settings::default() };
        let refused = DaemonConfig::load(None, open).unwrap_err().to_string();
        assert!(refused.contains("loopback"), "{refused}");
    }

    #[test]
    fn a_certificate_goes_with_its_key() {
        let half = Settings { tls_cert: "/etc/x.crt".parse().ok(), ..Settings::default() };
        assert!(matches!(DaemonConfig::load(None, half), Err(ConfigError::HalfTls)));
    }
}
