//! From a parsed expression to a typed one.
//!
//! A literal or parameter has no type of its own: it takes that of the column or expression it meets, in that
//! type's JSON form. What goes together then, and what comes of it, is decided in [`typing`].

use super::{
    QueryError, QueryErrorKind,
    resolve::{column, fail},
};
use crate::expr::{
    Condition, Scalar,
    typing::{self, Type, Typed, TypingError},
};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use tidegate_wire::model::{
    ColumnType, TableSchema, Value,
    query::{self, Expr},
};

type Result<T> = std::result::Result<T, QueryError>;

/// The values of a query's parameters.
pub struct Parameters<'a> {
    /// Those the client gives.
    pub args: &'a Map<String, Json>,
    /// The token's claims, which `auth.NAME` reads.
    pub claims: &'a Map<String, Json>,
    /// The types that a named query declares for its parameters.
    pub declared: Option<&'a BTreeMap<String, ColumnType>>,
}

impl Parameters<'_> {
    /// The value of a parameter. A claim that the token does not have is NULL.
    fn get(&self, name: &str, path: &str) -> Result<&Json> {
        if let Some(claim) = name.strip_prefix("auth.") {
            return Ok(self.claims.get(claim).unwrap_or(&Json::Null));
        }
        match self.args.get(name) {
            Some(value) => Ok(value),
            None => fail(QueryErrorKind::BadArgs, path, self.missing(name)),
        }
    }

    /// What is said of a parameter that has no value.
    pub(crate) fn missing(&self, name: &str) -> String {
        if self.declared.is_some_and(|declared| !declared.contains_key(name)) {
            return format!(
                "parameter {name} is not declared; \"args\":{{\"{name}\":\"int8\"}} declares its type"
            );
        }
        format!("parameter {name} has no value in args")
    }
}

/// `column = constant` with a value that some row could have: the column and the value in its type.
pub(super) fn lifted_equality(
    expr: &Expr,
    schema: &TableSchema,
    parameters: &Parameters<'_>,
    path: &str,
) -> Result<Option<(usize, Value)>> {
    let Expr::Op(op, args) = expr else { return Ok(None) };
    let (name, constant, side) = match (op.as_str(), args.as_slice()) {
        ("=", [Expr::Column(name), constant @ (Expr::Literal(_) | Expr::Param(_))]) => (name, constant, 1),
        ("=", [constant @ (Expr::Literal(_) | Expr::Param(_)), Expr::Column(name)]) => (name, constant, 0),
        _ => return Ok(None),
    };
    let column = column(schema, name, path)?;
    let ty = schema.columns[column].ty;
    if let Expr::Param(name) = constant {
        let declared = parameters.declared.and_then(|declared| declared.get(name));
        if declared.is_some_and(|declared| *declared != ty) {
            return Ok(None);
        }
    }
    let untyped = Untyped::new(constant, parameters, &format!("{path}.args[{side}]"))?;
    let settled = untyped.settle(ty);
    let (value, value_ty) = settled.map_err(|error| with_column_hint(error, args, schema))?;
    // A fraction beside an int8 column, or NULL, equals nothing; such a condition stays where it is.
    Ok((value_ty == ty && !value.is_null()).then_some((column, value)))
}

/// A literal or a parameter's value before it meets a type.
struct Untyped {
    json: Json,
    parameter: Option<String>,
    path: String,
}

impl Untyped {
    fn new(expr: &Expr, parameters: &Parameters<'_>, path: &str) -> Result<Self> {
        let (json, parameter) = match expr {
            Expr::Literal(json) => (json.clone(), None),
            Expr::Param(name) => (parameters.get(name, path)?.clone(), Some(name.clone())),
            _ => unreachable!("only literals and parameters are untyped"),
        };
        Ok(Self { json, parameter, path: path.to_owned() })
    }

    /// The value in type `ty`, or for a fraction that meets an int8 the exact decimal.
    fn settle(&self, ty: ColumnType) -> Result<(Value, ColumnType)> {
        let error = match Value::from_json(ty, &self.json) {
            Ok(value) => return Ok((value, ty)),
            Err(error) => error,
        };
        if ty == ColumnType::Int8
            && self.json.is_number()
            && let Ok(value) = Value::from_json(ColumnType::Numeric, &self.json)
        {
            return Ok((value, ColumnType::Numeric));
        }
        match &self.parameter {
            Some(name) => {
                fail(QueryErrorKind::BadArgs, &self.path, format_args!("parameter {name}: {error}"))
            }
            None => fail(QueryErrorKind::TypeMismatch, &self.path, error),
        }
    }

