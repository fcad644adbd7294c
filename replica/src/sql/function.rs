//! Function calls: which kind a call is, and what stands in its parentheses.

use super::{
    Binder,
    aggregate::function_named,
    place::{Place, Result, start},
    rewrite::Position,
    scope::simple,
    select::{Block, Within},
};
use crate::expr::typing::{Type, Typed};
use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArgumentList, FunctionArguments, OrderByExpr, Spanned,
};

/// A call as it is written.
pub(super) struct Call<'q> {
    pub(super) name: String,
    pub(super) place: Place,
    /// `f(*)`.
    pub(super) star: bool,
    pub(super) arguments: Vec<&'q Expr>,
    pub(super) distinct: bool,
    pub(super) order: &'q [OrderByExpr],
    pub(super) filter: Option<&'q Expr>,
}

impl Binder<'_> {
    /// A call of any kind.
    pub(super) fn function<'q>(&mut self, function: &'q Function, block: &mut Block<'q>) -> Result<Typed> {
        let Function { name, uses_odbc_syntax, parameters, args, within_group, filter, null_treatment, over } =
            function;
        let place = Place::from(name.span());
        let Some(simple) = simple(name) else {
            return place.unsupported(format_args!("function {name}"));
        };
        if *uses_odbc_syntax || !matches!(parameters, FunctionArguments::None) {
            return place.unsupported("this form of a function call");
        }
        if !within_group.is_empty() {
            return place.unsupported("within group");
        }
        if null_treatment.is_some() {
            return place.unsupported("ignore or respect nulls");
        }
        let mut call = Call {
            name: simple,
            place,
            star: false,
            arguments: Vec::new(),
            distinct: false,
            order: &[],
            filter: filter.as_deref(),
        };
        match args {
            FunctionArguments::None => {}
            FunctionArguments::Subquery(_) => {
                return place.unsupported(format_args!("{} of a subquery", call.name));
            }
            FunctionArguments::List(list) => arguments(list, &mut call)?,
        }
        if let Some(over) = over {
            return self.window(&call, over, block);
        }
        if function_named(&call.name).is_some() {
            return self.aggregate(&call, block);
        }
        if call.star || call.distinct || !call.order.is_empty() || call.filter.is_some() {
            return place.bad(format_args!("{} is not an aggregate that is known here", call.name));
        }
        match call.name.as_str() {
            "grouping" => self.grouping(&call, block),
            "row" => place.unsupported("a row that is not compared"),
            "row_number" | "rank" | "dense_rank" | "lag" | "lead" | "first_value" | "last_value" => {
                place.bad(format_args!("{} needs over (…)", call.name))
            }
            name => self.call(name, &call.arguments, block, place),
        }
    }

    /// `grouping(keys…)`.
    fn grouping<'q>(&mut self, call: &Call<'q>, block: &mut Block<'q>) -> Result<Typed> {
        if !block.clause.has_aggregates() || block.within == Within::Aggregate {
            return call.place.bad(format_args!("grouping is not allowed in {}", block.clause.name()));
        }
        if call.arguments.is_empty() || call.arguments.len() > 31 {
            return call.place.bad("grouping takes 1 to 31 arguments");
        }
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            arguments.push(self.operand(argument, block)?.settle().scalar);
        }
        let known = block.groupings.iter().position(|(other, _)| *other == arguments);
        let index = known.unwrap_or_else(|| {
            block.groupings.push((arguments, call.place));
            block.groupings.len() - 1
        });
        Ok(Typed { scalar: Position::Grouping(index).scalar(), ty: Type::Int4 })
    }
}

fn arguments<'q>(list: &'q FunctionArgumentList, call: &mut Call<'q>) -> Result<()> {
    let FunctionArgumentList { duplicate_treatment, args, clauses } = list;
    call.distinct = matches!(duplicate_treatment, Some(DuplicateTreatment::Distinct));
    for argument in args {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => call.arguments.push(expr),
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => call.star = true,
            FunctionArg::Unnamed(
                FunctionArgExpr::QualifiedWildcard(_) | FunctionArgExpr::WildcardWithOptions(_),
            ) => return call.place.unsupported("* of a table as an argument"),
            FunctionArg::Named { .. } | FunctionArg::ExprNamed { .. } => {
                return call.place.unsupported("a named argument");
            }
        }
    }
    if call.star && !call.arguments.is_empty() {
        return call.place.bad("* beside other arguments");
    }
    for clause in clauses {
        match clause {
            FunctionArgumentClause::OrderBy(order) => call.order = order,
            FunctionArgumentClause::Limit(expr) => {
                return start(expr).unsupported("limit in an argument list");
            }
            _ => return call.place.unsupported("what stands behind the arguments"),
        }
    }
    Ok(())
}
