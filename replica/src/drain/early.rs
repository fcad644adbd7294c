//! Events of families that are not registered yet, kept for their registration.

use super::limits::{EARLY_CHANGES_MAX, EARLY_FAMILIES_MAX};
use crate::worker::{QueryId, WorkerEvent};
use hashbrown::HashMap;
use std::collections::VecDeque;

/// Bounded by [`EARLY_FAMILIES_MAX`] and [`EARLY_CHANGES_MAX`].
#[derive(Debug, Default)]
pub(super) struct EarlyEvents {
    events: HashMap<QueryId, Vec<WorkerEvent>>,
    /// The families of `events`, the one that has waited longest first.
    order: VecDeque<QueryId>,
    /// The weight of all of `events`.
    weight: usize,
}

impl EarlyEvents {
    /// Keeps an event. Returns the families given up for it: their events are incomplete from here on.
    pub(super) fn push(&mut self, query: QueryId, event: WorkerEvent) -> Vec<QueryId> {
        self.weight += weight(&event);
        let events = self.events.entry(query).or_default();
        if events.is_empty() {
            self.order.push_back(query);
        }
        events.push(event);
        let mut given_up = Vec::new();
        while (self.order.len() > EARLY_FAMILIES_MAX || self.weight > EARLY_CHANGES_MAX)
            && let Some(&oldest) = self.order.front()
        {
            self.take(oldest);
            given_up.push(oldest);
        }
        given_up
    }

    /// A family's events in the order they came.
    pub(super) fn take(&mut self, query: QueryId) -> Vec<WorkerEvent> {
        let Some(events) = self.events.remove(&query) else { return Vec::new() };
        self.order.retain(|&other| other != query);
        self.weight -= events.iter().map(weight).sum::<usize>();
        events
    }
}

fn weight(event: &WorkerEvent) -> usize {
    1 + match event {
        WorkerEvent::Hydrated { changes, .. } | WorkerEvent::Changed { changes, .. } => changes.len(),
        WorkerEvent::Progressed { .. } | WorkerEvent::Faulted { .. } => 0,
    }
}
