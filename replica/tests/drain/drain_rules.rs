//! Each rule of the drain by name. The doc comment says which change of the code makes the test fail.

use crate::support::*;
use tidegate_replica::{
    drain::{Control, limits},
    worker::{FaultCause, QueryId},
};
use tidegate_wire::model::{Cv, SubId};

fn remove_query(query: u64) -> Control {
    Control::Remove { query: QueryId(query), fault: fault(FaultCause::Removed) }
}

fn told(conn: u64, sub: u64, cause: FaultCause) -> Out {
    Out::Faulted { conn, sub, cause }
}

// Registering, binding, and what wins the race against them.

/// Fails when `hydrated` does not open the binding's waiting subscribers.
#[test]
fn register_comes_before_hydrated() {
    let mut bench = Bench::new(&[], 0);
    for control in [register(1, 1), bind(1, 1), attach(1, 1, 1, 1)] {
        assert_eq!(bench.tell(control), []);
    }
    let want = [subscribed(1, 1), batch(3, &[('+', 0, 1, 7, 70)], &[(1, 1, 0)]), progress(1, 3)];
    assert_eq!(bench.say(hydrated(1, 1, 3, vec![add(1, 7, 70)])), want);
}

/// Fails when `event` drops what it cannot place, or `register` does not fold commits the worker is past.
#[test]
fn an_event_that_wins_the_race_is_replayed_in_order_on_registration() {
    let mut bench = Bench::new(&[], 0);
    bench.say(hydrated(1, 1, 3, vec![add(1, 7, 70)]));
    bench.say(progressed(1, 3));
    bench.say(changed(1, 4, vec![edit(1, 7, 70, 71)]));
    bench.say(progressed(1, 4));
    bench.say(changed(1, 5, vec![edit(1, 7, 71, 72)]));
    for control in [register(1, 1), bind(1, 1)] {
        assert_eq!(bench.tell(control), []);
    }
    let want = [subscribed(1, 1), batch(4, &[('+', 0, 1, 7, 71)], &[(1, 1, 0)]), progress(1, 4)];
    assert_eq!(bench.tell(attach(1, 1, 1, 1)), want);
    let want = [batch(5, &[('~', 0, 1, 7, 72)], &[(1, 1, 1)]), progress(1, 5)];
    assert_eq!(bench.say(progressed(1, 5)), want);
}

/// Fails when `hydrated` drops bindings that are not bound, or `bind` replaces what is pending.
#[test]
fn a_hydration_that_wins_the_race_opens_a_pending_binding() {
    let mut bench = Bench::new(&[], 0);
    bench.tell(register(1, 1));
    bench.say(hydrated(1, 8, 3, vec![add(8, 7, 70)]));
    bench.say(changed(1, 4, vec![edit(8, 7, 70, 71)]));
    bench.say(progressed(1, 4));
    bench.tell(bind(1, 8));
    let want = [subscribed(1, 1), batch(4, &[('+', 0, 1, 7, 71)], &[(1, 1, 0)]), progress(1, 4)];
    assert_eq!(bench.tell(attach(1, 1, 1, 8)), want);
}

/// Fails when `fold` opens a binding for any change.
#[test]
fn a_change_for_a_binding_neither_bound_nor_pending_is_dropped() {
    let mut bench = Bench::new(&[1], 3);
    bench.say(changed(1, 4, vec![add(8, 7, 70)]));
    assert_eq!(bench.say(progressed(1, 4)), []);
    assert_eq!(bench.drain.statistics().dropped, 1);
    bench.tell(bind(1, 8));
    assert_eq!(bench.tell(attach(1, 1, 1, 8)), [], "the binding is still to be hydrated");
    let want = [subscribed(1, 1), batch(5, &[], &[(1, 1, 0)]), progress(1, 5)];
    assert_eq!(bench.say(hydrated(1, 8, 5, vec![])), want);
}

/// Fails when `Ended` does not keep unbound bindings: a late hydration then waits for a bind for ever.
#[test]
fn a_hydration_after_unbind_is_dropped() {
    let mut bench = Bench::new(&[1], 3);
    bench.tell(bind(1, 8));
    bench.tell(unbind(1, 8));
    bench.say(hydrated(1, 8, 4, vec![add(8, 1, 1)]));
    assert_eq!((bench.drain.statistics().bindings, bench.drain.statistics().footprint_rows), (1, 0));
}

/// Fails when a fault of an unknown binding is dropped: its subscribers then wait for ever.
#[test]
fn a_fault_that_wins_the_race_against_the_bind_is_told_at_the_bind() {
    let mut bench = Bench::new(&[1], 3);
    assert_eq!(bench.say(faulted(1, Some(8), FaultCause::Deadline)), []);
    let owner = Out::Owner { query: 1, binding: Some(8), cause: FaultCause::Deadline };
    assert_eq!(bench.tell(bind(1, 8)), [owner]);
    assert_eq!(bench.tell(attach(1, 1, 1, 8)), [told(1, 1, FaultCause::Deadline)]);
}