    /// The value as an operand of type `ty`.
    fn settled(&self, ty: ColumnType) -> Result<typing::Operand> {
        let (value, ty) = self.settle(ty)?;
        Ok(typing::Operand::typed(Scalar::Constant(value), Type::Column(ty)))
    }

    /// The value as an operand of a function, which says itself what a text should be.
    fn argument(&self) -> Result<typing::Operand> {
        match &self.json {
            Json::Null => Ok(typing::Operand::Unknown(None)),
            Json::String(text) => Ok(typing::Operand::Unknown(Some(text.clone()))),
            _ => self.settled(self.natural_type()),
        }
    }

    /// The type it has when nothing says otherwise.
    fn natural_type(&self) -> ColumnType {
        match &self.json {
            Json::Bool(_) => ColumnType::Bool,
            Json::Number(n) if n.is_i64() => ColumnType::Int8,
            Json::Number(_) => ColumnType::Numeric,
            Json::String(_) | Json::Null => ColumnType::Text,
            Json::Array(_) | Json::Object(_) => ColumnType::Json,
        }
    }
}

enum Operand {
    Typed(Typed),
    Untyped(Untyped),
}

/// Resolves the expressions over one table's rows.
pub(super) struct ExpressionResolver<'a> {
    pub(super) schema: &'a TableSchema,
    pub(super) parameters: &'a Parameters<'a>,
    /// Resolves an EXISTS and gives what stands for it.
    pub(super) on_exists: &'a mut dyn FnMut(&query::Exists, &str) -> Result<Condition>,
}

