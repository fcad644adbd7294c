//! Bags of rows with weights, and rows arranged by keys.

use crate::{
    expr::{Cells, EvalError, NoExists, Scalar},
    store::KeyBytes,
};
use hashbrown::{HashMap, hash_map::EntryRef};
use smallvec::SmallVec;
use std::{
    cell::Cell,
    cmp::Ordering,
    hash::{Hash, Hasher},
};
use tidegate_wire::model::{Order, Row, key::encode_cell};

/// Rows with how often each comes (above 0) or goes (below 0).
pub(super) type Bag = Vec<(Row, i64)>;

/// A row told apart by its bytes, and ordered by them.
#[derive(Clone, Debug)]
pub(super) struct ByBytes(pub(super) Row);

impl PartialEq for ByBytes {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes() == other.0.as_bytes()
    }
}

impl Eq for ByBytes {}

impl PartialOrd for ByBytes {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByBytes {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.as_bytes().cmp(other.0.as_bytes())
    }
}

impl Hash for ByBytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_bytes().hash(state);
    }
}

/// Adds up equal rows, and drops those that come to nothing.
pub(super) fn consolidate(bag: &mut Bag) {
    if bag.len() < 2 {
        return;
    }
    let mut sums: HashMap<ByBytes, i64> = HashMap::with_capacity(bag.len());
    for (row, weight) in bag.drain(..) {
        *sums.entry(ByBytes(row)).or_default() += weight;
    }
    bag.extend(sums.into_iter().filter(|(_, weight)| *weight != 0).map(|(row, weight)| (row.0, weight)));
}

/// Appends the key of a row; whether it finds anything, which a NULL does not where it does not agree with NULL.
pub(super) fn encode_key<R: Cells>(
    keys: &[Scalar],
    null_agrees: &[bool],
    row: &R,
    out: &mut Vec<u8>,
) -> Result<bool, EvalError> {
    for (at, key) in keys.iter().enumerate() {
        if let Scalar::Column(column) = key {
            let cell = row.cell(*column);
            if cell.is_null() && !null_agrees.get(at).copied().unwrap_or(true) {
                return Ok(false);
            }
            encode_cell(cell, Order::ASC, out);
            continue;
        }
        let value = key.value(row, &NoExists)?;
        if value.as_ref().is_null() && !null_agrees.get(at).copied().unwrap_or(true) {
            return Ok(false);
        }
        encode_cell(value.as_ref(), Order::ASC, out);
    }
    Ok(true)
}

/// A buffer for keys that are needed for a moment, so that not each costs an allocation.
#[derive(Default)]
pub(super) struct KeyBuffer(Cell<Vec<u8>>);

impl KeyBuffer {
    /// What `work` makes of the buffer, emptied. Another may come for it meanwhile, which then gets one of its own.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let mut buffer = self.0.take();
        buffer.clear();
        let result = work(&mut buffer);
        self.0.set(buffer);
        result
    }
}

/// A row's key in an order.
pub(super) fn encode_order<R: Cells>(
    order: &[(Scalar, Order)],
    row: &R,
    out: &mut Vec<u8>,
) -> Result<(), EvalError> {
    for (scalar, order) in order {
        encode_cell(scalar.value(row, &NoExists)?.as_ref(), *order, out);
    }
    Ok(())
}

/// Rows by key, each with its weight.
#[derive(Debug, Default)]
pub(super) struct Arrangement {
    groups: HashMap<KeyBytes, Group>,
}

/// The rows under one key. Few are a list; many are hashed, so that one can be found among them.
#[derive(Debug)]
enum Group {
    Few(SmallVec<[(Row, i64); 1]>),
    Many(HashMap<ByBytes, i64>),
}

/// Rows of a group that are a list.
const FEW_MAX: usize = 16;

impl Arrangement {
    /// Adds to a row's weight under a key.
    pub(super) fn add(&mut self, key: &[u8], row: &Row, weight: i64) {
        match self.groups.entry_ref(key) {
            EntryRef::Vacant(entry) => {
                entry.insert(Group::Few(SmallVec::from_buf([(row.clone(), weight)])));
            }
            EntryRef::Occupied(mut entry) => {
                entry.get_mut().add(row, weight);
                if entry.get().is_empty() {
                    entry.remove();
                }
            }
        }
    }

    /// The rows under a key.
    pub(super) fn get(&self, key: &[u8]) -> impl Iterator<Item = (&Row, i64)> + use<'_> {
        self.groups.get(key).into_iter().flat_map(Group::iter)
    }

    /// Whether there is a row under a key.
    pub(super) fn contains(&self, key: &[u8]) -> bool {
        self.groups.contains_key(key)
    }

    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    /// Keeps only some rows.
    pub(super) fn retain(&mut self, keep: &dyn Fn(&Row) -> bool) {
        self.groups.retain(|_, group| {
            match group {
                Group::Few(rows) => rows.retain(|(row, _)| keep(row)),
                Group::Many(rows) => rows.retain(|row, _| keep(&row.0)),
            }
            !group.is_empty()
        });
    }

    /// Takes over what another holds.
    pub(super) fn absorb(&mut self, other: Self) {
        for (key, group) in other.groups {
            group.iter().for_each(|(row, weight)| self.add(&key, row, weight));
        }
    }
}

impl Group {
    fn add(&mut self, row: &Row, weight: i64) {
        match self {
            Self::Few(rows) => {
                let found = rows.iter().position(|(other, _)| other.as_bytes() == row.as_bytes());
                match found {
                    Some(at) => {
                        rows[at].1 += weight;
                        if rows[at].1 == 0 {
                            rows.swap_remove(at);
                        }
                    }
                    None => rows.push((row.clone(), weight)),
                }
                if rows.len() > FEW_MAX {
                    let rows = std::mem::take(rows);
                    *self =
                        Self::Many(rows.into_iter().map(|(row, weight)| (ByBytes(row), weight)).collect());
                }
            }
            Self::Many(rows) => {
                let sum = rows.entry(ByBytes(row.clone())).or_default();
                *sum += weight;
                if *sum == 0 {
                    rows.remove(&ByBytes(row.clone()));
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Few(rows) => rows.is_empty(),
            Self::Many(rows) => rows.is_empty(),
        }
    }

    fn iter(&self) -> impl Iterator<Item = (&Row, i64)> {
        let (few, many) = match self {
            Self::Few(rows) => (Some(rows), None),
            Self::Many(rows) => (None, Some(rows)),
        };
        let few = few.into_iter().flatten().map(|(row, weight)| (row, *weight));
        few.chain(many.into_iter().flatten().map(|(row, weight)| (&row.0, *weight)))
    }
}
