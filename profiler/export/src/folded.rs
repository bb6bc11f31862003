//! Folded stacks: `root;...;leaf count`, a line for each stack with samples, as flamegraph.pl, inferno
//! and speedscope read them.
//!
//! Sorted name by name from the root, so that the same samples give the same text. With `annotate`
//! names carry async-profiler's suffix for their kind. Names are cleaned so that a line stays a line
//! and its last word the count.

use super::ExportOptions;
use super::text::clean;
use super::walk::{Below, Path, preorder};
use emberscope_model::{FrameKind, Tree};
use std::io::{self, Write};

pub(super) fn write(tree: &Tree, options: &ExportOptions, out: &mut impl Write) -> io::Result<()> {
    let mut path = Path::default();
    preorder(tree, |visit| {
        if visit.depth > 0 {
            let frame = &visit.node.frame;
            // A prefix frame ends a line only when samples without any frame are its own.
            let inside = frame.kind == FrameKind::Label && options.unit.own(visit.node) == 0;
            let name = clean(&frame.name, if inside { ' ' } else { '_' });
            if options.annotate {
                path.set(visit.depth, &format!("{name}{}", frame.kind.suffix()));
            } else {
                path.set(visit.depth, &name);
            }
        }
        let number = options.unit.own(visit.node);
        if number > 0 {
            // Samples at the root itself have no frame at all.
            let text = Some(path.text()).filter(|_| visit.depth > 0).unwrap_or("(no frames)");
            writeln!(out, "{text} {number}")?;
        }
        Ok(Below::Go)
    })
}
