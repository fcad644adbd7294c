//! The thread around the state machine.

use crate::support::*;
use std::time::{Duration, Instant};
use tidegate_replica::drain::{Control, DrainGone, DrainOptions, DrainThread};

/// Fails when the thread takes only the first of what waits, does not publish counters, or does not end.
#[test]
fn the_thread_takes_what_waits_and_ends_at_shutdown() {
    let sink = Recorder::default();
    let (handle, join) = DrainThread::spawn(sink.clone(), DrainOptions::default()).expect("a thread starts");
    for control in [connect(1), register(1, 1), bind(1, 1), attach(1, 1, 1, 1)] {
        handle.control(control).expect("the drain runs");
    }
    handle.event(hydrated(1, 1, 4, vec![add(1, 7, 70)])).expect("the drain runs");
    handle.event(progressed(1, 4)).expect("the drain runs");
    handle.control(Control::Shutdown).expect("the drain runs");
    join.join().expect("the drain does not panic");
    let want = [subscribed(1, 1), batch(4, &[('+', 0, 1, 7, 70)], &[(1, 1, 0)]), progress(1, 4)];
    assert_eq!(sink.take(), want);
    assert_eq!(handle.statistics().footprint_rows, 1);
    assert_eq!(handle.control(connect(2)), Err(DrainGone));
}

/// Fails when the thread waits for an input before it looks at its timer. The queue stays empty after the commit,
/// so that only the timer can send the second frame.
#[test]
fn the_thread_keeps_idle_connections_alive() {
    let options = DrainOptions { keep_alive_interval: Duration::from_millis(1), ..DrainOptions::default() };
    let sink = Recorder::default();
    let (handle, join) = DrainThread::spawn(sink.clone(), options).expect("a thread starts");
    for control in [connect(1), register(1, 1), bind(1, 1), attach(1, 1, 1, 1)] {
        handle.control(control).expect("the drain runs");
    }
    handle.event(hydrated(1, 1, 4, vec![])).expect("the drain runs");
    handle.event(progressed(1, 9)).expect("the drain runs");
    let mut seen = Vec::new();
    let give_up_at = Instant::now() + Duration::from_secs(20);
    while !seen.contains(&progress(1, 9)) {
        assert!(!join.is_finished(), "the drain ended");
        assert!(Instant::now() < give_up_at, "no keep-alive");
        seen.extend(sink.take());
        std::thread::yield_now();
    }
    drop(handle);
    join.join().expect("the drain ends with its last handle");
}
