//! Chains of inlining from real JVMs, at every address of a program's code: each caller's line must be one that
//! calls the method inside it.

use super::tests::{blobs, frame, namer, start};
use emberscope_testkit::jdks::all_jdks;
use profiler_ebpf::JavaFrameTag;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

const CHAIN: &str = include_str!("../testdata/Chain.java");

/// Lines of calls, by (caller, callee).
type Calls = HashMap<(String, String), u32>;
/// Lines of methods.
type Inside = HashMap<String, HashSet<u32>>;

/// The lines that are marked.
fn marks() -> (Calls, Inside) {
    let (mut calls, mut inside) = (HashMap::new(), HashMap::<_, HashSet<_>>::new());
    for (line, text) in (1..).zip(CHAIN.lines()) {
        let Some((_, mark)) = text.split_once(" // ") else { continue };
        if let Some((from, to)) = mark.split_once('>') {
            calls.insert((from.to_owned(), to.to_owned()), line);
            inside.entry(from.to_owned()).or_default().insert(line);
        } else if let Some(method) = mark.strip_prefix("in ") {
            inside.entry(method.to_owned()).or_default().insert(line);
        }
    }
    (calls, inside)
}

#[test]
fn chains_of_inlining_are_those_of_the_program() {
    let (calls, inside) = marks();
    assert_eq!((calls.len(), inside.len()), (5, 6));
    for jdk in all_jdks() {
        for more in [&[][..], &["-XX:+DebugNonSafepoints"]] {
            let flags = [&["-XX:CompileCommand=inline,Chain.*", "-XX:-TieredCompilation"], more].concat();
            let java = start(&jdk, &flags, &["Chain"], Duration::from_millis(1000)).unwrap();
            let (mut namer, memory) = namer(&java);
            assert_eq!(namer.facts().debug_non_safepoints, !more.is_empty());
            let (nmethods, _) = blobs(&mut namer, &memory);
            let mut seen = HashMap::<Vec<String>, u32>::new();
            let mut batch = namer.batch(&memory);
            for head in nmethods {
                for pc in head.code.0..head.code.1 {
                    let leaf = frame(JavaFrameTag::Compiled, pc, head.compile_id, 0);
                    let Ok(named) = batch.name(&leaf) else { break };
                    let Some(names) =
                        named.iter().map(|f| f.name.strip_prefix("Chain.")).collect::<Option<Vec<_>>>()
                    else {
                        break;
                    };
                    if names.contains(&"main") {
                        break;
                    }
                    let chain: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
                    for (pair, lines) in names.windows(2).zip(named.windows(2)) {
                        let call = calls.get(&(pair[1].to_owned(), pair[0].to_owned()));
                        assert_eq!(call, Some(&lines[1].line), "{jdk:?} {named:?}");
                    }
                    assert!(named[0].line == 0 || inside[names[0]].contains(&named[0].line), "{named:?}");
                    assert!(named[0].approximate == more.is_empty() || named[0].line == 0, "{named:?}");
                    *seen.entry(chain).or_default() += 1;
                }
            }
            println!("{jdk:?} {more:?}: {seen:?}");
            let whole = ["d", "c", "b", "a", "run"].map(str::to_owned).to_vec();
            assert!(seen.contains_key(&whole), "{jdk:?} {seen:?}");
        }
    }
}
