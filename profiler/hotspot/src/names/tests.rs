//! Names from real JVMs, without a walker: every nmethod is looked up in the code heaps from outside, and
//! its name compared with what the JVM itself says (`jcmd Compiler.codelist`), chains with what the program
//! can do.

use super::code::Code;
use super::*;
use crate::{Jvm, LibjvmFiles};
use emberscope_target::memory::ProcessMemory;
use emberscope_testkit::jdks::{Java, all_jdks, jdks};
use profiler_ebpf::{JavaFrameTag, RuntimeId, UserFrame};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The programs, compiled for JDK 11 and on.
fn classes() -> &'static Path {
    static CLASSES: OnceLock<tempfile::TempDir> = OnceLock::new();
    let made = CLASSES.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut javac = Command::new(jdks().first().unwrap().join("bin/javac"));
        javac.args(["--release", "11", "-d"]).arg(dir.path());
        let files = [
            "hotspot/src/testdata/Chain.java",
            "hotspot/src/testdata/Leaf.java",
            "hotspot/src/testdata/Split.java",
            "symbolize/src/testdata/Work.java",
        ];
        let done = javac.args(files.map(|file| source.join(file))).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        dir
    });
    made.path()
}

/// Starts a program and waits until it is ready; None where the JVM refuses the flags.
pub(super) fn start(jdk: &Path, flags: &[&str], program: &[&str], warm: Duration) -> Option<Java> {
    let mut command = Command::new(jdk.join("bin/java"));
    command.args(["-XX:+UnlockExperimentalVMOptions", "-XX:+UnlockDiagnosticVMOptions", "-Xmx128m"]);
    command.args(flags).arg("-cp").arg(classes()).args(program);
    let mut java = Java(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut out = BufReader::new(java.0.stdout.take().unwrap());
    let ready = out.by_ref().lines().map_while(Result::ok).any(|line| line.starts_with("ready"));
    ready.then(|| {
        std::thread::sleep(warm);
        java.0.stdout = Some(out.into_inner());
        java
    })
}

/// Memory that counts its reads.
pub(super) struct Counted(ProcessMemory, Cell<u64>);

impl Memory for Counted {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), ReadError> {
        self.1.set(self.1.get() + 1);
        self.0.read(address, into)
    }
}

pub(super) fn namer(java: &Java) -> (Namer, Counted) {
    let dir = format!("/proc/{}", java.pid());
    let jvm = Jvm::open(Path::new(&dir), 0, &LibjvmFiles::default()).unwrap();
    let namer = jvm.namer(Limits::default()).unwrap();
    let memory = emberscope_target::memory::ProcessMemory::open(Path::new(&dir)).unwrap();
    (namer, Counted(memory, Cell::new(0)))
}

/// All blobs of a JVM, nmethods and others.
pub(super) fn blobs(namer: &mut Namer, memory: &Counted) -> (Vec<blobs::Head>, Vec<blobs::Head>) {
    let layout = namer.code_layout;
    let (mut nmethods, mut others) = (Vec::new(), Vec::new());
    for heap in blobs::heaps(memory, &layout).unwrap() {
        let mut map = vec![0; ((heap.committed - heap.low) >> heap.shift) as usize];
        memory.read(heap.segmap, &mut map).unwrap();
        for segment in (0..map.len()).filter(|at| map[*at] == 0) {
            let blob = heap.low + ((segment as u64) << heap.shift) + layout.block_header;
            let Ok(head) = blobs::head(memory, &layout, blob) else { continue };
            match namer.stubs.blob(memory, &head) {
                Ok(name) if matches!(&*name, "nmethod" | "native nmethod") => nmethods.push(head),
                Ok(_) => others.push(head),
                Err(_) => {}
            }
        }
    }
    (nmethods, others)
}

pub(super) fn frame(kind: JavaFrameTag, value: u64, cookie: u32, flags: u8) -> UserFrame {
    UserFrame { value, cookie, kind: kind as u8, flags, runtime: RuntimeId::HOTSPOT.0, pad: 0 }
}

/// By compile id: the method's name and signature, as the JVM prints them.
fn code_list(jdk: &Path, java: &Java) -> HashMap<u32, (String, String)> {
    let own = jdk.join("bin/jcmd");
    let jcmd = if own.exists() { own } else { jdks().first().unwrap().join("bin/jcmd") };
    let out = Command::new(jcmd).args([&java.pid().to_string(), "Compiler.codelist"]).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let mut found = HashMap::new();
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        let (Some(id), Some(_), Some(_), Some(rest)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let (Ok(id), Some((method, _))) = (id.parse(), rest.rsplit_once(" [")) else { continue };
        let (name, descriptor) = method.split_at(method.find('(').unwrap());
        let signature = java_text::signature(descriptor.as_bytes()).unwrap();
        found.insert(id, (java_text::fold(name).into_owned(), signature));
    }
    found
}

fn is(frame: &JavaFrame, expected: &(String, String)) -> bool {
    *frame.name == *expected.0 && frame.signature.as_deref() == Some(&expected.1)
}

