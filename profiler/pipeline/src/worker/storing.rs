//! Closed windows: their frames get their names, and they go to the store.

use super::{Worker, quarantined};
use crate::idle::Idle;
use crate::stacks::StackToken;
use crate::wait_reasons::{Reasons, without_lock};
use emberscope_aggregate::{ClockReading, ClosedWindow, CountedRow};
use emberscope_model::{LabelKey, LostCounts, ProcessKey, ProcessRecord, SampleKind, WaitReason};
use emberscope_supervise::attempt;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

impl Worker {
    /// Names the windows whose maps have come, and hands them to the store.
    pub(super) fn store_named(&mut self) {
        self.symbolizer.poll();
        while let Some((window, lost)) = self.closing.next(&mut self.symbolizer, Instant::now()) {
            self.name_and_store(window, lost);
        }
    }

    /// Windows that are over wait for their names. What was lost is of the window that closes first, and not of one that
    /// happens to be named when it is counted.
    pub(super) fn close(&mut self, closed: Vec<ClosedWindow<StackToken>>) {
        if !closed.is_empty() {
            self.named.forget();
        }
        for window in closed {
            let lost_by_now = self.capture.lost();
            let lost = lost_by_now.since(&self.lost);
            self.lost = lost_by_now;
            self.closing.push(window, lost, Instant::now());
        }
    }

    fn name_and_store(&mut self, mut window: ClosedWindow<StackToken>, lost: LostCounts) {
        let mut relabels = self.relabels.apply();
        window.rows.retain_mut(|row| relabels.keeps(&mut row.labels));
        relabels.ledger(&mut window.ledger);
        window.pauses.retain_mut(|pause| relabels.keeps(&mut pause.labels));
        let processes = self.processes_of(&window);
        let (symbolizer, interner, between) = (&mut self.symbolizer, &mut self.interner, &mut self.between);
        let (mut idle, mut reasons) = (Idle::default(), Reasons::default());
        let mut window = window.into_window(processes, lost, |row| {
            let CountedRow { labels, stack: token, kind, weight, derived, .. } = row;
            // Its frames are shared already, by the symbolizer's own table.
            let stack = attempt(|| symbolizer.finish(&token.0.target, &token.0.pending));
            let (stack, lock) = match stack {
                Ok(stack) if *kind == SampleKind::OffCpu => {
                    let (frames, lock) = without_lock(&stack.frames);
                    (interner.stack(&frames, stack.end), lock)
                }
                Ok(stack) => (interner.stack(&stack.frames, stack.end), None),
                Err(_) => (interner.stack(&[quarantined()], token.0.pending.end), None),
            };
            let with_task = idle.strip(&stack, labels).filter(|_| *kind == SampleKind::OffCpu);
            if let Some(with_task) = with_task {
                between.waited(with_task, labels, *weight);
            }
            let class = match kind {
                SampleKind::OffCpu => {
                    let class = reasons.tell(&stack, lock, labels);
                    // Waits for anything else are no contentions.
                    if labels.get(LabelKey::Wait) != WaitReason::Lock.slug() {
                        *derived = 0;
                    }
                    class
                }
                _ => None,
            };
            match class {
                Some(class) => interner.stack(&[&*stack.frames, &[class]].concat(), stack.end),
                None => stack,
            }
        });
        self.between.settle(&mut window.ledger);
        self.health.window(&window);
        self.pushers.iter().for_each(|(_, pusher)| pusher.offer(&window));
        self.store.append(window);
        emberscope_supervise::windows_are_current(true);
        self.interner.sweep();
    }

    fn processes_of(&self, window: &ClosedWindow<StackToken>) -> Vec<Arc<ProcessRecord>> {
        let keys: HashSet<ProcessKey> = window.rows.iter().map(|row| row.stack.0.target.key).collect();
        let record = |key: ProcessKey| {
            let process = self.registry.by_key(key)?;
            let Some(jvm) = self.symbolizer.jvm_facts(key) else { return Some(process.record.clone()) };
            Some(Arc::new(ProcessRecord { jvm: Some(jvm), ..(*process.record).clone() }))
        };
        keys.into_iter().filter_map(record).collect()
    }

    /// After a failure: closed windows go to the store with the names that they have, the open one with them.
    pub(super) fn store_the_rest(&mut self) {
        let closed = attempt(|| self.windows.close_all(ClockReading::take()));
        self.close(closed.unwrap_or_default());
        while let Some((window, lost)) = self.closing.first() {
            let from = window.range.from;
            match attempt(|| self.name_and_store(window, lost)) {
                Ok(()) => tracing::info!(%from, "stored a window before the end"),
                Err(error) => tracing::error!(%from, %error, "a window is lost"),
            }
        }
    }
}
