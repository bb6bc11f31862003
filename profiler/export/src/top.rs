//! Methods by the time in them and below them.
//!
//! In: a merged tree. Out: methods by name and module, whatever kinds of code they ran as. A method that
//! calls itself counts once for each stack, at its outermost frame, so no total exceeds the whole.

use emberscope_model::{FrameKind, MethodSum, Tree};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

/// How much was sampled of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Samples, as many as were taken.
    pub count: u64,
    /// Sum of the samples' weights, in the unit of their kind.
    pub weight: u64,
}

/// A method and what was sampled in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method<'a> {
    /// The frame's name: `a.b.C.m`, `memcpy`.
    pub name: &'a str,
    /// Library, executable or kernel module.
    pub module: &'a str,
    /// Kinds of code that the method ran as.
    pub kinds: BTreeSet<&'static str>,
    /// Samples that ended in the method.
    pub own: Cost,
    /// Samples that ended in the method or below.
    pub total: Cost,
}

impl<'a> Method<'a> {
    /// The method of a store's sum.
    pub fn of(sum: &'a MethodSum) -> Self {
        Self {
            name: &sum.name,
            module: &sum.module,
            kinds: sum.kinds.iter().map(|kind| kind.slug()).collect(),
            own: Cost { count: sum.self_count, weight: sum.self_weight },
            total: Cost { count: sum.total_count, weight: sum.total_weight },
        }
    }
}

/// Sums a tree by method, in order of first occurrence. Prefix frames of `group` are no methods.
pub fn methods(tree: &Tree) -> Vec<Method<'_>> {
    let mut index: HashMap<(&str, &str), usize> = HashMap::new();
    let mut out: Vec<Method<'_>> = Vec::new();
    // Method of each node; none of the root and of prefix frames.
    let mut of_node: Vec<Option<usize>> = Vec::with_capacity(tree.nodes.len());
    for (at, node) in tree.nodes.iter().enumerate() {
        if at == 0 || node.frame.kind == FrameKind::Label {
            of_node.push(None);
            continue;
        }
        let (name, module) = (node.frame.name.as_ref(), node.frame.module.as_ref());
        let method = *index.entry((name, module)).or_insert_with(|| {
            out.push(Method {
                name,
                module,
                kinds: BTreeSet::new(),
                own: Cost::default(),
                total: Cost::default(),
            });
            out.len() - 1
        });
        let outermost = !has_caller(tree, &of_node, at, method);
        of_node.push(Some(method));
        if let Some(row) = out.get_mut(method) {
            row.kinds.insert(node.frame.kind.slug());
            row.own.count = row.own.count.saturating_add(node.self_count);
            row.own.weight = row.own.weight.saturating_add(node.self_weight);
            if outermost {
                row.total.count = row.total.count.saturating_add(node.total_count);
                row.total.weight = row.total.weight.saturating_add(node.total_weight);
            }
        }
    }
    out
}

/// Whether the method stands above this node. Parents stand before their children in the tree.
fn has_caller(tree: &Tree, of_node: &[Option<usize>], at: usize, method: usize) -> bool {
    let mut at = at;
    loop {
        let Some(parent) = tree.nodes.get(at).map(|n| n.parent as usize).filter(|p| *p < at) else {
            return false;
        };
        if of_node.get(parent).copied().flatten() == Some(method) {
            return true;
        }
        at = parent;
    }
}

/// Most first: by the weight of their own, or of all below them too; then by name.
pub fn sort(methods: &mut [Method<'_>], by_total: bool) {
    methods.sort_by_key(|m| {
        let keys = if by_total { (m.total.weight, m.own.weight) } else { (m.own.weight, m.total.weight) };
        (Reverse(keys), m.name, m.module)
    });
}
