//! Commits, tables, mutations, idempotency, durability, listeners.

use super::support::*;
use crate::store::{
    CommitErrorKind, CommitProblem, Commits, Delta, Mutation, MutationEffect, Store, StoreClosed,
    system_tables,
};
use proptest::prelude::*;
use std::{sync::Arc, sync::atomic::Ordering, thread};
use tidegate_wire::model::{Cv, Row, Value};

fn names(store: &Store) -> Vec<String> {
    let snapshot = store.snapshot();
    let table = snapshot.table(snapshot.table_id("items").expect("items")).expect("items");
    table.rows().iter().map(|(_, row)| format!("{:?}", row.cell(1).to_value())).collect()
}

#[test]
fn commits_stop_at_the_first_refusal_and_those_before_stay() {
    let store = open(None);
    let first = store.snapshot().cv();
    let outcome = write(&store, &[insert(1, "a"), insert(2, "b"), insert(1, "c"), insert(3, "d")]);
    assert_eq!((outcome.applied, outcome.cv), (2, Cv(first.0 + 2)));
    let error = outcome.refused.expect("a refusal");
    assert_eq!(error.code(), CommitErrorKind::Conflict);
    assert_eq!(error.to_string(), "ops[0]: table items, key {\"id\":1}: a row with this key exists already");
    assert_eq!(store.snapshot().cv(), outcome.cv);
    assert_eq!(names(&store).len(), 2);

    for (ops, key) in [(update(9, "x"), "{\"id\":9}"), (delete(9), "{\"id\":9}")] {
        let outcome = write(&store, &[ops]);
        assert_eq!((outcome.applied, outcome.cv), (0, store.snapshot().cv()));
        let message = outcome.refused.expect("a refusal").to_string();
        assert!(message.contains(key) && message.contains("no row has this key"), "{message}");
    }
    let pair = r#"{"delete":"pairs","key":{"a":1,"b":"x"}}"#.to_owned();
    let message = write(&store, &[pair]).refused.expect("a refusal").to_string();
    assert!(message.contains("{\"b\":\"x\",\"a\":1}"), "a key is shown in its own order: {message}");
}

#[test]
fn a_refused_commit_leaves_nothing() {
    let store = open(None);
    write(&store, &[insert(1, "a")]);
    let before = contents(&store.snapshot());
    for ops in [
        format!("{},{},{}", insert(2, "b"), update(1, "z"), insert(1, "c")),
        format!("{},{}", delete(1), delete(1)),
        format!("{},{}", insert(2, "b"), update(7, "z")),
    ] {
        let outcome = write(&store, &[ops]);
        let error = outcome.refused.expect("a refusal");
        assert!(error.place.op.expect("an operation") > 0);
        assert_eq!(contents(&store.snapshot()), before);
    }
}

#[test]
fn operations_see_earlier_ones_of_their_commit() {
    let store = open(None);
    write(&store, &[insert(1, "a")]);
    let ops = [delete(1), insert(1, "b"), update(1, "c"), insert(2, "x"), delete(2)].join(",");
    let (_, receiver) = store.listen(8);
    assert_eq!(write(&store, &[ops]).refused, None);
    let delta = receiver.try_recv().expect("a delta");
    assert_eq!(delta.len(), 1, "netted per key");
    assert_eq!(names(&store), ["Text(\"c\")"]);
}

#[test]
fn each_commit_takes_one_cv_also_one_that_changes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(Some(dir.path()));
    let first = store.snapshot().cv();
    assert_eq!(first, Cv(1), "the tables took one");
    let (_, receiver) = store.listen(8);
    let nothing =
        [insert(1, "a"), update(1, "a"), String::new(), format!("{},{}", insert(2, "b"), delete(2))];
    assert_eq!(write(&store, &nothing).cv, Cv(5));
    let deltas: Vec<_> = receiver.try_iter().map(|delta| (delta.to.cv().0, delta.len())).collect();
    assert_eq!(deltas, [(2, 1), (3, 0), (4, 0), (5, 0)]);
    store.close();
    assert_eq!(open(Some(dir.path())).snapshot().cv(), Cv(5));
}

