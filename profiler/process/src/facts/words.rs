//! The words of a command line, of which no value is kept that nobody looks up.

use super::{MAX_WORD, MAX_WORDS};
use crate::text::clean;

/// The words of the form `key=value` whose value is kept (`-Dkey=value` and `--key=value` too): the closed list of
/// what identity looks up. Values of any other key are dropped where they are read.
const KEPT_VALUES: [&str; 23] = [
    "spark.app.name",
    "spark.connect.grpc.binding.port",
    "spark.emberscope.run",
    "spark.history.ui.port",
    "spark.master",
    "spark.plugins",
    "spark.submit.deployMode",
    "spark.ui.port",
    "--app-id",
    "--arg",
    "--class",
    "--cores",
    "--deploy-mode",
    "--driver-url",
    "--executor-id",
    "--hostname",
    "--kill",
    "--master",
    "--name",
    "--properties-file",
    "--status",
    "--webui-port",
    "--worker-url",
];

/// Splits a command line at NULs, bounded. What is kept lives until the process is identified; of that, identity
/// keeps the main class or program, an application's id and name, the executor's id, host and cores.
pub fn parse_cmdline(bytes: &[u8]) -> Vec<String> {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    let mut words: Vec<String> = Vec::new();
    for word in bytes.split(|b| *b == 0).take(MAX_WORDS) {
        let word = clean(word, MAX_WORD);
        // An application's name may look like a pair; it is looked through for secrets on its own.
        let is_name = words.last().is_some_and(|before| before == "--name");
        words.push(if is_name { word } else { redact(word) });
    }
    words
}

fn redact(word: String) -> String {
    let Some((key, value)) = word.split_once('=') else { return word };
    let name = key.strip_prefix("-D").unwrap_or(key);
    match name {
        // `--conf=key=value`, `-c=key=value` are pairs of their own.
        "--conf" | "-c" => format!("{key}={}", redact(value.to_owned())),
        _ if KEPT_VALUES.contains(&name) => word,
        _ => format!("{key}=*"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_identity_does_not_need_are_dropped() {
        let words = parse_cmdline(
            b"java\0-Djavax.net.ssl.keyStorePassword=hush\0-Dspark.ui.port=4050\0spark.x.secret=hush\0a=hush\0\
              spark.app.name=daily=1\0--conf=spark.hadoop.fs.s3a.secret.key=hush\0--conf=spark.master=yarn\0",
        );
        let want =
            ["java", "-Djavax.net.ssl.keyStorePassword=*", "-Dspark.ui.port=4050", "spark.x.secret=*", "a=*"];
        let confs =
            ["spark.app.name=daily=1", "--conf=spark.hadoop.fs.s3a.secret.key=*", "--conf=spark.master=yarn"];
        assert_eq!(words, [&want[..], &confs].concat());
    }

    #[test]
    fn empty_words_count_and_an_empty_line_has_none() {
        assert_eq!(parse_cmdline(b"a\0\0b\0"), ["a", "", "b"]);
        assert!(parse_cmdline(b"").is_empty());
        assert!(parse_cmdline(b"\0").is_empty());
    }
}