/// Fails when a limit is not applied, or what is given up at it is given up in silence.
#[test]
fn queues_are_bounded_for_early_events_and_bindings() {
    let mut bench = Bench::new(&[1], 3);
    for query in 0..=limits::EARLY_FAMILIES_MAX as u64 {
        bench.say(hydrated(100 + query, 1, 3, vec![]));
    }
    let owner = Out::Owner { query: 100, binding: None, cause: FaultCause::Derive };
    assert_eq!(bench.tell(register(100, 1)), [owner]);
    assert_eq!(bench.tell(register(101, 1)), []);
    assert_eq!(bench.tell(attach(1, 1, 100, 1)), [told(1, 1, FaultCause::Derive)]);
    for binding in 0..=limits::EARLY_BINDINGS_MAX as u64 {
        bench.say(hydrated(1, 100 + binding, 3, vec![]));
    }
    // The binding that query 101 brought was the first to wait, binding 100 the next.
    let owner = Out::Owner { query: 1, binding: Some(100), cause: FaultCause::Derive };
    assert_eq!(bench.tell(bind(1, 100)), [owner]);
    assert_eq!(bench.tell(bind(1, 101)), []);
}

// Footprints.

/// Fails when `fold` calls the sink for each subscriber, or subscribers share a seq.
#[test]
fn one_fold_serves_all_subscribers_each_with_its_own_epoch_and_seq() {
    let mut bench = Bench::new(&[1], 3);
    bench.tell(connect(2));
    bench.tell(attach(1, 1, 1, 1));
    bench.say(changed(1, 4, vec![add(1, 7, 70)]));
    bench.say(progressed(1, 4));
    bench.tell(attach(2, 5, 1, 1));
    bench.say(changed(1, 5, vec![edit(1, 7, 70, 71)]));
    let want = [batch(5, &[('~', 0, 1, 7, 71)], &[(1, 1, 2), (2, 5, 1)]), progress(1, 5), progress(2, 5)];
    assert_eq!(bench.say(progressed(1, 5)), want);
}

/// Fails when `settle` confuses places with rows.
#[test]
fn a_row_enters_once_and_is_removed_when_it_stands_nowhere() {
    let mut bench = Bench::new(&[1], 3);
    bench.tell(attach(1, 1, 1, 1));
    let mut commit = |cv, changes| {
        bench.say(changed(1, cv, changes));
        bench.say(progressed(1, cv)).remove(0)
    };
    let there = || Some(row(7, 70, 0));
    let want = batch(4, &[('+', 0, 5, 7, 70)], &[(1, 1, 1)]);
    assert_eq!(commit(4, vec![change(1, 0, None, there()), change(1, 2, None, there())]), want);
    let want = batch(5, &[('~', 0, 4, 7, 70)], &[(1, 1, 2)]);
    assert_eq!(commit(5, vec![change(1, 0, there(), None)]), want);
    let want = batch(6, &[('-', 0, 0, 7, 70)], &[(1, 1, 3)]);
    assert_eq!(commit(6, vec![change(1, 2, there(), None)]), want);
}

/// Fails when `split` makes a batch of no operations, or `fold` counts a seq for it. The two changes come in two
/// slices: fails too when slices are folded one by one.
#[test]
fn a_change_that_nets_to_nothing_yields_no_batch_and_uses_no_seq() {
    let mut bench = Bench::new(&[1], 3);
    bench.tell(attach(1, 1, 1, 1));
    bench.say(changed(1, 4, vec![add(1, 7, 70)]));
    bench.say(changed(1, 4, vec![remove(1, 7, 70)]));
    assert_eq!(bench.say(progressed(1, 4)), []);
    bench.say(changed(1, 5, vec![add(1, 7, 70)]));
    assert_eq!(bench.say(progressed(1, 5))[0], batch(5, &[('+', 0, 1, 7, 70)], &[(1, 1, 1)]));
}

/// Fails when the fold compares whole rows.
#[test]
fn an_edit_of_columns_that_do_not_travel_nets_to_nothing() {
    let mut bench = Bench::new(&[1], 3);
    bench.tell(attach(1, 1, 1, 1));
    bench.say(changed(1, 4, vec![add(1, 7, 70)]));
    bench.say(progressed(1, 4));
    bench.say(changed(1, 5, vec![change(1, 0, Some(row(7, 70, 0)), Some(row(7, 70, 1)))]));
    assert_eq!(bench.say(progressed(1, 5)), []);
}

/// Fails when `fold` asks for operations whoever listens (the counters show them), or skips the footprint.
#[test]
fn without_subscribers_the_footprint_is_current_and_no_operations_are_built() {
    let mut bench = Bench::new(&[1], 3);
    bench.say(changed(1, 4, vec![add(1, 7, 70), add(1, 8, 80)]));
    assert_eq!(bench.say(progressed(1, 4)), []);
    let statistics = bench.drain.statistics();
    assert_eq!((statistics.batches, statistics.ops, statistics.footprint_rows), (0, 0, 2));
    let want = batch(4, &[('+', 0, 1, 7, 70), ('+', 0, 1, 8, 80)], &[(1, 1, 0)]);
    assert_eq!(bench.tell(attach(1, 1, 1, 1))[1], want);
}

