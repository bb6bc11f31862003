//! The symbols that one file has: read by blazesym where they are few, packed where they are many, found by place where they are too
//! many for that.
//!
//! In: a copy of the file's tables. Out: the name of an address, and the addresses around it that have it too.

use super::large::Large;
use super::many::Many;
use super::starts::Starts;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use emberscope_target::elf::{ElfError, Image, Segment};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, PoisonError};

/// Tables of so many bytes are packed. Those of a C library have a third of it, without what was taken out of it a tenth. (Files of the
/// fuzz targets are small.)
const MANY: u64 = if cfg!(fuzzing) { 2 << 10 } else { 1 << 20 };

/// What is packed takes some memory while it is: one at a time. Nothing that may wait is done meanwhile, as the copy is ours.
static PACKING: Mutex<()> = Mutex::new(());

/// A file's symbols as they are read, on any thread.
pub enum Read {
    /// A copy of its tables.
    Few(Starts, Image),
    /// What was packed of them.
    Many(Many),
    /// Where they are in the file.
    Large(Large),
}

impl Read {
    /// Of a copy of a file's tables; `segments` are those of the program, of whose code names are asked. The tables have at
    /// most `limit` bytes; half of that may be left when they are packed.
    ///
    /// # Errors
    /// [`ElfError`] of [`Many::of`].
    pub fn of(image: Image, segments: &[Segment], limit: u64) -> Result<Self, ElfError> {
        if image.bytes < MANY {
            return Ok(Self::Few(Starts::of(&image), image));
        }
        let _one = PACKING.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Self::Many(Many::of(&image, segments, limit / 2)?))
    }

    /// Bytes of memory that they take.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Few(starts, image) => starts.bytes() + image.bytes,
            Self::Many(many) => many.bytes(),
            Self::Large(large) => large.bytes(),
        }
    }
}

/// A file's symbols.
pub enum Symbols {
    /// Read by blazesym.
    Few(Box<Few>),
    /// Packed.
    Many(Many),
    /// In the file, which is asked for each ([`super::naming`]).
    Large(Arc<Large>),
}

/// What it takes to ask blazesym.
pub struct Few {
    starts: Starts,
    symbolizer: Symbolizer,
    source: Source<'static>,
    /// What the source reads.
    _image: Image,
}

impl Symbols {
    /// Of what was read.
    pub fn of(read: Read) -> Self {
        match read {
            Read::Few(starts, image) => Self::Few(Box::new(Few::of(starts, image))),
            Read::Many(many) => Self::Many(many),
            Read::Large(large) => Self::Large(Arc::new(large)),
        }
    }

    /// The name of an address, and the addresses around it that have it too; None also where that takes the file.
    pub fn name(&self, address: u64) -> Option<(String, Range<u64>)> {
        let (symbol, holds) = match self {
            Self::Few(few) => few.name(address)?,
            Self::Many(many) => many.name(address)?,
            Self::Large(_) => return None,
        };
        let name = unversioned(&symbol);
        (!name.is_empty()).then(|| (name.to_owned(), holds))
    }
}

impl Few {
    fn of(starts: Starts, image: Image) -> Self {
        let mut source = Elf::new(format!("/proc/self/fd/{}", image.file.as_raw_fd()));
        source.debug_syms = false;
        let symbolizer = Symbolizer::builder()
            .enable_code_info(false)
            .enable_inlined_fns(false)
            .enable_auto_reload(false)
            .enable_demangling(false)
            .build();
        Self { starts, symbolizer, source: Source::Elf(source), _image: image }
    }

    /// Not by its file offset: blazesym 0.2.7 then reads the program headers once more, as many as the file says.
    fn name(&self, address: u64) -> Option<(String, Range<u64>)> {
        let input = Input::VirtOffset(address);
        let Ok(Symbolized::Sym(symbol)) = self.symbolizer.symbolize_single(&self.source, input) else {
            return None;
        };
        let end = symbol.addr.checked_add(symbol.size.unwrap_or_default() as u64);
        let holds = match end.map(|end| symbol.addr..end).filter(|whole| whole.contains(&address)) {
            Some(whole) => self.starts.alone(address, whole),
            None => address..address.checked_add(1)?,
        };
        Some((symbol.name.into_owned(), holds))
    }
}

/// A symbol's name without the version that the linker puts behind it in .symtab (`__fmod_finite@GLIBC_2.15`, `memcpy@@GLIBC_2.14`):
/// no function's name has an `@` after its beginning, in C or mangled.
pub fn unversioned(symbol: &str) -> &str {
    match symbol.find('@') {
        Some(at) if at > 0 => symbol.get(..at).unwrap_or(symbol),
        _ => symbol,
    }
}

#[cfg(test)]
mod tests {
    use super::unversioned;

    #[test]
    fn a_function_is_called_without_its_symbols_version() {
        for (symbol, name) in [
            ("__fmod_finite@GLIBC_2.15", "__fmod_finite"),
            ("memcpy@@GLIBC_2.14", "memcpy"),
            ("_ZN1a1bEv", "_ZN1a1bEv"),
            ("@plt", "@plt"),
            ("", ""),
        ] {
            assert_eq!(unversioned(symbol), name);
        }
    }
}
