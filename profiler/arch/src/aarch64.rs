//! arm64 (DWARF for the Arm 64-bit Architecture, 4.1 numbers the registers).
//!
//! Of Debian 12's libjvm, libc and python every row but some hundred of libc has x29 and x30 in their registers or
//! side by side in the frame, and counts from sp; none has an expression.

use super::{Arch, Cfa, Columns, Place, Row};
use profiler_ebpf::{CfaRule, FpRule, ReturnRule, UnwindRule};

/// The facts of this architecture: see [`Arch`].
pub const ARCH: Arch = Arch {
    name: "aarch64",
    machine: 183,
    columns: Columns { fp: X29, sp: SP, return_address: 30 },
    rule,
    // The walker does not apply `ReturnRule` but `BelowCfa` yet (profiler-ebpf/src/walk/apply.rs).
    tables: false,
    // `uw` begins with `tp_value` (arch/arm64/include/asm/processor.h). It is what the thread had when it was last
    // switched to or made: the main thread, which sets it later, is told by `start_stack`.
    thread_pointer: "uw",
};

const X29: u16 = 29;
const SP: u16 = 31;
/// From the place of x29 in a frame record to that of x30.
const ABOVE: i64 = 8;

/// What the walker can do with a row. Signal frames have none: the vdso is without unwind information.
fn rule(row: &Row<'_>, _signal: bool) -> UnwindRule {
    if row.return_address == Place::Undefined {
        return UnwindRule::END;
    }
    let (cfa, cfa_offset) = match row.cfa {
        Cfa::Register(SP, offset) => (CfaRule::Sp, offset),
        Cfa::Register(X29, offset) => (CfaRule::Fp, offset),
        _ => return UnwindRule::UNSUPPORTED,
    };
    let saved = match row.fp {
        Place::Untold | Place::Same => None,
        Place::AtCfa(offset) => Some(offset),
        _ => return UnwindRule::UNSUPPORTED,
    };
    let (return_address, fp_offset) = match (row.return_address, saved) {
        (Place::Untold | Place::Same, offset) => (ReturnRule::Link, offset.unwrap_or(0)),
        (Place::AtCfa(at), Some(offset)) if at == offset.saturating_add(ABOVE) => {
            (ReturnRule::AboveFp, offset)
        }
        (Place::AtCfa(at), None) => (ReturnRule::AtCfa, at),
        _ => return UnwindRule::UNSUPPORTED,
    };
    let fp = if saved.is_some() { FpRule::AtCfa } else { FpRule::Same };
    match (i32::try_from(cfa_offset), i16::try_from(fp_offset)) {
        (Ok(cfa_offset), Ok(fp_offset)) if fp_offset % 8 == 0 => {
            UnwindRule { cfa, cfa_offset, fp, fp_offset, return_address }
        }
        _ => UnwindRule::UNSUPPORTED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_compilers_are_rules() {
        let of = |cfa, fp, return_address| rule(&Row { cfa, fp, return_address }, false);
        let here = |offset| Cfa::Register(SP, offset);
        let made = |cfa_offset, fp, fp_offset, return_address| UnwindRule {
            cfa: CfaRule::Sp,
            cfa_offset,
            fp,
            fp_offset,
            return_address,
        };
        // At a function's entry; with its frame record; with x30 alone.
        assert_eq!(of(here(0), Place::Untold, Place::Untold), made(0, FpRule::Same, 0, ReturnRule::Link));
        assert_eq!(
            of(here(32), Place::AtCfa(-32), Place::AtCfa(-24)),
            made(32, FpRule::AtCfa, -32, ReturnRule::AboveFp)
        );
        assert_eq!(
            of(here(16), Place::Same, Place::AtCfa(-16)),
            made(16, FpRule::Same, -16, ReturnRule::AtCfa)
        );
        assert_eq!(of(Cfa::Register(X29, 48), Place::AtCfa(-48), Place::AtCfa(-40)).cfa, CfaRule::Fp);
        assert_eq!(of(here(0), Place::Untold, Place::Undefined), UnwindRule::END);
        // In x15; apart from each other; from x0.
        for odd in [
            of(here(0), Place::Untold, Place::Other),
            of(here(32), Place::AtCfa(-32), Place::AtCfa(-16)),
            of(Cfa::Register(0, 16), Place::Untold, Place::Untold),
            of(Cfa::Expression(&[0x8f, 0]), Place::Untold, Place::Untold),
        ] {
            assert_eq!(odd, UnwindRule::UNSUPPORTED);
        }
    }
}
