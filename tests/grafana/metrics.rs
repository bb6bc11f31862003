//! Metrics in dashboards and alerts: each is one of the daemon's.

use super::{grafana, list, yaml};
use anyhow::{Context, Result};

/// Alerts ask for metrics that there are, and say what to do.
#[test]
fn alerts_ask_for_what_there_is() -> Result<()> {
    let file = yaml("prometheus/emberscope-rules.yaml")?;
    let groups = list(&file, "groups");
    let mut names = std::collections::BTreeSet::new();
    for rule in groups.iter().flat_map(|group| list(group, "rules")) {
        let name = rule["alert"].as_str().context("an alert")?;
        assert!(names.insert(name), "two alerts {name}");
        let expression = rule["expr"].as_str().context("an expression")?;
        let found = metrics_of(expression).with_context(|| name.to_owned())?;
        assert!(found > 0 || expression.starts_with("up{"), "{name}: {expression}");
        for annotation in ["summary", "description"] {
            assert!(
                rule["annotations"][annotation].as_str().is_some_and(|text| !text.is_empty()),
                "{name}: {annotation}"
            );
        }
        assert!(rule["labels"]["severity"].is_string(), "{name}");
    }
    assert!(names.len() > 10 && names.iter().any(|name| name.starts_with("SparkJob")), "{names:?}");
    let classes: Vec<&str> = emberscope_model::ThreadClass::ALL.iter().map(|class| class.slug()).collect();
    assert!(classes.contains(&"gc"), "{classes:?}");
    Ok(())
}

/// Checks that each metric of an expression, and each label that stands with one, is in our `/metrics`. How many.
pub fn metrics_of(expression: &str) -> Result<usize> {
    use emberscope_serve::Metrics;
    let metrics = Metrics::new("test")?;
    let text = metrics.text(&Default::default(), None, true)?;
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = 0;
    // `label_values(metric, label)` ends with a label of Prometheus's own.
    for name in expression.split(|c| !word(c)) {
        let ours = name.starts_with("emberscope_") || name.starts_with("process_");
        if ours {
            let declared = metrics.declared().iter().any(|metric| metric.name == name);
            let of_jobs = emberscope_serve::JOB_METRICS.iter().any(|metric| metric.name == name);
            anyhow::ensure!(declared || of_jobs, "there is no metric {name}");
            found += 1;
        }
    }
    // Labels: of `by (...)`, and before a comparison.
    let page = std::fs::read_to_string(grafana().join("../docs/reference/metrics.md"))?;
    let known = |label: &str| {
        let documented =
            page.lines().filter_map(|l| l.strip_prefix("| `")?.split_once('}')?.0.split_once('{'));
        // Of jobs' metrics: JOB_METRICS of the daemon's server.
        ["instance", "job", "app_run", "user", "wait"].contains(&label)
            || text.contains(&format!("{label}=\""))
            || documented.flat_map(|(_, labels)| labels.split(',')).any(|l| l == label)
    };
    let grouped =
        expression.split("by (").skip(1).filter_map(|rest| rest.split_once(')')).map(|(labels, _)| labels);
    for label in grouped.flat_map(|labels| labels.split(',')).map(str::trim) {
        anyhow::ensure!(known(label), "there is no label {label}");
    }
    let bytes = expression.as_bytes();
    for (at, _) in expression
        .match_indices("=\"")
        .chain(expression.match_indices("=~\""))
        .chain(expression.match_indices("!~\""))
    {
        let begin = bytes[..at].iter().rposition(|b| !word(*b as char)).map_or(0, |i| i + 1);
        let label = &expression[begin..at];
        anyhow::ensure!(label.is_empty() || known(label), "there is no label {label}");
    }
    Ok(found)
}
