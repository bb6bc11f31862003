//! The Helm chart: the plain manifest is what it renders; what it renders with other values is valid for Kubernetes of several
//! versions, keeps the daemon's rights and asks for tokens; values that cannot work are refused.
//!
//! EMBERSCOPE_WRITE_DOCS writes the manifest anew.

use super::deploy::documents;
use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Ran, ran, required, skip};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::setup::{helm, packages};

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy");
/// Of Kubernetes: the oldest that the chart takes, the last without a field for AppArmor, two with it.
const VERSIONS: [&str; 4] = ["1.25", "1.29", "1.33", "1.37"];
/// Values, as `--set` takes them, besides the defaults.
const VARIANTS: [&str; 8] = [
    "image.tag=",
    "archive.url=s3://bucket/emberscope,archive.secret=aws,serve.enabled=true",
    "serviceMonitor.enabled=true,token.create=true,token.metricsKey=metrics,token.readKey=read",
    "settings.open-loopback=false,settings.hz=49,settings.retention-bytes=null",
    "tls.secret=tls,data.hostPath=/var/lib/emberscope,networkPolicy.enabled=false,priorityClassName=",
    "serviceAccount.create=false,serviceAccount.name=profiler,imagePullSecrets={registry},nodeSelector.pool=spark",
    r"settings.events=cpu\,off-cpu\,block:block_rq_issue",
    "archive.url=gs://b/p,serve.enabled=true,serve.service.type=LoadBalancer,networkPolicy.from=null,tls.secret=tls",
];

/// Helm. None after saying why `test` is skipped.
fn helm_or_skip(test: &str) -> Option<PathBuf> {
    match helm::ensure() {
        Ok(helm) => Some(helm),
        Err(error) => {
            let why = format!("{error:#}");
            skip(test, &format!("no Helm here: {}", why.lines().next().unwrap_or_default()));
            None
        }
    }
}

/// `helm template` of the chart as the release `emberscope`.
fn template(helm: &Path, version: &str, values: &str) -> Result<Ran> {
    let chart = format!("{DEPLOY}/chart");
    let words = ["template", "emberscope", &chart, "--namespace", "emberscope", "--kube-version", version];
    let set = ["--set", values];
    let words = words.iter().chain(&set).map(AsRef::as_ref);
    ran(std::iter::once(helm.as_os_str()).chain(words))
}

/// Without what only Helm reads.
fn plain(rendered: &str) -> String {
    let helms = ["# Source: ", "helm.sh/chart: ", "app.kubernetes.io/managed-by: "];
    let kept = rendered.lines().filter(|line| !helms.iter().any(|own| line.trim_start().starts_with(own)));
    kept.map(|line| line.to_owned() + "\n").collect()
}

/// One source of truth: the chart. The manifest begins with what it says of itself and a namespace, which charts leave to
/// who installs them.
#[test]
fn the_manifest_is_the_chart() -> Result<()> {
    let Some(helm) = helm_or_skip("the_manifest_is_the_chart") else { return Ok(()) };
    let path = format!("{DEPLOY}/kubernetes/daemonset.yaml");
    let there = std::fs::read_to_string(&path)?;
    let (head, _) = there.split_once("\n---\n").context("no document but the namespace")?;
    let rendered = template(&helm, VERSIONS[3], VARIANTS[0])?.good()?.out;
    let wanted = format!("{head}\n{}", plain(&rendered));
    if std::env::var_os("EMBERSCOPE_WRITE_DOCS").is_some() {
        std::fs::write(&path, &wanted)?;
    }
    let there = std::fs::read_to_string(&path)?;
    ensure!(
        there == wanted,
        "{path} is not what deploy/chart renders: EMBERSCOPE_WRITE_DOCS=1 writes it anew"
    );
    Ok(())
}

#[test]
fn the_chart_is_valid_in_all_variants() -> Result<()> {
    let test = "the_chart_is_valid_in_all_variants";
    let Some(helm) = helm_or_skip(test) else { return Ok(()) };
    let Some(venv) = required(test, "EMBERSCOPE_VENV") else { return Ok(()) };
    let schemas = match packages::kubernetes(&venv) {
        Ok(schemas) => schemas,
        Err(error) => {
            skip(test, &format!("no schemas of Kubernetes: {error:#}"));
            return Ok(());
        }
    };
    let lint = ["lint", "--strict", &format!("{DEPLOY}/chart")].map(str::to_owned);
    ran(std::iter::once(helm.display().to_string()).chain(lint))?.good()?;
    let dir = tempfile::tempdir()?;
    for version in VERSIONS {
        let mut files = Vec::new();
        for (n, values) in VARIANTS.iter().enumerate() {
            let file = dir.path().join(format!("{version}-{n}.yaml"));
            std::fs::write(&file, template(&helm, version, values)?.good()?.out)?;
            files.push(file);
        }
        let mut validate = Command::new(venv.join("bin/python"));
        validate.args(["-m", "kubernetes_validate", "--strict", "--kubernetes-version", version]);
        let output = validate.args(&files).env("PYTHONPATH", &schemas).output()?;
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{version}: {said}");
        // The Prometheus operator's kind is none of Kubernetes'.
        let unknown = said.lines().filter(|line| !line.contains(" passed for ")).collect::<Vec<_>>();
        ensure!(unknown.iter().all(|line| line.contains("kind ServiceMonitor")), "{version}: {unknown:?}");
        ensure!(
            said.matches(" passed for resource daemonset/emberscope ").count() == VARIANTS.len(),
            "{said}"
        );
    }
    Ok(())
}

