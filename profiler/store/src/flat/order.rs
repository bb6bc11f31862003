//! Nodes that know their callers in preorder.
//!
//! In: for each node its parent, which stands before it, and its symbol. Out: the order in which a parent is
//! followed by its callees, these by symbol.

/// Orders nodes (parent, symbol); node 0 is the root. Siblings have distinct symbols. Out: the place that each has here.
pub(crate) fn preorder(nodes: &[(u32, u32)]) -> Vec<u32> {
    // Callees of a node lie side by side, the last first: a stack pops the first.
    let mut callees: Vec<u32> = (1..nodes.len() as u32).collect();
    let node = |place: u32| nodes.get(place as usize).copied().unwrap_or_default();
    callees.sort_unstable_by_key(|place| {
        let (parent, symbol) = node(*place);
        u64::from(parent) << 32 | u64::from(u32::MAX - symbol)
    });
    // Where a node's callees begin.
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
    let mut order = Vec::with_capacity(nodes.len());
    let mut pending = vec![0_u32];
    while let Some(place) = pending.pop() {
        order.push(place);
        let at = |place: usize| first.get(place).copied().unwrap_or_default() as usize;
        let own = callees.get(at(place as usize)..at(place as usize + 1)).unwrap_or_default();
        pending.extend(own);
    }
    order
}
