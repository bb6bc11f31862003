//! Values of labels, for a shell that completes them.
//!
//! In: what was typed so far. Out: the values that begin so: of labels with a closed list that list, of others what the daemon
//! has, of the application and the times that the line names already. A daemon that does not answer within [`PATIENCE`]
//! gives none: who waits for a key's effect waits no longer.

use super::super::client::ClientArgs;
use super::super::selection::Params;
use super::super::values::of;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use emberscope_api::LabelValues;
use emberscope_api::route::{self, param};
use emberscope_model::LabelKey;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

/// How long a daemon is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// Values of each label at most, the most sampled first.
const LIMIT: u32 = 200;
/// Flags of the line that choose what values there are, and the parameters that they are.
const CHOOSING: [(&str, &str); 6] = [
    ("--app", "app"),
    ("--run", "run"),
    ("--from", "from"),
    ("--until", "until"),
    ("--executor", "executor"),
    ("--stage", "stage"),
];

/// What completes the values of a label's flag.
pub fn values_of(key: LabelKey) -> ArgValueCompleter {
    ArgValueCompleter::new(move |typed: &OsStr| {
        let Some(typed) = typed.to_str() else { return Vec::new() };
        let values = match of(key.name()) {
            Some(closed) => closed().into_iter().map(str::to_owned).collect(),
            None => of_daemon(key, std::env::args_os().skip_while(|word| word != "--").collect()),
        };
        values
            .into_iter()
            .filter(|value| value.starts_with(typed) && !value.is_empty())
            .map(CompletionCandidate::new)
            .collect()
    })
}

/// What the daemon has; nothing where it does not answer in time.
fn of_daemon(key: LabelKey, line: Vec<OsString>) -> Vec<String> {
    let (sender, answer) = mpsc::channel();
    // The program ends when the candidates are printed, and this thread with it.
    std::thread::spawn(move || sender.send(asked(key, &line)));
    answer.recv_timeout(PATIENCE).ok().flatten().unwrap_or_default()
}

fn asked(key: LabelKey, line: &[OsString]) -> Option<Vec<String>> {
    let client = ClientArgs {
        url: word(line, "--url").map(str::to_owned),
        token_file: word(line, "--token-file").map(PathBuf::from),
    };
    let client = client.client().ok()?;
    let values = |of: LabelKey| -> Option<Vec<String>> {
        let path = route::LABEL_VALUES.path.replace("{name}", of.name());
        // What stands behind the flag that is completed is no choice yet, whichever label its value may be of.
        let (_, found) = client.get_json::<LabelValues>(&path, &params(key, line)).ok()?;
        Some(found.values.into_iter().map(|value| value.value).collect())
    };
    let mut found = values(key)?;
    // An application is named by its id or its name.
    if key == LabelKey::App {
        found.extend(values(LabelKey::AppName)?);
    }
    Some(found)
}

/// What the values are to be of: what the line chooses, but for the flag that is being completed.
fn params(key: LabelKey, line: &[OsString]) -> Params {
    let mut params: Params = vec![(param::LIMIT, LIMIT.to_string())];
    let own = format!("--{}", key.name().replace('_', "-"));
    for (flag, name) in CHOOSING.iter().filter(|(flag, _)| *flag != own) {
        let Some(value) = word(line, flag) else { continue };
        // A name may hold a comma, an id does not.
        let several = matches!(*name, "executor" | "stage");
        let values = value.split(|c| several && c == ',').filter(|value| !value.is_empty());
        params.extend(values.map(|value| (*name, value.to_owned())));
    }
    params
}

/// The value of a flag that the line has: `--url X` or `--url=X`.
fn word<'a>(line: &'a [OsString], flag: &str) -> Option<&'a str> {
    let of = |(at, word): (usize, &'a OsString)| {
        let word = word.to_str()?;
        if word == flag {
            return line.get(at + 1)?.to_str();
        }
        word.strip_prefix(flag)?.strip_prefix('=')
    };
    line.iter().enumerate().find_map(of)
}

#[cfg(test)]
mod tests {
    use super::super::super::fake::Fake;
    use super::*;

    fn line(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn the_daemon_is_asked_for_what_the_line_chooses() {
        let typed =
            line(&["--", "emberscope", "stages", "--app", "etl", "--from=-1d", "--url", "x", "--stage", "3"]);
        assert_eq!(word(&typed, "--url"), Some("x"));
        assert_eq!(word(&typed, "--from"), Some("-1d"));
        assert_eq!(word(&typed, "--until"), None);
        let limit = (param::LIMIT, "200".to_owned());
        let [app, from] = [("app", "etl"), ("from", "-1d")].map(|(name, value)| (name, value.to_owned()));
        assert_eq!(params(LabelKey::Stage, &typed), [limit.clone(), app, from.clone()]);
        let stage = ("stage", "3".to_owned());
        assert_eq!(params(LabelKey::App, &typed), [limit, from, stage]);
        let several = params(LabelKey::Task, &line(&["--", "--stage", "3,4", "--app", "a,b"]));
        let want = [("app", "a,b"), ("stage", "3"), ("stage", "4")].map(|(k, v)| (k, v.to_owned()));
        assert_eq!(several[1..], want);
    }

    #[test]
    fn values_are_the_daemons() {
        let body =
            r#"{"label":"stage","cut":0,"values":[{"value":"7","samples":9},{"value":"12","samples":3}]}"#;
        let daemon = Fake::answering(200, &[], body);
        let typed = line(&["--", "emberscope", "stages", "--app", "etl", "--url", daemon.url(), "--stage"]);
        assert_eq!(of_daemon(LabelKey::Stage, typed), ["7", "12"]);
        assert_eq!(daemon.request().target, "/api/v1/labels/stage/values?limit=200&app=etl");
    }

    #[test]
    fn nobody_there_completes_nothing() {
        let typed = line(&["--", "emberscope", "stages", "--url", "unix:/nowhere/emberscope.sock", "--app"]);
        assert!(of_daemon(LabelKey::App, typed).is_empty());
    }
}
