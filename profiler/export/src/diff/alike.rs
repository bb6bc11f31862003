//! Frames that are named otherwise by another JDK and are the same: without this, two runs on different JDKs differ from
//! their threads' start on.
//!
//! In: a frame's name, and that of its caller. Out: the name under which frames are put side by side; none of a frame that
//! only one JDK has and that does nothing of its own, which counts as part of its caller.

use emberscope_model::Frame;
use std::borrow::Cow;
use std::sync::Arc;

/// The blobs of stubs whose own name is not known: `StubRoutines (1)` and `(2)` up to JDK 19, `(initialstubs)`,
/// `(continuationstubs)`, `(compilerstubs)`, `(finalstubs)` and more since (StubRoutines::initialize*, stubRoutines.cpp).
const STUBS: &str = "StubRoutines (";
/// Since JDK 19 `Thread.run` calls its runnable by way of this (java/lang/Thread.java).
const RUN_WITH: &str = "java.lang.Thread.runWith";
/// Its caller.
const RUN: [&str; 2] = ["java.lang.Thread.run", "java.lang.VirtualThread.run"];
/// Up to JDK 17 C++ hands the current thread on as `Thread*`, later as `JavaThread*`.
const THREAD: (&str, &str) = ("JavaThread*", "Thread*");

/// The name under which a frame stands; None: it is part of its caller, `caller`.
pub fn alike<'a>(caller: &str, name: &'a str) -> Option<Cow<'a, str>> {
    if name == RUN_WITH && RUN.contains(&caller) {
        return None;
    }
    if name.starts_with(STUBS) {
        return Some(Cow::Borrowed("StubRoutines"));
    }
    if name.contains(THREAD.0) {
        return Some(Cow::Owned(name.replace(THREAD.0, THREAD.1)));
    }
    Some(Cow::Borrowed(name))
}

/// The frame that is shown for all that stand under that name.
pub fn shown(frame: &Arc<Frame>, name: &str) -> Arc<Frame> {
    match frame.name.starts_with(STUBS) {
        true => Arc::new(Frame::new(frame.kind, name, &*frame.module)),
        false => frame.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_thing_are_one() {
        let stubs = ["StubRoutines (1)", "StubRoutines (initialstubs)", "StubRoutines (compilerstubs)"];
        assert!(stubs.iter().all(|name| alike("a.B.c", name).as_deref() == Some("StubRoutines")));
        let [old, new] =
            ["Thread*", "JavaThread*"].map(|thread| format!("JavaCalls::call(JavaValue*, {thread})"));
        assert_eq!(alike("x", &old), alike("x", &new));
        assert_eq!(alike("java.lang.Thread.run", RUN_WITH), None);
    }

    #[test]
    fn what_only_looks_so_stays() {
        for (caller, name) in [
            ("a.B.c", RUN_WITH),
            ("java.lang.Thread.run", "a.B.runWith"),
            ("a.B.c", "call_stub"),
            ("a.B.c", "StubRoutines"),
            ("a.B.c", "Thread::call_run()"),
        ] {
            assert_eq!(alike(caller, name).as_deref(), Some(name), "{caller} {name}");
        }
    }
}
