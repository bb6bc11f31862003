//! Layouts of processes: asked for, read again once a process has settled, handed to the kernel's walker.
//!
//! In: what the reader found of a process's code. Out: what the walker must know of it, or why its stacks are followed
//! by frame pointers.

use super::kernel::Kernel;
use super::reader::Job;
use super::states::{Tries, Walking};
use super::{Processes, Watched};
use emberscope_aggregate::ClockReading;
use emberscope_model::ProcessKey;
use emberscope_runtime::{Layout, Problem};
use emberscope_symbolize::{Symbolizer, Walked};
use std::time::{Duration, Instant};

/// How long after the first reading of a layout it is read again: HotSpot makes the return barrier of its virtual
/// threads and its compiler's counters a moment after its code heaps (`init_globals`, JDK 17 to 25).
const SETTLED: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(20)];
/// How often it is looked whether the kernel still has the layouts.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Processes {
    /// Hands a process's layout to the kernel's walker.
    pub(super) fn laid_out(
        &mut self,
        (key, incarnation): (ProcessKey, u32),
        layout: Result<Layout, Problem>,
        kernel: &mut dyn Kernel,
        symbolizer: &mut Symbolizer,
    ) {
        let Some(process) = self.known.get_mut(&key).filter(|process| process.incarnation == incarnation)
        else {
            return;
        };
        process.reading = None;
        let settling = process.walking == Walking::CodeTables;
        let why = match layout {
            Ok(layout) if settling && process.given.as_ref() == Some(&layout) => return,
            // What the walker has is as right as before.
            Err(_) if settling => return,
            Ok(layout) => match kernel.tell(layout.runtime, key.pid, &layout.bytes(incarnation)) {
                Ok(true) => {
                    process.given = Some(layout);
                    if settling {
                        return;
                    }
                    let now = Instant::now();
                    process.settling = SETTLED.iter().rev().map(|after| now + *after).collect();
                    process.walking = Walking::CodeTables;
                    symbolizer.runtime_walked(key, Walked::From(ClockReading::take().monotonic_ns));
                    return;
                }
                // It runs another program by now, or ended, as an event will say; or that was lost.
                Ok(false) => {
                    let gone = Problem::NotNow("it runs another program by now".to_owned());
                    process.layout.failed(&gone, Instant::now());
                    return;
                }
                Err(error) => error.to_string(),
            },
            Err(Problem::Gone) => return,
            Err(problem) if process.layout.failed(&problem, Instant::now()) => return,
            Err(problem) => problem.to_string(),
        };
        never_walked(key, process, why, symbolizer);
    }

    /// Asks for layouts whose turn has come.
    pub(super) fn ask_layouts(&mut self, kernel: &mut dyn Kernel, symbolizer: &mut Symbolizer) {
        let now = Instant::now();
        let look = self.looked.is_none_or(|looked| now.duration_since(looked) >= LOOK_EVERY);
        self.looked = if look { Some(now) } else { self.looked };
        for (key, process) in &mut self.known {
            if look && process.walking == Walking::CodeTables && !kernel.has(process.runtime, key.pid) {
                // The kernel dropped it: it ran another program or ended, and that event is on its way or lost.
                process.walking = Walking::Opening;
                process.layout = Tries::at_once();
            }
            let settling = process.walking == Walking::CodeTables;
            let due = process.settling.last().is_some_and(|at| now >= *at);
            if process.layout.due(now) || settling && due {
                // Never 0: that is what an empty place of the walker's memory holds.
                self.incarnation = self.incarnation.checked_add(1).unwrap_or(1);
                let expected = if settling { Ok(()) } else { kernel.expect(process.runtime, key.pid) };
                if let Err(error) = expected {
                    process.layout.next = None;
                    never_walked(*key, process, error.to_string(), symbolizer);
                    continue;
                }
                let number = self.incarnation;
                let job = if settling { Job::Settled(number) } else { Job::Layout(number) };
                if self.reader.submit((process.runtime, *key), job) {
                    (process.layout.next, process.incarnation) = (None, number);
                    process.reading = (!settling).then_some(now);
                    if settling {
                        process.settling.pop();
                    }
                }
            }
        }
    }
}

fn never_walked(key: ProcessKey, process: &mut Watched, why: String, symbolizer: &mut Symbolizer) {
    tracing::warn!(pid = key.pid, problem = %why, "frames of this process's runtime are not walked");
    symbolizer.runtime_walked(key, Walked::Never);
    process.walking = Walking::FramePointers(why);
}
