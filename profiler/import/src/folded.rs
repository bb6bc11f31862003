//! Folded stacks: `root;...;leaf count`, a line for each, as flamegraph.pl's scripts, async-profiler (`-o collapsed`) and
//! `emberscope export` write them.
//!
//! What stands before the frames is understood: `label=value` as `--group` writes it, and async-profiler's threads
//! (`[name tid=7]`), which become a class of thread. Empty lines and lines that begin with `#` are passed over. Limits:
//! [`limits::LINE`]; a last line without its end is one too.

use super::gather::{Gather, Labels, Sampled, span};
use super::{Format, ImportError, Imported, Told, limits, name};
use emberscope_model::{LabelKey, SampleKind};
use std::io::{BufRead, Read};
use std::sync::Arc;

/// What our own export writes for samples without a frame.
const NO_FRAMES: &str = "(no frames)";
/// What a grouped export writes where a label is not set.
const NO_VALUE: &str = "(none)";

/// Reads folded stacks to the end of the file.
///
/// # Errors
/// [`ImportError::NoPeriod`] without [`Told::period`]; [`ImportError::Line`] at the first line that is longer than
/// [`limits::LINE`], ends in no whole number or has too many frames; [`ImportError::Read`]; those of [`Gather`].
/// Nothing is kept then.
pub fn read(mut file: impl BufRead, told: &Told) -> Result<Imported, ImportError> {
    let period = told.period.ok_or(ImportError::NoPeriod("folded stacks do not say"))?;
    let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1);
    let (range, guessed) = span(told, None)?;
    let mut gather = Gather::new(SampleKind::Cpu, told.window);
    let (mut line, mut number, mut threads) = (Vec::new(), 0_u64, 0_u64);
    let mut frames: Vec<u32> = Vec::new();
    loop {
        line.clear();
        let most = limits::LINE as u64 + 1;
        let read = file.by_ref().take(most).read_until(b'\n', &mut line).map_err(ImportError::Read)?;
        if read == 0 {
            break;
        }
        number += 1;
        let wrong = |says| ImportError::Line { line: number, says };
        if line.len() > limits::LINE {
            return Err(wrong("is longer than 1 MiB"));
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\n', '\r', ' ', '\t']);
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let (stack, value) = text.rsplit_once([' ', '\t']).ok_or(wrong("has no count"))?;
        let value: u64 = value.parse().map_err(|_| wrong("does not end in a whole number"))?;
        let sampled = match told.nanoseconds {
            false => Sampled { count: value, weight: value.saturating_mul(period_ns) },
            // As many samples as make the time up; what took any was sampled once at least.
            true => {
                Sampled { count: (value.saturating_add(period_ns / 2) / period_ns).max(1), weight: value }
            }
        };
        if value == 0 {
            gather.leave_out("lines that count 0", 1);
            continue;
        }
        let mut parts = stack.trim_end().split(';').peekable();
        let mut labels = prefix(&mut parts);
        if let Some(class) = parts.peek().and_then(|part| thread(part)).map(told.class_of) {
            parts.next();
            threads = threads.saturating_add(sampled.count);
            set(&mut labels, LabelKey::ThreadClass, class.slug());
        }
        set(&mut labels, LabelKey::Source, "folded");
        frames.clear();
        for part in parts.filter(|part| *part != NO_FRAMES) {
            if frames.len() >= limits::FRAMES {
                return Err(wrong("has more than 65536 frames"));
            }
            frames.push(gather.frame(name::frame(part.trim()))?);
        }
        let place = (gather.labels(labels)?, gather.stack(&frames, false)?);
        gather.within(range, place, &sampled)?;
    }
    let by = format!("folded stacks, {} a sample", super::length(period_ns));
    let mut imported = gather.finish(Format::Folded, by)?;
    imported.guessed = guessed;
    if threads > 0 {
        imported.remarks.push(format!("names of threads became thread_class of {threads} samples"));
    }
    Ok(imported)
}

/// Labels that stand before the frames, in the order of keys.
fn prefix<'a>(parts: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>) -> Labels {
    let mut labels = Labels::new();
    while let Some((key, value)) = parts.peek().and_then(|part| part.split_once('=')) {
        let Some(key) = LabelKey::from_name(key) else { break };
        if value != NO_VALUE {
            set(&mut labels, key, &name::clean(value));
        }
        parts.next();
    }
    labels
}

fn set(labels: &mut Labels, key: LabelKey, value: &str) {
    match labels.binary_search_by_key(&key, |(key, _)| *key) {
        Ok(_) => {}
        Err(place) => labels.insert(place, (key, Arc::from(value))),
    }
}

/// The name of a thread, as async-profiler writes it with `-t`: `[name tid=7]`.
fn thread(part: &str) -> Option<&str> {
    let inside = part.strip_prefix('[')?.strip_suffix(']')?;
    let (name, tid) = inside.rsplit_once(" tid=")?;
    (!tid.is_empty() && tid.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)
}
