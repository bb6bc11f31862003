//! Names of a JVM's frames, from its own memory: frames as the kernel's walker records them in, methods out.
//!
//! [`Namer`] is for one JVM. A compiled frame becomes the method that was compiled and those inlined into it
//! at that address; an interpreted one its method; a stub the blob's or the intrinsic's name. The JVM goes
//! on while it is read: a name is given only when what it was read from was there before and after, and an
//! nmethod only by its compile id, which no other has. Names that were read stay right when their code is
//! gone. What cannot be named has a reason ([`Unnamed`]), never another one's name. Reads are few and
//! large, and bounded in size and number; what is kept is bounded by [`Limits`].

mod blobs;
mod code;
mod facts;
pub mod java_text;
mod kept;
mod layout;
mod methods;
mod numbers;
mod stubs;
#[cfg(test)]
mod tests;

use super::problem::JvmProblem;
use super::vm_structs::VmStructs;
use crate::model::{FrameKind, UnknownReason};
use crate::target::memory::{Memory, ReadError};
use blobs::Heap;
use code::{Code, Source};
pub use facts::JvmFacts;
use kept::Kept;
use layout::{CodeLayout, MethodLayout};
use methods::Method;
use numbers::Scope;
use profiler_ebpf::{FrameKindTag, UserFrame};
use std::sync::Arc;
use stubs::Stubs;

/// A named frame of Java, or of code that the JVM made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JavaFrame {
    /// JavaCompiled, JavaInlined, JavaInterpreted or Stub.
    pub kind: FrameKind,
    /// `package.Class.method`, folded; a stub's name.
    pub name: Arc<str>,
    /// `(byte[], int)long`.
    pub signature: Option<Arc<str>>,
    /// The source file's name, without a directory.
    pub source: Option<Arc<str>>,
    /// 0 when not known.
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
}

impl Unnamed {
    /// As the model has it.
    pub const fn reason(self) -> UnknownReason {
        match self {
            Self::Unloaded => UnknownReason::Unloaded,
            Self::Unreadable => UnknownReason::JvmUnreadable,
            Self::NotJava => UnknownReason::AnonymousCode,
            Self::Gone => UnknownReason::ProcessGone,
        }
    }
}

impl From<ReadError> for Unnamed {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Gone => Self::Gone,
            ReadError::Fault | ReadError::Denied => Self::Unreadable,
        }
    }
}

/// How much a [`Namer`] keeps, bytes. Ten JVMs with all of it are a third of the daemon's 64 MB.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Named frames by address.
    pub frames: usize,
    /// Methods by their address.
    pub methods: usize,
    /// Debug info of nmethods.
    pub codes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { frames: 640 << 10, methods: 640 << 10, codes: 1 << 20 }
    }
}

/// What a [`Namer`] has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamerCounts {
    /// Frames that it was asked for.
    pub frames: u64,
    /// Those that it knew.
    pub known: u64,
    /// Nmethods whose debug info was read.
    pub codes: u64,
    /// Methods that were read.
    pub methods: u64,
    /// What had to go for want of room.
    pub dropped: u64,
    /// Bytes that it keeps.
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
    /// By value, cookie, and kind with flags.
    frames: Kept<(u64, u32, u16), Known>,
    /// With the batch in which they were last seen to be there.
    methods: Kept<u64, (Arc<Method>, u64)>,
    codes: Kept<u32, Arc<Code>>,
    batches: u64,
    counts: NamerCounts,
}

#[derive(Debug)]
struct Known {
    frames: Arc<[JavaFrame]>,
    /// What an interpreted frame's name is right for.
    method: Option<Arc<Method>>,
}

impl Namer {
    /// Finds out how this JVM lays out what names are made of. Memory is read often in the same places, so it
    /// should be [`crate::target::memory::Pages`].
    pub fn read<M: Memory>(memory: &M, vm: &VmStructs, limits: Limits) -> Result<Self, JvmProblem> {
        let facts = JvmFacts::read(memory, vm)?;
        Ok(Self {
            code_layout: CodeLayout::of(vm, facts.major)?,
            method_layout: MethodLayout::of(vm)?,
            facts,
            stubs: Stubs::of(vm),
            heaps: Vec::new(),
            frames: Kept::new(limits.frames),
            methods: Kept::new(limits.methods),
            codes: Kept::new(limits.codes),
            batches: 0,
            counts: NamerCounts::default(),
        })
    }

    /// What the JVM says of itself.
    pub fn facts(&self) -> &JvmFacts {
        &self.facts
    }

