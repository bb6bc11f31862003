//! Command lines as spark-submit makes them, with the secrets that users put there: none is in what is kept.

use super::{Identity, identify};
use crate::facts::ProcessFacts;
use crate::fixtures::facts_of;
use crate::labels;
use emberscope_model::RunNames;

const SUBMIT: &str = "org.apache.spark.deploy.SparkSubmit";
const BACKEND: &str = "org.apache.spark.executor.CoarseGrainedExecutorBackend";

/// What is kept of a process: labels, and the texts of its record.
fn kept(facts: &ProcessFacts) -> (Identity, String) {
    let identity = identify(facts);
    let labels = labels::build("n1", &RunNames::default(), &identity, &facts.comm, facts.pid);
    let text = format!("{labels:?} {identity:?}");
    (identity, text)
}

/// Confs and options by what they are for. Every secret has `hush` in it.
const LINES: &[(&str, &[&str])] = &[
    (
        "S3A",
        &[
            "spark.hadoop.fs.s3a.access.key=AKIAhush",
            "spark.hadoop.fs.s3a.secret.key=hush/x+y",
            "spark.hadoop.fs.s3a.session.token=hush==",
        ],
    ),
    (
        "S3A bucket",
        &["spark.hadoop.fs.s3a.bucket.b.secret.key=hush", "spark.hadoop.fs.s3a.encryption.key=hush"],
    ),
    ("ABFS key", &["spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net=hush=="]),
    (
        "ABFS SAS",
        &[
            "spark.hadoop.fs.azure.sas.fixed.token.a.dfs.core.windows.net=sv=2023&sig=hush%3D",
            "spark.hadoop.fs.azure.sas.c.a=?sig=hush",
        ],
    ),
    (
        "ABFS OAuth",
        &[
            "spark.hadoop.fs.azure.account.oauth2.client.secret.a=hush",
            "spark.hadoop.fs.azure.account.oauth2.client.id=hush",
        ],
    ),
    (
        "GCS",
        &[
            "spark.hadoop.google.cloud.auth.service.account.json.keyfile={\"private_key\": \"hush\"}",
            "spark.hadoop.fs.gs.auth.service.account.private.key=hush",
        ],
    ),
    (
        "JDBC",
        &[
            "spark.hadoop.javax.jdo.option.ConnectionURL=jdbc:mysql://u:hush@h/db?password=hush",
            "spark.hadoop.javax.jdo.option.ConnectionPassword=hush",
            "spark.sql.catalog.p.url=jdbc:postgresql://h/d?user=u&password=hush",
        ],
    ),
    ("Kerberos", &["spark.kerberos.keytab=/home/ana/hush.keytab", "spark.kerberos.principal=hush@REALM"]),
    (
        "Spark",
        &[
            "spark.authenticate.secret=hush",
            "spark.ssl.keyPassword=hush",
            "spark.ssl.keyStorePassword=hush",
            "spark.redis.auth=hush",
        ],
    ),
    ("environment", &["spark.executorEnv.AWS_SECRET_ACCESS_KEY=hush", "spark.yarn.appMasterEnv.TOKEN=hush"]),
];

const ENVIRON: &[&str] = &[
    "AWS_ACCESS_KEY_ID=AKIAhush",
    "AWS_SECRET_ACCESS_KEY=hush",
    "AWS_SESSION_TOKEN=hush",
    "AZURE_CLIENT_SECRET=hush",
    "AZURE_STORAGE_KEY=hush",
    "HADOOP_TOKEN_FILE_LOCATION=/hush",
    "HADOOP_TOKEN=hush",
    "GOOGLE_APPLICATION_CREDENTIALS=/hush",
    "_SPARK_AUTH_SECRET=hush",
    "PYSPARK_GATEWAY_SECRET=hush",
    "PYSPARK_GATEWAY_PORT=1",
    "JDBC_URL=jdbc:x://u:hush@h",
    "SPARK_USER=ana",
];

#[test]
fn of_a_driver_nothing_that_was_configured_is_kept() {
    for (what, confs) in LINES {
        let pairs: Vec<String> = confs.iter().map(|conf| (*conf).to_owned()).collect();
        let options: Vec<String> = confs.iter().map(|conf| format!("-D{conf}")).collect();
        let mut words = vec!["java", "-cp", "/opt/spark/jars/*", "-Djavax.net.ssl.keyStorePassword=hush"];
        words.extend(options.iter().map(String::as_str));
        words.extend([
            SUBMIT,
            "--master",
            "local[2]",
            "--name",
            "daily",
            "--principal",
            "hush@REALM",
            "--keytab",
            "/hush",
        ]);
        for pair in &pairs {
            words.extend(["--conf", pair]);
        }
        words.extend(["--class", "com.corp.Daily", "s3a://AKIAhush:hush/x@bucket/daily.jar"]);
        words.extend([
            "--password",
            "hush",
            "jdbc:mysql://u:hush@h/db",
            "https://a.blob.core.windows.net/c?sig=hush",
        ]);
        let facts = facts_of(&words, ENVIRON);
        let (identity, kept) = kept(&facts);
        assert_eq!(
            (identity.app_name.as_deref(), identity.spark_user.as_deref()),
            (Some("daily"), Some("ana")),
            "{what}"
        );
        assert!(!kept.contains("hush"), "{what}: {kept}");
        // Of values behind keys nothing is kept even until then.
        assert!(!facts.words.iter().any(|word| pairs.contains(word) || options.contains(word)), "{what}");
        assert!(!format!("{:?}", facts.environ).contains("hush"), "{what}");
    }
}

#[test]
fn of_an_executor_nothing_that_was_configured_is_kept() {
    for (what, confs) in LINES {
        let options: Vec<String> = confs.iter().map(|conf| format!("-D{conf}")).collect();
        let mut words = vec!["java", "-cp", "x"];
        words.extend(options.iter().map(String::as_str));
        words.extend([
            BACKEND,
            "--driver-url",
            "spark://CoarseGrainedScheduler@h:7078",
            "--executor-id",
            "1",
        ]);
        words.extend(["--app-id", "app-1", "--worker-url", "spark://Worker@h:1"]);
        let facts = facts_of(&words, ENVIRON);
        let (identity, kept) = kept(&facts);
        assert_eq!(
            (identity.app.as_deref(), identity.executor.as_deref()),
            (Some("app-1"), Some("1")),
            "{what}"
        );
        assert!(!kept.contains("hush") && !format!("{facts:?}").contains("hush"), "{what}: {kept}");
    }
}

#[test]
fn names_that_hold_secrets_lose_them() {
    for (name, want) in [
        ("load jdbc:mysql://u:hush@h/db", "load jdbc:***"),
        ("load password=hush of today", "load password=*** of today"),
        ("s3a://AKIAhush:hush@b/x", "s3a://***@b/x"),
    ] {
        let facts = facts_of(&["java", SUBMIT, "--name", name, "/x/job.jar"], &[]);
        assert_eq!(kept(&facts).0.app_name.as_deref(), Some(want));
    }
    let program = facts_of(&["/usr/bin/psql://u:hush@h"], &[]);
    assert!(!kept(&program).1.contains("hush:"), "{}", kept(&program).1);
}
