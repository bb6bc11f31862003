//! The stacks of the last epochs, and the tokens by which open windows hold them.
//!
//! In: raw stacks as they come up, then samples that name them by hash. Out: a [`StackToken`] for each
//! (process, stack): the stack with its native and kernel frames named and its JIT addresses still
//! pending. Bounded: a stack that was not sent for two epochs is forgotten (the kernel sends every
//! stack once an epoch, [`profiler_ebpf::EPOCH_NS`]), and over [`MAX_STACKS`] or [`MAX_BYTES`] the oldest go of those
//! tenants that hold more than their share.

mod packed;

use emberscope_model::{
    Excess, FastMap, Frame, Pid, ProcessKey, RawStack, Refusals, StackEnd, Tenant, UnknownReason, shrink,
};
use emberscope_symbolize::{PendingFrame, PendingStack, Target};
use packed::Packed;
use profiler_ebpf::EPOCH_NS;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Stacks held at most: two epochs of a 64-core node at 99 Hz whose samples all differ are 126,000, and
/// no real node comes near.
pub const MAX_STACKS: usize = 150_000;
/// What they hold, with 16 bytes a frame while it is named: 512 frames are 8 KiB, and 64 cores of such stacks, all different,
/// would be a gigabyte. A stack of 60 frames is 1.5 KiB, of which a busy node has some ten thousand in two epochs.
pub const MAX_BYTES: usize = 18 << 20;
/// What one takes besides its frames: itself, its token, their places in the tables, and their allocations.
const STACK_BYTES: usize = size_of::<Packed>() + size_of::<Entry>() + 160;
/// What a frame takes from the first sample on that has it.
const PENDING_BYTES: usize = size_of::<PendingFrame>();
/// Processes with a token for lost stacks; over it they are made anew.
const MAX_LOST: usize = 4096;

/// A stack in the making: what a window holds until it closes and its JIT addresses are named.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// The process, as known when the stack was first seen.
    pub target: Arc<Target>,
    /// The stack, some of its frames still without a name.
    pub pending: PendingStack,
}

/// A handle to an [`Entry`], compared by identity.
#[derive(Clone, Debug)]
pub struct StackToken(pub Arc<Entry>);

impl PartialEq for StackToken {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
impl Eq for StackToken {}
impl Hash for StackToken {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

/// Raw stacks by hash, and their tokens by process.
#[derive(Debug, Default)]
pub struct StackCache {
    raw: FastMap<u64, Packed>,
    tokens: FastMap<(ProcessKey, u64), (StackToken, u64)>,
    lost: FastMap<ProcessKey, StackToken>,
    swept_epoch: u64,
    bytes: usize,
    refused: Refusals,
}

impl StackCache {
    /// Takes a stack as it came up. One that comes again replaces itself: mappings may have changed
    /// since, so its frames are looked up anew. `tenant` says whose a process is, where room has to be made.
    pub fn insert(&mut self, raw: RawStack, tenant: impl Fn(Pid) -> Tenant) {
        self.sweep(raw.time_ns / EPOCH_NS);
        let (hash, raw) = (raw.hash, Packed::of(&raw));
        let bytes = bytes_of(&raw);
        if self.raw.len() >= MAX_STACKS || self.bytes + bytes > MAX_BYTES {
            self.make_room(tenant);
        }
        self.bytes += bytes;
        if let Some(before) = self.raw.insert(hash, raw) {
            self.bytes -= bytes_of(&before);
        }
    }

    /// An eighth of the bytes, or of the stacks, goes.
    fn make_room(&mut self, tenant: impl Fn(Pid) -> Tenant) {
        let by_number = self.raw.len() >= MAX_STACKS;
        let size = |raw: &Packed| if by_number { 1 } else { bytes_of(raw) };
        let room = if by_number { MAX_STACKS } else { MAX_BYTES };
        let all = self.raw.iter();
        let mut order: Vec<_> =
            all.map(|(hash, raw)| (raw.time_ns, *hash, tenant(raw.pid), size(raw))).collect();
        order.sort_unstable();
        for (_, hash, who, _) in Excess::of(room - room / 8, order, |(.., who, size)| (*who, *size)) {
            if let Some(raw) = self.raw.remove(&hash) {
                self.bytes -= bytes_of(&raw);
                self.refused.add(who);
            }
        }
        self.tokens.retain(|(_, hash), _| self.raw.contains_key(hash));
    }

