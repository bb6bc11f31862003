//! What a driver tells of an application's configuration.

use super::*;

/// Of the shape of `ApplicationEnvironmentInfo`, as little of it as tells.
pub const TOLD: &str = r#"{
    "runtime": {"javaVersion": "17.0.15 (Debian)", "javaHome": "/usr/lib/jvm", "scalaVersion": "version 2.12.18"},
    "sparkProperties": [["spark.app.name", "daily sales"], ["spark.executor.memory", "2g"],
        ["spark.hadoop.fs.s3a.secret.key", "*********(redacted)"], ["spark.sql.shuffle.partitions", "64"]],
    "hadoopProperties": [["dfs.replication", "3"]], "systemProperties": [["user.name", "ana"]],
    "classpathEntries": [["/jars/a.jar", "System Classpath"]]}"#;

fn settings(told: &SparkStages) -> Vec<(&str, &str)> {
    let settings = told.beside.iter().filter(|fact| fact.kind == SparkFactKind::Setting);
    settings.map(|setting| (&*setting.id, &*setting.name)).collect()
}

#[test]
fn settings_that_matter_are_kept_and_asked_for_once() {
    let spark = spark(RECORDED[0].1);
    let told = fetch::stages(&Client::default(), &spark.url, APP, None).unwrap();
    let want = [("spark.executor.memory", "2g"), ("spark.sql.shuffle.partitions", "64")];
    assert_eq!((settings(&told), told.notes.len()), (want.to_vec(), 0));
    let asked = spark.requests.load(Ordering::SeqCst);
    let later = fetch::stages(&Client::default(), &spark.url, APP, Some(&told)).unwrap();
    assert_eq!(settings(&later), want);
    // Without the plan either, which does not change.
    assert_eq!(spark.requests.load(Ordering::SeqCst) - asked, asked - 2);
}

#[test]
fn settings_that_could_not_be_read_are_asked_for_again() {
    let fails = server(|path, stream| match path {
        path if path.ends_with(APP) => reply(stream, 200, &app(APP, false)),
        path if path.ends_with("/environment") => reply(stream, 500, ""),
        _ => reply(stream, 200, "[]"),
    });
    let told = fetch::stages(&Client::default(), &fails.url, APP, None).unwrap();
    assert_eq!(told.notes, ["Settings are not read: HTTP 500."]);
    let again = fetch::stages(&Client::default(), &fails.url, APP, Some(&told)).unwrap();
    assert_eq!(again.notes, told.notes);
}
