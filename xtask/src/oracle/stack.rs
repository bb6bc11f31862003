//! Stacks as the daemon answers them (`/api/v1/flamegraph?format=json`): frames from the thread's root to the leaf.

use super::fold::fold;
use serde_json::Value;
use std::rc::Rc;

/// What starts a thread, or stands above what does: a stack with one of these is whole.
const STARTS: [&str; 8] = [
    "thread_native_entry",
    "java_start",
    "start_thread",
    "clone3",
    "__clone",
    "__libc_start_main",
    "JavaMain",
    "ThreadJavaMain",
];

/// Modules that stand for functions without a symbol where threads start.
const C_LIBRARY: [&str; 2] = ["libc.so", "libpthread"];

/// A frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// As in the answer: java, java-inlined, java-interpreted, stub, native, kernel, unknown.
    pub kind: String,
    /// Its name, [folded](fold).
    pub name: String,
    /// Source line; 0: not known.
    pub line: u64,
    /// Whether it rests on borrowed debug info.
    pub approximate: bool,
}

impl Frame {
    /// Whether it is a Java method with a name.
    pub fn is_java(&self) -> bool {
        matches!(self.kind.as_str(), "java" | "java-inlined" | "java-interpreted")
    }

    /// Whether it is code of the JIT or the interpreter without a Java name.
    pub fn is_nameless_java(&self) -> bool {
        let unnamed = ["[unloaded]", "[unknown: no perf map]", "[unknown: not in perf map]"];
        let jvm = ["[unknown: jvm not asked]", "[unknown: jvm not ready]", "[unknown: jvm unreadable]"];
        unnamed.contains(&self.name.as_str())
            || jvm.contains(&self.name.as_str())
            || self.kind == "stub" && self.name == "Interpreter"
    }
}

/// Samples with one stack.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    /// Outermost first; kernel frames last.
    pub frames: Vec<Rc<Frame>>,
    /// Values of the labels that it was grouped by, `key=value`.
    pub labels: Vec<String>,
    /// How many samples.
    pub count: usize,
}

impl Stack {
    /// Its user frames.
    pub fn user(&self) -> impl DoubleEndedIterator<Item = &Frame> {
        self.frames.iter().map(Rc::as_ref).filter(|frame| frame.kind != "kernel")
    }

    /// Its Java methods.
    pub fn java(&self) -> Vec<&Frame> {
        self.user().filter(|frame| frame.is_java()).collect()
    }

    /// Whether Java was running: the last user frame is the JIT's, the interpreter's or a stub of theirs.
    pub fn has_java_leaf(&self) -> bool {
        self.user()
            .next_back()
            .is_some_and(|leaf| leaf.is_java() || leaf.kind == "stub" || leaf.is_nameless_java())
    }

    /// Whether it reaches the function that started the thread. Where libjvm has no symbols: the C library's code
    /// that calls into it.
    pub fn is_rooted(&self) -> bool {
        let starts = |frame: &Frame| {
            let name = frame.name.split(['(', '@']).next().unwrap_or_default();
            frame.kind == "native" && STARTS.contains(&name)
        };
        let module = |frame: Option<&Frame>, modules: &[&str]| {
            frame.is_some_and(|frame| modules.iter().any(|module| frame.name.starts_with(module)))
        };
        let mut outer = self.user().skip_while(|frame| module(Some(frame), &C_LIBRARY));
        self.user().any(starts)
            || module(self.user().next(), &C_LIBRARY) && module(outer.next(), &["libjvm.so"])
    }

    /// User frames that lie on the stack: the inlined ones do not.
    pub fn physical(&self) -> usize {
        self.user().filter(|frame| frame.kind != "java-inlined").count()
    }

    /// The value of a label that it was grouped by.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find_map(|label| label.strip_prefix(key)?.strip_prefix('='))
    }
}

/// The stacks of an answer.
pub fn stacks(answer: &Value) -> Vec<Stack> {
    let nodes = answer["nodes"].as_array().map_or(&[][..], Vec::as_slice);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let frames: Vec<Rc<Frame>> = nodes
        .iter()
        .map(|node| {
            Rc::new(Frame {
                kind: text(&node["kind"]),
                name: fold(node["name"].as_str().unwrap_or_default()),
                line: node["line"].as_u64().unwrap_or(0),
                approximate: node["approximate"].as_bool().unwrap_or(false),
            })
        })
        .collect();
    let parent = |at: usize| nodes.get(at).and_then(|node| node["parent"].as_u64()).map(|at| at as usize);
    let mut found = Vec::new();
    for (id, node) in nodes.iter().enumerate() {
        let count = node["self"].as_u64().unwrap_or(0) as usize;
        if count == 0 {
            continue;
        }
        let mut stack = Stack { count, ..Stack::default() };
        let mut at = Some(id);
        while let Some((frame, id)) = at.and_then(|id| Some((frames.get(id)?, id))) {
            if frame.kind == "label" {
                stack.labels.push(frame.name.clone());
            } else {
                stack.frames.push(frame.clone());
            }
            // A parent stands before its children.
            at = parent(id).filter(|above| *above < id);
        }
        stack.frames.reverse();
        found.push(stack);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_flat_tree_becomes_stacks() {
        let answer = json!({"nodes": [
            {"parent": null, "name": "total", "kind": "label", "self": 0},
            {"parent": 0, "name": "thread_class=other", "kind": "label", "self": 0},
            {"parent": 1, "name": "thread_native_entry(Thread*)", "kind": "native", "self": 1},
            {"parent": 2, "name": "A$$Lambda$1/0x12.run", "kind": "java", "self": 0, "line": 7},
            {"parent": 3, "name": "A.inner", "kind": "java-inlined", "self": 5, "approximate": true},
            {"parent": 4, "name": "irq", "kind": "kernel", "self": 2},
        ]});
        let found = stacks(&answer);
        assert_eq!(found.iter().map(|s| s.count).collect::<Vec<_>>(), [1, 5, 2]);
        let java: Vec<&str> = found[1].java().iter().map(|f| f.name.as_str()).collect();
        assert_eq!(java, ["A$$Lambda.run", "A.inner"]);
        assert_eq!((found[1].label("thread_class"), found[1].physical()), (Some("other"), 2));
        assert!(found[2].has_java_leaf() && found[2].is_rooted() && !found[0].has_java_leaf());
        assert!(stacks(&json!({})).is_empty());
        let of = |names: &[&str]| Stack {
            frames: names
                .iter()
                .map(|n| Rc::new(Frame { name: (*n).to_owned(), ..Frame::default() }))
                .collect(),
            ..Stack::default()
        };
        assert!(of(&["libc.so.6+0x1", "libc.so.6", "libjvm.so+0x2"]).is_rooted());
        assert!(!of(&["libc.so.6", "libz.so"]).is_rooted() && !of(&["libjvm.so+0x2"]).is_rooted());
    }
}
