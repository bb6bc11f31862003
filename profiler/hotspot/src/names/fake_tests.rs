//! Names of a JVM made of bytes: sound, racing, spoilt.

use super::fake::{BASE, Fake, HEAP, ID};
use super::*;
use profiler_ebpf::{JavaFrameTag, RuntimeId, UserFrame};
use proptest::prelude::*;

const BLOB: u64 = HEAP + 16;
const CODE: u64 = BLOB + 0x180;

fn compiled(at: u64, flags: u8) -> UserFrame {
    UserFrame {
        value: CODE + at,
        cookie: ID,
        kind: JavaFrameTag::Compiled as u8,
        flags,
        runtime: RuntimeId::HOTSPOT.0,
        pad: 0,
    }
}
fn interpreted(method: u64, bcp: u32) -> UserFrame {
    UserFrame {
        value: method,
        cookie: bcp,
        kind: JavaFrameTag::Interpreted as u8,
        flags: 0,
        runtime: RuntimeId::HOTSPOT.0,
        pad: 0,
    }
}

fn told(named: Result<Arc<[JavaFrame]>, Unnamed>) -> Vec<(FrameKind, String, u32, bool)> {
    let one = |f: &JavaFrame| (f.kind, f.name.to_string(), f.line, f.approximate);
    named.unwrap().iter().map(one).collect()
}

#[test]
fn a_sound_one_is_named() {
    use FrameKind::{JavaCompiled, JavaInlined, JavaInterpreted, Stub};
    for outside in [false, true] {
        let fake = Fake::jvm(outside);
        let mut namer = fake.namer();
        let mut batch = namer.batch(&fake);
        let caller = UserFrame::FLAG_RETURN_ADDRESS;
        let outer = |approximate| (JavaCompiled, "a.Outer.run".to_owned(), 53, approximate);
        let inner = |approximate| (JavaInlined, "a.H$$Lambda.apply".to_owned(), 50, approximate);
        let whole = |approximate| vec![inner(approximate), outer(approximate)];
        assert_eq!(told(batch.name(&compiled(0x20, caller))), [outer(false)]);
        assert_eq!(told(batch.name(&compiled(0x60, caller))), whole(false));
        assert_eq!(told(batch.name(&compiled(0x1f, 0))), [outer(true)]);
        assert_eq!(told(batch.name(&compiled(0x20, 0))), [outer(true)], "an entry is for what ends there");
        assert_eq!(told(batch.name(&compiled(0x21, 0))), whole(true), "the next one's region");
        // A call without an entry borrows as if it were interrupted.
        assert_eq!(told(batch.name(&compiled(0x21, caller))), [outer(true)]);
        assert_eq!(told(batch.name(&compiled(0x22, caller))), whole(true));
        assert_eq!(told(batch.name(&compiled(0x60, 0))), whole(true));
        assert_eq!(told(batch.name(&compiled(0x61, 0))), whole(true), "it comes from there");
        let bcp = (fake.u64(fake.inner + 8).unwrap() + 48 + 7) as u32;
        let lines = |line| vec![(JavaInterpreted, "a.H$$Lambda.apply".to_owned(), line, false)];
        assert_eq!(told(batch.name(&interpreted(fake.inner, bcp))), lines(53));
        assert_eq!(told(batch.name(&interpreted(fake.inner, 0))), lines(0));
        assert_eq!(batch.name(&interpreted(fake.inner, bcp + 3)), Err(Unnamed::Unloaded));
        let stub = |at| UserFrame { value: at, kind: JavaFrameTag::Stub as u8, ..UserFrame::default() };
        let stubs = HEAP + 32 * 128 + 16;
        let named = batch.name(&stub(stubs + 0x210)).unwrap();
        assert_eq!((named[0].kind, &*named[0].name), (Stub, "jbyte_arraycopy"));
        assert_eq!(&*batch.name(&stub(stubs + 0x190)).unwrap()[0].name, "StubRoutines (1)");
        assert_eq!(batch.name(&stub(HEAP + 100 * 128)), Err(Unnamed::Unloaded));
        assert_eq!(batch.name(&stub(8)), Err(Unnamed::NotJava));
        let named = batch.name(&compiled(0x60, caller)).unwrap();
        assert_eq!(named[0].signature.as_deref(), Some("()long"));
        assert_eq!(named[1].signature.as_deref(), Some("(byte[], int)void"));
    }
}

