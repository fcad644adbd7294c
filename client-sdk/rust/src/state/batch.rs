//! Batches with their cells read by the layout, and their fold into one net change for each row.

use super::{
    Violation,
    result_tree::{NetChange, ResultTree},
    shape::{Shape, row_key},
};
use hashbrown::HashMap;
use tidegate_wire::{
    codec::Codec,
    model::{Cv, PlaceMask, Row, SubId, Value, ValueRef},
    protocol::{Cell, server::Op},
};

/// A batch that waits for its release.
#[derive(Debug)]
pub(crate) struct TypedBatch {
    pub(crate) cv: Cv,
    pub(crate) ops: Vec<TypedOp>,
}

/// One operation with its row.
#[derive(Debug)]
pub(crate) struct TypedOp {
    kind: TypedOpKind,
    table: usize,
    key: Box<[u8]>,
}

#[derive(Debug)]
enum TypedOpKind {
    Add(Row, PlaceMask),
    Edit(Row, PlaceMask),
    Remove,
}

impl TypedOp {
    /// Reads an operation by the layout.
    ///
    /// # Errors
    /// With what does not fit the layout.
    pub(crate) fn read(op: &Op, shape: &Shape, codec: Codec) -> Result<Self, String> {
        let (table, cells) = match op {
            Op::Add { table, cells, .. } | Op::Edit { table, cells, .. } => (*table, cells),
            Op::Remove { table, key } => (*table, key),
        };
        let layout =
            shape.layout.tables.get(table).ok_or_else(|| format!("an operation on table {table}"))?;
        let (kind, key) = match op {
            Op::Add { places, .. } | Op::Edit { places, .. } => {
                if !shape.allows(table, *places) {
                    return Err(format!("a row of {} at places {:#b}", layout.name, places.0));
                }
                let columns = 0..layout.columns.len();
                let row = Row::from_values(&values(cells, columns, layout, codec)?);
                let key = row_key(layout.key.iter().map(|&column| row.cell(column)));
                let make = if matches!(op, Op::Add { .. }) { TypedOpKind::Add } else { TypedOpKind::Edit };
                (make(row, *places), key)
            }
            Op::Remove { .. } => {
                let values = values(cells, layout.key.iter().copied(), layout, codec)?;
                (TypedOpKind::Remove, row_key(values.iter().map(Value::as_ref)))
            }
        };
        Ok(Self { kind, table, key })
    }

    /// The value of a column, unless the operation is a remove.
    pub(crate) fn cell(&self, column: usize) -> Option<ValueRef<'_>> {
        match &self.kind {
            TypedOpKind::Add(row, _) | TypedOpKind::Edit(row, _) => Some(row.cell(column)),
            TypedOpKind::Remove => None,
        }
    }
}

fn values(
    cells: &[Cell],
    columns: impl ExactSizeIterator<Item = usize>,
    table: &tidegate_wire::model::TableLayout,
    codec: Codec,
) -> Result<Vec<Value>, String> {
    if cells.len() != columns.len() {
        return Err(format!("{} cells for a row of {}", cells.len(), table.name));
    }
    let read = |(cell, column): (&Cell, usize)| {
        let column = &table.columns[column];
        match cell.to_value(column.ty, codec) {
            Ok(Value::Text(text)) if text.contains('\0') => {
                Err(format!("NUL in {}.{}", table.name, column.name))
            }
            Ok(value) => Ok(value),
            Err(error) => Err(format!("{}.{}: {error}", table.name, column.name)),
        }
    };
    cells.iter().zip(columns).map(read).collect()
}

/// The net changes of the batches of one release, in the order of the rows' first operations. Rows are unique.
#[derive(Default)]
pub(crate) struct Fold {
    net: Vec<NetChange>,
    by_row: HashMap<(usize, Box<[u8]>), usize>,
}

impl Fold {
    /// Adds a batch; `base` is what the first one follows on, `None` for a snapshot.
    ///
    /// # Errors
    /// When an operation does not fit what is held.
    pub(crate) fn batch(
        &mut self,
        sub: SubId,
        batch: &TypedBatch,
        base: Option<&ResultTree>,
    ) -> Result<(), Violation> {
        for op in &batch.ops {
            let row = (op.table, op.key.clone());
            let folded = self.by_row.get(&row).copied();
            let held = match folded {
                Some(index) => self.net[index].new.is_some(),
                None => base.is_some_and(|tree| tree.holds(op.table, &op.key)),
            };
            let (new, fits) = match &op.kind {
                TypedOpKind::Add(row, places) => (Some((row.clone(), *places)), !held),
                TypedOpKind::Edit(row, places) => (Some((row.clone(), *places)), held),
                TypedOpKind::Remove => (None, held),
            };
            if !fits {
                let (kind, state) = match &op.kind {
                    TypedOpKind::Add(..) => ("an add", "held"),
                    TypedOpKind::Edit(..) => ("an edit", "not held"),
                    TypedOpKind::Remove => ("a remove", "not held"),
                };
                let what = format!("{kind} of a row of table {} that is {state}", op.table);
                return Err(Violation::ViewEqualsFreshQuery { sub, what });
            }
            match folded {
                Some(index) => self.net[index].new = new,
                None => {
                    self.by_row.insert(row, self.net.len());
                    self.net.push(NetChange { table: op.table, key: op.key.clone(), new });
                }
            }
        }
        Ok(())
    }

    /// The changes that lead from `tree` to exactly what a snapshot holds: rows it does not name are removed.
    pub(crate) fn replacing(mut self, tree: &ResultTree) -> Vec<NetChange> {
        for (table, key) in tree.keys() {
            let key: Box<[u8]> = (**key).into();
            if !self.by_row.contains_key(&(table, key.clone())) {
                self.net.push(NetChange { table, key, new: None });
            }
        }
        self.net
    }

    /// The changes as they are.
    pub(crate) fn into_net(self) -> Vec<NetChange> {
        self.net
    }
}
