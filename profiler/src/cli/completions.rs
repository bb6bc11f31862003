//! `emberscope completions`: what a shell needs to complete the command line.

use super::{Cli, CliError};
use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::generate;
use std::io::{self, Write};

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
    Ok(io::stdout().write_all(&script(args.shell))?)
}

fn script(shell: Shell) -> Vec<u8> {
    // Into memory first: the generator panics when its writer fails.
    let (mut command, mut out) = (Cli::command(), Vec::new());
    let name = command.get_name().to_owned();
    match shell {
        Shell::Bash => generate(clap_complete::Shell::Bash, &mut command, name, &mut out),
        Shell::Zsh => generate(clap_complete::Shell::Zsh, &mut command, name, &mut out),
        Shell::Fish => generate(clap_complete::Shell::Fish, &mut command, name, &mut out),
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_every_script() {
        for shell in Shell::value_variants() {
            let script = String::from_utf8(script(*shell)).unwrap();
            for command in Cli::command().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell:?}: {}", command.get_name());
            }
        }
    }
}
