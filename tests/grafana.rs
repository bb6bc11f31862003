//! What grafana/ holds is well formed, and asks only for what the query API has.
//!
//! Every profile type, label, selector and metric in a dashboard is looked up in the daemon's own lists; every
//! panel and variable uses the data source that is chosen on its dashboard, at first one that a provisioning file makes; links
//! carry what the page understands.

mod chosen;
mod metrics;

use anyhow::{Context, Result};
use emberscope_model::LabelKey;
use emberscope_serve::{pyroscope::types, selector};
use metrics::metrics_of;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn grafana() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../grafana")
}

fn yaml(path: &str) -> Result<Value> {
    let text = std::fs::read_to_string(grafana().join(path)).with_context(|| path.to_owned())?;
    serde_yaml_ng::from_str(&text).with_context(|| path.to_owned())
}

fn dashboards() -> Result<Vec<(PathBuf, Value)>> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(grafana().join("dashboards"))? {
        let path = entry?.path();
        let dashboard = serde_json::from_str(&std::fs::read_to_string(&path)?);
        out.push((path.clone(), dashboard.with_context(|| path.display().to_string())?));
    }
    assert!(!out.is_empty(), "no dashboard");
    Ok(out)
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// Grafana puts a variable's value where `$name`, `${name}` or `${name:format}` stands.
fn filled(selector: &str, variables: &[&str]) -> String {
    let mut out = selector.to_owned();
    for name in variables {
        for spelling in [format!("${{{name}:regex}}"), format!("${{{name}}}"), format!("${name}")] {
            out = out.replace(&spelling, ".*");
        }
    }
    out
}

#[test]
fn the_data_source_is_grafanas_bundled_one() -> Result<()> {
    let file = yaml("provisioning/datasources/emberscope.yaml")?;
    assert_eq!(file["apiVersion"], 1);
    let [source] = list(&file, "datasources") else { anyhow::bail!("one data source") };
    assert_eq!(source["type"], "grafana-pyroscope-datasource");
    assert_eq!(source["uid"], "emberscope");
    assert_eq!(source["access"], "proxy");
    // The token is a secret: its header's value must be where Grafana encrypts it.
    assert_eq!(source["jsonData"]["httpHeaderName1"], "Authorization");
    assert_eq!(source["secureJsonData"]["httpHeaderValue1"], "Bearer $EMBERSCOPE_TOKEN");
    Ok(())
}

#[test]
fn the_provider_loads_dashboards_from_files() -> Result<()> {
    let file = yaml("provisioning/dashboards/emberscope.yaml")?;
    let [provider] = list(&file, "providers") else { anyhow::bail!("one provider") };
    assert_eq!(provider["type"], "file");
    assert!(provider["options"]["path"].as_str().is_some_and(|p| p.starts_with('/')));
    Ok(())
}

#[test]
fn the_metrics_come_from_grafanas_bundled_prometheus_source() -> Result<()> {
    let file = yaml("provisioning/datasources/prometheus.yaml")?;
    let [source] = list(&file, "datasources") else { anyhow::bail!("one data source") };
    assert_eq!((&source["type"], &source["uid"]), (&"prometheus".into(), &"emberscope-prometheus".into()));
    Ok(())
}

fn profiles() -> Value {
    serde_json::json!({"type": "grafana-pyroscope-datasource", "uid": "${source}"})
}

fn metrics_source() -> Value {
    serde_json::json!({"type": "prometheus", "uid": "${source}"})
}

/// Clusters have data sources of their own: each dashboard has a choice of them, first of all its choices.
#[test]
fn a_dashboard_is_of_the_data_source_that_is_chosen() -> Result<()> {
    for (path, dashboard) in dashboards()? {
        let path = path.display();
        let first = list(&dashboard["templating"], "list").first().context("no variable")?;
        assert_eq!((&first["name"], &first["type"]), (&"source".into(), &"datasource".into()), "{path}");
        let (kind, uid) = match dashboard["uid"].as_str() {
            Some("emberscope-health") => ("prometheus", "emberscope-prometheus"),
            _ => ("grafana-pyroscope-datasource", "emberscope"),
        };
        assert_eq!((&first["query"], &first["current"]["value"]), (&kind.into(), &uid.into()), "{path}");
        let text = dashboard.to_string();
        assert_eq!(
            text.matches(&format!("\"uid\":\"{uid}\"")).count(),
            0,
            "{path}: a panel of one data source alone"
        );
    }
    Ok(())
}

fn known_type(id: &Value) -> bool {
    types::ALL.iter().any(|t| *id == t.id())
}

fn known_label(name: &Value) -> bool {
    name.as_str().is_some_and(|n| LabelKey::from_name(n).is_some())
}

/// A selector that the daemon would take once Grafana has filled it.
fn check_selector(text: &str, variables: &[&str]) -> Result<()> {
    // A value with a dot comes escaped, `a\.b`: between quotes that would be no escape that PromQL knows.
    anyhow::ensure!(!text.contains("=~\"$"), "a filled value stands between quotes, not backticks: {text}");
    let text = filled(text, variables);
    anyhow::ensure!(!text.contains('$'), "no such variable: {text}");
    let selector = selector::parse(&text)?;
    selector.to_selection(selector::UnknownLabels::Refuse).with_context(|| text)?;
    Ok(())
}

