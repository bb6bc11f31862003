//! Kinds of metrics, and what declares them: a counter for each value of a closed list, CPU by class of thread, totals
//! that are counted elsewhere. What is declared is remembered by name and sentence.

use emberscope_model::{LedgerSums, ThreadClass};
use prometheus::core::Collector;
use prometheus::{Counter, IntCounter, IntCounterVec, IntGauge, Opts, Registry};

/// One series for each value of a closed list.
pub struct PerReason<T: 'static> {
    list: &'static [T],
    counters: Vec<IntCounter>,
}

impl<T: Copy + PartialEq> PerReason<T> {
    /// Adds to a reason's counter.
    pub fn add(&self, reason: T, count: u64) {
        if let Some(counter) = self.counter(reason) {
            counter.inc_by(count);
        }
    }
    /// Brings a reason's counter up to a total that is counted elsewhere (a BPF map).
    pub fn raise_to(&self, reason: T, total: u64) {
        if let Some(counter) = self.counter(reason) {
            raise_to(counter, total);
        }
    }
    /// What a reason's counter says.
    pub fn get(&self, reason: T) -> u64 {
        self.counter(reason).map_or(0, IntCounter::get)
    }
    fn counter(&self, reason: T) -> Option<&IntCounter> {
        self.list.iter().position(|r| *r == reason).and_then(|i| self.counters.get(i))
    }
}

/// CPU seconds of the node's JVMs by class of thread, in user mode and in the kernel.
pub struct JvmCpu(pub(super) Vec<[Counter; 2]>);

impl JvmCpu {
    /// Adds what threads of a class used, from a closed window's ledger.
    pub fn add(&self, class: ThreadClass, sums: &LedgerSums) {
        let (user, system) = sums.user_and_system_ns();
        for (counter, ns) in self.0.get(class as usize).into_iter().flatten().zip([user, system]) {
            counter.inc_by(ns as f64 / 1e9);
        }
    }
}

/// Brings a counter up to a total that is counted elsewhere; a total that went back changes nothing.
/// For one writer a counter: two at once could both add the difference.
pub fn raise_to(counter: &IntCounter, total: u64) {
    counter.inc_by(total.saturating_sub(counter.get()));
}

/// A metric as it was declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Name of the metric: `emberscope_store_windows`.
    pub name: &'static str,
    /// What the metric counts or measures, in a sentence.
    pub help: &'static str,
}

/// Metrics in the making.
pub(super) struct Builder {
    pub registry: Registry,
    pub declared: Vec<Declared>,
}

impl Builder {
    /// Declares a metric.
    ///
    /// # Errors
    /// The name is declared already.
    pub fn put<C: Collector + Clone + 'static>(
        &mut self,
        name: &'static str,
        help: &'static str,
        metric: C,
    ) -> prometheus::Result<C> {
        self.registry.register(Box::new(metric.clone()))?;
        self.declared.push(Declared { name, help });
        Ok(metric)
    }
    /// Declares a counter.
    ///
    /// # Errors
    /// As [`Self::put`], and where the name cannot be a metric's.
    pub fn counter(&mut self, name: &'static str, help: &'static str) -> prometheus::Result<IntCounter> {
        self.put(name, help, IntCounter::new(name, help)?)
    }
    /// Declares a gauge.
    ///
    /// # Errors
    /// As [`Self::counter`].
    pub fn gauge(&mut self, name: &'static str, help: &'static str) -> prometheus::Result<IntGauge> {
        self.put(name, help, IntGauge::new(name, help)?)
    }
    /// Declares counters, told apart by labels.
    ///
    /// # Errors
    /// As [`Self::counter`], and where a label's name cannot be one.
    pub fn counters(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[&str],
    ) -> prometheus::Result<IntCounterVec> {
        self.put(name, help, IntCounterVec::new(Opts::new(name, help), labels)?)
    }
    /// Declares a counter for each value of a closed list, told apart by one label.
    ///
    /// # Errors
    /// As [`Self::counters`].
    pub fn per_reason<T: Copy>(
        &mut self,
        (name, help, label): (&'static str, &'static str, &str),
        list: &'static [T],
        slug: fn(T) -> &'static str,
    ) -> prometheus::Result<PerReason<T>> {
        let vec = self.counters(name, help, &[label])?;
        let counters = list.iter().map(|r| vec.with_label_values(&[slug(*r)])).collect();
        Ok(PerReason { list, counters })
    }
}
