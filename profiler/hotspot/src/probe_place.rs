//! Where in a function a probe costs least.
//!
//! A uprobe on an instruction that the kernel can carry out itself (a push, a branch) is one exception. Any other one is run in
//! a place of its own with the CPU's trap flag set: a second exception, which under a hypervisor leaves the virtual machine
//! (it watches #DB), and one of 32 places for all threads of the process, which wait for each other
//! (arch/x86/kernel/uprobes.c, `branch_setup_xol_ops` and `push_setup_xol_ops`; kernel/events/uprobes.c,
//! `xol_get_insn_slot`; Linux 4.17 to 6.18). Debian's JDK 17 begins `os::set_native_thread_name` with a comparison: 16,000
//! threads that rename themselves, most of them asleep, took three quarters of a machine from all others with a probe there, a
//! third with one on a push, and a quarter with none.
//!
//! In: a function's first bytes. Out: the offset of the first such instruction, as long as what is before it leaves the arguments
//! and the stack as they were and goes nowhere else; else 0.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

/// Bytes that are looked at.
pub const LOOKED_AT: usize = 32;

/// Arguments by the System V ABI, and the stack pointer: what programs on probes read.
const KEPT: [Register; 7] =
    [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8, Register::R9, Register::RSP];

/// The offset, of x86-64's code; elsewhere 0.
pub fn cheapest(code: &[u8]) -> u64 {
    if !cfg!(target_arch = "x86_64") {
        return 0;
    }
    let code = code.get(..LOOKED_AT).unwrap_or(code);
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    let mut factory = InstructionInfoFactory::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return 0;
        }
        let push = instruction.mnemonic() == Mnemonic::Push && instruction.op0_kind() == OpKind::Register;
        let branch = instruction.is_jcc_short_or_near() || instruction.is_jmp_short_or_near();
        if push || branch {
            return instruction.ip();
        }
        let info = factory.info(&instruction);
        let writes = info.used_registers().iter().any(|used| {
            !matches!(
                used.access(),
                OpAccess::Read | OpAccess::CondRead | OpAccess::None | OpAccess::NoMemAccess
            ) && KEPT.contains(&used.register().full_register())
        });
        if writes || instruction.flow_control() != FlowControl::Next {
            return 0;
        }
    }
    0
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::cheapest;

    #[test]
    fn the_first_instruction_that_the_kernel_carries_out() {
        // cmpq $0, (%rip); je; push %rbp: Debian's JDK 17.
        assert_eq!(cheapest(b"\x48\x83\x3d\xc8\x68\x71\x00\x00\x74\x46\x55\x48\x89\xf9"), 8);
        // push %rbp; mov %rsp,%rbp.
        assert_eq!(cheapest(b"\x55\x48\x89\xe5"), 0);
        // endbr64; push %r15.
        assert_eq!(cheapest(b"\xf3\x0f\x1e\xfa\x41\x57"), 4);
        // xor %eax,%eax; test; jne far.
        assert_eq!(cheapest(b"\x31\xc0\x85\xff\x0f\x85\x00\x01\x00\x00"), 4);
    }

    #[test]
    fn no_further_than_the_arguments_are_there() {
        // mov %rsi,%rdi; push.
        assert_eq!(cheapest(b"\x48\x89\xf7\x55"), 0);
        // mov %edx,%esi: half of a register is all of it.
        assert_eq!(cheapest(b"\x89\xd6\x55"), 0);
        // sub $8,%rsp; push.
        assert_eq!(cheapest(b"\x48\x83\xec\x08\x55"), 0);
        // call; push. ret; push. What is no instruction. Nothing.
        assert_eq!(cheapest(b"\xff\xd0\x55"), 0);
        assert_eq!(cheapest(b"\xc3\x55"), 0);
        assert_eq!(cheapest(b"\x06\x55"), 0);
        assert_eq!(cheapest(b""), 0);
        // Thirty-two bytes of mov %rax,%rbx, and then a push.
        let mut long = b"\x48\x89\xc3".repeat(11);
        long.push(0x55);
        assert_eq!(cheapest(&long), 0);
        // An instruction that the bytes cut.
        assert_eq!(cheapest(b"\x48\x83\x3d\xc8"), 0);
    }
}
