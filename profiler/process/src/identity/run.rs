//! The job that an application is a run of, as who started it says: the value of the label `app_run` where that is not
//! made of the application's name ([`emberscope_model::RunNames`]).

use super::plain_name;
use crate::environ::EnvName;
use crate::facts::ProcessFacts;
use crate::java::{JavaCommand, SubmitOptions};
use emberscope_model::Role;

/// What names the run for us alone: `--conf spark.emberscope.run=NAME` of spark-submit, `SparkSession.builder.config` of a
/// Python program that starts the driver, `-Dspark.emberscope.run=NAME` of any JVM that is one; in cluster mode it is in the
/// driver's properties file, whatever said so to spark-submit.
const PROPERTY: &str = "spark.emberscope.run";

/// The configured name, else `DAG.TASK` of the Airflow task that a driver was started by. That task's variables are in the
/// environment of all that it starts, so that they count for drivers alone.
pub(super) fn told(java: &JavaCommand<'_>, facts: &ProcessFacts, role: Role) -> Option<String> {
    let environ = &facts.environ;
    let configured = SubmitOptions::parse(java.args).conf(PROPERTY).or_else(|| java.property(PROPERTY));
    let configured = configured.or_else(|| facts.properties.get(PROPERTY));
    let named = configured.filter(|name| !name.is_empty()).map(plain_name);
    let airflow = || {
        let [dag, task] = [EnvName::AirflowDag, EnvName::AirflowTask].map(|name| environ.get(name));
        Some(plain_name(&format!("{}.{}", dag?, task?)))
    };
    named.or_else(|| if role == Role::Driver { airflow() } else { None })
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{FakeProc, ReadFake as _, identity_of};
    use crate::identity::identify;
    use emberscope_model::{Deploy, Role};

    const SUBMIT: &str = "org.apache.spark.deploy.SparkSubmit";
    const AIRFLOW: [&str; 2] = ["AIRFLOW_CTX_DAG_ID=nightly", "AIRFLOW_CTX_TASK_ID=load.orders"];

    fn run(words: &[&str], environ: &[&str]) -> Option<String> {
        identity_of(words, environ).run
    }

    #[test]
    fn who_started_it_says_what_it_is_a_run_of() {
        let configured = ["java", SUBMIT, "--conf", "spark.emberscope.run=etl", "job.py"];
        assert_eq!(run(&configured, &[]).as_deref(), Some("etl"));
        assert_eq!(run(&configured, &AIRFLOW).as_deref(), Some("etl"), "said for us alone");
        assert_eq!(run(&["java", SUBMIT, "job.py"], &AIRFLOW).as_deref(), Some("nightly.load.orders"));
        let cluster = ["java", "-Dspark.emberscope.run=etl", "org.apache.spark.deploy.worker.DriverWrapper"];
        assert_eq!(run(&cluster, &[]).as_deref(), Some("etl"));
        assert_eq!(
            run(&["java", "-Dspark.emberscope.run=etl", "com.corp.Main"], &[]).as_deref(),
            Some("etl")
        );
    }

    #[test]
    fn in_cluster_mode_the_file_says_name_and_run() {
        let of = |words: &[&str]| {
            let fake = FakeProc::new();
            let process = fake.process(77, 1, "java", 100).words(words);
            std::fs::create_dir_all(fake.path().join("77/root/conf")).unwrap();
            let text =
                b"spark.app.name=nightly\nspark.emberscope.run=etl?password=hush\nspark.master=k8s://x\n";
            process.file("root/conf/spark.properties", text);
            let identity = identify(&fake.facts(77).unwrap());
            (identity.role, identity.deploy, identity.app_name, identity.run)
        };
        let said = |name: &str| (Some(name.to_owned()), Some("etl?password=***".to_owned()));
        let file = ["--properties-file", "/conf/spark.properties"];
        let master = ["java", "org.apache.spark.deploy.yarn.ApplicationMaster", "--class", "C"];
        let (name, run) = said("nightly");
        assert_eq!(of(&[&master[..], &file].concat()), (Role::Driver, Deploy::Yarn, name, run));
        // As the entry point of Spark's image starts a driver (entrypoint.sh, 3.5).
        let driver = [&["java", SUBMIT, "--deploy-mode", "client"][..], &file, &["local:///a.jar"]].concat();
        let (name, run) = said("nightly");
        assert_eq!(of(&driver), (Role::Driver, Deploy::Kubernetes, name, run));
        // Words go before the file.
        let named =
            [&driver[..2], &["--name", "word", "--conf", "spark.emberscope.run=r"], &driver[2..]].concat();
        assert_eq!(of(&named), (Role::Driver, Deploy::Kubernetes, Some("word".into()), Some("r".into())));
    }

    #[test]
    fn what_is_no_driver_or_only_half_said_has_none() {
        assert_eq!(run(&["java", "com.corp.Main"], &AIRFLOW), None);
        assert_eq!(run(&["java", SUBMIT, "job.py"], &AIRFLOW[..1]), None);
        assert_eq!(run(&["java", SUBMIT, "--conf", "spark.emberscope.run=", "job.py"], &[]), None);
        // The user's own arguments are not spark-submit's.
        assert_eq!(run(&["java", SUBMIT, "job.py", "--conf", "spark.emberscope.run=x"], &[]), None);
    }

    #[test]
    fn a_secret_in_it_is_not_kept() {
        let url = "spark.emberscope.run=jdbc:mysql://u:hush@h/db?password=hush";
        assert!(!run(&["java", SUBMIT, "--conf", url, "a.jar"], &[]).unwrap_or_default().contains("hush"));
    }
}
