//! Tables with little room: those of a program that runs go for another's; it is walked by rules that the kernel has in its
//! cache still, or says why not; and they come back.

use super::stacks::{chains, shares};
use super::*;
use profiler_ebpf::SLAB_WORDS;

/// What the C program and Perl need together takes a fifth more.
const ROOM: usize = 216 << 10;
/// A table that was thrown out is not made again before ten seconds have passed.
const AGAIN: Duration = Duration::from_secs(11);

#[test]
fn a_table_that_was_thrown_out_comes_back() {
    let Some((features, _guard)) = host("eviction") else { return };
    let right = chains(10, "wm.s");
    let program = Running::start(Command::new(native()).args(["chain", "10"]));
    let other = Command::new("perl")
        .args(["-e", "$|=1; print qq(ready\\n); sleep 600"])
        .stdout(Stdio::piped())
        .spawn();
    let Ok(other) = other else { return skip("eviction", "no perl") };
    let mut other = Running { child: other, first_line: String::new() };
    let out = other.child.stdout.take().expect("piped");
    BufReader::new(out).read_line(&mut other.first_line).expect("a line");

    let limits = Limits { bytes: ROOM, in_use: Duration::ZERO, ..Limits::default() };
    let mut watch = Watch::begin(&features, limits, |_| {});
    learn(&mut watch.keeper, program.pid());
    let seen = watch.see(program.pid());
    let (rooted, exact) = shares("alone", &program, &right, &seen);
    assert!(seen.all > 100 && rooted >= 99.5 && exact >= 99.5, "{rooted:.2} % rooted, {exact:.2} % right");

    learn(&mut watch.keeper, other.pid());
    let counts = watch.keeper.counts();
    println!("    beside the other: {counts:?}, {} bytes in the kernel", watch.keeper.walker().0.bytes());
    assert!(counts.evicted > 0 && counts.bytes <= ROOM, "{counts:?}");
    let seen = watch.see(program.pid());
    let (rooted, _) = shares("thrown out", &program, &right, &seen);
    let told = seen.share("end and say that there is no table", |s| s.end == StackEnd::TableRefused);
    assert!(seen.all > 100 && rooted + told >= 99.0, "{rooted:.2} % rooted, {told:.2} % say why not");

    drop(other);
    std::thread::sleep(AGAIN);
    watch.keeper.sweep(Path::new("/proc"));
    assert!(watch.keeper.used(program.pid()), "it lacks a table");
    learn(&mut watch.keeper, program.pid());
    let seen = watch.see(program.pid());
    let (rooted, exact) = shares("back again", &program, &right, &seen);
    assert!(seen.all > 100 && rooted >= 99.5 && exact >= 99.5, "{rooted:.2} % rooted, {exact:.2} % right");
    let counts = watch.keeper.counts();
    let slabs = watch.keeper.walker().0.bytes();
    println!("    at the end: {counts:?}, {slabs} bytes in the kernel");
    assert!(counts.bytes <= ROOM && slabs <= (ROOM + SLAB_WORDS as usize * 4) as u64, "{counts:?}, {slabs}");
}
