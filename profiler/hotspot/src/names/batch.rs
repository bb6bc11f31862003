//! One batch of frames: what the walker recorded in, methods out, from what is kept or the JVM's memory.
//!
//! Whatever is read of an nmethod is believed only if the nmethod is the same afterwards, and kept only then;
//! methods are looked at again in each batch. See [`Namer`] for what is kept.

use super::blobs::{self, Heap};
use super::code::{Code, Place, Source};
use super::methods::{Method, class_name};
use super::numbers::Scope;
use super::{JavaFrame, Namer, Unnamed};
use crate::problem::JvmProblem;
use crate::threads::{JavaThread, View};
use emberscope_model::FrameKind;
use emberscope_target::memory::{Lines, Memory};
use profiler_ebpf::{JavaFrameTag, OWNER_ID_BITS, UserFrame};
use std::collections::HashSet;
use std::sync::Arc;

/// Frames that are named together.
pub struct Batch<'a, M> {
    namer: &'a mut Namer,
    memory: &'a M,
    /// What lies in metaspace stays there as long as no class is unloaded, and the frames are older than the batch.
    metaspace: Lines<'a, M>,
    heaps_read: bool,
    /// Compile ids of the nmethods of which something had to be read.
    made: HashSet<u32>,
    /// Where methods were read that were not known before.
    read: Vec<u64>,
}

impl<'a, M: Memory> Batch<'a, M> {
    pub(super) fn of(namer: &'a mut Namer, memory: &'a M) -> Self {
        Self {
            namer,
            memory,
            metaspace: Lines::of(memory),
            heaps_read: false,
            made: HashSet::new(),
            read: Vec::new(),
        }
    }

    /// The methods of one frame, innermost first: for compiled code those inlined at its address and then the
    /// one that was compiled; else one.
    ///
    /// # Errors
    /// [`Unnamed::NotJava`]: the frame is none of Java's, or lies in no code heap. [`Unnamed::Unloaded`]: the code or
    /// the method is no longer the one that was walked. [`Unnamed::Unreadable`]: memory cannot be read, or makes no
    /// sense. [`Unnamed::Gone`]: the process ended.
    pub fn name(&mut self, frame: &UserFrame) -> Result<Arc<[JavaFrame]>, Unnamed> {
        self.namer.counts.frames += 1;
        let frames = match JavaFrameTag::from_number(frame.kind) {
            Some(JavaFrameTag::Interpreted) => vec![self.interpreted(frame.value, frame.cookie)?],
            Some(JavaFrameTag::Compiled) => self.compiled(frame)?,
            Some(JavaFrameTag::Stub) => vec![self.stub(frame.value)?],
            Some(JavaFrameTag::Class) => vec![self.class(frame.value)?],
            Some(JavaFrameTag::Owner) => {
                self.owner(frame.cookie, |threads, memory| threads.owner(memory, frame.value))
            }
            Some(JavaFrameTag::OwnerElsewhere) => {
                self.owner(0, |threads, memory| threads.owner(memory, frame.value))
            }
            Some(JavaFrameTag::OwnerUnknown) => {
                self.owner(0, |threads, memory| threads.anonymous_owner(memory, frame.value))
            }
            None => return Err(Unnamed::NotJava),
        };
        Ok(frames.into())
    }

    /// What was read up to now is of methods that are alive.
    pub(super) fn all_live(&mut self) {
        self.read.clear();
    }

    /// Compile ids of the nmethods of which something was read in this batch, and where methods were read since
    /// [`Batch::all_live`].
    pub(super) fn made(self) -> (HashSet<u32>, Vec<u64>) {
        (self.made, self.read)
    }

    fn interpreted(&mut self, address: u64, bcp: u32) -> Result<JavaFrame, Unnamed> {
        let method = self.method(address)?;
        let (_, bytes) = method.code;
        let line = match bcp {
            0 => 0,
            // A native method's frame has its caller's bytecode pointer from the call on that counts it
            // (`save_bcp`, interp_masm_x86.cpp, JDK 8 to 25).
            _ if bytes == 0 && self.namer.unloads.is_known() => 0,
            // Another method lies there now.
            _ => method.line(method.bci(bcp).ok_or(Unnamed::Unloaded)? as i32),
        };
        Ok(named(&method, FrameKind::JavaInterpreted, line, false))
    }

