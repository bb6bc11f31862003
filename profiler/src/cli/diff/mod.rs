//! `emberscope diff`: what one selection has and another has not, or slow tasks and the usual ones.
//!
//! In: two sides, or a stage. Out: a table of the methods that make the difference, or with `-o` or
//! `--format` a differential flame graph. The daemon compares; nothing is computed here.

mod answer;
mod side;

use super::answer::Basis;
use super::client::{Client, ClientArgs};
use super::file_format::{FileFormat, format};
use super::flamegraph::deliver;
use super::output::{self, Output, OutputArgs};
use super::selection::SelectArgs;
use super::shape::KindArgs;
use super::words::{label, word};
use super::{CliError, table, text};
use clap::Args;
use emberscope_api::route::{self, param};
use emberscope_api::{Diff, MethodOrder, Scale, SlowBy, Word as _};
use emberscope_export::Format;
use emberscope_model::LabelKey;
use side::{Side, side};
use std::borrow::Cow;
use std::io::{self, Write};
use std::path::PathBuf;

/// Flags of `emberscope diff`.
#[derive(Args, Clone, Debug)]
pub struct DiffArgs {
    #[command(flatten)]
    sides: SidesArgs,
    #[command(flatten)]
    select: SelectArgs,
    #[command(flatten)]
    kind: KindArgs,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    output: GraphArgs,
    #[command(flatten)]
    client: ClientArgs,
}

/// What is compared.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Sides")]
struct SidesArgs {
    /// Left side: label=value,..., also from, until and, as the last one, query. A value without a label is another
    /// value of the label before it: stage=3,4. The flags under Selection and Time below apply to both sides; what a
    /// side sets itself overrides them.
    #[arg(long, value_name = "KEY=VALUE,...", value_parser = side, required_unless_present_any = ["right", "slow"])]
    left: Option<Side>,
    /// Right side, in the same form.
    #[arg(long, value_name = "KEY=VALUE,...", value_parser = side)]
    right: Option<Side>,
    /// Compare a stage's slow tasks (above the 90th percentile) with those around the median.
    #[arg(long, conflicts_with_all = ["left", "right"], requires_all = ["app", "stage"])]
    slow: bool,
    /// What makes tasks slow: CPU time, or wall time. Default: wall time with --type wall, off-cpu or lock, and where
    /// waits were sampled and the longest tasks used hardly more CPU than the others; else CPU time.
    #[arg(long, value_name = "TIME", requires = "slow", value_parser = word::<SlowBy>())]
    by: Option<SlowBy>,
}

/// How the sides are compared and the methods listed.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Counting")]
struct ShapeArgs {
    /// How the sides are scaled: to equal totals, absolute figures, or figures per task (with --slow). Default: task
    /// with --slow, else equal.
    #[arg(long, value_name = "SCALE", value_parser = word::<Scale>())]
    scale: Option<Scale>,
    /// Order of the methods, the largest difference first: self (in the method) or total (also in methods that it
    /// called).
    #[arg(long, value_name = "ORDER", default_value = MethodOrder::Own.word(), value_parser = word::<MethodOrder>())]
    sort: MethodOrder,
    /// List at most N methods.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Labels put before each stack of the graph as frames such as thread_class=task.
    #[arg(long, value_name = "LABELS", value_delimiter = ',', value_parser = label(), hide_possible_values = true)]
    group: Vec<LabelKey>,
    /// Fold the frames that all tasks share, from their thread's start to Task.run, into one.
    #[arg(long)]
    fold: bool,
    /// Keep only frames whose names start with one of these, such as com.acme.; what other frames spent counts for
    /// their callers. A comma list.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
}

/// A graph instead of the table.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
struct GraphArgs {
    /// Write a differential flame graph instead of the table, in this format: svg (a picture in which red is more on
    /// the right), folded (lines of stack, left and right) or json (the daemon's answer with the tree). Default: by
    /// the file name's extension; folded on standard output.
    #[arg(long, value_name = "FORMAT", value_parser = format())]
    format: Option<FileFormat>,
    /// Write the graph to this file; - is standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the daemon's JSON answer.
    #[arg(long, conflicts_with_all = ["format", "output"])]
    json: bool,
}

