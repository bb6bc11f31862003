//! The stack oracle's Python half: a program that tells its own stacks (tests/jobs/python_oracle.py), run on each CPython of
//! this machine, and what the daemon says of it, compared frame by frame: Python's functions, and those of its C library.

mod interpreters;
mod library;
mod split;

pub use interpreters::{Python, pythons};
pub use library::{C_SCENES, library};
pub use split::{Part, Split};

use crate::clock::{VISIBLE_AFTER, now};
use crate::launch::{Daemon, Running};
use crate::{places, step};
use anyhow::{Context as _, Result, ensure};
use library::{copied, is_of_library};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Scenes whose stack stays as it is for all of their time.
pub const SCENES: [&str; 11] = [
    "recursion",
    "deep",
    "generators",
    "comprehensions",
    "callbacks",
    "decorated",
    "exceptions",
    "classes",
    "evaluated",
    "coroutines",
    "threads",
];
/// The scene of two functions with known shares, which takes many samples.
pub const SPLIT: [&str; 4] = ["split"; 4];
/// The same of two lines of one function.
pub const LINES: [&str; 4] = ["lines"; 4];
/// The same of Python code and numpy's, after once for finding numpy's libraries. Wants `packages`.
pub const NUMPY: [&str; 5] = ["numpy"; 5];
/// The program, its library and what its scenes wait for, in a chroot.
const COPY: &str = "tmp/python_oracle.py";
const LIBRARY: &str = "tmp/python_oracle.so";
const KNOWN: &str = "tmp/python_oracle.known";
/// Until the program is known, and after its end.
const SLACK: Duration = Duration::from_secs(60);
/// Samples of which a program's stacks are judged before its scenes begin, at the least, and the part of them that is whole.
const FEW: usize = 20;
const WHOLE: f64 = 0.99;

/// What a scene told.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Its name.
    pub name: String,
    /// First and last instant, Unix milliseconds.
    pub range: (u64, u64),
    /// Its stack, root first.
    pub stack: Vec<String>,
    /// Shares of its functions in the CPU time of both.
    pub shares: BTreeMap<String, f64>,
}

/// Scenes that have run.
pub struct Ran {
    /// What each told.
    pub scenes: Vec<Scene>,
    /// The program.
    pub pid: u32,
}

/// Scenes to run.
pub struct Plan<'a> {
    /// Their names.
    pub scenes: &'a [&'a str],
    /// Each for so long, in whole windows.
    pub each: Duration,
    /// The daemon's.
    pub window: Duration,
    /// The program's output.
    pub log: &'a Path,
    /// [`library`]'s, which [`C_SCENES`] want.
    pub library: Option<&'a Path>,
}

/// Runs scenes, once the daemon knows the interpreter.
pub fn run(daemon: &Daemon, python: &Python, plan: &Plan) -> Result<Ran> {
    let Plan { scenes, each, window, log, library } = *plan;
    let script = places::workspace().join("tests/jobs/python_oracle.py");
    let (first, rest) = python.command.split_first().context("a Python without a program")?;
    let mut command = Command::new(first);
    // What runs in a chroot sees nothing of the workspace.
    let (script, library, known, seen) = match &python.root {
        None => {
            let known = log.with_extension("known");
            (script, library.map(Path::to_owned), known.clone(), known)
        }
        Some(root) => {
            let library = library.map(|library| copied(library, root, LIBRARY)).transpose()?;
            (copied(&script, root, COPY)?, library, root.join(KNOWN), Path::new("/").join(KNOWN))
        }
    };
    let _ = std::fs::remove_file(&known);
    command.args(rest).arg(script).arg(scenes.join(","));
    command.arg(each.as_secs_f64().to_string()).arg(window.as_millis().to_string()).arg(seen);
    command.args(library);
    if let Some(packages) = &python.packages {
        // Else numpy's own threads are samples of the process.
        command.env("PYTHONPATH", packages).env("OPENBLAS_NUM_THREADS", "1");
    }
    let shown = step::shown(&command);
    let mut running = Running::start("the Python oracle", &mut command, log)?;
    let pid = running.pid();
    let begun = Instant::now();
    while !is_known(daemon, pid, window)? {
        ensure!(
            begun.elapsed() < SLACK,
            "the daemon does not show whole Python stacks of {shown} in {SLACK:?}"
        );
        ensure!(running.ended()?.is_none(), "{shown} ended:\n{}", step::tail(log, 30));
        std::thread::sleep(Duration::from_millis(200));
    }
    std::fs::write(&known, "").with_context(|| format!("writing {}", known.display()))?;
    running.wait(SLACK + (each + 2 * window) * scenes.len() as u32)?;
    let text = std::fs::read_to_string(log).with_context(|| format!("reading {}", log.display()))?;
    let told: Vec<Scene> = text.lines().filter_map(scene).collect();
    ensure!(told.len() == scenes.len(), "{shown} told {} of {} scenes:\n{text}", told.len(), scenes.len());
    Ok(Ran { scenes: told, pid })
}