#[test]
fn rows_at_the_limit_cannot_grow_by_update() {
    let mut options = options(None);
    options.limits.row_bytes_max = 64;
    let store = open_with(options);
    write(&store, &[insert(1, "a")]);
    let error = write(&store, &[update(1, &"x".repeat(80))]).refused.expect("a refusal");
    assert_eq!(error.code(), CommitErrorKind::BadMessage);
    assert!(error.to_string().contains("{\"id\":1}"), "{error}");
}

#[test]
fn tables_are_created_once_and_contradictions_change_nothing() {
    let store = open(None);
    let cv = store.snapshot().cv();
    let again = store.create_tables_blocking(tables()).expect("open").expect("they agree");
    assert_eq!((again.cv, again.created), (cv, 0));

    let mut reordered = tables();
    reordered[0].columns.swap(1, 2);
    assert_eq!(store.create_tables_blocking(reordered).expect("open").expect("same columns").created, 0);

    let mut new = tables()[0].clone();
    new.name = "more".to_owned();
    type Change = fn(&mut tidegate_wire::model::TableSchema);
    let changes: [(Change, &str); 5] = [
        (
            |table| table.columns[1].ty = tidegate_wire::model::ColumnType::Int8,
            "column name is text, not int8",
        ),
        (|table| table.columns[1].nullable = true, "column name is not nullable"),
        (|table| drop(table.columns.pop()), "has a column n"),
        (|table| table.columns[2].name = "other".to_owned(), "no column other"),
        (|table| table.primary_key = vec![1], "primary key is (id)"),
    ];
    for (change, text) in changes {
        let mut contradicting = tables()[0].clone();
        change(&mut contradicting);
        let declared = vec![new.clone(), contradicting];
        let error = store.create_tables_blocking(declared).expect("open").expect_err(text);
        assert_eq!(error.code(), CommitErrorKind::Conflict);
        let message = error.to_string();
        assert!(message.contains("table items") && message.contains(text), "{message}");
        assert_eq!(store.snapshot().cv(), cv);
        assert_eq!(store.snapshot().table_id("more"), None);
    }
    let made = store.create_tables_blocking(vec![new.clone(), new]).expect("open").expect("created");
    assert_eq!((made.cv, made.created), (cv.next(), 1));

    let mut broken = tables()[0].clone();
    (broken.name, broken.primary_key) = ("broken".to_owned(), vec![]);
    let error = store.create_tables_blocking(vec![broken]).expect("open").expect_err("no key");
    assert_eq!(error.code(), CommitErrorKind::BadMessage);
}

fn mutate(store: &Store, client: &str, id: u64, ops: &str) -> MutationEffect {
    let line = format!("{{\"ops\":[{ops}]}}");
    let ops = crate::store::Draft::parse(line.as_bytes(), &store.snapshot(), &Default::default());
    let mutation = Mutation { client_id: client.to_owned(), id, ops };
    store.mutate_blocking(mutation).expect("open").effect
}

