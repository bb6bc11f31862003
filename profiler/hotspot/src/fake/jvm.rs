//! A JVM's tables, as its file tells them, with threads.

use super::{Columns, Fake};

impl Fake {
    /// A JVM whose threads have these ids and names.
    pub(super) fn jvm(names: &[(u32, &str)], linked: bool) -> Self {
        let mut fake = Self::default();
        fake.alloc(16);
        let thread_class =
            fake.class(&[("priority", "I", 12), ("eetop", "J", 16), ("name", "Ljava/lang/String;", 32)]);
        let string_class = fake.class(&[("value", "[B", 20), ("coder", "B", 16), ("hash", "I", 12)]);
        let bytes_class = fake.alloc(64);
        fake.half(bytes_class + 8, 0xc010_0800);
        let mut threads = Vec::new();
        for (tid, name) in names {
            let (java, os) = (fake.alloc(1024), fake.alloc(256));
            fake.half(os + 208, *tid);
            fake.word(java + 560, os);
            let string = fake.string([string_class, bytes_class], name);
            let object = fake.object(thread_class, 40);
            fake.word(object + 16, java);
            fake.half(object + 32, string as u32);
            let handle = fake.words(&[object]);
            fake.word(java + 648, handle);
            threads.push(java);
        }
        for pair in threads.windows(2) {
            fake.word(pair[0] + 784, pair[1]);
        }
        let array = fake.words(&threads);
        let list = fake.words(&[(threads.len() as u64) << 32, 0, array]);
        let first = threads.first().copied().unwrap_or(0);
        let heap = fake.alloc(128);
        let statics: Vec<(&str, u64)> = vec![
            ("vmClasses::_klasses[static_cast<int>(vmClassID::Thread_klass_knum)]", thread_class),
            ("vmClasses::_klasses[static_cast<int>(vmClassID::String_klass_knum)]", string_class),
            ("Universe::_collectedHeap", heap),
            ("CompressedOops::_narrow_oop._base", 0),
            ("CompressedOops::_narrow_oop._shift", 0),
            ("CompressedKlassPointers::_narrow_klass._base", 0),
            ("CompressedKlassPointers::_narrow_klass._shift", 0),
            if linked {
                ("Threads::_thread_list", first)
            } else {
                ("ThreadsSMRSupport::_java_thread_list", list)
            },
        ];
        let flags: Vec<u64> = ["UseZGC", "UseCompressedClassPointers", "UseCompressedOops"]
            .into_iter()
            .flat_map(|name| {
                let (value, name) = (fake.words(&[u64::from(name != "UseZGC")]), fake.text(name));
                [value, name, 0]
            })
            .collect();
        let (flags, count) = (fake.words(&flags), fake.words(&[3]));
        let mut entries = Vec::new();
        let mut field = |fake: &mut Self, name: &str, kind: &str, place: Result<u64, u64>| {
            let (owner, member) = name.split_once("::").unwrap();
            let texts = [owner, member, kind].map(|text| fake.text(text));
            let (offset, address) = (place.unwrap_or(0), place.err().unwrap_or(0));
            entries.extend([texts[0], texts[1], texts[2], u64::from(place.is_err()), offset, address]);
        };
        for (name, value) in statics {
            let at = fake.words(&[value]);
            field(&mut fake, name, "", Err(at));
        }
        let at = fake.words(&[flags]);
        field(&mut fake, "JVMFlag::flags", "", Err(at));
        field(&mut fake, "JVMFlag::numFlags", "", Err(count));
        for (name, offset) in [
            ("JVMFlag::_addr", 0),
            ("JVMFlag::_name", 8),
            ("InstanceKlass::_fields", 456),
            ("InstanceKlass::_java_fields_count", 310),
            ("InstanceKlass::_constants", 232),
            ("Array<u2>::_data", 4),
            ("Symbol::_length", 4),
            ("Symbol::_body", 6),
            ("Klass::_layout_helper", 8),
            ("oopDesc::_metadata._compressed_klass", 8),
            ("CollectedHeap::_is_gc_active", 48),
            ("CollectedHeap::_total_collections", 64),
            ("ThreadsList::_length", 4),
            ("ThreadsList::_threads", 16),
            ("JavaThread::_next", 784),
            ("JavaThread::_osthread", 560),
            ("OSThread::_thread_id", 208),
        ] {
            field(&mut fake, name, "", Ok(offset));
        }
        field(&mut fake, "JavaThread::_threadObj", "OopHandle", Ok(648));
        entries.extend([0; 6]);
        let structs = fake.words(&entries);
        let names = [fake.text("JVMFlag"), fake.text("ConstantPool")];
        let types = fake.words(&[names[0], 24, names[1], 72, 0, 0]);
        let name = fake.text("FIELDINFO_TAG_SIZE");
        let constants = fake.words(&[name, 2, 0, 0]);
        let tables: [(&str, u64, u64, Columns); 4] = [
            (
                "Struct",
                structs,
                48,
                &[
                    ("TypeName", 0),
                    ("FieldName", 8),
                    ("TypeString", 16),
                    ("IsStatic", 24),
                    ("Offset", 32),
                    ("Address", 40),
                ],
            ),
            ("Type", types, 16, &[("TypeName", 0), ("Size", 8)]),
            ("IntConstant", constants, 16, &[("Name", 0), ("Value", 8)]),
            ("LongConstant", constants, 16, &[("Name", 0), ("Value", 8)]),
        ];
        for (kind, first, stride, columns) in tables {
            fake.symbol(format!("gHotSpotVM{kind}s"), first);
            fake.symbol(format!("gHotSpotVM{kind}EntryArrayStride"), stride);
            for (column, at) in columns {
                fake.symbol(format!("gHotSpotVM{kind}Entry{column}Offset"), *at);
            }
        }
        fake
    }
}
