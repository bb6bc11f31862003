//! Panics: said in the log with their place, counted by thread, and caught where a thread can go on.
//!
//! The release build unwinds (Cargo.toml). [`install_hook`] is for programs that log; others keep the standard message.

use super::thread::THREADS;
use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static COUNTS: [AtomicU64; THREADS.len()] = [const { AtomicU64::new(0) }; THREADS.len()];

/// Work that ended in a panic, with the panic's message.
#[derive(Debug, thiserror::Error)]
#[error("a defect of emberscope: {0}")]
pub struct Panicked(pub String);

impl Panicked {
    /// The message of what a panic carries; a sentence where that is no text.
    pub fn of(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Self(text.unwrap_or("a panic without a message").to_owned())
    }
}

/// Does something that may panic. What it changed may be half done afterwards: the caller drops it, or it is whole after
/// every statement.
///
/// # Errors
/// [`Panicked`]: `work` panicked.
pub fn attempt<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| Panicked::of(&*payload))
}

/// Panics of a thread of [`THREADS`] since the start, caught or not.
pub fn count_of(thread: &str) -> u64 {
    THREADS.iter().zip(&COUNTS).find(|(name, _)| **name == thread).map_or(0, |(_, count)| count.load(Relaxed))
}

/// From now on panics are counted, and go to the log.
pub fn install_hook() {
    std::panic::set_hook(Box::new(|info| {
        let thread = std::thread::current();
        let thread = listed(thread.name());
        count(thread);
        tell(thread, info);
    }));
}

fn listed(name: Option<&str>) -> &'static str {
    match name {
        Some("main") => "sampler",
        name => THREADS.iter().find(|known| Some(**known) == name).copied().unwrap_or("other"),
    }
}

fn count(thread: &str) {
    if let Some((_, count)) = THREADS.iter().zip(&COUNTS).find(|(name, _)| **name == thread) {
        count.fetch_add(1, Relaxed);
    }
}

fn tell(thread: &str, info: &PanicHookInfo<'_>) {
    let says = Panicked::of(info.payload()).0;
    let at = info.location().map(ToString::to_string).unwrap_or_default();
    // Empty without RUST_BACKTRACE, which costs some 100 ms of reading our own symbols.
    let stack = Backtrace::capture();
    let stack = if stack.status() == BacktraceStatus::Captured { stack.to_string() } else { String::new() };
    tracing::error!(thread, at, panic = says, stack, "a thread panicked");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_words() {
        assert_eq!(
            attempt(|| panic!("at {}", 7)).map_err(|e: Panicked| e.0),
            Err::<(), _>("at 7".to_owned())
        );
        assert_eq!(attempt(|| panic!("word")).map_err(|e: Panicked| e.0), Err::<(), _>("word".to_owned()));
        assert_eq!(attempt(|| 1).ok(), Some(1));
    }

    #[test]
    fn threads_that_are_not_listed_are_counted_together() {
        assert_eq!(listed(Some("main")), "sampler");
        assert_eq!(listed(Some("reader")), "reader");
        assert_eq!([listed(Some("tokio-rt")), listed(None)], ["other", "other"]);
        let before = count_of("other");
        count("other");
        assert!(count_of("other") > before);
        assert_eq!(count_of("no such"), 0);
    }
}