/// Whether the last stacks of it that can be asked for are whole: the interpreter is known, and the unwind tables of what the program leads through
/// are built, which takes seconds beside other work.
fn is_known(daemon: &Daemon, pid: u32, window: Duration) -> Result<bool> {
    let until = now();
    let from = until.saturating_sub((VISIBLE_AFTER + 2 * window).as_millis() as u64);
    let answer =
        daemon.json(&format!("/api/v1/flamegraph?pid={pid}&from={from}&until={until}&format=json"))?;
    let (mut whole, mut all) = (0, 0);
    for (count, names) in stacks(&answer) {
        let is_whole = names.first().is_some_and(|name| name == "<module>")
            && !names.iter().any(|name| name.starts_with("[unknown"));
        (whole, all) = (whole + if is_whole { count } else { 0 }, all + count);
    }
    Ok(whole >= FEW && whole as f64 >= WHOLE * all as f64)
}

fn scene(line: &str) -> Option<Scene> {
    let told: Value = serde_json::from_str(line).ok()?;
    let texts = told["stack"].as_array().map_or(&[][..], Vec::as_slice).iter();
    let shares = told["shares"].as_object().into_iter().flatten();
    Some(Scene {
        name: told["scene"].as_str()?.to_owned(),
        range: (told["from"].as_u64()?, told["until"].as_u64()?),
        stack: texts.filter_map(|name| Some(name.as_str()?.to_owned())).collect(),
        shares: shares.filter_map(|(name, share)| Some((name.clone(), share.as_f64()?))).collect(),
    })
}

/// What the daemon says of a scene.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// Samples.
    pub n: usize,
    /// Those whose Python frames begin with the thread's first.
    pub rooted: usize,
    /// Those whose frames are as told.
    pub equal: usize,
    /// Samples of each innermost Python function.
    pub leaves: BTreeMap<String, usize>,
    /// What was not as told, most frequent first.
    pub others: Vec<(usize, String)>,
}

impl Judged {
    /// Of a scene's time.
    pub fn of(daemon: &Daemon, pid: u32, scene: &Scene) -> Result<Self> {
        let (from, until) = scene.range;
        let query = format!("pid={pid}&from={from}&until={until}&format=json");
        Ok(Self::in_answer(&daemon.json(&format!("/api/v1/flamegraph?{query}"))?, scene))
    }

    fn in_answer(answer: &Value, scene: &Scene) -> Self {
        let mut judged = Self::default();
        let mut others: BTreeMap<String, usize> = BTreeMap::new();
        for (count, names) in stacks(answer) {
            judged.n += count;
            judged.rooted += if names.first() == scene.stack.first() { count } else { 0 };
            if let Some(leaf) = names.last() {
                *judged.leaves.entry(leaf.clone()).or_default() += count;
            }
            if names == scene.stack {
                judged.equal += count;
            } else {
                *others.entry(names.join(";")).or_default() += count;
            }
        }
        judged.others = others.into_iter().map(|(names, count)| (count, names)).collect();
        judged.others.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        judged
    }
}

/// The nodes of each stack, root first, and its samples.
pub fn paths(answer: &Value) -> Vec<(usize, Vec<&Value>)> {
    let nodes = answer["nodes"].as_array().map_or(&[][..], Vec::as_slice);
    let mut found = Vec::new();
    for (id, node) in nodes.iter().enumerate() {
        let count = node["self"].as_u64().unwrap_or(0) as usize;
        if count == 0 {
            continue;
        }
        let (mut path, mut at) = (Vec::new(), Some(id));
        while let Some((id, node)) = at.and_then(|id| Some((id, nodes.get(id)?))) {
            path.push(node);
            // A parent stands before its children.
            at = node["parent"].as_u64().map(|above| above as usize).filter(|above| *above < id);
        }
        path.reverse();
        found.push((count, path));
    }
    found
}

/// The functions of each stack that scenes tell, root first, without their files, and its samples.
fn stacks(answer: &Value) -> Vec<(usize, Vec<String>)> {
    let name = |node: &&Value| {
        let name = node["name"].as_str()?;
        match node["kind"].as_str() {
            Some("python") => Some(without_file(name).to_owned()),
            Some("native") if is_of_library(name) => Some(name.to_owned()),
            Some("unknown") => Some(name.to_owned()),
            _ => None,
        }
    };
    let names = |path: Vec<&Value>| path.iter().filter_map(name).collect();
    paths(answer).into_iter().map(|(count, path)| (count, names(path))).collect()
}

/// A Python function's name, of `name (file)`.
pub fn without_file(name: &str) -> &str {
    name.rsplit_once(" (").map_or(name, |(name, _)| name)
}

#[cfg(test)]
mod tests;
