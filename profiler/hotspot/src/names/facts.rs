//! What a JVM says of itself, for the status: its release, and what its JIT compiler keeps.

use crate::flags;
use crate::problem::JvmProblem;
use crate::vm_structs::VmStructs;
use emberscope_target::memory::Memory;
use emberscope_target::text;

/// Releases reach 40 characters.
const MAX_RELEASE: usize = 128;
const FLAGS: [&str; 3] = ["DebugNonSafepoints", "UseJVMCICompiler", "PreserveFramePointer"];

/// What one JVM says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JvmFacts {
    /// The release of Java: 8, 11, 17..; None where the JVM does not tell.
    pub major: Option<u32>,
    /// The build: `17.0.15+6-Debian-1`; empty where the JVM does not tell.
    pub release: String,
    /// Compiled code has debug info between its calls, so that inlined leaves and lines are exact.
    pub debug_non_safepoints: bool,
    /// Compiled code keeps frame pointers.
    pub preserve_frame_pointer: bool,
    /// Its optimising compiler is Graal or another one that is plugged in (JVMCI): its code is walked and
    /// named by the same rules, which were held against Graal 22.3 on JDK 17.
    pub jvmci_compiler: bool,
}

impl JvmFacts {
    /// Reads what the JVM says of itself; flags are many, so memory should be [`emberscope_target::memory::Pages`].
    ///
    /// # Errors
    /// [`JvmProblem::Missing`]: the tables do not tell where the flags are. [`JvmProblem::Nonsense`]: a pointer leads
    /// nowhere. [`JvmProblem::Gone`], [`JvmProblem::Denied`]: memory cannot be read.
    pub fn read<M: Memory>(memory: &M, vm: &VmStructs) -> Result<Self, JvmProblem> {
        let flags = flags::read(memory, vm, &FLAGS)?;
        let flag = |name: &str| flags.get(name).copied().unwrap_or(false);
        // JDK 8 counts its VM's versions otherwise, and has the JDK's apart; that is gone in 25.
        let byte = |owner: u64| Some(u32::from(memory.u8(owner + vm.offset("JDK_Version::_major")?).ok()?));
        let older = vm.address("JDK_Version::_current").and_then(byte);
        let newer = vm.address("Abstract_VM_Version::_vm_major_version").and_then(|at| memory.u32(at).ok());
        let plausible = |major: &u32| (1..1000).contains(major);
        let release = match vm.address("Abstract_VM_Version::_s_vm_release") {
            Some(pointer) => memory.c_string(memory.u64(pointer)?, MAX_RELEASE)?.unwrap_or_default(),
            None => Vec::new(),
        };
        Ok(Self {
            major: older.filter(plausible).or(newer.filter(plausible)),
            release: text::bounded(&release, MAX_RELEASE),
            debug_non_safepoints: flag("DebugNonSafepoints"),
            preserve_frame_pointer: flag("PreserveFramePointer"),
            jvmci_compiler: flag("UseJVMCICompiler"),
        })
    }
}
