//! `emberscope record`: samples for a while without a daemon, and writes a flame graph.
//!
//! In: a duration, a choice, how to sample. Out: the same files as `emberscope flamegraph`. Ctrl-C ends the
//! sampling early; what was sampled until then is written. Nothing is kept and nothing listens, so a
//! daemon may run at the same time.

use super::output::OutputArgs;
use super::selection::{LabelArgs, describe};
use super::shape::{KindArgs, ShapeArgs};
use super::{CliError, answer::Basis, flamegraph::deliver, logging};
use clap::Args;
use emberscope_config::{DaemonConfig, Events, Hz, Interval, LogFilter, LogFormat, RecordConfig, Settings};
use emberscope_export::{ExportOptions, render};
use emberscope_model::{Detail, SampleKind};

use emberscope_pipeline::Lifecycle;
use std::io;

/// Longest recording: it stays in memory, and a daemon is the better tool for more.
const LONGEST: Interval = Interval::from_secs(24 * 3600);

/// Flags of `emberscope record`.
#[derive(Args, Clone, Debug)]
pub struct RecordArgs {
    /// How long to sample, such as 30s or 2m; at most a day. Sampling begins once the unwind tables of what runs are
    /// read, after 1 to 10 seconds.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    duration: Interval,
    #[command(flatten)]
    labels: LabelArgs,
    #[command(flatten)]
    kind: KindArgs,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Samples per second and CPU, 1 to 1000.
    #[arg(long, value_name = "N", help_heading = "Sampling")]
    hz: Option<Hz>,
    /// Kinds of samples, as in the daemon's setting: cpu, page-faults, major-faults, context-switches, block-io,
    /// off-cpu, alloc, and named events. The kind that --type names is added. Default: cpu.
    #[arg(long, value_name = "LIST", help_heading = "Sampling")]
    events: Option<Events>,
    /// Ask JVMs for the names of their compiled code where their memory does not show them (HotSpot's attach protocol,
    /// JDK 17 and newer).
    #[arg(long, value_name = "BOOL", help_heading = "Sampling")]
    ask_jvms: Option<bool>,
    /// Which of Emberscope's own messages are logged: error, warn, info, debug, trace, or a comma list of
    /// target=level.
    #[arg(long, value_name = "FILTER", default_value = "warn", help_heading = "Sampling")]
    log: LogFilter,
}

/// Samples, then writes.
///
/// # Errors
/// Before anything is sampled: [`CliError::Usage`], [`CliError::Config`], [`CliError::Host`]. [`CliError::Pipeline`]:
/// sampling fails, or what was chosen was not sampled. [`CliError::Export`]; those of [`deliver`].
pub fn run(args: RecordArgs) -> Result<(), CliError> {
    let output = args.output.decide()?;
    logging::start(args.log.get(), LogFormat::Text);
    let config = args.config()?;
    let unit = args.shape.unit_of(config.kind)?;
    let chosen = describe(&config.labels);
    let life =
        Lifecycle::install().map_err(|source| CliError::Host { what: "cannot handle signals", source })?;
    let answer = emberscope_pipeline::record(config, life)?;
    let options = ExportOptions {
        unit,
        title: if chosen.is_empty() { String::new() } else { format!("emberscope: {chosen}") },
        annotate: args.shape.annotate,
    };
    let answer = args.shape.shaped(answer);
    let bytes = render(output.format, &answer, &options)?;
    let bytes = output.made(&bytes, &chosen, unit.facts(args.kind.kind).unit);
    deliver(&output, &bytes, &Basis::from(&answer), &chosen, &mut io::stderr().lock())
}

impl RecordArgs {
    fn config(&self) -> Result<RecordConfig, CliError> {
        let flags = Settings {
            hz: self.hz.clone(),
            events: Some(self.events.clone().unwrap_or_else(Events::cpu)),
            ask_jvms: self.ask_jvms,
            ..Settings::default()
        };
        let mut daemon = DaemonConfig::load(None, flags)?;
        for &kind in self.kind.kind.facts().holds {
            daemon.events = daemon.events.with(kind);
        }
        if self.kind.kind == SampleKind::Event && daemon.events.named().is_empty() {
            let why = "--type event wants an event: name it, as --events cpu,block:block_rq_issue";
            return Err(CliError::Usage(why.to_owned()));
        }
        let labels = self.labels.chosen().into_iter().map(|(key, values)| (key, values.to_vec()));
        Ok(RecordConfig {
            daemon,
            duration: self.duration.get(),
            labels: labels.collect(),
            kind: self.kind.kind,
            group: self.shape.group.clone(),
            detail: Detail { lines: self.shape.lines, kinds: self.shape.annotate },
        })
    }
}

fn duration(text: &str) -> Result<Interval, String> {
    let duration: Interval = text.parse().map_err(|error: emberscope_config::UnitError| error.to_string())?;
    if duration < Interval::from_secs(1) || duration > LONGEST {
        return Err(format!("allowed is 1s to {LONGEST}"));
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use emberscope_model::LabelKey;
    use std::time::Duration;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        record: RecordArgs,
    }

    #[test]
    fn flags_become_a_recording() {
        let line = [
            "x",
            "--duration",
            "1m30s",
            "--app",
            "etl",
            "--pid",
            "7",
            "--pid",
            "8",
            "--hz",
            "499",
            "--group",
            "stage",
        ];
        let config = Line::try_parse_from(line).unwrap().record.config().unwrap();
        assert_eq!(config.duration, Duration::from_secs(90));
        let want =
            [(LabelKey::App, vec!["etl".to_owned()]), (LabelKey::Pid, vec!["7".to_owned(), "8".to_owned()])];
        assert_eq!(config.labels, want);
        assert_eq!((*config.daemon.hz.get(), config.daemon.ask_jvms), (499, true));
        assert_eq!(config.group, [LabelKey::Stage]);
        assert_eq!(describe(&config.labels), "app=etl pid=7 pid=8");
    }

    #[test]
    fn a_duration_has_limits() {
        for bad in ["0s", "999ms", "25h", "30", "-1s"] {
            assert!(Line::try_parse_from(["x", "--duration", bad]).is_err(), "{bad}");
        }
    }
}
