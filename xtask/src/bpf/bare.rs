//! An object without what only a debugger reads: four fifths of it, which the daemon would carry inside.
//!
//! In: an object as the linker leaves it, whose BTF was made from the debug information. Out: the same without that.
//! What the kernel asks for, and what its verifier says of lines, is in `.BTF` and `.BTF.ext`, which stay.

use anyhow::{Context as _, Result};
use object::build::elf::{Builder, SectionData};
use object::elf::SHT_STRTAB;

/// What sections of debug information, and their relocations, are called (DWARF 5, 7.30).
const DEBUG: [&[u8]; 3] = [b".debug_", b".rel.debug_", b".rela.debug_"];

/// Takes the debug information out.
///
/// # Errors
/// It is no ELF file.
pub fn bare(object: &[u8]) -> Result<Vec<u8>> {
    let mut elf = Builder::read(object).context("reading the BPF object")?;
    for section in &mut elf.sections {
        section.delete = DEBUG.iter().any(|name| section.name.starts_with(name));
    }
    // Symbols that stand for these sections.
    elf.delete_orphan_symbols();
    // LLVM puts names of sections and of symbols into one table; what writes the file wants two.
    if !elf.sections.iter().any(|section| matches!(section.data, SectionData::SectionString)) {
        let names = elf.sections.add();
        (names.name, names.sh_type, names.data) =
            (b".shstrtab".as_slice().into(), SHT_STRTAB, SectionData::SectionString);
    }
    let mut bare = Vec::new();
    elf.write(&mut bare).context("writing the BPF object")?;
    Ok(bare)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn only_debug_information_goes() {
        let dir = std::env::temp_dir().join(format!("emberscope-bare-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (source, made) = (dir.join("one.c"), dir.join("one.o"));
        std::fs::write(&source, "int other(void); int one(void) { return other() + 1; }\n").unwrap();
        let cc = Command::new("cc").args(["-g", "-c", "-o"]).arg(&made).arg(&source).status();
        assert!(cc.is_ok_and(|status| status.success()), "cc, which rustc links with");
        let whole = std::fs::read(&made).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        let bare = bare(&whole).unwrap();
        let names = |file: &[u8]| -> Vec<String> {
            let elf = Builder::read(file).unwrap();
            elf.sections.iter().map(|section| section.name.to_string()).collect()
        };
        let (before, after) = (names(&whole), names(&bare));
        assert!(before.iter().any(|name| name == ".debug_info") && bare.len() < whole.len());
        assert!(!after.iter().any(|name| name.contains("debug")), "{after:?}");
        let elf = Builder::read(&*bare).unwrap();
        assert!(elf.symbols.iter().any(|symbol| symbol.name.as_slice() == b"other"));
        assert!(super::bare(b"no ELF").is_err());
    }
}
