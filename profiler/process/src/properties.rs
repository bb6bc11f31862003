//! What the properties file of an application says: the file that `--properties-file` names in the command line of its driver.
//!
//! In cluster mode that is where all settings are: YARN's ApplicationMaster gets `__spark_conf__.properties` in its container,
//! a driver on Kubernetes /opt/spark/conf/spark.properties (Spark 3.5: yarn/Client.scala, `saveSparkConfToProperties`;
//! k8s/features/DriverCommandFeatureStep.scala). In: words of a command line and a process. Out: the values of a closed list
//! of keys. The file is looked for inside the process's own root, and read where the process itself may read it; it may hold
//! anything, secrets above all, of which nothing is kept.

use super::java::{JavaCommand, SubmitOptions};
use super::procfs::{ProcRoot, ReadError};
use super::text::clean;
use emberscope_model::Pid;
use std::path::Path;

/// Bytes read of the file: Spark's own have a few thousand, with class paths and lists of jars.
pub const MAX_BYTES: usize = 256 << 10;
/// Bytes kept of a value.
const MAX_VALUE: usize = 512;
/// The keys whose values are kept.
const KEYS: [&str; 7] = [
    "spark.app.name",
    "spark.connect.grpc.binding.port",
    "spark.emberscope.run",
    "spark.master",
    "spark.plugins",
    "spark.submit.deployMode",
    "spark.ui.port",
];

/// Values of the keys that identity looks up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties(Vec<(&'static str, String)>);

impl Properties {
    /// The value of a key; the last in the file counts.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(known, _)| *known == key).map(|(_, value)| value.as_str())
    }

    /// Takes a file apart, as java.util.Properties does (its `load`, JDK 17): lines that end in an odd number of
    /// backslashes go on in the next, a key ends at `=`, `:` or white space, `#` and `!` begin comments.
    pub fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut values = Vec::new();
        let mut lines = text.lines().map(str::trim_start).filter(|line| !line.is_empty());
        while let Some(first) = lines.next() {
            if first.starts_with(['#', '!']) {
                continue;
            }
            let mut line = first.to_owned();
            while goes_on(&line) {
                line.pop();
                let Some(next) = lines.next() else { break };
                line.push_str(next);
            }
            let (key, value) = pair(&line);
            if let Some(known) = KEYS.into_iter().find(|known| *known == key) {
                values.push((known, clean(value.as_bytes(), MAX_VALUE)));
            }
        }
        Self(values)
    }

    /// Reads the file that a JVM's words name, if it is a driver's.
    ///
    /// # Errors
    /// [`ReadError`]: there is a file, and it cannot be read. No file is no error.
    pub(crate) fn read(root: &ProcRoot, pid: Pid, words: &[String], cwd: &str) -> Result<Self, ReadError> {
        match path(words) {
            Some(path) => Ok(Self::parse(&root.read_inside(pid, Path::new(cwd).join(path), MAX_BYTES)?)),
            None => Ok(Self::default()),
        }
    }
}

/// The file that a driver's words name.
fn path(words: &[String]) -> Option<&str> {
    let java = JavaCommand::parse(words)?;
    let option = "--properties-file";
    match java.main {
        "org.apache.spark.deploy.SparkSubmit" => SubmitOptions::parse(java.args).get(option),
        "org.apache.spark.deploy.yarn.ApplicationMaster"
        | "org.apache.spark.deploy.yarn.ExecutorLauncher" => {
            // Last of all but executors' and `--dist-cache-conf`; the user's own arguments come before it, as `--arg`.
            java.args_named(option).last()
        }
        _ => None,
    }
}