/// Whatever the values: the daemon's rights are those that the manifest's tests hold, who asks beyond loopback needs a token,
/// and `serve` has no right at all.
#[test]
fn no_value_takes_a_guard_away() -> Result<()> {
    let Some(helm) = helm_or_skip("no_value_takes_a_guard_away") else { return Ok(()) };
    let manifest = std::fs::read_to_string(format!("{DEPLOY}/kubernetes/daemonset.yaml"))?;
    let container = |all: &[Value], kind: &str| -> Option<Value> {
        Some(all.iter().find(|object| object["kind"] == kind)?["spec"]["template"]["spec"].clone())
    };
    let daemon = container(&documents(&manifest)?, "DaemonSet").context("no DaemonSet")?;
    for values in VARIANTS {
        let all = documents(&template(&helm, VERSIONS[3], values)?.good()?.out)?;
        let pod = container(&all, "DaemonSet").context("no DaemonSet")?;
        let rights = |pod: &Value| pod["containers"][0]["securityContext"].clone();
        assert_eq!(rights(&pod), rights(&daemon), "{values}");
        assert_eq!(all.iter().filter(|object| object["kind"] == "Role").count(), 0);
        let serve = container(&all, "Deployment");
        assert_eq!(serve.is_some(), values.contains("serve.enabled=true"), "{values}");
        if let Some(serve) = &serve {
            let own = &serve["containers"][0]["securityContext"];
            assert_eq!(own["capabilities"], json!({ "drop": ["ALL"] }));
            assert_eq!((&own["readOnlyRootFilesystem"], &serve["hostPID"]), (&json!(true), &Value::Null));
            assert_eq!(serve["securityContext"]["runAsNonRoot"], json!(true));
        }
        // What tracepoints need of the host, where they are named, and no more of it than before.
        let of_host = |pod: &Value| {
            let volumes = pod["volumes"].as_array().into_iter().flatten();
            volumes
                .filter_map(|volume| volume["hostPath"]["path"].as_str().map(str::to_owned))
                .collect::<Vec<_>>()
        };
        let mut wanted: Vec<&str> = Vec::new();
        wanted.extend(values.contains("data.hostPath").then_some("/var/lib/emberscope"));
        wanted.extend(values.contains("block:").then_some("/sys/kernel/tracing"));
        assert_eq!(of_host(&pod), wanted, "{values}");
        for pod in serve.iter().chain([&pod]) {
            let words = pod["containers"][0]["args"].to_string();
            assert!(words.contains("--token-file=/etc/emberscope-token/token"), "{values}: {words}");
            assert_eq!(words.contains("--tls-cert="), values.contains("tls.secret"), "{values}: {words}");
            assert_eq!(pod["automountServiceAccountToken"], json!(false));
        }
    }
    Ok(())
}

/// What stands in the ConfigMap is what the daemon reads, a float of YAML that is a whole number included.
#[test]
fn settings_are_written_as_the_daemon_reads_them() -> Result<()> {
    let test = "settings_are_written_as_the_daemon_reads_them";
    let Some(helm) = helm_or_skip(test) else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let values = dir.path().join("values.yaml");
    std::fs::write(
        &values,
        "settings: { hz: 49, fraction: 0.5, open-loopback: false, apps: 'a \"b\"\\c,*', fsync: never }\n",
    )?;
    let chart = format!("{DEPLOY}/chart");
    let words = ["template", "emberscope", &chart, "--kube-version", VERSIONS[1], "--values"];
    let words = words.iter().map(AsRef::as_ref).chain([values.as_os_str()]);
    let rendered = ran(std::iter::once(helm.as_os_str()).chain(words))?.good()?.out;
    let all = documents(&rendered)?;
    let map = all.iter().find(|object| object["kind"] == "ConfigMap").context("no ConfigMap")?;
    let text = map["data"]["emberscope.toml"].as_str().context("no emberscope.toml")?;
    let lines = [
        "apps = \"a \\\"b\\\"\\\\c,*\"",
        "fraction = 0.5",
        "fsync = \"never\"",
        "hz = 49",
        "open-loopback = false",
        "retention-bytes = \"1GiB\"",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), lines);
    Ok(())
}

#[test]
fn values_that_cannot_work_are_refused() -> Result<()> {
    let Some(helm) = helm_or_skip("values_that_cannot_work_are_refused") else { return Ok(()) };
    for (values, part) in [
        ("serve.enabled=true", "serve.enabled needs archive.url"),
        ("settings.listen=127.0.0.1:1", "listen"),
        ("settings.token-file=/x", "token-file"),
        ("image.digest=latest", "digest"),
        ("archive.url=http://x", "archive/url"),
        ("token.value=two words", "token/value"),
        ("unknown=1", "unknown"),
    ] {
        let refused = template(&helm, VERSIONS[2], values)?;
        ensure!(refused.code != 0 && refused.err.contains(part), "{values}: {refused:?}");
    }
    let old = template(&helm, "1.24", "image.tag=")?;
    ensure!(old.code != 0 && old.err.contains("kubeVersion"), "{old:?}");
    Ok(())
}

/// The chart has the workspace's version, which `./x package` puts there anew.
#[test]
fn the_charts_version_is_the_releases() -> Result<()> {
    let chart = std::fs::read_to_string(format!("{DEPLOY}/chart/Chart.yaml"))?;
    for line in ["version: VERSION", "appVersion: \"VERSION\""] {
        let line = line.replace("VERSION", env!("CARGO_PKG_VERSION"));
        assert!(chart.lines().any(|found| found == line), "{line}");
    }
    Ok(())
}