/// Fails when `fold` gives a batch to bindings other than those of its changes.
#[test]
fn a_commit_reaches_the_subscribers_of_the_bindings_it_touches() {
    let mut bench = Bench::new(&[1], 3);
    for binding in 10..14 {
        bench.tell(bind(1, binding));
        bench.say(hydrated(1, binding, 3, vec![]));
        bench.tell(attach(1, binding, 1, binding));
    }
    bench.say(changed(1, 4, vec![add(13, 1, 1), add(11, 1, 1), add(13, 2, 2)]));
    let want = [
        batch(4, &[('+', 0, 1, 1, 1)], &[(1, 11, 1)]),
        batch(4, &[('+', 0, 1, 1, 1), ('+', 0, 1, 2, 2)], &[(1, 13, 1)]),
        progress(1, 4),
    ];
    assert_eq!(bench.say(progressed(1, 4)), want);
}

// Attach.

/// Fails when `attach` does not open at once, or leaves out an empty seq 0.
#[test]
fn attach_to_a_hydrated_query_gets_seq_0_at_once_even_when_empty() {
    let mut bench = Bench::new(&[1], 3);
    bench.say(progressed(1, 6));
    let want = [subscribed(1, 1), batch(6, &[], &[(1, 1, 0)]), progress(1, 6)];
    assert_eq!(bench.tell(attach(1, 1, 1, 1)), want);
}

/// Fails when slices are folded as they come: seq 0 then shows a part of commit 4.
#[test]
fn seq_0_shows_no_part_of_a_commit() {
    let mut bench = Bench::new(&[1], 3);
    bench.say(changed(1, 4, vec![add(1, 7, 70)]));
    let want = [subscribed(1, 1), batch(3, &[], &[(1, 1, 0)]), progress(1, 3)];
    assert_eq!(bench.tell(attach(1, 1, 1, 1)), want);
    bench.say(changed(1, 4, vec![add(1, 8, 80)]));
    let want = [batch(4, &[('+', 0, 1, 7, 70), ('+', 0, 1, 8, 80)], &[(1, 1, 1)]), progress(1, 4)];
    assert_eq!(bench.say(progressed(1, 4)), want);
}

/// Fails when `open` does not compare with what the connection is released to.
#[test]
fn a_subscription_added_later_is_not_stamped_below_the_release() {
    let mut bench = Bench::new(&[1, 2], 3);
    bench.say(progressed(1, 9));
    bench.tell(attach(1, 1, 1, 1));
    assert_eq!(bench.tell(attach(1, 2, 2, 2)), [], "worker 2 is at 3, the client at 9");
    assert_eq!(bench.say(progressed(2, 8)), []);
    let want = [subscribed(1, 2), batch(9, &[], &[(1, 2, 0)]), progress(1, 9)];
    assert_eq!(bench.say(progressed(2, 9)), want);
}

/// Fails when `detach`, `fault` or `disconnect` leaves a deferred subscription listed.
#[test]
fn a_deferred_subscription_can_end_before_it_begins() {
    for end in [
        detach(1, 2),
        unbind(2, 2),
        remove_query(2),
        Control::Disconnect { conn: tidegate_replica::drain::ConnId(1) },
    ] {
        let mut bench = Bench::new(&[1, 2], 3);
        bench.say(progressed(1, 9));
        bench.tell(attach(1, 1, 1, 1));
        bench.tell(attach(1, 2, 2, 2));
        bench.tell(end);
        assert_eq!(bench.say(progressed(2, 9)), []);
        assert!(bench.drain.statistics().subscriptions <= 1);
    }
}

/// Fails when `OnWorker::cv` ignores floors: the query would be released at its worker's earlier position.
#[test]
fn a_hydration_beyond_the_position_is_a_floor() {
    let mut bench = Bench::new(&[1, 2], 3);
    bench.tell(bind(2, 8));
    bench.tell(attach(1, 8, 2, 8));
    let want = [subscribed(1, 8), batch(7, &[], &[(1, 8, 0)]), progress(1, 7)];
    assert_eq!(bench.say(hydrated(2, 8, 7, vec![])), want);
    bench.say(progressed(2, 7));
    bench.say(changed(2, 8, vec![add(8, 1, 1)]));
    assert_eq!(bench.say(progressed(2, 8))[1], progress(1, 8));
}

