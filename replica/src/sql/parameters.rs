//! Parameters of the query: JSON values that take the type of what they meet.

use super::{
    Binder,
    place::{Place, Result},
};
use crate::{
    expr::{
        Scalar,
        typing::{Operand, Type},
    },
    query::QueryErrorKind,
};
use serde_json::Value as Json;
use tidegate_wire::model::{ColumnType, Value};

/// A parameter's value before it meets a type.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) json: Json,
    pub(super) place: Place,
}

/// What an expression is before it meets others.
#[derive(Clone, Debug)]
pub(super) enum Term {
    /// An operand.
    Operand(Operand),
    /// A parameter of no declared type.
    Parameter(Parameter),
}

/// What becomes of a parameter that is not of the type it meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meeting {
    /// It is refused: what is compared has one type.
    Same,
    /// It keeps the type its JSON has.
    Own,
}

impl Parameter {
    /// The operand where nothing says which type it should have.
    pub(super) fn natural(&self) -> Result<Operand> {
        let typed = |value, ty| Operand::typed(Scalar::Constant(value), Type::Column(ty));
        Ok(match &self.json {
            Json::Null => Operand::Unknown(None),
            Json::Bool(truth) => typed(Value::Bool(*truth), ColumnType::Bool),
            Json::Number(number) => match number.as_i64() {
                Some(integer) => typed(Value::Int8(integer), ColumnType::Int8),
                None => typed(self.value(ColumnType::Numeric)?, ColumnType::Numeric),
            },
            Json::String(text) if text.contains('\0') => return self.wrong("text has a NUL character"),
            Json::String(text) => Operand::Unknown(Some(text.clone())),
            Json::Array(_) | Json::Object(_) => typed(self.value(ColumnType::Json)?, ColumnType::Json),
        })
    }

    /// The operand beside one of a type.
    pub(super) fn beside(&self, ty: Type, meeting: Meeting) -> Result<Operand> {
        let column = match ty {
            Type::Column(column) => column,
            Type::Int4 => ColumnType::Int8,
            Type::Interval => return self.natural(),
        };
        match self.value(column) {
            Ok(value) => Ok(Operand::typed(Scalar::Constant(value), Type::Column(column))),
            // A fraction beside an integer equals none, and is less or greater than it all the same.
            Err(_) if meeting == Meeting::Own || (self.json.is_number() && ty.is_number()) => self.natural(),
            Err(error) => Err(error),
        }
    }

    fn value(&self, ty: ColumnType) -> Result<Value> {
        match Value::from_json(ty, &self.json) {
            Ok(value) => Ok(value),
            Err(error) => self.wrong(error),
        }
    }

    fn wrong<T>(&self, problem: impl std::fmt::Display) -> Result<T> {
        Err(self.place.error(QueryErrorKind::BadArgs, format_args!("parameter {}: {problem}", self.name)))
    }
}

impl Term {
    /// The operand where nothing says which type it should have.
    pub(super) fn natural(self) -> Result<Operand> {
        match self {
            Self::Operand(operand) => Ok(operand),
            Self::Parameter(parameter) => parameter.natural(),
        }
    }

    /// The operand beside one of a type.
    pub(super) fn beside(self, ty: Option<Type>, meeting: Meeting) -> Result<Operand> {
        match (self, ty) {
            (Self::Operand(operand), _) => Ok(operand),
            (Self::Parameter(parameter), Some(ty)) => parameter.beside(ty, meeting),
            (Self::Parameter(parameter), None) => parameter.natural(),
        }
    }

    fn ty(&self) -> Option<Type> {
        match self {
            Self::Operand(operand) => operand.ty(),
            Self::Parameter(_) => None,
        }
    }
}

/// Terms as operands, the parameters among them meeting the first type there is.
pub(super) fn together(terms: Vec<Term>, meeting: Meeting) -> Result<Vec<Operand>> {
    let ty = terms.iter().find_map(Term::ty);
    terms.into_iter().map(|term| term.beside(ty, meeting)).collect()
}

impl Binder<'_> {
    /// A placeholder of the text.
    pub(super) fn placeholder(&self, text: &str, place: Place) -> Result<Term> {
        let Some(name) = text.strip_prefix(':').filter(|name| !name.is_empty()) else {
            return place.bad(format_args!("{text} is not supported; parameters are written :name"));
        };
        let json = match name.strip_prefix("auth.") {
            Some(claim) => self.parameters.claims.get(claim).unwrap_or(&Json::Null),
            None => match self.parameters.args.get(name) {
                Some(json) => json,
                None => return Err(place.error(QueryErrorKind::BadArgs, self.parameters.missing(name))),
            },
        };
        let parameter = Parameter { name: name.to_owned(), json: json.clone(), place };
        match self.parameters.declared.and_then(|declared| declared.get(name)) {
            Some(ty) => Ok(Term::Operand(parameter.beside(Type::Column(*ty), Meeting::Same)?)),
            None => Ok(Term::Parameter(parameter)),
        }
    }
}

/// The members of a parameter whose value is a list, each a parameter of its own.
pub(super) fn members(parameter: &Parameter) -> Option<Vec<Term>> {
    let Json::Array(items) = &parameter.json else { return None };
    let member = |json: &Json| Term::Parameter(Parameter { json: json.clone(), ..parameter.clone() });
    Some(items.iter().map(member).collect())
}

/// The whole number that a constant scalar is; `None` for NULL.
pub(super) fn whole_number(scalar: &Scalar, what: &str, place: Place) -> Result<Option<i64>> {
    match scalar {
        Scalar::Constant(Value::Null) => Ok(None),
        Scalar::Constant(value) => match value.convert_exact(ColumnType::Int8) {
            Some(Value::Int8(number)) => Ok(Some(number)),
            _ => place.mismatch(format_args!("{what} is a whole number")),
        },
        _ => place.unsupported(format_args!("{what} that is not a constant or parameter")),
    }
}
