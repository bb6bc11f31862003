//! Java frames handed to the reader of JVMs' memory, and what came back.
//!
//! In: the slots that stacks made. Out: slots filled with shared frames; a frame that could not be named is one
//! that says why. Counted by result.

use super::java::{Answer, Named};
use super::symbolizer::Symbolizer;
use crate::hotspot::{JavaFrame, JvmProblem};
use crate::model::{Frame, NameSource, ProcessKey};
use std::sync::Arc;

impl Symbolizer {
    /// Hands over the Java frames of the stacks that were begun since the last call. To be called soon after: what
    /// is read late may be gone.
    pub fn read_names(&mut self) {
        for key in std::mem::take(&mut self.java_wanted) {
            let dir = self.process_dir(key.pid);
            let Some(process) = self.processes.get_mut(&key) else { continue };
            let wanted = process.java.take_wanted();
            if wanted.is_empty() {
                continue;
            }
            match self.reader.submit(key, dir, wanted) {
                Ok(()) => process.java_in_flight += 1,
                Err(wanted) => {
                    process.java.put_back(wanted);
                    self.java_wanted.insert(key);
                }
            }
        }
    }

    /// Whether names of a process's Java frames are on their way.
    pub fn reading(&self, key: ProcessKey) -> bool {
        self.java_wanted.contains(&key) || self.processes.get(&key).is_some_and(|p| p.java_in_flight > 0)
    }

    /// Takes in what was read.
    pub(super) fn take_named(&mut self) {
        let all: Vec<Named> = self.reader.poll().collect();
        for named in all {
            self.counters.java_read_ns += u64::try_from(named.took.as_nanos()).unwrap_or(u64::MAX);
            let tenant = self.processes.get(&named.key).map(|process| process.tenant);
            self.frames.of(tenant.unwrap_or_default());
            for (_, slot, answer) in &named.frames {
                slot.set(self.frames_of(answer));
            }
            let Some(process) = self.processes.get_mut(&named.key) else { continue };
            process.java_in_flight = process.java_in_flight.saturating_sub(1);
            let Some(jvm) = &mut process.jvm else { continue };
            match named.facts {
                Ok(facts) => {
                    jvm.names = NameSource::Memory;
                    jvm.unread = false;
                    jvm.facts = Some(facts);
                }
                Err(JvmProblem::Gone) => {}
                Err(problem) => {
                    jvm.unread = true;
                    if !matches!(jvm.names, NameSource::Asked | NameSource::Found) {
                        jvm.names = NameSource::None(problem.to_string());
                    }
                }
            }
        }
    }

    fn frames_of(&mut self, answer: &Answer) -> Arc<[Arc<Frame>]> {
        match answer {
            Ok(frames) => {
                self.counters.java_named += 1;
                frames.iter().rev().map(|frame| self.frames.intern(frame_of(frame))).collect()
            }
            Err(why) => {
                *self.counters.java_unnamed.entry(why.reason().slug()).or_default() += 1;
                [self.frames.intern(Frame::unknown(why.reason(), ""))].into()
            }
        }
    }
}

fn frame_of(java: &JavaFrame) -> Frame {
    Frame {
        signature: java.signature.clone(),
        line: java.line,
        approximate: java.approximate,
        ..Frame::new(java.kind, java.name.clone(), "")
    }
}