    /// The token of a process's stack; `begin` names its frames when it is new. None when the stack's
    /// record was lost or refused. One that came again and means what it did keeps its token: a window has it once.
    pub fn token(
        &mut self,
        process: ProcessKey,
        hash: u64,
        begin: impl FnOnce(&RawStack) -> Entry,
    ) -> Option<StackToken> {
        let raw = self.raw.get(&hash)?;
        let before = self.tokens.get_mut(&(process, hash));
        if let Some((token, taken_ns)) = &before
            && *taken_ns == raw.time_ns
        {
            return Some(token.clone());
        }
        let entry = begin(&raw.unpacked(hash));
        if let Some((token, taken_ns)) = before
            && *token.0 == entry
        {
            *taken_ns = raw.time_ns;
            return Some(token.clone());
        }
        let token = StackToken(Arc::new(entry));
        self.tokens.insert((process, hash), (token.clone(), raw.time_ns));
        Some(token)
    }

    /// The token for samples of a process whose stack's record was lost or refused: one frame that says
    /// so.
    pub fn lost_token(&mut self, process: ProcessKey, target: impl FnOnce() -> Arc<Target>) -> StackToken {
        let frame = || PendingFrame::Named(Arc::new(Frame::unknown(UnknownReason::StackLost, "")));
        let entry = || {
            let pending = PendingStack { frames: [frame()].into(), end: StackEnd::Unknown };
            StackToken(Arc::new(Entry { target: target(), pending }))
        };
        if self.lost.len() > MAX_LOST && !self.lost.contains_key(&process) {
            self.lost.clear();
        }
        self.lost.entry(process).or_insert_with(entry).clone()
    }

    /// A process replaced its program: its stacks are looked up anew.
    pub fn forget_tokens(&mut self, pid: u32) {
        self.tokens.retain(|(key, _), _| key.pid != pid);
    }

    /// Stacks held now, and stacks refused since start because there were too many.
    pub fn usage(&self) -> (usize, u64) {
        (self.raw.len(), self.refused.total())
    }

    /// Stacks that were thrown out for want of room, by whose they were.
    pub fn refusals(&self) -> (&'static str, &Refusals) {
        ("raw_stacks", &self.refused)
    }

    fn sweep(&mut self, epoch: u64) {
        if epoch <= self.swept_epoch {
            return;
        }
        self.swept_epoch = epoch;
        let oldest = epoch.saturating_sub(1) * EPOCH_NS;
        self.raw.retain(|_, raw| raw.time_ns >= oldest);
        self.bytes = self.raw.values().map(bytes_of).sum();
        self.tokens.retain(|_, (_, taken_ns)| *taken_ns >= oldest);
        shrink(&mut self.raw);
        shrink(&mut self.tokens);
    }
}

fn bytes_of(raw: &Packed) -> usize {
    STACK_BYTES + raw.bytes() + raw.frames() * PENDING_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(pid: Pid, hash: u64) -> RawStack {
        let kernel = vec![hash; 1000].into();
        let user = Box::default();
        RawStack { hash, time_ns: hash, pid, kernel, user, end: StackEnd::Unknown, generation: 0 }
    }

    #[test]
    fn a_flooders_stacks_go_and_not_his_neighbours() {
        let tenant = |pid| Tenant { spark: pid == 1, uid: pid, group: 0 };
        let mut cache = StackCache::default();
        for hash in 0..100 {
            cache.insert(stack(1, hash), tenant);
        }
        for hash in 1_000..20_000 {
            cache.insert(stack(65534, hash), tenant);
        }
        assert!(cache.bytes <= MAX_BYTES);
        assert_eq!(cache.bytes, cache.raw.values().map(bytes_of).sum::<usize>());
        assert!((0..100).all(|hash| cache.raw.contains_key(&hash)));
        assert!(cache.raw.contains_key(&19_999), "the newest of his own are there");
        let (_, refusals) = cache.refusals();
        assert!(refusals.by_tenant().all(|(who, _)| who.uid == 65534) && refusals.total() > 10_000);
    }

    #[test]
    fn a_stack_that_comes_again_keeps_its_token_while_it_means_the_same() {
        let key = ProcessKey { pid: 7, start_ticks: 1 };
        let target = Target { key, uid: 0, gid: 0, nspid: 7, tenant: Tenant::default() };
        let mut cache = StackCache::default();
        let mut token = |time_ns, address: u64| {
            cache.insert(RawStack { time_ns, ..stack(7, 1) }, |_| Tenant::default());
            let pending = PendingStack { frames: [PendingFrame::Jit(address)].into(), end: StackEnd::Root };
            let entry = |raw: &RawStack| {
                assert_eq!((raw.hash, raw.kernel.len(), raw.time_ns), (1, 1000, time_ns));
                Entry { target: Arc::new(target), pending }
            };
            cache.token(key, 1, entry).unwrap()
        };
        let first = token(EPOCH_NS, 5);
        assert_eq!(token(2 * EPOCH_NS, 5), first);
        let moved = token(3 * EPOCH_NS, 6);
        assert_ne!(moved, first, "something else is mapped there now");
        assert_eq!(token(4 * EPOCH_NS, 6), moved);
    }
}
