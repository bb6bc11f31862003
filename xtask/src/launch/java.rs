//! A Java program of one source file: compiled with a JDK's javac, run by its java.

use super::Running;
use crate::setup::jdk;
use crate::step;
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to run and how.
#[derive(Clone, Debug)]
pub struct JavaProgram {
    class: String,
    package: Option<String>,
    source: String,
    java_home: PathBuf,
    flags: Vec<String>,
    arguments: Vec<String>,
    class_path: Vec<PathBuf>,
    release: Option<u32>,
}

impl JavaProgram {
    /// A public class in the default package and its source.
    pub fn new(class: &str, source: &str, java_home: &Path) -> Self {
        Self {
            class: class.to_owned(),
            package: None,
            source: source.to_owned(),
            java_home: java_home.to_owned(),
            flags: Vec::new(),
            arguments: Vec::new(),
            class_path: Vec::new(),
            release: None,
        }
    }

    /// The package that its source names: who knows JVMs by their main class may take it for another.
    pub fn package(mut self, package: &str) -> Self {
        self.package = Some(package.to_owned());
        self
    }

    /// Jars that it is compiled and run with; `DIRECTORY/*` is all in a directory.
    pub fn class_path(mut self, jars: &[PathBuf]) -> Self {
        self.class_path.extend(jars.iter().cloned());
        self
    }

    /// Compiles it so that this version of Java and newer ones run it, whosever javac it is.
    pub fn release(mut self, major: u32) -> Self {
        self.release = Some(major);
        self
    }

    /// Adds a flag of the JVM.
    pub fn flag(mut self, flag: impl Into<String>) -> Self {
        self.flags.push(flag.into());
        self
    }

    /// Adds an argument of the program.
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Compiles it into `dir` and starts it there. Its output is `dir/CLASS.log`.
    pub fn start(&self, dir: &Path) -> Result<Running> {
        let class_path = std::env::join_paths(std::iter::once(&dir.to_owned()).chain(&self.class_path))
            .context("a jar's path cannot stand in a class path")?;
        let file = dir.join(format!("{}.java", self.class));
        std::fs::write(&file, &self.source).with_context(|| format!("writing {}", file.display()))?;
        let mut javac = Command::new(jdk::tool(&self.java_home, "javac"));
        javac
            .args(["-encoding", "UTF-8", "-nowarn", "-g", "-cp"])
            .arg(&class_path)
            .arg("-d")
            .arg(dir)
            .arg(&file);
        if let Some(release) = self.release {
            javac.args(["--release", &release.to_string()]);
        }
        let output = javac.output().with_context(|| format!("cannot start {}", step::shown(&javac)))?;
        if !output.status.success() {
            bail!("{} failed\n{}", step::shown(&javac), String::from_utf8_lossy(&output.stderr));
        }
        let main = match &self.package {
            Some(package) => format!("{package}.{}", self.class),
            None => self.class.clone(),
        };
        let mut java = Command::new(self.java_home.join("bin/java"));
        java.args(&self.flags)
            .arg("-cp")
            .arg(&class_path)
            .arg(main)
            .args(&self.arguments)
            // Without a locale Java prints ASCII.
            .env("LC_ALL", "C.UTF-8")
            .current_dir(dir);
        Running::start(
            &format!("the Java program {}", self.class),
            &mut java,
            &dir.join(format!("{}.log", self.class)),
        )
    }
}
