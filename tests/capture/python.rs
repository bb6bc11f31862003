//! A Python's memory as bad as it can be (tests/fixtures/hostile_python.c): every pointer wrong, chains that never end, pages
//! that cannot be read, all of it changing, and layouts of which nothing is true. The walker's native frames stay right, its
//! Python frames are bounded and in order, and what the daemon reads by them is bounded.
//!
//! A hundred layouts; EMBERSCOPE_HOSTILE_SECONDS says how long otherwise.

use super::*;
use emberscope_cpython::{CPython, Codes, Offsets};
use emberscope_runtime::Runtime as _;
use emberscope_target::memory::ProcessMemory;
use emberscope_target::text::MAX_NAME;
use emberscope_tests::walking_host;
use profiler_ebpf::{
    EvalRange, Grouping, InstructionKind, MAX_FRAMES_WITH_PYTHON, PythonFrameTag, PythonLayout, PythonPlace,
    RuntimeHead, RuntimeId,
};

/// How long.
const TIME: Duration = Duration::from_secs(20);
/// Of each layout.
const ROUND: Duration = Duration::from_millis(200);
/// Longest file name that is kept, and what says that it was cut.
const LONGEST: usize = 4096 + 3;

/// Numbers from a seed (Marsaglia's xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    /// A multiple of 16 below an object's bytes, where most of its pointers lead on.
    fn pointer(&mut self) -> u16 {
        (self.next() % 7) as u16 * 16
    }
}

/// The fixture, and where it says that its things are.
struct Hostile {
    child: Child,
    /// Starts of burn, eval, work, and the end of all.
    functions: [u64; 4],
    kind: u64,
    state_at: i32,
}

