//! A layout that outlived its program.

use super::*;

/// Between reading a layout and handing it to the kernel the process may run another program.
#[test]
fn a_layout_of_the_program_before_is_nobodys() -> Result<()> {
    let test = "a_layout_of_the_program_before_is_nobodys";
    if !emberscope_tests::is_root() {
        skip(test, "loading BPF programs needs root");
        return Ok(());
    }
    let mut capture = match Capture::start(&CaptureConfig::default(), &HostFeatures::probe()) {
        Err(error @ CaptureError::NotBuilt) => {
            skip(test, &error.to_string());
            return Ok(());
        }
        started => started?,
    };
    let mut shell = Command::new("sh");
    shell.args(["-c", "read line; exec sleep 60"]).stdin(Stdio::piped());
    let mut child = shell.spawn()?;
    let (pid, read) = (child.id(), JvmLayout::default().to_bytes());
    ensure!(!capture.set_runtime(RuntimeId::HOTSPOT, pid, &read)?, "nobody expects it");
    capture.expect_runtime(RuntimeId::HOTSPOT, pid)?;
    ensure!(
        capture.set_runtime(RuntimeId::HOTSPOT, pid, &read)? && capture.has_runtime(RuntimeId::HOTSPOT, pid)
    );
    capture.expect_runtime(RuntimeId::HOTSPOT, pid)?;
    drop(child.stdin.take());
    wait_program(pid, "/sleep")?;
    // The link changes a moment before the kernel tells of the exec (fs/exec.c, begin_new_exec and exec_binprm).
    let begun = Instant::now();
    while capture.has_runtime(RuntimeId::HOTSPOT, pid) && begun.elapsed() < Duration::from_secs(10) {
        pause(1);
    }
    ensure!(
        !capture.set_runtime(RuntimeId::HOTSPOT, pid, &read)?
            && !capture.has_runtime(RuntimeId::HOTSPOT, pid),
        "it is another program now"
    );
    capture.expect_runtime(RuntimeId::HOTSPOT, pid)?;
    child.kill()?;
    child.wait()?;
    ensure!(
        !capture.set_runtime(RuntimeId::HOTSPOT, pid, &read)?
            && !capture.has_runtime(RuntimeId::HOTSPOT, pid),
        "it has ended"
    );
    Ok(())
}
