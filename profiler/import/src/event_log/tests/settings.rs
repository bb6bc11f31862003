//! The event that tells an application's configuration.

use super::*;

#[test]
fn settings_that_matter_are_kept_and_no_others() {
    let log = concat!(
        r#"{"Event":"SparkListenerEnvironmentUpdate","JVM Information":{"Java Home":"/usr/lib/jvm"},"Spark Properties":"#,
        r#"{"spark.executor.memory":"2g","spark.hadoop.fs.s3a.secret.key":{"odd":["hunter2"]},"spark.sql.shuffle.partitions":"64","#,
        r#""spark.task.cpus":"one two"},"System Properties":{"spark.executor.cores":"9"},"Classpath Entries":{"/a.jar":"System"}}"#,
        "\n",
        r#"{"Event":"SparkListenerApplicationStart","App Name":"n","App ID":"app-1","Timestamp":1795286171979,"User":"ana"}"#,
        "\n",
    );
    let told = read(log.as_bytes()).unwrap();
    let settings: Vec<_> = told.facts.iter().map(|fact| (fact.kind, &*fact.id, &*fact.name)).collect();
    let is = |id, value| (SparkFactKind::Setting, id, value);
    assert_eq!(settings, [is("spark.executor.memory", "2g"), is("spark.sql.shuffle.partitions", "64")]);
    assert_eq!(told.remarks.len(), 1, "{:?}", told.remarks);
}
