//! `emberscope apps`: the Spark applications that were sampled.

use super::CliError;
use super::answer::{Basis, amount};
use super::ask::{AskArgs, Rows};
use super::table::{Align, Table};
use clap::Args;
use emberscope_api::route::{self, Route};
use emberscope_api::{App, Apps};

/// Flags of `emberscope apps`.
#[derive(Args, Clone, Debug)]
pub struct AppsArgs {
    #[command(flatten)]
    ask: AskArgs,
}

/// Prints a row for each application.
///
/// # Errors
/// As for [`AskArgs::run`].
pub fn run(args: &AppsArgs) -> Result<(), CliError> {
    args.ask.run::<Apps>(Vec::new())
}

impl Rows for Apps {
    const WHAT: &'static str = "application";
    const ROUTE: &'static Route = &route::APPS;
    fn table(&self, basis: &Basis) -> Table {
        let mut table = Table::new(&[
            ("APP", Align::Left),
            ("NAME", Align::Left),
            ("USER", Align::Left),
            ("DEPLOY", Align::Left),
            ("EXECUTORS", Align::Right),
            ("SAMPLES", Align::Right),
            (basis.kind().facts().column, Align::Right),
            ("FIRST SEEN", Align::Left),
            ("LAST SEEN", Align::Left),
        ]);
        table.give_way(&["DEPLOY", "USER", "SAMPLES", "LAST SEEN"]);
        for App { id, name, user, deploy, executors, amount: of, first_seen, last_seen, .. } in &self.apps {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            table.row([
                id.clone(),
                text(name),
                text(user),
                text(deploy),
                executors.to_string(),
                of.samples.to_string(),
                amount(&of.weight, basis.kind()),
                first_seen.0.clone(),
                last_seen.0.clone(),
            ]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::super::ask::tests::ask;
    use super::*;

    const HEAD: &str = r#""range":{"from":"2026-11-21T17:00:00.000Z","until":"2026-11-21T18:00:00.000Z"},
        "windows":360,"quality":{"samples":400,"lost":0,"truncated":0,"sampling_error":0.05}"#;

    #[test]
    fn a_row_for_each_app() {
        let body = format!(
            r#"{{{HEAD},"apps":[{{"id":"app-1","name":"etl\u001b[2J","user":"ann","deploy":"standalone","executors":3,
            "drivers":[7],"samples":400,"cpu_seconds":4.04,"sampling_error":0.05,
            "first_seen":"2026-11-21T17:10:00.000Z","last_seen":"2026-11-21T17:20:00.000Z"}}]}}"#
        );
        let (target, printed, result) =
            ask::<Apps>(&["--user", "a n&n", "--from", "-1h"], route::APPS.path, vec![], 200, &body);
        result.unwrap();
        assert_eq!(target, "/api/v1/apps?user=a%20n%26n&from=-1h&type=cpu");
        let want = "APP    NAME          USER  DEPLOY      EXECUTORS  SAMPLES     CPU  FIRST SEEN                LAST SEEN\n\
                    app-1  etl\\u{1b}[2J  ann   standalone          3      400  4.04 s  2026-11-21T17:10:00.000Z  2026-11-21T17:20:00.000Z\n\
                    360 windows from 2026-11-21T17:00:00.000Z until 2026-11-21T18:00:00.000Z: 400 samples (+- 5.0 %), \
                    0 lost on the node, 0 with a stack cut short\n";
        assert_eq!(printed, want);
    }

    #[test]
    fn json_is_passed_on() {
        let body = format!(r#"{{{HEAD},"apps":[{{"id":"a","samples":1,"new_field":[1]}}]}}"#);
        let (_, printed, result) = ask::<Apps>(&["--json"], route::APPS.path, vec![], 200, &body);
        result.unwrap();
        assert_eq!(printed, format!("{body}\n"));
    }

    #[test]
    fn nothing_found_has_its_own_code() {
        let (_, printed, result) =
            ask::<Apps>(&["--role", "x"], route::APPS.path, vec![], 200, &format!(r#"{{{HEAD},"apps":[]}}"#));
        let error = result.unwrap_err();
        assert_eq!((printed.as_str(), error.code()), ("", super::super::code::NOTHING));
        assert!(error.to_string().starts_with("no application with role=x from 2026-"), "{error}");
    }
}