#[test]
fn what_went_away_is_unloaded_and_what_was_named_stays() {
    for outside in [false, true] {
        let mut fake = Fake::jvm(outside);
        let (mut namer, mut late) = (fake.namer(), fake.namer());
        let leaf = compiled(0x30, 0);
        let before = namer.batch(&fake).name(&leaf).unwrap();
        // Another nmethod lies there now, and another method where the inlined one was.
        fake.int(BLOB + 304, ID + 1);
        let constant = fake.u64(fake.inner + 8).unwrap();
        fake.half(constant + 34, 3);
        assert_eq!(namer.batch(&fake).name(&leaf), Ok(Arc::clone(&before)));
        assert_eq!(namer.batch(&fake).name(&compiled(0x31, 0)).unwrap()[..], before[..], "by what was kept");
        assert_eq!(late.batch(&fake).name(&leaf), Err(Unnamed::Unloaded));
        let named = namer.batch(&fake).name(&interpreted(fake.inner, 0)).unwrap();
        assert_eq!(&*named[0].name, "a.H$$Lambda.File.java", "read again");
        fake.put(HEAP + 8, &[0]);
        let freed = UserFrame { cookie: ID + 1, ..leaf };
        assert_eq!(late.batch(&fake).name(&freed), Err(Unnamed::Unloaded), "a free block");
    }
}

/// Its frame may have its caller's bytecode pointer; what lies outside of a method's code else was another's.
#[test]
fn a_native_method_is_named_whatever_its_bytecode_pointer() {
    const COUNT: u64 = BASE + 0x28;
    let mut fake = Fake::jvm(false);
    let constant = fake.u64(fake.inner + 8).unwrap();
    let frame = interpreted(fake.inner, (fake.u64(fake.outer + 8).unwrap() + 48) as u32);
    for (bytes, counted, expected) in [(8, true, false), (0, true, true), (0, false, false)] {
        fake.half(constant + 32, bytes);
        let mut namer = fake.namer();
        if counted {
            namer.unloads = Unloads::at(COUNT);
        }
        let named = namer.name_all(&fake, std::iter::once((frame, u64::from(counted)))).remove(0);
        let lines = named.map(|frames| frames[0].line);
        assert_eq!(lines, if expected { Ok(0) } else { Err(Unnamed::Unloaded) }, "{bytes} {counted}");
    }
}

/// Between the count and the memory's release a method of an unloaded class can still be read.
#[test]
fn what_is_read_of_an_unloaded_class_names_no_later_stack() {
    const COUNT: u64 = BASE + 0x28;
    let mut fake = Fake::jvm(false);
    let mut namer = fake.namer();
    namer.unloads = Unloads::at(COUNT);
    let frame = interpreted(fake.inner, 0);
    let mut name = |fake: &Fake, recorded: u64| {
        let named = namer.name_all(fake, std::iter::once((frame, recorded))).remove(0);
        named.map(|frames| frames[0].name.to_string())
    };
    // Recorded before a class was unloaded, and named when its memory is still there.
    fake.word(COUNT, 7);
    assert_eq!(name(&fake, 7), Err(Unnamed::Unloaded));
    // Now another's method lies there, and the count is the same.
    let constant = fake.u64(fake.inner + 8).unwrap();
    fake.half(constant + 34, 3);
    assert_eq!(name(&fake, 8).unwrap(), "a.H$$Lambda.File.java");
    assert_eq!(name(&fake, 7), Err(Unnamed::Unloaded), "what came later names no earlier stack");
    assert_eq!(name(&fake, 8).unwrap(), "a.H$$Lambda.File.java");
}

