//! Frames of a process's mappings: of its files, of the vdso, of memory without a file.

use super::super::files::{At, Came, FileSlot, Found};
use super::super::pending::{InFile, PendingFrame};
use super::super::process::{FileState, ProcessState};
use super::super::vdso;
use super::Symbolizer;
use emberscope_model::{Frame, FrameKind, UnknownReason};
use emberscope_target::maps::{self, Backing};
use std::sync::Arc;

impl Symbolizer {
    /// The frame of an address in a process.
    pub(super) fn user_frame(
        &mut self,
        dir: &std::path::Path,
        process: &mut ProcessState,
        address: u64,
    ) -> PendingFrame {
        let Some(index) = maps::find(&process.mappings, address) else {
            if process.is_crowded() {
                return PendingFrame::Named(self.frames.intern(Frame::unknown(UnknownReason::TableFull, "")));
            }
            if process.jvm().is_some() && !process.gone {
                // A JVM makes its code heaps larger as it compiles: the map may know this address though
                // the mappings, as last read, do not.
                process.jit.saw(address);
                return PendingFrame::Jit(address);
            }
            let reason = if process.gone { UnknownReason::ProcessGone } else { UnknownReason::NoMapping };
            return PendingFrame::Named(self.frames.intern(Frame::unknown(reason, "")));
        };
        let (Some(mapping), Some(state)) = (process.mappings.get(index), process.files.get_mut(index)) else {
            return PendingFrame::Named(self.frames.intern(Frame::unknown(UnknownReason::NoMapping, "")));
        };
        let offset = (address - mapping.start).wrapping_add(mapping.offset);
        let frame = match &mapping.backing {
            Backing::Anonymous => {
                process.jit.saw(address);
                return PendingFrame::Jit(address);
            }
            Backing::Special(name) => self.frames.intern(Frame::new(FrameKind::Native, &**name, &**name)),
            Backing::Vdso => self.vdso_frame(state, offset, mapping),
            Backing::File { .. } => return self.file_frame(state, offset, At { dir, mapping }),
        };
        PendingFrame::Named(frame)
    }

    /// A frame of a file of the target: named now, or on its way.
    fn file_frame(&mut self, state: &mut FileState, offset: u64, at: At<'_>) -> PendingFrame {
        if let FileState::Coming(slot) = state {
            match slot.get() {
                None => return in_file(slot.clone(), offset),
                Some(Came::Known(id, generation)) => *state = FileState::Known(id, generation),
                Some(Came::Unreadable) => *state = FileState::Unreadable,
                Some(Came::NotNow) => *state = FileState::New,
            }
        }
        let id = match state {
            FileState::Known(id, generation) if *generation == self.natives.generation => *id,
            FileState::Unreadable => return self.no_name(UnknownReason::FileUnreadable, at.mapping),
            FileState::New | FileState::Known(..) | FileState::Coming(_) => {
                match self.files.look(at, &mut self.natives) {
                    Found::Known(id) => {
                        *state = FileState::Known(id, self.natives.generation);
                        id
                    }
                    Found::Unreadable => {
                        *state = FileState::Unreadable;
                        return self.no_name(UnknownReason::FileUnreadable, at.mapping);
                    }
                    Found::Coming(slot) => {
                        *state = FileState::Coming(slot.clone());
                        return in_file(slot, offset);
                    }
                    Found::Later => return self.no_name(UnknownReason::FileLate, at.mapping),
                }
            }
        };
        if let Some(frame) = self.natives.cached(id, offset) {
            return PendingFrame::Named(frame);
        }
        if self.natives.wants_file(id) {
            match self.files.load(id, at, &mut self.natives) {
                Ok(true) => {}
                Ok(false) => {
                    let known = Came::Known(id, self.natives.generation);
                    return in_file(FileSlot::of(known), offset);
                }
                Err(_) => return self.no_name(UnknownReason::FileLate, at.mapping),
            }
        }
        if let Some(naming) = self.natives.naming(id, offset) {
            let of = (id, offset);
            return match self.files.name(of, naming, at, (&mut self.natives, &mut self.frames)) {
                Ok(Some(frame)) => PendingFrame::Named(frame),
                Ok(None) => in_file(FileSlot::of(Came::Known(id, self.natives.generation)), offset),
                Err(_) => self.no_name(UnknownReason::FileLate, at.mapping),
            };
        }
        PendingFrame::Named(self.natives.name(id, offset, None, &mut self.frames))
    }

    /// A frame of a file that was on its way.
    pub(super) fn came(&mut self, slot: &FileSlot, offset: u64) -> Arc<Frame> {
        let reason = match slot.get() {
            Some(Came::Known(id, generation)) if generation == self.natives.generation => {
                let can = || !self.natives.wants_file(id) && self.natives.naming(id, offset).is_none();
                if self.natives.cached(id, offset).is_some() || can() {
                    return self.natives.name(id, offset, None, &mut self.frames);
                }
                UnknownReason::FileLate
            }
            Some(Came::Unreadable) => UnknownReason::FileUnreadable,
            Some(Came::Known(..) | Came::NotNow) | None => UnknownReason::FileLate,
        };
        self.frames.intern(Frame::unknown(reason, ""))
    }

    fn no_name(&mut self, reason: UnknownReason, mapping: &maps::Mapping) -> PendingFrame {
        PendingFrame::Named(self.frames.intern(Frame::unknown(reason, mapping.module_name())))
    }

    /// The kernel's own page, of our own memory.
    fn vdso_frame(&mut self, state: &mut FileState, offset: u64, mapping: &maps::Mapping) -> Arc<Frame> {
        let mut opened = None;
        let known =
            matches!(state, FileState::Known(_, generation) if *generation == self.natives.generation);
        if !known && *state != FileState::Unreadable {
            *state = match vdso::file(mapping) {
                Ok((file, stat)) => {
                    let id = self.natives.module(&mapping.module_name(), &file, &stat);
                    opened = Some(file);
                    FileState::Known(id, self.natives.generation)
                }
                Err(_) => FileState::Unreadable,
            };
        }
        let FileState::Known(id, _) = *state else {
            let frame = Frame::unknown(UnknownReason::FileUnreadable, mapping.module_name());
            return self.frames.intern(frame);
        };
        if self.natives.wants_file(id) && opened.is_none() {
            opened = vdso::file(mapping).ok().map(|(file, _)| file);
        }
        let file = opened.as_ref().map(|file| (file, std::path::Path::new("")));
        self.natives.name(id, offset, file, &mut self.frames)
    }
}

fn in_file(slot: FileSlot, offset: u64) -> PendingFrame {
    PendingFrame::File(Box::new(InFile { slot, offset }))
}
