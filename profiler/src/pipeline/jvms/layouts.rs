//! Layouts of JVMs: asked for, read again once a JVM has settled, handed to the kernel's walker.
//!
//! In: what the reader found of a JVM's code heaps. Out: what the walker must know of it, or why its stacks are followed
//! by frame pointers.

use super::states::{Tries, Walking};
use super::{Jvm, Jvms};
use crate::aggregate::ClockReading;
use crate::capture::Capture;
use crate::hotspot::JvmProblem;
use crate::model::ProcessKey;
use crate::pipeline::jvm_reader::Job;
use crate::symbolize::{Symbolizer, Walked};
use profiler_ebpf::JvmLayout;
use std::time::{Duration, Instant};

/// How long after the first reading of a layout it is read again: HotSpot makes the return barrier of its virtual
/// threads and its compiler's counters a moment after its code heaps (`init_globals`, JDK 17 to 25).
const SETTLED: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(20)];
/// How often it is looked whether the kernel still has the layouts.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Jvms {
    /// Hands a JVM's layout to the kernel's walker.
    pub(super) fn laid_out(
        &mut self,
        (key, incarnation): (ProcessKey, u32),
        layout: Result<JvmLayout, JvmProblem>,
        capture: &mut Capture,
        symbolizer: &mut Symbolizer,
    ) {
        let Some(jvm) = self.known.get_mut(&key).filter(|jvm| jvm.incarnation == incarnation) else { return };
        let settling = jvm.walking == Walking::CodeTables;
        let same = |given: &JvmLayout, layout: &JvmLayout| {
            JvmLayout { head: layout.head, ..*given } == *layout
                && (given.head.low, given.head.high) == (layout.head.low, layout.head.high)
        };
        let why = match layout {
            Ok(layout) if settling && jvm.given.is_some_and(|given| same(&given, &layout)) => return,
            // What the walker has is as right as before.
            Err(_) if settling => return,
            Ok(layout) => match capture.set_jvm(key.pid, &layout) {
                Ok(true) => {
                    jvm.given = Some(layout);
                    if settling {
                        return;
                    }
                    let now = Instant::now();
                    jvm.settling = SETTLED.iter().rev().map(|after| now + *after).collect();
                    jvm.walking = Walking::CodeTables;
                    symbolizer.jvm_walked(key, Walked::From(ClockReading::take().monotonic_ns));
                    return;
                }
                // It runs another program by now, or ended, as an event will say; or that was lost.
                Ok(false) => {
                    jvm.layout.failed(&JvmProblem::NotReady, Instant::now());
                    return;
                }
                Err(error) => error.to_string(),
            },
            Err(JvmProblem::Gone) => return,
            Err(problem) if jvm.layout.failed(&problem, Instant::now()) => return,
            Err(problem) => problem.to_string(),
        };
        never_walked(key, jvm, why, symbolizer);
    }

    /// Asks for layouts whose turn has come.
    pub(super) fn ask_layouts(&mut self, capture: &mut Capture, symbolizer: &mut Symbolizer) {
        let now = Instant::now();
        let look = self.looked.is_none_or(|looked| now.duration_since(looked) >= LOOK_EVERY);
        self.looked = if look { Some(now) } else { self.looked };
        for (key, jvm) in &mut self.known {
            if look && jvm.walking == Walking::CodeTables && !capture.has_jvm(key.pid) {
                // The kernel dropped it: it ran another program or ended, and that event is on its way or lost.
                jvm.walking = Walking::Opening;
                jvm.layout = Tries { made: 0, next: Some(now) };
            }
            let settling = jvm.walking == Walking::CodeTables;
            let due = jvm.settling.last().is_some_and(|at| now >= *at);
            if jvm.layout.due(now) || settling && due {
                // Never 0: that is what an empty place of the walker's memory holds.
                self.incarnation = self.incarnation.checked_add(1).unwrap_or(1);
                let expected = if settling { Ok(()) } else { capture.expect_jvm(key.pid) };
                if let Err(error) = expected {
                    jvm.layout.next = None;
                    never_walked(*key, jvm, error.to_string(), symbolizer);
                    continue;
                }
                if self.reader.submit(Job::Layout(*key, self.incarnation)) {
                    (jvm.layout.next, jvm.incarnation) = (None, self.incarnation);
                    if settling {
                        jvm.settling.pop();
                    }
                }
            }
        }
    }
}

fn never_walked(key: ProcessKey, jvm: &mut Jvm, why: String, symbolizer: &mut Symbolizer) {
    tracing::warn!(pid = key.pid, problem = %why, "stacks of this JVM are followed by frame pointers only");
    symbolizer.jvm_walked(key, Walked::Never);
    jvm.walking = Walking::FramePointers(why);
}