    /// The method at an address, which is there now; or, where the JVM counts the classes that it unloads, if it has
    /// unloaded none since the batch began.
    fn method(&mut self, address: u64) -> Result<Arc<Method>, Unnamed> {
        let namer = &mut *self.namer;
        if let Some((method, seen)) = namer.methods.get(address)
            && (*seen == namer.batches
                || namer.unloads.is_known()
                || method.is_still_at(self.memory, &namer.method_layout, address))
        {
            *seen = namer.batches;
            return Ok(Arc::clone(method));
        }
        let (layout, excluded) = (&namer.method_layout, namer.code_layout.excluded);
        let method = if namer.unloads.is_known() {
            Method::read(&self.metaspace, layout, excluded, &namer.texts, address)?
        } else {
            let method = Method::read(self.memory, layout, excluded, &namer.texts, address)?;
            if !method.is_still_at(self.memory, layout, address) {
                return Err(Unnamed::Unloaded);
            }
            method
        };
        let method = Arc::new(method);
        namer.counts.methods += 1;
        namer.methods.insert(address, (Arc::clone(&method), namer.batches), method.bytes());
        self.read.push(address);
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

    fn stub(&mut self, pc: u64) -> Result<JavaFrame, Unnamed> {
        let head = self.find(pc)?;
        if self.is_nmethod(&head)? {
            return Err(Unnamed::Unloaded);
        }
        let (name, approximate) = self.namer.stubs.name(self.memory, &head, pc)?;
        Ok(JavaFrame { kind: FrameKind::Stub, name, signature: None, line: 0, approximate })
    }

    /// What is there now: whether it was when the frame was recorded is the caller's to judge.
    fn class(&mut self, address: u64) -> Result<JavaFrame, Unnamed> {
        let name = class_name(self.memory, &self.namer.method_layout, address)?.into();
        Ok(JavaFrame { kind: FrameKind::Class, name, signature: None, line: 0, approximate: false })
    }

    /// A lock's owner as a label; none where it has ended, another is at its address (`cookie` has its id, or 0), or it gave no
    /// sound name.
    fn owner(
        &self,
        cookie: u32,
        read: impl FnOnce(&View, &M) -> Result<JavaThread, JvmProblem>,
    ) -> Vec<JavaFrame> {
        let bits = (1 << OWNER_ID_BITS) - 1;
        let is_it = |thread: &JavaThread| !thread.unsure && [0, thread.tid & bits].contains(&(cookie & bits));
        let thread = self.namer.threads.as_ref().and_then(|threads| read(threads, self.memory).ok());
        let name = thread.filter(is_it).map(|thread| thread.name.into());
        let label =
            |name| JavaFrame { kind: FrameKind::Label, name, signature: None, line: 0, approximate: false };
        name.map(label).into_iter().collect()
    }

    fn is_nmethod(&mut self, head: &blobs::Head) -> Result<bool, Unnamed> {
        let name = self.namer.stubs.blob(self.memory, head)?;
        Ok(matches!(&*name, "nmethod" | "native nmethod"))
    }

    fn compiled(&mut self, frame: &UserFrame) -> Result<Vec<JavaFrame>, Unnamed> {
        let (pc, compile_id) = (frame.value, frame.cookie);
        let known = self.namer.codes.get(compile_id).map(|code| Arc::clone(code));
        let inside = |code: &Arc<Code>| (code.head.code.0..code.head.code.1).contains(&pc);
        if let Some(code) = known.filter(inside) {
            let shaped = code.has_leaves();
            let frames = self.methods_at(&code, frame, false);
            if code.has_leaves() != shaped {
                let bytes = code.bytes();
                self.namer.codes.insert(compile_id, code, bytes);
            }
            return frames;
        }
        let head = self.find(pc)?;
        if head.compile_id != compile_id || !self.is_nmethod(&head)? {
            return Err(Unnamed::Unloaded);
        }
        let code = Arc::new(Code::read(self.memory, &self.namer.code_layout, head)?);
        self.namer.counts.codes += 1;
        let frames = self.methods_at(&code, frame, true)?;
        let bytes = code.bytes();
        self.namer.codes.insert(compile_id, code, bytes);
        Ok(frames)
    }

    /// The methods that are inlined at the frame's place, then the nmethod's own.
    fn methods_at(&mut self, code: &Code, frame: &UserFrame, fresh: bool) -> Result<Vec<JavaFrame>, Unnamed> {
        let returned = frame.flags & UserFrame::FLAG_RETURN_ADDRESS != 0;
        let everywhere = self.namer.facts.debug_non_safepoints;
        let place = code.place(self.memory, frame.value, returned, everywhere);
        let exact = everywhere || matches!(place, Place::Entry(_));
        let wanted = !exact && !code.has_leaves();
        let shape = if wanted { code.shape(self.memory).filter(|_| self.is_still(code)) } else { None };
        let scope = code.scope(place, shape.as_ref());
        if wanted {
            code.keep_shape(shape);
        }
        let mut read = Vec::new();
        let mut frames = None;
        if let Some((scopes, source)) = scope.and_then(|(scope, source)| Some((code.chain(scope)?, source))) {
            let approximate = source == Source::Borrowed && !exact;
            frames = self.chain(code, &scopes, approximate, &mut read).ok();
        }
        let frames = match frames {
            Some(frames) => frames,
            None => {
                let own = self.method_of(code, Code::OWN, &mut read)?;
                // What is inlined there, if anything, is not known.
                vec![named(&own, FrameKind::JavaCompiled, 0, !exact)]
            }
        };
        if fresh || !read.is_empty() {
            // Its methods live as long as it does.
            if !self.is_still(code) {
                return Err(Unnamed::Unloaded);
            }
            self.made.insert(code.head.compile_id);
        }
        for (index, method) in read {
            code.set_named(index, method);
        }
        Ok(frames)
    }

    fn is_still(&self, code: &Code) -> bool {
        let now = blobs::head(self.memory, &self.namer.code_layout, code.head.blob);
        now.is_ok_and(|now| now.still(&code.head, &self.namer.code_layout))
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
    let (name, signature) = (Arc::clone(&method.text.name), method.text.signature.clone());
    JavaFrame { kind, name, signature, line, approximate }
}
