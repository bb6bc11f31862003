//! The files of deploy/ agree with each other: the same rights, the same port, the same paths.
//!
//! Whether each is valid in its own format is checked by deploy/check/lint.sh, whether the rights are
//! enough and all needed by deploy/check/rights.sh.

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

fn file(path: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(path);
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}

fn unit_list(unit: &str, key: &str) -> BTreeSet<String> {
    unit.lines()
        .filter_map(|line| line.strip_prefix(key)?.strip_prefix('='))
        .flat_map(str::split_whitespace)
        .map(str::to_owned)
        .collect()
}

fn daemon_set() -> Result<Value> {
    for document in serde_yaml_ng::Deserializer::from_str(&file("kubernetes/daemonset.yaml")?) {
        let value = Value::deserialize(document)?;
        if value["kind"] == "DaemonSet" {
            return Ok(value["spec"]["template"]["spec"].clone());
        }
    }
    anyhow::bail!("no DaemonSet")
}

#[test]
fn unit_and_manifest_give_the_same_rights() -> Result<()> {
    let unit = file("systemd/emberscope.service")?;
    let bounding = unit_list(&unit, "CapabilityBoundingSet");
    assert_eq!(bounding, unit_list(&unit, "AmbientCapabilities"));
    assert!(bounding.contains("CAP_BPF") && !bounding.contains("CAP_SYS_ADMIN"), "{bounding:?}");
    let pod = daemon_set()?;
    let security = &pod["containers"][0]["securityContext"];
    let added: BTreeSet<String> = security["capabilities"]["add"]
        .as_array()
        .context("add")?
        .iter()
        .filter_map(|c| Some(format!("CAP_{}", c.as_str()?)))
        .collect();
    assert_eq!(added, bounding);
    assert_eq!(security["capabilities"]["drop"], serde_json::json!(["ALL"]));
    assert_eq!((&security["privileged"], &pod["hostPID"]), (&Value::Bool(false), &Value::Bool(true)));
    Ok(())
}

#[test]
fn beyond_loopback_there_is_a_token() -> Result<()> {
    let pod = daemon_set()?;
    let container = &pod["containers"][0];
    let args: Vec<&str> =
        container["args"].as_array().context("args")?.iter().filter_map(Value::as_str).collect();
    assert!(args.contains(&"--listen=0.0.0.0:4099"));
    let token = args.iter().find_map(|a| a.strip_prefix("--token-file=")).context("a token file")?;
    let mounts = container["volumeMounts"].as_array().context("mounts")?;
    let mount = mounts.iter().find(|m| m["name"] == "token").context("the token's mount")?;
    assert!(token.starts_with(mount["mountPath"].as_str().context("mountPath")?));
    assert_eq!(container["ports"][0]["containerPort"], 4099);
    let volumes = pod["volumes"].as_array().context("volumes")?;
    let secret = volumes.iter().find(|v| v["name"] == "token").context("the token's volume")?;
    assert_eq!(secret["secret"]["defaultMode"], 0o400);
    Ok(())
}
