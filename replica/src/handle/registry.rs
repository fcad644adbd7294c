//! The families, bindings and subscriptions there are, and who still wants them. Held under one lock, which is kept
//! while the drain and the workers are told, so that they hear of one family's life in order.

use super::{
    named::NamedState,
    request::{ByName, DefinitionId},
};
use crate::{
    drain::ConnId,
    query::Shape,
    store::IndexId,
    worker::{BindingId, QueryGauges, QueryId},
};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Instant,
};
use tidegate_wire::model::{Order, SubId, Value, key::encode_cell};

/// See the module's description.
#[derive(Default)]
pub(super) struct Registry {
    /// Live families by their shape's key.
    pub(super) families: HashMap<String, Family>,
    /// The shape's key of each live family.
    pub(super) by_query: HashMap<QueryId, String>,
    /// Each connection's subscriptions.
    pub(super) connections: HashMap<ConnId, HashMap<SubId, Subscription>>,
    /// Named queries.
    pub(super) named: BTreeMap<String, NamedState>,
    /// How many definitions there have been.
    definitions: u64,
}

/// One shape, live on a worker.
pub(super) struct Family {
    pub(super) query: QueryId,
    pub(super) worker: usize,
    pub(super) shape: Arc<Shape>,
    pub(super) gauges: Arc<QueryGauges>,
    /// What its operators compute that others may compute too.
    pub(super) units: Vec<Arc<str>>,
    /// The indexes it reads; released with it.
    pub(super) indexes: Vec<IndexId>,
    /// Its bindings by their encoded values.
    pub(super) bindings: HashMap<Vec<u8>, Binding>,
}

/// One tuple of slot values that someone wants, or wanted until lately.
pub(super) struct Binding {
    pub(super) binding: BindingId,
    pub(super) values: Arc<[Value]>,
    pub(super) subscribers: usize,
    pub(super) pins: usize,
    /// Whether its worker has hydrated it.
    pub(super) hydrated: Arc<AtomicBool>,
    /// Since when nobody wants it, and for how long it is kept all the same.
    pub(super) idle: Option<Idle>,
}

impl Binding {
    /// Whether nobody wants it, nor is it kept for whoever may come back: what is kept is a result, so that one which is
    /// still being computed is not.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.idle.is_some_and(|idle| idle.until <= now || !self.hydrated.load(Relaxed))
    }
}

/// See [`Binding::idle`].
#[derive(Clone, Copy)]
pub(super) struct Idle {
    pub(super) until: Instant,
}

/// What a subscription is attached to.
#[derive(Clone)]
pub(super) struct Subscription {
    pub(super) query: QueryId,
    pub(super) values: Vec<u8>,
    pub(super) binding: BindingId,
    /// The named query it was made by.
    pub(super) name: Option<String>,
    pub(super) idle_ttl: std::time::Duration,
}

/// Slot values as a map key.
pub(super) fn values_key(values: &[Value]) -> Vec<u8> {
    let mut out = Vec::with_capacity(9 * values.len());
    for value in values {
        encode_cell(value.as_ref(), Order::ASC, &mut out);
    }
    out
}

impl Registry {
    /// A live family.
    pub(super) fn family(&self, query: QueryId) -> Option<&Family> {
        self.families.get(self.by_query.get(&query)?)
    }

    /// A live binding, if it is still the one that was meant.
    pub(super) fn binding_mut(
        &mut self,
        query: QueryId,
        values: &[u8],
        binding: BindingId,
    ) -> Option<&mut Binding> {
        let family = self.families.get_mut(self.by_query.get(&query)?)?;
        family.bindings.get_mut(values).filter(|found| found.binding == binding)
    }

    /// The worker of a family that has a unit in common with these.
    pub(super) fn worker_with(&self, units: &[Arc<str>]) -> Option<usize> {
        let has = |family: &&Family| family.units.iter().any(|unit| units.contains(unit));
        self.families.values().find(has).map(|family| family.worker)
    }

    /// A number for a new definition.
    pub(super) fn next_definition(&mut self) -> DefinitionId {
        self.definitions += 1;
        DefinitionId(self.definitions)
    }

    /// Whether a name still stands for what a query was prepared from.
    pub(super) fn is_current(&self, by_name: &ByName) -> bool {
        self.named.get(&by_name.name).is_some_and(|named| named.id == by_name.definition)
    }

    /// Subscriptions over all connections.
    pub(super) fn subscriptions(&self) -> usize {
        self.connections.values().map(HashMap::len).sum()
    }

    /// Forgets the subscriptions to families, or to single bindings of them, that are no more.
    pub(super) fn forget_subscriptions(&mut self, gone: &HashSet<(QueryId, Option<BindingId>)>) {
        for subscriptions in self.connections.values_mut() {
            subscriptions.retain(|_, Subscription { query, binding, .. }| {
                !gone.contains(&(*query, None)) && !gone.contains(&(*query, Some(*binding)))
            });
        }
    }

    /// Ends one subscription's claim on its binding.
    pub(super) fn release(&mut self, gone: &Subscription, now: Instant) {
        if let Some(found) = self.binding_mut(gone.query, &gone.values, gone.binding) {
            found.subscribers -= 1;
            if found.subscribers == 0 && found.pins == 0 {
                found.idle = Some(Idle { until: now + gone.idle_ttl });
            }
        }
    }
}
