//! A binding's footprint: each row of its result once, with the places where it stands. The drain folds changes
//! into it and gets the net operations out; all subscribers of the binding share it.

use super::{RowOp, StandingRow};
use crate::{query::Output, store::KeyBytes, worker::Change};
use hashbrown::{HashMap, hash_map::EntryRef};
use smallvec::SmallVec;
use std::{cmp::Ordering, sync::Arc};
use tidegate_wire::model::{OpKind, Order, PlaceMask, Row, key::encode_cell};

/// Whether a fold builds operations: without subscribers the footprint is only kept current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// The net operations are wanted.
    Ops,
    /// Nobody reads them.
    Nothing,
}

/// What a fold yields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Folded {
    /// The net operations by table, then key; each row once.
    pub ops: Vec<RowOp>,
    /// Places where a row would have stood less than not at all or more than once. Not 0 means that the changes do
    /// not continue this footprint, which is a defect of the pipeline; the footprint is then of no further use.
    pub unbalanced: usize,
}

#[derive(Clone, Debug)]
struct Standing {
    places: PlaceMask,
    row: Row,
}

/// The part of a change that concerns one key.
struct Step<'a> {
    table: usize,
    key: KeyBytes,
    place: usize,
    old: Option<&'a Row>,
    new: Option<&'a Row>,
}

/// The rows of one binding's result.
#[derive(Clone, Debug)]
pub struct Footprint {
    output: Arc<Output>,
    /// Per layout table, by key; no entry stands nowhere.
    tables: Vec<HashMap<KeyBytes, Standing>>,
}

impl Footprint {
    /// The footprint of an empty result.
    #[must_use]
    pub fn new(output: Arc<Output>) -> Self {
        let tables = vec![HashMap::new(); output.tables.len()];
        Self { output, tables }
    }

    /// How many rows the result has, each counted once.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tables.iter().map(HashMap::len).sum()
    }

    /// Whether the result is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables.iter().all(HashMap::is_empty)
    }

    /// Folds all changes of one commit (or of several merged) in. The order of the changes has no influence: per
    /// key and place a row stands afterwards as often as before, plus the entering, minus the leaving changes. An
    /// edit that touches neither places nor a column that travels yields no operation, but its row is kept.
    pub fn fold(&mut self, changes: &[Change], emit: Emit) -> Folded {
        let mut folded = Folded::default();
        let mut steps: SmallVec<[Step<'_>; 2]> = SmallVec::with_capacity(changes.len());
        let mut scratch = Vec::with_capacity(32);
        for change in changes {
            match self.output.layout.places.get(usize::from(change.place)) {
                Some(place) => self.push_steps(place.table, change, &mut steps, &mut scratch),
                None => folded.unbalanced += 1,
            }
        }
        // One sort both groups by key and makes the order of the operations the same in every run.
        steps.sort_unstable_by(|a, b| a.table.cmp(&b.table).then_with(|| a.key.cmp(&b.key)));
        for steps in steps.chunk_by(|a, b| a.table == b.table && a.key == b.key) {
            let table = steps[0].table;
            let travelling = &self.output.tables[table].columns;
            let op = settle(&mut self.tables[table], travelling, steps, emit, &mut folded.unbalanced);
            folded.ops.extend(op);
        }
        folded
    }

    /// The whole result as additions, by table, then key.
    #[must_use]
    pub fn snapshot(&self) -> Vec<RowOp> {
        let mut ops = Vec::with_capacity(self.len());
        for (table, rows) in self.tables.iter().enumerate() {
            let mut rows: Vec<_> = rows.iter().collect();
            rows.sort_unstable_by(|a, b| a.0.cmp(b.0));
            ops.extend(rows.into_iter().map(|(_, standing)| RowOp {
                kind: OpKind::Add,
                table,
                places: standing.places,
                row: standing.row.clone(),
            }));
        }
        ops
    }

    /// The operations that lead from `base` to this footprint, by table, then key. Rows of `base` in tables that
    /// the output does not have are passed over: no client of this output holds any.
    #[must_use]
    pub fn difference_from(&self, base: &[StandingRow]) -> Vec<RowOp> {
        let mut scratch = Vec::with_capacity(32);
        let mut held: Vec<HashMap<KeyBytes, &StandingRow>> = vec![HashMap::new(); self.tables.len()];
        for row in base {
            if let Some(held) = held.get_mut(row.table) {
                let key = encode_key(&row.row, &self.output.tables[row.table].key, &mut scratch);
                held.insert(key, row);
            }
        }
        let mut ops = Vec::new();
        for (table, (rows, mut held)) in self.tables.iter().zip(held).enumerate() {
            let travelling = &self.output.tables[table].columns;
            let mut of_table = Vec::new();
            for (key, standing) in rows {
                let kind = match held.remove(key) {
                    None => OpKind::Add,
                    Some(before)
                        if before.places != standing.places
                            || !before.row.same_cells(&standing.row, travelling) =>
                    {
                        OpKind::Edit
                    }
                    Some(_) => continue,
                };
                let op = RowOp { kind, table, places: standing.places, row: standing.row.clone() };
                of_table.push((key.clone(), op));
            }
            of_table.extend(held.into_iter().map(|(key, gone)| {
                let places = PlaceMask::default();
                (key, RowOp { kind: OpKind::Remove, table, places, row: gone.row.clone() })
            }));
            of_table.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            ops.extend(of_table.into_iter().map(|(_, op)| op));
        }
        ops
    }

    fn push_steps<'a>(
        &self,
        table: usize,
        change: &'a Change,
        steps: &mut SmallVec<[Step<'a>; 2]>,
        scratch: &mut Vec<u8>,
    ) {
        let place = usize::from(change.place);
        let columns = &self.output.tables[table].key;
        let mut push = |old: Option<&'a Row>, new: Option<&'a Row>| {
            if let Some(row) = new.or(old) {
                steps.push(Step { table, key: encode_key(row, columns, scratch), place, old, new });
            }
        };
        match (&change.old, &change.new) {
            (Some(old), Some(new)) if !old.same_cells(new, columns) => {
                push(Some(old), None);
                push(None, Some(new));
            }
            (old, new) => push(old.as_ref(), new.as_ref()),
        }
    }
}

