//! `emberscope labels`: what samples can be chosen by.

use super::CliError;
use super::answer::{Amounts, Basis, counted};
use super::ask::{AskArgs, Rows};
use super::selection::{Params, label};
use super::table::{Align, Table};
use clap::Args;
use emberscope_model::LabelKey;
use serde::Deserialize;

const PATH: &str = "/api/v1/labels";

/// Flags of `emberscope labels`.
#[derive(Args, Clone, Debug)]
pub struct LabelsArgs {
    /// Label whose values are wanted. Without it, the names of the labels that occur.
    #[arg(value_name = "LABEL", value_parser = label())]
    name: Option<LabelKey>,
    /// Values at most, the most sampled first.
    #[arg(long, help_heading = "Output", value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
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
        None => args.ask.run::<Names>(PATH, Vec::new()),
        Some(key) => {
            let limit: Params = vec![("limit", args.limit.to_string())];
            args.ask.run::<Values>(&format!("{PATH}/{key}/values"), limit)
        }
    }
}

#[derive(Debug, Deserialize)]
struct Names {
    #[serde(flatten)]
    basis: Basis,
    labels: Vec<String>,
}

impl Rows for Names {
    const WHAT: &'static str = "label";
    fn basis(&self) -> &Basis {
        &self.basis
    }
    fn table(&self) -> Table {
        let mut table = Table::new(&[("LABEL", Align::Left)]);
        for name in &self.labels {
            table.row([name.clone()]);
        }
        table
    }
}

#[derive(Debug, Deserialize)]
struct Values {
    #[serde(flatten)]
    basis: Basis,
    #[serde(default)]
    cut: u64,
    values: Vec<Value>,
}

#[derive(Debug, Deserialize)]
struct Value {
    value: String,
    samples: u64,
    #[serde(flatten)]
    amounts: Amounts,
}

impl Rows for Values {
    const WHAT: &'static str = "value";
    fn basis(&self) -> &Basis {
        &self.basis
    }
    fn table(&self) -> Table {
        let mut table = Table::new(&[
            ("VALUE", Align::Left),
            ("SAMPLES", Align::Right),
            (self.basis.kind().facts().column, Align::Right),
        ]);
        for row in &self.values {
            table.row([row.value.clone(), row.samples.to_string(), row.amounts.of(self.basis.kind())]);
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
        let (target, printed, result) = ask::<Names>(&[], PATH, vec![], 200, names);
        result.unwrap();
        assert_eq!(target, "/api/v1/labels?type=cpu");
        assert!(printed.starts_with("LABEL\napp\nstage\n"), "{printed}");

        let values = r#"{"windows":1,"quality":{"samples":3},"label":"stage","cut":2,
            "values":[{"value":"3","samples":300,"cpu_seconds":3.03}]}"#;
        let limit = vec![("limit", "1".to_owned())];
        let (target, printed, result) = ask::<Values>(&[], "/api/v1/labels/stage/values", limit, 200, values);
        result.unwrap();
        assert_eq!(target, "/api/v1/labels/stage/values?type=cpu&limit=1");
        let want =
            "VALUE  SAMPLES     CPU\n3          300  3.03 s\nand 2 more values: see them with --limit\n";
        assert!(printed.starts_with(want), "{printed}");
    }
}
