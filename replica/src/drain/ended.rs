//! Families and bindings that ended not long ago, with the fault they ended by. Ids are never reused, so an event
//! for one of them is late, and an attach to one of them is answered with its fault.

use super::limits::ENDED_MAX;
use crate::worker::{BindingId, Fault, FaultCause, QueryId};
use hashbrown::HashMap;
use std::{collections::VecDeque, sync::Arc};

type Name = (QueryId, Option<BindingId>);

/// The last [`ENDED_MAX`] of them.
#[derive(Debug, Default)]
pub(super) struct Ended {
    faults: HashMap<Name, Arc<Fault>>,
    /// Oldest first; the same names as in `faults`.
    order: VecDeque<Name>,
}

impl Ended {
    /// Remembers how a family, or one binding of it, ended. The first fault stands.
    pub(super) fn insert(&mut self, query: QueryId, binding: Option<BindingId>, fault: Arc<Fault>) {
        if self.faults.try_insert((query, binding), fault).is_err() {
            return;
        }
        self.order.push_back((query, binding));
        if self.order.len() > ENDED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.faults.remove(&oldest);
        }
    }

    pub(super) fn family(&self, query: QueryId) -> Option<&Arc<Fault>> {
        self.faults.get(&(query, None))
    }

    pub(super) fn binding(&self, query: QueryId, binding: BindingId) -> Option<&Arc<Fault>> {
        self.faults.get(&(query, Some(binding)))
    }

    /// What an attach to a binding that does not exist is told.
    pub(super) fn explain(&self, query: QueryId, binding: BindingId) -> Fault {
        let known = self.binding(query, binding).or_else(|| self.family(query));
        known.map_or_else(
            || Fault {
                cause: FaultCause::Derive,
                message: format!(
                    "binding {} of query {} is not maintained here, subscribe again",
                    binding.0, query.0
                ),
            },
            |fault| (**fault).clone(),
        )
    }
}
