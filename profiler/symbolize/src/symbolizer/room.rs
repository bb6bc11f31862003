//! The room that processes share: their number, and the bytes of their code. In: what they come to hold. Out: who gives way,
//! by fair shares ([`Excess`]).
//!
//! What is held is not counted at each step but when what was free at the last count may be used up, so never more than
//! [`SymbolizerConfig::max_code_bytes`](crate::SymbolizerConfig::max_code_bytes) is held, but for the process at hand.

use super::Symbolizer;
use emberscope_model::{Excess, ProcessKey};
use std::cmp::Reverse;
use std::time::Instant;

impl Symbolizer {
    /// A sixteenth of the processes goes, of the tenants that hold more than their share, and of each those that were
    /// unused for longest.
    pub(super) fn make_room(&mut self) {
        let all = self.processes.iter().filter(|(_, p)| !p.in_flight);
        let mut order: Vec<_> = all.map(|(key, p)| (p.used, *key, p.tenant)).collect();
        order.sort_unstable();
        let room = order.len().saturating_sub((order.len() / 16).max(1));
        for (_, key, tenant) in Excess::of(room, order, |(.., tenant)| (*tenant, 1)) {
            self.processes.remove(&key);
            self.readers.forget(key);
            self.counters.processes_evicted += 1;
            self.evicted.add(tenant);
        }
    }

    /// Bytes of a process's code, as [`crate::process::ProcessState::bytes`] has them.
    pub(super) fn code_bytes(&self, key: ProcessKey) -> usize {
        self.processes.get(&key).map_or(0, |process| process.bytes())
    }

    /// Takes in mappings that came late. What nobody took would be in memory without being counted.
    pub(super) fn take_late(&mut self) {
        let mut more = 0;
        for (key, process) in &mut self.processes {
            let before = process.bytes();
            process.take_late(key.pid);
            more += process.bytes().saturating_sub(before);
        }
        self.holds_more(more);
    }

    /// A process came to hold so many bytes more. Where all together hold too much, those of the tenants that hold more than
    /// their share give up theirs, the largest first, until an eighth is free.
    pub(super) fn holds_more(&mut self, bytes: usize) {
        self.code_room = self.code_room.saturating_sub(bytes);
        if bytes == 0 || self.code_room > 0 {
            return;
        }
        let (now, limit) = (Instant::now(), self.config.max_code_bytes);
        let all = self.processes.iter().map(|(key, p)| (Reverse(p.bytes()), *key, p.tenant));
        let mut order: Vec<_> = all.filter(|(Reverse(bytes), ..)| *bytes > 0).collect();
        order.sort_unstable();
        let mut held: usize = order.iter().map(|(Reverse(bytes), ..)| *bytes).sum();
        let over = Excess::of(limit - limit / 8, order, |(Reverse(bytes), _, tenant)| (*tenant, *bytes));
        for (Reverse(bytes), key, tenant) in over {
            if let Some(process) = self.processes.get_mut(&key) {
                process.give_way(now);
            }
            held -= bytes;
            self.counters.processes_evicted += 1;
            self.evicted.add(tenant);
        }
        self.code_room = limit.saturating_sub(held);
    }
}
