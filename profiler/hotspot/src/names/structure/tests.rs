//! What made-up code's shape tells.

use super::*;
use proptest::prelude::*;

#[test]
fn a_loop_keeps_to_itself_and_a_trap_tells_its_branch() {
    // 0: nop; 1: inc eax; 3: jae 16; 5: test eax,[rip]; 11: jne 1; 13: nop nop; 15: ret; 16: nop;
    // 17: call; 22: nop.
    let code = [
        0x90, 0xff, 0xc0, 0x73, 0x0b, 0x85, 0x05, 0, 0, 0, 0, 0x75, 0xf4, 0x90, 0x90, 0xc3, 0x90, 0xe8, 0, 0,
        0, 0, 0x90,
    ];
    let only_poll = Structure::of(&code, &[(5, 50)]);
    let all = |s: &Structure| [0, 1, 3, 5, 11, 13].map(|at| s.scope(at));
    // Behind the poll but in its loop; and nothing follows the loop.
    assert_eq!(all(&only_poll), [Told::Scope(50); 6]);
    let with_trap = Structure::of(&code, &[(22, 70)]);
    assert_eq!(all(&with_trap), [Told::Scope(70); 6]);
    let both = Structure::of(&code, &[(9, 50), (22, 70)]);
    assert_eq!(all(&both), [70, 70, 70, 50, 70, 50].map(Told::Scope));
    let leaves: Vec<_> = both.leaves().iter().collect();
    assert_eq!(leaves, [(0, 70), (5, 50), (10, 70), (13, 50), (16, 70)]);
    assert_eq!(Structure::default().scope(3), Told::Nothing);
}

/// As counted loops are where no pause is to be kept short.
#[test]
fn a_loop_without_debug_info_has_none_of_code_that_it_does_not_lead_to() {
    // 0: nop; 1: inc eax; 3: jne 1; 5: ret; 6: call; 11: jmp 0. What jumps there came from before.
    let code = [0x90, 0xff, 0xc0, 0x75, 0xfc, 0xc3, 0xe8, 0, 0, 0, 0, 0xeb, 0xf3];
    let cold = Structure::of(&code, &[(11, 70)]);
    assert_eq!([0, 1, 3, 5].map(|at| cold.scope(at)), [Told::Own; 4]);
    assert_eq!(cold.scope(6), Told::Scope(70));
    // 0: inc eax; 2: jne 0; 4: jmp 8; 6: nop nop; 8: call.
    let code = [0xff, 0xc0, 0x75, 0xfc, 0xeb, 0x02, 0x90, 0x90, 0xe8, 0, 0, 0, 0];
    assert_eq!(Structure::of(&code, &[(7, 60), (13, 70)]).scope(0), Told::Scope(70), "by the jump");
    // 0: jb 10; 2: jmp 4; 4: inc eax; 6: jne 4; 8: nop; 9: ret; 10: call.
    let code = [0x72, 0x08, 0xeb, 0, 0xff, 0xc0, 0x75, 0xfc, 0x90, 0xc3, 0xe8, 0, 0, 0, 0];
    let checked = Structure::of(&code, &[(9, 60), (15, 80)]);
    assert_eq!(checked.scope(4), Told::Scope(80), "its check's, not what follows");
    assert_eq!(checked.scope(8), Told::Scope(60));
    // 0: inc eax; 2: je 6; 4: jmp 0; 6: ret.
    assert_eq!(Structure::of(&[0xff, 0xc0, 0x74, 0x02, 0xeb, 0xfa, 0xc3], &[]).with_loops().loops.len(), 1);
}

proptest! {
    #[test]
    fn any_code_ends(
        code in proptest::collection::vec(any::<u8>(), 0..2000),
        mut pcs in proptest::collection::vec((0..2000u32, 1..9u32), 0..50),
        at: u32,
    ) {
        pcs.sort();
        let structure = Structure::of(&code, &pcs);
        let told: Vec<_> = (0..2000).chain([at]).map(|at| (at, structure.scope(at))).collect();
        let leaves = structure.leaves();
        for (at, told) in told {
            let told = match told {
                Told::Scope(scope) => Some(scope),
                Told::Own => Some(OWN),
                Told::Nothing => None,
            };
            prop_assert_eq!(leaves.up_to(at), told);
        }
    }
}
