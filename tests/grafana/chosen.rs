//! What a dashboard is narrowed by, and what of that is told as CPU-seconds.

use super::*;

/// The dashboards that ask for profiles.
fn of_profiles() -> Result<Vec<(PathBuf, Value)>> {
    let mut all = dashboards()?;
    all.retain(|(_, dashboard)| dashboard["uid"] != "emberscope-health");
    Ok(all)
}

/// The labels that a dashboard's drop-downs choose, but for the data source.
fn chosen(dashboard: &Value) -> Vec<(&str, &str)> {
    let all = list(&dashboard["templating"], "list").iter();
    all.filter_map(|one| Some((one["name"].as_str()?, one["query"]["labelName"].as_str()?))).collect()
}

/// What is chosen narrows the panels: each choice some of them, those of an application all.
#[test]
fn an_application_is_chosen_by_name_and_what_it_ran_by_query_and_job() -> Result<()> {
    for (path, dashboard) in of_profiles()? {
        let path = path.display();
        let panels = list(&dashboard, "panels");
        let selectors: Vec<&str> =
            panels.iter().filter_map(|panel| panel["targets"][0]["labelSelector"].as_str()).collect();
        let by = |label: &str, name: &str| format!("{label}=~`${{{name}:regex}}`");
        let choices = chosen(&dashboard);
        for (name, label) in &choices {
            let wanted = by(label, name);
            assert!(
                selectors.iter().any(|selector| selector.contains(&wanted)),
                "{path}: {name} narrows nothing"
            );
        }
        let labels: Vec<&str> = choices.iter().map(|(_, label)| *label).collect();
        if !labels.contains(&"app") {
            continue;
        }
        let of_app: Vec<&str> = labels.iter().copied().take(3).collect();
        assert_eq!(of_app, ["app_run", "app_name", "app"], "{path}");
        for (label, selector) in of_app.iter().flat_map(|label| selectors.iter().map(move |s| (label, s))) {
            assert!(selector.contains(&by(label, label)), "{path}: {selector} is of every {label}");
        }
        assert_eq!(labels.contains(&"sql"), labels.contains(&"spark_job"), "{path}: one without the other");
        for panel in panels.iter().filter(|panel| panel.to_string().contains("sql=~")) {
            let has = |text: &Value, label: &str| text.as_str().is_some_and(|text| text.contains(label));
            assert!(has(&panel["targets"][0]["labelSelector"], "spark_job=~`"), "{path}: {}", panel["title"]);
            for link in list(panel, "links") {
                let both = has(&link["url"], "sql%3D~%60") && has(&link["url"], "spark_job%3D~%60");
                assert!(both, "{path}: a link leads to other samples than those of {}", panel["title"]);
            }
        }
    }
    Ok(())
}

/// Grafana makes cores of a series, so that CPU-seconds are a profile's whole: the widest of its bars, in nanoseconds.
#[test]
fn cpu_seconds_stand_beside_cores() -> Result<()> {
    for (path, dashboard) in of_profiles()? {
        let path = path.display();
        let stats: Vec<&Value> =
            list(&dashboard, "panels").iter().filter(|panel| panel["type"] == "stat").collect();
        assert!(!stats.is_empty(), "{path}: no CPU-seconds");
        for stat in stats {
            assert!(stat["title"].as_str().is_some_and(|title| title.starts_with("CPU-seconds")), "{path}");
            let [target] = list(stat, "targets") else { anyhow::bail!("{path}: one query") };
            assert_eq!(target["profileTypeId"], "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "{path}");
            assert_eq!(target["maxNodes"], 1, "{path}: its bars are not drawn");
            assert_eq!(stat["options"]["reduceOptions"]["calcs"], serde_json::json!(["max"]), "{path}");
            let [made] = list(stat, "transformations") else { anyhow::bail!("{path}: one transformation") };
            let seconds = serde_json::json!({"left": "value", "operator": "/", "right": "1000000000"});
            assert_eq!(
                (&made["id"], &made["options"]["binary"]),
                (&"calculateField".into(), &seconds),
                "{path}"
            );
        }
    }
    Ok(())
}
