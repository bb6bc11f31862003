//! Frames of a recording: methods of the JDK, and what async-profiler puts in their place.

use super::super::gather::Gather;
use super::super::{ImportError, name};
use super::pools::{Pools, RawFrame};
use emberscope_model::{Frame, FrameKind, UnknownReason};

/// The descriptor that async-profiler gives functions.
const NATIVE: &str = "()L;";

/// A trace of the pools as a stack's number, the outermost frame first, and behind the innermost one a class, if there is one;
/// a trace that is not there has no frames.
///
/// # Errors
/// [`ImportError::Memory`]: there is no room for a frame or the stack.
pub fn stack(
    pools: &Pools,
    trace: i64,
    class: Option<&str>,
    gather: &mut Gather,
) -> Result<u32, ImportError> {
    let trace = pools.traces.get(&trace);
    let raw = trace.map_or(&[][..], |trace| &trace.frames);
    let mut frames = Vec::with_capacity(raw.len() + 1);
    for frame in raw.iter().rev() {
        frames.push(gather.frame(frame_of(pools, frame))?);
    }
    if let Some(class) = class {
        frames.push(gather.frame(Frame::new(FrameKind::Class, class, ""))?);
    }
    gather.stack(&frames, trace.is_some_and(|trace| trace.truncated))
}

fn frame_of(pools: &Pools, raw: &RawFrame) -> Frame {
    let Some(method) = pools.methods.get(&raw.method) else {
        return Frame::unknown(UnknownReason::NoSymbol, "");
    };
    let symbol = |number: i64| pools.symbols.get(&number).map_or("", String::as_str);
    let class = pools.classes.get(&method.class).map_or("", |name| symbol(*name));
    let (own, descriptor) = (symbol(method.name), symbol(method.descriptor));
    let kind = pools.kinds.get(&raw.kind).map_or("", String::as_str);
    let native = match kind {
        "Kernel" => Some(FrameKind::Kernel),
        "C++" => Some(FrameKind::Native),
        // Of our own recordings.
        "Python" => Some(FrameKind::Python),
        "Stub" => Some(FrameKind::Stub),
        "Class" => Some(FrameKind::Class),
        "Unknown" => return Frame { module: name::clean(class).into(), ..name::frame(own) },
        // The JDK's are native methods of a class; async-profiler's are functions of a library.
        "Native" if class.is_empty() || descriptor == NATIVE => Some(FrameKind::Native),
        _ => None,
    };
    if let Some(kind) = native {
        let own = own.strip_suffix("_[k]").unwrap_or(own);
        return match own {
            "" => Frame::unknown(UnknownReason::NoSymbol, name::clean(class)),
            _ => Frame::new(kind, name::clean(own), name::clean(class)),
        };
    }
    if class.is_empty() {
        // A thread's name, an error of the walk: async-profiler's own words.
        return name::frame(own);
    }
    let kind = match kind {
        "Interpreted" => FrameKind::JavaInterpreted,
        "Inlined" => FrameKind::JavaInlined,
        _ => FrameKind::JavaCompiled,
    };
    // What functions have is no signature of a method.
    let signed = Some(descriptor).filter(|descriptor| *descriptor != NATIVE);
    Frame {
        signature: signed.and_then(|text| emberscope_hotspot::signature(text.as_bytes())).map(Into::into),
        line: raw.line,
        ..Frame::new(kind, name::method(class, own), "")
    }
}
