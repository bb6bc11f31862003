//! JDK Flight Recorder files, of JDK 8u262 to 25 and of async-profiler: samples of running threads, or waits, or allocations.
//!
//! A reader of our own, and no crate: `jfrs` 0.2.5, the one that reads whole recordings, takes lengths from the file as
//! they are (a wrong one ends the process for want of memory), follows pools in a ring without end, and goes as deep as
//! the file says; recordings come from anywhere. Facts are those of `jdk.jfr.internal.consumer` (ChunkHeader,
//! MetadataReader, ChunkParser; JDK 17 and 25).
//!
//! In: chunks one after the other, each with a header, metadata that describe every type, pools of constants and
//! events. Out: samples. A chunk is in memory as a whole; every length is compared with what is left of it, what would
//! nest without end has a depth, and what would repeat without end a count of steps.

mod bytes;
mod chunk;
mod events;
#[cfg(test)]
mod fake;
mod fields;
mod frames;
mod known;
mod metadata;
#[cfg(test)]
mod ours;
mod pools;
mod recording;
mod settings;
mod values;

use super::gather::Gather;
use super::{Format, ImportError, Imported, Told};
use bytes::Bad;
use recording::{Counted, Recording};
use std::io::Read;

/// How a chunk begins.
pub const MAGIC: &[u8] = b"FLR\0";

/// Reads a recording, chunk by chunk to the end of the file.
///
/// # Errors
/// [`ImportError::HasTimes`] with [`Told::range`]; [`ImportError::Jfr`] at the first chunk that makes no sense or was
/// cut; [`ImportError::Empty`], [`ImportError::Read`], [`ImportError::NoPeriod`]; those of [`Gather`]. Nothing is
/// kept then.
pub fn read(mut file: impl Read, told: &Told) -> Result<Imported, ImportError> {
    if told.range.is_some() {
        return Err(ImportError::HasTimes);
    }
    // Both are gathered: only at the end it is known whether a recording has the better ones.
    let gather = || Gather::new(told.events.kind(), told.window);
    let mut recording = Recording::new(gather(), gather());
    let (mut offset, mut number) = (0_u64, 0_u64);
    loop {
        let mut head = Vec::with_capacity(chunk::HEADER);
        let most = chunk::HEADER as u64;
        file.by_ref().take(most).read_to_end(&mut head).map_err(ImportError::Read)?;
        if head.is_empty() {
            break;
        }
        number += 1;
        let bad =
            |bad: Bad| ImportError::Jfr { offset: offset + bad.at as u64, chunk: number, says: bad.says };
        let header = chunk::Header::read(&head).map_err(bad)?;
        let rest = header.size - most;
        let mut data = head;
        file.by_ref().take(rest).read_to_end(&mut data).map_err(ImportError::Read)?;
        if (data.len() as u64) < header.size {
            let says = format!(
                "begins a chunk of {} bytes of which {} are there: the recording was cut, or is still being written \
                 (end it by `jcmd PID JFR.stop` or `JFR.dump`)",
                header.size,
                data.len()
            );
            return Err(bad(Bad { at: 0, says }));
        }
        events::read(&data, &header, told, &mut recording).map_err(|wrong| match wrong {
            events::Wrong::Bad(wrong) => bad(wrong),
            events::Wrong::Import(error) => error,
        })?;
        offset += header.size;
    }
    if number == 0 {
        return Err(ImportError::Empty);
    }
    finish(recording, told)
}

/// The better ones of the events that are asked for, and what is left out for them.
fn finish(recording: Recording, told: &Told) -> Result<Imported, ImportError> {
    let Recording { mut main, better: mut best, counts, by, remarks, lost } = recording;
    let is_best = |counted: &&Counted| {
        counted.is_better() && counted.is_asked_by(told.events) && counts.get(**counted) > 0
    };
    let better = Counted::ALL.iter().find(is_best);
    let gather = if better.is_some() { &mut best } else { &mut main };
    for counted in Counted::ALL {
        let taken = counted.is_asked_by(told.events) && counted.is_better() == better.is_some();
        if !taken && counts.get(*counted) > 0 {
            gather.leave_out(counted.says(), counts.get(*counted));
        }
    }
    for (what, count) in counts.others() {
        gather.leave_out(what, count);
    }
    let (gather, by) = match better {
        Some(counted) => (best, vec![format!("JFR, {}", counted.event())]),
        None => (main, by),
    };
    let mut imported = gather.finish(Format::Jfr, by.join("; "))?;
    imported.remarks = remarks;
    if better == Some(&Counted::CpuTime) && lost > 0 {
        imported.remarks.push(format!("the JVM itself lost {lost} samples"));
    }
    Ok(imported)
}

#[cfg(test)]
mod tests;
