//! What grafana/ holds is well formed, and asks only for what the query API has.
//!
//! Every profile type, label and selector in a dashboard is looked up in the daemon's own lists; every
//! panel and variable uses the data source that the provisioning file makes.

use anyhow::{Context, Result};
use emberscope::model::LabelKey;
use emberscope::serve::{pyroscope::types, selector};
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
fn dashboards_ask_for_what_there_is() -> Result<()> {
    let source = serde_json::json!({"type": "grafana-pyroscope-datasource", "uid": "emberscope"});
    let known_type = |id: &Value| types::ALL.iter().any(|t| *id == t.id());
    let known_label = |name: &Value| name.as_str().is_some_and(|n| LabelKey::from_name(n).is_some());
    for (path, dashboard) in dashboards()? {
        let path = path.display();
        let variables: Vec<&str> = list(&dashboard["templating"], "list")
            .iter()
            .map(|v| v["name"].as_str().unwrap_or_default())
            .collect();
        for variable in list(&dashboard["templating"], "list") {
            assert_eq!(variable["datasource"], source, "{path}");
            assert_eq!(variable["query"]["type"], "labelValue", "{path}");
            assert!(known_type(&variable["query"]["profileTypeId"]), "{path}: {variable}");
            assert!(known_label(&variable["query"]["labelName"]), "{path}: {variable}");
        }
        let mut ids = std::collections::BTreeSet::new();
        for panel in list(&dashboard, "panels") {
            assert!(ids.insert(panel["id"].as_u64()), "{path}: two panels {}", panel["id"]);
            assert_eq!(panel["datasource"], source, "{path}");
            assert!(!list(panel, "targets").is_empty(), "{path}: {} has no query", panel["title"]);
            for target in list(panel, "targets") {
                assert_eq!(target["datasource"], source, "{path}");
                assert!(known_type(&target["profileTypeId"]), "{path}: {target}");
                assert!(list(target, "groupBy").iter().all(known_label), "{path}: {target}");
                let flame_graph = panel["type"] == "flamegraph";
                assert_eq!(target["queryType"] == "profile", flame_graph, "{path}: {target}");
                let text = filled(target["labelSelector"].as_str().context("labelSelector")?, &variables);
                assert!(!text.contains('$'), "{path}: no such variable: {text}");
                selector::parse(&text)?
                    .to_selection(selector::UnknownLabels::Refuse)
                    .with_context(|| format!("{path}: {text}"))?;
            }
        }
        let kinds: Vec<_> = list(&dashboard, "panels").iter().filter_map(|p| p["type"].as_str()).collect();
        assert!(kinds.contains(&"flamegraph") && kinds.contains(&"timeseries"), "{path}: {kinds:?}");
    }
    Ok(())
}
