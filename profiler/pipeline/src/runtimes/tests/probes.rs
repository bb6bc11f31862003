//! Probes on and off, where nobody may wait for it.

use super::*;

const TENANT: Tenant = Tenant { spark: true, uid: 7, group: 0 };
const FILE: FileId = FileId { dev: 1, ino: 1 };
const OTHER: FileId = FileId { dev: 1, ino: 2 };

/// With a file that nobody has mapped for this long.
fn unused_for(age: Duration) -> Processes {
    let mut processes = Processes::new(Readers::new(Runtimes::new(Vec::new())));
    processes.probed.maps(FILE, TENANT);
    processes.probed.are_used(&HashSet::new(), Instant::now().checked_sub(age).unwrap());
    processes
}

#[test]
fn probes_that_nobody_needs_go_while_nobody_waits_for_it() {
    let mut kernel = FakeKernel { is_busy: true, ..FakeKernel::default() };
    let mut processes = unused_for(Duration::from_secs(60));
    processes.drop_probes(&mut kernel);
    assert_eq!(kernel.taken, []);
    kernel.is_busy = false;
    processes.drop_probes(&mut kernel);
    assert_eq!(kernel.taken, [FILE]);
    assert!(!processes.probed.contains(FILE));

    let mut processes = unused_for(Duration::from_secs(1));
    processes.drop_probes(&mut kernel);
    assert_eq!(kernel.taken, [FILE], "the next JVM may map it");
}

#[test]
fn a_file_has_a_place_when_nobody_has_to_wait_for_that() {
    let Scene { registry, .. } = Scene::new(true);
    let mut kernel = FakeKernel { is_full: true, is_busy: true, going: Some(OTHER), ..FakeKernel::default() };
    let mut processes = unused_for(Duration::ZERO);
    let mut has_place = |id, kernel: &mut FakeKernel| processes.has_place(TENANT, id, kernel, &registry);
    assert!(has_place(FILE, &mut kernel), "it has its probes");
    assert!(!has_place(OTHER, &mut kernel), "its old ones are still there");
    kernel.going = None;
    assert!(!has_place(OTHER, &mut kernel), "others go first");
    kernel.is_busy = false;
    assert!(has_place(OTHER, &mut kernel));
    assert_eq!(kernel.taken, [FILE], "which nobody maps");
    kernel.is_full = false;
    assert!(has_place(OTHER, &mut kernel));
}
