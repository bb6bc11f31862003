//! Runs of made-up tests: what fails, dies, passes the second time.

use super::*;

fn shell(script: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]);
    shell
}

#[test]
fn a_run_that_dies_uncounted_is_a_failure() {
    let mut run = Run::default();
    run.tests("a test", Output::Shown, |_| {
        shell("echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured'; exit 101")
    });
    assert_eq!(run.tally, Tally { passed: 2, failed: 1, skipped: 0, no_tests: 0 });
    assert!(run.report(&Default::default(), Instant::now(), Instant::now()).is_err());
}

const FAILS: &str = "echo '---- a stdout ----'; echo 'test result: FAILED. 2 passed; 1 failed'; exit 101";

#[test]
fn a_test_that_fails_twice_has_failed() {
    let mut run = Run::default();
    run.tests("a test", Output::Shown, |_| shell(FAILS));
    run.settle();
    assert_eq!(run.tally, Tally { passed: 2, failed: 1, skipped: 0, no_tests: 0 });
    assert!(
        run.unsteady.is_empty() && run.report(&Default::default(), Instant::now(), Instant::now()).is_err()
    );
    // Nor is it enough that nothing failed: it must have run.
    let mut run = Run::default();
    run.tests("a test", Output::Logged, |again| shell(if again.is_empty() { FAILS } else { "true" }));
    run.settle();
    assert_eq!(run.tally, Tally { passed: 2, failed: 1, skipped: 0, no_tests: 0 });
}

#[test]
fn a_test_that_passes_when_it_runs_again_is_unsteady() {
    let mut run = Run::default();
    run.tests("a test", Output::Shown, |again| {
        shell(if again == ["a"] { "echo 'test result: ok. 1 passed; 0 failed'" } else { FAILS })
    });
    // Not at once: what else runs may be what disturbed it.
    assert_eq!((run.tally.passed, run.unsteady.len()), (2, 0));
    let mut all = Run::default();
    all.append(run);
    let mut run = all;
    run.settle();
    assert_eq!(run.tally, Tally { passed: 3, failed: 0, skipped: 0, no_tests: 0 });
    assert_eq!(run.unsteady, ["a"]);
    assert!(run.report(&Default::default(), Instant::now(), Instant::now()).is_ok());
}

#[test]
fn a_test_of_its_own_passes_skips_or_fails() {
    let mut run = Run::default();
    run.may_skip("right", || Ok(None));
    run.may_skip("lacking", || Ok(Some("there is no qemu".to_owned())));
    let tries = std::cell::Cell::new(0);
    let third = || {
        tries.set(tries.get() + 1);
        if tries.get() % 3 == 0 { Ok(None) } else { bail!("no stack") }
    };
    run.may_skip("wrong twice", third);
    assert_eq!(run.tally, Tally { passed: 1, failed: 1, skipped: 1, no_tests: 0 });
    run.may_skip("right at once", third);
    run.may_skip("wrong", || bail!("no stack"));
    assert_eq!((run.tally, run.unsteady.len()), (Tally { passed: 2, failed: 2, skipped: 1, no_tests: 0 }, 0));
    assert!(run.report(&Default::default(), Instant::now(), Instant::now()).is_err());
}

#[test]
fn many_that_fail_are_no_chance() {
    let mut run = Run::default();
    let many: String = (0..6).map(|n| format!("echo '---- t{n} stdout ----'; ")).collect();
    let script = format!("{many} echo 'test result: FAILED. 2 passed; 6 failed'; exit 101");
    run.tests("a test", Output::Shown, move |again| {
        assert!(again.is_empty());
        shell(&script)
    });
    assert_eq!(run.tally.failed, 6);
}
