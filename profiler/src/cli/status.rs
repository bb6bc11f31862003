//! `emberscope status`: a daemon's own account of itself.
//!
//! Prints a verdict, and below it whatever the daemon tells, as an indented outline, so that a newer daemon's answer is shown
//! whole. The verdict is the daemon's own: what it says of its health, of its disk, and of what it waits for.

use super::answer::counted;
use super::client::{Client, ClientArgs};
use super::selection::Params;
use super::{CliError, output, text};
use clap::Args;
use emberscope_api::{Status, route};
use serde_json::Value;
use std::io::{self, Write};

/// Flags of `emberscope status`.
#[derive(Args, Clone, Debug)]
pub struct StatusArgs {
    /// Print the daemon's JSON answer.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: ClientArgs,
}

/// Prints the status.
///
/// # Errors
/// [`CliError::Output`]: standard output takes no more. Else as for [`ClientArgs::client`] and [`Client::get_json`].
pub fn run(args: &StatusArgs) -> Result<(), CliError> {
    show(&args.client.client()?, args.json, &mut io::stdout().lock())
}

fn show(client: &Client, json: bool, out: &mut dyn Write) -> Result<(), CliError> {
    let (text, value) = client.get_json::<Value>(route::STATUS.path, &Params::new())?;
    if json {
        output::write_json(out, &text)?;
    } else {
        if let Some(verdict) = verdict(&value) {
            writeln!(out, "{}\n", text::clean(&verdict))?;
        }
        outline(&value, 0, out)?;
    }
    Ok(out.flush()?)
}

/// How it goes, in a sentence or two; None of a daemon that does not tell.
fn verdict(value: &Value) -> Option<String> {
    value.get("ready")?;
    let status: Status = serde_json::from_value(value.clone()).ok()?;
    let health = &status.health;
    if !status.ready {
        let what = status.waiting_for.as_deref().unwrap_or("its start");
        return Some(format!("NOT READY: waiting for {what}"));
    }
    if !health.healthy {
        let why = health.says.as_deref().unwrap_or("no thread says why");
        return Some(format!("UNHEALTHY: {why}"));
    }
    let mut wrong = health.degraded.clone();
    if let Some(disk) = &status.store.disk {
        wrong.extend(disk.failing.iter().map(|failing| format!("{} fails: {}", failing.what, failing.says)));
        if disk.set_aside > 0 {
            wrong.push(format!("{} set aside as bad", counted(disk.set_aside, "file")));
        }
    }
    wrong.extend(of_archive(&value["archive"]));
    let since = status.store.span.as_ref().map(|span| format!(", windows since {}", span.from.0));
    let last = health.last_window_seconds.map(|seconds| format!(", the last one closed {seconds:.0} s ago"));
    let windows = [since, last].into_iter().flatten().collect::<String>();
    Some(match wrong.is_empty() {
        true => format!("healthy{windows}"),
        false => format!("running{windows}, with problems: {}", wrong.join("; ")),
    })
}

/// What is wrong with an archive: of a daemon that copies to one, or a server that reads one.
fn of_archive(archive: &Value) -> Vec<String> {
    let failing = archive["failing"].as_str().map(|says| format!("the archive fails: {says}"));
    // What answers tell of, docs/archive.md.
    let clock = archive["clock_ahead_seconds"].as_f64().filter(|ahead| ahead.abs() > 5.0).map(|ahead| {
        let way = if ahead > 0.0 { "ahead of" } else { "behind" };
        format!("its clock is {:.0} s {way} the archive's", ahead.abs())
    });
    let counts = archive["nodes"].as_object().into_iter().flatten();
    let unwell: u64 =
        counts.filter(|(state, _)| *state != "live").filter_map(|(_, count)| count.as_u64()).sum();
    let first = &archive["nodes_unwell"][0];
    let nodes = (unwell > 0).then(|| {
        let name = |key: &str| first[key].as_str().unwrap_or("?");
        format!("{} with problems ({} is {})", counted(unwell, "node"), name("node"), name("state"))
    });
    [failing, clock, nodes].into_iter().flatten().collect()
}

