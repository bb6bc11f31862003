//! A library as large as those that Python and Spark's native engines load: unwind information and symbols that are over what
//! is read at once (4 MiB and 20 MiB). Generated, in x86-64's assembler.

use crate::step;
use anyhow::{Context as _, Result, ensure};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Functions of the library, [`CODE`] bytes of code each: 15 MB.
pub const FUNCTIONS: usize = 30_000;
/// Bytes from one function to the next. The first is at the symbol `large_code`.
pub const CODE: usize = 512;
/// Bytes of a name, which is there twice: for the linker and for debuggers.
const NAME: usize = 380;

/// What a function is called.
pub fn name(function: usize) -> String {
    format!("function_{function:06}_{}", "n".repeat(NAME - 16))
}

/// Assembles `liblarge.so` in `dir`; `body` is what each function does, which may change rax. `entry` is the function that
/// `large` is another name of.
///
/// # Errors
/// What the compiler says.
pub fn library(dir: &Path, entry: usize, body: impl Fn(usize) -> String) -> Result<PathBuf> {
    let source = dir.join("large.s");
    std::fs::write(&source, text(entry, body)?).with_context(|| format!("writing {}", source.display()))?;
    let library = dir.join("liblarge.so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-nostdlib", "-Wl,-Bsymbolic", "-o"]).arg(&library).arg(&source);
    let output = cc.output().context("cannot start cc")?;
    let says = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} failed\n{says}", step::shown(&cc));
    Ok(library)
}

/// Functions that use the frame pointer for something else: without their tables nothing leads to their callers.
fn text(entry: usize, body: impl Fn(usize) -> String) -> Result<String> {
    let mut text = format!(".text\n.balign {CODE}\n.globl large_code\nlarge_code:\n");
    for function in 0..FUNCTIONS {
        let name = name(function);
        writeln!(text, ".balign {CODE}\n.globl {name}\n.type {name}, @function\n{name}:\n.cfi_startproc")?;
        writeln!(text, "pushq %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset 6, -16\nmovl $7, %ebp")?;
        writeln!(text, "subq $24, %rsp\n.cfi_def_cfa_offset 40\nsubq $40, %rsp\n.cfi_def_cfa_offset 80")?;
        // As much unwind information as a function of some length has.
        writeln!(text, ".rept 40\nnop\n.cfi_remember_state\n.cfi_restore_state\n.endr")?;
        writeln!(text, "{}", body(function))?;
        writeln!(text, "addq $40, %rsp\n.cfi_def_cfa_offset 40\naddq $24, %rsp\n.cfi_def_cfa_offset 16")?;
        writeln!(text, "popq %rbp\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.size {name}, .-{name}")?;
    }
    writeln!(text, ".globl large\nlarge:\n.cfi_startproc\njmp {}\n.cfi_endproc", name(entry))?;
    writeln!(text, ".section .note.GNU-stack,\"\",@progbits")?;
    Ok(text)
}