#[test]
fn mutations_apply_once_in_order_and_refusals_advance_the_id() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(Some(dir.path()));
    let last = |store: &Store, client: &str| system_tables::last_mutation_id(&store.snapshot(), client);
    let (_, receiver) = store.listen(64);
    assert_eq!(mutate(&store, "c", 1, &insert(1, "a")), MutationEffect::Applied);
    let delta = receiver.try_recv().expect("one commit");
    assert_eq!(delta.tables.len(), 2, "the write and the id are one commit");
    assert!(receiver.try_recv().is_err());

    let cv = store.snapshot().cv();
    assert_eq!(mutate(&store, "c", 1, &insert(2, "b")), MutationEffect::Repeated);
    let MutationEffect::NotTaken(error) = mutate(&store, "c", 3, &insert(2, "b")) else { panic!("a gap") };
    assert_eq!(error.code(), CommitErrorKind::Conflict);
    assert!(
        error.to_string().contains("2 comes next") || error.to_string().contains("next one is 2"),
        "{error}"
    );
    for (client, id) in [("", 1), ("c\0", 1), ("c", 0)] {
        assert!(matches!(mutate(&store, client, id, ""), MutationEffect::NotTaken(_)), "{client:?} {id}");
    }
    assert_eq!((store.snapshot().cv(), last(&store, "c")), (cv, 1), "none of these takes a cv");

    // Refused by the rows, then by resolving; the operations before the refused one leave nothing.
    let ops = format!("{},{}", insert(2, "b"), insert(1, "c"));
    let MutationEffect::Refused(conflict) = mutate(&store, "c", 2, &ops) else { panic!("a refusal") };
    assert_eq!((conflict.code(), conflict.place.op), (CommitErrorKind::Conflict, Some(1)));
    let MutationEffect::Refused(error) = mutate(&store, "c", 3, r#"{"delete":"none","key":{}}"#) else {
        panic!("a refusal")
    };
    assert_eq!(error.code(), CommitErrorKind::UnknownTable);
    assert_eq!((store.snapshot().cv().0, last(&store, "c"), names(&store).len()), (cv.0 + 2, 3, 1));
    let changed: Vec<_> = receiver.try_iter().map(|delta| (delta.len(), delta.tables[0].table)).collect();
    assert_eq!(changed, [(1, system_tables::CLIENT_MUTATIONS); 2]);

    // Whoever did not hear of a refusal hears of it now, whatever it sends under that id.
    assert_eq!(mutate(&store, "c", 2, &insert(7, "g")), MutationEffect::Refused(conflict));
    assert_eq!(mutate(&store, "c", 1, ""), MutationEffect::Repeated);
    assert_eq!(store.snapshot().cv().0, cv.0 + 2);

    assert_eq!(mutate(&store, "other", 1, ""), MutationEffect::Applied);
    assert_eq!(
        mutate(&store, "other", 2, &insert(1, "a")).error().map(|it| it.code()),
        Some(CommitErrorKind::Conflict)
    );
    store.close();
    let store = open(Some(dir.path()));
    assert_eq!((last(&store, "c"), last(&store, "other"), last(&store, "none")), (3, 2, 0));
    assert_eq!(
        mutate(&store, "c", 3, &insert(5, "b")),
        MutationEffect::Repeated,
        "refusals are not kept on disk"
    );
    assert_eq!(mutate(&store, "c", 4, &insert(5, "b")), MutationEffect::Applied);
}

#[test]
fn a_repeated_body_is_a_no_op_with_the_same_answer() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut store = open(Some(dir.path()));
    let body = [insert(1, "a"), insert(2, "b"), insert(3, "c")];
    let outcome = write_tagged(&store, &body, "k", 7, 0);
    assert_eq!((outcome.applied, &outcome.refused), (3, &None));
    let refused_body = [insert(4, "d"), insert(1, "x"), insert(5, "e")];
    let refusal = write_tagged(&store, &refused_body, "r", 8, 0);
    assert_eq!((refusal.applied, refusal.cv), (1, outcome.cv.next()));
    let all_refused = write_tagged(&store, &[insert(1, "x")], "z", 9, 0);
    assert_eq!((all_refused.applied, all_refused.cv), (0, refusal.cv));
    // The rows that made the refusals go away; the answers stay.
    let after = write(&store, &[delete(1), delete(2)]).cv;
    for reopened in [false, true] {
        assert_eq!(write_tagged(&store, &body, "k", 7, 0), outcome);
        for (body, key, hash, first) in
            [(&refused_body[..], "r", 8, &refusal), (&[insert(1, "x")], "z", 9, &all_refused)]
        {
            let again = write_tagged(&store, body, key, hash, 0);
            assert_eq!((again.applied, again.cv), (first.applied, first.cv), "{key} {reopened}");
            let [again, first] =
                [again.refused, first.refused.clone()].map(|error| error.expect("a refusal"));
            assert_eq!((again.code(), again.to_string()), (first.code(), first.to_string()));
            let entry = store.idempotency_entry(key).expect("remembered");
            assert_eq!(entry.refused.expect("a refusal").to_string(), first.to_string());
        }
        let other = write_tagged(&store, &[insert(9, "y")], "k", 70, 0);
        assert_eq!(other.refused.expect("another body").code(), CommitErrorKind::Conflict);
        assert_eq!(store.snapshot().cv(), after, "nothing was written");
        store.close();
        store = open(Some(dir.path()));
    }
}

