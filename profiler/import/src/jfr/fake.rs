//! Recordings made for tests: chunks of the JDK's or async-profiler's types, with compressed or plain integers.

mod shapes;

use super::chunk::HEADER;
use shapes::*;
pub use shapes::{
    ALLOCATION, CPU_TIME, EXECUTION, IN_TLAB, MONITOR_ENTER, NATIVE, OUTSIDE_TLAB, PARK, RECORDING, SETTING,
    WALL,
};

/// A chunk in the making.
pub struct Fake {
    compressed: bool,
    /// Its events, one after the other.
    events: Vec<u8>,
    pools: Vec<u8>,
    pool_count: i64,
    /// Start, nanoseconds.
    pub start: u64,
}

impl Fake {
    pub fn new(compressed: bool, start: u64) -> Self {
        Self { compressed, events: Vec::new(), pools: Vec::new(), pool_count: 0, start }
    }

    pub fn long(&self, out: &mut Vec<u8>, value: i64) {
        if !self.compressed {
            out.extend(value.to_be_bytes());
            return;
        }
        let mut rest = value.cast_unsigned();
        for _ in 0..8 {
            if rest < 0x80 {
                out.push(rest as u8);
                return;
            }
            out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8);
    }

    pub fn int(&self, out: &mut Vec<u8>, value: i64) {
        if self.compressed { self.long(out, value) } else { out.extend((value as i32).to_be_bytes()) }
    }

    pub fn text(&self, out: &mut Vec<u8>, text: &str) {
        out.push(3);
        self.int(out, text.len() as i64);
        out.extend(text.as_bytes());
    }

    fn framed(&self, number: i64, body: &[u8]) -> Vec<u8> {
        let mut kind = Vec::new();
        self.long(&mut kind, number);
        let mut size = 0;
        // A size counts itself.
        loop {
            let mut head = Vec::new();
            self.int(&mut head, size);
            let whole = (head.len() + kind.len() + body.len()) as i64;
            if whole == size {
                return [head, kind, body.to_vec()].concat();
            }
            size = whole;
        }
    }

    pub fn event(&mut self, number: i64, body: impl FnOnce(&Self, &mut Vec<u8>)) {
        let mut bytes = Vec::new();
        body(self, &mut bytes);
        let framed = self.framed(number, &bytes);
        self.events.extend(framed);
    }

    pub fn setting(&mut self, id: i64, name: &str, value: &str) {
        self.event(SETTING, |fake, out| {
            fake.long(out, 0);
            fake.long(out, id);
            fake.text(out, name);
            fake.text(out, value);
        });
    }

    /// A sample `ms` after the start; a tick is a microsecond.
    pub fn sample(&mut self, number: i64, ms: i64, thread: i64, trace: i64, state: i64) {
        self.event(number, |fake, out| {
            fake.long(out, 7_000_000 + ms * 1000);
            for value in [thread, trace, state] {
                fake.long(out, value);
            }
            if number == WALL {
                fake.int(out, 3);
            }
        });
    }

    pub fn cpu_time(&mut self, ms: i64, thread: i64, trace: i64, period_us: i64) {
        self.event(CPU_TIME, |fake, out| {
            fake.long(out, 7_000_000 + ms * 1000);
            fake.long(out, trace);
            fake.long(out, thread);
            out.push(0);
            fake.long(out, period_us);
        });
    }

    /// An event of allocated memory or of a wait, `ms` after the start: its fields behind the time.
    pub fn other(&mut self, number: i64, ms: i64, fields: &[i64]) {
        self.event(number, |fake, out| {
            fake.long(out, 7_000_000 + ms * 1000);
            fields.iter().for_each(|value| fake.long(out, *value));
        });
    }

    pub fn pool(&mut self, number: i64, values: &[(i64, Vec<u8>)]) {
        let mut out = Vec::new();
        self.long(&mut out, number);
        self.int(&mut out, values.len() as i64);
        for (key, value) in values {
            self.long(&mut out, *key);
            out.extend(value);
        }
        self.pools.extend(out);
        self.pool_count += 1;
    }

    fn texts(&mut self, number: i64, texts: &[(i64, &str)]) {
        let value = |fake: &Self, text: &str| {
            let mut out = Vec::new();
            fake.text(&mut out, text);
            out
        };
        let values: Vec<_> = texts.iter().map(|(key, text)| (*key, value(self, text))).collect();
        self.pool(number, &values);
    }

