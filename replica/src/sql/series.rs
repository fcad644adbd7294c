//! `generate_series` in from: constant rows of whole numbers.

use super::{
    Binder,
    common::{renamed, scope_table},
    from::Source,
    parameters::whole_number,
    place::{Place, Result, start},
    scope::{Scope, folded, simple},
};
use crate::{
    algebra::Rel,
    expr::{
        Scalar,
        typing::{Type, Typed},
    },
};
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, ObjectName, TableAlias, TableFunctionArgs};
use std::sync::Arc;
use tidegate_wire::model::{ColumnType, Value};

/// Most rows of a series; they are a part of the query's plan.
const SERIES_ROWS_MAX: usize = 1_000;

impl Binder<'_> {
    /// A function that stands for a table.
    pub(super) fn table_function(
        &mut self,
        name: &ObjectName,
        arguments: &TableFunctionArgs,
        alias: Option<&TableAlias>,
        place: Place,
    ) -> Result<Source> {
        if simple(name).as_deref() != Some("generate_series") {
            return place.unsupported("a function in from other than generate_series");
        }
        if arguments.settings.is_some() {
            return place.unsupported("settings");
        }
        let mut bounds = Vec::with_capacity(3);
        for argument in &arguments.args {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument else {
                return place.unsupported("this form of generate_series");
            };
            bounds.push(self.whole_constant(expr)?);
        }
        let (first, last, step) = match bounds.as_slice() {
            [(first, _), (last, _)] => (*first, *last, Some(1)),
            [(first, _), (last, _), (step, _)] => (*first, *last, *step),
            _ => {
                return place
                    .bad(format_args!("generate_series takes 2 or 3 arguments, not {}", bounds.len()));
            }
        };
        let ty = if bounds.iter().all(|(_, ty)| *ty == Type::Int4) {
            Type::Int4
        } else {
            Type::Column(ColumnType::Int8)
        };
        let mut rows = Vec::new();
        if let (Some(first), Some(last), Some(step)) = (first, last, step) {
            if step == 0 {
                return place.bad("the step of generate_series is not 0");
            }
            let mut next = Some(first);
            while let Some(number) =
                next.filter(|number| if step > 0 { *number <= last } else { *number >= last })
            {
                if rows.len() == SERIES_ROWS_MAX {
                    return place.bad(format_args!(
                        "generate_series makes more than the limit of {SERIES_ROWS_MAX} rows"
                    ));
                }
                rows.push(vec![Scalar::Constant(Value::Int8(number))]);
                next = number.checked_add(step);
            }
        }
        // The one column is called as the table is.
        let table = alias.map_or_else(|| "generate_series".to_owned(), |alias| folded(&alias.name));
        let columns = renamed(vec![(table.clone(), ty)], alias)?;
        let scope = Scope::of(scope_table(Some(table), columns, Vec::new()));
        Ok(Source { rel: Arc::new(Rel::Values { types: vec![ColumnType::Int8], rows }), scope, width: 1 })
    }

    /// A whole number, `None` for NULL, and its type.
    fn whole_constant(&mut self, expr: &Expr) -> Result<(Option<i64>, Type)> {
        let what = "a bound or step of generate_series";
        let Typed { scalar, ty } = self.constant(expr, what)?;
        if !matches!(ty, Type::Int4 | Type::Column(ColumnType::Int8))
            && scalar != Scalar::Constant(Value::Null)
        {
            return start(expr).unsupported(format_args!("{what} that is {ty}"));
        }
        Ok((whole_number(&scalar, what, start(expr))?, ty))
    }
}
