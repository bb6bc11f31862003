//! Other profilers' files: bytes in, windows out; and Spark's event logs, which name what was sampled ([`EventLog`]).
//!
//! In: folded stacks, pprof or JFR recordings, each also packed with gzip; what their reader cannot know (times, rate) is
//! told by [`Told`]. Out: [`Imported`]: samples of CPU time in windows, who sampled them (the label `source`), and what
//! was left out, by what it was and how many. Other kinds of profiles (wall clock, allocation, locks) are never mixed in.
//!
//! A file is hostile until it was read: every reader is bounded (`limits`), and says where in the file it stopped.

mod error;
mod event_log;
mod folded;
mod gather;
mod imported;
mod jfr;
mod limits;
mod name;
mod pprof;
#[cfg(test)]
mod tests;

pub use error::ImportError;
pub use event_log::{Bounds, EventLog, EventLogFacts, OwnLogs};
pub use gather::Sampled;
pub use imported::{Imported, LeftOut};

use emberscope_model::{SampleKind, ThreadClass, TimeRange};
use flate2::read::MultiGzDecoder;
use std::io::{self, BufRead, BufReader, Read};
use std::time::Duration;

/// Formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `root;...;leaf count`, a line a stack.
    Folded,
    /// google.v1.Profile, as Protocol Buffers.
    Pprof,
    /// JDK Flight Recorder, chunk format 2.
    Jfr,
}

impl Format {
    /// Every format, in the order of the command line's help.
    pub const ALL: [Self; 3] = [Self::Folded, Self::Pprof, Self::Jfr];
    /// Stable name, for the command line.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Folded => "folded",
            Self::Pprof => "pprof",
            Self::Jfr => "jfr",
        }
    }
    /// A format by its stable name.
    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.slug() == slug)
    }
}

/// Events of a recording: those of one kind of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Events {
    /// Threads that ran: `jdk.CPUTimeSample` where there are any, else `jdk.ExecutionSample`.
    Cpu,
    /// `jdk.NativeMethodSample`: threads in native methods, which may run or wait.
    Native,
    /// `profiler.WallClockSample` of threads that could run; those that slept are left out.
    Wall,
    /// Waits for monitors (`jdk.JavaMonitorEnter`) and for locks of java.util.concurrent (`jdk.ThreadPark`), as waits with the
    /// label `wait` of a lock.
    Lock,
    /// `off-cpu`: `profiler.WallClockSample` of threads that slept. `alloc`: `jdk.ObjectAllocationSample` where there are any, else
    /// `jdk.ObjectAllocationInNewTLAB` and `jdk.ObjectAllocationOutsideTLAB`. All but CPU time: what Emberscope wrote itself.
    Kind(SampleKind),
}

impl Events {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let kinds = SampleKind::ALL.iter().filter(|kind| **kind != SampleKind::Cpu);
        [Self::Cpu, Self::Native, Self::Wall, Self::Lock].into_iter().chain(kinds.copied().map(Self::Kind))
    }
    /// Name in `--events`.
    pub fn slug(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Native => "native",
            Self::Wall => "wall",
            Self::Lock => "lock",
            Self::Kind(kind) => kind.slug(),
        }
    }
    /// Those of this name.
    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::all().find(|events| events.slug() == slug)
    }
    /// The kind of samples that they become.
    pub const fn kind(self) -> SampleKind {
        match self {
            Self::Cpu | Self::Native | Self::Wall => SampleKind::Cpu,
            Self::Lock => SampleKind::OffCpu,
            Self::Kind(kind) => kind,
        }
    }
}

/// What a file does not say.
#[derive(Clone, Debug)]
pub struct Told {
    /// When it was sampled: for files without times only.
    pub range: Option<TimeRange>,
    /// When the file was last written, nanoseconds since 1970: taken where neither says.
    pub written_ns: u64,
    /// How much time a sample stands for: for files that do not say.
    pub period: Option<Duration>,
    /// Numbers of folded stacks are nanoseconds, not samples.
    pub nanoseconds: bool,
    /// Which events of a recording are taken.
    pub events: Events,
    /// Length of the windows, for samples that have times.
    pub window: Duration,
    /// The class of a thread by its name.
    pub class_of: fn(&str) -> ThreadClass,
}

/// Reads a file. `format` is what it is taken for; else its first bytes tell.
///
/// # Errors
/// [`ImportError`] says what is wrong and where. Nothing of the file is kept then.
pub fn read(file: impl Read, format: Option<Format>, told: &Told) -> Result<Imported, ImportError> {
    let mut file = BufReader::with_capacity(1 << 16, file);
    let packed = begins(&mut file, &[0x1f, 0x8b])?;
    let mut file: BufReader<Box<dyn Read + '_>> = match packed {
        true => BufReader::with_capacity(1 << 16, Box::new(MultiGzDecoder::new(file))),
        false => BufReader::with_capacity(1 << 16, Box::new(file)),
    };
    let format = match format {
        Some(format) => format,
        None => guess(&mut file)?,
    };
    if format != Format::Jfr && told.events != Events::Cpu {
        return Err(ImportError::NoEvents(told.events.slug()));
    }
    match format {
        Format::Folded => folded::read(file, told),
        Format::Pprof => pprof::read(file, told),
        Format::Jfr => jfr::read(file, told),
    }
}

fn begins(file: &mut impl BufRead, magic: &[u8]) -> Result<bool, ImportError> {
    Ok(file.fill_buf().map_err(ImportError::Read)?.starts_with(magic))
}

/// By the first bytes: `FLR\0` is JFR; folded stacks are text; a pprof profile has bytes that no text has.
fn guess(file: &mut impl BufRead) -> Result<Format, ImportError> {
    if begins(file, jfr::MAGIC)? {
        return Ok(Format::Jfr);
    }
    let first = file.fill_buf().map_err(unpack)?;
    if first.is_empty() {
        return Err(ImportError::Empty);
    }
    let line = first.split(|byte| *byte == b'\n').next().unwrap_or_default();
    // The first field of a profile is a message (a sample type) or a text: 0x0a is a line's end, which no first line has.
    let text = !line.is_empty() && line.iter().all(|byte| *byte >= b' ' || matches!(byte, b'\t' | b'\r'));
    Ok(if text { Format::Folded } else { Format::Pprof })
}

fn unpack(error: io::Error) -> ImportError {
    ImportError::Read(error)
}

/// Nanoseconds as people write them: `20 ms`.
fn length(ns: u64) -> String {
    let mut amount = ns as f64;
    for unit in ["ns", "us", "ms"] {
        if amount < 1000.0 {
            return format!("{} {unit}", (amount * 1000.0).round() / 1000.0);
        }
        amount /= 1000.0;
    }
    format!("{} s", (amount * 1000.0).round() / 1000.0)
}
