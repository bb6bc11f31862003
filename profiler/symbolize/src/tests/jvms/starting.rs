//! JVMs that have just begun.

use super::*;

/// SIGQUIT kills a JVM that has not installed its handler: asked at any moment of its start, it lives.
#[test]
fn a_hundred_starting_jvms_survive_being_asked() {
    let Some(jdk) = jdks().into_iter().next() else { return };
    let jdk25 = jdks().into_iter().last().unwrap_or_else(|| jdk.clone());
    let (mut answered, mut not_ready, mut other) = (0, 0, Vec::new());
    for batch in 0..10u64 {
        let started = Instant::now();
        let mut jvms: Vec<(Java, Duration)> = (0..10u64)
            .map(|i| {
                let jdk = if i % 2 == 0 { &jdk } else { &jdk25 };
                let mut command = Command::new(jdk.join("bin/java"));
                command.args(["-Xshare:auto", "-Xmx64m", "-cp", "/nonexistent"]);
                command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/testdata/Sleep.java"));
                command.stdout(Stdio::null()).stderr(Stdio::null());
                // Spread over the start, and dense at its beginning.
                let delay = Duration::from_millis((batch * 10 + i).pow(2) / 8);
                (Java(command.spawn().unwrap()), delay)
            })
            .collect();
        for (jvm, delay) in &mut jvms {
            std::thread::sleep((started + *delay).saturating_duration_since(Instant::now()));
            let me = target(jvm.pid());
            let process_dir = PathBuf::from(format!("/proc/{}", jvm.pid()));
            let Ok(root) = open::root(&process_dir.join("root")) else { continue };
            let ask = attach::Jvm {
                process_dir,
                pid: jvm.pid(),
                nspid: me.nspid,
                start_ticks: me.key.start_ticks,
                uid: me.uid,
                gid: me.gid,
            };
            // Hammered, as fast as can be, until it answers or a while has passed.
            let until = Instant::now() + Duration::from_millis(300);
            loop {
                match attach::ask(&ask, &root, "Compiler.perfmap", Duration::from_secs(20)) {
                    Ok(_) => {
                        answered += 1;
                        break;
                    }
                    // Before exec and before libjvm is mapped it is no JVM.
                    Err(AskError::NotReady | AskError::Never(_)) if Instant::now() < until => {}
                    Err(AskError::NotReady | AskError::Never(_)) => {
                        not_ready += 1;
                        break;
                    }
                    Err(error) => {
                        other.push(error);
                        break;
                    }
                }
            }
            let _ = std::fs::remove_file(format!("/tmp/perf-{}.map", jvm.pid()));
        }
        for (jvm, delay) in &mut jvms {
            assert!(jvm.alive(), "killed by being asked {delay:?} after its start");
        }
    }
    println!("asked 100 starting JVMs: {answered} answered, {not_ready} were not ready, others {other:?}");
    assert!(answered > 30);
}
