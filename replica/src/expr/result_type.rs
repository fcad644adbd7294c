//! The type of a scalar's value, told from the scalar itself.

use super::{Function, Scalar, typing::Type};
use tidegate_wire::model::ColumnType;

impl Scalar {
    /// The type of its value over columns of such types; `None` for intervals, NULL and what only the context can tell.
    #[must_use]
    pub fn column_type(&self, columns: &[ColumnType]) -> Option<ColumnType> {
        match self {
            Self::Constant(value) => value.as_ref().column_type(),
            Self::Column(at) => columns.get(*at).copied(),
            // Both operands have the result's type.
            Self::Arithmetic(_, operand, _) => operand.column_type(columns),
            Self::Convert(Type::Column(ty), _) => Some(*ty),
            Self::Convert(Type::Int4, _) => Some(ColumnType::Int8),
            Self::Convert(Type::Interval, _) => None,
            Self::Case(branches, otherwise) => {
                let mut results = branches.iter().map(|(_, result)| result).chain([&**otherwise]);
                results.find_map(|result| result.column_type(columns))
            }
            Self::Coalesce(operands) => operands.iter().find_map(|operand| operand.column_type(columns)),
            Self::Call(function, arguments) if function.is_of_first() => {
                arguments.first()?.column_type(columns)
            }
            Self::Call(function, _) => function.result_type(),
            Self::Condition(_) => Some(ColumnType::Bool),
        }
    }
}

impl Function {
    /// The type of its value, where that is the same for all arguments and not an interval.
    fn result_type(self) -> Option<ColumnType> {
        Some(match self {
            Self::Lower
            | Self::Upper
            | Self::Initcap
            | Self::Concat
            | Self::ConcatWith
            | Self::Left
            | Self::Right
            | Self::Substring
            | Self::SubstringMatching
            | Self::Trim
            | Self::TrimStart
            | Self::TrimEnd
            | Self::Replace
            | Self::Translate
            | Self::PadStart
            | Self::PadEnd
            | Self::SplitPart
            | Self::Repeat
            | Self::Reverse
            | Self::Chr
            | Self::Md5
            | Self::LikeEscape
            | Self::IntervalText
            | Self::MomentText
            | Self::NumberText
            | Self::JsonMemberText
            | Self::JsonPathText
            | Self::JsonKind => ColumnType::Text,
            Self::Length
            | Self::OctetLength
            | Self::Position
            | Self::Ascii
            | Self::Int4
            | Self::DaysBetween
            | Self::JsonLength => ColumnType::Int8,
            Self::StartsWith | Self::JsonHasKey | Self::JsonContains => ColumnType::Bool,
            Self::WholeQuotient
            | Self::Precision
            | Self::ExtractDate(_)
            | Self::ExtractMoment(_)
            | Self::ExtractInterval(_) => ColumnType::Numeric,
            Self::CubeRoot | Self::PartOfMoment | Self::PartOfInterval => ColumnType::Float8,
            Self::AddDays | Self::SubtractDays | Self::MakeDate | Self::ParseDate => ColumnType::Date,
            Self::TruncateMoment
            | Self::AddInterval
            | Self::SubtractInterval
            | Self::MomentOfEpoch
            | Self::ParseMoment => ColumnType::Timestamptz,
            Self::JsonMember | Self::JsonPath => ColumnType::Json,
            _ => return None,
        })
    }

    /// Whether its value has the type of its first argument.
    fn is_of_first(self) -> bool {
        matches!(
            self,
            Self::Append
                | Self::Abs
                | Self::Negate
                | Self::Sign
                | Self::Round
                | Self::Floor
                | Self::Ceil
                | Self::Trunc
                | Self::Sqrt
                | Self::Exp
                | Self::Ln
                | Self::Log
                | Self::Power
                | Self::Greatest
                | Self::Least
        )
    }
}
