//! The pools of constants: texts, classes, methods, stacks and threads, each once.
//!
//! In: frames and label sets. Out: their numbers, and the check point that holds them all. A frame that is no Java has its
//! function as the method's name and its module as the class, with async-profiler's descriptor of functions.

use super::super::pprof::{MAX_FRAMES, TooManyFrames};
use super::super::text::one_line;
use super::{bytes, types};
use emberscope_model::{Frame, FrameKind};
use std::collections::HashMap;
use std::sync::Arc;

/// Of what has no descriptor, as async-profiler has it: no parameters, and a class without a name.
const NO_DESCRIPTOR: &str = "()L;";
/// Types of frames by their number. Up to 6 those of async-profiler, whose converter has a colour for each; the rest is ours.
const FRAME_TYPES: [&str; 11] = [
    "Interpreted",
    "JIT compiled",
    "Inlined",
    "Native",
    "C++",
    "Kernel",
    "C1 compiled",
    "Stub",
    "Python",
    "Unknown",
    "Class",
];

fn frame_type(kind: FrameKind) -> u64 {
    match kind {
        FrameKind::JavaInterpreted => 0,
        FrameKind::JavaCompiled => 1,
        FrameKind::JavaInlined => 2,
        FrameKind::Native => 3,
        FrameKind::Kernel => 5,
        FrameKind::Stub => 7,
        FrameKind::Python => 8,
        FrameKind::Unknown | FrameKind::Label => 9,
        FrameKind::Class => 10,
    }
}

/// Values of a type, numbered from 1.
#[derive(Default)]
struct Pool {
    count: u64,
    bytes: Vec<u8>,
}

impl Pool {
    fn add(&mut self, value: impl FnOnce(&mut Vec<u8>)) -> u64 {
        self.count += 1;
        bytes::long(&mut self.bytes, self.count);
        value(&mut self.bytes);
        self.count
    }
}

/// Texts of a type, each once.
#[derive(Default)]
struct Texts {
    pool: Pool,
    known: HashMap<String, u64>,
}

impl Texts {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.known.get(text) {
            return *number;
        }
        let number = self.pool.add(|out| bytes::text(out, text));
        self.known.insert(text.to_owned(), number);
        number
    }
}

/// A frame as stacks have it.
#[derive(Clone, Copy)]
struct Placed {
    method: u64,
    line: u32,
    kind: u64,
}

/// All pools of a chunk.
#[derive(Default)]
pub struct Pools {
    symbols: Texts,
    texts: Texts,
    classes: (Pool, HashMap<u64, u64>),
    methods: (Pool, HashMap<(u64, u64, u64), u64>),
    frames: (Vec<Placed>, HashMap<Arc<Frame>, u32>),
    traces: (Pool, HashMap<Box<[u32]>, u64>),
    threads: Pool,
    /// Frames of all stacks together.
    held: usize,
}

impl Pools {
    /// The number of a text that events have.
    pub fn text(&mut self, text: &str) -> u64 {
        self.texts.number(&one_line(text))
    }

    /// Bytes of all pools so far, about.
    pub fn size(&self) -> usize {
        let texts = self.symbols.pool.bytes.len() + self.texts.pool.bytes.len();
        texts + self.methods.0.bytes.len() + self.traces.0.bytes.len() + self.threads.bytes.len()
    }

    /// The number of a frame in stacks.
    pub fn frame(&mut self, frame: &Arc<Frame>) -> u32 {
        if let Some(number) = self.frames.1.get(frame) {
            return *number;
        }
        let is_java = matches!(
            frame.kind,
            FrameKind::JavaCompiled | FrameKind::JavaInlined | FrameKind::JavaInterpreted
        );
        let name = one_line(&frame.name);
        let (class, own) = match name.rsplit_once('.').filter(|_| is_java) {
            Some((class, own)) => (class.replace('.', "/"), own),
            None => (one_line(&frame.module), &*name),
        };
        let descriptor = frame.signature.as_deref().filter(|_| is_java).and_then(descriptor);
        let class = self.symbols.number(&class);
        let class = match self.classes.1.get(&class) {
            Some(number) => *number,
            None => {
                // Loader, name, package, modifiers.
                let number =
                    self.classes.0.add(|out| [0, class, 0, 0].iter().for_each(|v| bytes::long(out, *v)));
                self.classes.1.insert(class, number);
                number
            }
        };
        let key = (
            class,
            self.symbols.number(own),
            self.symbols.number(descriptor.as_deref().unwrap_or(NO_DESCRIPTOR)),
        );
        let method = match self.methods.1.get(&key) {
            Some(number) => *number,
            None => {
                // Class, name, descriptor, modifiers, hidden.
                let number = self
                    .methods
                    .0
                    .add(|out| [key.0, key.1, key.2, 0, 0].iter().for_each(|v| bytes::long(out, *v)));
                self.methods.1.insert(key, number);
                number
            }
        };
        let number = self.frames.0.len() as u32;
        self.frames.0.push(Placed { method, line: frame.line, kind: frame_type(frame.kind) });
        self.frames.1.insert(frame.clone(), number);
        number
    }

