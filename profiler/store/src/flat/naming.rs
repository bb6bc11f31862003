//! By what a tree of some detail tells frames apart.

use emberscope_model::{Detail, Frame, FrameKind};
use std::sync::Arc;

/// The frame as a tree of this detail names it.
pub(crate) fn told(frame: &Arc<Frame>, detail: Detail) -> Arc<Frame> {
    match detail.lines && frame.line > 0 {
        true => {
            let name = format!("{}:{}", frame.name, frame.line).into();
            Arc::new(Frame { name, ..Frame::clone(frame) })
        }
        false => frame.clone(),
    }
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