impl GraphArgs {
    /// Where the graph goes; None when the table is wanted.
    fn decide(&self) -> Result<Option<Output>, CliError> {
        if self.format.is_none() && self.output.is_none() {
            return Ok(None);
        }
        let output = self.output.clone().unwrap_or_else(|| "-".into());
        let output = OutputArgs { format: self.format, output: Some(output) }.decide()?;
        match output.is_of_two() {
            true => Ok(Some(output)),
            false => Err(CliError::Usage(
                "speedscope's files hold one answer, not two: use svg, html, folded or json".to_owned(),
            )),
        }
    }
}

/// Prints the table, or writes the graph and says on standard error what it rests on.
///
/// # Errors
/// [`CliError::Usage`]: where the graph goes cannot be decided. [`CliError::Nothing`]: a side has no samples. Else as
/// for [`Client::get_json`] and [`deliver`].
pub fn run(args: &DiffArgs) -> Result<(), CliError> {
    let graph = args.output.decide()?;
    let (out, err) = (&mut io::stdout().lock(), &mut io::stderr().lock());
    let client = args.client.client()?;
    match graph {
        Some(graph) => draw(args, &graph, &client, err),
        None => list(args, &client, table::terminal_width(), out, err),
    }
}

/// The parameters of both.
fn params(args: &DiffArgs, format: Format) -> Vec<(Cow<'static, str>, String)> {
    let plain = args.select.params().into_iter().chain([args.kind.param()]);
    let mut params: Vec<_> = plain.map(|(name, value)| (Cow::Borrowed(name), value)).collect();
    for (name, side) in [("left", &args.sides.left), ("right", &args.sides.right)] {
        params.extend(side.iter().flat_map(|side| side.params(name)));
    }
    let mut put = |name: &'static str, value: &str| params.push((Cow::Borrowed(name), value.to_owned()));
    if args.sides.slow {
        put(param::SLOW, "1");
    }
    if let Some(by) = args.sides.by {
        put(param::BY, by.word());
    }
    if let Some(scale) = args.shape.scale {
        put(param::SCALE, scale.word());
    }
    let names: Vec<&str> = args.shape.group.iter().map(|key| key.name()).collect();
    if !names.is_empty() {
        put(param::GROUP, &names.join(","));
    }
    if args.shape.fold {
        put(param::FOLD, "1");
    }
    if !args.shape.only.is_empty() {
        put(param::ONLY, &args.shape.only.join(","));
    }
    put(param::FORMAT, format.slug());
    if format == Format::Json {
        put(param::SORT, args.shape.sort.word());
        put(param::LIMIT, &args.shape.limit.to_string());
    }
    params
}

fn list(
    args: &DiffArgs,
    client: &Client,
    room: Option<usize>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), CliError> {
    let (json, diff) = client.get_json::<Diff<'_>>(route::DIFF.path, &params(args, Format::Json))?;
    if args.output.json {
        output::write_json(out, &json)?;
    }
    if let Some((side, basis)) = answer::empty_side(&diff) {
        return Err(nothing(args, side, &basis));
    }
    if !args.output.json {
        answer::table(&diff).write(out, room)?;
        out.flush()?;
        for line in answer::lines(&diff) {
            writeln!(err, "{}", text::clean(&line))?;
        }
    }
    Ok(out.flush()?)
}

fn draw(args: &DiffArgs, graph: &Output, client: &Client, err: &mut dyn Write) -> Result<(), CliError> {
    let mut params = params(args, graph.format);
    if graph.format == Format::Json {
        params.push((Cow::Borrowed(param::NODES), "1".to_owned()));
    }
    let answered = client.get(route::DIFF.path, &params)?;
    let left = Basis::from_headers(&answered, "x-emberscope-left");
    let right = Basis::from(&answered);
    for (side, basis) in [("left", &left), ("right", &right)] {
        if basis.samples() == 0 {
            return Err(nothing(args, side, basis));
        }
    }
    let chosen = args.select.describe();
    deliver(graph, &graph.made(&answered.body, &chosen, ""), &right, &chosen, err)?;
    Ok(writeln!(err, "{}", text::clean(&format!("against {}", left.line())))?)
}

/// A side has no samples.
fn nothing(args: &DiffArgs, side: &str, basis: &Basis) -> CliError {
    let own = if side == "left" { &args.sides.left } else { &args.sides.right };
    let words = [own.as_ref().map(Side::describe).unwrap_or_default(), args.select.describe()];
    let chosen: Vec<_> = words.iter().filter(|words| !words.is_empty()).map(String::as_str).collect();
    CliError::Nothing(basis.nothing(&format!("sample on the {side} side"), &chosen.join(" ")))
}

#[cfg(test)]
mod tests;