/// What was allocated: a class at its address, which is another's once the class is unloaded.
#[test]
fn a_class_is_named_as_java_writes_it_and_never_by_anothers_name() {
    const COUNT: u64 = BASE + 0x28;
    let mut fake = Fake::jvm(false);
    let mut namer = fake.namer();
    namer.unloads = Unloads::at(COUNT);
    let pool = fake.u64(fake.u64(fake.outer + 8).unwrap() + 8).unwrap();
    let class = fake.u64(pool + 24).unwrap();
    let frame =
        UserFrame { value: class, kind: JavaFrameTag::Class as u8, cookie: 0, ..interpreted(class, 0) };
    let mut name = |fake: &Fake, recorded: u64| {
        let named = namer.name_all(fake, std::iter::once((frame, recorded))).remove(0);
        named.map(|frames| (frames[0].kind, frames[0].name.to_string()))
    };
    let is = |text: &str| Ok((FrameKind::Class, text.to_owned()));
    // The first look is when the count is learned.
    fake.word(COUNT, 7);
    assert_eq!(name(&fake, 7), Err(Unnamed::Unloaded), "recorded before a class was unloaded");
    assert_eq!(name(&fake, 8), is("a.Outer"));
    fake.word(COUNT, 8);
    assert_eq!(name(&fake, 8), is("a.Outer"), "it was known there, and is there");
    for (symbol, text) in [("[B", "byte[]"), ("[[Ljava/lang/String;", "java.lang.String[][]")] {
        let other = fake.symbol(symbol);
        fake.word(class + 24, other);
        assert_eq!(name(&fake, 8), Err(Unnamed::Unloaded), "another lies there now");
        assert_eq!(name(&fake, 9), is(text));
    }
    for spoilt in ["", "[X", "a\u{1}b"] {
        let symbol = fake.symbol(spoilt);
        fake.word(class + 24, symbol);
        assert_eq!(name(&fake, 9), Err(Unnamed::Unreadable), "{spoilt:?}");
    }
    fake.word(class + 24, 0);
    assert_eq!(name(&fake, 9), Err(Unnamed::Unreadable));
}

/// At whichever read the nmethod is replaced, its name is the old one's or none.
#[test]
fn a_race_never_gives_anothers_name() {
    for outside in [false, true] {
        let sound = Fake::jvm(outside);
        let (mut right, mut unloaded) = (0, 0);
        let mut namer = sound.namer();
        let whole = namer.batch(&sound).name(&compiled(0x60, 1)).unwrap();
        for after in 0..60 {
            let mut fake = Fake::jvm(outside);
            let mut namer = fake.namer();
            // From then on the metadata names the other method, and the blob has another id.
            fake.reads.set(0);
            fake.turn = Some((after, BLOB + 304, u64::from(ID) + 1));
            match namer.batch(&fake).name(&compiled(0x60, 1)) {
                Ok(named) => {
                    assert_eq!(named[..], whole[..]);
                    right += 1;
                }
                Err(problem) => {
                    assert_eq!(problem, Unnamed::Unloaded);
                    unloaded += 1;
                }
            }
        }
        assert!(right > 5 && unloaded > 5, "{right} {unloaded}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]
    /// Any words anywhere: garbage, or pointers to where something else is.
    #[test]
    fn any_spoilt_one_ends_with_names_or_a_reason(
        outside: bool,
        spoils in proptest::collection::vec((any::<prop::sample::Index>(), any::<u64>(), 0..3u8), 1..40),
        at in 0..0x100u64,
        caller: bool,
    ) {
        let mut fake = Fake::jvm(outside);
        let mut namer = fake.namer();
        let len = fake.bytes.len();
        for (place, value, kind) in spoils {
            // Most bytes are free: rather those that are used.
            let used = (fake.used - BASE) as usize;
            let place = match place.index(4) {
                0 => place.index(len - 8),
                1 => (BLOB - BASE) as usize + place.index(0x400),
                _ => place.index(used),
            } as u64 & !3;
            let value = match kind {
                0 => value,
                1 => (BASE + value % len as u64) & !7,
                _ => value % 4096,
            };
            fake.word(BASE + place, value);
        }
        fake.reads.set(0);
        let mut batch = namer.batch(&fake);
        let frames = [
            compiled(at, u8::from(caller)),
            interpreted(fake.inner, 0),
            interpreted(fake.outer, 7),
            UserFrame { kind: JavaFrameTag::Stub as u8, ..compiled(at, 0) },
            UserFrame { kind: JavaFrameTag::Class as u8, ..compiled(at & !7, 0) },
            UserFrame { value: HEAP + 32 * 128 + 16 + 0x200, kind: 3, ..UserFrame::default() },
        ];
        for frame in frames {
            if let Ok(named) = batch.name(&frame) {
                prop_assert!(!named.is_empty() && named.len() <= numbers::MAX_DEPTH);
                prop_assert!(named.iter().all(|f| f.name.len() < 8 * 1024));
            }
        }
        prop_assert!(fake.reads.get() < 3000, "{} reads", fake.reads.get());
    }
}