/// Fails when `split` ignores its limit, marks the last part, or marks parts of a commit's change.
#[test]
fn large_snapshots_are_split_and_seq_counts_on() {
    let mut bench = Bench::new(&[1], 3);
    let rows = limits::BATCH_ROW_BYTES_MAX as i64 / row(1 << 40, 1, 1).as_bytes().len() as i64 * 5 / 2;
    let changes = (0..rows).map(|id| add(1, (1 << 40) + id, 1)).collect();
    bench.say(changed(1, 4, changes));
    bench.say(progressed(1, 4));
    let parts = |out: &[Out]| -> Vec<_> {
        let part = |out: &Out| match out {
            Out::Batch { cv, more, ops, to } => Some((*cv, *more, to[0].3, ops.len())),
            _ => None,
        };
        out.iter().filter_map(part).collect()
    };
    let out = bench.tell(attach(1, 1, 1, 1));
    let snapshot = parts(&out);
    assert_eq!(
        snapshot.iter().map(|it| (it.0, it.1, it.2)).collect::<Vec<_>>(),
        [(4, true, 0), (4, true, 1), (4, false, 2)]
    );
    assert_eq!(snapshot.iter().map(|it| it.3 as i64).sum::<i64>(), rows);
    assert_eq!(out.last(), Some(&progress(1, 4)), "one progress for all parts");
    bench.say(changed(1, 5, (0..rows).map(|id| edit(1, (1 << 40) + id, 1, 2)).collect()));
    let out = bench.say(progressed(1, 5));
    assert_eq!(
        parts(&out).iter().map(|it| (it.0, it.1, it.2)).collect::<Vec<_>>(),
        [(5, false, 3), (5, false, 4), (5, false, 5)]
    );
    assert_eq!(out.len(), 4, "and one progress");
}

/// Fails when the limit that was asked for is not the one that splits.
#[test]
fn batches_are_as_small_as_asked() {
    let Bench { drain } = Bench::new(&[1], 3);
    let mut bench = Bench { drain: drain.with_batch_bytes_max(1) };
    bench.say(changed(1, 4, (0..3).map(|id| add(1, id, 1)).collect()));
    bench.say(progressed(1, 4));
    let batches = |out: &[Out]| out.iter().filter(|out| matches!(out, Out::Batch { .. })).count();
    assert_eq!(batches(&bench.tell(attach(1, 1, 1, 1))), 3);
    bench.say(changed(1, 5, (0..3).map(|id| edit(1, id, 1, 2)).collect()));
    assert_eq!(batches(&bench.say(progressed(1, 5))), 3);
}

/// Fails when `open` sends the whole footprint to a client that resumes, or keeps the snapshot it shares too long.
#[test]
fn a_resumed_subscription_gets_the_difference() {
    let mut bench = Bench::new(&[1], 3);
    bench.say(changed(1, 4, vec![add(1, 7, 71), add(1, 8, 80)]));
    bench.say(progressed(1, 4));
    let resume = Some(vec![standing(7, 70), standing(8, 80), standing(9, 90)]);
    let out = bench.tell(attach_from(1, 1, 1, 1, 101, resume));
    let want = [
        Out::Subscribed { conn: 1, sub: 1, epoch: 101, resumed: true },
        batch(4, &[('~', 0, 1, 7, 71), ('-', 0, 0, 9, 90)], &[(1, 1, 0)]),
        progress(1, 4),
    ];
    assert_eq!(out, want);
    bench.tell(attach(1, 2, 1, 1));
    bench.say(changed(1, 5, vec![remove(1, 8, 80)]));
    bench.say(progressed(1, 5));
    assert_eq!(bench.tell(attach(1, 3, 1, 1))[1], batch(5, &[('+', 0, 1, 7, 71)], &[(1, 3, 0)]));
}

/// Fails when `attach` does not set `holds`, or `Connection::opened` sets no gate: the client would show the old
/// epoch of subscription 1 beside commit 6 of subscription 2.
#[test]
fn a_replaced_subscription_stands_until_its_new_snapshot_is_released() {
    let mut bench = Bench::new(&[1, 2], 3);
    bench.tell(bind(1, 8));
    bench.tell(attach(1, 1, 1, 1));
    bench.tell(attach(1, 2, 2, 2));
    assert_eq!(bench.tell(attach_from(1, 1, 1, 8, 555, None)), []);
    bench.say(progressed(1, 6));
    bench.say(changed(2, 6, vec![add(2, 1, 1)]));
    assert_eq!(bench.say(progressed(2, 6)), [batch(6, &[('+', 0, 1, 1, 1)], &[(1, 2, 1)])]);
    assert_eq!(bench.keep_alive(), []);
    bench.say(progressed(1, 7));
    let out = bench.say(hydrated(1, 8, 7, vec![]));
    assert_eq!(out.len(), 2, "commit 6 waits for the snapshot of 7: {out:?}");
    assert_eq!(bench.say(progressed(2, 7)), [progress(1, 7)]);
}

