//! The command `emberscope`: reads the arguments, tells errors in one sentence, ends with a code.

use clap::Parser;
use emberscope::cli::{Cli, clean, code, complete};
use std::process::ExitCode;

fn main() -> ExitCode {
    emberscope::linked::load_nothing();
    complete();
    match Cli::parse().run() {
        Ok(code) => code.into(),
        Err(error) if error.is_broken_pipe() => code::OK.into(),
        Err(error) => {
            let code = error.code();
            // With its causes: "cannot write out.svg: No space left on device".
            eprintln!("emberscope: {}", clean(&format!("{:#}", anyhow::Error::new(error))));
            code.into()
        }
    }
}