/// `key: value` lines; what is inside stands two spaces further in. JSON nests 128 deep at most
/// (serde_json's own limit), so this recursion ends.
fn outline(value: &Value, depth: usize, out: &mut dyn Write) -> io::Result<()> {
    let pad = "  ".repeat(depth);
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = text::clean(key);
                match short(value) {
                    Some(value) => writeln!(out, "{pad}{key}: {value}")?,
                    None => {
                        writeln!(out, "{pad}{key}:")?;
                        outline(value, depth + 1, out)?;
                    }
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                match short(item) {
                    Some(item) => writeln!(out, "{pad}- {item}")?,
                    None => {
                        writeln!(out, "{pad}-")?;
                        outline(item, depth + 1, out)?;
                    }
                }
            }
        }
        other => writeln!(out, "{pad}{}", short(other).unwrap_or_default())?,
    }
    Ok(())
}

/// What fits behind a key.
fn short(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("-".to_owned()),
        Value::String(text) => Some(text::clean(text).into_owned()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(items) if items.is_empty() => Some("none".to_owned()),
        Value::Object(fields) if fields.is_empty() => Some("none".to_owned()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::*;

    #[test]
    fn all_that_is_told_is_shown() {
        let body = r#"{"version":"0.1.0","jvms":[{"pid":7,"names":"asked\u001b[31m"}],"lost":{},"host":{"btf":true}}"#;
        let fake = Fake::answering(200, &[], body);
        let mut out = Vec::new();
        show(&fake.client(None), false, &mut out).unwrap();
        assert_eq!(fake.request().target, "/api/v1/status");
        let out = String::from_utf8(out).unwrap();
        for line in [
            "version: 0.1.0",
            "jvms:",
            "    pid: 7",
            "    names: asked\\u{1b}[31m",
            "lost: none",
            "  btf: true",
        ] {
            assert!(out.lines().any(|got| got == line), "{line:?} not in\n{out}");
        }
    }

    #[test]
    fn a_verdict_stands_first() {
        let first = |body: &str| {
            let fake = Fake::answering(200, &[], body);
            let mut out = Vec::new();
            show(&fake.client(None), false, &mut out).unwrap();
            String::from_utf8(out).unwrap().lines().next().unwrap_or_default().to_owned()
        };
        let well =
            r#""ready":true,"health":{"healthy":true,"last_window_seconds":4.2},"jvms":[],"version":"0.1.0""#;
        let span = r#""store":{"span":{"from":"2026-11-21T10:00:00.000Z","until":"B"}"#;
        let said = "healthy, windows since 2026-11-21T10:00:00.000Z, the last one closed 4 s ago";
        assert_eq!(first(&format!("{{{well},{span}}}}}")), said);
        let disk =
            r#","disk":{"failing":[{"what":"journal","says":"No space\u001b[2J left"}],"set_aside":2}"#;
        let said = first(&format!("{{{well},{span}{disk}}}}}"));
        assert!(
            said.ends_with("problems: journal fails: No space\\u{1b}[2J left; 2 files set aside as bad"),
            "{said}"
        );
        let archive = r#""archive":{"failing":null,"clock_ahead_seconds":-30.2,"nodes":{"live":7,"silent":1,"clock":1},
            "nodes_unwell":[{"node":"n-2","state":"silent"}]}"#;
        let said = first(&format!("{{{well},{archive}}}"));
        let want = "problems: its clock is 30 s behind the archive's; 2 nodes with problems (n-2 is silent)";
        assert!(said.ends_with(want), "{said}");
        let away =
            archive.replace("null", "\"no route\"").replace("-30.2", "0.4").replace("1,\"clock\":1", "0");
        assert!(first(&format!("{{{well},{away}}}")).ends_with("problems: the archive fails: no route"));
        let ill = well.replace(r#""healthy":true"#, r#""healthy":false,"says":"sampler: stuck for 40 s""#);
        assert_eq!(first(&format!("{{{ill}}}")), "UNHEALTHY: sampler: stuck for 40 s");
        let young = r#"{"ready":false,"waiting_for":"BPF programs"}"#;
        assert_eq!(first(young), "NOT READY: waiting for BPF programs");
        assert_eq!(first(r#"{"version":"0.0.9"}"#), "version: 0.0.9", "an older one does not tell");
    }

    #[test]
    fn json_is_passed_on() {
        let fake = Fake::answering(200, &[], r#"{"version":"0.1.0"}"#);
        let mut out = Vec::new();
        show(&fake.client(None), true, &mut out).unwrap();
        assert_eq!(out, b"{\"version\":\"0.1.0\"}\n");
    }
}
