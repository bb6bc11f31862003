//! A difference as JSON: both sides, what they sum to, and the methods by what they add to it.
//!
//! In: aligned trees of one kind of samples and two [`Side`]s. Out: the answer's rows. A scaled amount a of n samples has the
//! standard error a/sqrt(n), as sums of every kind have; where sides are scaled to equal totals, the total is given and the share p
//! is what varies: total * sqrt(p(1-p)/N). A difference has the root of both errors' squares.

use crate::answer::share_error;
use emberscope_api::{DiffNode, DiffRow, MethodName, MethodOrder, Pair, Scale};
use emberscope_export::{Aligned, Cost, Method, SIGNIFICANT, error_of_both, methods};
use emberscope_model::{Node, SampleKind, Tree};
use std::cmp::Ordering;

/// One side of a comparison, scaled.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    /// What the samples count.
    pub kind: SampleKind,
    /// What the amounts of the side are multiplied by.
    pub factor: f64,
    /// All samples of the side, and their weight.
    pub whole: Cost,
}

impl Side {
    /// The amount of a cost, scaled: seconds, or what is no time in the unit of its kind.
    fn amount(&self, cost: Cost) -> f64 {
        cost.weight as f64 / self.kind.facts().amount.of as f64 * self.factor
    }
    fn error(&self, cost: Cost, scale: Scale) -> f64 {
        match scale {
            Scale::Equal => {
                self.amount(self.whole) * share_error(cost.count, self.whole.count).unwrap_or_default()
            }
            Scale::Absolute | Scale::Task => self.amount(cost) / (cost.count.max(1) as f64).sqrt(),
        }
    }
}

/// What makes weights into figures.
pub struct Compared<'a> {
    /// Both call trees.
    pub trees: &'a Aligned,
    /// What is held against.
    pub left: Side,
    /// What is compared.
    pub right: Side,
    /// What makes the sides comparable.
    pub scale: Scale,
}

/// A method on both sides.
pub struct Row<'a> {
    left: Method<'a>,
    right: Method<'a>,
}

impl Row<'_> {
    /// Name and module of the method.
    pub fn name(&self) -> (&str, &str) {
        (self.right.name, self.right.module)
    }
}

impl<'a> Compared<'a> {
    /// Two scaled amounts and their difference.
    fn pair(&self, left: Cost, right: Cost) -> Pair {
        let error = error_of_both(self.left.error(left, self.scale), self.right.error(right, self.scale));
        let pair = Pair {
            difference: Some(self.difference(left, right)),
            difference_error: Some(error),
            left_samples: left.count,
            right_samples: right.count,
            ..Pair::default()
        };
        pair.with_sides(self.right.kind, [self.left.amount(left), self.right.amount(right)])
    }

    fn difference(&self, left: Cost, right: Cost) -> f64 {
        self.right.amount(right) - self.left.amount(left)
    }

    /// The sums of both sides.
    pub fn total(&self) -> Pair {
        let mut total = self.pair(self.left.whole, self.right.whole);
        if self.scale == Scale::Equal {
            // They were made so.
            total.difference_error = None;
        }
        total
    }

    /// Whether the sums differ by more than chance explains, or any of the methods. Of many methods some differ by two errors
    /// by chance alone: the bound for m of them is sqrt(2 ln(m / 0.05)), which all stay below in 95 of 100 cases (the union
    /// bound on the tails of m normal distributions).
    pub fn significant(&self, rows: &[Row<'_>]) -> bool {
        let bound = (2.0 * (rows.len().max(1) as f64 / 0.05).ln()).sqrt();
        let of_method = |row: &Row<'_>| {
            self.pair(row.left.own, row.right.own).is_beyond(bound)
                || self.pair(row.left.total, row.right.total).is_beyond(bound)
        };
        self.total().is_beyond(SIGNIFICANT) || rows.iter().any(of_method)
    }

    /// The methods of both, those first that differ most in what is of them alone or in their total.
    pub fn methods(&self, sort: MethodOrder) -> Vec<Row<'a>> {
        // Aligned trees have the same methods in the same order.
        let both = methods(&self.trees.left).into_iter().zip(methods(&self.trees.right));
        let mut rows: Vec<Row<'a>> = both.map(|(left, right)| Row { left, right }).collect();
        let size = |row: &Row<'_>| {
            let own = self.difference(row.left.own, row.right.own).abs();
            let total = self.difference(row.left.total, row.right.total).abs();
            match sort {
                MethodOrder::Own => (own, total),
                MethodOrder::Total => (total, own),
            }
        };
        rows.sort_by(|a, b| {
            let (x, y) = (size(a), size(b));
            let sizes = y.partial_cmp(&x).unwrap_or(Ordering::Equal);
            sizes.then_with(|| a.name().cmp(&b.name()))
        });
        rows
    }

    /// A method's row.
    pub fn row(&self, row: &Row<'a>) -> DiffRow<'a> {
        DiffRow {
            method: MethodName { name: row.right.name.into(), module: row.right.module.into() },
            kinds: row.left.kinds.iter().chain(&row.right.kinds).map(|kind| (*kind).into()).collect(),
            own: self.pair(row.left.own, row.right.own),
            total: self.pair(row.left.total, row.right.total),
        }
    }

    /// The merged tree, a caller before its callees; amounts are scaled.
    pub fn nodes(&self) -> Vec<DiffNode<'a>> {
        let trees: &'a Aligned = self.trees;
        let own = |node: &Node| Cost { count: node.self_count, weight: node.self_weight };
        let total = |node: &Node| Cost { count: node.total_count, weight: node.total_weight };
        let both = trees.left.nodes.iter().zip(&trees.right.nodes).enumerate();
        let row = |(id, (left, right)): (usize, (&Node, &'a Node))| DiffNode {
            parent: (id > 0).then_some(right.parent),
            method: MethodName { name: (&*right.frame.name).into(), module: (&*right.frame.module).into() },
            kind: right.frame.kind.slug().into(),
            own: [self.left.amount(own(left)), self.right.amount(own(right))],
            total: [self.left.amount(total(left)), self.right.amount(total(right))],
        };
        both.map(row).collect()
    }
}

/// Samples and weight of a whole tree.
pub fn whole(tree: &Tree) -> Cost {
    tree.nodes
        .first()
        .map_or_else(Cost::default, |root| Cost { count: root.total_count, weight: root.total_weight })
}