#[test]
fn a_body_cut_short_is_continued_from_what_is_durable() {
    let dir = tempfile::tempdir().expect("a directory");
    let body: Vec<String> = (0..5).map(|id| insert(id, "a")).collect();
    let store = open(Some(dir.path()));
    // The process dies after two of five commits.
    let half = write_tagged(&store, &body[..2], "k", 7, 0);
    store.close();
    let store = open(Some(dir.path()));
    let entry = store.idempotency_entry("k").expect("remembered");
    assert_eq!((entry.applied, entry.cv, entry.refused), (2, half.cv, None));
    let gap = write_tagged(&store, &body[3..], "k", 7, 3).refused.expect("a gap in the body");
    assert_eq!(gap.code(), CommitErrorKind::NotReady);
    // The whole body again, or just its rest: only what is missing is done.
    let whole = write_tagged(&store, &body[..4], "k", 7, 0);
    assert_eq!((whole.applied, whole.cv, whole.refused), (4, Cv(half.cv.0 + 2), None));
    let rest = write_tagged(&store, &body[4..], "k", 7, 4);
    assert_eq!((rest.applied, rest.cv), (1, Cv(half.cv.0 + 3)));
    assert_eq!(store.idempotency_entry("k").expect("remembered").applied, 5);
    assert_eq!(names(&store).len(), 5);
}

#[test]
fn a_line_refused_before_the_store_ends_its_body_durably() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(Some(dir.path()));
    let send = |store: &Store, drafts, ordinal| {
        let idempotency = Some(crate::store::IdempotencyTag { key: "k".into(), body_hash: 7, ordinal });
        let then_refused = Some(CommitProblem::Malformed("no".to_owned()).into());
        store.commit_blocking(Commits { drafts, then_refused, idempotency }).expect("open")
    };
    let body = drafts(&store, &[insert(1, "a")]);
    let first = send(&store, body.clone(), 0);
    assert_eq!(
        (first.applied, first.refused.as_ref().map(|error| error.code())),
        (1, Some(CommitErrorKind::BadMessage))
    );
    store.close();
    let store = open(Some(dir.path()));
    let entry = store.idempotency_entry("k").expect("remembered");
    assert_eq!((entry.applied, entry.cv, entry.refused.is_some()), (1, first.cv, true));
    let again = send(&store, body, 0);
    assert_eq!((again.applied, again.cv), (first.applied, first.cv));
}

#[test]
fn acknowledged_is_durable() {
    let dir = tempfile::tempdir().expect("a directory");
    let (store, full) = open_failing(dir.path());
    write(&store, &[insert(1, "a")]);
    let before = contents(&store.snapshot());
    let (_, receiver) = store.listen(64);

    full.store(true, Ordering::SeqCst);
    let outcome = write_tagged(&store, &[insert(2, "b"), insert(3, "c")], "k", 1, 0);
    assert_eq!((outcome.applied, outcome.cv), (0, store.snapshot().cv()));
    let error = outcome.refused.expect("a refusal");
    assert_eq!(error.code(), CommitErrorKind::NotReady);
    for text in ["until there is space", "/data/log/1.log", "no space left on device"] {
        assert!(error.to_string().contains(text), "{error}");
    }
    let effect = mutate(&store, "c", 1, &insert(2, "b"));
    assert!(matches!(effect, MutationEffect::NotTaken(error) if error.code() == CommitErrorKind::NotReady));
    let mut table = tables().remove(0);
    table.name = "more".to_owned();
    let error = store.create_tables_blocking(vec![table.clone()]).expect("open").expect_err("full");
    assert_eq!(error.code(), CommitErrorKind::NotReady);
    // Reads and refusals that write nothing go on.
    assert_eq!(write(&store, &[insert(1, "x")]).refused.expect("exists").code(), CommitErrorKind::Conflict);
    assert_eq!(contents(&store.snapshot()), before);
    assert_eq!(store.idempotency_entry("k"), None);
    assert!(receiver.try_recv().is_err(), "nothing is published");

    full.store(false, Ordering::SeqCst);
    let outcome = write_tagged(&store, &[insert(2, "b"), insert(3, "c")], "k", 1, 0);
    assert_eq!((outcome.applied, outcome.refused), (2, None));
    assert_eq!(mutate(&store, "c", 1, &insert(4, "d")), MutationEffect::Applied);
    store.create_tables_blocking(vec![table]).expect("open").expect("space again");
    let cvs: Vec<u64> = receiver.try_iter().map(|delta| delta.to.cv().0).collect();
    assert_eq!(cvs, [3, 4, 5, 6], "log_is_gapless");
    let after = contents(&store.snapshot());
    store.close();
    assert_eq!(contents(&open(Some(dir.path())).snapshot()), after);
}

