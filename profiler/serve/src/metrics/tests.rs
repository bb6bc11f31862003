//! What the text of `/metrics` holds, and that its page holds the same.

use super::*;
use emberscope_model::{DropReason, LedgerSums, StackEnd, ThreadClass, UnknownReason};

const PAGE: &str = include_str!("../../../../docs/reference/metrics.md");

#[test]
fn every_metric_is_on_the_page_and_the_page_names_no_other() {
    let metrics = Metrics::new("1").unwrap();
    let declared: Vec<&str> = metrics.declared().iter().map(|d| d.name).collect();
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| `")).filter_map(|l| l.split('`').next());
    let on_page: Vec<&str> = rows.map(|name| name.split('{').next().unwrap_or(name)).collect();
    for name in &declared {
        assert!(on_page.contains(name), "{name} is missing from docs/reference/metrics.md");
    }
    for name in on_page.iter().filter(|n| n.starts_with("emberscope_") || n.starts_with("process_")) {
        assert!(declared.contains(name), "docs/reference/metrics.md has {name}, which is not declared");
    }
}

#[test]
fn every_reason_has_its_series_from_the_start_and_is_on_the_page() {
    let text = Metrics::new("1").unwrap().text(&StoreUsage::default(), None, false).unwrap();
    let slugs = DropReason::ALL.iter().map(|r| r.slug());
    let slugs = slugs.chain(StackEnd::ALL.iter().map(|r| r.slug()));
    for slug in slugs.chain(UnknownReason::ALL.iter().map(|r| r.slug())) {
        assert!(text.contains(&format!("reason=\"{slug}\"}} 0\n")), "{slug}: {text}");
        assert!(PAGE.contains(&format!("`{slug}`")), "{slug} is missing from docs/reference/metrics.md");
    }
    assert!(text.contains("emberscope_samples_total{type=\"cpu\"} 0\n"));
}

#[test]
fn cpu_of_jvms_by_class_and_mode() {
    let metrics = Metrics::new("1").unwrap();
    let mut sums = LedgerSums::default();
    (sums.accounts.cpu_ns, sums.accounts.user_ns, sums.accounts.system_ns) = (4_000_000_000, 3, 1);
    metrics.sampling.jvm_cpu.add(ThreadClass::Gc, &sums);
    metrics.sampling.jvm_cpu.add(ThreadClass::Gc, &sums);
    let text = metrics.text(&StoreUsage::default(), None, true).unwrap();
    let series = |class: &str, mode: &str, value: &str| {
        let labels = format!("{{mode=\"{mode}\",thread_class=\"{class}\"}}");
        let line = format!("emberscope_jvm_cpu_seconds_total{labels} {value}\n");
        assert!(text.contains(&line), "{line}{text}");
    };
    series("gc", "user", "6");
    series("gc", "system", "2");
    for class in ThreadClass::ALL.iter().filter(|class| **class != ThreadClass::Gc) {
        series(class.slug(), "user", "0");
        series(class.slug(), "system", "0");
    }
}

#[test]
fn totals_from_elsewhere_only_rise() {
    let metrics = Metrics::new("1").unwrap();
    metrics.sampling.lost.raise_to(DropReason::RingFullSample, 5);
    metrics.sampling.lost.raise_to(DropReason::RingFullSample, 3);
    metrics.sampling.lost.add(DropReason::RingFullSample, 2);
    assert_eq!(metrics.sampling.lost.get(DropReason::RingFullSample), 7);
    let usage = StoreUsage { windows: 3, bytes: 9, dropped_for_age: 4, facts: 5, ..StoreUsage::default() };
    let text = metrics.text(&usage, None, true).unwrap();
    for line in [
        "emberscope_store_windows 3",
        "emberscope_store_bytes 9",
        "emberscope_store_dropped_windows_total{reason=\"age\"} 4",
        "emberscope_store_spark_facts_total{outcome=\"kept\"} 5",
        "emberscope_store_spark_facts_total{outcome=\"refused\"} 0",
        "emberscope_ready 1",
        "# TYPE process_cpu_seconds_total counter",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}: {text}");
    }
}

#[test]
fn the_process_is_measured() {
    let text = Metrics::new("1").unwrap().text(&StoreUsage::default(), None, true).unwrap();
    let value = |name: &str| -> f64 {
        let line = text.lines().find(|l| l.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert!(value("process_resident_memory_bytes") > 1e6);
    assert!(value("process_cpu_seconds_total") >= 0.0);
    assert!(value("process_start_time_seconds") > 1.6e9);
}
