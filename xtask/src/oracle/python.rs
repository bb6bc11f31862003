//! The stack oracle's Python half: a program that tells its own stacks (tests/jobs/python_oracle.py), run on each CPython of
//! this machine, and what the daemon says of it, compared frame by frame.

use crate::launch::{Daemon, Running};
use crate::setup::new_python::PYTHON_3_14;
use crate::{places, root, step};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Scenes whose stack stays as it is for all of their time.
pub const SCENES: [&str; 10] = [
    "recursion",
    "deep",
    "generators",
    "comprehensions",
    "callbacks",
    "exceptions",
    "classes",
    "evaluated",
    "coroutines",
    "threads",
];
/// The scene of two functions with known shares, which takes many samples.
pub const SPLIT: [&str; 4] = ["split"; 4];
/// The program, in a chroot.
const COPY: &str = "tmp/python_oracle.py";
/// Until the program is known and its tables are built, and after its end.
const SLACK: Duration = Duration::from_secs(60);

/// A CPython of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Python {
    /// The words that run it.
    pub command: Vec<String>,
    /// Where it runs in a chroot, its root.
    pub root: Option<PathBuf>,
    /// Its minor version.
    pub minor: u32,
    /// As it tells it: `3.11.2`.
    pub version: String,
}

/// Those of pyenv, the system's, and what setup brought, from 3.8 on; oldest first.
pub fn pythons() -> Vec<Python> {
    let home = std::env::var_os("HOME").map_or_else(PathBuf::new, PathBuf::from);
    let root = std::env::var_os("PYENV_ROOT").map_or_else(|| home.join(".pyenv"), PathBuf::from);
    let versions = std::fs::read_dir(root.join("versions")).into_iter().flatten().flatten();
    let programs = versions.map(|version| version.path().join("bin/python3"));
    let mut found: Vec<Python> =
        programs.chain([PathBuf::from("/usr/bin/python3")]).filter_map(of_program).collect();
    if root::is_root() {
        found.extend(PYTHON_3_14.installed().and_then(|at| known(PYTHON_3_14.command(&at).ok()?, Some(at))));
    }
    found.sort_by(|a, b| (a.minor, &a.version, &a.command).cmp(&(b.minor, &b.version, &b.command)));
    found
}

fn of_program(program: PathBuf) -> Option<Python> {
    known(vec![program.into_os_string().into_string().ok()?], None)
}

fn known(command: Vec<String>, root: Option<PathBuf>) -> Option<Python> {
    let script = "import platform; print(platform.python_implementation(), platform.python_version())";
    let (first, rest) = command.split_first()?;
    let output = Command::new(first).args(rest).args(["-c", script]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let version = text.trim().strip_prefix("CPython 3.")?;
    let minor = version.split('.').next()?.parse().ok().filter(|minor| *minor >= 8)?;
    Some(Python { command, root, minor, version: format!("3.{version}") })
}

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

/// Runs scenes, each for so many whole windows.
pub fn run(python: &Python, scenes: &[&str], seconds: u64, window_ms: u64, log: &Path) -> Result<Ran> {
    let script = places::workspace().join("tests/jobs/python_oracle.py");
    let (first, rest) = python.command.split_first().context("a Python without a program")?;
    let mut command = Command::new(first);
    // What runs in a chroot sees nothing of the workspace.
    let script = match &python.root {
        None => script,
        Some(root) => {
            let copy = root.join(COPY);
            std::fs::copy(&script, &copy).with_context(|| format!("writing {}", copy.display()))?;
            Path::new("/").join(COPY)
        }
    };
    command.args(rest).arg(script).arg(scenes.join(",")).args([seconds.to_string(), window_ms.to_string()]);
    let shown = step::shown(&command);
    let mut running = Running::start("the Python oracle", &mut command, log)?;
    let pid = running.pid();
    running.wait(SLACK + Duration::from_secs(seconds + window_ms.div_ceil(1000)) * scenes.len() as u32)?;
    let text = std::fs::read_to_string(log).with_context(|| format!("reading {}", log.display()))?;
    let told: Vec<Scene> = text.lines().filter_map(scene).collect();
    ensure!(told.len() == scenes.len(), "{shown} told {} of {} scenes:\n{text}", told.len(), scenes.len());
    Ok(Ran { scenes: told, pid })
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
    /// Those whose Python frames are as told.
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

/// Shares of two functions in the samples of both.
#[derive(Clone, Debug, Default)]
pub struct Split {
    /// Samples of either.
    pub n: usize,
    /// By function: the share that was seen, and the one that the program measured.
    pub shares: BTreeMap<String, (f64, f64)>,
}

impl Split {
    /// Of all scenes that told shares.
    pub fn of(daemon: &Daemon, ran: &Ran) -> Result<Self> {
        let scenes: Vec<&Scene> = ran.scenes.iter().filter(|scene| !scene.shares.is_empty()).collect();
        let (mut split, mut seen) = (Self::default(), BTreeMap::new());
        for scene in &scenes {
            let judged = Judged::of(daemon, ran.pid, scene)?;
            for (function, share) in &scene.shares {
                let count = judged.leaves.get(function).copied().unwrap_or(0);
                *seen.entry(function.clone()).or_insert(0) += count;
                split.n += count;
                split.shares.entry(function.clone()).or_default().1 += share / scenes.len() as f64;
            }
        }
        for (function, (share, _)) in &mut split.shares {
            *share = seen.get(function).copied().unwrap_or(0) as f64 / split.n.max(1) as f64;
        }
        Ok(split)
    }
}

/// The Python functions of each stack, root first, without their files, and its samples.
fn stacks(answer: &Value) -> Vec<(usize, Vec<String>)> {
    let nodes = answer["nodes"].as_array().map_or(&[][..], Vec::as_slice);
    let mut found = Vec::new();
    for (id, node) in nodes.iter().enumerate() {
        let count = node["self"].as_u64().unwrap_or(0) as usize;
        if count == 0 {
            continue;
        }
        let (mut names, mut at) = (Vec::new(), Some(id));
        while let Some((id, node)) = at.and_then(|id| Some((id, nodes.get(id)?))) {
            let name = node["name"].as_str().unwrap_or_default();
            match node["kind"].as_str() {
                Some("python") => {
                    names.push(name.rsplit_once(" (").map_or(name, |(name, _)| name).to_owned())
                }
                Some("unknown") => names.push(name.to_owned()),
                _ => {}
            }
            // A parent stands before its children.
            at = node["parent"].as_u64().map(|above| above as usize).filter(|above| *above < id);
        }
        names.reverse();
        found.push((count, names));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn stacks_are_held_against_what_was_told() {
        let line = r#"{"scene": "x", "from": 2, "until": 4, "stack": ["<module>", "A.f"]}"#;
        let scene = scene(line).unwrap();
        let node = |parent: Value, name: &str, kind: &str, own: u64| json!({"parent": parent, "name": name, "kind": kind, "self": own, "total": own});
        let answer = json!({"nodes": [
            node(Value::Null, "total", "label", 0),
            node(json!(0), "_start", "native", 1),
            node(json!(1), "<module> (a.py)", "python", 0),
            node(json!(2), "sum", "native", 0),
            node(json!(3), "A.f (a.py)", "python", 3),
            node(json!(4), "long_add", "native", 4),
        ]});
        let judged = Judged::in_answer(&answer, &scene);
        assert_eq!((judged.n, judged.rooted, judged.equal), (8, 7, 7));
        assert_eq!(judged.leaves["A.f"], 7);
        assert_eq!(judged.others, [(1, String::new())]);
    }
}