    /// Classes 1 (`a.b.Busy`), 4 (bytes), 5 and 6 (a lock's, a condition's); threads 1 (`main`) and 2 (`GC Thread#0`); traces 1 (Java), 2 (native under the kernel), 3 (cut short).
    pub fn usual(&mut self) {
        self.texts(
            SYMBOL,
            &[
                (1, "a/b/Busy"),
                (2, "spin"),
                (3, "(I)V"),
                (4, "main"),
                (5, "libjvm.so"),
                (6, "GC::work"),
                (7, "()L;"),
                (8, "do_sys_[k]"),
                (9, ""),
                (10, "[B"),
                (11, "java/util/concurrent/locks/ReentrantLock$NonfairSync"),
                (12, "java/util/concurrent/locks/AbstractQueuedSynchronizer$ConditionObject"),
            ],
        );
        self.texts(KIND, &[(0, "Interpreted"), (1, "JIT compiled"), (2, "C++"), (3, "Kernel")]);
        self.texts(STATE, &[(1, "STATE_RUNNABLE"), (2, "STATE_SLEEPING")]);
        let numbers = |fake: &Self, values: &[i64]| {
            let mut out = Vec::new();
            values.iter().for_each(|value| fake.long(&mut out, *value));
            out
        };
        let classes = [(1, 1), (2, 5), (3, 9), (4, 10), (5, 11), (6, 12)];
        let classes = classes.map(|(class, name)| (class, numbers(self, &[name])));
        self.pool(CLASS, &classes);
        let methods = [
            (1, numbers(self, &[1, 2, 3])),
            (2, numbers(self, &[1, 4, 3])),
            (3, numbers(self, &[2, 6, 7])),
            (4, numbers(self, &[3, 8, 7])),
        ];
        self.pool(METHOD, &methods);
        let thread = |fake: &Self, name: &str| {
            let mut out = Vec::new();
            fake.text(&mut out, "os");
            fake.text(&mut out, name);
            fake.long(&mut out, 0);
            out
        };
        let threads = [(1, thread(self, "main")), (2, thread(self, "GC Thread#0"))];
        self.pool(THREAD, &threads);
        let trace = |fake: &Self, cut: u8, frames: &[(i64, i64, i64)]| {
            let mut out = vec![cut];
            fake.int(&mut out, frames.len() as i64);
            for (method, line, kind) in frames {
                fake.long(&mut out, *method);
                fake.int(&mut out, *line);
                fake.int(&mut out, 0);
                fake.long(&mut out, *kind);
            }
            out
        };
        let traces = [
            (1, trace(self, 0, &[(1, 12, 1), (2, 3, 0)])),
            (2, trace(self, 0, &[(4, 0, 3), (3, 0, 2)])),
            (3, trace(self, 1, &[(1, 12, 1)])),
        ];
        self.pool(TRACE, &traces);
    }

    fn metadata(&self) -> Vec<u8> {
        let mut texts: Vec<String> = Vec::new();
        let mut place = |text: &str| {
            let found = texts.iter().position(|known| known == text);
            found.unwrap_or_else(|| {
                texts.push(text.to_owned());
                texts.len() - 1
            }) as i64
        };
        let mut tree = Vec::new();
        let mut element = |out: &mut Vec<u8>, name: &str, attributes: &[(&str, String)], children: i64| {
            self.int(out, place(name));
            self.int(out, attributes.len() as i64);
            for (key, value) in attributes {
                self.int(out, place(key));
                self.int(out, place(value));
            }
            self.int(out, children);
        };
        element(&mut tree, "root", &[], 2);
        element(&mut tree, "metadata", &[], SHAPES.len() as i64);
        for (number, name, fields) in SHAPES {
            let attributes = [("id", number.to_string()), ("name", name.to_owned())];
            element(&mut tree, "class", &attributes, fields.len() as i64);
            for (name, class, pooled, list, ticks) in fields {
                let mut attributes = vec![("name", (*name).to_owned()), ("class", class.to_string())];
                attributes.extend(pooled.then(|| ("constantPool", "true".to_owned())));
                attributes.extend(list.then(|| ("dimension", "1".to_owned())));
                element(&mut tree, "field", &attributes, i64::from(*ticks));
                if *ticks {
                    element(
                        &mut tree,
                        "annotation",
                        &[("class", "9".to_owned()), ("value", "TICKS".to_owned())],
                        0,
                    );
                }
            }
        }
        element(&mut tree, "region", &[("gmtOffset", "0".to_owned())], 0);
        let mut out = Vec::new();
        for _ in 0..3 {
            self.long(&mut out, 0);
        }
        self.int(&mut out, texts.len() as i64);
        for text in &texts {
            self.text(&mut out, text);
        }
        out.extend(tree);
        self.framed(0, &out)
    }

    /// The chunk.
    pub fn bytes(&self) -> Vec<u8> {
        let mut pools = Vec::new();
        for _ in 0..3 {
            self.long(&mut pools, 0);
        }
        pools.push(0);
        self.int(&mut pools, self.pool_count);
        pools.extend(&self.pools);
        let pools = self.framed(1, &pools);
        let metadata = self.metadata();
        let mut out = Vec::from(super::MAGIC);
        out.extend([0, 2, 0, 1]);
        let size = HEADER + self.events.len() + pools.len() + metadata.len();
        let at = HEADER + self.events.len();
        for value in [
            size as u64,
            at as u64,
            (at + pools.len()) as u64,
            self.start,
            1_000_000_000,
            7_000_000,
            1_000_000,
        ] {
            out.extend(value.to_be_bytes());
        }
        out.extend(u32::from(self.compressed).to_be_bytes());
        [out, self.events.clone(), pools, metadata].concat()
    }
}
