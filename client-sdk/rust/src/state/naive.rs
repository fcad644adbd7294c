//! A result built from scratch, by the words of the protocol's page alone: the oracle of the property test. It
//! shares no code with the result tree.

use serde_json::{Map, Value as Json};
use std::cmp::Ordering;
use tidegate_wire::model::{Direction, Layout, Nulls, OrderColumn, PlaceMask, Value};

#[derive(Clone, Debug)]
pub(super) struct NaiveRow {
    pub(super) table: usize,
    pub(super) cells: Vec<Value>,
    pub(super) places: PlaceMask,
}

pub(super) fn result(layout: &Layout, rows: &[NaiveRow]) -> Json {
    at_place(layout, rows, 0, None)
}

fn at_place(layout: &Layout, rows: &[NaiveRow], index: usize, parent: Option<&NaiveRow>) -> Json {
    let place = &layout.places[index];
    let mut here: Vec<&NaiveRow> = rows
        .iter()
        .filter(|row| row.table == place.table && row.places.0 & (1 << index) != 0)
        .filter(|row| {
            place.on.iter().all(|&(p, c)| {
                let (p, c) = (&parent.expect("a child has a parent").cells[p], &row.cells[c]);
                !p.is_null() && !c.is_null() && p.as_ref().compare(c.as_ref()) == Ordering::Equal
            })
        })
        .collect();
    here.sort_by(|a, b| {
        place.order.iter().map(|term| compare(term, a, b)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    });
    if let Some(value) = &place.value {
        return here.first().map_or_else(|| value.or.clone(), |row| row.cells[place.columns[0]].to_json());
    }
    let objects = here.into_iter().map(|row| {
        let table = &layout.tables[place.table];
        let mut object = Map::new();
        for &column in &place.columns {
            object.insert(table.columns[column].name.clone(), row.cells[column].to_json());
        }
        for (child_index, child) in layout.places.iter().enumerate() {
            if child.parent == Some(index) {
                let name = child.name.clone().expect("a child has a name");
                object.insert(name, at_place(layout, rows, child_index, Some(row)));
            }
        }
        Json::Object(object)
    });
    if place.one { objects.into_iter().next().unwrap_or(Json::Null) } else { objects.collect() }
}

fn compare(term: &OrderColumn, a: &NaiveRow, b: &NaiveRow) -> Ordering {
    let (a, b) = (&a.cells[term.column], &b.cells[term.column]);
    let nulls_first = term.order.nulls == Nulls::First;
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) if nulls_first => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) if nulls_first => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) if term.order.direction == Direction::Desc => b.as_ref().compare(a.as_ref()),
        (false, false) => a.as_ref().compare(b.as_ref()),
    }
}
