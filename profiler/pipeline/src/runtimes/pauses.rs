//! Pauses of JVMs: probes on the functions that a runtime runs once a pause, and the names of what is done then.
//!
//! In: what the reader found of a runtime's file. Out: probes on, the state of each process for the status, and a pause's
//! cause.

use super::Processes;
use super::kernel::Kernel;
use emberscope_model::ProcessKey;
use emberscope_runtime::Library;
use std::collections::HashMap;
use std::sync::Arc;

/// How a process's pauses are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pauses {
    /// Pauses are not to be seen.
    Off,
    /// Not known yet: the process is being looked at.
    Opening,
    /// The probes tell each; names of operations by the words that tell them.
    Probed(Arc<HashMap<u64, Arc<str>>>),
    /// Pauses are not known: why.
    None(String),
}

impl Pauses {
    /// Puts the probes on the file, where they are wanted; what then is known of them.
    pub(super) fn watch(library: &Library, kernel: &mut dyn Kernel) -> Self {
        let Some(file) = library.file.fd() else { return Self::None("its file is closed".into()) };
        match (&library.pauses, kernel.sees_pauses()) {
            (_, false) => Self::Off,
            (Err(why), true) => Self::None((*why).into()),
            (Ok((probe, operations)), true) => match kernel.watch_pauses(library.id, file, *probe) {
                Ok(()) => Self::Probed(Arc::new(operations.clone())),
                Err(error) => Self::None(error.to_string()),
            },
        }
    }

    /// Stable short name, for the status.
    pub const fn slug(&self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Opening => "opening",
            Self::Probed(_) => "probe",
            Self::None(_) => "none",
        }
    }

    /// A sentence for people.
    pub fn says(&self) -> String {
        match self {
            Self::Off => "not seen: pauses = false, or this kernel has no uprobes".into(),
            Self::Opening => "its libjvm is being looked at".into(),
            Self::Probed(_) => "each pause at a safepoint is seen, with its operation".into(),
            Self::None(why) => format!("pauses are not known: {why}"),
        }
    }
}

impl Processes {
    /// How a process's pauses are known.
    pub fn pauses(&self, key: ProcessKey) -> Option<&Pauses> {
        self.known.get(&key).map(|process| &process.pauses)
    }

    /// What a process's threads were stopped for: the name of the operation, as the JVM's log has it; None: nothing that is
    /// known.
    pub fn cause(&self, key: ProcessKey, operation: u64) -> Option<Arc<str>> {
        match self.pauses(key)? {
            Pauses::Probed(operations) => operations.get(&operation).cloned(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_has_a_word_and_a_sentence() {
        let all =
            [Pauses::Off, Pauses::Opening, Pauses::Probed(Arc::default()), Pauses::None("no file".into())];
        let slugs: Vec<&str> = all.iter().map(Pauses::slug).collect();
        assert_eq!(slugs, ["off", "opening", "probe", "none"]);
        assert_eq!(all[3].says(), "pauses are not known: no file");
    }
}
