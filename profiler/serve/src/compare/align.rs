//! What of two runs is the same thing: by what it is and by its order, never by its number.
//!
//! In: the things of both runs in their order, what each is (a key), and how unlike two of one key are. Out: pairs, and what
//! has no partner. Of one key the order is kept: of all ways to pair them in their order the one that is least unlike. Limit: of
//! one key with more than [`MOST_PAIRS`] possible pairs (a streaming job's batches) the first goes with the first.

use std::collections::BTreeMap;

/// How unlike two things of one key may be, and be one: twice this.
const ALONE: f64 = 0.5;
/// Pairs of one key that are looked at: an eighth of a second, and 2 MB.
const MOST_PAIRS: usize = 250_000;

/// Places on the left and the right; one of them where the other run has not the like.
pub type Pair = (Option<usize>, Option<usize>);

/// Pairs up the things of two runs: those of the left in their order, then what only the right has.
pub fn align<T, K: Ord>(
    left: &[T],
    right: &[T],
    key: impl Fn(usize, &T) -> K,
    unlike: impl Fn(&T, &T) -> f64,
) -> Vec<Pair> {
    let mut of_key: BTreeMap<K, [Vec<usize>; 2]> = BTreeMap::new();
    for (side, things) in [left, right].into_iter().enumerate() {
        for (at, thing) in things.iter().enumerate() {
            if let Some(places) = of_key.entry(key(side, thing)).or_default().get_mut(side) {
                places.push(at);
            }
        }
    }
    let mut pairs: Vec<Pair> = Vec::with_capacity(left.len().max(right.len()));
    for [lefts, rights] in of_key.into_values() {
        let unlike = |l: usize, r: usize| match (left.get(l), right.get(r)) {
            (Some(l), Some(r)) => unlike(l, r),
            _ => f64::MAX,
        };
        pairs.extend(in_order(&lefts, &rights, unlike));
    }
    pairs.sort_by_key(|(left, right)| (left.is_none(), *left, *right));
    pairs
}

/// Pairs of one key.
fn in_order(lefts: &[usize], rights: &[usize], unlike: impl Fn(usize, usize) -> f64) -> Vec<Pair> {
    if lefts.len().saturating_mul(rights.len()) > MOST_PAIRS {
        let longer = lefts.len().max(rights.len());
        return (0..longer).map(|at| (lefts.get(at).copied(), rights.get(at).copied())).collect();
    }
    let wide = rights.len() + 1;
    // How unlike the best pairing of the things from (l, r) on is: ends first.
    let mut rest = vec![0.0_f64; (lefts.len() + 1) * wide];
    let of = |rest: &[f64], l: usize, r: usize| rest.get(l * wide + r).copied().unwrap_or(f64::MAX);
    for l in (0..=lefts.len()).rev() {
        for r in (0..=rights.len()).rev() {
            let mut best = if l == lefts.len() && r == rights.len() { 0.0 } else { f64::MAX };
            if l < lefts.len() {
                best = best.min(ALONE + of(&rest, l + 1, r));
            }
            if r < rights.len() {
                best = best.min(ALONE + of(&rest, l, r + 1));
            }
            if let (Some(left), Some(right)) = (lefts.get(l), rights.get(r)) {
                best = best.min(unlike(*left, *right) + of(&rest, l + 1, r + 1));
            }
            if let Some(place) = rest.get_mut(l * wide + r) {
                *place = best;
            }
        }
    }
    let (mut l, mut r, mut pairs) = (0, 0, Vec::new());
    while l < lefts.len() || r < rights.len() {
        let here = of(&rest, l, r);
        match (lefts.get(l), rights.get(r)) {
            (Some(left), Some(right)) if unlike(*left, *right) + of(&rest, l + 1, r + 1) <= here => {
                pairs.push((Some(*left), Some(*right)));
                (l, r) = (l + 1, r + 1);
            }
            (Some(left), _) if ALONE + of(&rest, l + 1, r) <= here => {
                pairs.push((Some(*left), None));
                l += 1;
            }
            (_, right) => {
                pairs.push((None, right.copied()));
                r += 1;
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(left: &[(&str, u32)], right: &[(&str, u32)]) -> Vec<Pair> {
        align(left, right, |_, (name, _)| (*name).to_owned(), |(_, a), (_, b)| if a == b { 0.0 } else { 0.6 })
    }

    #[test]
    fn things_are_paired_by_what_they_are() {
        let left = [("read", 4), ("join", 8), ("write", 4)];
        let right = [("cache", 4), ("read", 4), ("join", 8), ("write", 4)];
        let want = [(Some(0), Some(1)), (Some(1), Some(2)), (Some(2), Some(3)), (None, Some(0))];
        assert_eq!(pairs(&left, &right), want);
        assert_eq!(pairs(&left, &[]), [(Some(0), None), (Some(1), None), (Some(2), None)]);
        assert_eq!(pairs(&[], &[]), []);
    }

    #[test]
    fn of_equals_the_order_holds_and_the_unlike_one_has_no_partner() {
        let one = |kinds: &[u32]| kinds.iter().map(|kind| ("count", *kind)).collect::<Vec<_>>();
        let of = |left: &[u32], right: &[u32]| pairs(&one(left), &one(right));
        assert_eq!(
            of(&[1, 2, 3], &[9, 1, 2, 3]),
            [(Some(0), Some(1)), (Some(1), Some(2)), (Some(2), Some(3)), (None, Some(0))]
        );
        assert_eq!(of(&[1, 2, 3], &[1, 3]), [(Some(0), Some(0)), (Some(1), None), (Some(2), Some(1))]);
        // One that changed is the same one still, where its neighbours are.
        assert_eq!(of(&[1, 2, 3], &[1, 7, 3]), [(Some(0), Some(0)), (Some(1), Some(1)), (Some(2), Some(2))]);
        assert_eq!(of(&[5, 5], &[5]).iter().filter(|(_, right)| right.is_some()).count(), 1);
    }

    #[test]
    fn too_many_equals_go_by_their_order_alone() {
        let many = vec![("batch", 1); 600];
        let found = pairs(&many, &many[..599]);
        assert_eq!((found.len(), found[0], found[599]), (600, (Some(0), Some(0)), (Some(599), None)));
    }
}
