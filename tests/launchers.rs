//! The launcher of Java programs starts a JVM with its flags. Of Spark jobs: applications/launched.rs.

use emberscope_tests::{JavaProgram, WARM_UP, required};

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
