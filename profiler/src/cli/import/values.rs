//! Values of the flags of `emberscope import`: from what was written to what is meant.

use super::VALUE;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use emberscope_export::Unit;
use emberscope_import::{Events, Format};
use emberscope_model::{LabelKey, SampleKind};
use emberscope_serve::time::parse_length;
use emberscope_target::text as texts;
use std::time::Duration;

/// `--format`.
pub fn format() -> impl TypedValueParser<Value = Format> {
    let slugs = Format::ALL.map(Format::slug);
    PossibleValuesParser::new(slugs).try_map(|slug| Format::from_slug(&slug).ok_or("no such format"))
}

/// `--unit`.
pub fn unit() -> impl TypedValueParser<Value = Unit> {
    let slugs = Unit::ALL.map(|unit| unit.slug(SampleKind::Cpu));
    PossibleValuesParser::new(slugs)
        .try_map(|slug| Unit::from_slug(&slug, SampleKind::Cpu).ok_or("no such unit"))
}

/// `--events`.
pub fn events() -> impl TypedValueParser<Value = Events> {
    PossibleValuesParser::new(Events::all().map(Events::slug))
        .try_map(|slug| Events::from_slug(&slug).ok_or("no such events"))
}

/// A `--label`.
///
/// # Errors
/// It is no LABEL=VALUE, or the label is none that may be told.
pub fn pair(text: &str) -> Result<(LabelKey, String), String> {
    let (name, value) = text.split_once('=').ok_or("write LABEL=VALUE, such as app=nightly-etl")?;
    let key = LabelKey::from_name(name).filter(|key| LabelKey::ALL.contains(key)).ok_or_else(|| {
        let names = LabelKey::ALL.iter().map(|key| key.name());
        format!("{name} is no label; there are: {}", names.collect::<Vec<_>>().join(", "))
    })?;
    match value {
        _ if key == LabelKey::Source => Err("source is told by the file: who sampled".to_owned()),
        "" => Err(format!("{name} needs a value")),
        _ => Ok((key, texts::bounded(value.as_bytes(), VALUE))),
    }
}

/// `--hz`, as the time that a sample stands for.
///
/// # Errors
/// It is no number, or outside what profilers do.
pub fn hz(text: &str) -> Result<Duration, String> {
    let rate: f64 = text.parse().map_err(|_| "write a number, such as 100")?;
    match (0.001..=1e6).contains(&rate) {
        true => Ok(Duration::from_nanos((1e9 / rate).round() as u64)),
        false => Err("between 0.001 and 1000000".to_owned()),
    }
}

/// `--period`.
///
/// # Errors
/// It is no length of time, or outside what profilers do.
pub fn period(text: &str) -> Result<Duration, String> {
    let length = parse_length(text).map_err(|error| error.to_string())?;
    match (Duration::from_nanos(1)..=Duration::from_secs(1000)).contains(&length) {
        true => Ok(length),
        false => Err("between 1ns and 1000s".to_owned()),
    }
}
