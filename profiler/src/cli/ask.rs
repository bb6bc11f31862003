//! What the commands that print tables have in common: ask, print the table or the JSON, say what it
//! rests on, end with "nothing" when there is none.

use super::answer::Basis;
use super::client::{Client, ClientArgs};
use super::selection::{Params, SelectArgs};
use super::shape::KindArgs;
use super::table::{self, Table};
use super::text;
use super::{CliError, output};
use clap::Args;
use emberscope_api::Answer;
use emberscope_api::route::Route;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::io::{self, Write};

/// Flags of every command that prints a table of samples.
#[derive(Args, Clone, Debug)]
pub struct AskArgs {
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub kind: KindArgs,
    /// Print the daemon's JSON answer.
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    #[command(flatten)]
    pub client: ClientArgs,
}

/// Adds to the daemon's answer before it is read; whether it did.
pub type Amend<'a> = &'a dyn Fn(&mut Map<String, Value>) -> bool;

/// An answer that is a table.
pub trait Rows: DeserializeOwned {
    /// What its rows are, for messages.
    const WHAT: &'static str;
    /// Where it is asked for.
    const ROUTE: &'static Route;
    /// Its rows; the answer rests on `basis`.
    fn table(&self, basis: &Basis) -> Table;
    /// Further tables, each with a heading of its own.
    fn below(&self) -> Vec<Table> {
        Vec::new()
    }
}

impl AskArgs {
    /// Asks, with these parameters beside the selection, and prints.
    pub fn run<T: Rows>(&self, more: Params) -> Result<(), CliError> {
        self.run_amended::<T>(T::ROUTE.path, more, &|_| false)
    }

    /// The same of a path of the route; `amend` adds to the daemon's answer before it is read.
    pub fn run_amended<T: Rows>(&self, path: &str, more: Params, amend: Amend<'_>) -> Result<(), CliError> {
        let (out, err) = (&mut io::stdout().lock(), &mut io::stderr().lock());
        self.show::<T>(&self.client.client()?, path, more, amend, table::terminal_width(), (out, err))
    }

    fn show<T: Rows>(
        &self,
        client: &Client,
        path: &str,
        more: Params,
        amend: Amend<'_>,
        room: Option<usize>,
        (out, err): (&mut dyn Write, &mut dyn Write),
    ) -> Result<(), CliError> {
        let mut params = self.select.params();
        params.push(self.kind.param());
        params.extend(more);
        let (mut json, mut value) = client.get_json::<Value>(path, &params)?;
        if value.as_object_mut().is_some_and(amend) {
            json = value.to_string();
        }
        let spark = value.pointer("/spark/says").and_then(Value::as_str).map(str::to_owned);
        let answer: Answer<T> =
            serde_json::from_value(value).map_err(|e| client.odd(format!("its answer: {e}")))?;
        let (basis, answer) = (Basis::from(answer.head), answer.content);
        let table = answer.table(&basis);
        if self.json {
            output::write_json(out, &json)?;
        } else if !table.is_empty() {
            table.write(out, room)?;
            for below in answer.below().iter().filter(|table| !table.is_empty()) {
                writeln!(out)?;
                below.write(out, room)?;
            }
        }
        out.flush()?;
        if table.is_empty() {
            return Err(CliError::Nothing(basis.nothing(T::WHAT, &self.select.describe())));
        }
        if !self.json {
            if let Some(says) = spark.filter(|says| !says.is_empty()) {
                writeln!(err, "Spark's own names and figures: {}", text::clean(&says))?;
            }
            writeln!(err, "{}", text::clean(&basis.line()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::fake::Fake;
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        ask: AskArgs,
    }

    /// Runs a table command against a fake daemon. Out: the request's target, what was printed, the result.
    pub fn ask<T: Rows>(
        flags: &[&str],
        path: &str,
        more: Params,
        status: u16,
        body: &str,
    ) -> (String, String, Result<(), CliError>) {
        let fake = Fake::answering(status, &[], body);
        let line = Line::try_parse_from(std::iter::once(&"x").chain(flags)).unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let result =
            line.ask.show::<T>(&fake.client(None), path, more, &|_| false, None, (&mut out, &mut err));
        let printed = [out, err].concat();
        (fake.request().target, String::from_utf8(printed).unwrap(), result)
    }
}
