//! `emberscope status`: a daemon's own account of itself.
//!
//! Prints whatever the daemon tells, as an indented outline, so that a newer daemon's answer is shown
//! whole. Nothing is judged here.

use super::client::{Client, ClientArgs};
use super::selection::Params;
use super::{CliError, output, text};
use clap::Args;
use emberscope_api::route;
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
        outline(&value, 0, out)?;
    }
    Ok(out.flush()?)
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
    fn json_is_passed_on() {
        let fake = Fake::answering(200, &[], r#"{"version":"0.1.0"}"#);
        let mut out = Vec::new();
        show(&fake.client(None), true, &mut out).unwrap();
        assert_eq!(out, b"{\"version\":\"0.1.0\"}\n");
    }
}
