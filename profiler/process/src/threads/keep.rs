//! Which threads are kept: incarnations come, end, and go when there are too many.

use super::budget::Budget;
use super::state::Thread;
use super::table::{Process, Threads};
use emberscope_model::{Excess, Pid, Tenant, Tid};

impl Threads {
    /// The incarnation that a record is of; made if it is not there.
    pub(super) fn incarnation(&mut self, pid: Pid, tid: Tid, start_ns: u64, time_ns: u64) -> &mut Thread {
        self.now_ns = self.now_ns.max(time_ns);
        if !self.thread(tid).is_some_and(|t| t.is(pid, start_ns)) {
            self.insert(tid, Thread::new(pid, start_ns, time_ns));
        }
        let new = || Box::new(Thread::new(pid, start_ns, time_ns));
        let thread = self.threads.entry(tid).or_insert_with(new);
        if thread.start_ns == 0 {
            thread.start_ns = start_ns;
        }
        thread.heard_ns = thread.heard_ns.max(time_ns);
        thread
    }

    pub(super) fn thread(&self, tid: Tid) -> Option<&Thread> {
        self.threads.get(&tid).map(Box::as_ref)
    }

    pub(super) fn thread_mut(&mut self, tid: Tid) -> Option<&mut Thread> {
        self.threads.get_mut(&tid).map(Box::as_mut)
    }

    /// A process has another program: none of its threads is left but the one that has its id now.
    pub(super) fn on_exec(&mut self, pid: Pid) {
        if !self.processes.contains_key(&pid) {
            return;
        }
        let main = self.threads.remove(&pid).filter(|t| t.pid == pid);
        self.drop_threads(|t| t.pid == pid);
        self.processes.remove(&pid);
        if let Some(main) = main {
            let fresh = Thread { booked: main.booked, ..Thread::new(pid, main.start_ns, main.heard_ns) };
            self.insert(pid, fresh);
        }
    }

    pub(super) fn insert(&mut self, tid: Tid, thread: Thread) {
        self.remove(tid);
        if self.threads.len() >= self.limits.threads {
            self.evict();
        }
        self.process(thread.pid).threads += 1;
        self.threads.insert(tid, Box::new(thread));
    }

    /// A process that has threads in the table, or gets its first now.
    pub(super) fn process(&mut self, pid: Pid) -> &mut Process {
        let new = || Process { threads: 0, budget: Budget::new(), tenant: Tenant::default() };
        self.processes.entry(pid).or_insert_with(new)
    }

    /// Makes room: first those that ended, then an eighth of the table, of the tenants that hold more than their share
    /// ([`Excess`]), of each those that were not heard of for longest.
    fn evict(&mut self) {
        self.drop_threads(|t| t.ended_ns.is_some());
        let room = (self.limits.threads / 8).max(1);
        if self.threads.len() + room <= self.limits.threads {
            return;
        }
        let of = |pid: &Pid| self.processes.get(pid).map_or(Tenant::default(), |process| process.tenant);
        let all = self.threads.iter();
        let mut order: Vec<_> = all.map(|(tid, t)| (t.heard_ns, *tid, of(&t.pid), t.start_ns)).collect();
        order.sort_unstable();
        let most = self.limits.threads.saturating_sub(room);
        for (_, tid, tenant, start_ns) in Excess::of(most, order, |(_, _, tenant, _)| (*tenant, 1)) {
            self.whole_since_ns = self.whole_since_ns.max(start_ns);
            self.remove(tid);
            self.counters.threads_evicted += 1;
            self.evicted.add(tenant);
        }
    }

    pub(super) fn remove(&mut self, tid: Tid) {
        if let Some(thread) = self.threads.remove(&tid) {
            self.left(thread.pid);
        }
    }

    pub(super) fn drop_threads(&mut self, mut over: impl FnMut(&Thread) -> bool) {
        let mut left = Vec::new();
        self.threads.retain(|_, thread| {
            let stays = !over(thread);
            if !stays {
                left.push(thread.pid);
            }
            stays
        });
        for pid in left {
            self.left(pid);
        }
    }

    fn left(&mut self, pid: Pid) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.threads = process.threads.saturating_sub(1);
            if process.threads == 0 {
                self.processes.remove(&pid);
            }
        }
    }
}