    /// The number of a stack of frames, leaf first; 0 (null) of none.
    ///
    /// # Errors
    /// [`TooManyFrames`]: the chunk's stacks have more than [`MAX_FRAMES`] together.
    pub fn trace(&mut self, frames: &[u32]) -> Result<u64, TooManyFrames> {
        if frames.is_empty() {
            return Ok(0);
        }
        if let Some(number) = self.traces.1.get(frames) {
            return Ok(*number);
        }
        self.held += frames.len();
        if self.held > MAX_FRAMES {
            return Err(TooManyFrames);
        }
        let placed = &self.frames.0;
        let number = self.traces.0.add(|out| {
            // Not truncated: where a stack was cut, a frame says so.
            out.push(0);
            bytes::long(out, frames.len() as u64);
            for Placed { method, line, kind } in frames.iter().filter_map(|at| placed.get(*at as usize)) {
                // Method, line, index of the bytecode, type.
                [*method, u64::from(*line), 0, *kind].iter().for_each(|value| bytes::long(out, *value));
            }
        });
        self.traces.1.insert(frames.into(), number);
        Ok(number)
    }

    /// The number of a thread of a name.
    pub fn thread(&mut self, name: &str) -> u64 {
        let (name, id) = (one_line(name), self.threads.count + 1);
        self.threads.add(|out| {
            bytes::text(out, &name);
            bytes::long(out, 0);
            bytes::text(out, &name);
            bytes::long(out, id);
            bytes::long(out, 0);
        })
    }

    /// Appends the check point with all pools.
    pub fn write(&self, out: &mut Vec<u8>) {
        let constants = |values: &[(u64, &str)]| {
            let mut pool = Pool { count: values.len() as u64, bytes: Vec::new() };
            for (number, text) in values {
                bytes::long(&mut pool.bytes, *number);
                bytes::text(&mut pool.bytes, text);
            }
            pool
        };
        let kinds: Vec<(u64, &str)> = (0..).zip(FRAME_TYPES).collect();
        let (kinds, states) = (constants(&kinds), constants(&types::STATES));
        let all = [
            (types::FRAME_TYPE, &kinds),
            (types::STATE, &states),
            (types::STRING, &self.texts.pool),
            (types::SYMBOL, &self.symbols.pool),
            (types::CLASS, &self.classes.0),
            (types::METHOD, &self.methods.0),
            (types::TRACE, &self.traces.0),
            (types::THREAD, &self.threads),
        ];
        // Start, length, distance to the check point before, kind of check point.
        let mut body = vec![0, 0, 0, 0];
        bytes::long(&mut body, all.len() as u64);
        for (number, pool) in all {
            bytes::long(&mut body, number);
            bytes::long(&mut body, pool.count);
            body.extend_from_slice(&pool.bytes);
        }
        bytes::framed(out, 1, &body);
    }
}

/// `(byte[], java.lang.String)long` as `([BLjava/lang/String;)J`; None where it is no signature.
fn descriptor(signature: &str) -> Option<String> {
    let (parameters, returned) = signature.strip_prefix('(')?.split_once(')')?;
    let mut out = String::from("(");
    for parameter in parameters.split(", ").filter(|parameter| !parameter.is_empty()) {
        one_type(&mut out, parameter)?;
    }
    out.push(')');
    one_type(&mut out, returned)?;
    Some(out)
}

fn one_type(out: &mut String, name: &str) -> Option<()> {
    let bare = name.trim_end_matches("[]");
    if bare.is_empty() || bare.contains([';', '[', '(', ')']) {
        return None;
    }
    (0..(name.len() - bare.len()) / 2).for_each(|_| out.push('['));
    match bare {
        "byte" => out.push('B'),
        "char" => out.push('C'),
        "double" => out.push('D'),
        "float" => out.push('F'),
        "int" => out.push('I'),
        "long" => out.push('J'),
        "short" => out.push('S'),
        "boolean" => out.push('Z'),
        "void" => out.push('V'),
        class => {
            out.push('L');
            out.push_str(&class.replace('.', "/"));
            out.push(';');
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_become_descriptors() {
        let of = |signature| descriptor(signature).unwrap_or_default();
        assert_eq!(of("(byte[], int)long"), "([BI)J");
        assert_eq!(of("()void"), "()V");
        assert_eq!(of("(java.lang.String[][], char)a.B$C"), "([[Ljava/lang/String;C)La/B$C;");
        assert_eq!((of("no signature"), of("(int"), of("(a;b)void")), Default::default());
    }
}
