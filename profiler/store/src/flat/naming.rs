//! By what a tree of some detail tells frames apart, and which of them are one call.
//!
//! A compiler hands a call on by methods that do nothing else: javac and scalac by a bridge, which has the method's name and
//! another signature (JVMS 25, 4.6, ACC_BRIDGE), scalac by `method$` in a trait (Scala 2.12 and later) and by `$anonfun$..$adapted`,
//! which boxes what a lambda takes and gives. A C library starts a thread by two functions, each `[thread start]` where it is
//! stripped. Two bars of one name say nothing more than one.

use emberscope_model::{Detail, Frame, FrameKind};
use std::sync::Arc;

/// What a stripped C library's functions that start a thread are named (`symbolize::native::stripped`).
const THREAD_START: &str = "[thread start]";

/// The frame as a tree of this detail names it.
pub(crate) fn told(frame: &Arc<Frame>, detail: Detail) -> Arc<Frame> {
    if detail.lines && frame.line > 0 {
        let name = format!("{}:{}", frame.name, frame.line).into();
        return Arc::new(Frame { name, ..Frame::clone(frame) });
    }
    match handed_on(frame).filter(|_| !detail.kinds && !detail.lines) {
        Some(name) => Arc::new(Frame { name: name.into(), ..Frame::clone(frame) }),
        None => frame.clone(),
    }
}

/// The method that one of scalac's hands its calls on to, by its name; None: it is not such a one.
fn handed_on(frame: &Frame) -> Option<&str> {
    if family(frame.kind) != FrameKind::JavaCompiled {
        return None;
    }
    let method = frame.name.rsplit('.').next().unwrap_or_default();
    match method.strip_prefix('$') {
        Some(lambda) => lambda.starts_with("anonfun$").then(|| frame.name.strip_suffix("$adapted"))?,
        None => frame.name.strip_suffix('$').filter(|_| method.len() > 1),
    }
}

/// Whether a call only hands on to what it calls, which has the same symbol in a tree of this detail: both are Java,
/// and their signatures differ, or both are starts of a thread. Overloads that call each other look the same, and are one
/// call too.
pub(crate) fn hands_on(caller: &Frame, callee: &Frame, detail: Detail) -> bool {
    let starts = |frame: &Frame| frame.kind == FrameKind::Native && *frame.name == *THREAD_START;
    !detail.kinds && (methods(caller, callee) || starts(caller) && starts(callee))
}

fn methods(caller: &Frame, callee: &Frame) -> bool {
    family(caller.kind) == FrameKind::JavaCompiled
        && family(callee.kind) == FrameKind::JavaCompiled
        && caller.signature.is_some()
        && callee.signature.is_some()
        && caller.signature != callee.signature
}

/// What a tree of this detail tells frames of one name apart by.
pub(crate) const fn kind(frame: &Frame, detail: Detail) -> FrameKind {
    if detail.kinds { frame.kind } else { family(frame.kind) }
}

/// One kind for all ways to run a Java method.
const fn family(kind: FrameKind) -> FrameKind {
    match kind {
        FrameKind::JavaInlined | FrameKind::JavaInterpreted => FrameKind::JavaCompiled,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_starts_of_a_thread_are_one() {
        let start = Frame::new(FrameKind::Native, THREAD_START, "libc.so.6");
        let other = Frame::new(FrameKind::Native, "work", "a.out");
        assert!(hands_on(&start, &start, Detail::default()));
        assert!(
            !hands_on(&start, &start, Detail { kinds: true, ..Detail::default() }),
            "each, where ways are told"
        );
        assert!(!hands_on(&other, &other, Detail::default()), "a recursion");
        assert!(!hands_on(&start, &other, Detail::default()));
    }
}
