//! A group: what a place holds for one correlation key.

use super::{read::Reader, total::Total};
use crate::{
    expr::EvalError,
    query::shape::{Access, Place},
    store::{KeyBytes, key::row_key},
    worker::BindingId,
};
use hashbrown::HashMap;
use std::{
    collections::BTreeMap,
    ops::{Bound, ControlFlow},
};
use tidegate_wire::model::{Row, TableSchema};

/// One row's change inside a group, tested against the place's filter on both sides.
pub(super) type GroupChange = (Option<Row>, Option<Row>);

/// See the module's description. It exists as long as it has subscribers.
pub(super) struct Group {
    /// The bindings that ask for the key.
    pub(super) subscribers: Subscribers,
    /// The rows it shows, where a limit makes that more than an index look-up.
    pub(super) top: Option<Top>,
    /// The value it shows in the stead of these rows, at an aggregated place.
    pub(super) total: Option<Total>,
}

impl Group {
    /// A group that nobody asks for yet.
    pub(super) fn new() -> Self {
        Self { subscribers: Subscribers::None, top: None, total: None }
    }

    /// What subscribers see, by a reader of the snapshot at which the group stands.
    pub(super) fn shown(
        &self,
        place: &Place,
        key: &[u8],
        reader: &Reader<'_>,
    ) -> Result<Vec<Row>, EvalError> {
        match &self.total {
            Some(total) => Ok(total.row().cloned().into_iter().collect()),
            None => self.rows(place, key, reader),
        }
    }

    fn rows(&self, place: &Place, key: &[u8], reader: &Reader<'_>) -> Result<Vec<Row>, EvalError> {
        if let Some(top) = &self.top {
            return Ok(top.held.values().cloned().collect());
        }
        let mut rows = Vec::new();
        reader.group_rows(place, key, None, |_, row| {
            rows.push(row.clone());
            ControlFlow::Continue(())
        })?;
        Ok(rows)
    }

    /// Takes the rows' changes in; returns what it shows differently. A group that holds nothing yet reads its rows, and
    /// has shown nothing before.
    pub(super) fn advance(
        &mut self,
        place: &Place,
        key: &[u8],
        changes: &[GroupChange],
        after: &Reader<'_>,
    ) -> Result<Vec<GroupChange>, EvalError> {
        let changes = match (&mut self.top, place.limit) {
            (Some(top), Some(limit)) if !changes.is_empty() => {
                top.advance(place, limit, key, changes, after)?
            }
            (None, Some(limit)) => {
                self.top = Some(Top::fill(place, limit, key, after)?);
                Vec::new()
            }
            _ => changes.to_vec(),
        };
        match (&mut self.total, &place.total) {
            (Some(total), Some(of)) => total.advance(of, &changes),
            (None, Some(of)) => {
                self.total = Some(Total::of(of, &self.rows(place, key, after)?)?);
                Ok(Vec::new())
            }
            (_, None) => Ok(changes),
        }
    }
}

/// Bindings with the number of parent rows each has under the key. Most groups have one.
pub(super) enum Subscribers {
    None,
    One(BindingId, u32),
    Many(HashMap<BindingId, u32>),
}

