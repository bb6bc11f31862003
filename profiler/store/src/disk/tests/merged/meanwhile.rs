//! Questions while blocks are merged.

use super::*;

#[test]
fn a_query_that_began_before_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let plain = written(dir.path(), 5);
    let store = open(dir.path());
    let old: Vec<Arc<Block>> = read(&store.shared.held).blocks.clone();
    drop(store);
    let store = merged(merging(dir.path()));
    drop(store);
    let store = DiskStore { shared: open(dir.path()).shared.clone(), threads: Mutex::default() };
    // As it was before the merge: what is read of them fails.
    write(&store.shared.held).blocks.clone_from(&old);
    let new = Arc::new(Block::open(&blocks(dir.path()).remove(0)).unwrap());
    assert!(old[0].view(1).is_err());
    store.shared.replace(new, &old);
    for block in &old {
        let error = block.view(1).map(drop).unwrap_err();
        let anew = matches!(&error, StoreError::Unreadable { path, .. } if path.as_os_str().is_empty());
        assert!(anew, "{error}");
    }
    assert_eq!(block_count(&store), (1, 0));
    assert_same(&plain, &store, "begun anew");
}

#[test]
fn many_ask_while_blocks_are_merged() {
    let dir = tempfile::tempdir().unwrap();
    let plain = written(dir.path(), 12);
    let expected = samples(&plain);
    let store = DiskStore::open(DiskStoreConfig { cache_bytes: 1, ..merging(dir.path()) }).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..20).for_each(|_| assert_eq!(samples(&store), expected)));
        }
        store.settle();
    });
    store.settle();
    assert_eq!(block_count(&store), (1, 0));
}
