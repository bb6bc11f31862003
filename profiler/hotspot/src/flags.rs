//! The -XX flags of a JVM, as they are after its own decisions: names in, values out.
//!
//! `JVMFlag::flags` (jvmFlag.cpp; `Flag::flags` in JDK 8) is an array of `numFlags` entries that hold a
//! name and the address of the value. A flag that a release does not have is absent.

use super::problem::JvmProblem;
use super::vm_structs::VmStructs;
use emberscope_target::memory::Memory;
use std::collections::HashMap;

/// JDK 8 to 25 product builds have 700 to 1,500.
const MAX_FLAGS: u64 = 8192;
const MAX_NAME: usize = 128;

/// The values of those of the flags `names` (of type bool) that this JVM has.
///
/// # Errors
/// [`JvmProblem::Missing`]: the tables do not tell where the flags are. [`JvmProblem::Nonsense`]: they lie beyond the
/// end of memory. [`JvmProblem::Gone`], [`JvmProblem::Denied`]: memory cannot be read.
pub fn read<M: Memory>(
    memory: &M,
    vm: &VmStructs,
    names: &[&'static str],
) -> Result<HashMap<&'static str, bool>, JvmProblem> {
    let (kind, stride) = ["JVMFlag", "Flag"]
        .into_iter()
        .find_map(|kind| vm.size(kind).map(|size| (kind, size)))
        .ok_or(JvmProblem::Missing("where its flags are"))?;
    let address = |field: &str| vm.address(&format!("{kind}::{field}"));
    let offset = |field: &str| vm.offset(&format!("{kind}::{field}")).filter(|at| at + 8 <= stride);
    let (Some(flags), Some(count), Some(name_at), Some(value_at)) =
        (address("flags"), address("numFlags"), offset("_name"), offset("_addr"))
    else {
        return Err(JvmProblem::Missing("where its flags are"));
    };
    let (first, count) = (memory.u64(flags)?, memory.u64(count)?);
    let mut found = HashMap::new();
    for index in 0..count.min(MAX_FLAGS) {
        let entry = index.checked_mul(stride).and_then(|at| first.checked_add(at));
        let entry = entry.filter(|e| e.checked_add(stride).is_some());
        let entry = entry.ok_or(JvmProblem::Nonsense("flags beyond the end of memory"))?;
        let pointer = memory.u64(entry + name_at)?;
        if pointer == 0 {
            break;
        }
        let text = memory.c_string(pointer, MAX_NAME)?.unwrap_or_default();
        if let Some(name) = names.iter().find(|name| name.as_bytes() == text) {
            found.insert(*name, memory.u8(memory.u64(entry + value_at)?)? != 0);
        }
    }
    Ok(found)
}
