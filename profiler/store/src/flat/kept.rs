//! Shapes that are kept for the next query.
//!
//! Limit: [`MAX_KEPT`] a part or block, the one that was asked for longest ago goes.

use super::Shape;
use crate::facts::Stacks;
use emberscope_model::Detail;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most are asked in one detail, or by line beside it.
const MAX_KEPT: usize = 2;

/// The shapes of one part or block, each with how many nodes and frames it was made of.
#[derive(Debug, Default)]
pub(crate) struct Shapes(Mutex<Vec<(usize, usize, Arc<Shape>)>>);

impl Shapes {
    fn kept(&self) -> MutexGuard<'_, Vec<(usize, usize, Arc<Shape>)>> {
        // Each of its changes is one statement.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The shape of stacks to which some may have come since it was last asked.
    pub fn of(&self, stacks: &Stacks, detail: Detail) -> Arc<Shape> {
        let made_of = (stacks.nodes.len(), stacks.frames.len());
        let mut kept = self.kept();
        kept.retain(|(nodes, frames, _)| (*nodes, *frames) == made_of);
        if let Some(place) = kept.iter().position(|(.., shape)| shape.detail() == detail) {
            let known = kept.remove(place);
            let shape = known.2.clone();
            kept.push(known);
            return shape;
        }
        drop(kept);
        let shape = Arc::new(Shape::of(stacks, detail));
        let mut kept = self.kept();
        if kept.len() >= MAX_KEPT {
            kept.remove(0);
        }
        kept.push((made_of.0, made_of.1, shape.clone()));
        shape
    }

    /// Forgets the shapes.
    pub fn let_go(&self) {
        self.kept().clear();
    }

    /// Bytes of memory that the shapes take, estimated.
    pub fn bytes(&self) -> usize {
        self.kept().iter().map(|(.., shape)| shape.bytes()).sum()
    }
}
