//! Live interpreters, each release that this machine has: a program tells its own stack and waits in it, and what is read
//! from outside, by the very layout that the walker gets, must be the same, frame by frame, with lines.

use super::check::Kept;
use super::file::Files;
use super::names::Names;
use super::python::Python;
use crate::{CPython, PythonProblem};
use emberscope_runtime::{DeferredFrame, Problem, Runtime};
use emberscope_target::memory::{Memory, ReadError};
use emberscope_testkit::pythons::pythons;
use emberscope_testkit::skip;
use profiler_ebpf::{
    CodeFields, Grouping, InstructionKind, PythonFrameTag, PythonLayout, PythonPlace, RuntimeId, UserFrame,
};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// How often the program waits: twice in a thread, then twice in its first one.
const STOPS: usize = 4;

/// A program that waits, stopped at the test's end.
struct Program {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Program {
    fn start(python: &Path, script: &[&str]) -> Self {
        let mut child =
            Command::new(python).args(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    fn dir(&self) -> PathBuf {
        Path::new("/proc").join(self.child.id().to_string())
    }

    /// The next stack that it tells, a line a frame.
    fn told(&mut self) -> Vec<String> {
        let lines = self.out.by_ref().lines().map(Result::unwrap);
        lines.take_while(|line| line != ".").collect()
    }

    /// It goes on.
    fn on(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The chain of a thread as the walker follows it: frames, and how many groups there are.
fn chain(memory: &impl Memory, layout: &PythonLayout, thread: u64) -> Result<Vec<UserFrame>, ReadError> {
    let mut frame = memory.u64(thread + u64::from(layout.thread_frame))?;
    if layout.cframe_frame != PythonLayout::NONE {
        frame = memory.u64(frame + u64::from(layout.cframe_frame))?;
    }
    let mut frames: Vec<UserFrame> = Vec::new();
    while frame != 0 {
        let group = memory.u8(frame + u64::from(layout.group))?;
        let previous = memory.u64(frame + u64::from(layout.previous))?;
        if layout.grouping == Grouping::Shim as u8 && group >= layout.shim {
            frames.last_mut().unwrap().kind = PythonFrameTag::Entry as u8;
            frame = previous;
            continue;
        }
        let code = memory.u64(frame + u64::from(layout.code))? & !3;
        let u32_at = |offset: u16| memory.u32(code + u64::from(offset)).map(u64::from);
        let version = if layout.version == PythonLayout::NONE { 0 } else { u32_at(layout.version)? };
        let fields = CodeFields {
            filename: memory.u64(code + u64::from(layout.filename))?,
            name: memory.u64(code + u64::from(layout.name))?,
            lines: memory.u64(code + u64::from(layout.lines))?,
            first_line_flags: u32_at(layout.first_line)? << 32 | u32_at(layout.flags)?,
            arguments_version: version << 32 | u32_at(layout.arguments)?,
        };
        let at = frame + u64::from(layout.instruction);
        let unit = if layout.instruction_kind == InstructionKind::Pointer as u8 {
            memory.u64(at)?.wrapping_sub(code + u64::from(layout.bytecode)) as i64 >> 1
        } else if layout.instruction_kind == InstructionKind::Bytes as u8 {
            i64::from(memory.u32(at)? as i32 >> 1)
        } else {
            i64::from(memory.u32(at)? as i32)
        };
        let entry =
            layout.grouping == Grouping::Each as u8 || layout.grouping == Grouping::Mark as u8 && group != 0;
        let kind = if entry { PythonFrameTag::Entry } else { PythonFrameTag::Function };
        frames.push(UserFrame {
            value: PythonPlace::new(code, unit).0,
            cookie: fields.checksum(),
            kind: kind as u8,
            runtime: RuntimeId::CPYTHON.0,
            ..UserFrame::default()
        });
        frame = previous;
    }
    Ok(frames)
}

/// As the program tells them: name, file, first line, line.
fn named(python: &Python, names: &mut Names, frames: &[UserFrame]) -> Vec<String> {
    let one = |frame: &UserFrame| {
        let answer = names.name(python, &DeferredFrame { frame: *frame, generation: 0 });
        let named = answer.unwrap();
        // What runs when `__init__` returns is no function's.
        let frame = named.first()?;
        let name = frame.name.rsplit_once(" (").map_or(&*frame.name, |(name, _)| name);
        let first = frame.signature.as_deref().unwrap().trim_start_matches(':');
        Some(format!("{name}\t{}\t{first}\t{}", frame.module, frame.line))
    };
    frames.iter().filter_map(one).collect()
}

fn is_known(problem: &Problem) -> bool {
    !matches!(problem, Problem::Never(why) if why.contains("is not known"))
}

#[test]
fn stacks_are_as_programs_tell_them() {
    let mut seen = 0;
    for python in pythons() {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/src/testdata/stack.py");
        let mut program = Program::start(&python, &[script]);
        for stop in 0..STOPS {
            let told = program.told();
            let opened = match Python::open(&program.dir(), 0, &Files::default()) {
                Ok(opened) => opened,
                Err(PythonProblem::Version(..)) => break,
                Err(problem) => panic!("{python:?}: {problem}"),
            };
            let layout = opened.layout().unwrap_or_else(|problem| panic!("{python:?}: {problem}"));
            let mut names = Names::default();
            let stacks: Vec<Vec<String>> = threads(&opened)
                .into_iter()
                .map(|thread| chain(&opened.memory, &layout, thread).unwrap())
                .map(|frames| named(&opened, &mut names, &frames))
                .collect();
            assert!(stacks.contains(&told), "{python:?}, stop {stop}: {told:#?}\nbut {stacks:#?}");
            let code: u64 = layout.eval.iter().map(|range| u64::from(range.len)).sum();
            println!("3.{}: {} frames, {code} bytes of code in {:?}", opened.minor, told.len(), layout.eval);
            program.on();
            seen += 1;
        }
    }
    if seen == 0 {
        skip("no CPython from 3.8 on");
    }
}

/// The states of its threads.
fn threads(python: &Python) -> Vec<u64> {
    python.threads().unwrap()
}

#[test]
fn others_are_refused_by_name() {
    let mut program = Program::start(Path::new("/bin/cat"), &[]);
    program.on();
    program.out.read_line(&mut String::new()).unwrap();
    let refused = CPython::default().open(&program.dir(), 0).map(|_| ()).unwrap_err();
    assert_eq!(refused, Problem::from(PythonProblem::NotFound));
    for python in pythons() {
        let mut program = Program::start(&python, &["-c", "print('.', flush=True); input()"]);
        program.told();
        let opened = CPython::default().open(&program.dir(), 0).map(|_| ());
        assert!(opened.is_ok() || !is_known(&opened.clone().unwrap_err()), "{python:?}: {opened:?}");
    }
}

#[test]
fn a_key_that_is_not_the_first_is_found() {
    for python in pythons() {
        let mut program = Program::start(&python, &["-c", "print('.', flush=True); input()"]);
        program.told();
        let Ok(opened) = Python::open(&program.dir(), 0, &Files::default()) else { continue };
        let layout = opened.layout().unwrap();
        let minor = opened.minor;
        let wrong = opened.with_key_at(8);
        let found = wrong.layout().unwrap();
        assert_eq!((found.key_at, found.key_then), (layout.key_at, layout.key_then), "{python:?}");
        let kept = Kept { at: found.key_at, then: found.key_then };
        println!("3.{minor}: {kept:?}");
    }
}
