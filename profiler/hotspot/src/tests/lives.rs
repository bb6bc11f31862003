//! JVMs that begin, end, or live in another namespace.

use super::*;

#[test]
fn a_jvm_that_dies_meanwhile_ends_the_reading() {
    let Some(jdk) = jdks().into_iter().next() else { return };
    for wait in [0, 1, 2, 5] {
        let (mut java, told) = threads(&jdk, &["-Xmx128m"], false).unwrap();
        let jvm = open_jvm(java.pid());
        assert!(jvm.thread_names().unwrap().names.len() > told.len());
        java.0.kill().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        // It may be read until its memory is taken down.
        let deadline = Instant::now() + Duration::from_secs(20);
        let end = loop {
            match jvm.thread_names() {
                Err(problem) if problem == JvmProblem::Gone => break problem,
                other => assert!(Instant::now() < deadline, "{other:?}"),
            }
        };
        assert_eq!(end, JvmProblem::Gone);
        java.0.wait().unwrap();
        assert_eq!(jvm.string_layout().unwrap_err(), JvmProblem::Gone);
    }
}

#[test]
fn from_its_first_moment_it_is_not_ready_or_right() {
    for jdk in jdks() {
        let mut command = command(&jdk, &["-Xmx128m"]);
        let begun = Instant::now();
        let java = Java(command.stdout(Stdio::null()).spawn().unwrap());
        let dir = format!("/proc/{}", java.pid());
        let files = LibjvmFiles::default();
        let (mut seen, mut found) = (Vec::new(), None);
        let names = loop {
            let opened = Jvm::open(Path::new(&dir), 0, &files);
            found = found.or_else(|| opened.is_ok().then(|| begun.elapsed()));
            match opened.and_then(|jvm| jvm.thread_names()) {
                Ok(read) if !read.names.is_empty() => break read,
                Ok(_) => {}
                Err(problem) => {
                    assert!(problem.may_pass(), "{problem}");
                    if !seen.contains(&problem) {
                        seen.push(problem);
                    }
                }
            }
            assert!(begun.elapsed() < Duration::from_secs(60));
        };
        println!(
            "{}: libjvm at {found:?}, names at {:?}: {names:?}, before: {seen:?}",
            jdk.display(),
            begun.elapsed()
        );
    }
}

/// Its own PID namespace, its own /tmp and another user.
#[test]
fn threads_of_another_pid_namespace_have_our_ids() {
    let test = "threads_of_another_pid_namespace_have_our_ids";
    let unshared = Command::new("unshare").args(["--pid", "--fork", "true"]).stderr(Stdio::null()).status();
    if !unshared.is_ok_and(|status| status.success()) {
        return skip(test, "no PID namespace can be made here");
    }
    let Some(jdk) = jdks().into_iter().next() else { return };
    let mut inside = Command::new("unshare");
    let plain = command(&jdk, &["-Xmx128m"]);
    inside.args(["--pid", "--fork", "--mount-proc", "--kill-child"]).arg(plain.get_program());
    inside.args(plain.get_args());
    let Some((java, told)) = started(inside) else { return skip(test, "unshare --mount-proc fails here") };
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", java.pid())).unwrap();
    let pid: u32 = children.trim().parse().unwrap();
    let read = open_jvm(pid).thread_names().unwrap();
    let ours = tids::by_own_id(Path::new(&format!("/proc/{pid}"))).unwrap();
    let names: HashMap<u32, String> = read.names.into_iter().collect();
    for (own, name) in told {
        assert_ne!(ours[&own], own);
        let expected = bounded(&name);
        assert_eq!(names.get(&ours[&own]), Some(&expected));
    }
}