#[test]
fn a_long_body_keeps_what_was_durable_when_the_disk_fills() {
    let dir = tempfile::tempdir().expect("a directory");
    let (store, full) = open_failing(dir.path());
    let body: Vec<String> = (0..3_000).map(|id| insert(id, "a")).collect();
    let drafts = drafts(&store, &body);
    let (_, receiver) = store.listen(1);
    // The listener's queue of one holds the store within the first group until the disk is full.
    let outcome = thread::scope(|scope| {
        let committing = scope.spawn(|| store.commit_blocking(Commits { drafts, ..Commits::default() }));
        let mut seen = receiver.recv().expect("a delta").to.cv();
        full.store(true, Ordering::SeqCst);
        loop {
            match receiver.recv_timeout(std::time::Duration::from_millis(20)) {
                Ok(delta) => {
                    assert_eq!(delta.from.cv(), seen);
                    seen = delta.to.cv();
                }
                Err(_) if committing.is_finished() && receiver.is_empty() => break,
                Err(_) => {}
            }
        }
        let outcome = committing.join().expect("no panic").expect("open");
        assert_eq!(outcome.cv, seen);
        outcome
    });
    assert_eq!(outcome.refused.expect("the disk is full").code(), CommitErrorKind::NotReady);
    assert_eq!(outcome.applied, crate::store::limits::GROUP_COMMITS_MAX);
    assert_eq!((store.snapshot().cv(), names(&store).len()), (outcome.cv, outcome.applied));
}

#[test]
fn log_is_gapless_for_every_listener() {
    let store = open(None);
    let check = |from: Cv, receiver: crossbeam_channel::Receiver<Arc<Delta>>, until: Cv| {
        let mut at = from;
        while at < until {
            let delta = receiver.recv().expect("the store runs");
            assert_eq!(delta.from.cv(), at, "log_is_gapless");
            at = delta.to.cv();
        }
    };
    let first = store.snapshot().cv();
    let (writers, commits) = (4, 200);
    let until = Cv(first.0 + writers * commits);
    thread::scope(|scope| {
        for writer in 0..writers {
            let store = store.clone();
            scope.spawn(move || {
                for number in 0..commits {
                    let id = (writer * commits + number) as i64;
                    let outcome = write(&store, &[insert(id, "a")]);
                    assert_eq!(outcome.refused, None);
                    let seen = store.snapshot();
                    assert!(seen.cv() >= outcome.cv, "an answer comes after the snapshot");
                }
            });
        }
        for capacity in [1, 3, 64] {
            for _ in 0..3 {
                let (snapshot, receiver) = store.listen(capacity);
                let check = &check;
                scope.spawn(move || check(snapshot.cv(), receiver, until));
                // One that goes away does not hold up anything.
                drop(store.listen(1));
            }
        }
    });
    assert_eq!(store.snapshot().cv(), until);
}

#[test]
fn closing_finishes_what_waits() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(Some(dir.path()));
    let outcomes: Vec<_> = thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|id| {
                let (store, draft) = (store.clone(), draft(&store, &insert(id, "a")));
                scope.spawn(move || {
                    store.commit_blocking(Commits { drafts: vec![draft], ..Commits::default() })
                })
            })
            .collect();
        store.close();
        writers.into_iter().map(|writer| writer.join().expect("no panic")).collect()
    });
    let applied = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    let late = drafts(&store, &[insert(99, "a")]);
    let late = store.commit_blocking(Commits { drafts: late, ..Commits::default() });
    assert_eq!(late, Err(StoreClosed));
    assert_eq!(names(&open(Some(dir.path()))).len(), applied);
}

