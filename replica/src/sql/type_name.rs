//! Names of types in the text.

use super::{
    Binder,
    place::{Place, Result},
};
use crate::expr::typing::{self, Operand, Type, Typed, TypingError};
use sqlparser::ast::{DataType, ExactNumberInfo};

/// What a cast makes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    /// A value of a type.
    Type(Type),
    /// A numeric of a precision and a scale.
    Numeric(u32, i32),
}

impl Target {
    /// The operand as one of this type.
    pub(super) fn cast(self, operand: Operand) -> std::result::Result<Typed, TypingError> {
        match self {
            Self::Type(ty) => typing::cast(operand, ty),
            Self::Numeric(precision, scale) => typing::cast_numeric(operand, precision, scale),
        }
    }
}

impl Binder<'_> {
    /// The type that a name means.
    pub(super) fn type_name(&self, data_type: &DataType, place: Place) -> Result<Target> {
        let numeric = match data_type {
            DataType::Numeric(info) | DataType::Decimal(info) | DataType::Dec(info) => match info {
                ExactNumberInfo::None => None,
                ExactNumberInfo::Precision(precision) => Some((*precision, 0)),
                ExactNumberInfo::PrecisionAndScale(precision, scale) => Some((*precision, *scale)),
            },
            _ => None,
        };
        if let Some((precision, scale)) = numeric {
            let (Ok(precision), Ok(scale)) = (u32::try_from(precision), i32::try_from(scale)) else {
                return place.bad(format_args!("{data_type} has a precision out of range"));
            };
            return Ok(Target::Numeric(precision, scale));
        }
        let name = data_type.to_string().to_ascii_lowercase();
        match typing::type_by_name(&name) {
            Some(ty) => Ok(Target::Type(ty)),
            None => place.unsupported(format_args!("type {name}")),
        }
    }
}
