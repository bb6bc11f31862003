//! The whole path on real Spark: two applications at once under one daemon, and what every door says.
//!
//! Starting Spark costs more than asking, so [`two_applications_under_one_daemon`] starts it once and asks
//! all: application A (two executors, frame pointers) and B (one executor, none kept by its JVMs). The
//! truth that answers are held against is /proc: command lines, process groups, CPU times.

mod answers;
mod apps;
mod ask;
mod commands;
mod launched;
mod limits;
mod stack_ends;

use answers::{formats_agree, jit_frames_are_named, nothing_is_mixed, windows_are_exact};
use apps::{App, cpu_seconds, now_ms, number, sleep_until};
use ask::{ask_folded, ask_json};
use commands::{a_recording_needs_no_daemon, bad_names_of_applications, commands_ask_the_daemon};
use limits::{a_small_ring_loses_and_says_so, only_what_was_chosen_is_kept};
use stack_ends::without_frame_pointers_stacks_say_why_they_end;

use anyhow::{Result, ensure};
use emberscope_tests::{FRAME_POINTERS, Here, WARM_UP, wait_visible};
use std::time::{Duration, Instant};

/// The daemon's own default.
const WINDOW_MS: u64 = 10_000;
const SAMPLE_NS: f64 = 1e9 / 99.0;
/// CPU seconds of an executor's first rounds: class loading, interpreter, first compilations. The JIT's
/// own threads are in it, so that a crowded machine is given the time it needs.
const JIT_WARM_UP: f64 = 20.0;

#[test]
fn two_applications_under_one_daemon() -> Result<()> {
    let Some(here) = Here::or_skip("two_applications_under_one_daemon") else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let daemon = here.daemon(dir.path(), &[])?;
    let job = |name: &str, master: &str, java: &str| {
        let job = here.spark("demo.py", &dir.path().join(name)).arg("--seconds").arg("3600").event_log();
        job.master(master).java_options(java).start()
    };
    // One after the other: Spark's id of an application is the second in which it started.
    let a = App::started(job("a", "local-cluster[2,1,1024]", FRAME_POINTERS)?, 2)?;
    let b = App::started(job("b", "local-cluster[1,1,1024]", "")?, 1)?;
    ensure!(a.id != b.id);
    launched::executors_are_as_asked_for(&a)?;
    let small_ring = a_small_ring_loses_and_says_so(&here, &dir.path().join("ring"));
    let chosen = only_what_was_chosen_is_kept(&here, &dir.path().join("keep"), &a, &b);
    warm_up(&a)?;

    let from = now_ms() / WINDOW_MS * WINDOW_MS + WINDOW_MS;
    let until = from + 2 * WINDOW_MS;
    sleep_until(until);
    wait_visible(&daemon, until)?;
    let range = format!("from={from}&until={until}");
    // All are looked at, whatever the first of them says.
    let parts = [
        ("a small ring", small_ring),
        ("the choice of what is kept", chosen),
        ("nothing mixed", nothing_is_mixed(&daemon, &a, &b, &range)),
        ("windows", windows_are_exact(&daemon, &a, from)),
        ("formats", formats_agree(&here, &daemon, &a, &range, dir.path())),
        ("names", jit_frames_are_named(&daemon, &a, &range)),
        ("no frame pointers", without_frame_pointers_stacks_say_why_they_end(&here, &daemon, &a, &b, &range)),
        ("bad names", bad_names_of_applications(&daemon, &a, &b)),
        ("commands", commands_ask_the_daemon(&here, &daemon, &a, &b, dir.path())),
        ("recordings", a_recording_needs_no_daemon(&here, &a, dir.path())),
    ];
    let wrong = parts.into_iter().filter_map(|(part, result)| Some(format!("{part}: {:#}", result.err()?)));
    let wrong: Vec<String> = wrong.collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    let lost = number(&ask_json(&daemon, "")?["quality"]["lost"])?;
    // Other reasons cost detail that comes again (an event, a stack sent twice); samples may not be lost.
    let metrics = daemon.get("/metrics")?.body;
    for reason in ["ring_full_sample", "no_scratch"] {
        let none = format!("emberscope_lost_total{{reason=\"{reason}\"}} 0\n");
        ensure!(lost == 0 && metrics.contains(&none), "lost {lost} samples, or {reason} is not 0");
    }
    ensure!(daemon.stop()?.success());
    launched::a_job_ends_with_all_of_it(a.job)
}

