//! All threads of the watched processes, by the kernel's task iterator (Linux 5.8, with BTF).
//!
//! Reading the iterator's file runs the program `all_threads` for each thread of the machine (of our PID
//! namespace); what it has to say comes by the ring. A program that finds the ring half full makes the read
//! fail with EAGAIN: then the ring is emptied and the read goes on with the same thread.

use super::error::CaptureError;
use super::loader;
use super::ring::EventRing;
use aya::programs::Iter;
use aya::{Btf, Ebpf};
use emberscope_model::RawEvent;
use std::io::{self, ErrorKind, Read};
use std::time::Duration;

/// The iterator's program.
pub(super) const PROGRAM: &str = "all_threads";

/// Reads, at most: half a ring of the least size (a page) holds 15 records, half of the default's 1,900.
const MAX_READS: usize = 4096;

/// Loads the iterator's program. Takes 10 ms, most of it for aya to parse the kernel's types, and 4 MiB meanwhile.
pub(super) fn load(ebpf: &mut Ebpf, kernel: &str) -> Result<(), CaptureError> {
    let types = Btf::from_sys_fs().map_err(|e| CaptureError::load(kernel, PROGRAM, e.into()))?;
    let program: &mut Iter = loader::program(ebpf, PROGRAM)?;
    program.load("task", &types).map_err(|e| CaptureError::load(kernel, PROGRAM, e))
}

/// Asks for all threads. What does not find room in the ring meanwhile is put at the end of `out`, in the ring's
/// order.
pub(super) fn ask(
    ebpf: &mut Ebpf,
    ring: &mut EventRing,
    out: &mut Vec<RawEvent>,
) -> Result<(), CaptureError> {
    let program: &mut Iter = loader::program(ebpf, PROGRAM)?;
    let link = program.attach().map_err(|e| CaptureError::attach(PROGRAM, e))?;
    let link = program.take_link(link).map_err(|e| CaptureError::attach(PROGRAM, e))?;
    let io = |source| CaptureError::Io { operation: "listing threads (BPF task iterator)", source };
    let mut file = link.into_file().map_err(|error| io(io::Error::other(error)))?;
    for _ in 0..MAX_READS {
        match file.read(&mut [0; 64]) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => ring.read(Duration::ZERO, out)?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(io(error)),
        }
    }
    Err(io(io::Error::new(ErrorKind::TimedOut, "the ring does not empty")))
}
