//! Names of a JVM's frames, from its own memory: frames as the kernel's walker records them in, methods out.
//!
//! [`Namer`] is for one JVM. A compiled frame becomes the method that was compiled and those inlined into it
//! at that address; an interpreted one its method; a stub the blob's or the intrinsic's name. The JVM goes
//! on while it is read: a name is given only when what it was read from was there before and after, and an
//! nmethod only by its compile id, which no other has. Names that were read stay right when their code is
//! gone. What cannot be named has a reason ([`Unnamed`]), never another one's name. Reads are few and
//! large, and bounded in size and number; what is kept is bounded by [`Limits`].

mod batch;
mod blobs;
#[cfg(test)]
mod chains;
mod code;
mod facts;
#[cfg(test)]
mod fake;
#[cfg(test)]
mod fake_tests;
mod flow;
pub mod java_text;
mod kept;
mod layout;
#[cfg(test)]
mod leaf_tests;
mod limits;
mod method_layout;
mod methods;
mod numbers;
mod runs;
mod structure;
#[cfg(test)]
mod stub_tests;
mod stubs;
#[cfg(test)]
mod tests;
mod texts;

use super::problem::JvmProblem;
use super::stub_fields::StubField;
use super::threads::View;
use super::unloads::Unloads;
use super::vm_structs::VmStructs;
pub use batch::Batch;
use blobs::Heap;
use code::Code;
use emberscope_model::{FrameKind, UnknownReason};
use emberscope_target::memory::{Memory, ReadError};
pub use facts::JvmFacts;
use kept::Kept;
use layout::CodeLayout;
pub use limits::Limits;
use method_layout::MethodLayout;
use methods::Method;
use profiler_ebpf::{JavaFrameTag, UserFrame};
use std::sync::Arc;
use stubs::Stubs;
pub use texts::Texts;

/// A named frame of Java, or of code that the JVM made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JavaFrame {
    /// JavaCompiled, JavaInlined, JavaInterpreted, Stub or Class; Label for the owner of a lock, whose name is the thread's.
    pub kind: FrameKind,
    /// `package.Class.method`, folded; a stub's name.
    pub name: Arc<str>,
    /// Types as Java writes them: `(byte[], int)long`; None of a stub or class, or where the descriptor makes no
    /// sense.
    pub signature: Option<Arc<str>>,
    /// Line of the source; 0 when not known.
    pub line: u32,
    /// The inlined methods and the line (a stub: the name) are those of the nearest place that the JVM knows.
    pub approximate: bool,
}

/// Why a frame has no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unnamed {
    /// The JVM unloaded or replaced the code or the method before it was read.
    #[error("the method was unloaded before its name was read")]
    Unloaded,
    /// A read failed, or what is there makes no sense.
    #[error("the JVM's memory could not be read, or makes no sense")]
    Unreadable,
    /// The address lies outside of the JVM's code heaps, or the frame is none of Java's.
    #[error("the frame is not the JVM's")]
    NotJava,
    /// The process ended.
    #[error("the process ended")]
    Gone,
    /// The daemon has no descriptor left, or the machine no memory.
    #[error("nothing is left to read the JVM's memory with")]
    Exhausted,
}

impl Unnamed {
    /// The reason as the model has it.
    pub const fn reason(self) -> UnknownReason {
        match self {
            Self::Unloaded => UnknownReason::Unloaded,
            Self::Unreadable => UnknownReason::JvmUnreadable,
            Self::NotJava => UnknownReason::AnonymousCode,
            Self::Gone => UnknownReason::ProcessGone,
            Self::Exhausted => UnknownReason::DaemonExhausted,
        }
    }
}

impl From<ReadError> for Unnamed {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Gone => Self::Gone,
            ReadError::Exhausted => Self::Exhausted,
            ReadError::Fault | ReadError::Denied => Self::Unreadable,
        }
    }
}

/// Bytes that a class's name takes beside its text.
const CLASS_BYTES: usize = 64;

/// What a [`Namer`] has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamerCounts {
    /// Frames that the namer was asked for.
    pub frames: u64,
    /// Nmethods whose debug info was read.
    pub codes: u64,
    /// Methods that were read.
    pub methods: u64,
    /// Nmethods, methods and classes that had to go for want of room.
    pub dropped: u64,
    /// Bytes of memory that the namer keeps, about.
    pub bytes: usize,
}

/// Names one JVM's frames.
#[derive(Debug)]
pub struct Namer {
    code_layout: CodeLayout,
    method_layout: MethodLayout,
    facts: JvmFacts,
    stubs: Stubs,
    heaps: Vec<Heap>,
    /// Methods by address, with the batch in which they were last seen to be there.
    methods: Kept<u64, (Arc<Method>, u64)>,
    /// Methods from before classes were unloaded last.
    older: Kept<u64, Arc<Method>>,
    /// Names of classes, as they were last known to be right.
    classes: Kept<u64, Arc<str>>,
    unloads: Unloads,
    codes: Kept<u32, Arc<Code>>,
    texts: Texts,
    /// Where the JVM's threads are; None: not known.
    threads: Option<View>,
    batches: u64,
    counts: NamerCounts,
}

