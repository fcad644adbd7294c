//! A layout made ready for building results: checked once, so that everything behind it can index without
//! looking, and with the encodings of keys, orders and correlations that the result tree is keyed by.

use std::sync::Arc;
use tidegate_wire::model::{
    ColumnType, Layout, Order, OrderColumn, PlaceLayout, PlaceMask, Row, TableLayout, Value, ValueRef,
    key::encode_cell, row::COLUMNS_MAX,
};

/// A checked layout with what is derived from it.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) layout: Layout,
    pub(crate) places: Vec<Arc<PlaceShape>>,
}

/// One place of the tree.
#[derive(Debug)]
pub(crate) struct PlaceShape {
    /// Index of the table whose rows stand here.
    pub(crate) table: usize,
    /// The shown columns: name and index in the table, in the order of the select list.
    pub(crate) columns: Vec<(String, usize)>,
    /// Child places in preorder.
    pub(crate) children: Vec<ChildShape>,
    /// How this place's rows find their parents; empty for the root.
    correlation: Vec<Correlation>,
    /// The place's order, ended by the key.
    order: Vec<OrderColumn>,
    /// Columns that matter here; a change in others leaves this place as it is.
    pub(crate) relevant: Vec<usize>,
}

/// A child place as its parent sees it.
#[derive(Debug)]
pub(crate) struct ChildShape {
    /// Index of the child place.
    pub(crate) place: usize,
    /// The name it has in the parent's rows.
    pub(crate) name: String,
    /// One row or null rather than a list.
    pub(crate) one: bool,
    /// The column whose value stands for the row, and the value where there is no row.
    pub(crate) value: Option<(usize, Value)>,
    correlation: Vec<Correlation>,
}

/// A pair of columns that must be equal, and the type in which equality is the same as equal encodings.
#[derive(Clone, Copy, Debug)]
struct Correlation {
    parent: usize,
    child: usize,
    /// `None` for types whose values are never equal.
    meet: Option<ColumnType>,
}

impl Shape {
    /// Checks a layout.
    ///
    /// # Errors
    /// With what is wrong, when an index points nowhere or the tree is not in preorder.
    pub(crate) fn new(layout: Layout) -> Result<Self, String> {
        check(&layout)?;
        let places = layout
            .places
            .iter()
            .enumerate()
            .map(|(index, place)| {
                let table = &layout.tables[place.table];
                let children: Vec<ChildShape> = layout
                    .places
                    .iter()
                    .enumerate()
                    .filter(|(_, child)| child.parent == Some(index))
                    .map(|(child_index, child)| ChildShape {
                        place: child_index,
                        name: child.name.clone().unwrap_or_default(),
                        one: child.one,
                        value: shown_value(&layout, child),
                        correlation: correlation(&layout, child_index),
                    })
                    .collect();
                let correlation = correlation(&layout, index);
                let mut order = place.order.clone();
                for &column in &table.key {
                    if !order.iter().any(|term| term.column == column) {
                        order.push(OrderColumn { column, order: Order::ASC });
                    }
                }
                let mut relevant = place.columns.clone();
                relevant.extend(correlation.iter().map(|pair| pair.child));
                relevant.extend(order.iter().map(|term| term.column));
                relevant.extend(children.iter().flat_map(|c| &c.correlation).map(|pair| pair.parent));
                relevant.sort_unstable();
                relevant.dedup();
                let columns = place.columns.iter().map(|&c| (table.columns[c].name.clone(), c)).collect();
                let table = place.table;
                Arc::new(PlaceShape { table, columns, children, correlation, order, relevant })
            })
            .collect();
        Ok(Self { layout, places })
    }

    /// Whether a row of `table` may stand at these places.
    pub(crate) fn allows(&self, table: usize, places: PlaceMask) -> bool {
        !places.is_empty()
            && places.iter().all(|place| self.places.get(place).is_some_and(|shape| shape.table == table))
    }
}

impl PlaceShape {
    /// The encoded order of a row at this place.
    pub(crate) fn order_key(&self, row: &Row) -> Arc<[u8]> {
        let mut out = Vec::with_capacity(self.order.len() * 12);
        for term in &self.order {
            encode_cell(row.cell(term.column), term.order, &mut out);
        }
        out.into()
    }

    /// The group of this place that a row belongs to; `None` when NULL keeps it from every parent.
    pub(crate) fn group_key(&self, row: &Row) -> Option<Box<[u8]>> {
        correlation_key(&self.correlation, |pair| row.cell(pair.child))
    }
}