    /// What was done so far, and what is kept.
    pub fn counts(&self) -> NamerCounts {
        let dropped = self.frames.dropped() + self.methods.dropped() + self.codes.dropped();
        let bytes = self.frames.bytes() + self.methods.bytes() + self.codes.bytes();
        NamerCounts { dropped, bytes, ..self.counts }
    }

    /// Begins to name frames. All those given to one batch must have been recorded before it began: what is
    /// still there now was there then, so each method is looked at once in a batch.
    pub fn batch<'a, M: Memory>(&'a mut self, memory: &'a M) -> Batch<'a, M> {
        self.batches += 1;
        Batch { namer: self, memory, heaps_read: false }
    }
}

/// Frames that are named together.
pub struct Batch<'a, M> {
    namer: &'a mut Namer,
    memory: &'a M,
    heaps_read: bool,
}

impl<M: Memory> Batch<'_, M> {
    /// The methods of one frame, innermost first: for compiled code those inlined at its address and then the
    /// one that was compiled; else one.
    pub fn name(&mut self, frame: &UserFrame) -> Result<Arc<[JavaFrame]>, Unnamed> {
        self.namer.counts.frames += 1;
        let caller = frame.flags & UserFrame::FLAG_RETURN_ADDRESS;
        let key = (frame.value, frame.cookie, u16::from(frame.kind) << 8 | u16::from(caller));
        match FrameKindTag::from_number(frame.kind) {
            Some(FrameKindTag::JavaInterpreted) => self.interpreted(key),
            Some(FrameKindTag::JavaCompiled) => {
                self.kept(key, |batch| batch.compiled(frame.value, frame.cookie, caller != 0))
            }
            Some(FrameKindTag::JavaStub) => self.kept(key, |batch| batch.stub(frame.value)),
            Some(FrameKindTag::Address) | None => Err(Unnamed::NotJava),
        }
    }

    fn kept(
        &mut self,
        key: (u64, u32, u16),
        read: impl FnOnce(&mut Self) -> Result<Vec<JavaFrame>, Unnamed>,
    ) -> Result<Arc<[JavaFrame]>, Unnamed> {
        if let Some(known) = self.namer.frames.get(key) {
            self.namer.counts.known += 1;
            return Ok(Arc::clone(&known.frames));
        }
        let frames = read(self)?;
        Ok(self.keep(key, frames, None))
    }

    fn keep(
        &mut self,
        key: (u64, u32, u16),
        frames: Vec<JavaFrame>,
        method: Option<Arc<Method>>,
    ) -> Arc<[JavaFrame]> {
        // The strings are the methods'.
        let bytes = 80 + size_of::<JavaFrame>() * frames.len();
        let frames: Arc<[JavaFrame]> = frames.into();
        self.namer.frames.insert(key, Known { frames: Arc::clone(&frames), method }, bytes);
        frames
    }

    fn interpreted(&mut self, key: (u64, u32, u16)) -> Result<Arc<[JavaFrame]>, Unnamed> {
        let (address, bcp, _) = key;
        let method = self.method(address)?;
        if let Some(known) = self.namer.frames.get(key)
            && known.method.as_ref().is_some_and(|known| Arc::ptr_eq(known, &method))
        {
            self.namer.counts.known += 1;
            return Ok(Arc::clone(&known.frames));
        }
        let line = match bcp {
            0 => 0,
            // Another method lies there now.
            _ => method.line(method.bci(bcp).ok_or(Unnamed::Unloaded)? as i32),
        };
        let frame = named(&method, FrameKind::JavaInterpreted, line, false);
        Ok(self.keep(key, vec![frame], Some(method)))
    }

    /// The method at an address, which is there now.
    fn method(&mut self, address: u64) -> Result<Arc<Method>, Unnamed> {
        let namer = &mut *self.namer;
        if let Some((method, seen)) = namer.methods.get(address)
            && (*seen == namer.batches || method.is_still_at(self.memory, &namer.method_layout, address))
        {
            *seen = namer.batches;
            return Ok(Arc::clone(method));
        }
        let excluded = namer.code_layout.excluded;
        let method = Arc::new(Method::read(self.memory, &namer.method_layout, excluded, address)?);
        namer.counts.methods += 1;
        namer.methods.insert(address, (Arc::clone(&method), namer.batches), method.bytes());
        Ok(method)
    }

    fn find(&mut self, pc: u64) -> Result<blobs::Head, Unnamed> {
        let inside = |heap: &Heap| (heap.low..heap.high).contains(&pc);
        if !self.heaps_read && !self.namer.heaps.iter().any(inside) {
            self.heaps_read = true;
            self.namer.heaps = blobs::heaps(self.memory, &self.namer.code_layout)?;
        }
        blobs::find(self.memory, &self.namer.code_layout, &self.namer.heaps, pc)
    }

    fn stub(&mut self, pc: u64) -> Result<Vec<JavaFrame>, Unnamed> {
        let head = self.find(pc)?;
        if self.is_nmethod(&head)? {
            return Err(Unnamed::Unloaded);
        }
        let (name, approximate) = self.namer.stubs.name(self.memory, &head, pc)?;
        Ok(vec![JavaFrame {
            kind: FrameKind::Stub,
            name,
            signature: None,
            source: None,
            line: 0,
            approximate,
        }])
    }

    fn is_nmethod(&mut self, head: &blobs::Head) -> Result<bool, Unnamed> {
        let name = self.namer.stubs.blob(self.memory, head)?;
        Ok(matches!(&*name, "nmethod" | "native nmethod"))
    }

    fn compiled(&mut self, pc: u64, compile_id: u32, caller: bool) -> Result<Vec<JavaFrame>, Unnamed> {
        let known = self.namer.codes.get(compile_id).map(|code| Arc::clone(code));
        let inside = |code: &Arc<Code>| (code.head.code.0..code.head.code.1).contains(&pc);
        if let Some(code) = known.filter(inside) {
            return self.methods_at(&code, pc, caller, false);
        }
        let head = self.find(pc)?;
        if head.compile_id != compile_id || !self.is_nmethod(&head)? {
            return Err(Unnamed::Unloaded);
        }
        let code = Arc::new(Code::read(self.memory, &self.namer.code_layout, head)?);
        self.namer.counts.codes += 1;
        let frames = self.methods_at(&code, pc, caller, true)?;
        let bytes = code.bytes();
        self.namer.codes.insert(compile_id, code, bytes);
        Ok(frames)
    }

    /// Those that are inlined at `pc`, then the nmethod's own.
    fn methods_at(
        &mut self,
        code: &Code,
        pc: u64,
        caller: bool,
        fresh: bool,
    ) -> Result<Vec<JavaFrame>, Unnamed> {
        let mut read = Vec::new();
        let mut frames = None;
        if let Some((scopes, source)) = code.chain(pc, caller) {
            let approximate = source == Source::Borrowed && !self.namer.facts.debug_non_safepoints;
            frames = self.chain(code, &scopes, approximate, &mut read).ok();
        }
        let frames = match frames {
            Some(frames) => frames,
            None => {
                let own = self.method_of(code, Code::OWN, &mut read)?;
                vec![named(&own, FrameKind::JavaCompiled, 0, false)]
            }
        };
        // Its methods live as long as it does.
        if fresh || !read.is_empty() {
            let now = blobs::head(self.memory, &self.namer.code_layout, code.head.blob)?;
            if !now.still(&code.head, &self.namer.code_layout) {
                return Err(Unnamed::Unloaded);
            }
        }
        for (index, method) in read {
            code.set_named(index, method);
        }
        Ok(frames)
    }

    fn chain(
        &mut self,
        code: &Code,
        scopes: &[Scope],
        approximate: bool,
        read: &mut Vec<(u32, Arc<Method>)>,
    ) -> Result<Vec<JavaFrame>, Unnamed> {
        let mut frames = Vec::with_capacity(scopes.len());
        for (depth, scope) in scopes.iter().enumerate() {
            let method = self.method_of(code, scope.method, read)?;
            let outermost = depth + 1 == scopes.len();
            let kind = if outermost { FrameKind::JavaCompiled } else { FrameKind::JavaInlined };
            frames.push(named(&method, kind, method.line(scope.bci), approximate));
        }
        Ok(frames)
    }

    fn method_of(
        &mut self,
        code: &Code,
        index: u32,
        read: &mut Vec<(u32, Arc<Method>)>,
    ) -> Result<Arc<Method>, Unnamed> {
        if let Some(method) = code.named(index) {
            return Ok(Arc::clone(method));
        }
        let method = self.method(code.method(index).ok_or(Unnamed::Unreadable)?)?;
        read.push((index, Arc::clone(&method)));
        Ok(method)
    }
}

fn named(method: &Method, kind: FrameKind, line: u32, approximate: bool) -> JavaFrame {
    let (name, signature, source) =
        (Arc::clone(&method.name), method.signature.clone(), method.source.clone());
    JavaFrame { kind, name, signature, source, line, approximate }
}
