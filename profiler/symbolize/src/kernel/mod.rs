//! Names kernel addresses from `/proc/kallsyms`: text symbols only, [`packed`](crate::packed) (1.1 MB for 122,000).
//!
//! Our own reader rather than blazesym's, which keeps every symbol in an allocation of its own (7.6 MB
//! for 122,000, measured), data symbols among them, and does not tell the module. Where `kptr_restrict`
//! hides the addresses all of them read as zero: the frames are then `[unknown: kernel symbol]`.
//! The file is read at the first kernel address, and again, at most once a minute, when an address lies
//! in none of the known symbols (a module was loaded).

use super::frames::FrameTable;
use super::packed::{Packed, Symbol};
use emberscope_model::{FastMap, Frame, FrameKind, UnknownReason};
use emberscope_target::text;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Text symbols kept; Debian's 6.1 has 70,000, a kernel with many modules twice that.
const MAX_SYMBOLS: usize = 400_000;
/// Bytes of the file that are read; 122,000 symbols take 5 MB.
const MAX_BYTES: u64 = 64 << 20;
/// kallsyms tells no sizes. A function is hardly longer than this: beyond, the address is not the
/// symbol's but lies in a gap between modules.
const MAX_FUNCTION: u64 = 256 << 10;
const REREAD: Duration = Duration::from_secs(60);
/// Addresses whose frames are kept; then all go. A node at work shows some thousand.
const MAX_KNOWN: usize = 4096;

/// Text symbols of the kernel and its modules, and the frames made of them.
pub struct KernelSymbols {
    path: PathBuf,
    symbols: Packed,
    modules: Vec<Box<str>>,
    /// Frames of addresses that were asked for.
    known: FastMap<u64, Arc<Frame>>,
    read_at: Option<Instant>,
    /// Why there are no symbols, for people.
    pub problem: Option<String>,
}

impl KernelSymbols {
    /// No symbols: nothing is read yet.
    pub fn new(proc_root: &Path) -> Self {
        Self {
            path: proc_root.join("kallsyms"),
            symbols: Packed::default(),
            modules: Vec::new(),
            known: FastMap::default(),
            read_at: None,
            problem: None,
        }
    }

    /// The frame of the function that holds `address`.
    pub fn frame(&mut self, address: u64, frames: &mut FrameTable) -> Arc<Frame> {
        if let Some(frame) = self.known.get(&address) {
            return Arc::clone(frame);
        }
        let Some(symbol) = self.find(address) else {
            return frames.intern(Frame::unknown(UnknownReason::KernelSymbol, "kernel"));
        };
        let module = self.modules.get(symbol.more as usize).map_or("", |module| module);
        let frame = frames.intern(Frame::new(FrameKind::Kernel, symbol.name, module));
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(address, Arc::clone(&frame));
        frame
    }

    fn find(&mut self, address: u64) -> Option<Symbol> {
        let near = |symbols: &Packed| symbols.find(address).filter(|s| address - s.start < MAX_FUNCTION);
        if let Some(symbol) = near(&self.symbols) {
            return Some(symbol);
        }
        if self.read_at.is_some_and(|t| t.elapsed() < REREAD) {
            return None;
        }
        self.read();
        near(&self.symbols)
    }

    fn read(&mut self) {
        self.read_at = Some(Instant::now());
        match File::open(&self.path) {
            Ok(file) => self.load(BufReader::with_capacity(64 << 10, file.take(MAX_BYTES))),
            Err(error) => {
                self.problem = Some(format!("{}: {error}: kernel frames have no names", self.path.display()));
            }
        }
    }

