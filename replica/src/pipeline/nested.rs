//! Nested queries: the operators that maintain one shape of them for all its bindings.
//!
//! Every place is the same operator. It holds *groups*, the correlation keys that someone asks for, each with its
//! subscribers: the bindings that have parent rows under that key, counted. The root's keys are made of slot values
//! alone and its subscribers are the bindings themselves. What one commit changes is worked out place by place, in
//! preorder:
//!
//! 1. the table's changed rows, and the unchanged rows whose EXISTS answer flipped, are tested before and after,
//!    and fall into the groups that exist (a change under a key that nobody asks for costs one look-up);
//! 2. a limited group folds its changes into the rows it shows, and refills from an ordered index;
//! 3. what a group shows differently goes to its subscribers; a binding that newly asks for a key gets the group's
//!    whole content, one that no longer does loses it;
//! 4. each row that enters or leaves a binding asks for, or releases, the keys of the child places.
//!
//! So a commit costs what the bindings that it touches cost, however many there are. All of it lives on one
//! worker thread; nothing here blocks.

use super::{Budget, OperatorProfile, StepFault, group::Group};
use crate::{
    query::Shape,
    store::{Delta, KeyBytes, Snapshot},
    worker::{BindingId, Change},
};
use hashbrown::HashMap;
use std::sync::Arc;
use tidegate_wire::model::{Order, Value, key::encode_cell};

/// See the module's description.
pub struct Nested {
    pub(super) shape: Arc<Shape>,
    pub(super) places: Vec<HashMap<KeyBytes, Group>>,
    pub(super) bindings: HashMap<BindingId, Arc<[Value]>>,
}

impl Nested {
    /// An operator tree without bindings, which holds nothing.
    #[must_use]
    pub fn new(shape: Arc<Shape>) -> Self {
        let places = shape.places().iter().map(|_| HashMap::new()).collect();
        Self { shape, places, bindings: HashMap::new() }
    }

    /// The shape it maintains.
    #[must_use]
    pub fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// How many bindings it serves.
    #[must_use]
    pub fn bindings(&self) -> usize {
        self.bindings.len()
    }

    /// What its places hold.
    #[must_use]
    pub fn profiles(&self) -> Vec<OperatorProfile> {
        let profile =
            |place: &HashMap<_, _>| OperatorProfile { keys: place.len(), ..OperatorProfile::default() };
        self.places.iter().map(profile).collect()
    }

    /// How many groups it holds over all places: the size of its state, in keys.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.places.iter().map(HashMap::len).sum()
    }

    /// Adds a binding; the changes appended to `out` are its whole result at the snapshot.
    ///
    /// # Errors
    /// When evaluating the query fails; the binding is then not there.
    ///
    /// # Panics
    /// When the binding is there already, or has not one value per slot.
    pub fn bind(
        &mut self,
        binding: BindingId,
        values: Arc<[Value]>,
        at: &Arc<Snapshot>,
        budget: &Budget,
        out: &mut Vec<Change>,
    ) -> Result<(), StepFault> {
        assert_eq!(values.len(), self.shape.slots.len(), "a binding has one value per slot");
        let root = root_key(&self.shape, &values);
        let previous = self.bindings.insert(binding, values);
        assert!(previous.is_none(), "a binding is bound once");
        let result = self.step(&Delta::empty(Arc::clone(at)), Some((root, binding, 1)), budget, out);
        let fault = match result {
            Ok(mut faults) => faults.remove(&binding),
            Err(fault) => Some(fault),
        };
        match fault {
            None => Ok(()),
            Some(fault) => {
                self.discard(|other| other == binding);
                Err(fault)
            }
        }
    }

    /// Removes a binding and what only it asked for; how many rows its result had.
    pub fn unbind(&mut self, binding: BindingId, at: &Arc<Snapshot>, budget: &Budget) -> usize {
        let Some(values) = self.bindings.get(&binding) else { return 0 };
        let root = root_key(&self.shape, values);
        let mut gone = Vec::new();
        let done = self.step(&Delta::empty(Arc::clone(at)), Some((root, binding, -1)), budget, &mut gone);
        match done {
            Ok(faults) if faults.is_empty() => {
                self.bindings.remove(&binding);
            }
            // What it asked for cannot be walked; it is searched for instead.
            _ => self.discard(|other| other == binding),
        }
        gone.len()
    }

    /// What a delta changes, appended to `out`. Bindings whose evaluation failed are gone and returned with the
    /// reason; their changes are not in `out`.
    ///
    /// # Errors
    /// When the whole is to be discarded: the deadline passed.
    pub fn advance(
        &mut self,
        delta: &Delta,
        budget: &Budget,
        out: &mut Vec<Change>,
    ) -> Result<HashMap<BindingId, StepFault>, StepFault> {
        self.step(delta, None, budget, out)
    }

    /// Takes over the bindings of another tree of the same shape that stands at the same snapshot.
    pub fn absorb(&mut self, other: Self) {
        debug_assert_eq!(self.shape.key, other.shape.key);
        self.bindings.extend(other.bindings);
        for (own, other) in self.places.iter_mut().zip(other.places) {
            for (key, group) in other {
                match own.entry(key) {
                    hashbrown::hash_map::Entry::Vacant(entry) => {
                        entry.insert(group);
                    }
                    hashbrown::hash_map::Entry::Occupied(mut entry) => {
                        entry.get_mut().subscribers.absorb(group.subscribers);
                    }
                }
            }
        }
    }

    /// Forgets bindings wherever they are: for those whose state cannot be walked.
    pub(super) fn discard(&mut self, mut gone: impl FnMut(BindingId) -> bool) {
        self.bindings.retain(|binding, _| !gone(*binding));
        for groups in &mut self.places {
            groups.retain(|_, group| {
                group.subscribers.retain(|binding| !gone(binding));
                !group.subscribers.is_empty()
            });
        }
    }
}

/// The root's key for slot values.
fn root_key(shape: &Shape, values: &[Value]) -> KeyBytes {
    let mut out = Vec::with_capacity(9 * values.len());
    for column in &shape.places()[0].group {
        match column.source {
            crate::query::shape::Source::Slot(slot) => {
                encode_cell(values[slot].as_ref(), Order::ASC, &mut out)
            }
            crate::query::shape::Source::Parent(_) => unreachable!("the root has no parent"),
        }
    }
    KeyBytes::from_slice(&out)
}
