//! Selects answered once, at the newest snapshot.

use super::{Inner, fresh::standing_rows};
use crate::{
    query::{Parameters, QueryError, QueryErrorKind, nest, resolve_select},
    sql::bind_all,
};
use serde_json::{Map, Value as Json};
use tidegate_wire::model::{ColumnType, Cv};

/// The answers to a text's statements.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The commit version they all stand at.
    pub cv: Cv,
    /// One for each statement.
    pub results: Vec<Table>,
}

/// One statement's rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The columns' names and types.
    pub columns: Vec<(String, ColumnType)>,
    /// The rows in order, cells in the JSON form of their types.
    pub rows: Vec<Vec<Json>>,
}

impl Inner {
    /// See [`super::Replica::sql`].
    pub(super) fn sql(
        &self,
        text: &str,
        args: &Map<String, Json>,
        claims: &Map<String, Json>,
        rows_max: usize,
    ) -> Result<Answer, QueryError> {
        let snapshot = self.store.snapshot();
        let parameters = Parameters { args, claims, declared: None };
        let mut results = Vec::new();
        let mut rows_left = rows_max;
        for select in bind_all(text, &snapshot, &parameters)? {
            let resolved = resolve_select(&select, &snapshot)?;
            let standing = standing_rows(&resolved, &snapshot, self.options.deadline)?;
            rows_left = rows_left.checked_sub(standing.len()).ok_or_else(|| {
                let message = format!(
                    "the answer has more than {rows_max} rows (limits.sql_rows_max); add a limit, or watch the query"
                );
                QueryError::new(QueryErrorKind::BadQuery, message)
            })?;
            let output = &resolved.shape.output;
            let (layout, place) = (&output.layout.tables[0], &output.layout.places[0]);
            let columns = place.columns.iter().map(|&at| {
                let column = &layout.columns[at];
                (column.name.clone(), column.ty)
            });
            results.push(Table {
                columns: columns.collect(),
                rows: nest::flat(output, standing.iter().map(|row| &row.row)),
            });
        }
        Ok(Answer { cv: snapshot.cv(), results })
    }
}