fn goes_on(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// Key and value of a line, without their escapes.
fn pair(line: &str) -> (String, String) {
    let (mut key, mut value) = (String::new(), String::new());
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next_if(|c| !matches!(c, '=' | ':' | ' ' | '\t' | '\u{c}')) {
        push(&mut key, character, &mut characters);
    }
    while characters.next_if(|c| matches!(c, ' ' | '\t' | '\u{c}')).is_some() {}
    let _ = characters.next_if(|c| matches!(c, '=' | ':'));
    while characters.next_if(|c| matches!(c, ' ' | '\t' | '\u{c}')).is_some() {}
    while let Some(character) = characters.next() {
        push(&mut value, character, &mut characters);
    }
    (key, value)
}

/// Adds a character, or what it and those behind it stand for.
fn push(text: &mut String, character: char, rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    if character != '\\' {
        return text.push(character);
    }
    let meant = match rest.next() {
        Some('u') => {
            let digits = std::iter::from_fn(|| rest.next_if(char::is_ascii_hexdigit)).take(4);
            let unit = digits.filter_map(|digit| digit.to_digit(16)).fold(0, |unit, digit| unit * 16 + digit);
            // Half of a pair, or nothing at all, stands for itself as what it is: no character.
            Some(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER))
        }
        Some('t') => Some('\t'),
        Some('n') => Some('\n'),
        Some('r') => Some('\r'),
        Some('f') => Some('\u{c}'),
        other => other,
    };
    text.extend(meant);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{FakeProc, ReadFake as _};
    use std::os::unix::fs::symlink;

    fn of(text: &str) -> Vec<(&'static str, String)> {
        Properties::parse(text.as_bytes()).0
    }

    #[test]
    fn what_spark_writes() {
        // As Spark 3.5.9 wrote it for a container of YARN.
        let written = "#Spark configuration.\n#Fri Nov 27 03:09:46 UTC 2026\nspark.executor.memory=600m\nspark.master=yarn\n\
                       spark.emberscope.run=etl\nspark.app.name=nightly\\: the \\u00fcbung\nspark.submit.deployMode=cluster\n\
                       spark.hadoop.fs.s3a.secret.key=hush\n";
        let known = Properties::parse(written.as_bytes());
        assert_eq!(known.get("spark.app.name"), Some("nightly: the übung"));
        assert_eq!(known.get("spark.emberscope.run"), Some("etl"));
        assert_eq!(known.get("spark.hadoop.fs.s3a.secret.key"), None);
        assert!(!format!("{known:?}").contains("hush"));
    }

    #[test]
    fn what_people_write() {
        let name = |text| of(text).pop().map(|(_, name)| name);
        for text in [
            "spark.app.name n",
            "  spark.app.name : n",
            "spark.app.name\tn",
            "spark.app.name=a\nspark.app.name=n",
        ] {
            assert_eq!(name(text).as_deref(), Some("n"), "{text:?}");
        }
        assert_eq!(name("spark.app.name = a \\\n   b=c").as_deref(), Some("a b=c"));
        assert_eq!(name("spark.app.name=a\\\\\nx=y").as_deref(), Some("a\\"), "a backslash, and no more");
        assert_eq!(name("spark.app.na\\u006de=n").as_deref(), Some("n"));
        assert_eq!(of("#spark.app.name=n\n! spark.app.name=n\nx.spark.app.name=n\n\n"), []);
        assert_eq!(name("spark.app.name").as_deref(), Some(""));
    }

    #[test]
    fn nonsense_is_survived() {
        for text in ["\\", "=", "\\u", "spark.app.name=\\uD800\\uzz\\", "spark.app.name=\u{1b}[31m\\\n"] {
            let _ = of(text);
        }
        let long = format!("spark.app.name={}", "x".repeat(1 << 20));
        assert_eq!(of(&long).pop().map(|(_, name)| name.len()), Some(MAX_VALUE));
        let mut rubbish: Vec<u8> =
            (0..200_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
        rubbish.extend(b"\nspark.app.name=n");
        assert_eq!(Properties::parse(&rubbish).get("spark.app.name"), Some("n"));
    }

    #[test]
    fn it_is_found_in_the_processs_own_root() {
        let fake = FakeProc::new();
        let dir = fake.path().join("77/root/y/conf");
        fake.process(77, 1, "java", 100);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("a.properties"), "spark.app.name=inside").unwrap();
        // As the container's directory leads to YARN's cache: from the process's root, whatever is there in ours.
        symlink("/y/conf", fake.path().join("77/root/link")).unwrap();
        let main = "org.apache.spark.deploy.yarn.ApplicationMaster";
        let read = |file: &str, cwd: &str| {
            let words = ["java", main, "--arg", "x", "--properties-file", file].map(str::to_owned);
            Properties::read(&fake.root(), 77, &words, cwd)
        };
        let name = |file, cwd| read(file, cwd).unwrap().get("spark.app.name").map(str::to_owned);
        assert_eq!(name("/y/conf/a.properties", "/").as_deref(), Some("inside"));
        assert_eq!(name("/link/a.properties", "/").as_deref(), Some("inside"));
        assert_eq!(name("conf/a.properties", "/y").as_deref(), Some("inside"));
        assert_eq!(name("../../../../../y/conf/a.properties", "/y").as_deref(), Some("inside"));
        assert_eq!(read("/y/conf/b.properties", "/"), Err(ReadError::Gone));
        assert!(read("/y/conf", "/").is_err(), "a directory");
    }

    #[test]
    fn only_a_drivers_words_name_one() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let submit = "java -cp x org.apache.spark.deploy.SparkSubmit";
        assert_eq!(
            path(&words(&format!("{submit} --properties-file p a.jar --properties-file q"))),
            Some("p")
        );
        assert_eq!(path(&words(&format!("{submit} a.jar --properties-file q"))), None);
        assert_eq!(path(&words("java com.corp.Main --properties-file q")), None);
    }
}
