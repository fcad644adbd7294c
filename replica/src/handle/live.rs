//! The shapes that are live, for operators.

use super::{Inner, LiveQuery, prepare::family_status};
use crate::{explain::explain, query::Resolved};
use std::{cmp::Reverse, sync::Arc};

impl Inner {
    /// See [`super::Replica::live_queries`].
    pub(super) fn live_queries(&self, count_max: usize) -> (Vec<LiveQuery>, usize) {
        let mut all: Vec<_> = {
            let registry = self.registry();
            let families = registry.families.values();
            let live = families.map(|family| {
                (family_status(family), self.workers[family.worker].id.0, Arc::clone(&family.shape))
            });
            live.collect()
        };
        let count = all.len();
        all.sort_by_key(|(status, ..)| (Reverse(status.subscribers), status.query));
        all.truncate(count_max);
        // Plans are written without the registry's lock.
        let snapshot = self.store.snapshot();
        let live = all.into_iter().map(|(status, worker, shape)| {
            let plan = explain(&Resolved { shape, values: Vec::new() }, &snapshot, None);
            LiveQuery { status, worker, plan }
        });
        (live.collect(), count)
    }
}
