//! `emberscope sql`: queries of Spark SQL by what their tasks did, and the operators and the plan of one.

use super::CliError;
use super::answer::{Basis, amount, counted};
use super::ask::{AskArgs, Rows};
use super::figures::known;
use super::selection::Params;
use super::table::{Align, Table};
use super::text::{percent, percent_within, time};
use super::waited;
use clap::Args;
use emberscope_api::route::{self, Route, param};
use emberscope_api::{Cost, Exact, Sql, SqlQuery};
use emberscope_model::SampleKind;
use plan::Plan;
use serde::Deserialize;

mod plan;

/// Flags of `emberscope sql`.
#[derive(Args, Clone, Debug)]
pub struct SqlArgs {
    /// Show the operators of one query: Spark's id of the execution.
    #[arg(long, value_name = "ID", help_heading = "Output")]
    execution: Option<u64>,
    /// Show the query's physical plan, with what its operators cost.
    #[arg(long, requires = "execution", help_heading = "Output")]
    plan: bool,
    /// List at most N queries, the largest first.
    #[arg(short = 'n', long, help_heading = "Output", value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    #[command(flatten)]
    ask: AskArgs,
}

/// Prints a row for each query, for each operator of one, or its plan.
///
/// # Errors
/// As for [`AskArgs::run`].
pub fn run(args: &SqlArgs) -> Result<(), CliError> {
    match args.execution {
        Some(_) if args.plan => args.ask.run::<Plan>(params(args)),
        Some(_) => args.ask.run::<Operators>(params(args)),
        None => args.ask.run::<Sql>(params(args)),
    }
}

fn params(args: &SqlArgs) -> Params {
    let mut params = vec![(param::LIMIT, args.limit.to_string())];
    params.extend(args.execution.map(|id| (param::EXECUTION, id.to_string())));
    params
}

/// What something cost: its weight, its share, its samples and their error.
fn cells(cost: &Cost, kind: SampleKind) -> [String; 4] {
    [
        amount(&cost.amount.weight, kind),
        percent_within(cost.share, cost.share_error),
        cost.amount.samples.to_string(),
        percent(cost.amount.sampling_error),
    ]
}

/// `3, 5-7, 9`
fn ranges(ids: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &id in ids {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(id) => *last = id,
            _ => runs.push((id, id)),
        }
    }
    let run = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let text: Vec<String> = runs.iter().map(run).collect();
    if text.is_empty() { "-".to_owned() } else { text.join(", ") }
}

fn several_apps(queries: &[SqlQuery]) -> bool {
    queries.iter().any(|query| Some(&query.app) != queries.first().map(|first| &first.app))
}

impl Rows for Sql {
    const WHAT: &'static str = "query";
    const ROUTE: &'static Route = &route::SQL;
    fn table(&self, basis: &Basis) -> Table {
        let kind = basis.kind();
        let mut columns = vec![
            ("QUERY", Align::Right),
            (kind.facts().column, Align::Right),
            ("SHARE", Align::Right),
            ("SAMPLES", Align::Right),
            ("ERROR", Align::Right),
            ("STAGES", Align::Left),
            ("DESCRIPTION", Align::Left),
        ];
        let several = several_apps(&self.queries);
        if several {
            columns.insert(0, ("APP", Align::Left));
        }
        let waits: Vec<String> = self
            .queries
            .iter()
            .map(|query| waited::cell(query.waited.as_ref(), query.exact.as_ref()))
            .collect();
        let (has_exact, has_waits) = (
            self.queries.iter().any(|query| query.exact.is_some()),
            waits.iter().any(|cell| !cell.is_empty()),
        );
        let description = columns.pop();
        if has_exact {
            columns.extend([("RUN DELAY", Align::Right), ("BLOCKED", Align::Right)]);
        }
        if has_waits {
            columns.push((waited::HEAD, Align::Left));
        }
        columns.extend(description);
        let mut table = Table::new(&columns);
        table.give_way(&["ERROR", "STAGES"]);
        table.cut_last();
        for (query, waits) in self.queries.iter().zip(waits) {
            let mut row = vec![query.execution.map_or_else(|| "-".to_owned(), |id| id.to_string())];
            row.extend(cells(&query.cost, kind));
            row.push(ranges(&query.stages));
            if has_exact {
                let part = |of: fn(&Exact) -> f64| time(query.exact.as_ref().map(of));
                row.extend([part(|exact| exact.run_delay_seconds), part(|exact| exact.blocked_seconds)]);
            }
            if has_waits {
                row.push(waits);
            }
            row.push(match query.execution {
                Some(_) => known(&query.description),
                None => "(stages with no known query)".to_owned(),
            });
            if several {
                row.insert(0, known(&query.app));
            }
            table.row(row);
        }
        if has_exact {
            table.note("RUN DELAY, BLOCKED: by the kernel's accounts of the tasks' own threads".to_owned());
        }
        if has_waits {
            table.note(waited::NOTE.to_owned());
        }
        if self.cut > 0 {
            let more =
                if self.cut == 1 { "1 more query".to_owned() } else { format!("{} more queries", self.cut) };
            table.note(format!("and {more}: see them with --limit"));
        }
        table
    }
}

