//! `emberscope doctor`: what this host allows, what is missing, how to fix it.
//!
//! In: the kernel, /proc, the data directory, the address, the socket. Out: a finding each; exit code 0 when sampling can
//! work. Nothing is changed on the host; a few trivial programs are loaded, none is attached.

mod finding;
mod host;
mod jvms;
mod place;

pub use finding::{Finding, Status};

use super::table::{Align, Table};
use super::text;
use super::{CliError, code, output};
use clap::Args;
use emberscope_capture::HostFeatures;
use emberscope_config::{DaemonConfig, FilePath, Listen, Settings, SocketPath};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Flags of `emberscope doctor`.
#[derive(Args, Clone, Debug)]
pub struct DoctorArgs {
    /// Configuration file of the daemon, for its address, socket and data directory.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address that the daemon would listen on.
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<Listen>,
    /// Unix socket for the command line, or none.
    #[arg(long, value_name = "PATH")]
    socket: Option<SocketPath>,
    /// Data directory of the daemon.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<FilePath>,
    /// Token file of the daemon.
    #[arg(long, value_name = "FILE")]
    token_file: Option<FilePath>,
    /// Print JSON: {"sampling": true, "findings": [{"check", "status", "found", "mend"}]}.
    #[arg(long)]
    json: bool,
}

/// Prints the findings. Out: the exit code.
///
/// # Errors
/// [`CliError::Config`]: the configuration is wrong. [`CliError::Output`]: standard output takes no more. What is
/// missing on the host is a finding, and no error.
pub fn run(args: DoctorArgs) -> Result<u8, CliError> {
    let flags = Settings {
        listen: args.listen,
        socket: args.socket,
        data_dir: args.data_dir,
        token_file: args.token_file,
        ..Settings::default()
    };
    let config = DaemonConfig::load(args.config.as_deref(), flags)?;
    let features = HostFeatures::probe();
    let mut findings = host::kernel_side(&features);
    findings.extend(host::surroundings(Path::new("/")));
    findings.extend(place::check(&config));
    // A kernel that refuses the program for it is told of when it does.
    findings.extend(jvms::check(Path::new("/proc"), true));
    let sampling = findings.iter().all(|finding| finding.status != Status::Missing);
    if args.json {
        let json = serde_json::json!({ "sampling": sampling, "findings": findings });
        output::write_json(&mut io::stdout().lock(), &json.to_string())?;
    } else {
        print(&findings, sampling, &mut io::stdout().lock())?;
    }
    Ok(if sampling { code::OK } else { code::FAILURE })
}

fn print(findings: &[Finding], sampling: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(&[("", Align::Left), ("CHECK", Align::Left), ("FOUND", Align::Left)]);
    for finding in findings {
        table.row([finding.status.word().to_owned(), finding.check.clone(), finding.found.clone()]);
    }
    table.write(out, None)?;
    // A mend that many share, as JVMs do, is told once.
    let mut mends: Vec<(&str, Vec<&str>)> = Vec::new();
    for finding in findings {
        let Some(mend) = finding.mend.as_deref() else { continue };
        match mends.iter_mut().find(|(known, _)| *known == mend) {
            Some((_, checks)) => checks.push(&finding.check),
            None => mends.push((mend, vec![&finding.check])),
        }
    }
    if !mends.is_empty() {
        writeln!(out, "\nTo fix:")?;
    }
    for (mend, checks) in mends {
        writeln!(out, "  {}: {}", text::clean(&checks.join(", ")), text::clean(mend))?;
    }
    let verdict = if sampling { "Sampling can work here." } else { "Sampling cannot work here." };
    writeln!(out, "\n{verdict}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_printed_with_their_mends() {
        let findings = [
            Finding::ok("kernel types", "BTF"),
            Finding::missing("capabilities", "no CAP_BPF", "run as root"),
            Finding::limited("JVM 1", "x", "restart it"),
            Finding::limited("JVM 2", "y", "restart it"),
        ];
        let mut out = Vec::new();
        print(&findings, false, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(out.contains("ok       kernel types  BTF\n"), "{out}");
        assert!(out.contains("missing  capabilities  no CAP_BPF\n"), "{out}");
        assert!(out.ends_with("To fix:\n  capabilities: run as root\n  JVM 1, JVM 2: restart it\n\nSampling cannot work here.\n"), "{out}");
    }

    #[test]
    fn this_machine_is_examined() {
        let args = DoctorArgs {
            config: None,
            listen: None,
            socket: None,
            data_dir: None,
            token_file: None,
            json: true,
        };
        assert!(matches!(run(args), Ok(code::OK | code::FAILURE)));
    }
}
