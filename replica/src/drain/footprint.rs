//! A binding's footprint: each row of its result once, with the places where it stands. The drain folds changes
//! into it and gets the net operations out; all subscribers of the binding share it.

use super::{RowOp, StandingRow};
use crate::{
    query::{Output, OutputTable},
    store::KeyBytes,
    worker::Change,
};
use hashbrown::{HashMap, hash_map::EntryRef};
use smallvec::{SmallVec, smallvec};
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
    tables: SmallVec<[HashMap<KeyBytes, Standing>; 2]>,
}

impl Footprint {
    /// The footprint of an empty result.
    #[must_use]
    pub fn new(output: Arc<Output>) -> Self {
        let tables = smallvec![HashMap::new(); output.tables.len()];
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
    /// edit that touches neither places nor a column that travels yields no operation, but its row is kept. When a key
    /// comes to be written otherwise (`1.0` for `1`), the row leaves under the old spelling and enters under the new
    /// one: clients may tell rows apart by what is written.
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
            settle(&mut self.tables[table], &self.output.tables[table], steps, emit, &mut folded);
        }
        folded
    }

    /// The whole result in no particular order.
    pub fn rows(&self) -> impl Iterator<Item = StandingRow> + '_ {
        self.tables.iter().enumerate().flat_map(|(table, rows)| {
            rows.values().map(move |row| StandingRow { table, places: row.places, row: row.row.clone() })
        })
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
            let OutputTable { columns: travelling, key: key_columns } = &self.output.tables[table];
            let mut of_table = Vec::new();
            let remove = |row: &Row| RowOp {
                kind: OpKind::Remove,
                table,
                places: PlaceMask::default(),
                row: row.clone(),
            };
            for (key, standing) in rows {
                let kind = match held.remove(key) {
                    None => OpKind::Add,
                    Some(before) if !before.row.same_cells(&standing.row, key_columns) => {
                        of_table.push((key.clone(), remove(&before.row)));
                        OpKind::Add
                    }
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
            of_table.extend(held.into_iter().map(|(key, gone)| (key, remove(&gone.row))));
            // Stable, as a key that is written otherwise leaves before it enters.
            of_table.sort_by(|a, b| a.0.cmp(&b.0));
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
    output: &OutputTable,
    steps: &[Step<'_>],
    emit: Emit,
    folded: &mut Folded,
) {
    let table = steps[0].table;
    let entry = rows.entry_ref(steps[0].key.as_slice());
    let before = match &entry {
        EntryRef::Occupied(entry) => entry.get().places,
        EntryRef::Vacant(_) => PlaceMask::default(),
    };
    let places = places_after(before, steps, &mut folded.unbalanced);
    let row = entered_row(steps);
    let mut push = |kind, places, row| {
        if emit == Emit::Ops {
            folded.ops.push(RowOp { kind, table, places, row });
        }
    };
    match (entry, places.is_empty()) {
        (EntryRef::Vacant(_), true) => {}
        (EntryRef::Vacant(entry), false) => {
            // A place that stands afterwards and did not before has an entering step, which brings a row.
            let Some(row) = row.cloned() else { return };
            entry.insert(Standing { places, row: row.clone() });
            push(OpKind::Add, places, row);
        }
        (EntryRef::Occupied(entry), true) => {
            let row = entry.remove().row;
            push(OpKind::Remove, places, row);
        }
        (EntryRef::Occupied(mut entry), false) => {
            let standing = entry.get_mut();
            let row = row.unwrap_or(&standing.row).clone();
            let old = std::mem::replace(standing, Standing { places, row: row.clone() });
            if !old.row.same_cells(&row, &output.key) {
                push(OpKind::Remove, PlaceMask::default(), old.row);
                push(OpKind::Add, places, row);
            } else if before != places || !old.row.same_cells(&row, &output.columns) {
                push(OpKind::Edit, places, row);
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::BindingId;
    use tidegate_wire::model::{
        ColumnType, Fingerprint, Layout, PlaceLayout, TableLayout, Value, layout::LayoutColumn,
    };

    /// Tables 0 and 1 with `id` and `shown`, and an `unseen` column that does not travel; places 0 and 2 use table
    /// 0, place 1 table 1.
    fn output() -> Arc<Output> {
        let column = |name: &str| LayoutColumn { name: name.to_owned(), ty: ColumnType::Int8 };
        let table = |name: &str| TableLayout {
            name: name.to_owned(),
            columns: vec![column("id"), column("shown")],
            key: vec![0],
        };
        let place = |table, parent| PlaceLayout {
            parent,
            name: None,
            table,
            columns: vec![0, 1],
            on: vec![],
            order: vec![],
            one: false,
            value: None,
        };
        let from = OutputTable { columns: vec![0, 1], key: vec![0] };
        Arc::new(Output {
            layout: Layout {
                tables: vec![table("t"), table("u")],
                places: vec![place(0, None), place(1, Some(0)), place(0, Some(0))],
            },
            tables: vec![from.clone(), from],
            fp: Fingerprint(1),
        })
    }

    fn row(id: i64, shown: i64, unseen: i64) -> Row {
        Row::from_values(&[Value::Int8(id), Value::Int8(shown), Value::Int8(unseen)])
    }

    fn change(place: u8, old: Option<Row>, new: Option<Row>) -> Change {
        Change { binding: BindingId(1), place, old, new }
    }

    fn op(kind: OpKind, table: usize, places: u32, row: Row) -> RowOp {
        RowOp { kind, table, places: PlaceMask(places), row }
    }

    fn holding(changes: &[Change]) -> Footprint {
        let mut footprint = Footprint::new(output());
        assert_eq!(footprint.fold(changes, Emit::Nothing).unbalanced, 0);
        footprint
    }

    #[test]
    fn a_key_that_is_written_otherwise_leaves_and_enters() {
        let row = |id: &str| {
            Row::from_values(&[Value::Numeric(Arc::new(id.parse().expect("a number"))), Value::Int8(1)])
        };
        let (old, new) = (row("1"), row("1.0"));
        let (leave, enter) = (op(OpKind::Remove, 0, 0, old.clone()), op(OpKind::Add, 0, 1, new.clone()));
        for changes in [
            vec![change(0, Some(old.clone()), Some(new.clone()))],
            vec![change(0, None, Some(new.clone())), change(0, Some(old.clone()), None)],
        ] {
            let mut footprint = holding(&[change(0, None, Some(old.clone()))]);
            let base: Vec<_> = footprint.rows().collect();
            assert_eq!(footprint.fold(&changes, Emit::Ops).ops, [leave.clone(), enter.clone()]);
            assert_eq!(footprint.difference_from(&base), [leave.clone(), enter.clone()]);
        }
    }

    /// Fails when [`settle`] answers a removal for an edit, or keeps a row that stands nowhere.
    #[test]
    fn a_fold_yields_add_edit_remove_or_nothing() {
        let (a, b) = (row(1, 1, 0), row(1, 2, 0));
        let mut footprint = Footprint::new(output());
        let mut fold = |changes: &[Change]| footprint.fold(changes, Emit::Ops).ops;
        assert_eq!(fold(&[change(0, None, Some(a.clone()))]), [op(OpKind::Add, 0, 1, a.clone())]);
        assert_eq!(fold(&[change(2, None, Some(a.clone()))]), [op(OpKind::Edit, 0, 5, a.clone())]);
        assert_eq!(
            fold(&[change(0, Some(a.clone()), Some(b.clone())), change(2, Some(a.clone()), Some(b.clone()))]),
            [op(OpKind::Edit, 0, 5, b.clone())]
        );
        assert_eq!(fold(&[change(0, Some(b.clone()), None)]), [op(OpKind::Edit, 0, 4, b.clone())]);
        assert_eq!(fold(&[change(2, Some(b.clone()), None)]), [op(OpKind::Remove, 0, 0, b.clone())]);
        assert_eq!(fold(&[change(0, None, Some(a.clone())), change(0, Some(a), None)]), []);
        assert!(footprint.is_empty());
    }

    /// Fails when [`entered_row`] takes the first or the last entering row instead of the one that is not cancelled.
    #[test]
    fn the_order_of_changes_has_no_influence() {
        let (old, new) = (row(1, 1, 0), row(1, 2, 0));
        // A child enters by its parent, with its content before the commit, and is itself edited.
        let mut changes = vec![
            change(1, None, Some(old.clone())),
            change(1, Some(old.clone()), Some(new.clone())),
            change(0, None, Some(new.clone())),
            change(0, Some(new.clone()), None),
        ];
        for _ in 0..2 {
            for _ in 0..changes.len() {
                changes.rotate_left(1);
                let mut footprint = Footprint::new(output());
                let ops = footprint.fold(&changes, Emit::Ops).ops;
                assert_eq!(ops, [op(OpKind::Add, 1, 2, new.clone())], "{changes:?}");
            }
            changes.reverse();
        }
    }

    /// Fails when the comparison in [`settle`] is of whole rows, or when the newest row is not kept.
    #[test]
    fn an_edit_of_columns_that_do_not_travel_is_nothing_but_is_kept() {
        let (a, b) = (row(1, 1, 0), row(1, 1, 9));
        let mut footprint = holding(&[change(0, None, Some(a.clone()))]);
        assert_eq!(footprint.fold(&[change(0, Some(a), Some(b.clone()))], Emit::Ops).ops, []);
        assert_eq!(footprint.snapshot(), [op(OpKind::Add, 0, 1, b)]);
    }

    /// Fails when the sort in [`Footprint::fold`] compares keys only, or is left out.
    #[test]
    fn operations_come_by_table_then_key() {
        let changes: Vec<_> =
            [(1, 5), (0, -3), (1, -9), (0, 4)].map(|(p, id)| change(p, None, Some(row(id, 0, 0)))).into();
        let mut footprint = Footprint::new(output());
        let ids = |ops: &[RowOp]| -> Vec<_> {
            ops.iter().map(|op| (op.table, op.row.cell(0).to_value())).collect()
        };
        let want = [(0, -3), (0, 4), (1, -9), (1, 5)].map(|(t, id)| (t, Value::Int8(id)));
        assert_eq!(ids(&footprint.fold(&changes, Emit::Ops).ops), want);
        assert_eq!(ids(&footprint.snapshot()), want);
        let base = [StandingRow { table: 0, places: PlaceMask(1), row: row(0, 0, 0) }];
        let want = [(0, -3), (0, 0), (0, 4), (1, -9), (1, 5)].map(|(t, id)| (t, Value::Int8(id)));
        assert_eq!(ids(&footprint.difference_from(&base)), want);
    }

    /// Fails when [`Footprint::difference_from`] ignores places, compares whole rows, or forgets what is gone.
    #[test]
    fn a_difference_leads_from_what_a_client_holds() {
        let base: Vec<_> = [(1, 1, 1, 0), (2, 1, 1, 0), (3, 1, 1, 0), (4, 5, 1, 0)]
            .map(|(id, places, shown, unseen)| StandingRow {
                table: 0,
                places: PlaceMask(places),
                row: row(id, shown, unseen),
            })
            .into();
        let footprint = holding(&[
            change(0, None, Some(row(1, 1, 7))),
            change(0, None, Some(row(2, 9, 0))),
            change(0, None, Some(row(4, 1, 0))),
            change(0, None, Some(row(5, 1, 0))),
        ]);
        let want = [
            op(OpKind::Edit, 0, 1, row(2, 9, 0)),
            op(OpKind::Remove, 0, 0, row(3, 1, 0)),
            op(OpKind::Edit, 0, 1, row(4, 1, 0)),
            op(OpKind::Add, 0, 1, row(5, 1, 0)),
        ];
        assert_eq!(footprint.difference_from(&base), want);
    }

    /// Fails when [`settle`] builds operations whatever is asked of it.
    #[test]
    fn without_a_reader_no_operations_are_built() {
        let mut footprint = Footprint::new(output());
        let folded = footprint.fold(&[change(0, None, Some(row(1, 1, 1)))], Emit::Nothing);
        assert_eq!(folded, Folded::default());
        assert_eq!(footprint.len(), 1);
    }

    /// Fails when [`Footprint::fold`] passes over a change of the key itself as one row's edit.
    #[test]
    fn a_change_of_the_key_moves_the_row() {
        let mut footprint = holding(&[change(0, None, Some(row(1, 1, 0)))]);
        let ops = footprint.fold(&[change(0, Some(row(1, 1, 0)), Some(row(2, 1, 0)))], Emit::Ops).ops;
        assert_eq!(ops, [op(OpKind::Remove, 0, 0, row(1, 1, 0)), op(OpKind::Add, 0, 1, row(2, 1, 0))]);
    }

    /// Fails when [`places_after`] clamps without counting.
    #[test]
    fn a_row_that_would_stand_twice_or_less_than_not_at_all_is_counted() {
        let a = row(1, 1, 0);
        let mut footprint = holding(&[change(0, None, Some(a.clone()))]);
        assert_eq!(footprint.fold(&[change(0, None, Some(a.clone()))], Emit::Ops).unbalanced, 1);
        assert_eq!(footprint.fold(&[change(2, Some(a.clone()), None)], Emit::Ops).unbalanced, 1);
        assert_eq!(footprint.fold(&[change(9, None, Some(a))], Emit::Ops).unbalanced, 1);
    }
}