/// The same answer, with the operators of its one query.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct Operators(Sql);

impl Rows for Operators {
    const WHAT: &'static str = "sample of the query";
    const ROUTE: &'static Route = &route::SQL;
    fn table(&self, basis: &Basis) -> Table {
        let kind = basis.kind();
        let operators = self.0.operators.as_deref().unwrap_or_default();
        let has_waits = operators.iter().any(|row| row.waited_seconds.is_some());
        let mut columns = vec![
            ("OPERATOR", Align::Left),
            (kind.facts().column, Align::Right),
            ("SHARE", Align::Right),
            ("SAMPLES", Align::Right),
            ("ERROR", Align::Right),
            ("STAGES", Align::Left),
        ];
        if has_waits {
            columns.insert(5, ("WAITED", Align::Right));
        }
        let mut table = Table::new(&columns);
        for row in operators {
            let mut cells = Vec::from(cells(&row.cost, kind));
            cells.insert(0, row.operator.clone());
            if has_waits {
                cells.push(time(row.waited_seconds));
            }
            cells.push(ranges(&row.stages));
            table.row(cells);
        }
        for query in &self.0.queries {
            let name = known(&query.description);
            let samples = counted(query.cost.amount.samples, "sample");
            table.note(format!("query {}: {name}: {samples}", query.execution.unwrap_or_default()));
        }
        let part = |of: &str| {
            let shares = operators.iter().filter(|row| row.of == of).filter_map(|row| row.cost.share);
            // Of nothing it is -0.
            Some(shares.fold(0.0, |sum, share| sum + share))
        };
        table.note(format!(
            "attributed to operators {}, to some in one loop {}, to generated code with no known operator {}, to Spark's or another engine's work \
             around them {}, unknown {}",
            percent(part("operator")),
            percent(part("fused")),
            percent(part("codegen")),
            percent(part("around")),
            percent(part("unknown")),
        ));
        table
    }
}

#[cfg(test)]
mod tests {
    use super::super::ask::tests::ask;
    use super::*;

    const HEAD: &str = r#""range":{"from":"A","until":"B"},"windows":2,"quality":{"samples":8,"lost":0}"#;

    #[test]
    fn queries_stand_by_what_they_cost() {
        let body = format!(
            r#"{{{HEAD},"count":3,"cut":1,"queries":[
            {{"app":"a","execution":12,"description":"nightly","stages":[3,5,6,7],"samples":6,"cpu_seconds":0.06,
              "sampling_error":0.4,"share":0.75,"share_error":0.15}},
            {{"app":"a","execution":null,"stages":[9],"samples":2,"cpu_seconds":0.02,"sampling_error":0.7,
              "share":0.25,"share_error":0.15}}],"spark":null}}"#
        );
        let limit = vec![(param::LIMIT, "2".to_owned())];
        let (target, printed, result) = ask::<Sql>(&["--app", "a"], route::SQL.path, limit, 200, &body);
        result.unwrap();
        assert_eq!(target, "/api/v1/sql?app=a&type=cpu&limit=2");
        assert!(
            printed.contains("3, 5-7  nightly") && printed.contains("(stages with no known query)"),
            "{printed}"
        );
        assert!(printed.contains("and 1 more query: see them with --limit"), "{printed}");
    }

    #[test]
    fn operators_of_a_query_and_what_is_unknown() {
        let row = |operator: &str, of: &str, samples: u64| {
            let share = samples as f64 / 8.0;
            format!(
                r#"{{"operator":"{operator}","of":"{of}","stages":[3],"samples":{samples},"cpu_seconds":0.01,
                "sampling_error":null,"share":{share},"share_error":0.1}}"#
            )
        };
        let rows = [
            row("Sort", "operator", 6),
            row("Range+Project (codegen 1)", "fused", 1),
            row("WholeStageCodegen (2)", "codegen", 1),
            row("unknown", "unknown", 0),
        ];
        let body = format!(
            r#"{{{HEAD},"count":1,"queries":[{{"execution":12,"description":"nightly","samples":8,"cpu_seconds":0.08,
            "share":1.0,"share_error":0.0}}],"operators":[{}]}}"#,
            rows.join(",")
        );
        let id = vec![(param::EXECUTION, "12".to_owned())];
        let (_, printed, result) = ask::<Operators>(&[], route::SQL.path, id, 200, &body);
        result.unwrap();
        assert!(printed.contains("query 12: nightly: 8 samples"), "{printed}");
        let note = "attributed to operators 75.00 %, to some in one loop 12.50 %, to generated code with no known operator \
                    12.50 %, to Spark's or another engine's work around them 0.00 %, unknown 0.00 %";
        assert!(printed.contains(note), "{printed}");
    }
}
