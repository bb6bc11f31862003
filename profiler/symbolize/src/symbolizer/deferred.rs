//! Deferred frames handed to the readers of their process, and what came back.
//!
//! In: the slots that stacks made. Out: slots filled with shared frames; a frame that could not be named is one
//! that says why. Counted by result.

use super::Symbolizer;
use crate::counters::SymbolizerCounters;
use crate::deferred::Wanted;
use crate::frames::FrameTable;
use emberscope_model::{Frame, NameSource, ProcessKey, UnknownReason};
use emberscope_runtime::{Again, Answer, Facts, Opened, Problem};
use emberscope_target::readers::Of;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What came of a batch.
pub struct Named {
    key: ProcessKey,
    wanted: Arc<Vec<Wanted>>,
    answers: Vec<Answer>,
    /// What is known of the process, or why it cannot be read.
    facts: Result<Facts, Problem>,
    took: Duration,
}

impl Symbolizer {
    /// Hands over the deferred frames of the stacks that were begun since the last call. To be called soon after: what
    /// is read late may be gone.
    pub fn read_names(&mut self) {
        for key in std::mem::take(&mut self.deferred_wanted) {
            let dir = self.process_dir(key.pid);
            let Some(process) = self.processes.get_mut(&key) else { continue };
            while let Some(runtime) = process.deferred.next() {
                if !self.named.has_room() {
                    self.deferred_wanted.insert(key);
                    break;
                }
                let unread = self.readers.runtimes().get(runtime).map(|runtime| runtime.words().unread);
                let wanted = Arc::new(process.deferred.take_wanted(runtime));
                let (batch, late) = (Arc::clone(&wanted), Arc::clone(&wanted));
                let job = move |opened: Result<&mut dyn Opened, Problem>| {
                    let begun = Instant::now();
                    let opened = match opened {
                        Ok(opened) => opened,
                        Err(problem) => return Named::failed(key, batch, problem, unread),
                    };
                    let frames: Vec<_> = batch.iter().map(|wanted| wanted.frame).collect();
                    let answers = opened.name(&frames);
                    let facts = opened.facts();
                    Named { key, wanted: batch, answers, facts, took: begun.elapsed() }
                };
                let failed = move |problem| Named::failed(key, late, problem, unread);
                let of = (runtime, Of { key, dir: dir.clone() });
                if !self.readers.submit(&self.named, of, Again::FailedLongAgo, job, failed) {
                    process.deferred.put_back(&wanted);
                    self.deferred_wanted.insert(key);
                    break;
                }
                process.deferred_in_flight += 1;
            }
        }
    }

    /// Whether names of a process's deferred frames are on their way.
    pub fn reading(&self, key: ProcessKey) -> bool {
        self.deferred_wanted.contains(&key)
            || self.processes.get(&key).is_some_and(|p| p.deferred_in_flight > 0)
    }

    /// Takes in what was read.
    pub(crate) fn take_named(&mut self) {
        let all: Vec<Named> = self.named.poll().collect();
        for named in all {
            self.counters.java_read_ns += u64::try_from(named.took.as_nanos()).unwrap_or(u64::MAX);
            let tenant = self.processes.get(&named.key).map(|process| process.tenant);
            self.frames.of(tenant.unwrap_or_default());
            for (wanted, answer) in named.wanted.iter().zip(&named.answers) {
                wanted.slot.set(frames_of(&mut self.frames, &mut self.counters, answer));
            }
            let Some(process) = self.processes.get_mut(&named.key) else { continue };
            process.deferred_in_flight = process.deferred_in_flight.saturating_sub(1);
            let Some(runtime) = &mut process.runtime else { continue };
            match named.facts {
                Ok(facts) => {
                    runtime.names = NameSource::Memory;
                    runtime.unread = false;
                    runtime.facts = Some(facts);
                }
                Err(Problem::Gone) => {}
                Err(problem) => {
                    runtime.unread = true;
                    if !matches!(runtime.names, NameSource::Asked | NameSource::Found) {
                        runtime.names = NameSource::None(problem.to_string());
                    }
                }
            }
        }
    }
}

impl Named {
    /// No frame has a name: the process was not read. `unread` is what its runtime calls that.
    fn failed(
        key: ProcessKey,
        wanted: Arc<Vec<Wanted>>,
        problem: Problem,
        unread: Option<UnknownReason>,
    ) -> Self {
        let why = match problem {
            Problem::Gone => UnknownReason::ProcessGone,
            Problem::Quarantined => UnknownReason::Quarantined,
            Problem::Exhausted => UnknownReason::DaemonExhausted,
            _ => unread.unwrap_or(UnknownReason::AnonymousCode),
        };
        let answers = vec![Err(why); wanted.len()];
        Self { key, wanted, answers, facts: Err(problem), took: Duration::ZERO }
    }
}

/// The frames of an answer, shared and counted.
fn frames_of(
    frames: &mut FrameTable,
    counters: &mut SymbolizerCounters,
    answer: &Answer,
) -> Arc<[Arc<Frame>]> {
    match answer {
        Ok(named) => {
            counters.java_named += 1;
            named.iter().map(|frame| frames.intern(frame.clone())).collect()
        }
        Err(why) => {
            *counters.java_unnamed.entry(why.slug()).or_default() += 1;
            [frames.intern(Frame::unknown(*why, ""))].into()
        }
    }
}
