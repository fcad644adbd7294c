//! The families' owner: hears of faults before any subscriber does, and sweeps what nobody wants any more.

use super::{Inner, registry::Registry};
use crate::{
    drain::{BatchOps, ConnId, Control, Recipient, Sink},
    query::Output,
    worker::{BindingId, Fault, FaultCause, QueryId, WorkerInput},
};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use parking_lot::{Mutex, MutexGuard};
use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};
use tidegate_wire::model::{Cv, Epoch, SubId};

/// A family, or one binding of it, that faulted.
pub(super) struct OwnerFault {
    query: QueryId,
    binding: Option<BindingId>,
}

/// Faults that the registry does not know of yet.
///
/// The drain's thread must never wait for the registry, whose holder may wait for the drain; so faults are left here.
/// They are here before any subscriber is told, and whoever looks for a family takes them into account first: a client
/// that subscribes again because it was told of a fault never meets what faulted. The list is bounded by the families
/// and bindings there are, each of which faults once at most.
#[derive(Default)]
pub(super) struct OwnerFaults(Mutex<Vec<OwnerFault>>);

/// The server's sink, with the owner's ear beside it.
pub(super) struct OwnerSink {
    sink: Box<dyn Sink + Send>,
    faults: Arc<OwnerFaults>,
    /// Wakes the owner.
    wake: Sender<()>,
}

impl OwnerSink {
    pub(super) fn new(sink: Box<dyn Sink + Send>) -> (Self, Arc<OwnerFaults>, Receiver<()>) {
        let (wake, woken) = bounded(1);
        let faults = Arc::new(OwnerFaults::default());
        (Self { sink, faults: Arc::clone(&faults), wake }, faults, woken)
    }
}

impl Sink for OwnerSink {
    fn subscribed(&mut self, conn: ConnId, sub: SubId, epoch: Epoch, output: &Arc<Output>, resumed: bool) {
        self.sink.subscribed(conn, sub, epoch, output, resumed);
    }

    fn batch(&mut self, batch: &BatchOps, recipients: &[Recipient]) {
        self.sink.batch(batch, recipients);
    }

    fn progress(&mut self, conn: ConnId, cv_min: Cv) {
        self.sink.progress(conn, cv_min);
    }

    fn idle_progress(&mut self, conn: ConnId, cv_min: Cv) {
        self.sink.idle_progress(conn, cv_min);
    }

    fn faulted(&mut self, conn: ConnId, sub: SubId, fault: &Fault) {
        self.sink.faulted(conn, sub, fault);
    }

    fn owner_faulted(&mut self, query: QueryId, binding: Option<BindingId>, fault: &Fault) {
        self.faults.0.lock().push(OwnerFault { query, binding });
        // A wake-up that waits already does for this fault too.
        let _ = self.wake.try_send(());
        self.sink.owner_faulted(query, binding, fault);
    }

    fn flush(&mut self) {
        self.sink.flush();
    }
}

/// How often bindings that nobody wants are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_millis(500);

/// The owner's thread: ends when the replica is gone.
pub(super) fn run(inner: &Weak<Inner>, woken: &Receiver<()>) {
    loop {
        let wake = woken.recv_timeout(SWEEP_INTERVAL);
        let Some(inner) = inner.upgrade() else { return };
        match wake {
            Ok(()) => drop(inner.registry()),
            Err(RecvTimeoutError::Timeout) => inner.sweep(Instant::now()),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

impl Inner {
    /// The registry, without what has faulted.
    pub(super) fn registry(&self) -> MutexGuard<'_, Registry> {
        let mut registry = self.registry.lock();
        let faults = std::mem::take(&mut *self.faults.0.lock());
        if !faults.is_empty() {
            registry.forget_subscriptions(&faults.iter().map(|fault| (fault.query, fault.binding)).collect());
        }
        for fault in faults {
            self.forget_faulted(&mut registry, &fault);
        }
        registry
    }

    /// Takes a faulted family or binding out of the registry, so that the next subscription makes a new one.
    fn forget_faulted(&self, registry: &mut Registry, fault: &OwnerFault) {
        match fault.binding {
            None => self.remove_family(registry, fault.query),
            Some(binding) => {
                let Some(key) = registry.by_query.get(&fault.query).cloned() else { return };
                if let Some(family) = registry.families.get_mut(&key) {
                    family.bindings.retain(|_, found| found.binding != binding);
                    if family.bindings.is_empty() {
                        self.end_family(registry, fault.query);
                    }
                }
            }
        }
    }

    /// Removes the bindings that nobody wanted for longer than they are kept, and the families without bindings.
    fn sweep(&self, now: Instant) {
        let mut registry = self.registry();
        let mut empty = Vec::new();
        for family in registry.families.values_mut() {
            let query = family.query;
            family.bindings.retain(|_, found| {
                let over = found.idle.is_some_and(|idle| idle.until <= now);
                if over {
                    let fault =
                        Fault { cause: FaultCause::Removed, message: "the query is no longer kept".into() };
                    let _ = self.drain.control(Control::Unbind { query, binding: found.binding, fault });
                    self.workers[family.worker].send(WorkerInput::Unbind { query, binding: found.binding });
                }
                !over
            });
            if family.bindings.is_empty() {
                empty.push(query);
            }
        }
        for query in empty {
            self.end_family(&mut registry, query);
        }
    }

    /// Ends a family that has no bindings.
    fn end_family(&self, registry: &mut Registry, query: QueryId) {
        if let Some(family) = registry.family(query) {
            let fault = Fault { cause: FaultCause::Removed, message: "the query is no longer kept".into() };
            let _ = self.drain.control(Control::Remove { query, fault });
            self.workers[family.worker].send(WorkerInput::Remove { query });
        }
        self.remove_family(registry, query);
    }

    fn remove_family(&self, registry: &mut Registry, query: QueryId) {
        let Some(key) = registry.by_query.remove(&query) else { return };
        if let Some(family) = registry.families.remove(&key) {
            family.indexes.into_iter().for_each(|index| self.store.release_index(index));
        }
    }
}