/// Names of all nmethods, asked for in every way.
fn check(jdk: &Path, flags: &[&str]) -> bool {
    let Some(java) = start(jdk, flags, &["Work", "600"], Duration::from_millis(1500)) else {
        println!("{} {flags:?}: refused by this JVM", jdk.display());
        return false;
    };
    let (mut namer, memory) = namer(&java);
    assert!(namer.facts().major.is_some_and(|major| namer.facts().release.starts_with(&major.to_string())));
    let before = code_list(jdk, &java);
    let (nmethods, others) = blobs(&mut namer, &memory);
    let listed: Vec<_> =
        nmethods.iter().filter_map(|head| Some((head, before.get(&head.compile_id)?))).collect();
    assert!(listed.len() > 100, "{} of {} nmethods listed", listed.len(), nmethods.len());
    let (mut right, mut frames, mut gone, mut inlined, mut lines) = (0, 0u64, 0, 0, 0);
    memory.1.set(0);
    let begun = Instant::now();
    for (head, expected) in &listed {
        let mut pcs = vec![(head.code.0 + 1, 0), (head.code.1 - 1, 0)];
        if let Ok(code) = Code::read(&memory, &namer.code_layout, (*head).clone()) {
            pcs.extend(
                code.entries().map(|at| (head.code.0 + u64::from(at), UserFrame::FLAG_RETURN_ADDRESS)),
            );
        }
        let mut batch = namer.batch(&memory);
        let mut wrong = None;
        for (pc, flags) in pcs {
            match batch.name(&frame(JavaFrameTag::Compiled, pc, head.compile_id, flags)) {
                Ok(named) => {
                    let last = named.last().unwrap();
                    let kinds = named.iter().rev().skip(1).all(|f| f.kind == FrameKind::JavaInlined);
                    if !is(last, expected) || last.kind != FrameKind::JavaCompiled || !kinds {
                        wrong = Some(named.clone());
                    }
                    frames += 1;
                    inlined += u64::from(named.len() > 1);
                    lines += u64::from(named[0].line > 0);
                }
                Err(Unnamed::Unloaded) => gone += 1,
                Err(problem) => panic!("{jdk:?} {flags:?} {expected:?}: {problem}"),
            }
        }
        match batch.name(&frame(JavaFrameTag::Interpreted, head.method, 0, 0)) {
            Ok(named) if is(&named[0], expected) && named[0].kind == FrameKind::JavaInterpreted => {}
            other => panic!("{jdk:?} {flags:?} {expected:?}: {other:?}"),
        }
        // Another nmethod's id.
        let other = batch.name(&frame(JavaFrameTag::Compiled, head.code.0, u32::MAX, 0));
        assert_eq!(other, Err(Unnamed::Unloaded));
        match wrong {
            None => right += 1,
            Some(wrong) => println!("{expected:?}: {wrong:?}"),
        }
    }
    let (reads, took) = (memory.1.get(), begun.elapsed());
    let mut batch = namer.batch(&memory);
    let stubs: HashSet<_> = others
        .iter()
        .filter_map(|head| batch.name(&frame(JavaFrameTag::Stub, head.code.0, 0, 0)).ok())
        .map(|named| named[0].name.to_string())
        .collect();
    for name in ["Interpreter", "I2C/C2I adapters"] {
        assert!(stubs.contains(name), "{stubs:?}");
    }
    let counts = namer.counts();
    println!(
        "{} {flags:?}: {right} of {} nmethods right, {} in all; {frames} frames, {inlined} with inlined ones, \
         {lines} with lines, {gone} gone; {:.1} reads and {:.1} us a frame; {} stubs; {counts:?}",
        namer.facts().release,
        listed.len(),
        nmethods.len(),
        reads as f64 / frames as f64,
        took.as_secs_f64() * 1e6 / frames as f64,
        stubs.len(),
    );
    assert!(right as f64 >= 0.999 * listed.len() as f64 && inlined > 0);
    // Runtimes that were linked for their size have no lines in the JDK's own classes.
    assert!(lines * 3 > frames * 2 || !jdks().contains(&jdk.to_path_buf()), "{lines} of {frames} lines");
    // The JIT goes on meanwhile, the more so on a machine that has other work: large methods take many pcs with them.
    assert!(gone < frames / 2, "{gone} of {frames}");
    true
}

const MODES: [&[&str]; 10] = [
    &["-XX:+UseG1GC"],
    &["-XX:+UseParallelGC", "-XX:-TieredCompilation"],
    &["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
    &["-XX:+UseZGC"],
    &["-XX:+UseShenandoahGC"],
    &["-XX:-SegmentedCodeCache"],
    &["-XX:+SegmentedCodeCache", "-XX:+PreserveFramePointer"],
    &["-XX:-UseCompressedClassPointers", "-XX:-UseCompressedOops"],
    &["-XX:+UseCompactObjectHeaders"],
    &["-Xmx8g", "-XX:+DebugNonSafepoints", "-Xshare:off"],
];

#[test]
fn every_nmethod_has_the_name_that_the_jvm_gives() {
    for jdk in all_jdks() {
        let modes = if jdks().contains(&jdk) { &MODES[..] } else { &MODES[..4] };
        let done = modes.iter().filter(|flags| check(&jdk, flags)).count();
        assert!(done >= modes.len() - 3, "{jdk:?} took only {done}");
    }
}