/// Fails when `attach` returns in silence, or the memory of faults is not consulted.
#[test]
fn attach_to_what_is_not_there_is_answered_with_a_fault() {
    let mut bench = Bench::new(&[1, 2], 3);
    bench.say(faulted(1, None, FaultCause::Deadline));
    bench.say(faulted(2, Some(2), FaultCause::SchemaChanged));
    assert_eq!(bench.tell(attach(1, 1, 1, 1)), [told(1, 1, FaultCause::Deadline)]);
    assert_eq!(bench.tell(attach(1, 2, 2, 2)), [told(1, 2, FaultCause::SchemaChanged)]);
    assert_eq!(bench.tell(attach(1, 3, 77, 1)), [told(1, 3, FaultCause::Derive)]);
    assert_eq!(bench.tell(attach(9, 1, 2, 2)), [], "the connection is gone");
}

// Progress.

/// Fails when `Connection::cv_min` is anything but the least, or `look_at` does not watch the slowest worker.
#[test]
fn cv_min_is_the_least_of_the_subscriptions() {
    let mut bench = Bench::new(&[1, 2, 3], 3);
    for query in 1..=3 {
        bench.tell(attach(1, query, query, query));
    }
    assert_eq!(bench.walk(1, 4..=7), []);
    bench.say(changed(1, 8, vec![add(1, 1, 1)]));
    assert_eq!(bench.say(progressed(1, 8)).len(), 1);
    assert_eq!(bench.walk(2, 4..=9), []);
    assert_eq!(bench.walk(3, 4..=7), []);
    assert_eq!(bench.walk(3, 8..=10), [progress(1, 8)]);
}

/// Fails when `progressed` looks at connections before it has folded every query.
#[test]
fn batches_precede_progress() {
    let mut bench = Bench::new(&[1], 3);
    bench.tell(register(5, 1));
    bench.tell(bind(5, 50));
    bench.say(hydrated(5, 50, 3, vec![]));
    bench.tell(attach(1, 1, 1, 1));
    bench.tell(attach(1, 2, 5, 50));
    bench.say(changed(1, 4, vec![add(1, 1, 1)]));
    bench.say(changed(5, 4, vec![add(50, 2, 2)]));
    let want = [
        batch(4, &[('+', 0, 1, 1, 1)], &[(1, 1, 1)]),
        batch(4, &[('+', 0, 1, 2, 2)], &[(1, 2, 1)]),
        progress(1, 4),
    ];
    assert_eq!(bench.say(progressed(1, 4)), want);
}

/// Fails when `outlook_for` asks for more than the last release, or `owe` passes over a version already released.
#[test]
fn a_snapshot_is_always_released_once_though_the_value_repeats() {
    let mut bench = Bench::new(&[1], 3);
    assert_eq!(bench.tell(attach(1, 1, 1, 1))[2], progress(1, 3));
    assert_eq!(bench.tell(attach(1, 2, 1, 1))[2], progress(1, 3));
    assert_eq!(bench.say(progressed(1, 4)), [], "once");
}

/// Fails when `look_at` releases whenever `cv_min` moves.
#[test]
fn a_commit_that_touches_nothing_of_a_connection_sends_it_nothing() {
    let mut bench = Bench::new(&[1, 2], 3);
    bench.tell(connect(2));
    bench.tell(attach(1, 1, 1, 1));
    bench.tell(attach(2, 1, 2, 2));
    bench.say(changed(1, 4, vec![add(1, 1, 1)]));
    assert_eq!(bench.say(progressed(1, 4)), [batch(4, &[('+', 0, 1, 1, 1)], &[(1, 1, 1)]), progress(1, 4)]);
    assert_eq!(bench.say(progressed(2, 4)), []);
}

/// Fails when a release asks only whether anything is owed and `cv_min` moved.
#[test]
fn progress_is_sent_when_it_covers_something_new() {
    let mut bench = Bench::new(&[1, 2], 3);
    bench.tell(attach(1, 1, 1, 1));
    bench.tell(attach(1, 2, 2, 2));
    for cv in [8, 10] {
        bench.walk(1, 4..=cv - 1);
        bench.say(changed(1, cv, vec![add(1, cv as i64, 1)]));
        assert_eq!(bench.say(progressed(1, cv)).len(), 1);
    }
    assert_eq!(bench.walk(2, 4..=7), []);
    assert_eq!(bench.say(progressed(2, 8)), [progress(1, 8)]);
    assert_eq!(bench.say(progressed(2, 9)), []);
    assert_eq!(bench.walk(2, 10..=12), [progress(1, 10)]);
}

/// Fails when `owe` drops the newest version at its limit, or grows beyond it.
#[test]
fn what_a_connection_is_owed_is_bounded_and_released_in_the_end() {
    let mut bench = Bench::new(&[1, 2], 3);
    bench.tell(attach(1, 1, 1, 1));
    bench.tell(attach(1, 2, 2, 2));
    let last = 4 + 2 * limits::OWED_MAX as u64;
    for cv in 4..=last {
        bench.say(changed(1, cv, vec![add(1, cv as i64, 1)]));
        bench.say(progressed(1, cv));
    }
    let steps = bench.walk(2, 4..=last);
    assert_eq!(steps.len(), limits::OWED_MAX);
    assert_eq!(steps.last(), Some(&progress(1, last)));
}