impl Hostile {
    fn start() -> Self {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hostile-{}", std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/hostile_python.c");
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-fno-omit-frame-pointer", "-fno-toplevel-reorder", "-fno-optimize-sibling-calls"]);
        let status = cc.args(["-pthread", "-o"]).arg(&program).arg(source).status();
        assert!(status.expect("cc, which rustc links with, is there").success());
        let mut child = Command::new(&program).arg("7").stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("it prints");
        let _ = std::fs::remove_file(&program);
        let words: Vec<&str> = line.split_whitespace().collect();
        let address = |at: usize| u64::from_str_radix(words[at], 16).expect("hexadecimal");
        Self {
            child,
            functions: std::array::from_fn(address),
            kind: address(5),
            state_at: words[6].parse().expect("a number"),
        }
    }

    /// A layout, of which no more is true than where the thread's state is, and what objects have as their type.
    fn layout(&self, numbers: &mut Numbers, round: u32) -> PythonLayout {
        let groupings = [Grouping::Each, Grouping::Mark, Grouping::Shim];
        let kinds = [InstructionKind::Bytes, InstructionKind::Units, InstructionKind::Pointer];
        let n = numbers.next();
        let sound = PythonLayout {
            head: RuntimeHead { incarnation: round + 1, ..RuntimeHead::default() },
            eval: [
                EvalRange {
                    low: self.functions[1],
                    len: (self.functions[2] - self.functions[1]) as u32,
                    pad: 0,
                },
                EvalRange::default(),
            ],
            code_type: self.kind,
            key_at: self.state_at,
            key_then: if n & 3 == 0 { i32::from(numbers.pointer()) } else { -1 },
            thread_frame: numbers.pointer(),
            cframe_frame: if n & 4 == 0 { PythonLayout::NONE } else { numbers.pointer() },
            cframe_previous: numbers.pointer(),
            previous: numbers.pointer(),
            code: numbers.pointer(),
            instruction: (n >> 8) as u16 % 160,
            group: (n >> 16) as u16 % 128,
            frame_bytes: 128,
            bytecode: (n >> 24) as u16,
            filename: numbers.pointer(),
            name: numbers.pointer(),
            lines: numbers.pointer(),
            first_line: (n >> 32) as u16 % 160,
            flags: (n >> 40) as u16 % 160,
            arguments: (n >> 48) as u16 % 160,
            version: if n & 8 == 0 { PythonLayout::NONE } else { numbers.pointer() },
            code_bytes: 160,
            instruction_kind: kinds[(n >> 4) as usize % 3] as u8,
            grouping: groupings[(n >> 6) as usize % 3] as u8,
            shim: (n >> 56) as u8,
            pad: [0; 3],
        };
        if round.is_multiple_of(4) { wild(sound, numbers) } else { sound }
    }

    /// Which function a native frame is in: 0 burn, 1 eval, 2 work; 3: another.
    fn function(&self, frame: &UserFrame) -> usize {
        let at = frame.value - u64::from(frame.flags & UserFrame::FLAG_RETURN_ADDRESS != 0);
        let [burn, eval, work, end] = self.functions;
        [burn..eval, eval..work, work..end].iter().position(|range| range.contains(&at)).unwrap_or(3)
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not even an offset is within an object.
fn wild(sound: PythonLayout, numbers: &mut Numbers) -> PythonLayout {
    let mut any = || numbers.next() as u16;
    PythonLayout {
        thread_frame: any(),
        cframe_frame: any(),
        cframe_previous: any(),
        previous: any(),
        code: any(),
        instruction: any(),
        group: any(),
        frame_bytes: any(),
        filename: any(),
        name: any(),
        lines: any(),
        first_line: any(),
        flags: any(),
        arguments: any(),
        version: any(),
        code_bytes: any(),
        instruction_kind: any() as u8,
        grouping: any() as u8,
        ..sound
    }
}

/// What was seen.
#[derive(Debug, Default)]
struct Seen {
    stacks: usize,
    /// Those whose native frames are burn, eval and work, of those in one of them.
    right: usize,
    inside: usize,
    /// With Python frames, with as many as there may be, and with their end.
    python: usize,
    full: usize,
    rooted: usize,
    /// Code objects that were taken for sound.
    read: usize,
}

impl Seen {
    fn look(&mut self, hostile: &Hostile, stack: &RawStack) {
        let frames = &stack.user;
        assert!(frames.len() <= MAX_FRAMES_WITH_PYTHON, "{} frames", frames.len());
        let native = frames.iter().take_while(|frame| frame.is_native()).count();
        let (native, python) = frames.split_at(native);
        let tags: Vec<PythonFrameTag> = python
            .iter()
            .map(|frame| {
                assert_eq!(frame.runtime(), RuntimeId::CPYTHON, "{frame:?}");
                PythonFrameTag::from_number(frame.kind).expect("a kind that there is")
            })
            .collect();
        // Ranges, the chain, its end.
        let order = |tag: &PythonFrameTag| match tag {
            PythonFrameTag::EvalRange => 0,
            PythonFrameTag::Function | PythonFrameTag::Entry => 1,
            PythonFrameTag::Root => 2,
        };
        assert!(tags.is_sorted_by_key(order), "{tags:?}");
        assert!(tags.iter().filter(|tag| order(tag) == 2).count() <= 1);
        let inner: Vec<usize> = native.iter().take(3).map(|frame| hostile.function(frame)).collect();
        self.stacks += 1;
        self.inside += usize::from(inner.first() == Some(&0));
        self.right += usize::from(inner == [0, 1, 2]);
        let functions = tags.iter().filter(|tag| order(tag) == 1).count();
        self.python += usize::from(functions > 0);
        self.full += usize::from(frames.len() >= MAX_FRAMES_WITH_PYTHON - 1);
        self.rooted += usize::from(tags.last() == Some(&PythonFrameTag::Root));
        let merged = CPython::default().arranged(frames, stack.end).expect("Python's");
        assert!(merged.len() <= frames.len(), "{} of {} frames", merged.len(), frames.len());
        let kept = merged.iter().filter(|frame| !frame.is_native()).count();
        assert_eq!(kept, functions, "all functions are in the merged stack");
    }

    /// Reads the code objects of a stack, of which some pass for sound.
    fn read(&mut self, codes: &Codes<'_, ProcessMemory>, stack: &RawStack) {
        for frame in stack.user.iter().filter(|frame| !frame.is_native()) {
            let place = PythonPlace(frame.value);
            if let Ok(Some(code)) = codes.read(place.code(), frame.cookie) {
                assert!(code.name.len() <= MAX_NAME + 3 && code.file.len() <= LONGEST);
                assert!(!code.name.chars().chain(code.file.chars()).any(char::is_control));
                self.read += 1;
            }
            let _ = codes.line(place.code(), frame.cookie, place.unit().unwrap_or(0));
        }
    }
}

/// As the daemon's reader has it for this layout, as far as that says.
fn offsets(minor: u8, layout: &PythonLayout) -> Offsets {
    let sound = Offsets::of(minor).expect("a release that is known");
    Offsets {
        filename: layout.filename,
        name: layout.name,
        lines: layout.lines,
        first_line: layout.first_line,
        flags: layout.flags,
        arguments: layout.arguments,
        version: (layout.version != PythonLayout::NONE).then_some(layout.version),
        qualname: None,
        ..sound
    }
}

#[test]
fn a_pythons_memory_that_is_all_wrong() {
    let Some((features, _guard)) = walking_host("hostile_python") else { return };
    let asked = std::env::var("EMBERSCOPE_HOSTILE_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    let time = asked.map_or(TIME, Duration::from_secs);
    let hostile = Hostile::start();
    let pid = hostile.child.id();
    let memory = ProcessMemory::open(Path::new(&format!("/proc/{pid}"))).expect("it lives");
    let mut capture = start(&at_999_hz(), &features);
    if let Err(error) = capture.expect_runtime(RuntimeId::CPYTHON, pid) {
        return emberscope_tests::skip("hostile_python", &error.to_string());
    }
    let (mut numbers, mut seen, begun) = (Numbers(0x9e37_79b9_7f4a_7c15), Seen::default(), Instant::now());
    for round in 0.. {
        if begun.elapsed() >= time {
            break;
        }
        let layout = hostile.layout(&mut numbers, round);
        assert!(capture.set_runtime(RuntimeId::CPYTHON, pid, &layout.to_bytes()).expect("it is set"));
        let got = record(&mut capture, ROUND);
        let offsets = offsets(8 + (round % 7) as u8, &layout);
        let codes = Codes { memory: &memory, code_type: layout.code_type, offsets: &offsets };
        let stacks = got.events.iter().filter_map(|event| match event {
            RawEvent::Stack(stack) if stack.pid == pid && !stack.user.is_empty() => Some(stack),
            _ => None,
        });
        for (nth, stack) in stacks.enumerate() {
            seen.look(&hostile, stack);
            // Some of each layout: a whole chain is a thousand reads.
            if nth < 8 {
                seen.read(&codes, stack);
            }
        }
    }
    let stats = capture.stats();
    println!("{seen:?}, {} reads for {} samples", stats.stack_reads, stats.samples);
    assert_eq!(stats.undecodable, 0);
    // Both threads are sampled. A sample in a function's first instructions has no frame of its caller.
    assert!(seen.inside > 20 && seen.right * 100 >= seen.inside * 95, "{seen:?}");
    assert!(seen.python > 10 && seen.full > 0, "chains are followed, and end: {seen:?}");
    // Two reads a frame, and one a frame of another.
    let most = stats.samples * (2 * MAX_FRAMES_WITH_PYTHON as u64 + 64);
    assert!(stats.stack_reads <= most, "{} reads for {} samples", stats.stack_reads, stats.samples);
}
