//! Windows that are over but not yet named: they wait a moment for what JVMs' memory or perf maps tell.
//!
//! In: closed windows whose stacks are tokens, with what was lost by then. Out: windows that are ready to be named, oldest first. A
//! window is ready when no JVM of it has frames without a name whose name is on the way, and no file of its frames is being
//! read since a moment, or when it has waited [`PATIENCE`]; what still has no name then says why.

use super::stacks::StackToken;
use emberscope_aggregate::ClosedWindow;
use emberscope_model::LostCounts;
use emberscope_symbolize::{Symbolizer, Target};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest that a window waits for names: HotSpot writes a map of 20,000 methods in some 50 ms, and a
/// JVM that is asked for the first time opens its socket at its next safepoint.
pub const PATIENCE: Duration = Duration::from_secs(3);

struct Waiting {
    window: ClosedWindow<StackToken>,
    lost: LostCounts,
    /// JVMs with frames that wait for a name.
    jvms: Vec<Arc<Target>>,
    since: Instant,
}

/// The windows that wait, oldest first.
#[derive(Default)]
pub struct Closing(VecDeque<Waiting>);

impl Closing {
    /// Takes a window that is over, and what was lost in it.
    pub fn push(&mut self, window: ClosedWindow<StackToken>, lost: LostCounts, now: Instant) {
        let mut jvms = HashMap::new();
        for row in window.rows.iter().filter(|row| row.stack.0.pending.unnamed()) {
            jvms.entry(row.stack.0.target.key).or_insert_with(|| row.stack.0.target.clone());
        }
        self.0.push_back(Waiting { window, lost, jvms: jvms.into_values().collect(), since: now });
    }

    /// Asks the JVMs whose turn it is, and returns the next window that is ready.
    pub fn next(
        &mut self,
        symbolizer: &mut Symbolizer,
        now: Instant,
    ) -> Option<(ClosedWindow<StackToken>, LostCounts)> {
        let first = self.0.front()?;
        let of_files = || first.window.rows.iter().any(|row| row.stack.0.pending.waits_for_files());
        let mut waits = symbolizer.reads_files() && of_files();
        for target in &first.jvms {
            // One that is not asked now (its turn has not come, it ended) brings nothing to wait for.
            waits |= symbolizer.ask(target) || symbolizer.reading(target.key);
        }
        waits |= symbolizer.asking() && first.jvms.iter().any(|t| symbolizer.unnamed_jit(t.key) > 0);
        if waits && now.duration_since(first.since) < PATIENCE {
            return None;
        }
        self.first()
    }

    /// The oldest window, ready or not.
    pub fn first(&mut self) -> Option<(ClosedWindow<StackToken>, LostCounts)> {
        self.0.pop_front().map(|waiting| (waiting.window, waiting.lost))
    }

    /// Whether no window waits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
