//! google.v1.Profile (pprof): of Go, of Pyroscope, of `emberscope export`.
//!
//! In: a profile. Out: its CPU time. Of a profile's values the one of CPU time and the count of samples are taken; each
//! other is named as left out, and a profile without CPU time is refused. A profile has one span and no times of samples:
//! it is one window. Limits: [`limits::PPROF`] bytes, [`limits::PPROF_ENTRIES`] entries, counted before anything is made
//! of them.

use super::gather::{Gather, Sampled, labels, span};
use super::{Format, ImportError, Imported, Told, length, limits, name};
use emberscope_export::pprof::{Function, Profile, ValueType};
use emberscope_model::{Frame, FrameKind, SampleKind, TimeRange, WallTime};
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};
use std::collections::HashMap;
use std::io::Read;

fn wrong(says: impl Into<String>) -> ImportError {
    ImportError::Pprof(says.into())
}

/// Reads a profile.
///
/// # Errors
/// [`ImportError::Pprof`]: it makes no sense, is too large, or is a difference of profiles. [`ImportError::NoCpu`],
/// [`ImportError::NoPeriod`]: no value is CPU time. [`ImportError::HasTimes`], [`ImportError::Read`]; those of
/// [`Gather`].
pub fn read(mut file: impl Read, told: &Told) -> Result<Imported, ImportError> {
    let mut bytes = Vec::new();
    file.by_ref().take(limits::PPROF + 1).read_to_end(&mut bytes).map_err(ImportError::Read)?;
    if bytes.len() as u64 > limits::PPROF {
        return Err(wrong(format!("it has more than {} MiB", limits::PPROF >> 20)));
    }
    count_entries(&bytes)?;
    let profile = Profile::decode(&*bytes).map_err(|error| wrong(error.to_string()))?;
    drop(bytes);
    if profile.string_table.is_empty() {
        return Err(wrong("it has no table of texts"));
    }
    Reading { profile: &profile, told }.read()
}

/// Compares how many entries the lists have, a level deep, with what is allowed: two bytes may become a hundred.
fn count_entries(bytes: &[u8]) -> Result<(), ImportError> {
    let (mut rest, mut entries) = (bytes, 0_usize);
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        let says = |error: &dyn std::fmt::Display| wrong(format!("at byte {at}: {error}"));
        let (_, wire) = decode_key(&mut rest).map_err(|error| says(&error))?;
        entries += 1;
        let skip = match wire {
            WireType::Varint => decode_varint(&mut rest).map(|_| 0).map_err(|error| says(&error))?,
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            WireType::LengthDelimited => {
                let length = decode_varint(&mut rest).map_err(|error| says(&error))?;
                let inner = usize::try_from(length).ok().and_then(|length| rest.get(..length));
                let inner = inner.ok_or_else(|| says(&"a length goes beyond the end"))?;
                // Messages in it take two bytes at least, and numbers become eight.
                entries += inner.len() / 8;
                inner.len()
            }
            WireType::StartGroup | WireType::EndGroup => {
                return Err(says(&"a group, which profiles do not have"));
            }
        };
        rest = rest.get(skip..).ok_or_else(|| says(&"a field goes beyond the end"))?;
        if entries > limits::PPROF_ENTRIES {
            return Err(wrong(format!("it has more than {} entries", limits::PPROF_ENTRIES)));
        }
    }
    Ok(())
}

/// Which of a sample's values are taken.
struct Values {
    count: Option<usize>,
    /// Place of the CPU time, and nanoseconds of its unit.
    weight: Option<(usize, u64)>,
    /// Nanoseconds between samples.
    period: Option<u64>,
}

impl Values {
    /// What of a sample's values is kept. Of count and weight the one that is missing follows from the period.
    fn sampled(&self, values: &[i64]) -> Sampled {
        let value = |place: usize| values.get(place).map_or(0, |value| value.cast_unsigned());
        let weight = self.weight.map(|(place, factor)| value(place).saturating_mul(factor));
        match (self.count.map(value), weight, self.period) {
            (Some(count), Some(weight), _) => Sampled { count, weight },
            (Some(count), None, period) => {
                Sampled { count, weight: count.saturating_mul(period.unwrap_or_default()) }
            }
            (None, weight, period) => {
                let weight = weight.unwrap_or_default();
                let count = period.map_or(1, |period| (weight.saturating_add(period / 2) / period).max(1));
                Sampled { count: if weight == 0 { 0 } else { count }, weight }
            }
        }
    }
}