    fn load(&mut self, mut reader: impl BufRead) {
        let mut rows: Vec<(u64, u32, u16, u16)> = Vec::new();
        let (mut arena, mut modules) = (String::new(), vec![Box::from("kernel")]);
        let (mut line, mut hidden, mut failed) = (Vec::new(), 0usize, None);
        loop {
            line.clear();
            match reader.by_ref().take(4096).read_until(b'\n', &mut line) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
            let Some((start, name, module)) = parse_line(&line) else { continue };
            if start == 0 {
                hidden += 1;
                continue;
            }
            if rows.len() == MAX_SYMBOLS {
                break;
            }
            let module = match modules.iter().rposition(|m| **m == *module) {
                Some(at) => at,
                None if modules.len() < usize::from(u16::MAX) => {
                    modules.push(module.into());
                    modules.len() - 1
                }
                None => 0,
            };
            let name = name.get(..name.len().min(512)).unwrap_or(name);
            rows.push((start, arena.len() as u32, name.len() as u16, module as u16));
            arena.push_str(name);
        }
        // Of several names for one address (aliases) the first is kept: the sort is stable.
        rows.sort_by_key(|r| r.0);
        rows.dedup_by_key(|r| r.0);
        let name = |at: u32, len: u16| arena.get(at as usize..at as usize + usize::from(len)).unwrap_or("?");
        self.symbols = Packed::of(
            rows.iter().map(|(start, at, len, module)| (*start, name(*at, *len), u64::from(*module))),
        );
        self.known.clear();
        self.modules = modules;
        self.problem = match failed {
            Some(error) => Some(format!("{}: {error}", self.path.display())),
            None if self.symbols.len() == 0 && hidden > 0 => Some(
                "kernel.kptr_restrict hides kernel addresses: kernel frames have no names (give the daemon CAP_SYSLOG, \
                 or set the sysctl to 0)"
                    .to_owned(),
            ),
            None => None,
        };
    }
}

/// `ffffffff81000000 T name [module]`; text symbols only.
fn parse_line(line: &[u8]) -> Option<(u64, &str, &str)> {
    let line = std::str::from_utf8(line).ok()?;
    let mut fields = line.split_ascii_whitespace();
    let address = u64::from_str_radix(fields.next()?, 16).ok()?;
    if !matches!(fields.next()?, "t" | "T" | "w" | "W") {
        return None;
    }
    let name = fields.next()?;
    let module = fields.next().and_then(|m| m.strip_prefix('[')?.strip_suffix(']')).unwrap_or("kernel");
    (!name.chars().any(char::is_control) && module.len() <= text::MAX_NAME).then_some((address, name, module))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(text: &str) -> KernelSymbols {
        let mut symbols = KernelSymbols::new(Path::new("/nonexistent"));
        symbols.load(text.as_bytes());
        symbols.read_at = Some(Instant::now());
        symbols
    }

    #[test]
    fn names_functions_and_modules() {
        let mut symbols = loaded(
            "ffffffff81000100 T do_it\nffffffff81000000 T _text\nffffffff81000000 T _stext\n\
             ffffffff81000200 D some_data\nffffffffc0000000 t nf_hook\t[nf_tables]\nbroken line\n",
        );
        let mut frames = FrameTable::new(Default::default());
        let mut frame = |address| symbols.frame(address, &mut frames);
        let named = |name: &str, module: &str| Frame::new(FrameKind::Kernel, name, module);
        assert_eq!(*frame(0xffffffff81000150), named("do_it", "kernel"));
        assert!(Arc::ptr_eq(&frame(0xffffffff81000150), &frame(0xffffffff81000160)));
        assert_eq!(*frame(0xffffffff81000000), named("_text", "kernel"));
        assert_eq!(*frame(0xffffffffc0000010), named("nf_hook", "nf_tables"));
        let unknown = Frame::unknown(UnknownReason::KernelSymbol, "kernel");
        assert_eq!(*frame(0xffffffffb0000000), unknown, "a gap between modules has no name");
        assert_eq!(*frame(0x1000), unknown);
    }

    #[test]
    fn hidden_addresses_are_said() {
        let mut symbols = loaded("0000000000000000 T do_it\n0000000000000000 t other\n");
        assert_eq!(symbols.find(0xffffffff81000150), None);
        assert!(symbols.problem.as_deref().unwrap().contains("kptr_restrict"));
    }

    #[test]
    fn reads_this_kernel() {
        let mut symbols = KernelSymbols::new(Path::new("/proc"));
        symbols.find(0xffff_ffff_ffff_0000);
        let (count, bytes) = (symbols.symbols.len(), symbols.symbols.bytes());
        if count == 0 {
            emberscope_testkit::skip(&symbols.problem.unwrap_or_default());
            return;
        }
        assert!(bytes < 20 * count, "{bytes} bytes for {count} symbols");
        let (start, name) = {
            let text = std::fs::read_to_string("/proc/kallsyms").unwrap();
            let line = text.lines().find(|l| l.ends_with(" T vfs_read")).unwrap();
            (u64::from_str_radix(&line[..16], 16).unwrap(), "vfs_read")
        };
        assert_eq!(symbols.find(start + 4).unwrap().name, name);
    }
}
