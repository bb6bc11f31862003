//! `emberscope executors`: the executors that were sampled, their Python workers in rows of their own.

use super::CliError;
use super::answer::{Basis, amount};
use super::ask::{AskArgs, Rows};
use super::table::{Align, Table};
use clap::Args;
use emberscope_api::route::{self, Route};
use emberscope_api::{Executors, Jvm};

/// Flags of `emberscope executors`.
#[derive(Args, Clone, Debug)]
pub struct ExecutorsArgs {
    #[command(flatten)]
    ask: AskArgs,
}

/// Prints a row for each executor and role.
///
/// # Errors
/// As for [`AskArgs::run`].
pub fn run(args: &ExecutorsArgs) -> Result<(), CliError> {
    args.ask.run::<Executors>(Vec::new())
}

impl Rows for Executors {
    const WHAT: &'static str = "executor";
    const ROUTE: &'static Route = &route::EXECUTORS;
    fn table(&self, basis: &Basis) -> Table {
        let mut table = Table::new(&[
            ("APP", Align::Left),
            ("EXECUTOR", Align::Left),
            ("ROLE", Align::Left),
            ("HOST", Align::Left),
            ("PID", Align::Left),
            ("CORES", Align::Right),
            ("SAMPLES", Align::Right),
            (basis.kind().facts().column, Align::Right),
            ("JVM", Align::Left),
            ("NAMES", Align::Left),
        ]);
        for row in &self.executors {
            let pids: Vec<String> = row.pids.iter().map(u32::to_string).collect();
            let jvm = |part: fn(&Jvm) -> &str| row.jvm.as_ref().map(part).unwrap_or_default().to_owned();
            table.row([
                row.app.clone(),
                row.executor.clone(),
                row.role.clone(),
                row.host.clone().or_else(|| row.node.clone()).unwrap_or_default(),
                pids.join(","),
                row.cores.map(|cores| cores.to_string()).unwrap_or_default(),
                row.amount.samples.to_string(),
                amount(&row.amount.weight, basis.kind()),
                jvm(|jvm| &jvm.version),
                jvm(|jvm| &jvm.names),
            ]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::super::ask::tests::ask;
    use super::*;

    #[test]
    fn a_row_for_each_executor() {
        let body = r#"{"range":{"from":"A","until":"B"},"windows":1,"quality":{"samples":12,"lost":0},"executors":[
            {"app":"app-1","app_name":"etl","executor":"1","role":"executor","node":"n","host":"h1","pids":[41,42],
             "cores":2,"jvm":{"version":"17.0.15","names":"asked","names_detail":"x"},"samples":10,"cpu_seconds":0.1},
            {"app":"app-1","app_name":null,"executor":"1","role":"python","node":"n","host":null,"pids":[50],
             "cores":null,"jvm":null,"samples":2,"cpu_seconds":0.02}]}"#;
        let (target, printed, result) =
            ask::<Executors>(&["--app", "etl"], route::EXECUTORS.path, vec![], 200, body);
        result.unwrap();
        assert_eq!(target, "/api/v1/executors?app=etl&type=cpu");
        let want = "APP    EXECUTOR  ROLE      HOST  PID    CORES  SAMPLES     CPU  JVM      NAMES\n\
                    app-1  1         executor  h1    41,42      2       10  0.10 s  17.0.15  asked\n\
                    app-1  1         python    n     50         -        2  0.02 s  -        -\n";
        assert!(printed.starts_with(want), "{printed}");
    }
}
