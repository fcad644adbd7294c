//! Aggregates: their arguments and their results' types.

use super::{
    Binder,
    expression::BOOL,
    function::Call,
    parameters::Meeting,
    place::{Place, Result, start},
    query::{column, order_item},
    rewrite::{Position, positions},
    select::{Block, Within},
};
use crate::{
    algebra::{Aggregate, AggregateFunction, Column},
    expr::{
        Scalar,
        typing::{Operand, Type, Typed},
    },
};
use sqlparser::ast::OrderByExpr;
use tidegate_wire::model::{ColumnType, Order};

/// The aggregate of a name.
pub(super) fn function_named(name: &str) -> Option<AggregateFunction> {
    Some(match name {
        "count" => AggregateFunction::Count,
        "sum" => AggregateFunction::Sum,
        "avg" => AggregateFunction::Average,
        "min" => AggregateFunction::Min,
        "max" => AggregateFunction::Max,
        "bool_and" | "every" => AggregateFunction::BoolAnd,
        "bool_or" => AggregateFunction::BoolOr,
        "string_agg" => AggregateFunction::StringAgg,
        "array_agg" | "json_agg" | "jsonb_agg" => AggregateFunction::JsonAgg,
        "stddev_pop" => AggregateFunction::StddevPop,
        "stddev_samp" | "stddev" => AggregateFunction::StddevSample,
        "var_pop" => AggregateFunction::VariancePop,
        "var_samp" | "variance" => AggregateFunction::VarianceSample,
        _ => return None,
    })
}

impl Binder<'_> {
    /// An aggregate over a group's rows.
    pub(super) fn aggregate<'q>(&mut self, call: &Call<'q>, block: &mut Block<'q>) -> Result<Typed> {
        let Call { name, place, .. } = call;
        if block.within == Within::Aggregate {
            return place.bad(format_args!("{name} stands inside another aggregate"));
        }
        let within = std::mem::replace(&mut block.within, Within::Aggregate);
        std::mem::swap(&mut block.steps, &mut block.inner);
        let (aggregate, ty) = self.aggregate_call(call, block)?;
        std::mem::swap(&mut block.steps, &mut block.inner);
        block.within = within;
        let (mut own, mut outer) = (false, false);
        positions(&aggregate, &mut |position| match position {
            Position::Domain(_) => outer = true,
            _ => own = true,
        });
        if outer && !own {
            return place.unsupported(format_args!("{name} of an outer query's columns"));
        }
        if !block.clause.has_aggregates() {
            return place.bad(format_args!("aggregates are not allowed in {}", block.clause.name()));
        }
        let known = block.aggregates.iter().position(|other| *other == aggregate);
        let index = known.unwrap_or_else(|| {
            block.aggregates.push(aggregate);
            block.aggregates.len() - 1
        });
        Ok(Typed { scalar: Position::Aggregate(index).scalar(), ty })
    }

    /// What an aggregate's call says, over the rows it aggregates.
    pub(super) fn aggregate_call<'q>(
        &mut self,
        call: &Call<'q>,
        block: &mut Block<'q>,
    ) -> Result<(Aggregate, Type)> {
        let Call { name, place, star, arguments, distinct, order, filter } = call;
        let Some(function) = function_named(name) else {
            return place.unsupported(format_args!("aggregate {name}"));
        };
        let filter = match filter {
            Some(filter) => Some(self.condition(filter, block)?),
            None => None,
        };
        let ordered = matches!(function, AggregateFunction::StringAgg | AggregateFunction::JsonAgg);
        let order_columns = self.order(order, block)?;
        let wanted = if function == AggregateFunction::StringAgg { 2 } else { 1 };
        if *star {
            if function != AggregateFunction::Count || *distinct || !order.is_empty() {
                return place.bad(format_args!("{name}(*) is not supported"));
            }
        } else if arguments.len() != wanted {
            return place.bad(format_args!("{name} takes {wanted} arguments, not {}", arguments.len()));
        }
        let mut operands = Vec::with_capacity(arguments.len());
        for argument in arguments {
            operands.push((self.term(argument, block)?, start(argument)));
        }
        let (mut columns, mut ty) = (Vec::with_capacity(operands.len()), Type::Column(ColumnType::Int8));
        for (index, (term, place)) in operands.into_iter().enumerate() {
            let operand = match wanted_type(function) {
                Some(wanted) => {
                    let operand = term.beside(Some(wanted), Meeting::Same)?;
                    Operand::Typed(operand.settle_as(wanted).map_err(|error| place.typing(error))?)
                }
                None => term.natural()?,
            };
            let (typed, result) = argument(function, name, operand, place)?;
            if index == 0 {
                ty = result;
            }
            columns.push(column(typed, place)?);
        }
        if *distinct && order_columns.iter().any(|(scalar, _)| !reads(&columns, scalar)) {
            return place.bad("with distinct, an aggregate's order by names its arguments");
        }
        let result = match ty {
            Type::Column(ty) => ty,
            Type::Int4 | Type::Interval => ColumnType::Int8,
        };
        let aggregate = Aggregate {
            function,
            arguments: columns,
            distinct: *distinct,
            filter,
            // The other aggregates do not depend on the order.
            order: if ordered { order_columns } else { Vec::new() },
            ty: result,
        };
        Ok((aggregate, ty))
    }

    /// An order over the rows of a block.
    pub(super) fn order<'q>(
        &mut self,
        items: &'q [OrderByExpr],
        block: &mut Block<'q>,
    ) -> Result<Vec<(Scalar, Order)>> {
        let mut order = Vec::with_capacity(items.len());
        for item in items {
            let (expr, direction) = order_item(item)?;
            let typed = self.operand(expr, block)?.settle();
            order.push((column(typed, start(expr))?.scalar, direction));
        }
        Ok(order)
    }
}

fn reads(columns: &[Column], scalar: &Scalar) -> bool {
    columns.iter().any(|column| column.scalar == *scalar)
}

/// The type that an aggregate's arguments have, where it takes one only.
fn wanted_type(function: AggregateFunction) -> Option<Type> {
    match function {
        AggregateFunction::BoolAnd | AggregateFunction::BoolOr => Some(BOOL),
        AggregateFunction::StringAgg => Some(Type::Column(ColumnType::Text)),
        _ => None,
    }
}

/// An argument as the aggregate takes it, and the type of the result.
fn argument(
    function: AggregateFunction,
    name: &str,
    operand: Operand,
    place: Place,
) -> Result<(Typed, Type)> {
    let typed = operand.settle();
    match function.result_type(typed.ty) {
        Some(result) => Ok((typed, result)),
        None => place.mismatch(format_args!("{name} does not take {}", typed.ty)),
    }
}
