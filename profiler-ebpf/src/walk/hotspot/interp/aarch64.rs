//! The interpreted frame that a thread was interrupted in. While it is built, its method is in x12, the caller in x30, the caller's
//! sp in x13 or x19; how far it has come, the code tells (`walk::leaf`).
#![allow(unsafe_code)]

use super::{MAX_LOCALS, lost, sender_sp, told, whole};
use crate::maps::Scratch;
use crate::walk::leaf::{FROM_X19, LEFT, LINKED, MADE, at_entry};
use crate::walk::stack::{is_user_address, pair};
use crate::walk::{caller as caller_at, in_code, push};
use profiler_ebpf::arch::code_address;
use profiler_ebpf::{JavaFrameTag, StackEnd};

/// Interrupted in the interpreter.
///
/// # Safety
/// As for [`super::caller`].
#[inline(never)]
pub unsafe fn leaf(scratch: *mut Scratch) -> bool {
    // SAFETY: as above.
    unsafe {
        let state = at_entry(scratch);
        let walk = &(*scratch).walk;
        let (sp, bcp, method) = (walk.sp, walk.registers.bytecode(), walk.registers.method());
        let sender = if state & FROM_X19 != 0 { walk.registers.x19 } else { walk.registers.x13 };
        if state == MADE {
            return whole(scratch, bcp);
        }
        // An interpreted caller's may be lower (see `sender_sp`).
        let near = sender.wrapping_sub(sp).wrapping_add(MAX_LOCALS) <= 2 * MAX_LOCALS;
        let known = sender & 7 == 0 && near;
        if state != LEFT && !(known && method & 7 == 0 && is_user_address(method)) {
            return whole(scratch, bcp);
        }
        let (mut pc, mut fp, mut sender) =
            (walk.registers.link(), walk.fp, if sender > sp { sender } else { sp });
        if state != LEFT && state & LINKED == 0 {
            let Some((saved, returns)) = pair(scratch, fp) else {
                return lost(scratch, StackEnd::ReadFailed as u64);
            };
            (pc, fp, sender) = (code_address(returns), saved, sender_sp(sender, fp));
        }
        if !in_code(&(*scratch).walk, pc) {
            return whole(scratch, bcp);
        }
        let (added, sp) = if state == LEFT {
            (push(scratch, (*scratch).walk.pc, JavaFrameTag::Stub.word()), sp)
        } else {
            (told(scratch, method, 0), sender)
        };
        added && caller_at(scratch, pc, sp, fp)
    }
}
