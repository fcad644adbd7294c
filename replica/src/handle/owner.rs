//! The families' owner: hears of faults before any subscriber does, and sweeps what nobody wants any more.

use super::{
    Inner,
    registry::Registry,
    request::{ByName, DefinitionId},
};
use crate::{
    drain::{BatchOps, ConnId, Control, Recipient, Sink},
    query::Output,
    worker::{BindingId, Fault, FaultCause, QueryId, WorkerInput},
};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Map;
use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};
use tidegate_wire::model::{Cv, Epoch, SubId};

/// A family, or one binding of it, that faulted.
pub(super) struct OwnerFault {
    query: QueryId,
    binding: Option<BindingId>,
    message: String,
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
    pub(super) fn new(sink: Box<dyn Sink + Send>) -> (Self, Arc<OwnerFaults>, Sender<()>, Receiver<()>) {
        let (wake, woken) = bounded(1);
        let faults = Arc::new(OwnerFaults::default());
        (Self { sink, faults: Arc::clone(&faults), wake: wake.clone() }, faults, wake, woken)
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
        self.faults.0.lock().push(OwnerFault { query, binding, message: fault.message.clone() });
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
    // What is awaited here comes from other threads; the runtime has nothing to do of its own.
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    loop {
        let wake = woken.recv_timeout(SWEEP_INTERVAL);
        let Some(inner) = inner.upgrade() else { return };
        match wake {
            Ok(()) => drop(inner.registry()),
            Err(RecvTimeoutError::Timeout) => {
                inner.sweep(Instant::now());
                inner.fill_views(Instant::now());
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let due = inner.due_for_pinning(Instant::now());
        if let (false, Ok(runtime)) = (due.is_empty(), &runtime) {
            runtime.block_on(async {
                for (name, id) in due {
                    inner.pin_again(&name, id).await;
                }
            });
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

    /// Named queries whose pin was lost and is to be tried again now.
    fn due_for_pinning(&self, now: Instant) -> Vec<(String, DefinitionId)> {
        let registry = self.registry();
        let is_due = |due: Option<Instant>| due.is_some_and(|due| due <= now);
        let due = registry.named.iter().filter(|(_, named)| is_due(named.repin.due));
        due.map(|(name, named)| (name.clone(), named.id)).collect()
    }

    /// Pins a named query again, unless the name has come to mean something else meanwhile.
    async fn pin_again(self: &Arc<Self>, name: &str, id: DefinitionId) {
        let pinned = match self.prepare_named(name, &Map::new(), &Map::new()) {
            Ok(prepared) if prepared.by_name.as_ref().map(ByName::id) == Some(id) => {
                self.pin(&prepared).await
            }
            Ok(_) => return,
            Err(error) => Err(error),
        };
        let now = Instant::now();
        let mut registry = self.registry();
        let is_live = match &pinned {
            Ok((query, values, binding)) => registry.binding_mut(*query, values, *binding).is_some(),
            Err(_) => true,
        };
        let named = registry.named.get_mut(name).filter(|named| named.id == id && named.pinned.is_none());
        match (named, pinned) {
            (Some(named), Ok(pinned)) if is_live => named.pinned_again(pinned, now),
            // It faulted before this was known.
            (Some(named), Ok(_)) => {
                let fault = std::mem::take(&mut named.repin.fault);
                named.lost(fault, now);
            }
            (Some(named), Err(error)) => named.lost(error.message, now),
            (None, Ok(pinned)) => self.unpin(&mut registry, &pinned),
            (None, Err(_)) => {}
        }
    }

    /// Takes a faulted family or binding out of the registry, so that the next subscription makes a new one.
    fn forget_faulted(&self, registry: &mut Registry, fault: &OwnerFault) {
        let now = Instant::now();
        for named in registry.named.values_mut() {
            let is_lost = named.pinned.as_ref().is_some_and(|(query, _, binding)| {
                *query == fault.query && fault.binding.is_none_or(|faulted| faulted == *binding)
            });
            if is_lost {
                named.lost(fault.message.clone(), now);
            }
        }
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

    /// Removes the bindings that nobody wants and that are not kept all the same, and the families without bindings.
    fn sweep(&self, now: Instant) {
        let mut registry = self.registry();
        let mut empty = Vec::new();
        for family in registry.families.values_mut() {
            let query = family.query;
            family.bindings.retain(|_, found| {
                let over = found.is_over(now);
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
