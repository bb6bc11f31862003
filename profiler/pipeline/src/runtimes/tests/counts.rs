//! What a process counts of itself, and the sums of it.

use super::*;

#[test]
fn what_a_process_counts_is_summed_from_the_first_look_on() {
    let mut scene = Scene::new(true);
    let key = scene.target.key;
    let counted = |scene: &Scene| scene.processes.counted().collect::<BTreeMap<_, _>>();
    let none =
        BTreeMap::from_iter(["compilations", "deoptimizations", "never_told", "turns"].map(|name| (name, 0)));
    assert_eq!(counted(&scene), none, "of all runtimes, before anything is counted");
    scene.settle();
    let until = Instant::now() + Duration::from_secs(30);
    while scene.processes.count(key, "turns").is_none() {
        assert!(Instant::now() < until, "it is not asked");
        let Scene { processes, registry, kernel, threads, symbolizer, .. } = &mut scene;
        processes.tick(registry, kernel, threads, symbolizer);
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(
        (scene.processes.count(key, "turns"), scene.processes.count(key, "never_told")),
        (Some(42), None)
    );
    assert_eq!(counted(&scene), none, "what it had counted before is in no sum");

    let sum = |scene: &Scene| counted(scene)["turns"];
    scene.processes.take_counts(key, vec![("turns", 50)]);
    scene.processes.take_counts(key, vec![]);
    assert_eq!(
        (sum(&scene), scene.processes.count(key, "turns")),
        (8, Some(50)),
        "a failed look changes nothing"
    );
    scene.processes.take_counts(key, vec![("turns", 3)]);
    assert_eq!(sum(&scene), 8, "it began anew");
    scene.processes.take_counts(key, vec![("turns", 7)]);
    assert_eq!(sum(&scene), 12);
    scene.processes.take_counts(key, vec![("turns", u64::MAX)]);
    assert_eq!(sum(&scene), 12, "it lies");
    scene.processes.on_exec(key, &mut scene.kernel);
    assert_eq!((sum(&scene), scene.processes.count(key, "turns")), (12, None));
}
