//! The launchers start the real thing: a JVM with its flags, a Spark application with two executor JVMs.

use emberscope_tests::{FRAME_POINTERS, JavaProgram, SparkJob, WARM_UP, required};
use std::time::{Duration, Instant};

/// Command lines of the processes in a process group.
fn group(pid: u32) -> Vec<String> {
    let in_group = |stat: String| {
        let fields = stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned()).unwrap_or_default();
        fields.split(' ').nth(2) == Some(&pid.to_string())
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    entries
        .filter(|path| std::fs::read_to_string(path.join("stat")).is_ok_and(in_group))
        .filter_map(|path| std::fs::read(path.join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .collect()
}

#[test]
fn a_java_program_runs_with_its_flags_and_arguments() {
    let Some(java) = required("a_java_program_runs_with_its_flags_and_arguments", "EMBERSCOPE_JAVA") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let source = r#"public class Hello {
        public static void main(String[] args) throws Exception {
            System.out.println("fact said=" + System.getProperty("word") + " " + args[0]);
            Thread.sleep(600_000);
        }
    }"#;
    let program = JavaProgram::new("Hello", source, &java).flag("-Dword=hello").arg("world");
    let mut running = program.start(dir.path()).unwrap();
    assert_eq!(running.wait_fact("said", WARM_UP).unwrap(), "hello world");
}

#[test]
fn a_java_program_that_does_not_compile_says_why() {
    let Some(java) = required("a_java_program_that_does_not_compile_says_why", "EMBERSCOPE_JAVA") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let error =
        JavaProgram::new("Bad", "public class Bad { int x = y; }", &java).start(dir.path()).err().unwrap();
    assert!(error.to_string().contains("cannot find symbol"), "{error}");
}

#[test]
fn a_spark_job_has_two_executor_jvms_and_ends_with_all_of_them() {
    let test = "a_spark_job_has_two_executor_jvms_and_ends_with_all_of_them";
    let (Some(venv), Some(java)) = (required(test, "EMBERSCOPE_VENV"), required(test, "EMBERSCOPE_JAVA"))
    else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let job = SparkJob::new("demo.py", &venv, &java, dir.path()).arg("--seconds").arg("600").event_log();
    let job = job.java_options(FRAME_POINTERS);
    let mut job = job.start().unwrap();
    let app = job.wait_fact("app", WARM_UP).unwrap();
    let begun = Instant::now();
    let executors = loop {
        let lines = group(job.pid());
        let found: Vec<String> =
            lines.into_iter().filter(|line| line.contains("CoarseGrainedExecutorBackend")).collect();
        if found.len() == 2 {
            break found;
        }
        assert!(begun.elapsed() < WARM_UP, "{} executors of {app}", found.len());
        std::thread::sleep(Duration::from_millis(100));
    };
    for line in &executors {
        assert!(line.contains(&format!("--app-id {app}")) && line.contains(FRAME_POINTERS), "{line}");
    }
    assert!(job.event_log().unwrap().to_string_lossy().contains(&app));
    let pid = job.pid();
    drop(job);
    let begun = Instant::now();
    while !group(pid).is_empty() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(group(pid), Vec::<String>::new());
}
