//! The kernel side on this machine's kernel.
use emberscope::capture::{Capture, HostFeatures};
#[test]
fn smoke() {
    let features = HostFeatures::probe();
    for f in features.findings() { println!("{f:?}"); }
    println!("{features:?}");
    match Capture::smoke(&features) { Ok(r) => println!("{r:?}"), Err(e) => panic!("{e}") }
}