struct Reading<'a> {
    profile: &'a Profile,
    told: &'a Told,
}

impl Reading<'_> {
    fn text(&self, place: i64) -> Result<&str, ImportError> {
        let found = usize::try_from(place).ok().and_then(|place| self.profile.string_table.get(place));
        found.map(String::as_str).ok_or_else(|| wrong(format!("it names text {place}, which is not there")))
    }

    fn kind(&self, kind: &ValueType) -> Result<(&str, &str), ImportError> {
        Ok((self.text(kind.r#type)?, self.text(kind.unit)?))
    }

    /// Which values are meant.
    fn values(&self) -> Result<Values, ImportError> {
        let mut values = Values { count: None, weight: None, period: None };
        let mut names = Vec::new();
        for (place, kind) in self.profile.sample_type.iter().enumerate() {
            let (name, unit) = self.kind(kind)?;
            names.push(name::clean(&format!("{name}/{unit}")));
            if matches!(name, "samples" | "sample") && unit == "count" {
                values.count.get_or_insert(place);
            } else if name == "cpu"
                && let Some(factor) = factor(unit)
            {
                values.weight.get_or_insert((place, factor));
            }
        }
        let told = self.told.period.map(|period| u64::try_from(period.as_nanos()).unwrap_or(u64::MAX));
        let own = match &self.profile.period_type {
            Some(kind) => match self.kind(kind)? {
                ("cpu", unit) => factor(unit)
                    .zip(u64::try_from(self.profile.period).ok())
                    .map(|(factor, period)| factor.saturating_mul(period)),
                _ => None,
            },
            None => None,
        };
        values.period = own.filter(|period| *period > 0).or(told).filter(|period| *period > 0);
        match (values.count, values.weight, values.period) {
            (_, Some(_), _) | (Some(_), None, Some(_)) => Ok(values),
            (Some(_), None, None) if names.len() == 1 => {
                Err(ImportError::NoPeriod("the profile has a count of samples, and does not say"))
            }
            _ => Err(ImportError::NoCpu(if names.is_empty() { "none".to_owned() } else { names.join(", ") })),
        }
    }

    fn read(&self) -> Result<Imported, ImportError> {
        let profile = self.profile;
        let values = self.values()?;
        let (range, guessed) = span(self.told, own_range(profile))?;
        let mut gather = Gather::new(SampleKind::Cpu, self.told.window);
        let frames = self.frames(&mut gather)?;
        let set = gather.labels(labels("pprof", None))?;
        let mut others = vec![0_u64; profile.sample_type.len()];
        let (mut labelled, mut stack) = (0_u64, Vec::new());
        for (number, sample) in profile.sample.iter().enumerate() {
            if sample.value.len() != profile.sample_type.len() {
                let (has, wants) = (sample.value.len(), profile.sample_type.len());
                return Err(wrong(format!("sample {number} has {has} values, and there are {wants} types")));
            }
            if sample.value.iter().any(|value| *value < 0) {
                return Err(wrong(format!(
                    "sample {number} has a negative value: it is a difference of profiles"
                )));
            }
            for (sum, value) in others.iter_mut().zip(&sample.value) {
                *sum += u64::from(*value > 0);
            }
            let sampled = values.sampled(&sample.value);
            if sampled.count == 0 && sampled.weight == 0 {
                continue;
            }
            labelled = labelled.saturating_add(if sample.label.is_empty() { 0 } else { sampled.count });
            stack.clear();
            for id in sample.location_id.iter().rev() {
                let found = frames.get(id).ok_or_else(|| {
                    wrong(format!("sample {number} is at location {id}, which is not there"))
                })?;
                stack.extend(found);
                if stack.len() > limits::FRAMES {
                    return Err(wrong(format!("sample {number} has more than {} frames", limits::FRAMES)));
                }
            }
            let place = (set, gather.stack(&stack, false)?);
            gather.within(range, place, &sampled)?;
        }
        for (place, kind) in profile.sample_type.iter().enumerate() {
            let taken = values.count == Some(place) || values.weight.is_some_and(|(taken, _)| taken == place);
            let count = others.get(place).copied().unwrap_or_default();
            if !taken && count > 0 {
                let (name, unit) = self.kind(kind)?;
                gather.leave_out(name::clean(&format!("values {name}/{unit}")), count);
            }
        }
        let by = match values.period {
            Some(period) => format!("pprof, a sample every {}", length(period)),
            None => "pprof".to_owned(),
        };
        let mut imported = gather.finish(Format::Pprof, by)?;
        imported.guessed = guessed;
        if labelled > 0 {
            imported.remarks.push(format!("labels of {labelled} samples are not kept"));
        }
        if values.count.is_none() {
            let says = "the profile has no count of samples: it is derived from the time";
            imported.remarks.push(says.to_owned());
        }
        Ok(imported)
    }

    /// Frames of each location, from the root: those that were inlined stand behind the one that they are in.
    fn frames(&self, gather: &mut Gather) -> Result<HashMap<u64, Vec<u32>>, ImportError> {
        let functions: HashMap<u64, &Function> =
            self.profile.function.iter().map(|function| (function.id, function)).collect();
        let mut modules: HashMap<u64, &str> = HashMap::new();
        for mapping in &self.profile.mapping {
            modules.insert(mapping.id, self.text(mapping.filename)?);
        }
        let mut all = HashMap::new();
        for location in &self.profile.location {
            let module = name::clean(modules.get(&location.mapping_id).copied().unwrap_or_default());
            let mut frames = Vec::with_capacity(location.line.len().max(1));
            for (place, line) in location.line.iter().enumerate().rev() {
                let Some(function) = functions.get(&line.function_id) else {
                    let id = line.function_id;
                    return Err(wrong(format!("a location is in function {id}, which is not there")));
                };
                let frame = self.frame(function, line.line, &module, place + 1 < location.line.len())?;
                frames.push(gather.frame(frame)?);
            }
            if location.line.is_empty() {
                let file = module.rsplit('/').next().unwrap_or_default();
                let name = format!("{file}+0x{:x}", location.address);
                frames.push(gather.frame(Frame::new(FrameKind::Native, name, module.as_str()))?);
            }
            all.insert(location.id, frames);
        }
        Ok(all)
    }

    fn frame(
        &self,
        function: &Function,
        line: i64,
        module: &str,
        inlined: bool,
    ) -> Result<Frame, ImportError> {
        let own = self.text(function.name)?;
        let file = self.text(function.filename)?;
        let mut frame = name::of_file(own, file);
        // A name that has a library or a kernel module with it is no Java method's.
        if !module.is_empty() && file.is_empty() && frame.unknown.is_none() {
            let native = if module.starts_with("[kernel") { FrameKind::Kernel } else { FrameKind::Native };
            frame = Frame::new(native, name::clean(own), "");
        }
        if inlined && frame.kind == FrameKind::JavaCompiled {
            frame.kind = FrameKind::JavaInlined;
        }
        // `emberscope export` writes a name with its signature as the system's name.
        let signature =
            self.text(function.system_name)?.strip_prefix(own).filter(|rest| rest.starts_with('('));
        frame.signature = signature.map(|signature| name::clean(signature).into());
        frame.line = u32::try_from(line).unwrap_or_default();
        frame.module = module.into();
        Ok(frame)
    }
}

/// When the profile was taken, if it says so.
fn own_range(profile: &Profile) -> Option<TimeRange> {
    let from = u64::try_from(profile.time_nanos).ok().filter(|from| *from > 0)?;
    // A profile of no length is still one of some instant.
    let length = u64::try_from(profile.duration_nanos).unwrap_or_default().max(1);
    Some(TimeRange { from: WallTime(from), until: WallTime(from.saturating_add(length)) })
}

/// Nanoseconds of a unit of time.
fn factor(unit: &str) -> Option<u64> {
    match unit {
        "nanoseconds" | "ns" => Some(1),
        "microseconds" | "us" => Some(1_000),
        "milliseconds" | "ms" => Some(1_000_000),
        "seconds" | "s" => Some(1_000_000_000),
        _ => None,
    }
}
