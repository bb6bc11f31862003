//! How many bytes the kept windows take: an estimate in which what windows share counts once.
//!
//! In: windows that come, go, or change a row's labels. Out: a sum. Rows and windows count by
//! themselves; label sets, stacks, frames and process records are known by address and counted while
//! any window refers to them. The address is theirs as long as that window holds them. The ledger's own
//! entries are part of the sum. A value's text counts in each label set that has it, though sets may
//! share it: the estimate errs upwards.

use super::pointer::PointerMap;
use crate::model::{Frame, LabelSet, ProcessRecord, Row, Stack, Window};
use std::sync::Arc;

/// The two counters in front of what an `Arc` points to, and the header of the allocation.
const ARC: usize = 24;
/// One entry of the ledger, with the table's empty part.
const ENTRY: usize = 40;

#[derive(Debug, Default)]
pub(super) struct Ledger {
    held: PointerMap<Held>,
    bytes: usize,
}

#[derive(Debug)]
struct Held {
    references: u32,
    bytes: usize,
}

impl Ledger {
    /// The sum.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A window came.
    pub(super) fn add(&mut self, window: &Window) {
        self.bytes += own_bytes(window);
        for row in &window.rows {
            self.hold_labels(&row.labels);
            self.hold_stack(&row.stack);
        }
        for process in &window.processes {
            if self.hold(address(process), || process_bytes(process)) {
                self.hold_labels(&process.labels);
            }
        }
    }

    /// A window goes.
    pub(super) fn remove(&mut self, window: &Window) {
        self.bytes = self.bytes.saturating_sub(own_bytes(window));
        for row in &window.rows {
            self.release(address(&row.labels));
            self.release_stack(&row.stack);
        }
        for process in &window.processes {
            if self.release(address(process)) {
                self.release(address(&process.labels));
            }
        }
    }

    fn hold_labels(&mut self, labels: &Arc<LabelSet>) {
        self.hold(address(labels), || {
            let values: usize = labels.iter().map(|(_, value)| 24 + ARC + value.len()).sum();
            ARC + size_of::<LabelSet>() + values
        });
    }

    fn hold_stack(&mut self, stack: &Arc<Stack>) {
        let own = || ARC + size_of::<Stack>() + size_of_val(&*stack.frames);
        if self.hold(address(stack), own) {
            for frame in &stack.frames {
                self.hold_frame(frame);
            }
        }
    }

    fn hold_frame(&mut self, frame: &Arc<Frame>) {
        let own = || {
            let signature = frame.signature.as_ref().map_or(0, |s| ARC + s.len());
            ARC + size_of::<Frame>() + ARC + frame.name.len() + signature
        };
        if self.hold(address(frame), own) {
            self.hold(text_address(&frame.module), || ARC + frame.module.len());
        }
    }

    fn release_stack(&mut self, stack: &Arc<Stack>) {
        if self.release(address(stack)) {
            for frame in &stack.frames {
                if self.release(address(frame)) {
                    self.release(text_address(&frame.module));
                }
            }
        }
    }

    /// Counts a reference; true when it is the first.
    fn hold(&mut self, address: usize, bytes: impl FnOnce() -> usize) -> bool {
        let held = self.held.entry(address).or_insert_with(|| Held { references: 0, bytes: 0 });
        held.references += 1;
        if held.references > 1 {
            return false;
        }
        held.bytes = ENTRY + bytes();
        self.bytes += held.bytes;
        true
    }

    /// Takes a reference back; true when it was the last.
    fn release(&mut self, address: usize) -> bool {
        let Some(held) = self.held.get_mut(&address) else { return false };
        held.references -= 1;
        if held.references > 0 {
            return false;
        }
        self.bytes = self.bytes.saturating_sub(held.bytes);
        self.held.remove(&address);
        if self.held.capacity() > 4096 && self.held.len() < self.held.capacity() / 8 {
            self.held.shrink_to(self.held.len() * 2);
        }
        true
    }
}

fn own_bytes(window: &Window) -> usize {
    ARC + size_of::<Window>()
        + window.rows.capacity() * size_of::<Row>()
        + window.processes.capacity() * size_of::<Arc<ProcessRecord>>()
}

fn process_bytes(process: &ProcessRecord) -> usize {
    let jvm = process.jvm.as_ref().map_or(0, |jvm| jvm.version.capacity() + 64);
    ARC + size_of::<ProcessRecord>() + process.host.capacity() + process.program.capacity() + jvm
}

fn address<T>(value: &Arc<T>) -> usize {
    Arc::as_ptr(value) as usize
}

fn text_address(value: &Arc<str>) -> usize {
    Arc::as_ptr(value).cast::<u8>() as usize
}
