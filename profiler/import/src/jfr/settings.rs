//! What a recording was set to: how much its samples stand for, and who wrote it.
//!
//! In: the events `jdk.ActiveSetting` of a chunk, each with the type that it is of. Out: answers about them.

use super::super::{ImportError, length};
use super::metadata::Types;
use super::recording::{Counted, Recording};
use emberscope_export::jfr::WRITER;
use std::collections::HashMap;
use std::time::Duration;

/// async-profiler's events whose interval is nanoseconds on a CPU.
const CPU_EVENTS: [&str; 5] = ["cpu", "itimer", "ctimer", "cpu-clock", "task-clock"];

/// The settings of a chunk.
pub struct Settings {
    values: HashMap<(i64, String), String>,
    execution: Option<i64>,
    native: Option<i64>,
    recording: Option<i64>,
}

impl Settings {
    /// Settings of which none was read yet, of these types.
    pub fn of(types: &Types) -> Self {
        Self {
            values: HashMap::new(),
            execution: types.number("jdk.ExecutionSample"),
            native: types.number("jdk.NativeMethodSample"),
            recording: types.number("jdk.ActiveRecording"),
        }
    }

    /// Takes one setting: the number of the type that it is of, key, value.
    pub fn insert(&mut self, number: i64, key: String, value: String) {
        self.values.insert((number, key), value);
    }

    fn set(&self, number: Option<i64>, key: &str) -> Option<&str> {
        self.values.get(&(number?, key.to_owned())).map(String::as_str)
    }

    /// The recording's event, where it is async-profiler's and none of time on a CPU.
    pub fn no_cpu(&self) -> Option<&str> {
        self.set(self.recording, "event").filter(|event| !CPU_EVENTS.contains(event))
    }

    /// The version of Emberscope that wrote the recording; None: somebody else did.
    pub fn writer(&self) -> Option<&str> {
        self.set(self.recording, WRITER)
    }

    /// Whether the settings are those of async-profiler (2.0 and newer), which writes them to the recording's own
    /// event.
    pub fn is_async_profiler(&self) -> bool {
        ["engine", "event"].iter().any(|key| self.set(self.recording, key).is_some())
    }

    /// What a sample stands for, nanoseconds: as the recording says, else as whoever imports it says.
    ///
    /// # Errors
    /// [`ImportError::NoPeriod`]: neither says.
    pub fn period(
        &self,
        counted: Counted,
        told: Option<Duration>,
        recording: &mut Recording,
    ) -> Result<u64, ImportError> {
        let nanoseconds = |text: &str| text.parse::<u64>().ok().filter(|ns| *ns > 0);
        let own = match counted {
            Counted::Execution => self
                .set(self.execution, "interval")
                .and_then(nanoseconds)
                .or_else(|| self.set(self.execution, "period").and_then(timespan)),
            Counted::Native => self.set(self.native, "period").and_then(timespan),
            _ => self.set(self.execution, "wall").and_then(nanoseconds),
        };
        let told = told.map(|period| u64::try_from(period.as_nanos()).unwrap_or(u64::MAX));
        let period = own.or(told).ok_or(ImportError::NoPeriod("the recording does not say"))?;
        if own.is_some() && told.is_some_and(|told| told != period) {
            let says = "the recording says how often it sampled: --hz and --period were not used";
            Recording::tell(&mut recording.remarks, says.to_owned());
        }
        let (who, what) = (self.who(), counted.event());
        Recording::tell(&mut recording.by, format!("{who}, {what} every {}", length(period)));
        Ok(period)
    }

    /// Who sampled: `async-profiler 4.5`, `JFR`.
    pub fn who(&self) -> String {
        let version = self.set(self.recording, "version").unwrap_or_default();
        match (self.writer(), self.is_async_profiler()) {
            (Some(version), _) => format!("Emberscope {version}").trim_end().to_owned(),
            (None, true) => format!("async-profiler {version}").trim_end().to_owned(),
            (None, false) => "JFR".to_owned(),
        }
    }

    /// Of events of this type only those that took so long are written, where that is said: `20 ms`.
    pub fn threshold(&self, number: i64) -> Option<u64> {
        self.set(Some(number), "threshold").and_then(timespan)
    }
}

/// `20 ms` as the JDK's settings have it (`jdk.jfr.internal.util.ValueParser`), nanoseconds.
fn timespan(text: &str) -> Option<u64> {
    let (number, unit) = text.trim().split_once(' ')?;
    let factor = match unit.trim() {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor).filter(|ns| *ns > 0)
}
