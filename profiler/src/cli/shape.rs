//! The flags by which a flame graph counts and groups, shared by every command that makes one.
//!
//! In: flags. Out: parameters of the HTTP API, or what a recording does with them.

use super::CliError;
use super::selection::Params;
use super::words::label;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use emberscope_api::route::param;
use emberscope_export::{Shape, Unit};
use emberscope_model::{Answer, LabelKey, SampleKind};
use std::collections::BTreeSet;

/// Which kind of samples.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Counting")]
pub struct KindArgs {
    /// Kind of samples.
    #[arg(long = "type", value_name = "KIND", default_value = "cpu", value_parser = kind())]
    pub kind: SampleKind,
}

/// How a flame graph counts and groups.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Counting")]
pub struct ShapeArgs {
    /// What is counted: samples, or their weight in the unit of their kind (ns of CPU time). Default: samples for CPU
    /// time, the weight for other kinds.
    #[arg(long, value_name = "UNIT", value_parser = unit())]
    pub unit: Option<String>,
    /// Labels put before each stack as frames such as stage=3, outermost first: stage,thread_class.
    #[arg(long, value_name = "LABELS", value_delimiter = ',', value_parser = label(), hide_possible_values = true)]
    pub group: Vec<LabelKey>,
    /// Mark each frame of the folded format with its kind of code, as async-profiler does: _[j] compiled Java, _[i]
    /// inlined, _[0] interpreted, _[k] kernel. Forwarding methods that a compiler generated (bridges, Scala's
    /// forwarders) are then frames of their own.
    #[arg(long)]
    pub annotate: bool,
    /// Fold the frames that all tasks share, from their thread's start to Task.run, into one.
    #[arg(long)]
    pub fold: bool,
    /// Keep only frames whose names start with one of these, such as com.acme.; what other frames spent counts for
    /// their callers. A comma list.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Distinguish source lines: each is a frame of its own, package.Class.method:123.
    #[arg(long)]
    pub lines: bool,
}

impl KindArgs {
    /// The kind as a parameter of the API.
    pub fn param(&self) -> (&'static str, String) {
        ("type", self.kind.slug().to_owned())
    }
}

impl ShapeArgs {
    /// What is counted of samples of a kind.
    ///
    /// # Errors
    /// [`CliError::Usage`]: samples of this kind are not counted in that unit.
    pub fn unit_of(&self, kind: SampleKind) -> Result<Unit, CliError> {
        let Some(unit) = &self.unit else { return Ok(Unit::usual(kind)) };
        Unit::from_slug(unit, kind).ok_or_else(|| {
            let units = Unit::ALL.map(|unit| unit.slug(kind)).join(" or ");
            let kind = kind.slug();
            CliError::Usage(format!("--unit {unit}: samples of type {kind} are counted in {units}"))
        })
    }
    /// The answer's tree in this shape, where nobody else makes it.
    pub fn shaped(&self, answer: Answer) -> Answer {
        let shape = Shape { fold: self.fold, only: self.only.clone() };
        Answer { tree: shape.of(answer.tree), ..answer }
    }
    /// The shape as parameters of the API.
    pub fn params(&self) -> Params {
        let mut params: Params = self.unit.iter().map(|unit| (param::UNIT, unit.clone())).collect();
        let names: Vec<&str> = self.group.iter().map(|key| key.name()).collect();
        if !names.is_empty() {
            params.push((param::GROUP, names.join(",")));
        }
        if self.annotate {
            params.push((param::ANNOTATE, "1".to_owned()));
        }
        if self.fold {
            params.push((param::FOLD, "1".to_owned()));
        }
        if !self.only.is_empty() {
            params.push((param::ONLY, self.only.join(",")));
        }
        if self.lines {
            params.push((param::LINES, "1".to_owned()));
        }
        params
    }
}

fn kind() -> impl TypedValueParser<Value = SampleKind> {
    // Others write `off_cpu`.
    let value = |kind: &SampleKind| PossibleValue::new(kind.slug()).alias(kind.slug().replace('-', "_"));
    let slugs = SampleKind::ASKED.iter().map(value);
    PossibleValuesParser::new(slugs).try_map(|slug| SampleKind::asked(&slug).ok_or("no such kind"))
}

/// Reads the name of a unit, of any kind.
fn unit() -> impl TypedValueParser<Value = String> {
    let all = SampleKind::ASKED.iter().flat_map(|&kind| Unit::ALL.map(|unit| unit.slug(kind)));
    PossibleValuesParser::new(all.collect::<BTreeSet<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        shape: ShapeArgs,
        #[command(flatten)]
        kind: KindArgs,
    }

    #[test]
    fn labels_and_kinds_are_checked() {
        let line = Line::try_parse_from(["x", "--group", "stage,thread_class", "--unit", "ns"]).unwrap();
        let want = [("unit", "ns"), ("group", "stage,thread_class")].map(|(k, v)| (k, v.to_owned()));
        assert_eq!(line.shape.params(), want);
        assert_eq!(line.kind.param(), ("type", "cpu".to_owned()));
        for bad in [["x", "--group", "stages"], ["x", "--type", "heap"], ["x", "--unit", "s"]] {
            assert!(Line::try_parse_from(bad).is_err(), "{bad:?}");
        }
    }
}
