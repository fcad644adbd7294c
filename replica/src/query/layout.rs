//! The layout of a resolved query: which columns travel, and the places by layout column.

use super::{OutputTable, resolve::Shown, shape::Place};
use crate::store::{Snapshot, TableId};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_wire::model::{
    Layout, OrderColumn, PlaceLayout, TableLayout, TableSchema, layout::LayoutColumn,
};

/// The layout, and per layout table where its columns come from.
pub(super) fn build_output(
    snapshot: &Snapshot,
    places: &[Place],
    shown: &[Shown],
) -> (Layout, Vec<OutputTable>) {
    // Tables in order of first appearance, each with the union of what its places need.
    let mut tables: Vec<TableId> = Vec::new();
    let mut needed: BTreeMap<TableId, BTreeSet<usize>> = BTreeMap::new();
    for (place, shown) in places.iter().zip(shown) {
        if !tables.contains(&place.table) {
            tables.push(place.table);
        }
        let columns = needed.entry(place.table).or_default();
        columns.extend(&shown.select);
        columns.extend(place.order.iter().map(|(column, _)| *column));
        columns.extend(shown.on.iter().map(|&(_, own)| own));
        columns.extend(schema(snapshot, place.table).primary_key.iter());
        if let Some(parent) = place.parent {
            let parent = needed.entry(places[parent].table).or_default();
            parent.extend(shown.on.iter().map(|&(parent, _)| parent));
        }
    }
    let outputs: Vec<OutputTable> = tables
        .iter()
        .map(|table| OutputTable {
            columns: needed[table].iter().copied().collect(),
            key: schema(snapshot, *table).primary_key.clone(),
        })
        .collect();
    let table_index =
        |table: TableId| tables.iter().position(|t| *t == table).expect("every place's table is listed");
    let layout_column = |table: TableId, column: usize| {
        let columns = &outputs[table_index(table)].columns;
        columns.iter().position(|c| *c == column).expect("every needed column travels")
    };
    let layout = Layout {
        tables: tables
            .iter()
            .zip(&outputs)
            .map(|(&table, output)| {
                let schema = schema(snapshot, table);
                TableLayout {
                    name: schema.name.clone(),
                    columns: output
                        .columns
                        .iter()
                        .map(|&column| LayoutColumn {
                            name: schema.columns[column].name.clone(),
                            ty: schema.columns[column].ty,
                        })
                        .collect(),
                    key: output.key.iter().map(|&column| layout_column(table, column)).collect(),
                }
            })
            .collect(),
        places: places
            .iter()
            .zip(shown)
            .map(|(place, shown)| PlaceLayout {
                parent: place.parent,
                name: shown.name.clone(),
                table: table_index(place.table),
                columns: shown.select.iter().map(|&column| layout_column(place.table, column)).collect(),
                on: shown
                    .on
                    .iter()
                    .map(|&(parent, own)| {
                        let parent_table = places[place.parent.expect("only a child has pairs")].table;
                        (layout_column(parent_table, parent), layout_column(place.table, own))
                    })
                    .collect(),
                order: place
                    .order
                    .iter()
                    .map(|&(column, order)| OrderColumn { column: layout_column(place.table, column), order })
                    .collect(),
                one: shown.one,
            })
            .collect(),
    };
    (layout, outputs)
}

fn schema(snapshot: &Snapshot, table: TableId) -> &TableSchema {
    snapshot.table(table).expect("a resolved place's table exists").schema()
}