/// Fails when a smaller or equal position is taken over.
#[test]
fn progress_is_irrevocable() {
    let mut bench = Bench::new(&[1], 3);
    bench.tell(attach(1, 1, 1, 1));
    bench.say(changed(1, 6, vec![add(1, 1, 1)]));
    assert_eq!(bench.say(progressed(1, 6))[1], progress(1, 6));
    assert_eq!(bench.say(progressed(1, 5)), []);
    assert_eq!(
        bench.tell(attach(1, 2, 1, 1))[1..],
        [batch(6, &[('+', 0, 1, 1, 1)], &[(1, 2, 0)]), progress(1, 6)]
    );
}

/// Fails when `idle_outlook` is bound to what is owed, repeats a value, or forgets connections without
/// subscriptions.
#[test]
fn keep_alive_carries_cv_min_to_idle_connections() {
    let mut bench = Bench::new(&[1, 2], 3);
    bench.tell(connect(2));
    bench.tell(attach(1, 1, 1, 1));
    bench.tell(attach(1, 2, 2, 2));
    bench.walk(1, 4..=9);
    bench.walk(2, 4..=5);
    bench.tell(Control::Newest { cv: Cv(11) });
    assert_eq!(bench.keep_alive(), [progress(1, 5), progress(2, 11)]);
    assert_eq!(bench.keep_alive(), []);
}

/// Fails when a subscription that waits for its hydration does not count in `cv_min`, or is counted as 0.
#[test]
fn a_pending_subscription_counts_with_its_workers_position() {
    let mut bench = Bench::new(&[1, 2], 3);
    bench.tell(bind(2, 8));
    bench.tell(attach(1, 1, 1, 1));
    bench.tell(attach(1, 2, 2, 8));
    bench.walk(1, 4..=4);
    bench.say(changed(1, 5, vec![add(1, 1, 1)]));
    assert_eq!(bench.say(progressed(1, 5)).len(), 1);
    assert_eq!(bench.say(progressed(2, 5)), [progress(1, 5)]);
    let want = [subscribed(1, 2), batch(5, &[], &[(1, 2, 0)]), progress(1, 5)];
    assert_eq!(bench.say(hydrated(2, 8, 5, vec![])), want);
}

/// Fails when positions are shared between workers, or a connection waits for workers it has no query on.
#[test]
fn slow_worker_holds_only_its_own() {
    let mut bench = Bench::new(&[1, 2], 3);
    bench.tell(connect(2));
    bench.tell(attach(1, 1, 1, 1));
    bench.tell(attach(1, 2, 2, 2));
    bench.tell(attach(2, 1, 1, 1));
    bench.say(changed(1, 5, vec![add(1, 1, 1)]));
    let want = [batch(5, &[('+', 0, 1, 1, 1)], &[(1, 1, 1), (2, 1, 1)]), progress(2, 5)];
    assert_eq!(bench.say(progressed(1, 5)), want);
    assert_eq!(bench.say(progressed(2, 5)), [progress(1, 5)]);
}

/// Fails when `take_commits` joins commits, or takes what the position does not cover yet.
#[test]
fn commit_is_atomic_for_a_client() {
    let mut bench = Bench::new(&[1], 3);
    bench.tell(attach(1, 1, 1, 1));
    bench.say(changed(1, 4, vec![add(1, 1, 1)]));
    bench.say(changed(1, 4, vec![add(1, 2, 1)]));
    bench.say(changed(1, 5, vec![edit(1, 1, 1, 2)]));
    bench.say(changed(1, 5, vec![edit(1, 2, 1, 2)]));
    assert_eq!(
        bench.say(progressed(1, 4)),
        [batch(4, &[('+', 0, 1, 1, 1), ('+', 0, 1, 2, 1)], &[(1, 1, 1)]), progress(1, 4)]
    );
    assert_eq!(
        bench.say(progressed(1, 5)),
        [batch(5, &[('~', 0, 1, 1, 2), ('~', 0, 1, 2, 2)], &[(1, 1, 2)]), progress(1, 5)]
    );
}

/// Fails when `moved_to` notes no merges, or `stop_before` is not asked: at 5 the client would show query 1 as of 3.
#[test]
fn no_connection_is_released_between_commits_that_a_worker_merged() {
    let mut bench = Bench::new(&[1, 2], 3);
    bench.tell(attach(1, 1, 1, 1));
    bench.tell(attach(1, 2, 2, 2));
    bench.say(changed(1, 6, vec![add(1, 1, 1)]));
    bench.say(progressed(1, 6));
    bench.walk(2, 4..=4);
    bench.say(changed(2, 5, vec![add(2, 1, 1)]));
    assert_eq!(bench.say(progressed(2, 5)), [batch(5, &[('+', 0, 1, 1, 1)], &[(1, 2, 1)])]);
    assert_eq!(bench.keep_alive(), []);
    assert_eq!(bench.say(progressed(2, 6)), [progress(1, 6)]);
}

