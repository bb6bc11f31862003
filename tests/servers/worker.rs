//! A worker that is killed under an application: its executor ends with it, its tasks run elsewhere, and all that ran has its
//! executor and its task.

use super::*;
use xtask::launch::spark::TASK_JOBS;

/// Seconds that each task works, and tasks: three rounds of two cores.
const TASKS: (u64, u64) = (3, 6);
/// How much of the tasks' samples must be bound.
const BOUND: f64 = 0.98;

pub fn killed_under_an_application(world: &mut World) -> Result<()> {
    let (seconds, tasks) = TASKS;
    let job = SparkJob::java(&TASK_JOBS, &world.here.venv, &world.here.java, &world.dir.join("job"));
    let mut job = world.on_cluster(job)?.arg(format!("steady:{seconds}:{tasks}")).start()?;
    let app = job.wait_fact("app", WARM_UP)?;
    job.wait_fact("steady.started", WORK)?;
    let before = procfs::executors(&app);
    ensure!(before.len() == 2, "{app} has the executors {before:?}");
    // In the first round: both work.
    std::thread::sleep(Duration::from_secs(seconds) / 2);
    world.cluster.kill_worker(1);
    job.wait_fact("done", WORK)?;
    let until = now_ms()?;
    wait_visible(&world.daemon, until)?;
    let left = procfs::executors(&app);
    let gone: Vec<u32> = before.iter().filter(|pid| !left.contains(pid)).copied().collect();
    ensure!(gone.len() == 1, "of {before:?} there are {left:?}");
    let query = format!("app={app}&until={until}");
    // Spark starts another where there are cores.
    let answer = world.daemon.json(&format!("/api/v1/executors?{query}"))?;
    let rows = answer["executors"].as_array().context("no executors")?;
    for pid in before.iter().chain(&left) {
        let of_it =
            |row: &&Value| row["pids"].as_array().is_some_and(|pids| pids.contains(&Value::from(*pid)));
        let row = rows.iter().find(of_it).with_context(|| format!("{pid} is none of {answer}"))?;
        ensure!(row["role"] == "executor" && row["samples"].as_u64() > Some(0), "{row}");
    }
    let stage = job.fact("steady.stages").context("no stage")?;
    let answer = world.daemon.json(&format!("/api/v1/stages?{query}"))?;
    let row = answer["stages"].as_array().and_then(|rows| rows.iter().find(|row| row["stage"] == *stage));
    let row = row.with_context(|| format!("no stage {stage}: {answer}"))?;
    ensure!(row["tasks"].as_u64() > Some(tasks), "one task was lost and tried again: {row}");
    let of_tasks = world.folded(&format!("{query}&role=executor&thread_class=task&group=stage,task"))?;
    let bound = |stack: &str| stack.starts_with("stage=") && !stack.starts_with("stage=unknown");
    let all: u64 = of_tasks.iter().map(|(_, count)| count).sum();
    let known: u64 = of_tasks.iter().filter(|(stack, _)| bound(stack)).map(|(_, count)| count).sum();
    println!(
        "{known} of {all} samples of task threads have their stage; executor {gone:?} ended with its worker"
    );
    ensure!(known as f64 >= BOUND * all as f64, "{known} of {all}");
    let driver = job.pid();
    world.is_known(&app, "task jobs", driver)?;
    std::fs::write(format!("/proc/{driver}/cwd/stop"), "")?;
    job.wait(WORK)
}
