//! Processes whose code changes, that become another program, and that end.

use super::Symbolizer;
use emberscope_model::ProcessKey;
use std::time::Instant;

impl Symbolizer {
    /// Code was mapped: the mappings are read again when they are next needed.
    pub fn on_mmap(&mut self, key: ProcessKey) {
        if let Some(process) = self.processes.get_mut(&key) {
            process.mark_stale();
        }
    }

    /// The program was replaced. JIT addresses of the old one that still wait stay without a name.
    pub fn on_exec(&mut self, key: ProcessKey) {
        if let Some(process) = self.processes.get_mut(&key) {
            process.replaced(Instant::now());
        }
        self.readers.forget(key);
    }

    /// The process ended. What is known of it stays for [`SymbolizerConfig::keep_exited`](crate::SymbolizerConfig::keep_exited).
    pub fn on_exit(&mut self, key: ProcessKey) {
        if let Some(process) = self.processes.get_mut(&key) {
            process.exited.get_or_insert_with(Instant::now);
        }
    }

    /// To be called about once a second. Lets go of symbols that nobody needs now, and takes processes that do not live any
    /// more as [`Symbolizer::on_exit`] does: of one that was first seen by a sample which came up after its end, nobody
    /// says that it ended.
    pub fn tidy(&mut self, lives: impl Fn(ProcessKey) -> bool) {
        let now = Instant::now();
        for (_, process) in self.processes.iter_mut().filter(|(key, p)| p.exited.is_none() && !lives(**key)) {
            process.exited = Some(now);
        }
        self.natives.rest();
    }
}
