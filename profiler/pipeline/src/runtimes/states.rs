//! What is known of a runtime's process, as the status shows it, and when it is tried again.

use emberscope_runtime::{Problem, Words};
use std::time::{Duration, Instant};

/// How long after a process could not be read it is tried again: it may be starting.
const RETRY: Duration = Duration::from_secs(2);
/// The same where nothing could be read at all.
const LATE: Duration = Duration::from_secs(5);
/// Shortest wait for something else that must be over first.
const MOMENT: Duration = Duration::from_millis(250);
/// Tries that come at the next look instead: HotSpot makes its code heaps some 30 ms after libjvm is mapped.
const SOON: u32 = 10;
/// Tries; then it stays as it is.
const MAX_TRIES: u32 = 20;

/// How a process's threads are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Naming {
    /// Not known yet: the process is being looked at.
    Opening,
    /// The probe on `os::set_native_thread_name` tells each name.
    Native,
    /// The probe on `JVM_SetNativeThreadName` tells each name, as a String.
    Strings,
    /// The runtime gives its threads no names.
    None,
    /// Only by what the kernel calls them: why.
    Comm(String),
}

impl Naming {
    /// Stable short name, for the status.
    pub const fn slug(&self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::Native => "probe",
            Self::Strings => "string_probe",
            Self::None => "none",
            Self::Comm(_) => "comm",
        }
    }
    /// A sentence for people.
    pub fn says(&self) -> String {
        match self {
            Self::Opening => "its libjvm is being looked at".into(),
            Self::Native => "each name is seen as it is given".into(),
            Self::Strings => {
                "each name is seen as it is given, by its String: libjvm has no symbol table".into()
            }
            Self::None => "its runtime gives threads no names".into(),
            Self::Comm(why) => format!("stages and tasks are not known: {why}"),
        }
    }
}

/// How a process's allocations are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allocations {
    /// Allocations are not sampled.
    Off,
    /// Not known yet: the process is being looked at.
    Opening,
    /// The probes on `AllocTracer` tell them.
    Probed,
    /// Allocations are asked for and not known: why.
    None(String),
}

impl Allocations {
    /// Stable short name, for the status.
    pub const fn slug(&self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Opening => "opening",
            Self::Probed => "probe",
            Self::None(_) => "none",
        }
    }
    /// A sentence for people.
    pub fn says(&self) -> String {
        match self {
            Self::Off => "not asked for: --events cpu,off-cpu,alloc".into(),
            Self::Opening => "its libjvm is being looked at".into(),
            Self::Probed => "what it takes from the heap is sampled".into(),
            Self::None(why) => format!("allocations are not known: {why}"),
        }
    }
}

/// How the kernel walks a process's stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Walking {
    /// Not known yet: the process is being looked at.
    Opening,
    /// By what the process's own tables tell of its code.
    CodeTables,
    /// By frame pointers only; why.
    FramePointers(String),
}

impl Walking {
    /// Stable short name, for the status.
    pub const fn slug(&self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::CodeTables => "code_tables",
            Self::FramePointers(_) => "frame_pointers",
        }
    }
    /// A sentence for people, in a runtime's words.
    pub fn says(&self, words: &Words) -> String {
        match self {
            Self::Opening => words.opening.into(),
            Self::CodeTables => words.walked.into(),
            Self::FramePointers(why) => format!("{}: {why}", words.by_frame_pointers),
        }
    }
}

/// Tries at something that a process may not be ready for.
#[derive(Debug, Default)]
pub(super) struct Tries {
    pub(super) made: u32,
    pub(super) next: Option<Instant>,
    /// How long the last time was for which something else had to be waited for.
    waited: Duration,
}

impl Tries {
    /// Tries of which the first is due now.
    pub(super) fn at_once() -> Self {
        Self { next: Some(Instant::now()), ..Self::default() }
    }
    /// A try failed; false when it was the last.
    pub(super) fn failed(&mut self, problem: &Problem, now: Instant) -> bool {
        if matches!(problem, Problem::Late | Problem::Exhausted) {
            // No try: nothing was read, for a reason that ends and may not be the process's. It is left alone until then.
            self.next = Some(now + LATE);
            return true;
        }
        self.made += 1;
        let again = problem.may_pass() && self.made < MAX_TRIES;
        self.next = again.then(|| if self.made < SOON { now } else { now + RETRY });
        again
    }
    /// No try: something else must be over first. Each time twice as long as before.
    pub(super) fn in_a_moment(&mut self, now: Instant) {
        self.waited = (2 * self.waited).clamp(MOMENT, LATE);
        self.next = Some(now + self.waited);
    }
    pub(super) fn due(&self, now: Instant) -> bool {
        self.next.is_some_and(|next| now >= next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twenty looks without a descriptor, some forty seconds, are not to cost a process its stacks for good.
    #[test]
    fn what_could_not_be_read_at_all_is_no_try() {
        let (mut tries, now) = (Tries::at_once(), Instant::now());
        for problem in [Problem::Late, Problem::Exhausted] {
            for _ in 0..2 * MAX_TRIES {
                assert!(tries.failed(&problem, now));
                assert!(!tries.due(now) && tries.due(now + LATE));
            }
        }
        let starting = Problem::NotNow("it starts".to_owned());
        assert_eq!((1..MAX_TRIES).filter(|_| tries.failed(&starting, now)).count() as u32, MAX_TRIES - 1);
        assert!(!tries.failed(&starting, now) && !tries.due(now + LATE));
    }
}