/// Fails when `hydrated` does not call `seen_at`: a worker's first move may be a merge.
#[test]
fn a_workers_first_move_can_be_a_merge() {
    let mut bench = Bench::new(&[2], 3);
    for control in [register(1, 1), bind(1, 1)] {
        bench.tell(control);
    }
    bench.say(hydrated(1, 1, 3, vec![]));
    bench.tell(attach(1, 1, 1, 1));
    bench.tell(attach(1, 2, 2, 2));
    bench.say(progressed(1, 6));
    bench.say(changed(2, 4, vec![add(2, 1, 1)]));
    assert_eq!(bench.say(progressed(2, 4)).len(), 1, "query 1 may have had another result at 4");
    assert_eq!(bench.walk(2, 5..=6), [progress(1, 6)]);
}

/// Fails when `fold` does not compare a commit with the hydration: row 1 would stand twice.
#[test]
fn a_commit_that_a_hydration_shows_already_is_passed_over() {
    let mut bench = Bench::new(&[1], 3);
    bench.tell(bind(1, 8));
    bench.say(hydrated(1, 8, 5, vec![add(8, 1, 1)]));
    bench.say(changed(1, 5, vec![add(8, 1, 1)]));
    assert_eq!(bench.say(progressed(1, 5)), []);
    assert_eq!(bench.drain.statistics().dropped, 1);
}

/// Fails when merges are dropped at their limit instead of joined.
#[test]
fn merges_are_bounded_and_the_oldest_count_as_one() {
    let mut bench = Bench::new(&[1, 2], 3);
    bench.tell(attach(1, 1, 1, 1));
    bench.tell(attach(1, 2, 2, 2));
    let last = 3 + 2 * (limits::MERGES_MAX as u64 + 8);
    for cv in (5..=last).step_by(2) {
        bench.say(progressed(1, cv));
    }
    bench.walk(2, 4..=4);
    bench.say(changed(2, 5, vec![add(2, 1, 1)]));
    assert_eq!(bench.say(progressed(2, 5)).len(), 1, "5 is between the oldest merges, taken as one");
    assert_eq!(bench.walk(2, 6..=last), [progress(1, 21)]);
}

/// Fails when a new epoch does not start at 0, or a commit without an operation counts.
#[test]
fn seq_is_gapless() {
    let mut bench = Bench::new(&[1], 3);
    bench.tell(attach(1, 1, 1, 1));
    let mut seqs = vec![];
    for cv in 4..10 {
        let shown = cv / 2 % 2;
        let change =
            if cv == 4 { add(1, 1, shown as i64) } else { edit(1, 1, (cv - 1) as i64 / 2 % 2, shown as i64) };
        bench.say(changed(1, cv, vec![change]));
        for out in bench.say(progressed(1, cv)) {
            if let Out::Batch { to, .. } = out {
                seqs.push(to[0].3);
            }
        }
    }
    assert_eq!(seqs, [1, 2, 3]);
    let Out::Batch { to, .. } = &bench.tell(attach_from(1, 1, 1, 1, 999, None))[1] else {
        panic!("no batch")
    };
    assert_eq!(to[..], [(1, 1, 999, 0)]);
}

// Ends.

/// Fails when `event_of_family` tells the owner last or not at all, or does not look at who was held back.
#[test]
fn query_fault_stays_local() {
    let mut bench = Bench::new(&[1, 2], 3);
    bench.tell(connect(2));
    bench.tell(attach(1, 1, 1, 1));
    bench.tell(attach(1, 2, 2, 2));
    bench.tell(attach(2, 4, 2, 2));
    bench.say(changed(1, 5, vec![add(1, 1, 1)]));
    assert_eq!(bench.say(progressed(1, 5)).len(), 1, "worker 2 holds connection 1 back");
    let want = [
        Out::Owner { query: 2, binding: None, cause: FaultCause::Derive },
        told(1, 2, FaultCause::Derive),
        told(2, 4, FaultCause::Derive),
        progress(1, 5),
    ];
    assert_eq!(bench.say(faulted(2, None, FaultCause::Derive)), want);
    bench.say(changed(2, 6, vec![add(2, 1, 1)]));
    assert_eq!(bench.say(progressed(2, 6)), [], "its subscribers are detached");
    bench.say(changed(1, 6, vec![add(1, 2, 1)]));
    assert_eq!(bench.say(progressed(1, 6)).len(), 2, "the other query goes on");
}

