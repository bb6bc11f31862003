//! The stacks of the last epochs, and the tokens by which open windows hold them.
//!
//! In: raw stacks as they come up, then samples that name them by hash. Out: a [`StackToken`] for each
//! (process, stack): the stack with its native and kernel frames named and its JIT addresses still
//! pending. Bounded: a stack that was not sent for two epochs is forgotten (the kernel sends every
//! stack once an epoch, [`profiler_ebpf::EPOCH_NS`]), and over [`MAX_STACKS`] new ones are refused.

use crate::model::{FastMap, Frame, ProcessKey, RawStack, StackEnd, UnknownReason};
use crate::symbolize::{PendingFrame, PendingStack, Target};
use profiler_ebpf::EPOCH_NS;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Stacks held at most: two epochs of a 64-core node at 99 Hz whose samples all differ are 126,000, and
/// no real node comes near.
pub const MAX_STACKS: usize = 150_000;
/// Processes with a token for lost stacks; over it they are made anew.
const MAX_LOST: usize = 4096;

/// A stack in the making: what a window holds until it closes and its JIT addresses are named.
#[derive(Debug)]
pub struct Entry {
    /// Whose it is, as known when the stack was first seen.
    pub target: Arc<Target>,
    /// Frames, some of them pending.
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
    raw: FastMap<u64, RawStack>,
    tokens: FastMap<(ProcessKey, u64), (StackToken, u64)>,
    lost: FastMap<ProcessKey, StackToken>,
    swept_epoch: u64,
    refused: u64,
}

impl StackCache {
    /// Takes a stack as it came up. One that comes again replaces itself: mappings may have changed
    /// since, so its frames are looked up anew.
    pub fn insert(&mut self, raw: RawStack) {
        self.sweep(raw.time_ns / EPOCH_NS);
        if self.raw.len() >= MAX_STACKS && !self.raw.contains_key(&raw.hash) {
            self.refused += 1;
            return;
        }
        self.raw.insert(raw.hash, raw);
    }

    /// The token of a process's stack; `begin` names its frames when it is new. None when the stack's
    /// record was lost or refused.
    pub fn token(
        &mut self,
        process: ProcessKey,
        hash: u64,
        begin: impl FnOnce(&RawStack) -> Entry,
    ) -> Option<StackToken> {
        let raw = self.raw.get(&hash)?;
        match self.tokens.get(&(process, hash)) {
            Some((token, taken_ns)) if *taken_ns == raw.time_ns => Some(token.clone()),
            _ => {
                let token = StackToken(Arc::new(begin(raw)));
                self.tokens.insert((process, hash), (token.clone(), raw.time_ns));
                Some(token)
            }
        }
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
        (self.raw.len(), self.refused)
    }

    fn sweep(&mut self, epoch: u64) {
        if epoch <= self.swept_epoch {
            return;
        }
        self.swept_epoch = epoch;
        let oldest = epoch.saturating_sub(1) * EPOCH_NS;
        self.raw.retain(|_, raw| raw.time_ns >= oldest);
        self.tokens.retain(|_, (_, taken_ns)| *taken_ns >= oldest);
    }
}