/// Waits until the executors have worked enough for the JIT to have come to rest.
fn warm_up(app: &App) -> Result<()> {
    let begun = Instant::now();
    for pid in app.executor_pids() {
        while cpu_seconds(pid)? < JIT_WARM_UP {
            ensure!(begun.elapsed() < WARM_UP, "executor {pid} has used only {} s of CPU", cpu_seconds(pid)?);
            std::thread::sleep(Duration::from_millis(500));
        }
    }
    Ok(())
}

#[test]
fn samples_are_the_cpu_time_that_the_kernel_accounts() -> Result<()> {
    let Some(here) = Here::or_skip("samples_are_the_cpu_time_that_the_kernel_accounts") else {
        return Ok(());
    };
    let dir = tempfile::tempdir()?;
    let daemon = here.daemon(dir.path(), &["--window", "5s"])?;
    let source = include_str!("../jobs/Split.java");
    let mut split = here
        .java("Split", source)
        .flag("-XX:CompileCommand=quiet")
        .flag("-XX:CompileCommand=dontinline,Split::*")
        .arg("120")
        .start(dir.path())?;
    let pid: u32 = split.wait_fact("started", WARM_UP)?.parse()?;
    std::thread::sleep(Duration::from_secs(2));
    let from = now_ms() / 5000 * 5000 + 5000;
    let until = from + 25_000;
    sleep_until(from);
    let before = cpu_seconds(pid)?;
    sleep_until(until);
    let truth = cpu_seconds(pid)? - before;
    wait_visible(&daemon, until)?;

    let query = format!("pid={pid}&from={from}&until={until}");
    let answer = ask_json(&daemon, &query)?;
    let samples = number(&answer["quality"]["samples"])? as f64;
    let seen = number(&ask_json(&daemon, &format!("{query}&unit=ns"))?["total"])? as f64 / 1e9;
    // Ticks hit a program that has a share p of its CPU with a standard deviation of sqrt((1 - p) / n): three of
    // them are allowed where the machine is crowded, 0.7 / sqrt(n) where it is not.
    let share = (truth / 25.0).min(1.0);
    let (deviation, error) = (seen / truth - 1.0, (3.0 * (1.0 - share).sqrt()).max(0.7) / samples.sqrt());
    println!(
        "{samples} samples are {seen:.3} s; /proc says {truth:.2} s: {:+.2} %, allowed 1 + {:.2} %",
        100.0 * deviation,
        100.0 * error
    );
    ensure!(samples > 200.0, "{samples} samples: the program did not run");
    ensure!(deviation.abs() <= 0.01 + error, "{seen} s seen, {truth} s used");
    ensure!(answer["quality"]["lost"] == 0, "{}", answer["quality"]);

    // The known split: seven of ten rounds in one method, three in the other.
    let stacks = ask_folded(&daemon, &query)?;
    let of =
        |method: &str| -> u64 { stacks.iter().filter(|(s, _)| s.contains(method)).map(|(_, n)| n).sum() };
    let (seven, three) = (of(";Split.seven"), of(";Split.three"));
    let share = seven as f64 / (seven + three).max(1) as f64;
    println!("Split.seven has {:.2} % of {} samples", 100.0 * share, seven + three);
    ensure!((seven + three) as f64 > 0.95 * samples, "{seven} and {three} of {samples} samples are named");
    // Three standard deviations of a share of 0.7.
    let error = 1.4 / ((seven + three) as f64).sqrt();
    ensure!((share - 0.7).abs() <= 0.01 + error, "Split.seven has {share} of {} samples", seven + three);
    ensure!(daemon.stop()?.success());
    Ok(())
}
