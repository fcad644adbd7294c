//! From a parsed expression to a typed one.
//!
//! A literal or parameter has no type of its own: it takes that of the column or expression it meets, in that
//! type's JSON form.

use super::{
    QueryError, QueryErrorKind,
    resolve::{column, comparable, fail},
};
use crate::expr::{Compare, Condition, Function, Pattern, Scalar, function::Signature, scalar::Arithmetic};
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
            None if self.declared.is_some_and(|declared| !declared.contains_key(name)) => fail(
                QueryErrorKind::BadArgs,
                path,
                format_args!(
                    "parameter {name} is not declared; \"args\":{{\"{name}\":\"int8\"}} declares its type"
                ),
            ),
            None => {
                fail(QueryErrorKind::BadArgs, path, format_args!("parameter {name} has no value in args"))
            }
        }
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
    Typed(Scalar, ColumnType),
    Untyped(Untyped),
}

/// Resolves the expressions over one table's rows.
pub(super) struct ExpressionResolver<'a> {
    pub(super) schema: &'a TableSchema,
    pub(super) parameters: &'a Parameters<'a>,
    /// Resolves an EXISTS and gives its number.
    pub(super) on_exists: &'a mut dyn FnMut(&query::Exists, &str) -> Result<usize>,
}

impl ExpressionResolver<'_> {
    /// A condition.
    pub(super) fn condition(&mut self, expr: &Expr, path: &str) -> Result<Condition> {
        let (op, args) = match expr {
            Expr::Exists(node) => {
                return Ok(Condition::Exists((self.on_exists)(node, &format!("{path}.exists"))?));
            }
            Expr::Op(op, args) => (op.as_str(), args.as_slice()),
            _ => return self.truth(expr, path),
        };
        let arg_path = |index: usize| format!("{path}.args[{index}]");
        let count = |wanted: std::ops::RangeInclusive<usize>| {
            if wanted.contains(&args.len()) {
                return Ok(());
            }
            let wanted = match (wanted.start(), wanted.end()) {
                (start, end) if start == end => start.to_string(),
                (start, _) => format!("{start} or more"),
            };
            fail(
                QueryErrorKind::BadQuery,
                path,
                format_args!("{op} takes {wanted} operands, not {}", args.len()),
            )
        };
        Ok(match op {
            "and" | "or" => {
                let mut operands = Vec::with_capacity(args.len());
                for (index, arg) in args.iter().enumerate() {
                    operands.push(self.condition(arg, &arg_path(index))?);
                }
                if op == "and" { Condition::And(operands) } else { Condition::Or(operands) }
            }
            "not" => {
                count(1..=1)?;
                Condition::Not(Box::new(self.condition(&args[0], &arg_path(0))?))
            }
            "=" | "<>" | "!=" | "<" | "<=" | ">" | ">=" => {
                count(2..=2)?;
                let [left, right] = self.unified(args, path)?.try_into().expect("two operands");
                Condition::Compare(comparison(op), left, right)
            }
            "between" => {
                count(3..=3)?;
                let [value, low, high] = self.unified(args, path)?.try_into().expect("three operands");
                Condition::And(vec![
                    Condition::Compare(Compare::GreaterOrEqual, value.clone(), low),
                    Condition::Compare(Compare::LessOrEqual, value, high),
                ])
            }
            "in" => {
                count(1..=usize::MAX)?;
                self.membership(args, path)?
            }
            "is null" | "is not null" => {
                count(1..=1)?;
                let value = match self.operand(&args[0], &arg_path(0))? {
                    Operand::Typed(scalar, _) => scalar,
                    Operand::Untyped(untyped) => Scalar::Constant(untyped.settle(untyped.natural_type())?.0),
                };
                let is_null = Condition::IsNull(value);
                if op == "is null" { is_null } else { Condition::Not(Box::new(is_null)) }
            }
            "is distinct from" | "is not distinct from" => {
                count(2..=2)?;
                let [left, right] = self.unified(args, path)?.try_into().expect("two operands");
                let distinct = Condition::IsDistinct(left, right);
                if op == "is distinct from" { distinct } else { Condition::Not(Box::new(distinct)) }
            }
            "like" | "ilike" => {
                count(2..=2)?;
                let value = self.expect(&args[0], ColumnType::Text, &arg_path(0))?;
                match self.expect(&args[1], ColumnType::Text, &arg_path(1))? {
                    Scalar::Constant(Value::Text(pattern)) => match Pattern::compile(&pattern, op == "ilike")
                    {
                        Ok(pattern) => Condition::Matches(value, pattern),
                        // A bad pattern faults the query when a row meets it, as in PostgreSQL.
                        Err(_) => Condition::MatchesComputed(
                            value,
                            Scalar::Constant(Value::Text(pattern)),
                            op == "ilike",
                        ),
                    },
                    pattern => Condition::MatchesComputed(value, pattern, op == "ilike"),
                }
            }
            _ => return self.truth(expr, path),
        })
    }

    /// A boolean value as a condition.
    fn truth(&mut self, expr: &Expr, path: &str) -> Result<Condition> {
        Ok(match self.expect(expr, ColumnType::Bool, path)? {
            Scalar::Constant(Value::Bool(truth)) => Condition::Constant(Some(truth)),
            Scalar::Constant(Value::Null) => Condition::Constant(None),
            Scalar::Condition(condition) => *condition,
            scalar => Condition::Truth(scalar),
        })
    }

    fn membership(&mut self, args: &[Expr], path: &str) -> Result<Condition> {
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

    fn members(&mut self, args: &[Expr], path: &str) -> Result<Condition> {
        let mut scalars = self.unified(args, path)?;
        let value = scalars.remove(0);
        Ok(Condition::In(value, scalars))
    }

    /// Operands brought to types that compare.
    fn unified(&mut self, args: &[Expr], path: &str) -> Result<Vec<Scalar>> {
        self.unify(args, path).map_err(|error| with_column_hint(error, args, self.schema))
    }

    fn unify(&mut self, args: &[Expr], path: &str) -> Result<Vec<Scalar>> {
        let mut operands = Vec::with_capacity(args.len());
        for (index, arg) in args.iter().enumerate() {
            operands.push(self.operand(arg, &format!("{path}.args[{index}]"))?);
        }
        let ty = meeting_type(&operands);
        operands
            .into_iter()
            .enumerate()
            .map(|(index, operand)| match operand {
                Operand::Typed(scalar, own) if comparable(own, ty) => Ok(scalar),
                Operand::Typed(_, own) => fail(
                    QueryErrorKind::TypeMismatch,
                    &format!("{path}.args[{index}]"),
                    format_args!("cannot compare {ty} with {own}"),
                ),
                Operand::Untyped(untyped) => Ok(Scalar::Constant(untyped.settle(ty)?.0)),
            })
            .collect()
    }

    /// An operand of a given type; numbers are converted to it.
    fn expect(&mut self, expr: &Expr, ty: ColumnType, path: &str) -> Result<Scalar> {
        match self.operand(expr, path)? {
            Operand::Typed(scalar, own) if own == ty => Ok(scalar),
            Operand::Typed(scalar, own) if own.is_number() && ty == ColumnType::Float8 => {
                Ok(Scalar::Convert(ty, Box::new(scalar)))
            }
            Operand::Typed(_, own) => {
                fail(QueryErrorKind::TypeMismatch, path, format_args!("expected {ty}, found {own}"))
            }
            Operand::Untyped(untyped) => match untyped.settle(ty)? {
                (value, own) if own == ty => Ok(Scalar::Constant(value)),
                _ => {
                    fail(QueryErrorKind::TypeMismatch, path, format_args!("expected {ty}, found a fraction"))
                }
            },
        }
    }

    fn operand(&mut self, expr: &Expr, path: &str) -> Result<Operand> {
        Ok(match expr {
            Expr::Literal(_) => Operand::Untyped(Untyped::new(expr, self.parameters, path)?),
            Expr::Param(name) => {
                let untyped = Untyped::new(expr, self.parameters, path)?;
                match self.parameters.declared.and_then(|declared| declared.get(name)) {
                    Some(ty) => {
                        let (value, ty) = untyped.settle(*ty)?;
                        Operand::Typed(Scalar::Constant(value), ty)
                    }
                    None => Operand::Untyped(untyped),
                }
            }
            Expr::Column(name) => {
                let index = column(self.schema, name, path)?;
                Operand::Typed(Scalar::Column(index), self.schema.columns[index].ty)
            }
            Expr::Exists(_) => {
                Operand::Typed(Scalar::Condition(Box::new(self.condition(expr, path)?)), ColumnType::Bool)
            }
            Expr::Op(op, args) => match op.as_str() {
                "+" | "-" | "*" | "/" | "%" => {
                    let (scalar, ty) = self.arithmetic(op, args, path)?;
                    Operand::Typed(scalar, ty)
                }
                name if Function::from_name(name).is_some() => {
                    let function = Function::from_name(name).expect("just looked up");
                    let (scalar, ty) = self.call(function, name, args, path)?;
                    Operand::Typed(scalar, ty)
                }
                "and"
                | "or"
                | "not"
                | "="
                | "<>"
                | "!="
                | "<"
                | "<="
                | ">"
                | ">="
                | "between"
                | "in"
                | "is null"
                | "is not null"
                | "is distinct from"
                | "is not distinct from"
                | "like"
                | "ilike" => {
                    Operand::Typed(Scalar::Condition(Box::new(self.condition(expr, path)?)), ColumnType::Bool)
                }
                _ => {
                    return fail(
                        QueryErrorKind::BadQuery,
                        path,
                        format_args!("unknown operator or function {op}"),
                    );
                }
            },
        })
    }

    fn arithmetic(&mut self, op: &str, args: &[Expr], path: &str) -> Result<(Scalar, ColumnType)> {
        self.compute(op, args, path).map_err(|error| with_column_hint(error, args, self.schema))
    }

    fn compute(&mut self, op: &str, args: &[Expr], path: &str) -> Result<(Scalar, ColumnType)> {
        let operator = match op {
            "+" => Arithmetic::Add,
            "-" => Arithmetic::Subtract,
            "*" => Arithmetic::Multiply,
            "/" => Arithmetic::Divide,
            _ => Arithmetic::Remainder,
        };
        let zero = Expr::Literal(Json::from(0));
        let (negated, args): (Vec<Expr>, &[Expr]) = match (op, args) {
            ("-", [operand]) => (vec![zero, operand.clone()], &[]),
            (_, [_, _]) => (Vec::new(), args),
            _ => {
                return fail(
                    QueryErrorKind::BadQuery,
                    path,
                    format_args!("{op} takes 2 operands, not {}", args.len()),
                );
            }
        };
        let args = if negated.is_empty() { args } else { &negated };
        let mut operands = Vec::with_capacity(2);
        for (index, arg) in args.iter().enumerate() {
            operands.push(self.operand(arg, &format!("{path}.args[{index}]"))?);
        }
        let meeting = meeting_type(&operands);
        let mut scalars = Vec::with_capacity(2);
        for operand in operands {
            scalars.push(match operand {
                Operand::Typed(scalar, ty) => (scalar, ty),
                Operand::Untyped(untyped) => {
                    let (value, ty) = untyped.settle(meeting)?;
                    (Scalar::Constant(value), ty)
                }
            });
        }
        if let Some((_, other)) = scalars.iter().find(|(_, ty)| !ty.is_number()) {
            return fail(
                QueryErrorKind::TypeMismatch,
                path,
                format_args!("{op} works on numbers, not on {other}"),
            );
        }
        let ty = common_number(scalars.iter().map(|(_, ty)| *ty));
        if ty == ColumnType::Float8 && operator == Arithmetic::Remainder {
            return fail(QueryErrorKind::TypeMismatch, path, "% works on int8 and numeric, not on float8");
        }
        let [left, right] =
            <[_; 2]>::try_from(scalars.into_iter().map(|s| converted(s, ty)).collect::<Vec<_>>())
                .expect("two operands");
        Ok((Scalar::Arithmetic(operator, Box::new(left), Box::new(right)), ty))
    }

    fn call(
        &mut self,
        function: Function,
        name: &str,
        args: &[Expr],
        path: &str,
    ) -> Result<(Scalar, ColumnType)> {
        let arity = |wanted: &str| {
            fail(
                QueryErrorKind::BadQuery,
                path,
                format_args!("{name} takes {wanted} arguments, not {}", args.len()),
            )
        };
        match function.signature() {
            Signature::Fixed { types, optional, result } => {
                let fewest = types.len() - usize::from(optional);
                if !(fewest..=types.len()).contains(&args.len()) {
                    return arity(&if optional {
                        format!("{fewest} or {}", types.len())
                    } else {
                        fewest.to_string()
                    });
                }
                let mut scalars = Vec::with_capacity(args.len());
                for (index, (arg, ty)) in args.iter().zip(types).enumerate() {
                    scalars.push(self.expect(arg, *ty, &format!("{path}.args[{index}]"))?);
                }
                Ok((Scalar::Call(function, scalars), result))
            }
            Signature::Number => {
                let [arg] = args else { return arity("1") };
                let (scalar, ty) = match self.operand(arg, &format!("{path}.args[0]"))? {
                    Operand::Typed(scalar, ty) => (scalar, ty),
                    Operand::Untyped(untyped) => {
                        let (value, ty) = untyped.settle(untyped.natural_type())?;
                        (Scalar::Constant(value), ty)
                    }
                };
                if !ty.is_number() {
                    return fail(
                        QueryErrorKind::TypeMismatch,
                        path,
                        format_args!("{name} takes a number, not {ty}"),
                    );
                }
                Ok((Scalar::Call(function, vec![scalar]), ty))
            }
            Signature::Any => {
                if args.is_empty() {
                    return arity("1 or more");
                }
                let mut scalars = Vec::with_capacity(args.len());
                for (index, arg) in args.iter().enumerate() {
                    scalars.push(match self.operand(arg, &format!("{path}.args[{index}]"))? {
                        Operand::Typed(scalar, _) => scalar,
                        Operand::Untyped(untyped) => {
                            Scalar::Constant(untyped.settle(untyped.natural_type())?.0)
                        }
                    });
                }
                Ok((Scalar::Call(function, scalars), ColumnType::Text))
            }
            Signature::Same { min, max } => {
                if !(min..=max).contains(&args.len()) {
                    return arity(&if min == max { min.to_string() } else { format!("{min} or more") });
                }
                let mut operands = Vec::with_capacity(args.len());
                for (index, arg) in args.iter().enumerate() {
                    operands.push(self.operand(arg, &format!("{path}.args[{index}]"))?);
                }
                let meeting = meeting_type(&operands);
                let mut scalars = Vec::with_capacity(operands.len());
                for operand in operands {
                    scalars.push(match operand {
                        Operand::Typed(scalar, ty) => (scalar, ty),
                        Operand::Untyped(untyped) => {
                            let (value, ty) = untyped.settle(meeting)?;
                            (Scalar::Constant(value), ty)
                        }
                    });
                }
                let ty = if meeting.is_number() {
                    if let Some((_, other)) = scalars.iter().find(|(_, ty)| !ty.is_number()) {
                        return fail(
                            QueryErrorKind::TypeMismatch,
                            path,
                            format_args!("{name} cannot mix {meeting} and {other}"),
                        );
                    }
                    common_number(scalars.iter().map(|(_, ty)| *ty))
                } else {
                    if let Some((_, other)) = scalars.iter().find(|(_, ty)| *ty != meeting) {
                        return fail(
                            QueryErrorKind::TypeMismatch,
                            path,
                            format_args!("{name} cannot mix {meeting} and {other}"),
                        );
                    }
                    meeting
                };
                let scalars = scalars.into_iter().map(|s| converted(s, ty)).collect();
                Ok((Scalar::Call(function, scalars), ty))
            }
        }
    }
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

fn comparison(op: &str) -> Compare {
    match op {
        "=" => Compare::Equal,
        "<" => Compare::Less,
        "<=" => Compare::LessOrEqual,
        ">" => Compare::Greater,
        ">=" => Compare::GreaterOrEqual,
        _ => Compare::NotEqual,
    }
}

/// The type that literals among the operands take: the first typed operand's, else what the first that is not NULL
/// looks like.
fn meeting_type(operands: &[Operand]) -> ColumnType {
    let typed = operands.iter().find_map(|operand| match operand {
        Operand::Typed(_, ty) => Some(*ty),
        Operand::Untyped(_) => None,
    });
    typed.unwrap_or_else(|| {
        let mut untyped = operands.iter().filter_map(|operand| match operand {
            Operand::Untyped(untyped) if !untyped.json.is_null() => Some(untyped.natural_type()),
            _ => None,
        });
        untyped.next().unwrap_or(ColumnType::Text)
    })
}

/// The type numbers of several types meet at: float8 before numeric before int8.
fn common_number(types: impl Iterator<Item = ColumnType>) -> ColumnType {
    types.fold(ColumnType::Int8, |common, ty| match (common, ty) {
        (ColumnType::Float8, _) | (_, ColumnType::Float8) => ColumnType::Float8,
        (ColumnType::Numeric, _) | (_, ColumnType::Numeric) => ColumnType::Numeric,
        _ => ColumnType::Int8,
    })
}

/// The scalar in type `ty`; a constant is converted here and now.
fn converted((scalar, own): (Scalar, ColumnType), ty: ColumnType) -> Scalar {
    if own == ty {
        return scalar;
    }
    if let Scalar::Constant(value) = &scalar
        && let Ok(value) = crate::expr::arithmetic::convert(value.as_ref(), ty)
    {
        return Scalar::Constant(value);
    }
    Scalar::Convert(ty, Box::new(scalar))
}
