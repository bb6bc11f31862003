//! How many bytes the kept windows take: an estimate in which what windows share counts once.
//!
//! In: windows that come, go, or change their labels. Out: a sum. Rows and windows count by
//! themselves, ledger lines too; label sets, stacks, frames, their texts and process records are known by
//! address and counted while any window refers to them. The address is theirs as long as that window
//! holds them. The entries made here are part of the sum.

use super::pointer::PointerMap;
use emberscope_model::{Frame, LabelKey, LabelSet, LedgerRow, ProcessRecord, Row, Stack, Window};
use std::sync::Arc;

/// The two counters in front of what an `Arc` points to, and the header of the allocation.
const ARC: usize = 24;
/// The header of an allocation without counters.
const ALLOCATION: usize = 8;
/// One entry of the table, with the table's empty part.
const ENTRY: usize = 40;

#[derive(Debug, Default)]
pub(super) struct Sizes {
    held: PointerMap<Held>,
    bytes: usize,
}

#[derive(Debug)]
struct Held {
    references: u32,
    bytes: usize,
}

impl Sizes {
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
        for line in &window.ledger {
            self.hold_labels(&line.labels);
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
            self.release_labels(&row.labels);
            self.release_stack(&row.stack);
        }
        for line in &window.ledger {
            self.release_labels(&line.labels);
        }
        for process in &window.processes {
            if self.release(address(process)) {
                self.release_labels(&process.labels);
            }
        }
    }

    fn hold_labels(&mut self, labels: &Arc<LabelSet>) {
        let own = || ARC + size_of::<LabelSet>() + ALLOCATION + size_of_val(labels.thread_part());
        if self.hold(address(labels), own) {
            let shared = labels.process_part();
            if self.hold(part_address(labels), || ARC + size_of_val(&**shared)) {
                self.hold_texts(shared);
            }
            self.hold_texts(labels.thread_part());
        }
    }

    fn hold_texts(&mut self, pairs: &[(LabelKey, Arc<str>)]) {
        for (_, text) in pairs {
            self.hold(text_address(text), || ARC + text.len());
        }
    }

    fn release_labels(&mut self, labels: &Arc<LabelSet>) {
        if self.release(address(labels)) {
            if self.release(part_address(labels)) {
                self.release_texts(labels.process_part());
            }
            self.release_texts(labels.thread_part());
        }
    }

    fn release_texts(&mut self, pairs: &[(LabelKey, Arc<str>)]) {
        for (_, text) in pairs {
            self.release(text_address(text));
        }
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
        + window.ledger.capacity() * size_of::<LedgerRow>()
        + window.processes.capacity() * size_of::<Arc<ProcessRecord>>()
}

fn process_bytes(process: &ProcessRecord) -> usize {
    let jvm = process.jvm.as_ref().map_or(0, |jvm| jvm.version.capacity() + 64);
    ARC + size_of::<ProcessRecord>() + process.host.capacity() + process.program.capacity() + jvm
}

fn address<T>(value: &Arc<T>) -> usize {
    Arc::as_ptr(value) as usize
}

/// Of the labels that the sets of one process share; an empty list has an address of its own too.
fn part_address(labels: &LabelSet) -> usize {
    labels.process_part().as_ptr() as usize
}

fn text_address(value: &Arc<str>) -> usize {
    Arc::as_ptr(value).cast::<u8>() as usize
}
