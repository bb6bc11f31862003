//! Why a file is not imported. Nothing of it was then.

use super::limits;
use std::io;

/// Why a file is not imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file, or what unpacks it (gzip), cannot be read.
    #[error("it cannot be read: {0}")]
    Read(io::Error),
    /// The file has no bytes, or a recording no chunk.
    #[error("it is empty")]
    Empty,
    /// A line of folded stacks makes no sense.
    #[error(
        "line {line} {says}: folded stacks are `root;...;leaf count`, a line each; --format names another format"
    )]
    Line {
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        says: &'static str,
    },
    /// A pprof profile makes no sense, or is too large.
    #[error("it is no pprof profile that makes sense: {0}; --format names another format")]
    Pprof(String),
    /// None of a profile's values is CPU time.
    #[error("its values are {0}: none is CPU time, and other kinds of profiles are not imported")]
    NoCpu(String),
    /// A recording makes no sense, or is too large.
    #[error("byte {offset} (chunk {chunk}) {says}")]
    Jfr {
        /// In the file, unpacked, bytes.
        offset: u64,
        /// Number of the chunk, from 1.
        chunk: u64,
        /// What is wrong there.
        says: String,
    },
    /// Nobody says how much time a sample is: neither the file, which is named, nor `Told::period`.
    #[error(
        "{0} how much time a sample stands for: say --hz (async-profiler's default is 100, Emberscope's 99) or --period"
    )]
    NoPeriod(&'static str),
    /// The file says when; flags must not.
    #[error("it says itself when it was sampled: leave out --from and --until")]
    HasTimes,
    /// The file says a time that makes no sense.
    #[error("it says that it was sampled at {0}: times before 1980 and after tomorrow are not imported")]
    Time(String),
    /// The samples lie too far apart: there are more than `limits::WINDOWS`.
    #[error("it has more than {} windows", limits::WINDOWS)]
    Windows,
    /// Names, stacks and rows take more memory than `limits::MEMORY`.
    #[error("it takes more than {} MiB of memory: split it (`jfr disassemble` for recordings)", limits::MEMORY >> 20)]
    Memory,
    /// The file has no samples that can be imported; the text has what was left out.
    #[error("it has no samples of {0}")]
    Nothing(String),
    /// Events are those of a recording, and the file is none.
    #[error(
        "it is no recording of JFR, whose events --events {0} would choose: other formats have CPU time alone"
    )]
    NoEvents(&'static str),
    /// A file of an event log is packed with a codec that is not read.
    #[error(
        "it is packed with {0}, of which no event log is read: let Spark write spark.eventLog.compression.codec=zstd, or \
         spark.eventLog.compress=false"
    )]
    Codec(&'static str),
    /// No event of a log says which application it is of.
    #[error("it is no event log of Spark: nothing in it says of which application it is")]
    NoApplication,
    /// A directory has no event log, or none of the application that was named.
    #[error("it has no event log (of that application): name a log, or the directory of spark.eventLog.dir")]
    NoLog,
}
