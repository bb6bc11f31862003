//! What a function's instructions tell of it. Of x86-64; on other architectures nothing is told.

/// What a function does, of what tells the starts of threads and processes from others.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Does {
    /// It calls a function whose address it was given.
    pub calls_pointer: bool,
    /// It makes the system call that ends the calling thread (`exit`, not `exit_group`).
    pub ends_thread: bool,
    /// Functions that it calls directly as the next thing after such a call.
    pub calls_then: Vec<u64>,
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::Does;
    use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

    /// `exit` (arch/x86/entry/syscalls/syscall_64.tbl).
    const EXIT: u64 = 60;
    /// `syscall`.
    const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];
    /// The first argument of a call (System V ABI, AMD64, 3.2.3).
    const FIRST: Register = Register::RDI;

    fn instructions(code: &[u8], address: u64) -> impl Iterator<Item = Instruction> {
        Decoder::with_ip(64, code, address, DecoderOptions::NONE).into_iter()
    }

    /// Addresses that the code of a function at `address` loads.
    pub fn loads(code: &[u8], address: u64) -> Vec<u64> {
        instructions(code, address).filter_map(|instruction| loaded(&instruction)).collect()
    }

    fn loaded(instruction: &Instruction) -> Option<u64> {
        let lea = instruction.mnemonic() == Mnemonic::Lea && instruction.is_ip_rel_memory_operand();
        lea.then(|| instruction.ip_rel_memory_address())
    }

    /// A constant that is loaded.
    fn constant(instruction: &Instruction) -> Option<u64> {
        let number = matches!(
            instruction.op1_kind(),
            OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64
        );
        (instruction.mnemonic() == Mnemonic::Mov && number).then(|| instruction.immediate(1))
    }

    /// Where system calls may be, as places in the code; other instructions may have these bytes too.
    pub fn system_calls(code: &[u8]) -> impl Iterator<Item = usize> {
        let pairs = code.windows(2).enumerate();
        pairs.filter(|(_, pair)| *pair == SYSTEM_CALL).map(|(at, _)| at)
    }

    /// What a function at `address` does.
    pub fn does(code: &[u8], address: u64) -> Does {
        let (mut does, mut exit_follows, mut then) = (Does::default(), false, false);
        for instruction in instructions(code, address) {
            exit_follows |= constant(&instruction) == Some(EXIT);
            match instruction.flow_control() {
                _ if instruction.mnemonic() == Mnemonic::Syscall => {
                    does.ends_thread |= std::mem::take(&mut exit_follows);
                }
                FlowControl::IndirectCall => (does.calls_pointer, then) = (true, true),
                FlowControl::Call if std::mem::take(&mut then) => {
                    does.calls_then.push(instruction.near_branch_target());
                }
                _ => {}
            }
        }
        does
    }

    /// The address that is the first argument of the first call that code at `address` makes.
    pub fn first_argument(code: &[u8], address: u64) -> Option<u64> {
        let calls = |instruction: &Instruction| {
            matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
        };
        let before = instructions(code, address).take_while(|instruction| !calls(instruction));
        let first = |instruction: &Instruction| instruction.op0_register().full_register() == FIRST;
        before
            .filter(first)
            .filter_map(|instruction| loaded(&instruction).or_else(|| constant(&instruction)))
            .last()
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod none {
    use super::Does;

    pub fn loads(_: &[u8], _: u64) -> Vec<u64> {
        Vec::new()
    }

    pub fn system_calls(_: &[u8]) -> impl Iterator<Item = usize> {
        std::iter::empty()
    }

    pub fn does(_: &[u8], _: u64) -> Does {
        Does::default()
    }

    pub fn first_argument(_: &[u8], _: u64) -> Option<u64> {
        None
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub use none::{does, first_argument, loads, system_calls};
#[cfg(target_arch = "x86_64")]
pub use x86_64::{does, first_argument, loads, system_calls};