impl ChildShape {
    /// The group of the child place that stands under a parent row; `None` when NULL keeps every row away.
    pub(crate) fn group_key(&self, parent: &Row) -> Option<Box<[u8]>> {
        correlation_key(&self.correlation, |pair| parent.cell(pair.parent))
    }
}

/// The encoded key of a row: its key columns, ascending.
pub(crate) fn row_key<'a>(cells: impl Iterator<Item = ValueRef<'a>>) -> Box<[u8]> {
    let mut out = Vec::with_capacity(16);
    for cell in cells {
        encode_cell(cell, Order::ASC, &mut out);
    }
    out.into()
}

fn correlation(layout: &Layout, place: usize) -> Vec<Correlation> {
    let child = &layout.places[place];
    let Some(parent) = child.parent.map(|parent| &layout.places[parent]) else { return Vec::new() };
    let ty = |table: usize, column: usize| layout.tables[table].columns[column].ty;
    child
        .on
        .iter()
        .map(|&(p, c)| Correlation {
            parent: p,
            child: c,
            meet: meet(ty(parent.table, p), ty(child.table, c)),
        })
        .collect()
}

/// The type in which values of two types are equal exactly when the comparator says so.
fn meet(a: ColumnType, b: ColumnType) -> Option<ColumnType> {
    use ColumnType::{Date, Numeric, Timestamptz};
    match (a, b) {
        (a, b) if a == b => Some(a),
        // Every double and every integer is one exact decimal.
        (a, b) if a.is_number() && b.is_number() => Some(Numeric),
        (Date, Timestamptz) | (Timestamptz, Date) => Some(Timestamptz),
        _ => None,
    }
}

fn correlation_key<'a>(
    pairs: &[Correlation],
    cell: impl Fn(&Correlation) -> ValueRef<'a>,
) -> Option<Box<[u8]>> {
    let mut out = Vec::with_capacity(pairs.len() * 12);
    for pair in pairs {
        let (value, meet) = (cell(pair), pair.meet?);
        if value.column_type()? == meet {
            encode_cell(value, Order::ASC, &mut out);
        } else {
            encode_cell(value.convert_exact(meet)?.as_ref(), Order::ASC, &mut out);
        }
    }
    Some(out.into())
}

/// What a place that shows a value shows; `None` also when the layout is wrong about it.
fn shown_value(layout: &Layout, place: &PlaceLayout) -> Option<(usize, Value)> {
    let (Some(value), [column]) = (&place.value, place.columns.as_slice()) else { return None };
    let ty = layout.tables[place.table].columns[*column].ty;
    Some((*column, Value::from_json(ty, &value.or).ok()?))
}

fn check(layout: &Layout) -> Result<(), String> {
    for table in &layout.tables {
        if table.key.is_empty() {
            return Err(format!("table {} has no key", table.name));
        }
        if table.columns.len() > COLUMNS_MAX {
            return Err(format!("table {} has {} columns", table.name, table.columns.len()));
        }
        within("a key", table, table.key.iter().copied())?;
    }
    if layout.places.is_empty() || layout.places.len() > PlaceMask::PLACES_MAX {
        return Err(format!("{} places", layout.places.len()));
    }
    for (index, place) in layout.places.iter().enumerate() {
        let name = place.name.as_deref().unwrap_or("the root");
        let Some(table) = layout.tables.get(place.table) else {
            return Err(format!("{name} stands on table {}", place.table));
        };
        within(name, table, place.columns.iter().copied())?;
        within(name, table, place.order.iter().map(|term| term.column))?;
        within(name, table, place.on.iter().map(|pair| pair.1))?;
        if place.value.is_some() && (place.parent.is_none() || shown_value(layout, place).is_none()) {
            return Err(format!("{name} shows a value, but not one column's under a parent"));
        }
        match place.parent {
            None if index == 0 => {}
            Some(parent) if parent < index => {
                let parent = &layout.tables[layout.places[parent].table];
                within(name, parent, place.on.iter().map(|pair| pair.0))?;
            }
            _ => return Err(format!("{name} is not in preorder")),
        }
    }
    Ok(())
}

fn within(what: &str, table: &TableLayout, mut columns: impl Iterator<Item = usize>) -> Result<(), String> {
    match columns.find(|&column| column >= table.columns.len()) {
        Some(column) => Err(format!("{what} names column {column} of table {}", table.name)),
        None => Ok(()),
    }
}
