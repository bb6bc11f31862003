//! `emberscope completions`: what a shell needs to complete the command line.
//!
//! In: a shell's name. Out: a script that calls this program at each completion, which knows its flags, and asks the daemon
//! for the values of labels ([`values`]).

mod values;

pub use values::values_of;

use super::{Cli, CliError};
use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::env::{Bash, CompleteEnv, EnvCompleter, Fish, Zsh};
use std::io::{self, Write};

/// The variable in which the script names the shell.
const VARIABLE: &str = "EMBERSCOPE_COMPLETE";

/// Flags of `emberscope completions`.
#[derive(Args, Clone, Debug)]
pub struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Shells that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Prints the script.
///
/// # Errors
/// [`CliError::Output`]: standard output takes no more.
pub fn run(args: &CompletionsArgs) -> Result<(), CliError> {
    Ok(io::stdout().write_all(&script(args.shell)?)?)
}

/// Completes and ends, where a shell asks for that by the script's variable; else nothing.
pub fn complete() {
    CompleteEnv::with_factory(Cli::command).var(VARIABLE).complete();
}

fn script(shell: Shell) -> io::Result<Vec<u8>> {
    let (command, mut out) = (Cli::command(), Vec::new());
    let shell: &dyn EnvCompleter = match shell {
        Shell::Bash => &Bash,
        Shell::Zsh => &Zsh,
        Shell::Fish => &Fish,
    };
    let name = command.get_name();
    shell.write_registration(VARIABLE, name, name, name, &mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    #[test]
    fn each_script_asks_the_program() {
        for shell in Shell::value_variants() {
            let script = String::from_utf8(script(*shell).unwrap()).unwrap();
            assert!(script.contains(VARIABLE) && script.contains("emberscope"), "{shell:?}: {script}");
        }
    }

    #[test]
    fn commands_flags_and_closed_values_are_completed() {
        let completed = |words: &[&str]| -> Vec<String> {
            let mut command = Cli::command();
            command.build();
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let last = words.len() - 1;
            let found = clap_complete::engine::complete(&mut command, words, last, None).unwrap();
            found.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(completed(&["emberscope", "flam"]), ["flamegraph"]);
        assert_eq!(completed(&["emberscope", "stages", "--stage-att"]), ["--stage-attempt"]);
        assert_eq!(completed(&["emberscope", "stages", "--role", "exe"]), ["executor"]);
        assert_eq!(completed(&["emberscope", "top", "--role", "driver,exe"]), ["driver,executor"]);
        assert_eq!(completed(&["emberscope", "top", "--wait", "shu"]), ["shuffle"]);
    }
}
