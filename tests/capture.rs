//! The kernel side on this machine's kernel.
use emberscope::capture::*;
use emberscope::model::*;
use std::time::*;
use std::collections::HashMap;
#[test]
fn dump() {
    let features = HostFeatures::probe();
    let pid: u32 = std::env::var("P").unwrap().parse().unwrap();
    let mut c = match Capture::start(&CaptureConfig{measure:true,hz:std::env::var("HZ").map(|s|s.parse().unwrap()).unwrap_or(99),..Default::default()}, &features) { Ok(r) => r, Err(e) => panic!("{e}") };
    let end = Instant::now() + Duration::from_secs(5);
    let mut out = vec![]; let mut reads=0;
    while Instant::now() < end { c.read(Duration::from_millis(250), &mut out).unwrap(); reads+=1; }
    println!("{} events in {reads} reads {:?} {:?}", out.len(), c.lost(), c.stats());
    let s = c.stats();
    for p in &s.programs { if p.run_count>0 {println!("{} {} runs {} ns", p.name, p.run_count, p.run_time_ns/p.run_count);} }
    println!("mean depth user {:.1} kernel {:.1}", s.user_frames as f64/s.samples as f64, s.kernel_frames as f64/s.samples as f64);
    let mut stacks = HashMap::new(); let mut n: HashMap<u64,u64> = HashMap::new(); let mut others: HashMap<u32,u64>=HashMap::new();
    for e in out { match e { RawEvent::Stack(s) => {stacks.insert(s.hash, s);}, RawEvent::Sample(s) => if s.pid==pid {*n.entry(s.stack).or_default()+=1; } else {*others.entry(s.pid).or_default()+=1;}, _=>{} } }
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let name = |a: u64| { for l in maps.lines() { let mut w=l.split_whitespace(); let (f,t)=w.next().unwrap().split_once('-').unwrap(); let (f,t)=(u64::from_str_radix(f,16).unwrap(),u64::from_str_radix(t,16).unwrap()); if a>=f&&a<t { let o=u64::from_str_radix(w.nth(1).unwrap(),16).unwrap(); return format!("{}+{:x}", w.nth(2).unwrap_or("anon").rsplit('/').next().unwrap(), a-f+o); } } format!("{a:x}") };
    let mut ends: HashMap<(StackEnd,usize,String),u64> = HashMap::new();
    for (h,c) in &n { if let Some(s)=stacks.get(h) { let k=s.user.len(); let tail: Vec<String> = s.user.iter().rev().take(4).rev().map(|f| name(f.value)).collect(); *ends.entry((s.end, if k<8 {k} else {99}, tail.join(" "))).or_default()+=c; } else { println!("missing {h:x}"); } }
    let mut v: Vec<_> = ends.into_iter().collect(); v.sort_by_key(|e| std::cmp::Reverse(e.1));
    for e in v.iter().take(25) { println!("{} {:?} {} | {}", e.1, e.0.0, e.0.1, e.0.2); }
    println!("{others:?}");
}
