//! `returning`: what a write shows of the rows it wrote.

use super::Returning;
use crate::sql::{
    Binder,
    check::no_steps,
    name::output_name,
    place::{Place, Result, start},
    query::column,
    scope::Scope,
    select::{Block, Clause},
    select_list::{Item, items},
};
use sqlparser::ast::SelectItem;
use std::rc::Rc;

impl Binder<'_> {
    /// Binds a `returning` over the row as written and those of the other tables.
    pub(super) fn returning(
        &mut self,
        projection: Option<&[SelectItem]>,
        scope: &Scope,
    ) -> Result<Option<Returning>> {
        let Some(projection) = projection else { return Ok(None) };
        let items = items(projection, scope)?;
        let mut block = Block::new(Rc::new(scope.clone()), Clause::Returning);
        let mut returning = Returning { columns: Vec::new(), scalars: Vec::new() };
        for item in &items {
            let (name, typed, place): (String, _, Place) = match item {
                Item::Column(column, place) => (column.name.clone(), column.value.clone(), *place),
                Item::Expr(expr, alias) => {
                    let typed = self.operand(expr, &mut block)?.settle();
                    (alias.clone().unwrap_or_else(|| output_name(expr)), typed, start(expr))
                }
            };
            let column = column(typed, place)?;
            returning.columns.push((name, column.ty));
            returning.scalars.push(column.scalar);
        }
        no_steps(&block)?;
        Ok(Some(returning))
    }
}
