//! Plans for people: what maintains a query, by which indexes, and, for one that is live, what its operators hold and did.
//! One line a fact; deeper ones are indented.

mod nested;
mod operators;
#[cfg(test)]
mod tests;
mod text;

use crate::{
    pipeline::OperatorProfile,
    query::{Resolved, shape::Body},
    store::{IndexSpec, Snapshot, TableId},
};
pub(crate) use text::counted;
use text::value;
use tidegate_wire::model::Order;

/// How a query is maintained; `profiles` are those of its operators, or places, when it is live.
#[must_use]
pub fn explain(
    resolved: &Resolved,
    snapshot: &Snapshot,
    profiles: Option<&[OperatorProfile]>,
) -> Vec<String> {
    let shape = &resolved.shape;
    let mut lines = vec![format!("shape {}", shape.output.fp)];
    for (at, (ty, given)) in shape.slots.iter().zip(&resolved.values).enumerate() {
        lines.push(format!("parameter p{}: {ty}, here {}", at + 1, value(given)));
    }
    let names = Names { snapshot };
    match &shape.body {
        Body::Nested(places) => nested::lines(places, &shape.output, &names, profiles, &mut lines),
        Body::Flat(plan) => operators::lines(plan, &names, profiles, &mut lines),
    }
    if let Some(profiles) = profiles {
        let keys: usize = profiles.iter().map(|profile| profile.keys).sum();
        lines.push(format!("state: {}", counted(keys, "key")));
    }
    lines
}

/// Names of tables and columns.
struct Names<'s> {
    snapshot: &'s Snapshot,
}

impl Names<'_> {
    fn table(&self, table: TableId) -> String {
        self.snapshot.table(table).map_or_else(|| "?".to_owned(), |table| table.schema().name.clone())
    }

    fn column(&self, table: TableId, column: usize) -> String {
        let schema = self.snapshot.table(table).map(|table| table.schema());
        schema
            .and_then(|schema| schema.columns.get(column))
            .map_or_else(|| "?".to_owned(), |it| it.name.clone())
    }

    /// An index, by what it orders.
    fn index(&self, spec: &IndexSpec) -> String {
        let columns = spec
            .columns
            .iter()
            .map(|&(column, order)| format!("{}{}", self.column(spec.table, column), text::direction(order)));
        format!("index ({})", columns.collect::<Vec<_>>().join(", "))
    }

    /// Columns in an order.
    fn order(&self, table: TableId, order: &[(usize, Order)]) -> String {
        let columns = order
            .iter()
            .map(|&(column, order)| format!("{}{}", self.column(table, column), text::direction(order)));
        columns.collect::<Vec<_>>().join(", ")
    }
}

/// What is known of an operator that is live.
fn measured(profile: &OperatorProfile) -> String {
    let mut out = counted(profile.keys, "key");
    if profile.advances > 0 {
        out.push_str(&format!(
            "; last {} in {:.1} µs, on average {:.1} in {:.1} µs over {}",
            counted(profile.last_rows, "row"),
            profile.last_time.as_secs_f64() * 1e6,
            profile.rows as f64 / profile.advances as f64,
            profile.time.as_secs_f64() * 1e6 / profile.advances as f64,
            counted(profile.advances, "commit"),
        ));
    }
    out
}
