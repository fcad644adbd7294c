//! Secondary indexes: shared, dropped, and built aside while commits run.

use super::support::*;
use crate::store::{IndexError, IndexId, IndexSpec, Snapshot, Store, TableId};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};
use tidegate_wire::model::{Direction, Order};

fn spec(store: &Store, column: usize, direction: Direction) -> IndexSpec {
    let table = store.snapshot().table_id("items").expect("items");
    IndexSpec { table, columns: vec![(column, Order::with_default_nulls(direction))] }
}

/// The index holds just what a fresh build from the same snapshot holds.
fn assert_fresh(snapshot: &Snapshot, id: IndexId, spec: &IndexSpec) {
    let table = snapshot.table(spec.table).expect("items");
    let index = table.index(id).expect("the index is there");
    let entries = |tree: &crate::store::tree::Tree<_>| -> Vec<_> {
        tree.iter()
            .map(|(key, row): (&[u8], &tidegate_wire::model::Row)| (key.to_vec(), row.clone()))
            .collect()
    };
    assert_eq!(entries(index), entries(&table.build_index(spec)));
}

#[test]
fn an_index_is_shared_and_goes_with_its_last_user() {
    let store = open(None);
    write(&store, &[insert(1, "b"), insert(2, "a")]);
    let (start, receiver) = store.listen(16);
    let name = spec(&store, 1, Direction::Asc);
    let id = store.ensure_index_blocking(name.clone()).expect("open").expect("built");
    assert_eq!(store.ensure_index_blocking(name.clone()).expect("open"), Ok(id));
    let other = store.ensure_index_blocking(spec(&store, 1, Direction::Desc)).expect("open").expect("built");
    assert_ne!(id, other);
    let published = receiver.try_recv().expect("a delta");
    assert!(Arc::ptr_eq(&published.from, &start) && published.is_empty());
    assert_eq!(published.to.cv(), start.cv());
    assert!(published.from.table(name.table).expect("items").index(id).is_none());
    assert_fresh(&published.to, id, &name);
    assert!(Arc::ptr_eq(&store.snapshot_at(start.cv()).expect("kept"), &store.snapshot()));

    write(&store, &[update(1, "0"), delete(2), insert(3, "c")]);
    assert_fresh(&store.snapshot(), id, &name);
    let has = |store: &Store| store.snapshot().table(name.table).expect("items").index(id).is_some();
    store.release_index(id);
    write(&store, &[insert(4, "d")]);
    assert!(has(&store), "one user is left");
    store.release_index(id);
    // The release is done at the end of a group, so by the second commit after it.
    write(&store, &[insert(5, "d")]);
    write(&store, &[insert(6, "d")]);
    assert!(!has(&store));
    let again = store.ensure_index_blocking(name.clone()).expect("open").expect("built");
    assert_ne!(again, id, "ids are not used again");
    let deltas: Vec<_> = receiver.try_iter().collect();
    assert!(deltas.windows(2).all(|pair| Arc::ptr_eq(&pair[0].to, &pair[1].from)));
}

#[test]
fn what_cannot_be_indexed_is_refused() {
    let store = open(None);
    let unknown = IndexSpec { table: TableId(99), columns: vec![] };
    assert_eq!(store.ensure_index_blocking(unknown).expect("open"), Err(IndexError::UnknownTable(99)));
    let error =
        store.ensure_index_blocking(spec(&store, 3, Direction::Asc)).expect("open").expect_err("no column");
    assert_eq!(error, IndexError::UnknownColumn { table: "items".to_owned(), column: 3 });
}

#[test]
fn an_index_built_aside_while_commits_run_equals_a_fresh_build() {
    let mut options = options(None);
    options.index_inline_rows_max = 10;
    let store = open_with(options);
    let rows: Vec<String> = (0..200)
        .map(|at| (0..50).map(|id| insert(at * 50 + id, "m")).collect::<Vec<_>>().join(","))
        .collect();
    write(&store, &rows);
    let (start, receiver) = store.listen(4);
    let specs: Vec<_> =
        [(1, Direction::Asc), (1, Direction::Desc), (2, Direction::Asc), (0, Direction::Desc)]
            .map(|(column, direction)| spec(&store, column, direction))
            .into();
    let done = AtomicBool::new(false);
    let ids: Vec<IndexId> = thread::scope(|scope| {
        let done = &done;
        let watcher = scope.spawn(move || {
            let mut at = start;
            let mut indexes_seen = 0;
            loop {
                match receiver.recv_timeout(Duration::from_millis(20)) {
                    Ok(delta) => {
                        assert!(Arc::ptr_eq(&delta.from, &at));
                        at = Arc::clone(&delta.to);
                        indexes_seen += usize::from(delta.from.cv() == delta.to.cv());
                    }
                    Err(_) if done.load(Ordering::SeqCst) && receiver.is_empty() => return indexes_seen,
                    Err(_) => {}
                }
            }
        });
        // More indexes than are built at one time, each asked for twice.
        let builders: Vec<_> = (specs.iter().chain(&specs))
            .map(|spec| (store.clone(), spec.clone()))
            .map(|(store, spec)| {
                scope.spawn(move || store.ensure_index_blocking(spec).expect("open").expect("built"))
            })
            .collect();
        let mut number = 0_i64;
        while !builders.iter().all(|builder| builder.is_finished()) || number < 300 {
            let id = number * 7 % 9_000;
            let round = number / 9_000;
            let commit = match number % 3 {
                0 => update(id, &format!("u{number}")),
                1 => format!("{},{}", update(id, "x"), update(id, &format!("v{number}"))),
                _ => format!("{},{}", delete(id), insert(id, &format!("w{round}"))),
            };
            assert_eq!(write(&store, &[commit]).refused, None);
            number += 1;
        }
        let ids: Vec<_> = builders.into_iter().map(|builder| builder.join().expect("no panic")).collect();
        for (id, spec) in ids.iter().zip(&specs) {
            assert_fresh(&store.snapshot(), *id, spec);
        }
        done.store(true, Ordering::SeqCst);
        assert_eq!(watcher.join().expect("no gap"), specs.len());
        ids
    });
    assert_eq!(ids[..4], ids[4..], "each index is shared");
}
