//! Nodes that know their callers in preorder.
//!
//! In: for each node its parent, which stands before it, and its symbol. Out: the order in which a parent is
//! followed by its callees, these by symbol.

/// Callees of each of some nodes, side by side, those of the greatest symbol first: a stack pops the least.
pub(super) struct Callees {
    all: Vec<u32>,
    /// Where a node's callees begin.
    first: Vec<u32>,
}

impl Callees {
    /// Of nodes (parent, symbol); node 0 is the root.
    pub fn of(nodes: &[(u32, u32)]) -> Self {
        let mut all: Vec<u32> = (1..nodes.len() as u32).collect();
        let node = |place: u32| nodes.get(place as usize).copied().unwrap_or_default();
        all.sort_unstable_by_key(|place| {
            let (parent, symbol) = node(*place);
            u64::from(parent) << 32 | u64::from(u32::MAX - symbol)
        });
        let mut first = vec![0_u32; nodes.len() + 1];
        for (parent, _) in nodes.iter().skip(1) {
            if let Some(count) = first.get_mut(*parent as usize + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for place in &mut first {
            sum += *place;
            *place = sum;
        }
        Self { all, first }
    }

    /// Callees of the node at a place.
    pub fn below(&self, place: u32) -> &[u32] {
        let at = |place: usize| self.first.get(place).copied().unwrap_or_default() as usize;
        self.all.get(at(place as usize)..at(place as usize + 1)).unwrap_or_default()
    }
}

/// Orders nodes (parent, symbol); node 0 is the root. Siblings have distinct symbols. Out: the order of their places.
#[cfg(test)]
pub(crate) fn preorder(nodes: &[(u32, u32)]) -> Vec<u32> {
    let callees = Callees::of(nodes);
    let mut order = Vec::with_capacity(nodes.len());
    let mut pending = vec![0_u32];
    while let Some(place) = pending.pop() {
        order.push(place);
        pending.extend(callees.below(place));
    }
    order
}
