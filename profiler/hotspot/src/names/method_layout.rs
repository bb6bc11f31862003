//! Where things are in a JVM's methods, constant pools and classes: vmStructs in, offsets out.
//!
//! Fields that moved between releases (the file's name from the class to its pool in JDK 15, a ConstMethod's
//! flags into a type of their own in 21, a Symbol's length in 12 and 16) are looked for in each place.

use super::layout::Number;
use crate::problem::JvmProblem;
use crate::vm_structs::VmStructs;

/// Offsets of what is read of methods, their constant pools, classes and Symbols.
#[derive(Clone, Copy, Debug)]
pub struct MethodLayout {
    pub const_method: u64,
    /// Bytes of a ConstMethod, behind which its bytecodes are.
    pub const_method_size: u64,
    pub constants: Number,
    /// How many words the ConstMethod has with all that follows it.
    pub words: Number,
    pub flags: Number,
    pub has_lines: i64,
    pub code_size: Number,
    pub name_index: Number,
    pub signature_index: Number,
    pub pool_size: u64,
    pub pool_holder: Number,
    pub class_name: Number,
    pub class_constants: Number,
    pub symbol_length: u64,
    pub symbol_body: u64,
}

impl MethodLayout {
    /// Finds the layout in vmStructs.
    ///
    /// # Errors
    /// [`JvmProblem::Missing`]: a field is not in the tables, or a size is more than 512 bytes.
    pub fn of(vm: &VmStructs) -> Result<Self, JvmProblem> {
        Self::find(vm).ok_or(JvmProblem::Missing("what its methods have"))
    }

    fn find(vm: &VmStructs) -> Option<Self> {
        let number = |name: &str| Number::of(vm, name);
        let flags = number("ConstMethod::_flags._flags").or_else(|| number("ConstMethod::_flags"))?;
        let has_lines = vm.constant("ConstMethodFlags::_misc_has_linenumber_table");
        let has_lines = has_lines.or_else(|| vm.constant("ConstMethod::_has_linenumber_table"));
        // The length shares four bytes with the count of references in JDK 12 to 15.
        let shared = || vm.offset("Symbol::_length_and_refcount").map(|at| at + 2);
        let layout = Self {
            const_method: vm.offset("Method::_constMethod")?,
            const_method_size: vm.size("ConstMethod")?,
            constants: number("ConstMethod::_constants")?,
            words: number("ConstMethod::_constMethod_size")?,
            flags,
            has_lines: has_lines.map_or(1, |bits| bits as i64),
            code_size: number("ConstMethod::_code_size")?,
            name_index: number("ConstMethod::_name_index")?,
            signature_index: number("ConstMethod::_signature_index")?,
            pool_size: vm.size("ConstantPool")?,
            pool_holder: number("ConstantPool::_pool_holder")?,
            class_name: number("Klass::_name")?,
            class_constants: number("InstanceKlass::_constants")?,
            symbol_length: vm.offset("Symbol::_length").or_else(shared)?,
            symbol_body: vm.offset("Symbol::_body").or_else(|| vm.offset("Symbol::_body[0]"))?,
        };
        let small = |size: u64| size <= 512;
        (small(layout.const_method_size) && small(layout.pool_size) && small(layout.symbol_body))
            .then_some(layout)
    }
}
