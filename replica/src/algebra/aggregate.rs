//! Aggregates: what is computed of many rows, and of which type it is.

use super::Column;
use crate::expr::{Condition, Scalar, typing::Type};
use tidegate_wire::model::{ColumnType, Order};

/// An aggregate over a group's rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// Which.
    pub function: AggregateFunction,
    /// What it aggregates; none for `count(*)`. `string_agg` has its separator second.
    pub arguments: Vec<Column>,
    /// Whether equal arguments count once.
    pub distinct: bool,
    /// Which rows count.
    pub filter: Option<Condition>,
    /// The order in which `string_agg`, `array_agg` and `json_agg` take them, before that of the whole row.
    pub order: Vec<(Scalar, Order)>,
    /// The result's type.
    pub ty: ColumnType,
}

/// The aggregate functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregateFunction {
    /// `count(*)` and, with an argument, of values that are not NULL: int8.
    Count,
    /// `sum`: of int8 numeric (int8, with an overflow error, where the result's type says so), of numeric numeric, of
    /// float8 float8.
    Sum,
    /// `avg`: of int8 and numeric numeric, of float8 float8.
    Average,
    /// `min`
    Min,
    /// `max`
    Max,
    /// `bool_and`, `every`
    BoolAnd,
    /// `bool_or`
    BoolOr,
    /// `string_agg(text, separator)`
    StringAgg,
    /// `array_agg`, `json_agg`, `jsonb_agg`: a JSON array; `array_agg` and `json_agg` keep NULLs.
    JsonAgg,
    /// `stddev_pop`
    StddevPop,
    /// `stddev_samp`, `stddev`
    StddevSample,
    /// `var_pop`
    VariancePop,
    /// `var_samp`, `variance`
    VarianceSample,
}

impl AggregateFunction {
    /// The type of its result for a first argument of a type; `None` where it does not take that.
    #[must_use]
    pub fn result_type(self, argument: Type) -> Option<Type> {
        let column = Type::Column;
        let is_decimal = matches!(argument, Type::Column(ColumnType::Int8 | ColumnType::Numeric));
        let is_float = argument == column(ColumnType::Float8);
        Some(match self {
            Self::Count => column(ColumnType::Int8),
            Self::Sum => match argument {
                Type::Int4 => column(ColumnType::Int8),
                _ if is_decimal => column(ColumnType::Numeric),
                _ if is_float => argument,
                _ => return None,
            },
            Self::Average
            | Self::StddevPop
            | Self::StddevSample
            | Self::VariancePop
            | Self::VarianceSample => match argument {
                _ if is_decimal || argument == Type::Int4 => column(ColumnType::Numeric),
                _ if is_float => argument,
                _ => return None,
            },
            Self::Min | Self::Max => match argument {
                Type::Column(ColumnType::Bool | ColumnType::Json) | Type::Interval => return None,
                _ => argument,
            },
            Self::BoolAnd | Self::BoolOr => column(ColumnType::Bool),
            Self::StringAgg => column(ColumnType::Text),
            Self::JsonAgg => column(ColumnType::Json),
        })
    }
}
