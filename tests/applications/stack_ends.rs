//! A JVM without any flag gives stacks as deep as one with frame pointers; each that is cut says why, and no name
//! is made up.

use super::apps::{App, number};
use super::ask::ask_json;
use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Daemon, Here};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

pub fn without_frame_pointers_stacks_say_why_they_end(
    here: &Here,
    daemon: &Daemon,
    a: &App,
    b: &App,
    range: &str,
) -> Result<()> {
    let of = |app: &App| ask_json(daemon, &format!("{range}&app={}&role=executor", app.id));
    let (with, without) = (of(a)?, of(b)?);
    let quality = &without["quality"];
    println!("quality of B's executor, without frame pointers: {quality}");
    let depth = |quality: &Value| {
        Ok::<_, anyhow::Error>(number(&quality["frames"])? as f64 / number(&quality["samples"])? as f64)
    };
    let (deep, shallow) = (depth(&with["quality"])?, depth(quality)?);
    println!("mean depth: {deep:.1} with frame pointers, {shallow:.1} without");
    // The applications do the same work, but not the same at each instant.
    ensure!(shallow > deep * 0.7);
    // Each sample has a reason.
    let ends = quality["ends"].as_object().context("no ends")?;
    let ended: u64 = ends.values().filter_map(Value::as_u64).sum();
    ensure!(ended == number(&quality["samples"])?, "{quality}");
    let whole = ends.get("root").and_then(Value::as_u64).unwrap_or(0);
    ensure!(whole * 2 > ended, "most stacks are cut: {quality}");
    // Nothing made up: no address outside of all code, and every class named is one that this JVM has.
    let nowhere = quality["unnamed"]["no mapping"].as_u64().unwrap_or(0);
    ensure!(nowhere * 1000 <= number(&quality["frames"])?, "frames that are nowhere: {quality}");
    let classes = loaded_classes(&here.java, b.executors["0"])?;
    let mut frames = (0, Vec::new());
    for node in without["nodes"].as_array().context("no nodes")? {
        let name = node["name"].as_str().unwrap_or_default();
        if node["kind"] == "java" {
            let class = family(name.rsplit_once('.').map_or(name, |(class, _)| class));
            frames.0 += 1;
            if !classes.contains(&class) {
                frames.1.push(name.to_owned());
            }
        }
    }
    println!("{} Java nodes of B, of classes that are not loaded: {:?}", frames.0, frames.1);
    // A class may have been unloaded since: Spark compiles new ones for each query.
    frames
        .1
        .retain(|name| !name.contains("GeneratedClass") && !name.contains("catalyst.expressions.Specific"));
    ensure!(frames.0 > 0 && frames.1.is_empty(), "{:?}", frames.1);
    Ok(())
}

/// A class without the number that tells it from others made like it at run time.
pub fn family(class: &str) -> String {
    let class = class.split_once("$$Lambda").map_or(class, |(outer, _)| outer);
    class.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned()
}

/// All classes that a JVM has loaded, asked by jcmd.
pub fn loaded_classes(java_home: &Path, pid: u32) -> Result<BTreeSet<String>> {
    let output =
        Command::new(java_home.join("bin/jcmd")).args([&pid.to_string(), "VM.class_hierarchy"]).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let class = |line: &str| {
        let name = line.trim_start_matches(['|', '-', ' ']);
        Some(family(name.split(['/', ' ']).next()?))
    };
    let classes: BTreeSet<String> = text.lines().filter_map(class).collect();
    ensure!(
        classes.contains("java.lang.Object"),
        "jcmd lists no classes: {}",
        text.chars().take(300).collect::<String>()
    );
    Ok(classes)
}
