//! Stacks of an answer, held against what a scene told.

use super::*;
use serde_json::json;

#[test]
fn stacks_are_held_against_what_was_told() {
    let line = r#"{"scene": "x", "from": 2, "until": 4, "stack": ["<module>", "A.f"]}"#;
    let scene = scene(line).unwrap();
    let node = |parent: Value, name: &str, kind: &str, own: u64| json!({"parent": parent, "name": name, "kind": kind, "self": own, "total": own});
    let answer = json!({"nodes": [
        node(Value::Null, "total", "label", 0),
        node(json!(0), "_start", "native", 1),
        node(json!(1), "<module> (a.py)", "python", 0),
        node(json!(2), "sum", "native", 0),
        node(json!(3), "A.f (a.py)", "python", 3),
        node(json!(4), "long_add", "native", 4),
    ]});
    let judged = Judged::in_answer(&answer, &scene);
    assert_eq!((judged.n, judged.rooted, judged.equal), (8, 7, 7));
    assert_eq!(judged.leaves["A.f"], 7);
    assert_eq!(judged.others, [(1, String::new())]);
}

#[test]
fn functions_of_the_library_are_held_against_what_was_told() {
    let told = ["<module>", "between", "python_oracle_calls", "burn"].map(str::to_owned).to_vec();
    let scene = Scene { name: "between".into(), range: (2, 4), stack: told, shares: BTreeMap::new() };
    let judged = |order: [(&str, &str); 5]| {
        let node = |(at, (name, kind)): (usize, (&str, &str))| {
            let (parent, own) = (at.checked_sub(1), if at == 4 { 3 } else { 0 });
            json!({"parent": parent, "name": name, "kind": kind, "self": own})
        };
        let nodes: Vec<Value> = order.into_iter().enumerate().map(node).collect();
        Judged::in_answer(&json!({ "nodes": nodes }), &scene).equal
    };
    let (module, between, burn) =
        (("<module> (a.py)", "python"), ("between (a.py)", "python"), ("burn (a.py)", "python"));
    let (call, calls) = (("ffi_call_unix64", "native"), ("python_oracle_calls", "native"));
    assert_eq!(judged([module, between, call, calls, burn]), 3);
    assert_eq!(judged([module, calls, between, call, burn]), 0);
    assert_eq!(judged([module, between, call, burn, call]), 0);
}

#[test]
fn the_halves_of_the_split_with_numpy() {
    let node = |name: &str, kind: &str, module: &str| json!({"name": name, "kind": kind, "module": module});
    let stack = |leaf: &str, native: Value| [node(leaf, "python", "/a.py"), native];
    let part = |stack: [Value; 2]| Part::Numpy.of(&stack.iter().collect::<Vec<_>>());
    let eval = || node("_PyEval_EvalFrameDefault", "native", "/usr/bin/python3.11");
    let loops = node("DOUBLE_remainder", "native", "/np/_multiarray_umath.cpython-311-x86_64-linux-gnu.so");
    assert_eq!(part(stack("numpy (a.py)", loops)).as_deref(), Some("numpy"));
    assert_eq!(part(stack("seventy (a.py)", eval())).as_deref(), Some("python"));
    assert_eq!(part(stack("numpy (a.py)", eval())), None);
}
