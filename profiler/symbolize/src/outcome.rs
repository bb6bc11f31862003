//! What becomes of an answer: a JVM was asked, or its map looked for, and a thread of [`super::asker`] is
//! done.
//!
//! In: an [`Outcome`]. Out: names in the process's tables, when it may be asked next, where its names come
//! from ([`NameSource`]), and counts. An outcome of a program that was replaced meanwhile is dropped.

use super::asker::Outcome;
use super::attach::AskError;
use super::java_name;
use super::symbolizer::Symbolizer;
use emberscope_model::{NameSource, RuntimeId};
use emberscope_target::open;
use std::time::Instant;

/// What a JVM's names wait for at first.
const UNDECIDED: &str = "the JVM's memory was not read yet";

impl Symbolizer {
    pub(super) fn take_outcome(&mut self, outcome: Outcome) {
        let now = Instant::now();
        match &outcome.asked {
            Some(Ok(_)) => self.counters.asks_answered += 1,
            Some(Err(error)) => {
                *self.counters.asks_failed.entry(error.slug()).or_default() += 1;
            }
            None => {}
        }
        match &outcome.read {
            Ok(scan) => {
                self.counters.perf_maps_cut += u64::from(scan.cut);
                self.counters.perf_map_entries_dropped += scan.dropped;
            }
            Err(refusal) => self.counters.refused(*refusal),
        }
        let process = self.processes.get_mut(&outcome.key).filter(|p| p.epoch == outcome.epoch);
        let Some(process) = process else { return };
        process.in_flight = false;
        process.last_took = outcome.took;
        process.looked = true;
        process.map_is_ours = outcome.ours;
        let is_jvm = process.jvm().is_some();
        self.frames.of(process.tenant);
        if let Ok(scan) = &outcome.read {
            for entry in &scan.entries {
                let frame = self.frames.intern(java_name::frame(&entry.name, is_jvm));
                process.jit.insert(entry.code.clone(), frame);
            }
            process.jit.map_read(&outcome.wanted.addresses);
        }
        let failed = matches!(outcome.asked, Some(Err(_))) || outcome.read.is_err();
        process.schedule(now, self.config.ask_interval, !failed);
        let vain = matches!(&outcome.asked, Some(Err(error)) if signalled_in_vain(error));
        process.note_signal(vain);
        let undecided = !process.needs_map();
        if let Some(jvm) = process.runtime.as_mut().filter(|runtime| runtime.id == RuntimeId::HOTSPOT) {
            if jvm.version.is_none() {
                jvm.version = outcome.version.clone();
            }
            jvm.never |= matches!(&outcome.asked, Some(Err(error)) if error.is_final());
            if jvm.names != NameSource::Memory {
                let may_ask = self.config.ask_jvms && !jvm.never;
                jvm.names = match &outcome.read {
                    Err(_) if undecided && may_ask => NameSource::Waiting(UNDECIDED.to_owned()),
                    _ => source(&outcome, self.config.ask_jvms, jvm.never, &jvm.names),
                };
            }
        }
    }
}

fn signalled_in_vain(error: &AskError) -> bool {
    *error == AskError::Timeout("opening its socket")
}

fn source(outcome: &Outcome, allowed: bool, never: bool, before: &NameSource) -> NameSource {
    let asked = matches!(outcome.asked, Some(Ok(_)));
    let have = matches!(before, NameSource::Asked | NameSource::Found);
    match (&outcome.read, &outcome.asked) {
        (Ok(_), _) if asked => NameSource::Asked,
        (Ok(_), _) => NameSource::Found,
        // A map was read before and this time it failed: what is named stays so.
        (Err(_), _) if have => before.clone(),
        (Err(_), Some(Err(error))) if never => NameSource::None(error.to_string()),
        (Err(_), Some(Err(error))) => NameSource::Waiting(format!("{error}; asked again later")),
        // Another tool may have taken the map away before we read it.
        (Err(refusal @ open::Refusal::Missing), Some(Ok(_))) => NameSource::Waiting(format!(
            "the JVM answered, but its perf map: {}; asked again later",
            refusal.sentence()
        )),
        (Err(refusal), Some(Ok(_))) => {
            NameSource::None(format!("the JVM answered, but its perf map: {}", refusal.sentence()))
        }
        (Err(refusal), None) if allowed && !never => {
            NameSource::None(format!("its perf map was not read: {}", refusal.sentence()))
        }
        (Err(refusal), None) => match before {
            NameSource::None(why) => NameSource::None(why.clone()),
            _ => NameSource::None(format!("JVMs are not asked, and its perf map: {}", refusal.sentence())),
        },
    }
}
