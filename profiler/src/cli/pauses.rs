//! `emberscope pauses`: when JVMs stood still, for how long, and what for.

use super::CliError;
use super::answer::{Basis, counted};
use super::ask::{AskArgs, Rows};
use super::figures::{known, moment};
use super::table::{Align, Table};
use super::text::time;
use clap::Args;
use emberscope_api::Pauses;
use emberscope_api::route::{self, Route, param};

/// Flags of `emberscope pauses`.
#[derive(Args, Clone, Debug)]
pub struct PausesArgs {
    /// List at most N pauses, the longest ones.
    #[arg(short = 'n', long, help_heading = "Output", value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    #[command(flatten)]
    ask: AskArgs,
}

/// Prints a row for each pause, and sums by cause.
///
/// # Errors
/// As for [`AskArgs::run`].
pub fn run(args: &PausesArgs) -> Result<(), CliError> {
    args.ask.run::<Pauses>(vec![(param::LIMIT, args.limit.to_string())])
}

impl Rows for Pauses {
    const WHAT: &'static str = "pause of a JVM";
    const ROUTE: &'static Route = &route::PAUSES;
    fn table(&self, basis: &Basis) -> Table {
        let (from, until) = basis.range();
        let mut table = Table::new(&[
            ("BEGAN", Align::Left),
            ("LENGTH", Align::Right),
            ("CAUSE", Align::Left),
            ("APP", Align::Left),
            ("EXECUTOR", Align::Left),
            ("PID", Align::Left),
        ]);
        for pause in &self.pauses {
            table.row([
                moment(Some(&pause.began), from, until),
                time(Some(pause.seconds)),
                cause(&pause.cause),
                known(&pause.jvm.app),
                known(&pause.jvm.executor),
                known(&pause.jvm.pid),
            ]);
        }
        if self.cut > 0 {
            table.note(format!("and {}: see them with --limit", counted(self.cut, "shorter pause")));
        }
        table.note(
            "LENGTH: from when the JVM began to stop its threads until they went on; CAUSE: the operation, as the JVM's \
             own log names it"
                .to_owned(),
        );
        table
    }

    fn below(&self) -> Vec<Table> {
        let mut table = Table::new(&[
            ("CAUSE", Align::Left),
            ("APP", Align::Left),
            ("EXECUTOR", Align::Left),
            ("PAUSES", Align::Right),
            ("TOTAL", Align::Right),
            ("LONGEST", Align::Right),
        ]);
        for sum in &self.causes {
            table.row([
                cause(&sum.cause),
                known(&sum.jvm.app),
                known(&sum.jvm.executor),
                sum.count.to_string(),
                time(Some(sum.seconds)),
                time(Some(sum.longest_seconds)),
            ]);
        }
        vec![table]
    }
}

fn cause(cause: &Option<String>) -> String {
    cause.clone().unwrap_or_else(|| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::ask::tests::ask;
    use super::*;

    #[test]
    fn a_row_for_each_pause_and_each_cause() {
        let body = r#"{"range":{"from":"2026-11-25T10:00:00.000Z","until":"2026-11-25T10:01:00.000Z"},"windows":6,
            "quality":{"samples":12,"lost":0},"count":3,"cut":1,"seconds":0.0131,
            "causes":[{"app":"app-1","executor":"1","cause":"G1CollectForAllocation","count":3,"seconds":0.0131,
                       "longest_seconds":0.0083}],
            "pauses":[{"app":"app-1","executor":"1","role":"executor","node":"n","pid":"41",
                       "began":"2026-11-25T10:00:03.120Z","began_ns":1,"seconds":0.0083,"cause":"G1CollectForAllocation"},
                      {"app":"app-1","executor":"1","pid":"41","began":"2026-11-25T10:00:04.000Z","seconds":0.0025,
                       "cause":null}]}"#;
        let (target, printed, result) =
            ask::<Pauses>(&["--app", "etl"], route::PAUSES.path, vec![], 200, body);
        result.unwrap();
        assert_eq!(target, "/api/v1/pauses?app=etl&type=cpu");
        for line in [
            "10:00:03.120Z  8.30 ms  G1CollectForAllocation  app-1  1         41",
            "10:00:04.000Z  2.50 ms  unknown                 app-1  1         41",
            "and 1 shorter pause: see them with --limit",
            "G1CollectForAllocation  app-1  1              3  13.1 ms  8.30 ms",
        ] {
            assert!(printed.contains(line), "{line}\n{printed}");
        }
    }
}
