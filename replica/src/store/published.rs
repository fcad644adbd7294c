//! What the store shows to other threads: the newest snapshot, the kept window of older ones, and the listeners.
//!
//! The store thread alone publishes, so deltas reach every listener in order. Readers take the newest snapshot
//! without a lock.

use super::{Delta, Snapshot};
use arc_swap::ArcSwap;
use crossbeam_channel::{Receiver, SendTimeoutError, Sender, bounded};
use parking_lot::Mutex;
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tidegate_wire::model::Cv;

/// Bytes that one row's change is taken to copy per tree: a leaf and its path.
const NODE_COPY_BYTES: u64 = 3_072;

/// Bytes that one row is taken to add to a tree's nodes. Bounds the estimate for commits that change much.
const ENTRY_BYTES: u64 = 48;

/// How long a closing store waits for a full listener before it goes on without it.
const CLOSING_LISTENER_WAIT: Duration = Duration::from_secs(1);

/// How often a store that waits for a full listener looks whether it is closing.
const LISTENER_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// See the module's description.
pub(super) struct Published {
    newest: ArcSwap<Snapshot>,
    state: Mutex<State>,
    kept_max: usize,
    bytes_max: u64,
}

struct State {
    /// Snapshots, oldest first; the last is the newest. Each with the bytes it holds that its successor
    /// does not, an estimate.
    kept: VecDeque<(Arc<Snapshot>, u64)>,
    kept_bytes: u64,
    listeners: Vec<Listener>,
    listeners_made: u64,
}

#[derive(Clone)]
struct Listener {
    number: u64,
    sender: Sender<Arc<Delta>>,
}

impl Published {
    pub(super) fn new(base: Arc<Snapshot>, kept_max: usize, bytes_max: u64) -> Self {
        let state = State {
            kept: VecDeque::from([(Arc::clone(&base), 0)]),
            kept_bytes: 0,
            listeners: Vec::new(),
            listeners_made: 0,
        };
        Self { newest: ArcSwap::new(base), state: Mutex::new(state), kept_max: kept_max.max(1), bytes_max }
    }

    pub(super) fn newest(&self) -> Arc<Snapshot> {
        self.newest.load_full()
    }

    pub(super) fn at(&self, cv: Cv) -> Option<Arc<Snapshot>> {
        let state = self.state.lock();
        let index = state.kept.binary_search_by_key(&cv, |(snapshot, _)| snapshot.cv()).ok()?;
        Some(Arc::clone(&state.kept[index].0))
    }

    /// Snapshots kept, and the bytes they are taken to hold beyond the newest.
    pub(super) fn kept(&self) -> (usize, u64) {
        let state = self.state.lock();
        (state.kept.len(), state.kept_bytes)
    }

    pub(super) fn listen(&self, capacity: usize) -> (Arc<Snapshot>, Receiver<Arc<Delta>>) {
        // A channel without a place would need the listener to be there for each delta.
        let (sender, receiver) = bounded(capacity.max(1));
        let mut state = self.state.lock();
        let number = state.listeners_made;
        state.listeners_made += 1;
        state.listeners.push(Listener { number, sender });
        (self.newest.load_full(), receiver)
    }

    /// Makes a delta's snapshot the newest and sends it to every listener, waiting for the full ones.
    ///
    /// # Panics
    /// When it does not start from the newest snapshot (`log_is_gapless`).
    pub(super) fn publish(&self, delta: &Arc<Delta>, closing: &AtomicBool) {
        let newest = self.newest.load_full();
        assert!(Arc::ptr_eq(&delta.from, &newest), "log_is_gapless: {} after {}", delta.to.cv(), newest.cv());
        let (listeners, dropped) = {
            let mut state = self.state.lock();
            self.newest.store(Arc::clone(&delta.to));
            // Taken in the same step, so that whoever listens later starts from this delta's snapshot.
            (state.listeners.clone(), self.keep(&mut state, delta))
        };
        // Freeing a snapshot's nodes takes time that nobody should wait for.
        drop(dropped);
        for listener in listeners {
            if !send(&listener.sender, delta, closing) {
                self.state.lock().listeners.retain(|other| other.number != listener.number);
            }
        }
    }

