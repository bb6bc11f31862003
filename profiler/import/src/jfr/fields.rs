//! Fields of events: those that samples are made of, whatever the event.

use super::super::gather::Labels;
use super::super::name;
use super::bytes::{Bad, Reader};
use super::chunk::Header;
use super::metadata::Class;
use super::pools::Pools;
use super::values::Values;
use emberscope_model::LabelKey;
use std::sync::Arc;

/// Fields of a sample.
#[derive(Debug, Default)]
pub struct Fields {
    pub ticks: i64,
    pub trace: i64,
    pub thread: i64,
    pub state: i64,
    pub samples: Option<i64>,
    /// What a sample of CPU time stands for, nanoseconds.
    pub period: u64,
    pub lost: i64,
    /// How long a wait lasted, nanoseconds.
    pub duration: u64,
    /// What was allocated, or waited for: a class.
    pub class: i64,
    /// The thread that had the monitor.
    pub owner: i64,
    /// Bytes of an object, and those that it stands for.
    pub object: i64,
    pub bytes: Option<i64>,
    /// Of our own recordings: what the event weighs, and its labels.
    pub weight: Option<u64>,
    pub labels: Labels,
}

/// Reads the fields of an event of a type; `ours`: of a recording that Emberscope wrote.
///
/// # Errors
/// As for [`Values`].
pub fn read(
    class: &Class,
    (header, pools, ours): (&Header, &Pools, bool),
    values: &mut Values<'_>,
    reader: &mut Reader<'_>,
) -> Result<Fields, Bad> {
    let mut fields = Fields::default();
    for field in &class.fields {
        if let Some(key) = LabelKey::from_name(&field.name).filter(|key| ours && *key != LabelKey::Source) {
            let value = name::clean(&pools.text(&values.text(field, reader)?));
            if !value.is_empty() && !fields.labels.iter().any(|(known, _)| *known == key) {
                fields.labels.push((key, Arc::from(value)));
            }
            continue;
        }
        let number = values.number(field, reader)?;
        match field.name.as_str() {
            "startTime" => fields.ticks = number,
            "duration" if field.ticks => fields.duration = header.length(number),
            "duration" => fields.duration = u64::try_from(number).unwrap_or_default(),
            "objectClass" | "monitorClass" | "parkedClass" => fields.class = number,
            "previousOwner" => fields.owner = number,
            "allocationSize" => fields.object = number,
            "tlabSize" => fields.bytes = Some(number),
            "stackTrace" => fields.trace = number,
            "sampledThread" | "eventThread" => fields.thread = number,
            "state" => fields.state = number,
            "samples" => fields.samples = Some(number),
            "samplingPeriod" if field.ticks => fields.period = header.length(number),
            "samplingPeriod" => fields.period = u64::try_from(number).unwrap_or_default(),
            "lostSamples" => fields.lost = number,
            "weight" if ours => fields.weight = u64::try_from(number).ok(),
            "weight" => fields.bytes = Some(number),
            _ => {}
        }
    }
    fields.labels.sort_unstable_by_key(|(key, _)| *key);
    Ok(fields)
}