impl Namer {
    /// Finds out how this JVM lays out what names are made of. Memory is read often in the same places, so it
    /// should be [`emberscope_target::memory::Pages`].
    ///
    /// # Errors
    /// As [`JvmFacts::read`]. [`JvmProblem::Missing`]: the tables do not tell how this JVM keeps code or methods.
    pub fn read<M: Memory>(memory: &M, vm: &VmStructs, limits: Limits) -> Result<Self, JvmProblem> {
        let facts = JvmFacts::read(memory, vm)?;
        Ok(Self {
            code_layout: CodeLayout::of(vm, facts.major)?,
            method_layout: MethodLayout::of(vm)?,
            facts,
            stubs: Stubs::of(StubField::listed(vm)),
            heaps: Vec::new(),
            methods: Kept::new(limits.methods),
            older: Kept::new(limits.methods),
            classes: Kept::new(limits.classes),
            unloads: Unloads::find(memory, vm),
            codes: Kept::new(limits.codes),
            texts: Texts::default(),
            threads: View::of(memory, vm).ok(),
            batches: 0,
            counts: NamerCounts::default(),
        })
    }

    /// A namer that knows these stubs too.
    pub(crate) fn with_stubs(self, fields: impl IntoIterator<Item = StubField>) -> Self {
        Self { stubs: self.stubs.and(fields), ..self }
    }

    /// Has the names of methods together with other JVMs' namers.
    pub fn sharing(self, texts: &Texts) -> Self {
        Self { texts: texts.clone(), ..self }
    }

    /// What the JVM says of itself.
    pub fn facts(&self) -> &JvmFacts {
        &self.facts
    }

    /// Keeps no more than this from now on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.methods.set_limit(limits.methods);
        self.older.set_limit(limits.methods);
        self.classes.set_limit(limits.classes);
        self.codes.set_limit(limits.codes);
    }

    /// What was done so far, and what is kept.
    pub fn counts(&self) -> NamerCounts {
        let dropped = self.methods.dropped() + self.codes.dropped() + self.classes.dropped();
        let bytes = self.methods.bytes() + self.older.bytes() + self.codes.bytes() + self.classes.bytes();
        NamerCounts { dropped, bytes, ..self.counts }
    }

    /// Names frames, each with the count of unloaded classes that its stack was recorded with (0: not known). Where
    /// the JVM unloaded classes since, an interpreted frame or a class keeps its name only if the same was known there
    /// before, and a compiled one only if it was known before: another's may have come into a method's place.
    ///
    /// # Errors
    /// Of each frame: as [`Batch::name`], and [`Unnamed::Unloaded`] where it does not keep its name.
    pub fn name_all<M: Memory>(
        &mut self,
        memory: &M,
        frames: impl Iterator<Item = (UserFrame, u64)>,
    ) -> Vec<Result<Arc<[JavaFrame]>, Unnamed>> {
        if self.unloads.read(memory) {
            for (address, (method, _)) in self.methods.take() {
                let bytes = method.bytes();
                self.older.insert(address, method, bytes);
            }
        }
        // A stack from before may have methods of classes that were unloaded, whose memory is about to be another's:
        // such frames come last, and what is read for them is not kept for stacks of now.
        let counted = self.unloads.is_known();
        let lives = |unloads: u64| if unloads == 0 { !counted } else { self.unloads.is(unloads) };
        let frames: Vec<_> = frames.map(|(frame, unloads)| (frame, unloads, lives(unloads))).collect();
        let mut batch = self.batch(memory);
        let living: Vec<_> =
            frames.iter().map(|(frame, _, lives)| lives.then(|| batch.name(frame))).collect();
        batch.all_live();
        let named: Vec<_> = frames
            .into_iter()
            .zip(living)
            .map(|((frame, unloads, _), read)| (frame, unloads, read.unwrap_or_else(|| batch.name(&frame))))
            .collect();
        let (made, gone) = batch.made();
        gone.into_iter().for_each(|address| self.methods.remove(address));
        let unloading = self.unloads.read(memory);
        if unloading {
            // What was read now may be of what came meanwhile.
            drop(self.methods.take());
        }
        let sure = |unloads: u64| !unloading && (unloads == 0 || self.unloads.is(unloads));
        let mut kept = |frame: UserFrame, unloads, read: Arc<[JavaFrame]>| {
            if frame.kind == JavaFrameTag::Class as u8 {
                let name = read.first().map(|frame| Arc::clone(&frame.name)).unwrap_or_default();
                let known = self.classes.get(frame.value).is_some_and(|known| *known == name);
                if !known && sure(unloads) {
                    let bytes = name.len() + CLASS_BYTES;
                    self.classes.insert(frame.value, name, bytes);
                }
                return if known || sure(unloads) { Ok(read) } else { Err(Unnamed::Unloaded) };
            }
            let no_method = JavaFrameTag::from_number(frame.kind).is_some_and(JavaFrameTag::outlives_methods);
            if sure(unloads) || no_method {
                return Ok(read);
            }
            if frame.kind == JavaFrameTag::Compiled as u8 {
                if !made.contains(&frame.cookie) {
                    return Ok(read);
                }
                // The code may be there still, and its methods gone.
                self.codes.remove(frame.cookie);
                return Err(Unnamed::Unloaded);
            }
            let known = self.older.get(frame.value).map(|method| &method.text.name);
            if known.is_some() && known == read.first().map(|frame| &frame.name) {
                Ok(read)
            } else {
                Err(Unnamed::Unloaded)
            }
        };
        named
            .into_iter()
            .map(|(frame, unloads, read)| read.and_then(|read| kept(frame, unloads, read)))
            .collect()
    }

    /// Begins to name frames. All those given to one batch must have been recorded before it began: what is
    /// still there now was there then, so each method is looked at once in a batch, and not at all while the count
    /// of unloaded classes is the same.
    pub fn batch<'a, M: Memory>(&'a mut self, memory: &'a M) -> Batch<'a, M> {
        self.batches += 1;
        Batch::of(self, memory)
    }
}
