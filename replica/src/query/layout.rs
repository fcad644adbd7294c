//! The layout of a resolved query: which columns travel, and the places by layout column.

use super::{OutputTable, aggregation::of_nothing, resolve::Shown, shape::Place};
use crate::store::{Snapshot, TableId};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_wire::model::{
    Layout, Order, OrderColumn, PlaceLayout, PlaceValue, TableLayout, TableSchema, layout::LayoutColumn,
};

/// Whose rows a layout's table has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rows {
    /// A table's, at all places that are not aggregated.
    Table(TableId),
    /// The values of the place of that number.
    Totals(usize),
}

/// The layout, and per layout table where its columns come from.
pub(super) fn build_output(
    snapshot: &Snapshot,
    places: &[Place],
    shown: &[Shown],
) -> (Layout, Vec<OutputTable>) {
    let rows_of = |index: usize| match places[index].total {
        None => Rows::Table(places[index].table),
        Some(_) => Rows::Totals(index),
    };
    // Tables in order of first appearance, each with the union of what its places need.
    let mut tables: Vec<Rows> = Vec::new();
    let mut needed: BTreeMap<Rows, BTreeSet<usize>> = BTreeMap::new();
    for (index, (place, shown)) in places.iter().zip(shown).enumerate() {
        let rows = rows_of(index);
        if !tables.contains(&rows) {
            tables.push(rows);
        }
        let columns = needed.entry(rows).or_default();
        match &place.total {
            Some(total) => columns.extend(0..=total.on.len()),
            None => {
                columns.extend(&shown.select);
                columns.extend(place.order.iter().map(|(column, _)| *column));
                columns.extend(shown.on.iter().map(|&(_, own)| own));
                columns.extend(schema(snapshot, place.table).primary_key.iter());
            }
        }
        if let Some(parent) = place.parent {
            let parent = needed.entry(rows_of(parent)).or_default();
            parent.extend(shown.on.iter().map(|&(parent, _)| parent));
        }
    }
    let outputs: Vec<OutputTable> = tables
        .iter()
        .map(|rows| OutputTable {
            columns: needed[rows].iter().copied().collect(),
            key: match *rows {
                Rows::Table(table) => schema(snapshot, table).primary_key.clone(),
                Rows::Totals(place) => (0..shown[place].on.len()).collect(),
            },
        })
        .collect();
    let table_index = |rows: Rows| tables.iter().position(|t| *t == rows).expect("every place's is listed");
    let layout_column = |rows: Rows, column: usize| {
        let columns = &outputs[table_index(rows)].columns;
        columns.iter().position(|c| *c == column).expect("every needed column travels")
    };
    let layout = Layout {
        tables: tables
            .iter()
            .zip(&outputs)
            .map(|(&rows, output)| match rows {
                Rows::Table(table) => {
                    let schema = schema(snapshot, table);
                    let column = |&column: &usize| LayoutColumn {
                        name: schema.columns[column].name.clone(),
                        ty: schema.columns[column].ty,
                    };
                    TableLayout {
                        name: schema.name.clone(),
                        columns: output.columns.iter().map(column).collect(),
                        key: output.key.iter().map(|&column| layout_column(rows, column)).collect(),
                    }
                }
                Rows::Totals(place) => {
                    totals(schema(snapshot, places[place].table), &places[place], &shown[place])
                }
            })
            .collect(),
        places: (0..places.len())
            .map(|index| {
                let (place, shown, rows) = (&places[index], &shown[index], rows_of(index));
                let parents = place.parent.map(rows_of);
                let parent_column = |column| layout_column(parents.expect("only a child has pairs"), column);
                let place_layout = PlaceLayout {
                    parent: place.parent,
                    name: shown.name.clone(),
                    table: table_index(rows),
                    columns: Vec::new(),
                    on: Vec::new(),
                    order: Vec::new(),
                    one: shown.one,
                    value: None,
                };
                if let Some(total) = &place.total {
                    let keys = 0..total.on.len();
                    let pairs = shown.on.iter().zip(keys.clone());
                    return PlaceLayout {
                        columns: vec![keys.end],
                        on: pairs.map(|(&(parent, _), own)| (parent_column(parent), own)).collect(),
                        order: keys.map(|column| OrderColumn { column, order: Order::ASC }).collect(),
                        one: true,
                        value: Some(PlaceValue { or: of_nothing(&total.aggregate) }),
                        ..place_layout
                    };
                }
                let own_column = |column| layout_column(rows, column);
                let pairs = shown.on.iter();
                let order = place.order.iter();
                PlaceLayout {
                    columns: shown.select.iter().map(|&column| own_column(column)).collect(),
                    on: pairs.map(|&(parent, own)| (parent_column(parent), own_column(own))).collect(),
                    order: order
                        .map(|&(column, order)| OrderColumn { column: own_column(column), order })
                        .collect(),
                    ..place_layout
                }
            })
            .collect(),
    };
    (layout, outputs)
}

/// The table of an aggregated place's values: by what they correlate, then the value. The names are ones that no table or
/// column of the database is likely to have; nothing shows them.
fn totals(schema: &TableSchema, place: &Place, shown: &Shown) -> TableLayout {
    let total = place.total.as_ref().expect("an aggregated place");
    let keys = total.on.iter().enumerate().map(|(index, &column)| LayoutColumn {
        name: format!("?{}", index + 1),
        ty: schema.columns[column].ty,
    });
    let value = LayoutColumn { name: "?".to_owned(), ty: total.aggregate.ty };
    TableLayout {
        name: format!("?{}", shown.name.as_deref().unwrap_or_default()),
        columns: keys.chain([value]).collect(),
        key: (0..total.on.len()).collect(),
    }
}

fn schema(snapshot: &Snapshot, table: TableId) -> &TableSchema {
    snapshot.table(table).expect("a resolved place's table exists").schema()
}
