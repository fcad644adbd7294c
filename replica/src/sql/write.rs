//! `insert`, `update` and `delete`: the rows they are about, as selects, and what becomes of each.

mod change;
mod insert;
mod returning;

use super::{
    Binder,
    place::{Place, Result},
};
use crate::{
    algebra::Select,
    expr::{
        Condition, Scalar,
        typing::{Operand, Type, Typed, assign, cast_numeric},
    },
    query::shape::Access,
    store::TableId,
};
use sqlparser::ast::{self, Expr};
use tidegate_wire::model::{ColumnSchema, ColumnType};

/// A bound write.
pub struct Write {
    /// The table.
    pub table: TableId,
    /// What is done to it.
    pub kind: WriteKind,
    /// What is shown of the rows that were written.
    pub returning: Option<Returning>,
}

/// See [`Write`].
pub enum WriteKind {
    /// New rows.
    Insert {
        /// Where they come from, in order.
        rows: Vec<NewRows>,
        /// What is done where a row is there already.
        on_conflict: Option<OnConflict>,
    },
    /// Other values for rows. The select's columns are the table's, those of the other tables in `from`, then the new
    /// values.
    Update {
        /// The rows.
        rows: Select,
        /// The columns that get the new values, in their order.
        set: Vec<usize>,
    },
    /// Rows that go. The select's columns are the table's, then those of the other tables in `using`.
    Delete {
        /// The rows.
        rows: Select,
    },
}

/// Rows of a table, all its columns in their order. The one that numbers rows is NULL.
pub enum NewRows {
    /// One row, of scalars that read nothing.
    Values(Vec<Scalar>),
    /// The rows of a select.
    Select(Select),
}

/// `on conflict`
pub struct OnConflict {
    /// What may be there already.
    pub arbiters: Vec<Arbiter>,
    /// What is done then.
    pub action: ConflictAction,
}

/// Values that only one row has.
pub struct Arbiter {
    /// The columns, in the order in which rows are looked up by them.
    pub columns: Vec<usize>,
    /// How.
    pub access: Access,
}

/// See [`OnConflict`].
pub enum ConflictAction {
    /// The row is left out.
    Nothing,
    /// The row that is there is updated. Scalars are over its columns, then those of the one that would be inserted.
    Update {
        /// Columns and their new values.
        set: Vec<(usize, Scalar)>,
        /// Which rows are updated.
        filter: Option<Condition>,
    },
}

/// `returning`: columns over the row as written, then those of the other tables.
pub struct Returning {
    /// Names and types.
    pub columns: Vec<(String, ColumnType)>,
    /// What they are.
    pub scalars: Vec<Scalar>,
}

impl Binder<'_> {
    /// Binds a write.
    pub(super) fn write(&mut self, statement: &ast::Statement, with: Option<&ast::With>) -> Result<Write> {
        if let Some(with) = with {
            self.common_tables(with)?;
        }
        match statement {
            ast::Statement::Insert(insert) => self.insert(insert),
            ast::Statement::Update(update) => self.update(update),
            ast::Statement::Delete(delete) => self.delete(delete),
            _ => Place::UNKNOWN.unsupported("this statement"),
        }
    }
}

/// An operand as the value of a column.
pub(super) fn assigned(operand: Operand, column: &ColumnSchema, place: Place) -> Result<Scalar> {
    let typed = assign(operand, Type::Column(column.ty));
    let rounded = typed.and_then(|typed: Typed| match column.precision {
        Some((precision, scale)) => cast_numeric(Operand::Typed(typed), precision, scale),
        None => Ok(typed),
    });
    match rounded {
        Ok(typed) => Ok(typed.scalar),
        Err(error) => {
            let error = place.typing(error);
            Err(crate::query::QueryError::new(
                error.kind,
                format!("column {}: {}", column.name, error.message),
            ))
        }
    }
}

/// Whether an expression is the word `default`, which stands where a value would.
pub(super) fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(ident)
        if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}
