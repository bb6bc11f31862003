//! Reads the configuration file.
//!
//! In: a TOML file of `key = value` lines, at most [`LIMIT`] bytes. Out: [`Settings`], or the first
//! mistake with its line. Unknown keys are mistakes: a misspelt setting must not be silently a default.

use super::{ConfigError, Settings};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use toml::de::DeTable;

/// Bytes that are read: the example with all its comments has 3,000.
const LIMIT: u64 = 1 << 20;

/// Reads a configuration file.
///
/// # Errors
/// [`ConfigError::Read`], [`ConfigError::TooLarge`] (over 1 MiB), [`ConfigError::Syntax`],
/// [`ConfigError::UnknownKey`], [`ConfigError::BadValue`]: the first mistake from the top of the file.
pub fn read_file(path: &Path) -> Result<Settings, ConfigError> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LIMIT + 1).read_to_string(&mut text));
    let read = read.map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    if read as u64 > LIMIT {
        return Err(ConfigError::TooLarge { path: path.to_owned(), limit: LIMIT });
    }
    parse(&text, path)
}

fn parse(text: &str, path: &Path) -> Result<Settings, ConfigError> {
    let line = |at: usize| 1 + text.bytes().take(at).filter(|b| *b == b'\n').count();
    let table = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
        path: path.to_owned(),
        line: line(error.span().map_or(0, |span| span.start)),
        message: error.message().to_owned(),
    })?;
    // The table is sorted by key; mistakes are told from the top of the file.
    let mut entries: Vec<_> = table.get_ref().iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let mut settings = Settings::default();
    for (key, value) in entries {
        let at = line(key.span().start);
        match settings.set(key.get_ref(), value.get_ref()) {
            Some((_, Ok(()))) => {}
            Some((key, Err(refused))) => {
                return Err(ConfigError::BadValue {
                    path: path.to_owned(),
                    line: at,
                    key,
                    value: text.get(value.span()).unwrap_or_default().to_owned(),
                    allowed: refused.0,
                });
            }
            None => {
                return Err(ConfigError::UnknownKey {
                    path: path.to_owned(),
                    line: at,
                    key: key.get_ref().to_string(),
                    nearest: nearest(key.get_ref()),
                });
            }
        }
    }
    Ok(settings)
}

/// The setting whose name is most like a misspelt one.
fn nearest(key: &str) -> &'static str {
    let key = key.replace('_', "-").to_lowercase();
    let likeness = |name: &str| strsim::jaro_winkler(name, &key);
    let best = Settings::KEYS.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    best.copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DaemonConfig;
    use proptest::prelude::*;

    fn error(text: &str) -> String {
        parse(text, Path::new("ember.toml")).unwrap_err().to_string()
    }

    #[test]
    fn every_kind_of_value_is_read() {
        let text = r#"
            listen = "[::1]:80"
            hz = 49
            fraction = 0.25
            apps = ["app-1", "nightly-*"]
            executors = [1, "3-5", "driver"]
            ask-jvms = false
            store-bytes = 67108864
            ring-bytes = "8MiB"
            retention-age = "1h30m"
        "#;
        let config = DaemonConfig::from_settings(parse(text, Path::new("x")).unwrap());
        assert_eq!(config.listen.to_string(), "[::1]:80");
        assert_eq!(*config.hz.get(), 49);
        assert_eq!(*config.fraction.get(), 0.25);
        assert_eq!(config.apps.get(), "app-1,nightly-*");
        assert_eq!(config.executors.get(), "1,3-5,driver");
        assert!(!config.ask_jvms);
        assert_eq!(config.store_bytes.0, 64 << 20);
        assert_eq!(config.ring_bytes.unwrap().get().0, 8 << 20);
        assert_eq!(config.retention_age.get().as_secs(), 5400);
    }

    #[test]
    fn an_unknown_key_names_the_nearest_and_the_line() {
        assert_eq!(
            error("hz = 99\n# a comment\ndata_dir = \"/x\"\n"),
            r#"ember.toml, line 3: unknown key "data_dir"; the nearest is "data-dir""#
        );
        assert!(error("ask-jvm = true").ends_with(r#"the nearest is "ask-jvms""#));
        assert!(error("[server]\nlisten = \"127.0.0.1:1\"").contains(r#"line 1: unknown key "server""#));
        // The first mistake of the file, not of the alphabet.
        assert!(error("zz = 1\naa = 1").contains("line 1: unknown key \"zz\""));
    }

    #[test]
    fn a_bad_value_names_key_value_and_what_is_allowed() {
        assert_eq!(
            error("\nhz = 5000"),
            "ember.toml, line 2: hz = 5000 is refused; allowed is a whole number from 1 to 1000"
        );
        assert_eq!(
            error("hz = \"99\""),
            "ember.toml, line 1: hz = \"99\" is refused; allowed is a number without quotes"
        );
        assert!(error("ask-interval = \"10\"").contains("allowed is a duration"));
        assert!(error("ask-jvms = \"yes\"").contains("true or false"));
        assert!(error("apps = [\"a,b\"]").contains("without commas"));
        assert!(error("ring-bytes = \"3MiB\"").contains("power of two"));
    }

    #[test]
    fn what_is_no_toml_is_told_with_its_line() {
        assert!(error("hz = 99\nlisten = ").starts_with("ember.toml, line 2: "));
        assert!(error("hz = 1\nhz = 2").contains("line 2: duplicate key"));
    }

    #[test]
    fn a_missing_or_huge_file_is_told() {
        let missing = read_file(Path::new("/nonexistent/ember.toml")).unwrap_err().to_string();
        assert_eq!(missing, "cannot read the configuration file /nonexistent/ember.toml");
        let huge = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(huge.path(), " ".repeat(LIMIT as usize + 1)).unwrap();
        assert!(matches!(read_file(huge.path()), Err(ConfigError::TooLarge { .. })));
    }

    #[test]
    fn a_printed_configuration_reads_back() {
        let changed = "node = \"n-1\"\ntoken-file = \"/etc/a \\\"b\\\"\"\nfraction = 0.5\n";
        let changed = DaemonConfig::from_settings(parse(changed, Path::new("x")).unwrap());
        for config in [DaemonConfig::default(), changed] {
            let read = parse(&config.to_toml(), Path::new("x")).unwrap();
            assert_eq!(DaemonConfig::from_settings(read), config);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken_or_refused(text in "[-a-z0-9_=\"\\[\\]{}.,#\n ]{0,60}") {
            let _ = parse(&text, Path::new("x"));
        }
    }
}
