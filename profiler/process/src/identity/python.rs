//! PySpark's Python processes: the daemon and its workers, and the user's program.
//!
//! A worker is a fork of the daemon with the same words and environment, and told from it by its parent; both inherit the
//! executor's environment. `job.py` below spark-submit has PYSPARK_GATEWAY_PORT. A Python that itself started the
//! driver's JVM tells nothing: it is known by that JVM (`family::adopt_driver`).

use super::{Identity, PythonSide};
use crate::environ::EnvName;
use crate::facts::ProcessFacts;
use crate::text::base_name;
use emberscope_model::Role;

/// Works out a Python process's identity.
pub(super) fn identify(identity: &mut Identity, facts: &ProcessFacts) {
    let module = module(&facts.words);
    if let Some(name) = module.or_else(|| script(&facts.words)) {
        identity.program = super::plain_name(base_name(name));
    }
    // spark.python.daemon.module may name another module; SPARK_REUSE_WORKER is set for all of them
    // (PythonWorkerFactory.scala), and a subprocess of a worker inherits it.
    let of_worker = facts.environ.has(EnvName::ReuseWorker) || facts.environ.has(EnvName::PythonRuntime);
    if of_worker || module.is_some_and(|m| m == "pyspark.daemon" || m == "pyspark.worker") {
        identity.role = Role::Python;
        // A worker has the words and the environment of the daemon that it is a fork of; its parent tells them apart
        // (`family`). With spark.python.use.daemon=false it is a program of its own.
        let alone = module.is_some_and(|m| m == "pyspark.worker");
        identity.python = Some(if alone { PythonSide::Worker } else { PythonSide::Daemon });
    } else if facts.environ.has(EnvName::GatewayPort) {
        identity.role = Role::Python;
        identity.python = Some(PythonSide::Driver);
    }
}

/// The module of `-m`, as a word of its own among the interpreter's options.
fn module(words: &[String]) -> Option<&str> {
    let at = interpreter_options(words);
    (words.get(at)? == "-m").then(|| words.get(at + 1).map(String::as_str))?
}

/// The script: the first word that is no option.
fn script(words: &[String]) -> Option<&str> {
    words.get(interpreter_options(words)).map(String::as_str).filter(|w| !w.starts_with('-'))
}

/// Index of the first word that is no plain option: a script, `-m` or `-c`.
fn interpreter_options(words: &[String]) -> usize {
    let mut i = 1;
    while let Some(word) = words.get(i) {
        match word.as_str() {
            "-m" | "-c" => break,
            // -W and -X take the next word.
            "-W" | "-X" => i += 2,
            w if w.starts_with('-') && w.len() > 1 => i += 1,
            _ => break,
        }
    }
    i
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::identity_of;

    #[test]
    fn daemon_and_worker_modules() {
        for (words, side) in [
            (&["python3", "-m", "pyspark.daemon"][..], PythonSide::Daemon),
            (&["python3", "-m", "pyspark.daemon", "pyspark.worker"], PythonSide::Daemon),
            (&["/usr/bin/python3.11", "-u", "-X", "dev", "-m", "pyspark.worker"], PythonSide::Worker),
        ] {
            let identity = identity_of(words, &[]);
            assert_eq!((identity.role, identity.python), (Role::Python, Some(side)), "{words:?}");
        }
        assert_eq!(
            identity_of(&["python3", "-m", "corp.daemon"], &["SPARK_REUSE_WORKER=1"]).role,
            Role::Python
        );
    }

    #[test]
    fn names_inside_other_words_do_not_count() {
        for words in
            [&["python3", "-c", "-m pyspark.daemon"][..], &["python3", "x.py", "-m", "pyspark.daemon"]]
        {
            assert_eq!(identity_of(words, &[]).role, Role::Other, "{words:?}");
        }
        assert_eq!(identity_of(&["python3", "/opt/jobs/x.py", "-m"], &[]).program, "x.py");
        assert_eq!(identity_of(&["python3"], &[]).program, "python3");
        assert_eq!(identity_of(&["python3", "-c", "import x"], &[]).program, "python3");
    }

    #[test]
    fn the_users_program() {
        let identity = identity_of(&["python3", "/opt/job.py", "60"], &["PYSPARK_GATEWAY_PORT=35239"]);
        assert_eq!((identity.role, identity.python), (Role::Python, Some(PythonSide::Driver)));
        let jvm = identity_of(&["java", "com.example.Main"], &["PYSPARK_GATEWAY_PORT=1"]);
        assert_eq!(jvm.role, Role::Other);
    }
}