    /// Adds a delta's snapshot to the window, and takes out those beyond its bounds.
    fn keep(&self, state: &mut State, delta: &Delta) -> Vec<Arc<Snapshot>> {
        let (last, bytes) = state.kept.back_mut().expect("the newest is kept");
        if delta.to.cv() == last.cv() {
            // Only indexes changed: the newer one serves the same cv.
            return vec![std::mem::replace(last, Arc::clone(&delta.to))];
        }
        *bytes = bytes_replaced(delta);
        state.kept_bytes += *bytes;
        state.kept.push_back((Arc::clone(&delta.to), 0));
        let mut dropped = Vec::new();
        while state.kept.len() > self.kept_max || (state.kept_bytes > self.bytes_max && state.kept.len() > 1)
        {
            let (snapshot, bytes) = state.kept.pop_front().expect("more than one");
            state.kept_bytes -= bytes;
            dropped.push(snapshot);
        }
        dropped
    }
}

/// Sends unless the listener is gone, or stays full while the store closes.
fn send(sender: &Sender<Arc<Delta>>, delta: &Arc<Delta>, closing: &AtomicBool) -> bool {
    let mut delta = Arc::clone(delta);
    let mut waited_closing = Duration::ZERO;
    loop {
        match sender.send_timeout(delta, LISTENER_POLL_INTERVAL) {
            Ok(()) => return true,
            Err(SendTimeoutError::Disconnected(_)) => return false,
            Err(SendTimeoutError::Timeout(back)) => delta = back,
        }
        if closing.load(Ordering::Acquire) {
            waited_closing += LISTENER_POLL_INTERVAL;
            if waited_closing >= CLOSING_LISTENER_WAIT {
                tracing::warn!(
                    cv = delta.to.cv().0,
                    "a listener is full and not read while the store closes; going on without it"
                );
                return false;
            }
        }
    }
}

/// Estimate of the bytes that only the older snapshot of a delta holds.
fn bytes_replaced(delta: &Delta) -> u64 {
    let mut bytes = 256;
    for changes in &delta.tables {
        let Some(table) = delta.from.table(changes.table) else { continue };
        let trees = 1 + table.indexes().count() as u64;
        let copied =
            (changes.rows.len() as u64 * NODE_COPY_BYTES).min(table.rows().len() as u64 * ENTRY_BYTES);
        let rows = changes.rows.iter().filter_map(|change| change.old.as_ref());
        bytes += trees * copied + rows.map(|row| row.as_bytes().len() as u64).sum::<u64>();
    }
    for table in delta.altered.iter().filter_map(|&table| delta.from.table(table)) {
        let trees = 1 + table.indexes().count() as u64;
        bytes += table.row_bytes() + trees * table.rows().len() as u64 * ENTRY_BYTES;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::SnapshotEditor;

    fn next(from: &Arc<Snapshot>) -> Arc<Delta> {
        Arc::new(SnapshotEditor::new(Arc::clone(from)).finish(from.cv().next()))
    }

    #[test]
    fn the_window_is_bounded_by_count_and_bytes() {
        let open = AtomicBool::new(false);
        for (kept_max, bytes_max, expected) in [(4, u64::MAX, 4), (100, 3 * 256, 4), (1, 0, 1), (0, 0, 1)] {
            let published = Published::new(Arc::new(Snapshot::empty()), kept_max, bytes_max);
            for _ in 0..20 {
                published.publish(&next(&published.newest()), &open);
                assert!(published.kept().0 <= kept_max.max(1) && published.kept().1 <= bytes_max);
            }
            assert_eq!(published.kept().0, expected, "{kept_max} {bytes_max}");
            for cv in 0..=21 {
                let found = published.at(Cv(cv)).map(|snapshot| snapshot.cv());
                let kept = cv <= 20 && cv > 20 - expected as u64;
                assert_eq!(found, kept.then_some(Cv(cv)));
            }
        }
    }

    #[test]
    #[should_panic(expected = "log_is_gapless")]
    fn log_is_gapless() {
        let base = Arc::new(Snapshot::empty());
        let published = Published::new(Arc::clone(&base), 4, 1_000);
        let first = next(&base);
        let second = next(&first.to);
        published.publish(&second, &AtomicBool::new(false));
    }

    #[test]
    fn a_full_listener_does_not_hold_up_closing() {
        let published = Published::new(Arc::new(Snapshot::empty()), 4, 1_000);
        let (_, receiver) = published.listen(1);
        let closing = AtomicBool::new(true);
        published.publish(&next(&published.newest()), &closing);
        published.publish(&next(&published.newest()), &closing);
        assert_eq!(receiver.len(), 1);
        assert!(published.state.lock().listeners.is_empty());
    }
}
