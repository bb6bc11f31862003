//! The files of deploy/ agree with each other: the same rights, the same port, the same paths.
//!
//! Whether each is valid in its own format is checked by deploy/check/lint.sh, whether all rights are needed
//! by deploy/check/rights.sh; that they are enough for the daemon is tested here.

use anyhow::{Context, Result};
use emberscope_config::ByteSize;
use emberscope_tests::{Here, Running, can_unshare_mounts, skip};
use emberscope_unwind::table::MAX_DISK_BYTES;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

mod rights;

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

/// The documents of a YAML file.
pub(super) fn documents(text: &str) -> Result<Vec<Value>> {
    let all = serde_yaml_ng::Deserializer::from_str(text).map(|document| Ok(Value::deserialize(document)?));
    all.filter(|document| !matches!(document, Ok(Value::Null))).collect()
}

/// The manifest's object of this kind.
pub(super) fn object(kind: &str) -> Result<Value> {
    let mut all = documents(&file("kubernetes/daemonset.yaml")?)?.into_iter();
    all.find(|object| object["kind"] == kind).with_context(|| format!("no {kind}"))
}

pub(super) fn daemon_set() -> Result<Value> {
    Ok(object("DaemonSet")?["spec"]["template"]["spec"].clone())
}

/// The daemon's arguments in the manifest, `--name=value`, by name.
fn argument(pod: &Value, name: &str) -> Option<String> {
    let all = pod["containers"][0]["args"].as_array()?;
    let value = |text: &str| Some(text.strip_prefix(name)?.strip_prefix('=')?.to_owned());
    all.iter().filter_map(Value::as_str).find_map(value)
}

/// A setting of the manifest's ConfigMap, text between quotes.
fn setting(name: &str) -> Result<Option<String>> {
    let map = object("ConfigMap")?;
    let text = map["data"]["emberscope.toml"].as_str().context("emberscope.toml")?;
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(" = ").map(|text| text.replace('"', ""));
    Ok(text.lines().find_map(value))
}