fn encode_key(row: &Row, columns: &[usize], scratch: &mut Vec<u8>) -> KeyBytes {
    scratch.clear();
    for &column in columns {
        encode_cell(row.cell(column), Order::ASC, scratch);
    }
    KeyBytes::from_slice(scratch)
}

/// Applies the steps of one key, of which there is at least one.
fn settle(
    rows: &mut HashMap<KeyBytes, Standing>,
    travelling: &[usize],
    steps: &[Step<'_>],
    emit: Emit,
    unbalanced: &mut usize,
) -> Option<RowOp> {
    let table = steps[0].table;
    let entry = rows.entry_ref(steps[0].key.as_slice());
    let before = match &entry {
        EntryRef::Occupied(entry) => entry.get().places,
        EntryRef::Vacant(_) => PlaceMask::default(),
    };
    let places = places_after(before, steps, unbalanced);
    let row = entered_row(steps);
    match (entry, places.is_empty()) {
        (EntryRef::Vacant(_), true) => None,
        (EntryRef::Vacant(entry), false) => {
            // A place that stands afterwards and did not before has an entering step, which brings a row.
            let row = row?.clone();
            entry.insert(Standing { places, row: row.clone() });
            (emit == Emit::Ops).then_some(RowOp { kind: OpKind::Add, table, places, row })
        }
        (EntryRef::Occupied(entry), true) => {
            let row = entry.remove().row;
            (emit == Emit::Ops).then_some(RowOp { kind: OpKind::Remove, table, places, row })
        }
        (EntryRef::Occupied(mut entry), false) => {
            let standing = entry.get_mut();
            let row = row.unwrap_or(&standing.row).clone();
            let nothing = before == places && standing.row.same_cells(&row, travelling);
            *standing = Standing { places, row: row.clone() };
            (emit == Emit::Ops && !nothing).then_some(RowOp { kind: OpKind::Edit, table, places, row })
        }
    }
}

fn places_after(before: PlaceMask, steps: &[Step<'_>], unbalanced: &mut usize) -> PlaceMask {
    let mut net = [0_i32; PlaceMask::PLACES_MAX];
    let mut touched = 0_u32;
    for step in steps {
        net[step.place] += i32::from(step.new.is_some()) - i32::from(step.old.is_some());
        touched |= 1 << step.place;
    }
    let mut after = before.0;
    for place in PlaceMask(touched).iter() {
        match net[place] + i32::from(before.contains(place)) {
            0 => after &= !(1 << place),
            1 => after |= 1 << place,
            _ => *unbalanced += 1,
        }
    }
    PlaceMask(after)
}

/// The row's content after the steps, when they bring one. A join's terms can let a row enter with its content
/// before the commit and then change it, in either order of arrival, so that of several entering contents the one
/// that the leaving ones do not cancel is the newest.
fn entered_row<'a>(steps: &[Step<'a>]) -> Option<&'a Row> {
    let mut entering = steps.iter().filter_map(|step| step.new);
    let first = entering.next()?;
    if entering.all(|row| row == first) {
        return Some(first);
    }
    let weight = |row: &Row| {
        let count = |side: fn(&Step<'a>) -> Option<&'a Row>| {
            steps.iter().filter_map(side).filter(|&other| other == row).count() as i64
        };
        count(|step| step.new) - count(|step| step.old)
    };
    steps.iter().filter_map(|step| step.new).map(|row| (weight(row), row)).max_by(heavier).map(|(_, row)| row)
}

fn heavier(a: &(i64, &Row), b: &(i64, &Row)) -> Ordering {
    a.0.cmp(&b.0).then_with(|| a.1.as_bytes().cmp(b.1.as_bytes()))
}
