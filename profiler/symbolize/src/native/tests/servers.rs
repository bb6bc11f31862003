//! Names of debug files that a server sends.

use super::*;

/// elfutils' own server, of what is below a directory; ended when dropped.
struct Server(std::process::Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_stripped_file_has_the_names_that_a_server_sends() {
    let dir = tempfile::tempdir().unwrap();
    let (work, kept) = (dir.path().join("work"), dir.path().join("kept"));
    std::fs::create_dir(&work).unwrap();
    let (_, at) = program(&work);
    run(&work, "cc", &["-g", "-O1", "-fno-ipa-cp", "-Wl,--build-id=sha1", "-o", "p", "p.c"]);
    run(&work, "objcopy", &["--strip-all", "p", "../bare"]);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = std::process::Command::new("debuginfod");
    command.args(["-d", ":memory:", "-p", &port.to_string(), "-F"]).arg(&work);
    let output = || std::fs::File::create(dir.path().join("log")).unwrap();
    let Ok(server) = command.stdout(output()).stderr(output()).spawn() else {
        emberscope_testkit::skip("there is no debuginfod (Debian's package of that name)");
        return;
    };
    let _server = Server(server);
    let url = format!("http://127.0.0.1:{port}");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    // It listens, and then reads the directory.
    let scanned = || ureq::get(format!("{url}/metrics")).call().ok()?.into_body().read_to_string().ok();
    while !scanned().is_some_and(|text| text.contains("found_debuginfo_total{source=\"files\"} 1")) {
        assert!(std::time::Instant::now() < deadline, "{:?}", scanned());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let mut natives = Natives::new(64 << 20, 100);
    natives.ask_servers(Debuginfod::start(vec![url.clone()], &kept).unwrap());
    let (path, mut frames) = (dir.path().join("bare"), FrameTable::new(Default::default()));
    let file = File::open(&path).unwrap();
    let mut name = || {
        let id = natives.module("bare", &file, &rustix::fs::fstat(&file).unwrap());
        natives.poll();
        let frame = natives.name(id, at, Some((&file, &path)), &mut frames);
        (frame.name.to_string(), natives.counters().debuginfod)
    };
    let mut last = name();
    assert_eq!(last.0, module::offset_name("bare", at), "nothing waits for it");
    while !last.0.starts_with("hidden_work") && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(50));
        last = name();
    }
    assert!(
        last.0.starts_with("hidden_work"),
        "{last:?}: {:?}",
        std::fs::read_to_string(dir.path().join("log"))
    );
    assert_eq!(last.1, DebuginfodCounters { fetched: 1, ..Default::default() });
    assert_eq!(std::fs::read_dir(&kept).unwrap().count(), 1);
}
