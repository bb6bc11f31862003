//! What code tells, against what unwind information says of the same code.

use super::super::build::build;
use super::*;
use profiler_ebpf::{CfaRule, FpRule};

/// The image of a file, and its code as if it had no unwind information.
fn image_and_code(path: &std::path::Path) -> (Image, CodeImage) {
    let file = File::open(path).unwrap();
    let size = file.metadata().unwrap().len();
    let image = Image::of_file(&file, size, u64::MAX).unwrap();
    assert!(image.plain.is_none(), "{} has unwind information", path.display());
    (image, code_of(&file, size, 0).unwrap())
}

/// Whether two rows at an address lead to one caller.
fn is_same(at: u64, ours: UnwindRule, theirs: UnwindRule) -> bool {
    if theirs.cfa == CfaRule::Plt {
        let pushed = if (at & 15) as i16 >= theirs.fp_offset { 8 } else { 0 };
        return ours.cfa == CfaRule::Sp
            && ours.cfa_offset == theirs.cfa_offset + pushed
            && ours.fp == FpRule::Same;
    }
    let cfa = (ours.cfa, ours.cfa_offset) == (theirs.cfa, theirs.cfa_offset)
        // By one register or by the other.
        || (ours.cfa, theirs.cfa) == (CfaRule::Sp, CfaRule::Fp);
    let fp = (ours.fp, ours.fp_offset) == (theirs.fp, theirs.fp_offset)
        // It has been popped: compilers do not say so, for what is below rsp is still there.
        || ours.fp == FpRule::Same && theirs.fp == FpRule::AtCfa && i32::from(theirs.fp_offset) < -ours.cfa_offset
        || ours.fp == FpRule::Same && theirs.fp == FpRule::AtCfa && i32::from(theirs.fp_offset) == -ours.cfa_offset - 8;
    cfa && fp
}

/// Libraries of which each function has unwind information: glibc's, with its code in assembler, and smaller ones.
#[test]
fn code_tells_what_unwind_information_says() {
    let (mut told, mut same, mut bytes) = (0_u64, 0_u64, 0_u64);
    for name in ["libc.so.6", "libm.so.6", "libz.so.1", "libgcc_s.so.1"] {
        let path = emberscope_testkit::library(name);
        if !path.exists() {
            continue;
        }
        let (image, code) = image_and_code(&path);
        let table = build(&image).unwrap();
        let rows = OfCode::of(&code).0;
        let (mut of_told, mut of_same) = (0_u64, 0_u64);
        let mut wrong = Vec::new();
        for pair in rows.windows(2) {
            let [(from, rule), (to, _)] = pair else { continue };
            for at in *from..*to {
                let Some(says) = table.rule(at).filter(|rule| rule.cfa != CfaRule::Gap) else { continue };
                bytes += 1;
                if *rule == UnwindRule::GAP {
                    continue;
                }
                of_told += 1;
                if is_same(at, *rule, says) {
                    of_same += 1;
                } else {
                    wrong.push((at, *rule, says));
                }
            }
        }
        println!("{name}: {of_told} bytes of code with a row, {of_same} the same; {:x?}", wrong.first());
        (told, same) = (told + of_told, same + of_same);
    }
    println!("{told} of {bytes} bytes have a row, {same} the same");
    assert!(told * 10 > bytes * 7, "{told} of {bytes} bytes have a row");
    assert!(same * 1000 >= told * 999, "{same} of {told} bytes have the row of the unwind information");
}
