//! Numbers the rules of all files: a rule in, its place in the walker's array out.
//!
//! Number 0 is the gap. A rule's number is free again when the last table that has it goes. When all numbers are taken,
//! a rule gets that of `Unsupported`: counted.

use profiler_ebpf::{MAX_RULES, UnwindRule};
use std::collections::HashMap;

/// All rules that a table has, with their numbers and users.
#[derive(Debug)]
pub struct Dictionary {
    numbers: HashMap<UnwindRule, (u32, u32)>,
    free: Vec<u32>,
    next: u32,
    limit: u32,
    /// Rules that got no number.
    pub refused: u64,
}

impl Default for Dictionary {
    fn default() -> Self {
        Self::new(MAX_RULES)
    }
}

impl Dictionary {
    /// The number of `Unsupported`: of what the walker cannot apply, and of rules for which no number is left.
    pub const UNSUPPORTED: u32 = 1;

    fn new(limit: u32) -> Self {
        Self { numbers: HashMap::new(), free: Vec::new(), next: 2, limit, refused: 0 }
    }

    /// Rules that have a number.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The number of a rule, and whether the walker must be told of it. A table more has the rule then.
    pub fn take(&mut self, rule: UnwindRule) -> (u32, bool) {
        if rule == UnwindRule::GAP {
            return (0, false);
        }
        if rule == UnwindRule::UNSUPPORTED {
            return (Self::UNSUPPORTED, false);
        }
        if let Some((number, users)) = self.numbers.get_mut(&rule) {
            *users += 1;
            return (*number, false);
        }
        let fresh = || if self.next < self.limit { Some(self.next) } else { None };
        let Some(number) = self.free.pop().or_else(fresh) else {
            self.refused += 1;
            return (Self::UNSUPPORTED, false);
        };
        self.next = self.next.max(number + 1);
        self.numbers.insert(rule, (number, 1));
        (number, true)
    }

    /// A table that has the rule goes: without any its number is free.
    pub fn give(&mut self, rule: UnwindRule) {
        if let Some((number, users)) = self.numbers.get_mut(&rule) {
            *users -= 1;
            if *users == 0 {
                self.free.push(*number);
                self.numbers.remove(&rule);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profiler_ebpf::{CfaRule, FpRule, ReturnRule};

    fn rule(offset: i32) -> UnwindRule {
        UnwindRule {
            cfa: CfaRule::Sp,
            cfa_offset: offset,
            fp: FpRule::Same,
            fp_offset: 0,
            return_address: ReturnRule::BelowCfa,
        }
    }

    #[test]
    fn numbers_are_shared_given_back_and_bounded() {
        let mut all = Dictionary::new(4);
        assert_eq!(all.take(UnwindRule::GAP), (0, false));
        assert_eq!(
            (all.take(rule(8)), all.take(rule(8)), all.take(rule(16))),
            ((2, true), (2, false), (3, true))
        );
        assert_eq!((all.take(rule(24)), all.refused, all.len()), ((1, false), 1, 2));
        all.give(rule(8));
        assert_eq!(all.take(rule(24)).0, 1, "still one user");
        all.give(rule(8));
        assert_eq!(all.take(rule(24)), (2, true));
        all.give(rule(99));
    }
}
