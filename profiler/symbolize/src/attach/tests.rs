//! Answers, silence, drips, and what is no socket.

use super::*;

#[test]
fn understands_answers() {
    let of = |text: &str| understand(text.as_bytes(), "Compiler.perfmap", 7);
    assert_eq!(of("0\nCommand executed successfully\n"), Ok("Command executed successfully".into()));
    assert_eq!(of(""), Err(AskError::Denied(7)));
    assert_eq!(
        of("1\njava.lang.IllegalArgumentException: Unknown diagnostic command\n"),
        Err(AskError::UnknownCommand("Compiler.perfmap".into()))
    );
    assert_eq!(of("101\n"), Err(AskError::Failed("101".into())));
    assert!(of("1\nx\x1b[2J\n").is_err_and(|e| !e.to_string().contains('\x1b')));
}

#[test]
fn a_socket_that_never_answers_times_out() {
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let begun = Instant::now();
    let got = talk(ours, "VM.version", 0, Duration::from_millis(50));
    assert_eq!(got, Err(AskError::Timeout("answering")));
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[test]
fn a_socket_that_drips_times_out() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let dripper = std::thread::spawn(move || {
        while theirs.write_all(b"0").is_ok() {
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    assert_eq!(talk(ours, "x", 0, Duration::from_millis(100)), Err(AskError::Timeout("answering")));
    dripper.join().unwrap();
}

#[test]
fn nothing_but_a_socket_is_spoken_to() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("tmp")).unwrap();
    std::os::unix::fs::symlink("/run/x", dir.path().join("tmp/.java_pid1")).unwrap();
    std::fs::write(dir.path().join("tmp/.java_pid2"), "").unwrap();
    let root = open::root(dir.path()).unwrap();
    let jvm = |nspid| Jvm {
        process_dir: "/proc/self".into(),
        pid: std::process::id(),
        nspid,
        start_ticks: 0,
        uid: rustix::process::geteuid().as_raw(),
        gid: 0,
    };
    let ask = |nspid| ask(&jvm(nspid), &root, "VM.version", Duration::from_millis(50)).unwrap_err();
    assert!(matches!(ask(1), AskError::Unsafe(..)));
    assert!(matches!(ask(2), AskError::Unsafe(..)));
    // We catch no SIGQUIT: were it sent, this test would end here.
    assert_eq!(ask(3), AskError::Never("not a HotSpot JVM"));
    assert!(!dir.path().join("tmp/.attach_pid3").exists());
}
