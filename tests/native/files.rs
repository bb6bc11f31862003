//! Where a program's code may lie: files that are gone, replaced, stripped, in another mount namespace; memory without a
//! file; a child that has its parent's code.

use super::stacks::{chains, judge};
use super::*;
use emberscope_model::TaskEvent;
use std::collections::HashSet;

/// A copy of the C program in a directory of its own.
fn copied() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let copy = dir.path().join("native");
    std::fs::copy(native(), &copy).expect("copied");
    (dir, copy)
}

/// A chain of calls, after something was done to the running program's file.
fn chain(test: &str, after: impl FnOnce(&Path)) {
    let Some((features, _guard)) = host(test) else { return };
    let (_dir, copy) = copied();
    let program = Running::start(Command::new(&copy).args(["chain", "10"]));
    after(&copy);
    judge(&features, test, &program, &chains(10, "wm.s"));
}

#[test]
fn a_file_that_was_deleted() {
    chain("deleted", |file| std::fs::remove_file(file).expect("removed"));
}

#[test]
fn a_file_that_was_replaced_while_it_runs() {
    chain("replaced", |file| {
        let new = file.with_extension("new");
        std::fs::copy("/bin/sleep", &new).expect("copied");
        std::fs::rename(&new, file).expect("renamed");
    });
}

#[test]
fn a_program_with_nothing_but_debug_frame() {
    let Some((features, _guard)) = host("debug_frame") else { return };
    let mut flags = C_FLAGS.to_vec();
    flags.extend(["-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-g"]);
    let program = compiled("cc", "native.c", &flags, "debug-frame");
    let sections = ["--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr"];
    match Command::new("objcopy").args(sections).arg(&program).status() {
        Ok(done) if done.success() => {}
        _ => return skip("debug_frame", "no objcopy"),
    }
    let program = Running::start(Command::new(program).args(["chain", "10"]));
    judge(&features, "debug_frame", &program, &chains(10, "wm.s"));
}

#[test]
fn a_program_in_a_mount_namespace_of_its_own() {
    let Some((features, _guard)) = host("namespace") else { return };
    let (from, _) = copied();
    let to = tempfile::tempdir().expect("a directory");
    let script = format!(
        "mount --bind {0} {1} && exec {1}/native chain 10",
        from.path().display(),
        to.path().display()
    );
    let program = Running::start(Command::new("unshare").args(["-m", "sh", "-c", &script]));
    if program.first_line.is_empty() {
        return skip("namespace", "no unshare, or not allowed");
    }
    assert!(!to.path().join("native").exists(), "it is not there outside");
    judge(&features, "namespace", &program, &chains(10, "wm.s"));
}

#[test]
fn code_without_a_file_says_so() {
    let Some((features, _guard)) = host("memory") else { return };
    let program = Running::start(Command::new(native()).arg("memory"));
    let seen = sampled(&features, program.pid(), |_| {});
    seen.print("memory");
    let told = seen.share("say that there is no table", |s| s.end == StackEnd::NoTable);
    assert!(seen.all > 100 && told >= 99.0, "{told:.2} % of {}", seen.all);
}

#[test]
fn a_child_is_walked_from_its_first_instruction() {
    let Some((features, _guard)) = host("fork") else { return };
    let program = Running::start(Command::new(native()).arg("fork"));
    let pid = program.pid();
    let config = CaptureConfig { hz: 997, ..CaptureConfig::default() };
    let mut capture = Capture::start(&config, &features).unwrap_or_else(|e| panic!("{e}"));
    let maps = Maps(capture.take_tables().expect("the maps"));
    let mut keeper = Keeper::new(maps, Limits::default()).expect("a keeper");
    // Of the parent alone; its children from then on are looked at.
    learn(&mut keeper, pid);
    let mut events = Vec::new();
    record(&mut capture, Duration::from_millis(100), &mut events);
    events.clear();
    record(&mut capture, seconds(), &mut events);
    let of_program = |event: &RawEvent| match event {
        RawEvent::Task(task) => {
            matches!(task.event, TaskEvent::Fork { parent_pid, .. } if parent_pid == pid).then_some(task.pid)
        }
        _ => None,
    };
    let children: HashSet<Pid> = events.iter().filter_map(of_program).collect();
    let mut stacks: HashMap<u64, (RawStack, usize)> = HashMap::new();
    for event in events {
        match event {
            RawEvent::Stack(stack) if children.contains(&stack.pid) => {
                stacks.entry(stack.hash).or_insert((stack, 0));
            }
            RawEvent::Sample(sample) if children.contains(&sample.pid) => {
                stacks.get_mut(&sample.stack).expect("told before").1 += 1;
            }
            _ => {}
        }
    }
    let all = stacks.values().map(|(_, count)| count).sum();
    let seen = Seen { stacks: stacks.into_values().collect(), all, ns: 0, frames: 0.0 };
    seen.print(&format!("{} children", children.len()));
    let rooted = seen.share("reach the root", |s| s.end == StackEnd::Root);
    // Where the daemon waits for a CPU, a child's list comes later than its own code: those samples say so.
    assert!(children.len() > 20 && all > 100 && rooted >= 97.0, "{rooted:.2} % of {all}, {}", children.len());
}
