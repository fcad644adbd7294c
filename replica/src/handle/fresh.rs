//! Queries run from scratch at one snapshot: for one-shot reads, for what a resuming client holds, and for checks.

use crate::{
    drain::StandingRow,
    pipeline::{Budget, Pipeline},
    query::{QueryError, QueryErrorKind, Resolved},
    store::{KeyBytes, Snapshot, key::row_key},
    worker::BindingId,
};
use hashbrown::HashMap;
use std::{sync::Arc, time::Duration};
use tidegate_wire::model::PlaceMask;

/// The query's result: each row once, with the places where it stands.
pub(super) fn standing_rows(
    resolved: &Resolved,
    snapshot: &Arc<Snapshot>,
    deadline: Duration,
) -> Result<Vec<StandingRow>, QueryError> {
    // A table that is not there would look like one without rows.
    if resolved.shape.tables().into_iter().any(|table| snapshot.table(table).is_none()) {
        return Err(schema_changed());
    }
    let mut pipeline = Pipeline::new(Arc::clone(&resolved.shape));
    let mut changes = Vec::new();
    pipeline
        .bind(BindingId(0), resolved.values.clone().into(), snapshot, &Budget::once(deadline), &mut changes)
        .map_err(|fault| QueryError::new(QueryErrorKind::QueryFaulted, fault.to_string()))?;
    let output = &resolved.shape.output;
    let mut rows: HashMap<(usize, KeyBytes), StandingRow> = HashMap::with_capacity(changes.len());
    for change in changes {
        let place = usize::from(change.place);
        let table = output.layout.places[place].table;
        let row = change.new.expect("a result's rows enter");
        let key = (table, row_key(&row, &output.tables[table].key));
        let standing = rows.entry(key).or_insert(StandingRow { table, places: PlaceMask(0), row });
        standing.places.0 |= PlaceMask::of(place).0;
    }
    Ok(rows.into_values().collect())
}

/// The refusal of a query that was prepared before one of its tables was altered or dropped.
pub(super) fn schema_changed() -> QueryError {
    let message = "a table that the query reads was altered or dropped meanwhile; ask again";
    QueryError::new(QueryErrorKind::SchemaChanged, message)
}