impl ExpressionResolver<'_> {
    /// A condition.
    pub(super) fn condition(&mut self, expr: &Expr, path: &str) -> Result<Condition> {
        match expr {
            Expr::Exists(node) => (self.on_exists)(node, &format!("{path}.exists")),
            Expr::Op(op, args) if matches!(op.as_str(), "and" | "or") => {
                let mut operands = Vec::with_capacity(args.len());
                for (index, arg) in args.iter().enumerate() {
                    operands.push(self.condition(arg, &format!("{path}.args[{index}]"))?);
                }
                Ok(if op == "and" { Condition::And(operands) } else { Condition::Or(operands) })
            }
            Expr::Op(op, args) if op == "not" => {
                count(op, args, 1..=1, path)?;
                Ok(Condition::Not(Box::new(self.condition(&args[0], &format!("{path}.args[0]"))?)))
            }
            _ => {
                let typed = match self.operand(expr, path)? {
                    Operand::Typed(typed) => typed,
                    Operand::Untyped(untyped) => untyped.settled(ColumnType::Bool)?.settle(),
                };
                typed.condition().map_err(|error| refusal(&error, path))
            }
        }
    }

    /// An operator or function applied.
    fn operation(&mut self, op: &str, args: &[Expr], path: &str) -> Result<Typed> {
        let typed = match op {
            "=" | "<>" | "!=" | "<" | "<=" | ">" | ">=" | "is distinct from" | "is not distinct from" => {
                count(op, args, 2..=2, path)?;
                let [left, right] = self.unified(args, path)?;
                typing::binary(op, left, right)
            }
            "between" => {
                count(op, args, 3..=3, path)?;
                let [value, low, high] = self.unified(args, path)?;
                typing::between(value, low, high)
            }
            "in" => {
                count(op, args, 1..=usize::MAX, path)?;
                return self.membership(args, path);
            }
            "is null" | "is not null" => {
                count(op, args, 1..=1, path)?;
                let operand = match self.operand(&args[0], &format!("{path}.args[0]"))? {
                    Operand::Typed(typed) => typing::Operand::Typed(typed),
                    Operand::Untyped(untyped) => untyped.settled(untyped.natural_type())?,
                };
                typing::unary(op, operand)
            }
            "like" | "ilike" | "~" | "~*" | "!~" | "!~*" => {
                count(op, args, 2..=2, path)?;
                let mut texts = Vec::with_capacity(2);
                for (index, arg) in args.iter().enumerate() {
                    texts.push(match self.operand(arg, &format!("{path}.args[{index}]"))? {
                        Operand::Typed(typed) => typing::Operand::Typed(typed),
                        Operand::Untyped(untyped) => untyped.settled(ColumnType::Text)?,
                    });
                }
                let [value, pattern] = <[_; 2]>::try_from(texts).expect("two operands");
                match op {
                    "like" => typing::like(value, pattern, None, false),
                    "ilike" => typing::like(value, pattern, None, true),
                    op => typing::binary(op, value, pattern),
                }
            }
            "-" if args.len() == 1 => {
                let [operand] = self.unified(args, path)?;
                typing::unary(op, operand)
            }
            "+" | "-" | "*" | "/" | "%" => {
                count(op, args, 2..=2, path)?;
                let [left, right] = self.unified(args, path)?;
                typing::binary(op, left, right)
            }
            "coalesce" | "nullif" | "greatest" | "least" => {
                let operands = self.operands(args, path)?;
                typing::call(op, settled(operands)?)
            }
            "||" | "->" | "->>" | "#>" | "#>>" | "?" | "@>" | "<@" => {
                count(op, args, 2..=2, path)?;
                return self.applied(args, path, |mut operands| {
                    let right = operands.pop().expect("two operands");
                    let left = operands.pop().expect("two operands");
                    typing::binary(op, left, right)
                });
            }
            name if typing::is_function(name) => {
                return self.applied(args, path, |operands| typing::call(name, operands));
            }
            _ => {
                let problem = format_args!("unknown operator or function {op}");
                return fail(QueryErrorKind::BadQuery, path, problem);
            }
        };
        typed.map_err(|error| refusal(&error, path))
    }

    /// What takes its operands as they are. Where it does not take them because of a parameter's value, the parameter is
    /// at fault.
    fn applied(
        &mut self,
        args: &[Expr],
        path: &str,
        apply: impl Fn(Vec<typing::Operand>) -> std::result::Result<Typed, TypingError>,
    ) -> Result<Typed> {
        let (mut operands, mut parameters) = (Vec::with_capacity(args.len()), Vec::new());
        for operand in self.operands(args, path)? {
            operands.push(match operand {
                Operand::Typed(typed) => typing::Operand::Typed(typed),
                Operand::Untyped(untyped) => {
                    parameters.extend(untyped.parameter.clone().map(|name| (operands.len(), name)));
                    untyped.argument()?
                }
            });
        }
        let error = match apply(operands.clone()) {
            Ok(typed) => return Ok(typed),
            Err(error) => error,
        };
        for (index, name) in parameters {
            let mut without = operands.clone();
            without[index] = typing::Operand::Unknown(None);
            if matches!(error, TypingError::Mismatch(_)) && apply(without).is_ok() {
                let place = format!("{path}.args[{index}]");
                return fail(QueryErrorKind::BadArgs, &place, format_args!("parameter {name}: {error}"));
            }
        }
        Err(refusal(&error, path))
    }

    fn membership(&mut self, args: &[Expr], path: &str) -> Result<Typed> {
        // One list-valued parameter stands for all members.
        if let [_, Expr::Param(name)] = args {
            let list_path = format!("{path}.args[1]");
            if let Json::Array(items) = self.parameters.get(name, &list_path)? {
                let members: Vec<Expr> = items.iter().cloned().map(Expr::Literal).collect();
                let expanded: Vec<Expr> = std::iter::once(args[0].clone()).chain(members).collect();
                return match self.members(&expanded, path) {
                    Err(error) if error.kind == QueryErrorKind::TypeMismatch => {
                        fail(QueryErrorKind::BadArgs, &list_path, format_args!("parameter {name}: {error}"))
                    }
                    result => result,
                };
            }
        }
        self.members(args, path)
    }

    fn members(&mut self, args: &[Expr], path: &str) -> Result<Typed> {
        let mut operands = settled(self.operands(args, path)?)?;
        let value = operands.remove(0);
        typing::in_list(value, operands).map_err(|error| refusal(&error, path))
    }

    /// Operands that meet: literals take the type of the others.
    fn unified<const N: usize>(&mut self, args: &[Expr], path: &str) -> Result<[typing::Operand; N]> {
        let operands = settled(self.operands(args, path)?);
        let operands = operands.map_err(|error| with_column_hint(error, args, self.schema))?;
        Ok(<[_; N]>::try_from(operands).expect("operands were counted"))
    }

    fn operands(&mut self, args: &[Expr], path: &str) -> Result<Vec<Operand>> {
        let each = args.iter().enumerate();
        each.map(|(index, arg)| self.operand(arg, &format!("{path}.args[{index}]"))).collect()
    }

    fn operand(&mut self, expr: &Expr, path: &str) -> Result<Operand> {
        let typed = |scalar, ty| Operand::Typed(Typed { scalar, ty: Type::Column(ty) });
        Ok(match expr {
            Expr::Literal(_) => Operand::Untyped(Untyped::new(expr, self.parameters, path)?),
            Expr::Param(name) => {
                let untyped = Untyped::new(expr, self.parameters, path)?;
                match self.parameters.declared.and_then(|declared| declared.get(name)) {
                    Some(ty) => {
                        let (value, ty) = untyped.settle(*ty)?;
                        typed(Scalar::Constant(value), ty)
                    }
                    None => Operand::Untyped(untyped),
                }
            }
            Expr::Column(name) => {
                let index = column(self.schema, name, path)?;
                typed(Scalar::Column(index), self.schema.columns[index].ty)
            }
            Expr::Op(op, args) if !matches!(op.as_str(), "and" | "or" | "not") => {
                Operand::Typed(self.operation(op, args, path)?)
            }
            Expr::Exists(_) | Expr::Op(..) => {
                typed(Scalar::Condition(Box::new(self.condition(expr, path)?)), ColumnType::Bool)
            }
        })
    }
}

