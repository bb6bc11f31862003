//! Why a frame has no name.

use super::super::process::ProcessState;
use emberscope_model::{NameSource, UnknownReason};
use emberscope_runtime::Runtimes;
use emberscope_target::maps;

/// Why a deferred frame has no name that is not read.
pub(super) fn why_unread(process: Option<&ProcessState>, runtimes: &Runtimes) -> UnknownReason {
    let Some(process) = process.filter(|p| p.exited.is_none()) else { return UnknownReason::ProcessGone };
    let runtime = process.runtime.as_ref().and_then(|runtime| runtimes.get(runtime.id));
    runtime.map_or(UnknownReason::AnonymousCode, |runtime| runtime.words().unread)
}

/// Why code that is in no file has no name.
pub(super) fn why_unnamed(process: Option<&ProcessState>, address: u64) -> UnknownReason {
    match process {
        None => UnknownReason::ProcessGone,
        Some(p) if p.is_crowded() => UnknownReason::TableFull,
        Some(p) if maps::find(&p.mappings, address).is_none() => UnknownReason::NoMapping,
        Some(p) if p.jit.have_map => UnknownReason::NotInPerfMap,
        // It ended before its turn to be asked came.
        Some(p) if p.exited.is_some() => UnknownReason::ProcessGone,
        Some(p) => match p.jvm() {
            None => UnknownReason::AnonymousCode,
            Some(jvm) if matches!(jvm.names, NameSource::None(_)) => UnknownReason::JvmNotAsked,
            Some(_) if p.needs_map() => UnknownReason::NoPerfMap,
            Some(_) => UnknownReason::JvmNotReady,
        },
    }
}