impl Subscribers {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::None => true,
            Self::One(..) => false,
            Self::Many(counts) => counts.is_empty(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = BindingId> + '_ {
        let (one, many) = match self {
            Self::None => (None, None),
            Self::One(binding, _) => (Some(*binding), None),
            Self::Many(counts) => (None, Some(counts.keys().copied())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    /// Adds `by` parent rows to a binding; the counts before and after.
    ///
    /// # Panics
    /// When a count would fall below zero: a parent row left that never entered.
    pub(super) fn add(&mut self, binding: BindingId, by: i32) -> (u32, u32) {
        let step = |count: u32| {
            count.checked_add_signed(by).expect("advance_is_difference: parent rows are counted")
        };
        match self {
            Self::None => {
                let count = step(0);
                if count > 0 {
                    *self = Self::One(binding, count);
                }
                (0, count)
            }
            Self::One(own, count) if *own == binding => {
                let (before, after) = (*count, step(*count));
                *count = after;
                if after == 0 {
                    *self = Self::None;
                }
                (before, after)
            }
            Self::One(own, count) => {
                let mut counts = HashMap::from([(*own, *count)]);
                let after = step(0);
                if after > 0 {
                    counts.insert(binding, after);
                    *self = Self::Many(counts);
                }
                (0, after)
            }
            Self::Many(counts) => {
                let before = counts.get(&binding).copied().unwrap_or(0);
                let after = step(before);
                if after == 0 {
                    counts.remove(&binding);
                } else {
                    counts.insert(binding, after);
                }
                (before, after)
            }
        }
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(BindingId) -> bool) {
        match self {
            Self::One(binding, _) if !keep(*binding) => *self = Self::None,
            Self::Many(counts) => counts.retain(|binding, _| keep(*binding)),
            _ => {}
        }
    }

    pub(super) fn absorb(&mut self, other: Self) {
        match other {
            Self::None => {}
            Self::One(binding, count) => {
                self.add(binding, count.cast_signed());
            }
            Self::Many(counts) => counts.into_iter().for_each(|(binding, count)| {
                self.add(binding, count.cast_signed());
            }),
        }
    }
}

/// The rows that a limited group shows, by their key in the place's index, whose order within the group is the
/// place's order.
#[derive(Default)]
pub(super) struct Top {
    held: BTreeMap<KeyBytes, Row>,
}

impl Top {
    /// Reads a group's first rows.
    fn fill(place: &Place, limit: usize, key: &[u8], after: &Reader<'_>) -> Result<Self, EvalError> {
        let mut held = BTreeMap::new();
        if limit > 0 {
            after.group_rows(place, key, None, |row_key, row| {
                held.insert(KeyBytes::from_slice(row_key), row.clone());
                if held.len() == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
        }
        Ok(Self { held })
    }

    /// Folds a group's changes into the rows it shows; returns what it shows differently.
    fn advance(
        &mut self,
        place: &Place,
        limit: usize,
        key: &[u8],
        changes: &[GroupChange],
        after: &Reader<'_>,
    ) -> Result<Vec<GroupChange>, EvalError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let schema = after.schema(place.table);
        // A full group may have rows beyond its last one; those are not held and are found by reading on from it.
        let bound = if self.held.len() == limit {
            self.held.last_key_value().map(|(key, _)| key.clone())
        } else {
            None
        };
        let (mut removed, mut added) = (BTreeMap::new(), BTreeMap::new());
        for (old, _) in changes {
            if let Some(old) = old
                && let Some((key, row)) = self.held.remove_entry(&index_key(place, schema, old))
            {
                removed.insert(key, row);
            }
        }
        for (_, new) in changes {
            if let Some(new) = new {
                let key = index_key(place, schema, new);
                if bound.as_ref().is_none_or(|bound| key <= *bound) {
                    self.held.insert(key.clone(), new.clone());
                    added.insert(key, new.clone());
                }
            }
        }
        if let Some(bound) = bound
            && self.held.len() < limit
        {
            after.group_rows(place, key, Some(Bound::Excluded(&bound)), |row_key, row| {
                let row_key = KeyBytes::from_slice(row_key);
                self.held.insert(row_key.clone(), row.clone());
                added.insert(row_key, row.clone());
                if self.held.len() == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
        }
        while self.held.len() > limit {
            let (key, row) = self.held.pop_last().expect("more rows than the limit");
            if added.remove(&key).is_none() {
                removed.insert(key, row);
            }
        }
        let mut shown = Vec::with_capacity(removed.len() + added.len());
        for (key, old) in removed {
            let new = added.remove(&key);
            if new.as_ref() != Some(&old) {
                shown.push((Some(old), new));
            }
        }
        shown.extend(added.into_values().map(|new| (None, Some(new))));
        Ok(shown)
    }
}

/// A row's key in the tree that a place is read by.
fn index_key(place: &Place, schema: &TableSchema, row: &Row) -> KeyBytes {
    match &place.access {
        Access::Primary => row_key(row, &schema.primary_key),
        Access::Index(spec) => spec.key(schema, row),
    }
}