#[test]
fn a_record_that_does_not_fit_is_refused_with_its_sequence() {
    use crate::{commit_log::CommitLog, store::OpenError};
    for payload in [&[9_u8, 1, 1][..], &[1, 1, 9, 0, 0], &[1, 1, 3, 0, 1, 7, 1, 3, 1, 0], b"rubbish"] {
        let dir = tempfile::tempdir().expect("a directory");
        let store = open(Some(dir.path()));
        write(&store, &[insert(1, "a")]);
        store.close();
        let log = dir.path().join("log");
        let mut log = CommitLog::open(&log, options(None).log, |_| Ok::<_, ()>(()), |_| ()).expect("opens");
        log.append(payload).expect("appends");
        log.sync().expect("syncs");
        drop(log);
        let Err(error) = Store::open(options(Some(dir.path())), |_| ()) else { panic!("refused") };
        let OpenError::Replay(error) = error else { panic!("{error}") };
        assert_eq!(error.sequence, 3, "{error}");
        assert!(error.to_string().contains("record 3"), "{error}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(i64, String),
    Update(i64, String),
    Delete(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let id = 0_i64..12;
    prop_oneof![
        3 => (id.clone(), "[a-c]{0,3}").prop_map(|(id, name)| Step::Insert(id, name)),
        2 => (id.clone(), "[a-c]{0,3}").prop_map(|(id, name)| Step::Update(id, name)),
        2 => id.prop_map(Step::Delete),
    ]
}

/// The oracle: a plain map, changed only when every step of a commit holds.
fn model(rows: &mut std::collections::BTreeMap<i64, String>, commit: &[Step]) -> bool {
    let mut next = rows.clone();
    for step in commit {
        let held = match step {
            Step::Insert(id, name) => next.insert(*id, name.clone()).is_none(),
            Step::Update(id, name) => next.insert(*id, name.clone()).is_some(),
            Step::Delete(id) => next.remove(id).is_some(),
        };
        if !held {
            return false;
        }
    }
    *rows = next;
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn replay_equals_what_was_committed(
        commits in prop::collection::vec(prop::collection::vec(step(), 0..4), 1..40),
        kept in prop_oneof![Just(1_usize), Just(5), Just(1_000)],
        reopen_every in 1_usize..20,
    ) {
        let dir = tempfile::tempdir().expect("a directory");
        let mut options = options(Some(dir.path()));
        options.snapshots_kept_max = kept;
        let mut store = open_with(options.clone());
        let mut rows = std::collections::BTreeMap::new();
        let mut history = vec![contents(&store.snapshot())];
        for (index, commit) in commits.iter().enumerate() {
            let ops: Vec<_> = commit.iter().map(|step| match step {
                Step::Insert(id, name) => insert(*id, name),
                Step::Update(id, name) => update(*id, name),
                Step::Delete(id) => delete(*id),
            }).collect();
            let outcome = write(&store, &[ops.join(",")]);
            prop_assert_eq!(outcome.refused.is_none(), model(&mut rows, commit));
            if outcome.refused.is_none() {
                history.push(contents(&store.snapshot()));
            }
            if index % reopen_every == 0 {
                store.close();
                store = open_with(options.clone());
                prop_assert_eq!(Some(&contents(&store.snapshot())), history.last());
            }
        }
        let snapshot = store.snapshot();
        let items = snapshot.table(snapshot.table_id("items").expect("items")).expect("items");
        let found: Vec<Row> = items.rows().iter().map(|(_, row)| row.clone()).collect();
        let expected: Vec<Row> = rows
            .iter()
            .map(|(id, name)| Row::from_values(&[Value::Int8(*id), Value::Text(name.as_str().into()), Value::Null]))
            .collect();
        prop_assert_eq!(found, expected);
        // The kept window holds what was there, across restarts too.
        prop_assert!(store.snapshots_kept().0 <= kept);
        for (index, contents_then) in history.iter().enumerate() {
            if let Some(snapshot) = store.snapshot_at(Cv(index as u64 + 1)) {
                prop_assert_eq!(&contents(&snapshot), contents_then);
            }
        }
        prop_assert_eq!(store.snapshot_at(snapshot.cv().next()).map(|snapshot| snapshot.cv()), None);
    }
}
