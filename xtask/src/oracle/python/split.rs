//! Shares of two parts of a program, as seen and as the program measured them.

use super::{Ran, Scene, paths, without_file};
use crate::launch::Daemon;
use anyhow::Result;
use serde_json::Value;
use std::collections::BTreeMap;

/// What of a stack tells to which part of a split its sample belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The innermost Python function, by name.
    Function,
    /// The same with its line, `name:line`.
    Line,
    /// `numpy` if numpy's code runs, `python` in the function that is the other half; between the two the program's clock does
    /// not run.
    Numpy,
}

impl Part {
    pub(super) fn of(self, stack: &[&Value]) -> Option<String> {
        let leaf = stack.iter().rposition(|node| node["kind"] == "python");
        let name = |at: usize| stack.get(at)?["name"].as_str().map(without_file);
        match self {
            Self::Function => name(leaf?).map(str::to_owned),
            Self::Line => Some(format!("{}:{}", name(leaf?)?, stack.get(leaf?)?["line"])),
            Self::Numpy => {
                let below = stack.get(leaf.map_or(0, |at| at + 1)..).unwrap_or_default();
                let of_numpy = |node: &&Value| {
                    node["module"].as_str().is_some_and(|module| module.contains("multiarray"))
                };
                if below.iter().any(of_numpy) {
                    Some("numpy".to_owned())
                } else {
                    name(leaf?).filter(|name| *name == "seventy").map(|_| "python".to_owned())
                }
            }
        }
    }
}

/// Shares of two parts of a program in the samples of both.
#[derive(Clone, Debug, Default)]
pub struct Split {
    /// Samples of either.
    pub n: usize,
    /// Samples of neither.
    pub others: usize,
    /// By part: the share that was seen, and the one that the program measured.
    pub shares: BTreeMap<String, (f64, f64)>,
}

impl Split {
    /// Of all scenes that told shares of functions.
    pub fn of(daemon: &Daemon, ran: &Ran) -> Result<Self> {
        Self::by(daemon, ran, "split", Part::Function)
    }

    /// Of all scenes of a name but for the first `NUMPY`, which warms up.
    pub fn by(daemon: &Daemon, ran: &Ran, name: &str, part: Part) -> Result<Self> {
        let of_name = ran.scenes.iter().filter(|scene| scene.name == name && !scene.shares.is_empty());
        let scenes: Vec<&Scene> = of_name.skip(usize::from(part == Part::Numpy)).collect();
        let (mut split, mut seen) = (Self::default(), BTreeMap::new());
        for scene in &scenes {
            let (from, until) = scene.range;
            let query = format!("pid={}&from={from}&until={until}&lines=1&format=json", ran.pid);
            let answer = daemon.json(&format!("/api/v1/flamegraph?{query}"))?;
            for (count, stack) in paths(&answer) {
                match part.of(&stack).filter(|part| scene.shares.contains_key(part)) {
                    Some(part) => {
                        *seen.entry(part).or_insert(0) += count;
                        split.n += count;
                    }
                    None => split.others += count,
                }
            }
            for (part, share) in &scene.shares {
                split.shares.entry(part.clone()).or_default().1 += share / scenes.len() as f64;
            }
        }
        for (function, (share, _)) in &mut split.shares {
            *share = seen.get(function).copied().unwrap_or(0) as f64 / split.n.max(1) as f64;
        }
        Ok(split)
    }
}
