//! Whether anybody still waits for the answer that a thread works on.
//!
//! Who waits holds [`Waits`]; when it goes (the client left, the time was up) the work that runs under its [`Wanted`]
//! is told so at the next place where it asks [`nobody_waits`]. Work that runs under none is always wanted.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    static WORKS_FOR: RefCell<Option<Wanted>> = const { RefCell::new(None) };
}

/// Held by who waits for an answer.
#[derive(Debug, Default)]
pub struct Waits(Arc<AtomicBool>);

impl Waits {
    /// What the work holds that is done for the answer.
    pub fn wanted(&self) -> Wanted {
        Wanted(Arc::clone(&self.0))
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Held by the work for an answer: tells whether somebody still waits.
#[derive(Clone, Debug)]
pub struct Wanted(Arc<AtomicBool>);

impl Wanted {
    /// Who waits for what this thread works on; None: nobody in particular, the work is always wanted.
    pub fn of_this_thread() -> Option<Self> {
        WORKS_FOR.with_borrow(Clone::clone)
    }

    /// Works on this thread, knowing who waits.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        /// Whatever was worked for before, also after a panic.
        struct Back(Option<Wanted>);
        impl Drop for Back {
            fn drop(&mut self) {
                WORKS_FOR.set(self.0.take());
            }
        }
        let _back = Back(WORKS_FOR.replace(Some(self)));
        work()
    }
}

/// Whether the answer that this thread works on is not waited for any more.
pub fn nobody_waits() -> bool {
    WORKS_FOR.with_borrow(|wanted| wanted.as_ref().is_some_and(|Wanted(gone)| gone.load(Ordering::Relaxed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_knows_when_nobody_waits() {
        assert!(!nobody_waits());
        let waits = Waits::default();
        waits.wanted().run(|| assert!(!nobody_waits()));
        let wanted = waits.wanted();
        drop(waits);
        wanted.run(|| assert!(nobody_waits()));
        assert!(!nobody_waits(), "other work on this thread is wanted");
    }
}
