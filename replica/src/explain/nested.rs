//! A nested query's places.

use super::{Names, measured, text::condition};
use crate::{
    pipeline::OperatorProfile,
    query::{
        Output,
        shape::{Access, Filter, Place, Source},
    },
    store::TableId,
};

pub(super) fn lines(
    places: &[Place],
    output: &Output,
    names: &Names<'_>,
    profiles: Option<&[OperatorProfile]>,
    out: &mut Vec<String>,
) {
    let mut depths: Vec<usize> = Vec::with_capacity(places.len());
    for (at, place) in places.iter().enumerate() {
        let depth = place.parent.map_or(0, |parent| depths[parent] + 1);
        depths.push(depth);
        let indent = "  ".repeat(depth);
        let name = output.layout.places.get(at).and_then(|place| place.name.as_deref());
        let name = name.map_or_else(String::new, |name| format!("{name}: "));
        let by = place.group.iter().map(|column| {
            let source = match column.source {
                Source::Slot(slot) => format!("p{}", slot + 1),
                Source::Parent(parent) => {
                    let table = place.parent.map(|at| places[at].table);
                    let column = table.map(|table| names.column(table, parent)).unwrap_or_default();
                    format!("parent.{column}")
                }
            };
            format!("{} = {source}", names.column(place.table, column.column))
        });
        let by: Vec<String> = by.collect();
        let by = if by.is_empty() { String::new() } else { format!(" where {}", by.join(" and ")) };
        let limit = place.limit.map_or_else(String::new, |limit| format!(" limit {limit}"));
        let profile = profiles
            .and_then(|profiles| profiles.get(at))
            .map_or_else(String::new, |profile| format!("  [{}]", measured(profile)));
        out.push(format!(
            "{indent}{name}{} by {}{by} order by {}{limit}{profile}",
            names.table(place.table),
            access(&place.access, names),
            names.order(place.table, &place.order),
        ));
        filter(&place.condition, place.table, names, &format!("{indent}   "), out);
    }
}

fn access(access: &Access, names: &Names<'_>) -> String {
    match access {
        Access::Primary => "primary key".to_owned(),
        Access::Index(spec) => names.index(spec),
    }
}

fn filter(of: &Filter, table: TableId, names: &Names<'_>, indent: &str, out: &mut Vec<String>) {
    if !of.is_trivial() {
        let start = if of.start.is_some() { ", from a start on" } else { "" };
        out.push(format!("{indent}if {}{start}", condition(&of.condition, &|at| names.column(table, at))));
    }
    for (number, exists) in of.exists.iter().enumerate() {
        let on = exists.on.iter().map(|on| {
            format!("{} = {}", names.column(exists.table, on.inner), names.column(table, on.outer))
        });
        out.push(format!(
            "{indent}exists {}: {} by {} where {}; when it changes, rows of {} by {}",
            number + 1,
            names.table(exists.table),
            access(&exists.inner, names),
            on.collect::<Vec<_>>().join(" and "),
            names.table(table),
            access(&exists.outer, names),
        ));
        filter(&exists.filter, exists.table, names, &format!("{indent}   "), out);
    }
}
