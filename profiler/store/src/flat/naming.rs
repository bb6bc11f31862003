//! By what a tree of some detail tells frames apart, and which of them are one call.
//!
//! A compiler hands a call on by methods that do nothing else: javac and scalac by a bridge, which has the method's name and
//! another signature (JVMS 25, 4.6, ACC_BRIDGE), scalac by `method$` in a trait (Scala 2.12 and later) and by `$anonfun$..$adapted`,
//! which boxes what a lambda takes and gives. Two bars of one name say nothing more than one.

use emberscope_model::{Detail, Frame, FrameKind};
use std::sync::Arc;

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

/// Whether a call only hands on to the method that it calls, which has the same symbol in a tree of this detail: both are Java,
/// and their signatures differ. Overloads that call each other look the same, and are one call too.
pub(crate) fn hands_on(caller: &Frame, callee: &Frame, detail: Detail) -> bool {
    !detail.kinds
        && family(caller.kind) == FrameKind::JavaCompiled
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
