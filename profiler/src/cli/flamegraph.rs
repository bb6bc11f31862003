//! `emberscope flamegraph`: the merged stacks of the chosen samples, from a daemon.

use super::answer::Basis;
use super::client::{Client, ClientArgs};
use super::output::{Output, OutputArgs};
use super::selection::{Params, SelectArgs};
use super::shape::{KindArgs, ShapeArgs};
use super::{CliError, text};
use clap::Args;
use emberscope_api::route::{self, param};
use std::io::{self, Write};

/// Flags of `emberscope flamegraph`.
#[derive(Args, Clone, Debug)]
pub struct FlamegraphArgs {
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub kind: KindArgs,
    #[command(flatten)]
    pub shape: ShapeArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub client: ClientArgs,
}

impl FlamegraphArgs {
    /// Parameters of the API, without the format.
    pub fn params(&self) -> Params {
        let mut params = self.select.params();
        params.push(self.kind.param());
        params.extend(self.shape.params());
        params
    }
}

/// Writes the flame graph, and on standard error what it rests on.
///
/// # Errors
/// [`CliError::Usage`]: where it goes cannot be decided. Else as for [`ClientArgs::client`] and [`show`].
pub fn run(args: &FlamegraphArgs) -> Result<(), CliError> {
    let output = args.output.decide()?;
    show(args, &output, &args.client.client()?, &mut io::stderr().lock())
}

/// As [`run`], with what the flags say decided: where to, and whom to ask.
///
/// # Errors
/// As for [`Client::get`], [`ShapeArgs::unit_of`] and [`deliver`].
pub fn show(
    args: &FlamegraphArgs,
    output: &Output,
    client: &Client,
    err: &mut dyn Write,
) -> Result<(), CliError> {
    let mut params = args.params();
    params.push((param::FORMAT, output.format.slug().to_owned()));
    let answered = client.get(route::FLAMEGRAPH.path, &params)?;
    let chosen = args.select.describe();
    let body =
        output.made(&answered.body, &chosen, args.shape.unit_of(args.kind.kind)?.facts(args.kind.kind).unit);
    deliver(output, &body, &Basis::from(&answered), &chosen, err)
}

/// Writes a flame graph and says what it rests on; one of nothing is not written.
///
/// # Errors
/// [`CliError::Nothing`]: there are no samples, and nothing is written. [`CliError::File`], [`CliError::Output`]: the
/// graph or the line on standard error cannot be written.
pub fn deliver(
    output: &Output,
    bytes: &[u8],
    basis: &Basis,
    chosen: &str,
    err: &mut dyn Write,
) -> Result<(), CliError> {
    if basis.samples() == 0 {
        return Err(CliError::Nothing(basis.nothing("sample", chosen)));
    }
    let written = output.write(bytes)?;
    let name = written.map(|path| format!("{}: ", path.display())).unwrap_or_default();
    Ok(writeln!(err, "{}", text::clean(&format!("{name}{}", basis.line())))?)
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flamegraph: FlamegraphArgs,
    }

    const HEADERS: [(&str, &str); 6] = [
        ("X-Emberscope-From", "2026-11-21T17:00:00.000Z"),
        ("X-Emberscope-Until", "2026-11-21T17:01:00.000Z"),
        ("X-Emberscope-Windows", "6"),
        ("X-Emberscope-Samples", "400"),
        ("X-Emberscope-Lost", "3"),
        ("X-Emberscope-Truncated", "1"),
    ];

    fn make(flags: &[&str], fake: &Fake) -> (String, Result<(), CliError>) {
        let args = Line::try_parse_from(std::iter::once(&"x").chain(flags)).unwrap().flamegraph;
        let mut err = Vec::new();
        let result = show(&args, &args.output.decide().unwrap(), &fake.client(Some("secret")), &mut err);
        (String::from_utf8(err).unwrap(), result)
    }

    #[test]
    fn a_file_and_a_line_of_what_it_rests_on() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("out.svg");
        let fake = Fake::answering(200, &HEADERS, "<svg/>");
        let flags = ["--app", "etl", "--group", "stage,task", "--unit", "ns", "-o", file.to_str().unwrap()];
        let (line, result) = make(&flags, &fake);
        result.unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "<svg/>");
        let want = format!(
            "{}: 6 windows from 2026-11-21T17:00:00.000Z until 2026-11-21T17:01:00.000Z: \
             400 samples (+- 5.0 %), 3 lost on the node, 1 with a stack cut short\n",
            file.display()
        );
        assert_eq!(line, want);
        let request = fake.request();
        let want = "/api/v1/flamegraph?app=etl&type=cpu&unit=ns&group=stage%2Ctask&format=svg";
        assert_eq!(request.target.replace("group=stage,task", "group=stage%2Ctask"), want);
        assert!(request.headers.iter().any(|line| line == "authorization: Bearer secret"), "{request:?}");
    }

    #[test]
    fn a_graph_of_nothing_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("out.svg");
        let fake = Fake::answering(200, &[("X-Emberscope-Samples", "0"), HEADERS[0], HEADERS[1]], "<svg/>");
        let (line, result) = make(&["--stage", "99", "-o", file.to_str().unwrap()], &fake);
        let error = result.unwrap_err();
        assert_eq!((line.as_str(), error.code(), file.exists()), ("", super::super::code::NOTHING, false));
        assert!(error.to_string().starts_with("no sample with stage=99 from 2026-"), "{error}");
    }

    #[test]
    fn an_answer_that_breaks_off_is_told_and_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("out.svg");
        let fake =
            Fake::sending("HTTP/1.1 200 OK\r\nX-Emberscope-Samples: 4\r\ncontent-length: 100\r\n\r\n<svg");
        let (_, result) = make(&["-o", file.to_str().unwrap()], &fake);
        let error = result.unwrap_err();
        assert_eq!((error.code(), file.exists()), (super::super::code::FAILURE, false));
        assert!(error.to_string().contains("broke off"), "{error}");
    }
}
