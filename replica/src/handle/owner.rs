//! The families' owner: hears of faults before any subscriber does, and sweeps what nobody wants any more.

use super::{Inner, registry::Registry};
use crate::{
    drain::{BatchOps, ConnId, Control, Recipient, Sink},
    query::Output,
    worker::{BindingId, Fault, FaultCause, QueryId, WorkerInput},
};
use crossbeam_channel::{Receiver, Sender, unbounded};
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

/// The server's sink, with the owner's ear beside it.
///
/// The drain's thread must never wait for the registry, whose holder may wait for the drain; so faults go through a
/// channel. It is unbounded in form, and bounded in fact: each family and binding faults once at most.
pub(super) struct OwnerSink {
    sink: Box<dyn Sink + Send>,
    faults: Sender<OwnerFault>,
}

impl OwnerSink {
    pub(super) fn new(sink: Box<dyn Sink + Send>) -> (Self, Receiver<OwnerFault>) {
        let (faults, receiver) = unbounded();
        (Self { sink, faults }, receiver)
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

    fn faulted(&mut self, conn: ConnId, sub: SubId, fault: &Fault) {
        self.sink.faulted(conn, sub, fault);
    }

    fn owner_faulted(&mut self, query: QueryId, binding: Option<BindingId>, fault: &Fault) {
        // The owner's thread outlives the drain; when both end together nobody is left to care.
        let _ = self.faults.send(OwnerFault { query, binding });
        self.sink.owner_faulted(query, binding, fault);
    }

    fn flush(&mut self) {
        self.sink.flush();
    }
}

/// How often bindings that nobody wants are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_millis(500);

/// The owner's thread: ends when the replica is gone.
pub(super) fn run(inner: &Weak<Inner>, faults: &Receiver<OwnerFault>) {
    loop {
        let fault = faults.recv_timeout(SWEEP_INTERVAL);
        let Some(inner) = inner.upgrade() else { return };
        match fault {
            Ok(fault) => inner.forget_faulted(&fault),
            Err(crossbeam_channel::RecvTimeoutError::Timeout) => inner.sweep(Instant::now()),
            Err(crossbeam_channel::RecvTimeoutError::Disconnected) => return,
        }
    }
}

impl Inner {
    /// Takes a faulted family or binding out of the registry, so that the next subscription makes a new one.
    fn forget_faulted(&self, fault: &OwnerFault) {
        let mut registry = self.registry.lock();
        match fault.binding {
            None => self.remove_family(&mut registry, fault.query),
            Some(binding) => {
                let Some(key) = registry.by_query.get(&fault.query).cloned() else { return };
                if let Some(family) = registry.families.get_mut(&key) {
                    family.bindings.retain(|_, found| found.binding != binding);
                    if family.bindings.is_empty() {
                        self.end_family(&mut registry, fault.query);
                    }
                }
            }
        }
    }

    /// Removes the bindings that nobody wanted for longer than they are kept, and the families without bindings.
    fn sweep(&self, now: Instant) {
        let mut registry = self.registry.lock();
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