fn count(op: &str, args: &[Expr], wanted: std::ops::RangeInclusive<usize>, path: &str) -> Result<()> {
    if wanted.contains(&args.len()) {
        return Ok(());
    }
    let wanted = match (wanted.start(), wanted.end()) {
        (start, end) if start == end => start.to_string(),
        (start, _) => format!("{start} or more"),
    };
    let problem = format_args!("{op} takes {wanted} operands, not {}", args.len());
    fail(QueryErrorKind::BadQuery, path, problem)
}

/// The refusal of operands, with their place.
fn refusal(error: &TypingError, path: &str) -> QueryError {
    let kind = match error {
        TypingError::Unsupported(_) => QueryErrorKind::BadQuery,
        TypingError::Mismatch(_) => QueryErrorKind::TypeMismatch,
    };
    match fail::<()>(kind, path, error) {
        Err(refusal) => refusal,
        Ok(()) => unreachable!("a failure"),
    }
}

/// The operands with literals in the type they meet: the first typed operand's, else what the first that is not NULL
/// looks like.
fn settled(operands: Vec<Operand>) -> Result<Vec<typing::Operand>> {
    let typed = operands.iter().find_map(|operand| match operand {
        Operand::Typed(typed) => Some(typed.ty),
        Operand::Untyped(_) => None,
    });
    let looks = operands.iter().find_map(|operand| match operand {
        Operand::Untyped(untyped) if !untyped.json.is_null() => Some(untyped.natural_type()),
        _ => None,
    });
    let meeting = match typed {
        Some(Type::Column(ty)) => Some(ty),
        Some(Type::Int4) => Some(ColumnType::Int8),
        // No JSON is an interval; a text is read as one.
        Some(Type::Interval) => None,
        None => Some(looks.unwrap_or(ColumnType::Text)),
    };
    let settle = |operand| match (operand, meeting) {
        (Operand::Typed(typed), _) => Ok(typing::Operand::Typed(typed)),
        // Days are added to a date, and only texts can be moments.
        (Operand::Untyped(untyped), Some(ColumnType::Date | ColumnType::Timestamptz))
            if untyped.json.is_number() =>
        {
            untyped.argument()
        }
        (Operand::Untyped(untyped), Some(ty)) => untyped.settled(ty),
        (Operand::Untyped(untyped), None) => untyped.argument(),
    };
    operands.into_iter().map(settle).collect()
}

/// A literal that reads like one of the table's columns is likely to be meant as it.
fn with_column_hint(mut error: QueryError, args: &[Expr], schema: &TableSchema) -> QueryError {
    let named = args.iter().find_map(|arg| match arg {
        Expr::Literal(Json::String(text)) if schema.column(text).is_some() => Some(text),
        _ => None,
    });
    if let (Some(name), QueryErrorKind::TypeMismatch) = (named, error.kind) {
        error.message += &format!("; \"{name}\" is a text here, the column is {{\"col\":\"{name}\"}}");
    }
    error
}
