//! Locks: where a JVM keeps who waits for which, for the kernel program; and which thread an owner is.
//!
//! An owner is what the JVM has in the lock: the `JavaThread*` (monitors up to JDK 23, locks of java.util.concurrent always), an
//! address in the owner's stack (a monitor up to JDK 21 that was taken on the stack before there was anybody to wait for it),
//! or the thread's number (`JavaThread::_monitor_owner_id`, JDK 24 on; objectMonitor.hpp).

use super::{JavaThread, MAX_TIME, Reading, View};
use crate::problem::JvmProblem;
use crate::vm_structs::VmStructs;
use emberscope_target::memory::{Memory, at};
use profiler_ebpf::LockLayout;
use std::time::Instant;

/// How owners are told; None: this JDK does not have it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owners {
    /// `JavaThread::_monitor_owner_id`.
    number: Option<u64>,
    /// `JavaThread::_stack_base` and `_stack_size`.
    stack: Option<(u64, u64)>,
    /// `ObjectMonitor::_owner` and `_object`.
    monitor: Option<(u64, u64)>,
    /// `JavaThread::_lock_stack`: where it counts, and its first entry.
    lock_stack: Option<(u64, u64)>,
}

/// `ObjectMonitor::ANONYMOUS_OWNER`: somebody whom the JVM has not looked for (objectMonitor.hpp, JDK 21 on).
const ANONYMOUS: u64 = 1;
const NO_THREAD: JvmProblem = JvmProblem::Nonsense("the owner of a lock is no thread");
/// Entries of a lock stack, at most (lockStack.hpp).
const LOCK_STACK: usize = 8;

impl Owners {
    pub(super) fn of(vm: &VmStructs) -> Self {
        let stack = vm.offset("JavaThread::_stack_base").zip(vm.offset("JavaThread::_stack_size"));
        let lock_stack = || {
            let of_thread = vm.offset("JavaThread::_lock_stack")?;
            let (top, base) = (vm.offset("LockStack::_top")?, vm.offset("LockStack::_base[0]")?);
            Some((of_thread.checked_add(top)?, of_thread.checked_add(base)?))
        };
        Self {
            number: vm.offset("JavaThread::_monitor_owner_id"),
            stack,
            monitor: vm.offset("ObjectMonitor::_owner").zip(vm.offset("ObjectMonitor::_object")),
            lock_stack: lock_stack(),
        }
    }

    /// Whether this is how a monitor tells the thread, but for the thread's own address.
    fn is<M: Memory>(&self, memory: &M, thread: u64, owner: u64) -> bool {
        let word = |offset: u64| at(thread, offset).and_then(|at| memory.u64(at));
        let within = |(base, size)| {
            let stack = word(base).and_then(|base| Ok(base.saturating_sub(word(size)?)..base));
            stack.is_ok_and(|stack| stack.contains(&owner))
        };
        self.number.is_some_and(|number| word(number) == Ok(owner)) || self.stack.is_some_and(within)
    }
}

impl View {
    /// How the JVM keeps locks; all zero where its tables do not tell.
    pub(crate) fn locks(&self, vm: &VmStructs) -> LockLayout {
        self.lock_layout(vm).unwrap_or_default()
    }

    fn lock_layout(&self, vm: &VmStructs) -> Option<LockLayout> {
        let short = |offset: u64| u16::try_from(offset).ok();
        let of_thread = |name: &str| {
            ["JavaThread::", "Thread::"].into_iter().find_map(|class| vm.offset(&format!("{class}{name}")))
        };
        let layout = LockLayout {
            thread_object: short(self.thread_object)?,
            pending_monitor: short(of_thread("_current_pending_monitor")?)?,
            eetop: short(self.eetop.into())?,
            park_blocker: short(u64::from(self.park_blocker)).filter(|offset| *offset != 0)?,
            os_thread: short(self.os_thread)?,
            thread_id: short(self.thread_id)?,
            monitor_object: short(vm.offset("ObjectMonitor::_object")?)?,
            monitor_owner: short(vm.offset("ObjectMonitor::_owner")?)?,
            // Both became handles in JDK 16.
            by_handle: self.by_handle.into(),
            ..LockLayout::default()
        };
        self.heap.told(layout)
    }

    /// The thread that an owner is.
    ///
    /// # Errors
    /// As [`Self::threads`]. [`JvmProblem::Nonsense`]: it is none of the JVM's threads, or one that gave no sound name.
    pub fn owner<M: Memory>(&self, memory: &M, owner: u64) -> Result<JavaThread, JvmProblem> {
        let threads = self.list.read(memory)?;
        if threads.contains(&owner) {
            return self.named(memory, owner);
        }
        self.first(memory, &threads, |thread| self.owners.is(memory, thread, owner))
    }

    /// The thread that holds the monitor at this address, where the JVM itself does not know: who has its object in the lock stack. It is
    /// who held it before as long as the JVM has not looked: the owner does when it leaves.
    ///
    /// # Errors
    /// As [`Self::owner`], and [`JvmProblem::Nonsense`] where the JVM knows an owner by now.
    pub fn anonymous_owner<M: Memory>(&self, memory: &M, monitor: u64) -> Result<JavaThread, JvmProblem> {
        let unknown = JvmProblem::Missing("who holds locks");
        let ((owner, object), lock_stack) = self.owners.monitor.zip(self.owners.lock_stack).ok_or(unknown)?;
        let object = memory.u64(self.behind(memory, at(monitor, object)?)?)?;
        let threads = self.list.read(memory)?;
        let thread = self.first(memory, &threads, |thread| has_locked(memory, lock_stack, thread, object))?;
        match memory.u64(at(monitor, owner)?)? {
            ANONYMOUS => Ok(thread),
            _ => Err(JvmProblem::Nonsense("the monitor has an owner by now")),
        }
    }

    /// The first thread of which this holds.
    fn first<M: Memory>(
        &self,
        memory: &M,
        threads: &[u64],
        is: impl Fn(u64) -> bool,
    ) -> Result<JavaThread, JvmProblem> {
        let deadline = Instant::now() + MAX_TIME;
        let found = threads.iter().take_while(|_| Instant::now() < deadline).find(|thread| is(**thread));
        self.named(memory, *found.ok_or(NO_THREAD)?)
    }

    fn named<M: Memory>(&self, memory: &M, thread: u64) -> Result<JavaThread, JvmProblem> {
        let reading = self.settled(memory, thread, Instant::now() + MAX_TIME)?;
        let Reading { tid, thread, text, .. } = reading.ok_or(NO_THREAD)?;
        Ok(JavaThread { tid, name: text.text, unsure: thread.stale || text.stale })
    }
}

/// Whether an object is among those in a thread's lock stack, whose count is that of its next free entry, in bytes from the thread.
fn has_locked<M: Memory>(memory: &M, (count, first): (u64, u64), thread: u64, object: u64) -> bool {
    let mut entries = [0; 8 * LOCK_STACK];
    let mut read = || {
        let used = u64::from(memory.u32(at(thread, count)?)?).saturating_sub(first) / 8;
        memory.read(at(thread, first)?, &mut entries).map(|()| used as usize)
    };
    let used = read().unwrap_or_default().min(LOCK_STACK);
    entries.chunks_exact(8).take(used).any(|entry| *entry == object.to_le_bytes())
}
