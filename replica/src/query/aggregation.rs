//! Aggregates of queries in JSON: from names to the algebra's aggregates.

use super::{
    QueryError, QueryErrorKind,
    resolve::{column, fail},
};
use crate::{
    algebra::{Aggregate, AggregateFunction, Column},
    expr::{Scalar, typing::Type},
};
use serde_json::Value as Json;
use tidegate_wire::model::{
    ColumnType, TableSchema,
    query::{Aggregation, AggregationFunction},
};

/// The aggregate over rows of a table.
///
/// # Errors
/// When there is no such column, or it has a type that the aggregate does not take.
pub(super) fn aggregate(
    aggregation: &Aggregation,
    schema: &TableSchema,
    path: &str,
) -> Result<Aggregate, QueryError> {
    let (name, function) = match aggregation.function {
        AggregationFunction::Count => ("count", AggregateFunction::Count),
        AggregationFunction::Sum => ("sum", AggregateFunction::Sum),
        AggregationFunction::Average => ("avg", AggregateFunction::Average),
        AggregationFunction::Min => ("min", AggregateFunction::Min),
        AggregationFunction::Max => ("max", AggregateFunction::Max),
    };
    let argument = match &aggregation.column {
        Some(column_name) => {
            let at = column(schema, column_name, path)?;
            Some(Column { scalar: Scalar::Column(at), ty: schema.columns[at].ty })
        }
        None => None,
    };
    // Rows are counted whatever is in them, as integers could be.
    let argument_type = argument.as_ref().map_or(ColumnType::Int8, |argument| argument.ty);
    let Some(Type::Column(ty)) = function.result_type(Type::Column(argument_type)) else {
        let problem = format_args!("{name} does not take {argument_type}");
        return fail(QueryErrorKind::TypeMismatch, path, problem);
    };
    let arguments = argument.into_iter().collect();
    Ok(Aggregate { function, arguments, distinct: false, filter: None, order: Vec::new(), ty })
}

/// What an aggregate is of no rows, in JSON.
pub(super) fn of_nothing(aggregate: &Aggregate) -> Json {
    match aggregate.function {
        AggregateFunction::Count => Json::from(0),
        _ => Json::Null,
    }
}
