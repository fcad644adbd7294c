//! Check constraints: conditions over one row of a table.

use super::{
    Binder, STACK_BYTES, parse,
    place::{Place, Result},
    scope::{Scope, ScopeColumn, ScopeTable},
    select::{Block, Clause},
};
use crate::{
    expr::{
        Condition, Scalar,
        typing::{Type, Typed},
    },
    query::{Parameters, QueryError},
    store::Snapshot,
};
use serde_json::Map;
use std::rc::Rc;
use tidegate_wire::model::{TableSchema, table_rules::Check};

/// Binds a check constraint's condition over its table's rows.
///
/// # Errors
/// When it is not a condition over the table's columns alone; the message says where.
pub fn check_condition(schema: &TableSchema, check: &Check) -> std::result::Result<Condition, QueryError> {
    stacker::grow(STACK_BYTES, || {
        let (expr, words) = parse::parse_expression(&check.expression)?;
        let columns = schema.shown().iter().enumerate().filter_map(|(at, column)| {
            let written = check.renamed.iter().find(|(_, now)| **now == column.name);
            let name = match written {
                Some((written, _)) => written,
                // The condition means another column by this name.
                None if check.renamed.contains_key(&column.name) => return None,
                None => &column.name,
            };
            let value = Typed { scalar: Scalar::Column(at), ty: Type::Column(column.ty) };
            Some(ScopeColumn { name: name.clone(), value })
        });
        let table = ScopeTable { name: None, columns: columns.collect(), key: Vec::new() };
        let (snapshot, nothing) = (Snapshot::empty(), Map::new());
        let parameters = Parameters { args: &nothing, claims: &nothing, declared: None };
        let mut binder = Binder::new(&snapshot, &parameters, &words);
        let mut block = Block::new(Rc::new(Scope::of(table)), Clause::Check);
        let condition = binder.condition(&expr, &mut block)?;
        no_steps(&block)?;
        Ok(condition)
    })
}

/// Refuses subqueries where there is only a row to look at.
pub(super) fn no_steps(block: &Block<'_>) -> Result<()> {
    if block.steps.is_empty() {
        return Ok(());
    }
    let place: Place = block.steps.place();
    place.unsupported(format_args!("a subquery in {}", block.clause.name()))
}