/// Fails when a binding's fault ends its family.
#[test]
fn a_fault_of_one_binding_leaves_the_familys_others() {
    let mut bench = Bench::new(&[1], 3);
    bench.tell(bind(1, 8));
    bench.say(hydrated(1, 8, 3, vec![]));
    bench.tell(attach(1, 1, 1, 1));
    bench.tell(attach(1, 2, 1, 8));
    let want = [
        Out::Owner { query: 1, binding: Some(8), cause: FaultCause::Deadline },
        told(1, 2, FaultCause::Deadline),
    ];
    assert_eq!(bench.say(faulted(1, Some(8), FaultCause::Deadline)), want);
    bench.say(changed(1, 4, vec![add(1, 1, 1), add(8, 1, 1)]));
    assert_eq!(bench.say(progressed(1, 4)), [batch(4, &[('+', 0, 1, 1, 1)], &[(1, 1, 1)]), progress(1, 4)]);
}

/// Fails when `Remove` goes the way of a worker's fault.
#[test]
fn revoking_tells_subscribers_and_not_the_owner() {
    let mut bench = Bench::new(&[1], 3);
    bench.tell(attach(1, 1, 1, 1));
    bench.say(changed(1, 4, vec![add(1, 1, 1)]));
    assert_eq!(bench.tell(remove_query(1)), [told(1, 1, FaultCause::Removed)]);
    assert_eq!(bench.say(progressed(1, 4)), []);
    assert_eq!(bench.say(changed(1, 5, vec![])), [], "late");
    let statistics = bench.drain.statistics();
    assert_eq!((statistics.families, statistics.bindings, statistics.subscriptions), (0, 0, 0));
}

/// Fails when `Unbind` reaches other bindings, or its own subscribers are not told.
#[test]
fn unbind_faults_that_bindings_subscribers_only() {
    let mut bench = Bench::new(&[1], 3);
    bench.tell(bind(1, 8));
    bench.say(hydrated(1, 8, 3, vec![add(8, 1, 1)]));
    bench.tell(attach(1, 1, 1, 1));
    bench.tell(attach(1, 2, 1, 8));
    assert_eq!(bench.tell(unbind(1, 8)), [told(1, 2, FaultCause::Removed)]);
    bench.say(changed(1, 4, vec![add(1, 1, 1), edit(8, 1, 1, 2)]));
    assert_eq!(bench.say(progressed(1, 4))[0], batch(4, &[('+', 0, 1, 1, 1)], &[(1, 1, 1)]));
    assert_eq!(bench.drain.statistics().footprint_rows, 1);
}

/// Fails when `detach` says something, or does not look at a connection it may have freed.
#[test]
fn detach_is_silent_and_frees_the_connection() {
    let mut bench = Bench::new(&[1, 2], 3);
    bench.tell(attach(1, 1, 1, 1));
    bench.tell(attach(1, 2, 2, 2));
    bench.say(changed(1, 5, vec![add(1, 1, 1)]));
    bench.say(progressed(1, 5));
    assert_eq!(bench.tell(detach(1, 2)), [progress(1, 5)]);
    assert_eq!(bench.tell(detach(1, 1)), []);
    assert_eq!(bench.tell(Control::Detach { conn: tidegate_replica::drain::ConnId(1), sub: SubId(1) }), []);
}

/// Fails when `disconnect` leaves subscribers behind, or `unlist` gives a moved subscriber a wrong slot.
#[test]
fn disconnect_drops_the_connections_subscriptions() {
    let mut bench = Bench::new(&[1], 3);
    bench.tell(connect(2));
    for (conn, sub) in [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3)] {
        bench.tell(attach(conn, sub, 1, 1));
    }
    assert_eq!(bench.tell(Control::Disconnect { conn: tidegate_replica::drain::ConnId(1) }), []);
    assert_eq!(bench.drain.statistics().subscriptions, 2);
    bench.say(changed(1, 4, vec![add(1, 1, 1)]));
    let out = bench.say(progressed(1, 4));
    let Out::Batch { to, .. } = &out[0] else { panic!("no batch in {out:?}") };
    let mut conns: Vec<_> = to.iter().map(|to| (to.0, to.1)).collect();
    conns.sort_unstable();
    assert_eq!(conns, [(2, 1), (2, 2)]);
    assert_eq!(out[1..], [progress(2, 4)]);
}

/// Fails when an input after the shutdown is taken.
#[test]
fn nothing_follows_a_shutdown() {
    let mut bench = Bench::new(&[1], 3);
    bench.tell(Control::Shutdown);
    assert!(bench.drain.is_shut_down());
    assert_eq!(bench.tell(attach(1, 1, 1, 1)), []);
    assert_eq!(bench.say(progressed(1, 4)), []);
    assert_eq!(bench.keep_alive(), []);
}

/// Fails when changes that do not continue the footprint are clamped in silence.
#[test]
#[cfg_attr(debug_assertions, should_panic(expected = "advance_is_difference"))]
fn advance_is_difference() {
    let mut bench = Bench::new(&[1], 3);
    bench.tell(attach(1, 1, 1, 1));
    bench.say(changed(1, 4, vec![remove(1, 1, 1)]));
    let out = bench.say(progressed(1, 4));
    assert_eq!(out[1], told(1, 1, FaultCause::Derive));
}
