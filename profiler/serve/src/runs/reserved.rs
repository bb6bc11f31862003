//! What the executors of an application reserve, cores and memory, as long as they are there; and what that costs.
//!
//! In: what Spark said of executors and settings, prices. Out: hours. Memory is what a cluster manager sets aside for an
//! executor (Spark 3.5 and 4.x: ResourceProfile.scala, YarnAllocator.scala, BasicExecutorFeatureStep.scala): its heap and memory
//! off it, and on YARN and Kubernetes overhead and that of Python workers. Defaults are Spark's. Of executors without cores (a
//! driver's own entry in a cluster) and of those whose beginning Spark did not tell nothing is counted.

use emberscope_api::Reserved;
use emberscope_model::{Deploy, SparkFact, SparkFactKind, WallTime, size_in_bytes};
use std::collections::BTreeMap;

const MIB: u64 = 1 << 20;
const GIB: f64 = (1_u64 << 30) as f64;
const HOUR: f64 = 3600.0;
/// `spark.executor.memory`, `spark.driver.memory`.
const HEAP: u64 = 1024 * MIB;
/// `spark.executor.minMemoryOverhead`.
const LEAST_OVERHEAD: u64 = 384 * MIB;
/// `spark.executor.memoryOverheadFactor`.
const OVERHEAD: f64 = 0.1;
/// The executor that a driver in local mode is.
const DRIVER: &str = "driver";

/// What an hour costs, in whatever money the operator counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prices {
    /// Of a core.
    pub core_hour: Option<f64>,
    /// Of a GiB of memory.
    pub gib_hour: Option<f64>,
}

/// The settings among facts, by name.
pub fn settings(facts: &[SparkFact]) -> BTreeMap<String, String> {
    let settings = facts.iter().filter(|fact| fact.kind == SparkFactKind::Setting);
    settings.map(|fact| (fact.id.to_string(), fact.name.to_string())).collect()
}

/// What an application's executors reserved, those that are there until `until`, by how it was deployed and its [`settings`].
/// None: Spark told of none.
pub fn reserved(
    facts: &[SparkFact],
    (deploy, settings): (Option<&str>, &BTreeMap<String, String>),
    until: WallTime,
    prices: Prices,
) -> Option<Reserved> {
    let is_counted = |fact: &&SparkFact| fact.kind == SparkFactKind::Executor && fact.count > 0;
    let (mut executors, mut core_hours, mut gib_hours) = (0, 0.0, Some(0.0));
    for executor in facts.iter().filter(is_counted) {
        let Some(begun) = executor.begun else { continue };
        let ended = executor.ended.unwrap_or(until).max(begun);
        let hours = (ended.as_secs_f64() - begun.as_secs_f64()) / HOUR;
        executors += 1;
        core_hours += hours * executor.count as f64;
        let gib = memory(settings, deploy, &executor.id).map(|bytes| bytes as f64 / GIB);
        gib_hours = gib_hours.zip(gib).map(|(sum, gib): (f64, f64)| sum + hours * gib);
    }
    let cost = match (prices.core_hour, prices.gib_hour) {
        (None, None) => None,
        (core, None) => core.map(|price| price * core_hours),
        (core, Some(price)) => gib_hours.map(|gib| price * gib + core.unwrap_or(0.0) * core_hours),
    };
    (executors > 0).then_some(Reserved { executors, core_hours, gib_hours, cost })
}

