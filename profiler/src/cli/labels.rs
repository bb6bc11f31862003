//! `emberscope labels`: what samples can be chosen by.

use super::CliError;
use super::answer::{Basis, amount, counted};
use super::ask::{AskArgs, Rows};
use super::selection::Params;
use super::table::{Align, Table};
use super::words::label;
use clap::Args;
use emberscope_api::route::{self, Route, param};
use emberscope_api::{LabelValues, Labels};
use emberscope_model::LabelKey;

/// Flags of `emberscope labels`.
#[derive(Args, Clone, Debug)]
pub struct LabelsArgs {
    /// Label whose values are listed. Without it, the names of the labels that occur.
    #[arg(value_name = "LABEL", value_parser = label())]
    name: Option<LabelKey>,
    /// List at most N values, those with the most samples first.
    #[arg(short = 'n', long, help_heading = "Output", value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    #[command(flatten)]
    ask: AskArgs,
}

/// Prints names, or values with their samples.
///
/// # Errors
/// As for [`AskArgs::run`].
pub fn run(args: &LabelsArgs) -> Result<(), CliError> {
    match args.name {
        None => args.ask.run::<Labels>(Vec::new()),
        Some(key) => {
            let limit: Params = vec![(param::LIMIT, args.limit.to_string())];
            let path = route::LABEL_VALUES.path.replace("{name}", key.name());
            args.ask.run_amended::<LabelValues>(&path, limit, &|_| false)
        }
    }
}

impl Rows for Labels {
    const WHAT: &'static str = "label";
    const ROUTE: &'static Route = &route::LABELS;
    fn table(&self, _: &Basis) -> Table {
        let mut table = Table::new(&[("LABEL", Align::Left)]);
        for name in &self.labels {
            table.row([name.to_string()]);
        }
        table
    }
}

impl Rows for LabelValues {
    const WHAT: &'static str = "value";
    const ROUTE: &'static Route = &route::LABEL_VALUES;
    fn table(&self, basis: &Basis) -> Table {
        let mut table = Table::new(&[
            ("VALUE", Align::Left),
            ("SAMPLES", Align::Right),
            (basis.kind().facts().column, Align::Right),
        ]);
        for row in &self.values {
            let amount = amount(&row.amount.weight, basis.kind());
            table.row([row.value.clone(), row.amount.samples.to_string(), amount]);
        }
        if self.cut > 0 {
            table.note(format!("and {}: see them with --limit", counted(self.cut, "more value")));
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::super::ask::tests::ask;
    use super::*;

    #[test]
    fn names_and_values() {
        let names = r#"{"windows":1,"quality":{"samples":3},"labels":["app","stage"]}"#;
        let (target, printed, result) = ask::<Labels>(&[], route::LABELS.path, vec![], 200, names);
        result.unwrap();
        assert_eq!(target, "/api/v1/labels?type=cpu");
        assert!(printed.starts_with("LABEL\napp\nstage\n"), "{printed}");

        let values = r#"{"windows":1,"quality":{"samples":3},"label":"stage","cut":2,
            "values":[{"value":"3","samples":300,"cpu_seconds":3.03}]}"#;
        let limit = vec![("limit", "1".to_owned())];
        let (target, printed, result) =
            ask::<LabelValues>(&[], "/api/v1/labels/stage/values", limit, 200, values);
        result.unwrap();
        assert_eq!(target, "/api/v1/labels/stage/values?type=cpu&limit=1");
        let want =
            "VALUE  SAMPLES     CPU\n3          300  3.03 s\nand 2 more values: see them with --limit\n";
        assert!(printed.starts_with(want), "{printed}");
    }
}
