//! How true the methods are that an interrupted instruction is given to: pairs of inlined methods with half of
//! the time each by construction, sampled by perf events, for the rules that there are.

use super::code::Code;
use super::tests::{blobs, namer, start};
use super::*;
use crate::target::jdks::jdks;
use std::collections::HashMap;
use std::process::Command;
use std::time::Duration;

/// How often each address of user code of a process was interrupted.
fn sample(pid: u32, seconds: u32) -> Option<Vec<(u64, u32)>> {
    let program = format!(
        "profile:hz:999 /pid == {pid}/ {{ @[reg(\"ip\")] = count(); }} interval:s:{seconds} {{ exit(); }}"
    );
    let out = Command::new("bpftrace").args(["-e", &program]).output().ok()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let one = |line: &str| {
        let (ip, count) = line.strip_prefix("@[")?.split_once("]: ")?;
        // Printed as a signed number.
        Some((ip.parse::<i64>().ok()? as u64, count.trim().parse().ok()?))
    };
    Some(text.lines().filter_map(one).collect())
}

#[test]
#[ignore = "a measurement: needs bpftrace and a quiet machine"]
fn halves_of_inlined_methods() {
    for jdk in jdks() {
        for which in ["loop", "short", "turn"] {
            for more in [&[][..], &["-XX:+DebugNonSafepoints"]] {
                let inline =
                    ["-XX:CompileCommand=inline,Split.*", "-XX:CompileCommand=dontinline,Split.main"];
                let never = ["-XX:CompileCommand=dontinline,Split.run"];
                let flags = [&inline[..], &never, more].concat();
                let java = start(&jdk, &flags, &["Split", which], Duration::from_millis(500)).unwrap();
                let Some(samples) = sample(java.pid(), 5) else { return eprintln!("skipped: no bpftrace") };
                let (mut namer, memory) = namer(&java);
                let (nmethods, _) = blobs(&mut namer, &memory);
                let (mut all, mut above, mut shape) = (0, HashMap::new(), HashMap::new());
                for head in nmethods {
                    let inside = |(ip, _): &&(u64, u32)| (head.code.0..head.code.1).contains(ip);
                    let here: Vec<_> = samples.iter().filter(inside).copied().collect();
                    if here.is_empty() {
                        continue;
                    }
                    let code = Code::read(&memory, &namer.code_layout, head).unwrap();
                    let leaf = |namer: &Namer, code: &Code, ip| {
                        let chain = code.scope(ip, false).and_then(|(scope, _)| code.chain(scope));
                        let address = chain.map_or(code.head.method, |c| code.method(c[0].method).unwrap());
                        let layout = &namer.method_layout;
                        let excluded = namer.code_layout.excluded;
                        Method::read(&memory, layout, excluded, address).unwrap().name.to_string()
                    };
                    for (ip, count) in &here {
                        all += count;
                        *above.entry(leaf(&namer, &code, *ip)).or_insert(0) += count;
                    }
                    if let Some(structure) = code.shape(&memory) {
                        code.set_structure(structure);
                    }
                    for (ip, count) in &here {
                        *shape.entry(leaf(&namer, &code, *ip)).or_insert(0) += count;
                    }
                }
                let share = |counts: &HashMap<String, u32>, letter: &str| {
                    let name = format!("Split.{which}{letter}");
                    f64::from(counts.get(&name).copied().unwrap_or(0)) / f64::from(all)
                };
                let of = |counts| [share(counts, "A"), share(counts, "B")];
                println!(
                    "{} {which} {more:?}: {all} samples; next above {:.3?}, by structure {:.3?}",
                    namer.facts().release,
                    of(&above),
                    of(&shape),
                );
            }
        }
    }
}
