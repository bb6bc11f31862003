//! Small functions. What the code of libraries tells is held against their unwind information in `profiler/unwind`.

use super::*;

const AT: u64 = 0x1000;

fn code<'a>(bytes: &'a [u8], pointers: &'a [u64]) -> Code<'a> {
    Code { address: AT, bytes, entries: &[AT], pointers, constant: &|_, _| None }
}

/// Rows as (address, register, offset of the CFA, place of rbp).
fn rows_of(bytes: &[u8], pointers: &[u64]) -> Vec<(u64, CfaRule, i32, Option<i16>)> {
    let told = rows(&code(bytes, pointers)).into_iter();
    let place = |rule: UnwindRule| (rule.fp == FpRule::AtCfa).then_some(rule.fp_offset);
    told.map(|(at, rule)| (at - AT, rule.cfa, rule.cfa_offset, place(rule))).collect()
}

#[test]
fn a_frame_is_made_and_given_back() {
    // push rbp; mov rbp, rsp; sub rsp, 16; and rsp, -32; nop; leave; ret
    let bytes = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0x48, 0x83, 0xe4, 0xe0, 0x90, 0xc9, 0xc3];
    assert_eq!(
        rows_of(&bytes, &[]),
        [
            (0, CfaRule::Sp, 8, None),
            (1, CfaRule::Sp, 16, Some(-16)),
            (8, CfaRule::Sp, 32, Some(-16)),
            // Where rsp is aligned, rbp alone leads on.
            (12, CfaRule::Fp, 16, Some(-16)),
            (14, CfaRule::Sp, 8, None),
            (15, CfaRule::Gap, 0, None),
        ]
    );
}

#[test]
fn who_does_not_give_back_what_he_took_is_not_believed() {
    for bytes in [
        // push rbx; ret
        &[0x53, 0xc3][..],
        // pop rbx; ret: below where it began
        &[0x5b, 0xc3],
        // mov rbp, rdi; ret: rbp is the caller's
        &[0x48, 0x89, 0xfd, 0xc3],
        // mov rsp, rdi; ret
        &[0x48, 0x89, 0xfc, 0xc3],
        // no instruction
        &[0x53, 0x06],
        &[],
    ] {
        let told = rows_of(bytes, &[]);
        assert!(told.iter().all(|(_, cfa, ..)| *cfa == CfaRule::Gap), "{bytes:x?}: {told:?}");
    }
}

#[test]
fn what_stands_behind_a_call_that_does_not_return_is_another_function() {
    // call +7; (12) push rbx; pop rbx; ret; .. (12): jmp to itself
    let bytes = [0xe8, 0x07, 0, 0, 0, 0x53, 0x5b, 0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xeb, 0xfe];
    let told = rows_of(&bytes, &[AT + 5]);
    let at = |address: u64| {
        told.iter().rev().find(|(at, ..)| *at <= address).map(|(_, cfa, offset, _)| (*cfa, *offset))
    };
    assert_eq!([5, 6, 7].map(at), [8, 16, 8].map(|offset| Some((CfaRule::Sp, offset))));
    assert_eq!(at(8), Some((CfaRule::Gap, 0)));
    let found = functions(&code(&bytes, &[AT + 5]));
    assert_eq!(found, [AT..AT + 5, AT + 5..AT + 8, AT + 12..AT + 14]);
}

#[test]
fn a_switch_is_followed_through_its_table() {
    // cmp edi, 1; ja (22); lea rdx, [rip + 0x2000]; movsxd rax, [rdx + rdi * 4]; add rax, rdx; jmp rax; (22) ret
    let bytes = [
        0x83, 0xff, 0x01, 0x77, 0x11, 0x48, 0x8d, 0x15, 0x00, 0x20, 0, 0, 0x48, 0x63, 0x04, 0xba, 0x48, 0x01,
        0xd0, 0xff, 0xe0, 0xcc, 0xc3, 0x53, 0x5b, 0xc3, 0x90, 0xc3,
    ];
    let table = AT + 12 + 0x2000;
    let constant = |at: u64, len: usize| {
        let target = match at.checked_sub(table)? {
            0 => AT + 23,
            4 => AT + 26,
            // Behind its end.
            _ => AT + 24,
        };
        (len == 4).then(|| u64::from((target.wrapping_sub(table)) as u32))
    };
    let code = Code { address: AT, bytes: &bytes, entries: &[AT], pointers: &[], constant: &constant };
    let told = rows(&code);
    let at =
        |address: u64| told.iter().rev().find(|(at, _)| *at <= AT + address).map(|(_, rule)| rule.cfa_offset);
    assert_eq!([22, 23, 24, 25, 26, 27].map(at), [8, 8, 16, 8, 8, 8].map(Some));
}

#[test]
fn where_a_signals_handler_returns_to_is_known_by_its_call() {
    // ret; (1) mov rax, 15; syscall
    let bytes = [0xc3, 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
    let told = rows(&code(&bytes, &[AT + 1]));
    assert_eq!(told, [(AT, SIGNAL), (AT + 10, UnwindRule::GAP)]);
}

#[test]
fn the_last_addresses_are_no_others() {
    let bytes = [0x53, 0x5b, 0xc3, 0x53];
    let code = Code {
        address: u64::MAX - 3,
        bytes: &bytes,
        entries: &[u64::MAX - 3, u64::MAX, 0, 7],
        pointers: &[],
        constant: &|_, _| None,
    };
    rows(&code);
    functions(&code);
}
