//! Names of code that is no method: interpreter, adapters, runtime stubs, intrinsics.
//!
//! A blob has a name of its own. In those that hold many stubs (`StubRoutines (1)`, from JDK 20 on
//! `StubRoutines (initialstubs)` and others) the fields that have the stubs' addresses ([`StubField`]) tell which: the
//! nearest that begins at or below.

use super::Unnamed;
use super::blobs::Head;
use crate::stub_fields::StubField;
use emberscope_target::memory::{Memory, Pages, at};
use emberscope_target::text;
use std::collections::HashMap;
use std::sync::Arc;

/// Longest name of a blob.
const MAX_NAME: usize = 128;
/// Names of blobs that are kept: there are about 100.
const MAX_NAMES: usize = 512;
/// Largest stub: the unrolled AES and GHASH ones take 10 KB.
const MAX_STUB: u64 = 16 << 10;

/// The stubs of one JVM.
#[derive(Debug, Default)]
pub struct Stubs {
    /// Where the stubs' addresses are.
    fields: Vec<StubField>,
    /// Entries by address, once read.
    entries: Vec<(u64, Arc<str>)>,
    /// Blobs' names by the pointer to them: constant strings.
    names: HashMap<u64, Arc<str>>,
}

impl Stubs {
    /// The stubs of a JVM that has these fields.
    pub fn of(fields: Vec<StubField>) -> Self {
        Self { fields, ..Self::default() }
    }

    /// Stubs with more fields; what several lead to has one name.
    pub fn and(mut self, more: impl IntoIterator<Item = StubField>) -> Self {
        self.fields.extend(more);
        self
    }

    /// The blob's own name.
    ///
    /// # Errors
    /// [`Unnamed::Unreadable`]: there is no text of at most [`MAX_NAME`] bytes. [`Unnamed::Gone`]: the process ended.
    pub fn blob<M: Memory>(&mut self, memory: &M, head: &Head) -> Result<Arc<str>, Unnamed> {
        if let Some(name) = self.names.get(&head.name) {
            return Ok(Arc::clone(name));
        }
        let bytes = memory.c_string(head.name, MAX_NAME)?.ok_or(Unnamed::Unreadable)?;
        let name: Arc<str> = text::bounded(&bytes, MAX_NAME).into();
        if self.names.len() >= MAX_NAMES {
            self.names.clear();
        }
        self.names.insert(head.name, Arc::clone(&name));
        Ok(name)
    }

    /// The name of the stub at `pc`, and whether that is only the nearest one known.
    ///
    /// # Errors
    /// As [`Self::blob`].
    pub fn name<M: Memory>(&mut self, memory: &M, head: &Head, pc: u64) -> Result<(Arc<str>, bool), Unnamed> {
        let blob = self.blob(memory, head)?;
        if !blob.starts_with("StubRoutines") {
            return Ok((blob, false));
        }
        if let Some(known) = self.entry(head, pc) {
            return Ok((known, true));
        }
        // Some are made late (by the compiler's threads from JDK 21 on).
        self.read(memory);
        Ok(self.entry(head, pc).map_or((blob, false), |name| (name, true)))
    }

    /// Reads where all begin, from a few pages. One begins where another does when both are the same stub: on x86-64
    /// `arrayof_jint_fill` is `jint_fill`. The shortest name stands for it.
    fn read<M: Memory>(&mut self, memory: &M) {
        let memory = &Pages::of(memory);
        self.entries.clear();
        for field in &self.fields {
            for entry in 0..u64::from(field.entries) {
                if let Ok(address @ 1..) = at(field.address, 8 * entry).and_then(|at| memory.u64(at)) {
                    self.entries.push((address, Arc::clone(&field.name)));
                }
            }
        }
        self.entries.sort_by(|(a, x), (b, y)| (a, x.len(), x).cmp(&(b, y.len(), y)));
        self.entries.dedup_by_key(|(address, _)| *address);
    }

    fn entry(&self, head: &Head, pc: u64) -> Option<Arc<str>> {
        let above = self.entries.partition_point(|(start, _)| *start <= pc);
        let (start, name) = self.entries.get(above.checked_sub(1)?)?;
        (*start >= head.code.0 && pc - start < MAX_STUB).then(|| Arc::clone(name))
    }
}
