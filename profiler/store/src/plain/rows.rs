//! Rows as tests need them.

use emberscope_model::{
    Frame, FrameKind, LabelKey, LabelSetBuilder, Row, SampleKind, Stack, StackEnd, UnknownReason,
};
use std::sync::Arc;

/// Samples of a stage, at a stack of compiled Java methods, root first; `?` is a frame without a name. Each weighs ten.
pub(crate) fn row_of(app: &str, stage: &str, names: &[&str], count: u64) -> Row {
    let frame = |name: &&str| match *name {
        "?" => Arc::new(Frame::unknown(UnknownReason::NoSymbol, "")),
        name => Arc::new(Frame::new(FrameKind::JavaCompiled, name, "")),
    };
    let labels = LabelSetBuilder::new().set(LabelKey::App, app).set(LabelKey::Stage, stage).build();
    Row {
        labels: Arc::new(labels),
        stack: Arc::new(Stack { frames: names.iter().map(frame).collect(), end: StackEnd::Root }),
        kind: SampleKind::Cpu,
        count,
        weight: 10 * count,
    }
}
