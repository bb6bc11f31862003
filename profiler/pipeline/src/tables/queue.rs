//! Which processes are looked at, and when: now, or a moment later, so that what happens to one meanwhile is one look.

use emberscope_model::Pid;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Now,
    Later(Instant),
}

/// Processes that wait for a look, each once.
#[derive(Debug, Default)]
pub struct Queue {
    now: VecDeque<Pid>,
    later: BTreeSet<(Instant, Pid)>,
    waiting: HashMap<Pid, When>,
}

impl Queue {
    /// How many processes wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// A process is looked at as soon as those before it.
    pub fn now(&mut self, pid: Pid) {
        match self.waiting.insert(pid, When::Now) {
            Some(When::Now) => return,
            Some(When::Later(at)) => {
                self.later.remove(&(at, pid));
            }
            None => {}
        }
        self.now.push_back(pid);
    }

    /// A process is looked at then, unless it waits already.
    pub fn later(&mut self, at: Instant, pid: Pid) {
        if let std::collections::hash_map::Entry::Vacant(entry) = self.waiting.entry(pid) {
            entry.insert(When::Later(at));
            self.later.insert((at, pid));
        }
    }

    /// A process need not be looked at.
    pub fn forget(&mut self, pid: Pid) {
        if let Some(When::Later(at)) = self.waiting.remove(&pid) {
            self.later.remove(&(at, pid));
        }
    }

    /// The next process that is due.
    pub fn next(&mut self, now: Instant) -> Option<Pid> {
        while let Some(pid) = self.now.pop_front() {
            if self.waiting.get(&pid) == Some(&When::Now) {
                self.waiting.remove(&pid);
                return Some(pid);
            }
        }
        let (_, pid) = *self.later.first().filter(|(at, _)| *at <= now)?;
        self.later.pop_first();
        self.waiting.remove(&pid);
        Some(pid)
    }

    /// When the next process is due; None: nobody waits.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        if !self.now.is_empty() {
            return Some(now);
        }
        self.later.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn each_waits_once_and_who_is_wanted_now_goes_first() {
        let start = Instant::now();
        let then = start + Duration::from_millis(30);
        let mut queue = Queue::default();
        queue.later(then, 1);
        queue.later(then, 2);
        queue.later(then, 1);
        queue.now(3);
        queue.now(2);
        queue.now(2);
        assert_eq!((queue.len(), queue.due(start)), (3, Some(start)));
        assert_eq!((queue.next(start), queue.next(start), queue.next(start)), (Some(3), Some(2), None));
        assert_eq!(queue.due(start), Some(then));
        assert_eq!((queue.next(then), queue.next(then)), (Some(1), None));
        assert_eq!((queue.len(), queue.due(then)), (0, None));
        queue.later(then + Duration::from_millis(1), 8);
        queue.later(then, 7);
        assert_eq!((queue.next(then), queue.next(then)), (Some(7), None), "whenever it was asked for");
        queue.forget(8);
        queue.now(5);
        queue.later(then, 6);
        queue.forget(5);
        queue.forget(6);
        assert_eq!((queue.next(then), queue.len()), (None, 0));
    }
}