/// Bytes that are set aside for an executor. None: no settings are told, or not as sizes are written.
fn memory(settings: &BTreeMap<String, String>, deploy: Option<&str>, executor: &str) -> Option<u64> {
    if settings.is_empty() {
        return None;
    }
    let size = |name: &str, unit| match settings.get(name) {
        None => Some(None),
        Some(text) => size_in_bytes(text, unit).map(Some),
    };
    let heap = if executor == DRIVER { "spark.driver.memory" } else { "spark.executor.memory" };
    let heap = size(heap, MIB)?.unwrap_or(HEAP);
    let is_on = |name: &str| settings.get(name).is_some_and(|text| text == "true");
    let off_heap =
        if is_on("spark.memory.offHeap.enabled") { size("spark.memory.offHeap.size", 1)? } else { None };
    let mut bytes = heap.saturating_add(off_heap.unwrap_or(0));
    let in_container =
        [Deploy::Yarn, Deploy::Kubernetes].into_iter().any(|known| deploy == Some(known.slug()));
    if in_container {
        let factors = ["spark.executor.memoryOverheadFactor", "spark.kubernetes.memoryOverheadFactor"];
        let factor = factors.into_iter().find_map(|name| settings.get(name));
        let factor = factor.map_or(Some(OVERHEAD), |text| text.parse().ok())?;
        let usual = LEAST_OVERHEAD.max((heap as f64 * factor) as u64);
        let overhead = size("spark.executor.memoryOverhead", MIB)?.unwrap_or(usual);
        let python = size("spark.executor.pyspark.memory", MIB)?.unwrap_or(0);
        bytes = bytes.saturating_add(overhead).saturating_add(python);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executor(id: &str, cores: u64, begun: u64, ended: Option<u64>) -> SparkFact {
        let at = |seconds| WallTime::from_millis(seconds * 1000);
        SparkFact {
            count: cores,
            begun: Some(at(begun)),
            ended: ended.map(at),
            ..SparkFact::new(SparkFactKind::Executor, id)
        }
    }

    fn set(all: &[(&str, &str)]) -> Vec<SparkFact> {
        all.iter().map(|(name, value)| SparkFact::setting(name, value).unwrap()).collect()
    }

    fn at_7200(facts: &[SparkFact], deploy: &str, prices: Prices) -> Option<Reserved> {
        reserved(facts, (Some(deploy), &settings(facts)), WallTime::from_millis(7_200_000), prices)
    }

    #[test]
    fn hours_are_from_beginning_to_end() {
        let mut facts = vec![
            executor("driver", 0, 0, None),
            executor("1", 4, 3_600, None),
            executor("2", 2, 0, Some(1_800)),
            SparkFact { begun: None, ..executor("3", 9, 0, None) },
            // Of a clock that is behind.
            executor("4", 8, 9_000, None),
        ];
        let none = Prices::default();
        let told = at_7200(&facts, "standalone", none).unwrap();
        assert_eq!((told.executors, told.core_hours, told.gib_hours, told.cost), (3, 5.0, None, None));
        facts.extend(set(&[("spark.executor.memory", "4g")]));
        let prices = Prices { core_hour: Some(0.5), gib_hour: Some(0.1) };
        let told = at_7200(&facts, "standalone", prices).unwrap();
        assert_eq!(told.gib_hours, Some(6.0));
        assert!((told.cost.unwrap() - 3.1).abs() < 1e-9, "{told:?}");
        assert_eq!(at_7200(&facts[..1], "yarn", prices), None);
    }

    #[test]
    fn a_price_without_what_it_is_of_makes_no_cost() {
        let facts = [executor("1", 1, 0, None)];
        let cost =
            |core_hour, gib_hour| at_7200(&facts, "yarn", Prices { core_hour, gib_hour }).unwrap().cost;
        assert_eq!(
            (cost(Some(3.0), None), cost(None, Some(1.0)), cost(Some(3.0), Some(1.0))),
            (Some(6.0), None, None)
        );
    }

    #[test]
    fn memory_is_what_a_cluster_manager_sets_aside() {
        let memory = |all: &[(&str, &str)], deploy: &str, executor: &str| {
            memory(&settings(&set(all)), Some(deploy), executor).map(|bytes| bytes / MIB)
        };
        let other = ("spark.task.cpus", "1");
        assert_eq!(memory(&[], "yarn", "1"), None);
        assert_eq!(memory(&[other], "standalone", "1"), Some(1024));
        assert_eq!(memory(&[other], "yarn", "1"), Some(1024 + 384));
        assert_eq!(memory(&[("spark.executor.memory", "10g")], "kubernetes", "1"), Some(11 * 1024));
        let python = [("spark.executor.memory", "10g"), ("spark.kubernetes.memoryOverheadFactor", "0.4")];
        assert_eq!(memory(&python, "kubernetes", "1"), Some(14 * 1024));
        let all = [
            ("spark.executor.memory", "2048"),
            ("spark.executor.memoryOverhead", "512"),
            ("spark.executor.pyspark.memory", "1g"),
            ("spark.memory.offHeap.enabled", "true"),
            ("spark.memory.offHeap.size", "1073741824"),
        ];
        assert_eq!(memory(&all, "yarn", "1"), Some(2048 + 512 + 1024 + 1024));
        assert_eq!(memory(&all, "local-cluster", "1"), Some(2048 + 1024));
        assert_eq!(memory(&[("spark.driver.memory", "3g")], "local", "driver"), Some(3072));
        assert_eq!(memory(&[("spark.executor.memory", "many")], "yarn", "1"), None);
    }
}
