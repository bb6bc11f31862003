//! The kernel's maps as the keeper of tables writes them.

use emberscope_capture::TableMaps;
use emberscope_model::Pid;
use emberscope_unwind::table::{Walker, WalkerError};
use profiler_ebpf::ProcessTables;

/// The walker's maps.
pub struct Maps(pub TableMaps);

impl Walker for Maps {
    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), WalkerError> {
        self.0.write(address, words).map_err(|e| WalkerError(e.to_string()))
    }
    fn rule(&mut self, number: u32, rule: u64) -> Result<(), WalkerError> {
        self.0.rule(number, rule).map_err(|e| WalkerError(e.to_string()))
    }
    fn expect(&mut self, pid: Pid) -> Result<(), WalkerError> {
        self.0.expect(pid).map_err(|e| WalkerError(e.to_string()))
    }
    fn set(&mut self, pid: Pid, tables: ProcessTables) -> Result<bool, WalkerError> {
        self.0.set(pid, tables).map_err(|e| WalkerError(e.to_string()))
    }
    fn forget(&mut self, pid: Pid) {
        self.0.forget(pid);
    }
    fn free_slabs(&mut self, empty: &dyn Fn(u32) -> bool) {
        self.0.free_slabs(empty);
    }
}
