//! Builds a whole result, ordered and nested, from the rows that stand at a query's places. For one-shot reads and
//! checks; clients build theirs incrementally.

use super::Output;
use serde_json::{Map, Value as Json};
use std::collections::HashMap;
use tidegate_wire::model::{PlaceMask, Row, Value, key::encode_cell};

/// The rows of place 0 in their order, each with its related rows, as JSON. `rows` are each row once, with the
/// output table it belongs to and where it stands.
#[must_use]
pub fn nest<'r>(output: &Output, rows: impl IntoIterator<Item = (usize, PlaceMask, &'r Row)>) -> Vec<Json> {
    let places = &output.layout.places;
    // Per place, the rows by correlation key, each group in the place's order.
    let mut groups: Vec<Groups<'_>> = places.iter().map(|_| HashMap::new()).collect();
    for (table, mask, row) in rows {
        let columns = &output.tables[table].columns;
        for place in mask.iter() {
            let layout = &places[place];
            let own: Vec<Value> =
                layout.on.iter().map(|&(_, own)| row.cell(columns[own]).to_value()).collect();
            let mut order = Vec::new();
            for term in &layout.order {
                encode_cell(row.cell(columns[term.column]), term.order, &mut order);
            }
            groups[place].entry(correlation(&own)).or_default().push((order, row));
        }
    }
    for group in groups.iter_mut().flat_map(HashMap::values_mut) {
        group.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    }
    let root = groups[0].get(&Vec::new()).map_or(&[][..], Vec::as_slice);
    root.iter().map(|(_, row)| node(output, &groups, 0, row)).collect()
}

/// The rows of place 0 in their order, as the cells it shows.
#[must_use]
pub fn flat<'r>(output: &Output, rows: impl IntoIterator<Item = &'r Row>) -> Vec<Vec<Json>> {
    let (layout, columns) = (&output.layout.places[0], &output.tables[0].columns);
    let cells = |row: &Row| layout.columns.iter().map(|&at| row.cell(columns[at]).to_json()).collect();
    ordered(output, rows).into_iter().map(cells).collect()
}

/// The rows of place 0 in their order.
#[must_use]
pub fn ordered<'r>(output: &Output, rows: impl IntoIterator<Item = &'r Row>) -> Vec<&'r Row> {
    let (layout, columns) = (&output.layout.places[0], &output.tables[0].columns);
    let mut rows: Vec<(Vec<u8>, &Row)> = rows
        .into_iter()
        .map(|row| {
            let mut order = Vec::new();
            for term in &layout.order {
                encode_cell(row.cell(columns[term.column]), term.order, &mut order);
            }
            (order, row)
        })
        .collect();
    rows.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    rows.into_iter().map(|(_, row)| row).collect()
}

/// A place's rows by correlation key, each with its encoded order.
type Groups<'r> = HashMap<Vec<u8>, Vec<(Vec<u8>, &'r Row)>>;

fn node(output: &Output, groups: &[Groups<'_>], place: usize, row: &Row) -> Json {
    let layout = &output.layout.places[place];
    let table = &output.layout.tables[layout.table];
    let columns = &output.tables[layout.table].columns;
    let mut object = Map::new();
    for &column in &layout.columns {
        object.insert(table.columns[column].name.clone(), row.cell(columns[column]).to_json());
    }
    for (child, child_layout) in output.layout.places.iter().enumerate() {
        if child_layout.parent != Some(place) {
            continue;
        }
        let parent: Vec<Value> =
            child_layout.on.iter().map(|&(parent, _)| row.cell(columns[parent]).to_value()).collect();
        let rows = groups[child].get(&correlation(&parent)).map_or(&[][..], Vec::as_slice);
        let mut nodes = rows.iter().map(|(_, row)| node(output, groups, child, row));
        let value = match &child_layout.value {
            Some(value) => rows.first().map_or_else(
                || value.or.clone(),
                |(_, row)| {
                    row.cell(output.tables[child_layout.table].columns[child_layout.columns[0]]).to_json()
                },
            ),
            None if child_layout.one => nodes.next().unwrap_or(Json::Null),
            None => Json::Array(nodes.collect()),
        };
        let name = child_layout.name.clone().expect("a child place has a name");
        object.insert(name, value);
    }
    Json::Object(object)
}

/// A key under which values of different numeric types that are equal agree. NULLs never meet, so any two may.
fn correlation(values: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    for value in values {
        let exact = value.convert_exact(tidegate_wire::model::ColumnType::Numeric);
        let midnight = value.convert_exact(tidegate_wire::model::ColumnType::Timestamptz);
        let common = exact.or(midnight).unwrap_or_else(|| value.clone());
        encode_cell(common.as_ref(), tidegate_wire::model::Order::ASC, &mut out);
    }
    out
}
