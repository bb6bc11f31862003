//! What a user configures for a job is in its command lines and environments, which the daemon reads: none of it is
//! in its files, its log or its answers.

use super::{Scene, words};
use anyhow::{Result, ensure};
use emberscope_model::LabelKey;
use std::path::Path;

/// In every secret, and nowhere else.
const HUSH: &str = "hush7Q3xZ";

/// Confs with a secret each, as users write them.
const CONFS: &[(&str, &str)] = &[
    ("spark.hadoop.fs.s3a.access.key", "AKIA{}"),
    ("spark.hadoop.fs.s3a.secret.key", "{}/x+y"),
    ("spark.hadoop.fs.s3a.session.token", "{}=="),
    ("spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net", "{}=="),
    ("spark.hadoop.fs.azure.sas.fixed.token.a.dfs.core.windows.net", "sv=2023&sig={}%3D"),
    ("spark.hadoop.fs.azure.account.oauth2.client.secret", "{}"),
    ("spark.hadoop.google.cloud.auth.service.account.json.keyfile", "{\"private_key\":\"{}\"}"),
    ("spark.hadoop.javax.jdo.option.ConnectionURL", "jdbc:mysql://u:{}@h/db?password={}"),
    ("spark.sql.catalog.p.url", "jdbc:postgresql://h/d?user=u&password={}"),
    ("spark.hadoop.hadoop.security.credential.provider.path", "jceks://file/{}"),
    ("spark.authenticate.secret", "{}"),
    ("spark.ssl.keyStorePassword", "{}"),
    ("spark.executorEnv.AWS_SECRET_ACCESS_KEY", "{}"),
    ("spark.executorEnv.AWS_SESSION_TOKEN", "{}"),
    ("spark.executorEnv.AZURE_CLIENT_SECRET", "{}"),
    // Not HADOOP_TOKEN: the executor reads it, and does not start where it is none.
    ("spark.executorEnv.HADOOP_CREDSTORE_PASSWORD", "{}"),
];

/// The job's confs, each with the secret.
pub fn confs() -> impl Iterator<Item = (&'static str, String)> {
    CONFS.iter().map(|(key, value)| (*key, value.replace("{}", HUSH)))
}

/// Flags of its JVMs with the secret.
pub fn java_options() -> String {
    format!("-Djavax.net.ssl.trustStorePassword={HUSH} -Dcorp.token={HUSH}")
}

/// Looks at all answers; ends the daemon, whose log is of level trace, and looks at its files.
pub fn a_jobs_secrets_are_nowhere(scene: Scene) -> Result<()> {
    let Scene { dir, daemon, app, executor, driver, .. } = scene;
    // There is something to find.
    let environ = String::from_utf8_lossy(&std::fs::read(format!("/proc/{executor}/environ"))?).into_owned();
    let counts =
        [words(driver).join(" "), words(executor).join(" "), environ].map(|t| t.matches(HUSH).count());
    println!(
        "the secret is {counts:?} times in the driver's and executor's words and the executor's environment"
    );
    ensure!(counts[0] > CONFS.len() && counts[1] >= 2 && counts[2] >= 4, "{counts:?}");

    let mut looked = 0;
    let mut look = |path: &str| -> Result<()> {
        let reply = daemon.get(path)?;
        ensure!(reply.status == 200, "{path}: {} {}", reply.status, reply.body);
        ensure!(!reply.body.contains(HUSH), "{path} answers a secret");
        looked += 1;
        Ok(())
    };
    let labels: Vec<&str> = LabelKey::ALL.iter().map(|key| key.name()).collect();
    for path in ["status", "apps", "executors", "stages", "processes", "tax", "tasks", "ledger", "labels"] {
        look(&format!(
            "/api/v1/{path}?{}",
            if path == "status" { String::new() } else { format!("from=-1h&app={app}") }
        ))?;
    }
    for name in &labels {
        look(&format!("/api/v1/labels/{name}/values"))?;
    }
    for format in ["folded", "json", "svg", "pprof"] {
        look(&format!("/api/v1/flamegraph?app={app}&format={format}&group={}", labels.join(",")))?;
    }
    look("/metrics")?;
    let log = daemon.log().to_owned();
    let data = dir.path().join("data");
    ensure!(daemon.stop()?.success());
    let traced = std::fs::read_to_string(&log)?;
    ensure!(traced.contains("emberscope"), "nothing is logged");
    ensure!(!traced.contains(HUSH), "the log has a secret");
    let mut files = 0;
    in_files(&data, &mut files)?;
    println!("{looked} answers, {files} files, {} bytes of log at trace: no secret", traced.len());
    ensure!(files > 0);
    Ok(())
}

/// Blocks are compressed: what they hold was asked for above. Journal and the rest are plain.
fn in_files(dir: &Path, files: &mut usize) -> Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            in_files(&path, files)?;
        } else if path.is_file() {
            let bytes = std::fs::read(&path)?;
            ensure!(
                !bytes.windows(HUSH.len()).any(|w| w == HUSH.as_bytes()),
                "{} has a secret",
                path.display()
            );
            *files += 1;
        }
    }
    Ok(())
}