#[test]
fn unit_and_manifest_give_the_same_rights() -> Result<()> {
    let unit = file("systemd/emberscope.service")?;
    let bounding = unit_list(&unit, "CapabilityBoundingSet");
    assert_eq!(bounding, unit_list(&unit, "AmbientCapabilities"));
    // Each for what docs/deploy.md says; more is a decision.
    let nine = [
        "BPF",
        "CHECKPOINT_RESTORE",
        "DAC_READ_SEARCH",
        "PERFMON",
        "SETGID",
        "SETUID",
        "SYSLOG",
        "SYS_ADMIN",
        "SYS_PTRACE",
    ];
    assert_eq!(bounding, nine.map(|name| format!("CAP_{name}")).into());
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

/// A pod whose emptyDir is over its sizeLimit is evicted: all that the daemon keeps there fits, the block that is
/// written before the oldest goes included.
#[test]
fn what_the_daemon_keeps_fits_the_pods_volume() -> Result<()> {
    let pod = daemon_set()?;
    let bytes = |text: &str| text.parse::<ByteSize>().map(|size| size.0);
    let retention = setting("retention-bytes")?.context("retention-bytes")?;
    let retention = bytes(&retention).map_err(|e| anyhow::anyhow!("{e}"))?;
    let volumes = pod["volumes"].as_array().context("volumes")?;
    let data = volumes.iter().find(|volume| volume["name"] == "data").context("the data's volume")?;
    // Kubernetes writes Gi where we write GiB.
    let limit = data["emptyDir"]["sizeLimit"].as_str().context("sizeLimit")?;
    let limit = bytes(&format!("{limit}B")).map_err(|e| anyhow::anyhow!("{e}"))?;
    assert!(argument(&pod, "--debuginfod").is_none(), "its files are 2 GiB more");
    assert!(setting("debuginfod")?.is_none(), "its files are 2 GiB more");
    let most = retention + retention / 4 + MAX_DISK_BYTES;
    assert!(most <= limit, "{most} bytes may be kept in a volume of {limit}");
    Ok(())
}

#[test]
fn the_kubelet_asks_where_nothing_else_answers() -> Result<()> {
    let pod = daemon_set()?;
    let container = &pod["containers"][0];
    let port = |name: &str| {
        let ports = container["ports"].as_array().into_iter().flatten();
        ports.clone().find(|port| port["name"] == name).map(|port| port["containerPort"].clone())
    };
    let health = argument(&pod, "--health-listen").context("--health-listen")?;
    assert_eq!(health.rsplit(':').next().map(str::to_owned), port("health").map(|port| port.to_string()));
    for (probe, path) in
        [("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")]
    {
        let get = &container[probe]["httpGet"];
        assert_eq!((&get["path"], &get["port"]), (&path.into(), &"health".into()), "{probe}");
    }
    // The API's port is for those who are named, the health's for all.
    let policy = object("NetworkPolicy")?["spec"].clone();
    assert_eq!(policy["policyTypes"], serde_json::json!(["Ingress"]));
    let labels = &object("DaemonSet")?["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&policy["podSelector"]["matchLabels"], labels);
    for rule in policy["ingress"].as_array().context("ingress")? {
        for at in rule["ports"].as_array().context("a rule without ports opens all")? {
            match at["port"].as_str() {
                Some("health") => {}
                Some("http") => {
                    let from = rule["from"].as_array().context("whoever asks is named")?;
                    let named = |peer: &Value| {
                        let labels = peer["namespaceSelector"]["matchLabels"].as_object();
                        labels.is_some_and(|labels| !labels.is_empty())
                    };
                    assert!(!from.is_empty() && from.iter().all(named), "{from:?}");
                }
                other => anyhow::bail!("a port that the daemon does not have: {other:?}"),
            }
        }
    }
    Ok(())
}

/// A tag is another image tomorrow.
#[test]
fn images_are_named_by_digest() -> Result<()> {
    let pod = daemon_set()?;
    for container in pod["containers"].as_array().context("containers")? {
        let image = container["image"].as_str().context("an image")?;
        let digest = image.split_once("@sha256:").map(|(_, digest)| digest).unwrap_or_default();
        assert!(digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit()), "{image}");
    }
    let container = file("container/Containerfile")?;
    let bases: Vec<&str> = container.lines().filter_map(|line| line.strip_prefix("FROM ")).collect();
    assert!(bases.len() == 2 && bases.iter().all(|base| base.starts_with("${BASE}")), "{bases:?}");
    assert!(container.lines().any(|line| line == "ARG BASE"), "given by who builds, with no default");
    Ok(())
}

/// The figure in the docs is what systemd says of the unit.
#[test]
fn the_units_exposure_is_the_docs() -> Result<()> {
    const NAME: &str = "the_units_exposure_is_the_docs";
    let unit = file("systemd/emberscope.service")?;
    for limit in ["LimitCORE=0", "CPUQuota=", "TasksMax=", "MemoryMax="] {
        assert!(unit.lines().any(|line| line.starts_with(limit)), "{limit}");
    }
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("emberscope.service");
    // The binary need not be installed.
    std::fs::write(&path, unit.replace("ExecStart=/usr/bin/emberscope", "ExecStart=/bin/true"))?;
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["security", "--no-pager", "--offline=true"]).arg(&path);
    let Ok(output) = analyze.output() else {
        skip(NAME, "systemd-analyze is not installed");
        return Ok(());
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let figure = said.lines().find_map(|line| line.split_once("exposure level for emberscope.service: "));
    let Some(figure) = figure.and_then(|(_, rest)| rest.split_whitespace().next()) else {
        skip(NAME, "this systemd-analyze does not judge unit files (--offline)");
        return Ok(());
    };
    for page in ["docs/deploy.md", "deploy/README.md"] {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page))?;
        let wanted = format!("exposure level {figure}");
        assert!(text.contains(&wanted), "{page} does not say {wanted:?}");
    }
    Ok(())
}