#[test]
fn dashboards_ask_for_what_there_is() -> Result<()> {
    for (path, dashboard) in dashboards()? {
        let path = path.display();
        let variables: Vec<&str> = list(&dashboard["templating"], "list")
            .iter()
            .map(|v| v["name"].as_str().unwrap_or_default())
            .collect();
        for variable in list(&dashboard["templating"], "list") {
            match variable["type"].as_str() {
                Some("textbox" | "datasource") => {}
                Some("query") if variable["datasource"] == metrics_source() => {
                    metrics_of(variable["query"]["query"].as_str().context("query")?)?;
                }
                _ => {
                    assert_eq!(variable["datasource"], profiles(), "{path}");
                    assert_eq!(variable["query"]["type"], "labelValue", "{path}");
                    assert!(known_type(&variable["query"]["profileTypeId"]), "{path}: {variable}");
                    assert!(known_label(&variable["query"]["labelName"]), "{path}: {variable}");
                }
            }
        }
        let mut ids = std::collections::BTreeSet::new();
        for panel in list(&dashboard, "panels") {
            assert!(ids.insert(panel["id"].as_u64()), "{path}: two panels {}", panel["id"]);
            assert!(!list(panel, "targets").is_empty(), "{path}: {} has no query", panel["title"]);
            for target in list(panel, "targets") {
                assert_eq!(target["datasource"], panel["datasource"], "{path}");
                if target["datasource"] == metrics_source() {
                    let found = metrics_of(target["expr"].as_str().context("expr")?)
                        .with_context(|| format!("{path}: {}", panel["title"]))?;
                    assert!(found > 0, "{path}: {target}");
                    continue;
                }
                assert_eq!(target["datasource"], profiles(), "{path}");
                assert!(known_type(&target["profileTypeId"]), "{path}: {target}");
                assert!(list(target, "groupBy").iter().all(known_label), "{path}: {target}");
                let merged = ["flamegraph", "stat"].iter().any(|kind| panel["type"] == *kind);
                assert_eq!(target["queryType"] == "profile", merged, "{path}: {target}");
                let text = target["labelSelector"].as_str().context("labelSelector")?;
                check_selector(text, &variables).with_context(|| path.to_string())?;
            }
        }
    }
    Ok(())
}

#[test]
fn there_is_a_dashboard_for_each_question() -> Result<()> {
    let all = dashboards()?;
    let uids: std::collections::BTreeSet<_> = all.iter().filter_map(|(_, d)| d["uid"].as_str()).collect();
    assert_eq!(
        uids.into_iter().collect::<Vec<_>>(),
        ["emberscope-app", "emberscope-health", "emberscope-node", "emberscope-stage"]
    );
    for (path, dashboard) in &all {
        let kinds: Vec<_> = list(dashboard, "panels").iter().filter_map(|p| p["type"].as_str()).collect();
        assert!(kinds.contains(&"timeseries"), "{}: {kinds:?}", path.display());
        assert_eq!(
            kinds.contains(&"flamegraph"),
            dashboard["uid"] != "emberscope-health",
            "{}",
            path.display()
        );
    }
    Ok(())
}

/// Links to the page carry what its address knows, and a selector that the daemon takes; `view` and the other keys
/// are those of profiler/ui/state.js.
#[test]
fn links_lead_to_the_page_and_to_spark() -> Result<()> {
    let mut to_page = 0;
    for (path, dashboard) in dashboards()? {
        let path = path.display();
        let variables: Vec<&str> =
            list(&dashboard["templating"], "list").iter().filter_map(|v| v["name"].as_str()).collect();
        let of_panels = list(&dashboard, "panels").iter().flat_map(|panel| list(panel, "links"));
        for link in list(&dashboard, "links").iter().chain(of_panels) {
            let url = link["url"].as_str().unwrap_or_default();
            let left = filled(url, &variables).replace("${__from}", "").replace("${__to}", "");
            assert!(!left.contains('$'), "{path}: no such variable: {url}");
            let Some(hash) = url.strip_prefix("${page}/#") else { continue };
            to_page += 1;
            for pair in hash.split('&') {
                let (key, value) = pair.split_once('=').context("key=value")?;
                let known =
                    ["view", "query", "range", "group"].contains(&key) || LabelKey::from_name(key).is_some();
                assert!(known, "{path}: {url}");
                if key == "view" {
                    let views =
                        ["apps", "queries", "stages", "tasks", "executors", "processes", "flame", "slow"];
                    assert!(views.contains(&value), "{path}: {url}");
                }
                if key == "query" {
                    let mut text = value.to_owned();
                    for (code, sign) in [("%7B", "{"), ("%7D", "}"), ("%3D", "="), ("%60", "`"), ("%2C", ",")]
                    {
                        text = text.replace(code, sign);
                    }
                    check_selector(&text, &variables).with_context(|| format!("{path}: {url}"))?;
                }
            }
        }
    }
    assert!(to_page > 10, "{to_page} links to the page");
    Ok(())
}
