//! Programs that the kernel's verifier sees two at a time: for all of them it takes seconds, and for each one CPU.

use crate::error::CaptureError;
use aya::Ebpf;
use aya::programs::{Program, ProgramError};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// More would be done sooner, but the verifier keeps what it has seen of each program until it is through with it.
const AT_A_TIME: usize = 2;

/// Loads the programs of these names, in their order.
///
/// # Errors
/// [`CaptureError::Missing`]: one is not in the object. [`CaptureError::Refused`] or [`CaptureError::Program`]: the kernel
/// takes one not; of several the first.
pub(super) fn load(ebpf: &mut Ebpf, kernel: &str, names: &[&'static str]) -> Result<(), CaptureError> {
    let mut found: BTreeMap<&str, &mut Program> = ebpf.programs_mut().collect();
    let mut wanted = Vec::with_capacity(names.len());
    for name in names {
        wanted.push((*name, found.remove(name).ok_or(CaptureError::Missing { name })?));
    }
    let queue = Mutex::new(wanted.into_iter().enumerate());
    let refused = Mutex::new(BTreeMap::new());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME.min(names.len()) {
            scope.spawn(|| {
                while let Some((nth, (name, program))) = next() {
                    if let Err(error) = one(program) {
                        refused.lock().unwrap_or_else(PoisonError::into_inner).insert(nth, (name, error));
                    }
                }
            });
        }
    });
    match refused.into_inner().unwrap_or_else(PoisonError::into_inner).pop_first() {
        Some((_, (name, error))) => Err(CaptureError::load(kernel, name, error)),
        None => Ok(()),
    }
}

fn one(program: &mut Program) -> Result<(), ProgramError> {
    match program {
        Program::PerfEvent(program) => program.load(),
        Program::RawTracePoint(program) => program.load(),
        Program::UProbe(program) => program.load(),
        _ => Err(ProgramError::UnexpectedProgramType),
    }
}
