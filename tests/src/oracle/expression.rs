//! Expressions: names resolved, literals and arguments read by the type of what they meet.

use super::cell::{Cell, Kind};
use super::database::Database;
use super::fault::QueryError;
use super::query::{Place, array, column, known, object, text};
use serde_json::{Map, Value};

/// A checked expression over one row.
#[derive(Debug)]
pub(super) enum Expression {
    Constant(Cell),
    /// An index into the row.
    Column(usize),
    Apply(Operation, Vec<Expression>),
    /// Pairs of the row's and the inner table's columns.
    Exists(Box<Place>, Vec<(usize, usize)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    And,
    Or,
    Not,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    IsNull,
    IsDistinctFrom,
    Like,
    Ilike,
    Between,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Negate,
    Lower,
    Upper,
    Length,
    Abs,
    Coalesce,
    NullIf,
}

/// Resolves the expressions and places of one query.
pub(super) struct Resolver<'a> {
    pub(super) database: &'a Database,
    pub(super) args: &'a Map<String, Value>,
    /// The claims of the connection's token.
    pub(super) claims: &'a Map<String, Value>,
}

/// An expression that may still wait for the type it is to be read by.
enum Operand {
    /// `None` for an expression that can only be NULL.
    Settled(Expression, Option<Kind>),
    Waiting(Value, Origin),
}

#[derive(Clone, Copy)]
enum Origin {
    Literal,
    Argument,
}

impl Operand {
    /// The type, as far as it is known without context.
    fn kind(&self) -> Option<Kind> {
        match self {
            Operand::Settled(_, kind) => *kind,
            Operand::Waiting(..) => None,
        }
    }

    /// The type a literal has where nothing gives it one.
    fn natural_kind(&self) -> Option<Kind> {
        match self {
            Operand::Settled(_, kind) => *kind,
            Operand::Waiting(Value::Bool(_), _) => Some(Kind::Bool),
            Operand::Waiting(Value::Number(number), _) if number.is_f64() => Some(Kind::Float8),
            Operand::Waiting(Value::Number(_), _) => Some(Kind::Int8),
            Operand::Waiting(Value::String(_), _) => Some(Kind::Text),
            Operand::Waiting(..) => None,
        }
    }

    /// Reads a waiting value by the type, and checks that a settled one compares with it.
    fn settle(self, kind: Option<Kind>) -> Result<Expression, QueryError> {
        let (value, origin) = match self {
            Operand::Waiting(value, origin) => (value, origin),
            Operand::Settled(expression, own) => {
                return match (own, kind) {
                    (Some(own), Some(kind)) if !own.compares_with(kind) => Err(QueryError::type_mismatch(
                        format!("{} where {} is wanted", own.name(), kind.name()),
                    )),
                    _ => Ok(expression),
                };
            }
        };
        let cell = match kind {
            Some(kind) => Cell::read_literal(kind, &value),
            None => value.is_null().then_some(Cell::Null),
        };
        cell.map(Expression::Constant).ok_or_else(|| {
            let message = format!("{value} is not {}", kind.map_or("a scalar", Kind::name));
            match origin {
                Origin::Literal => QueryError::type_mismatch(message),
                Origin::Argument => QueryError::new("bad_args", message),
            }
        })
    }
}

impl Resolver<'_> {
    /// Resolves an expression that has to be a condition.
    pub(super) fn condition(&self, table: usize, condition: &Value) -> Result<Expression, QueryError> {
        self.typed(self.operand(table, condition)?, Kind::Bool)
    }

    fn typed(&self, operand: Operand, kind: Kind) -> Result<Expression, QueryError> {
        match operand.kind() {
            Some(other) if other != kind => {
                Err(QueryError::type_mismatch(format!("{} where {} is wanted", other.name(), kind.name())))
            }
            _ => operand.settle(Some(kind)),
        }
    }

    fn operand(&self, table: usize, expression: &Value) -> Result<Operand, QueryError> {
        let fields = match expression {
            Value::Array(_) => return Err(QueryError::bad_query(format!("{expression} is no expression"))),
            Value::Object(fields) => fields,
            scalar => return Ok(Operand::Waiting(scalar.clone(), Origin::Literal)),
        };
        if let Some(name) = fields.get("col") {
            known(fields, &["col"])?;
            let index = column(self.database, table, name)?;
            return Ok(Operand::Settled(
                Expression::Column(index),
                Some(self.database.tables[table].columns[index].kind),
            ));
        }
        if let Some(name) = fields.get("param") {
            known(fields, &["param"])?;
            let value = self.parameter(text(Some(name), "param")?)?;
            return match value {
                Value::Array(_) => {
                    Err(QueryError::new("bad_args", "a list stands only as the members of in"))
                }
                value => Ok(Operand::Waiting(value, Origin::Argument)),
            };
        }
        if let Some(exists) = fields.get("exists") {
            known(fields, &["exists"])?;
            let parts = object(exists, "exists")?;
            known(parts, &["query", "on"])?;
            let query = parts.get("query").ok_or_else(|| QueryError::bad_query("exists has a query"))?;
            let place = self.place(query)?;
            let on = self.pairs(table, place.table, parts.get("on"))?;
            return Ok(Operand::Settled(Expression::Exists(Box::new(place), on), Some(Kind::Bool)));
        }
        known(fields, &["op", "args"])?;
        let name = text(fields.get("op"), "op")?;
        let args = fields.get("args").ok_or_else(|| QueryError::bad_query("an operation has args"))?;
        self.operation(table, name, array(args, "args")?)
    }

    /// A parameter's value. `auth.` names are claims; one that the token lacks is NULL, which no comparison lets pass.
    fn parameter(&self, name: &str) -> Result<Value, QueryError> {
        if let Some(claim) = name.strip_prefix("auth.") {
            return Ok(self.claims.get(claim).cloned().unwrap_or(Value::Null));
        }
        let value = self.args.get(name).cloned();
        value.ok_or_else(|| QueryError::new("bad_args", format!("the parameter {name} has no value")))
    }

    fn operation(&self, table: usize, name: &str, args: &[Value]) -> Result<Operand, QueryError> {
        let wrong_count =
            || QueryError::bad_query(format!("{name:?} does not take {} arguments", args.len()));
        let (operation, least, most) = match (name, args.len()) {
            ("and", _) => (Operation::And, 0, usize::MAX),
            ("or", _) => (Operation::Or, 0, usize::MAX),
            ("not", _) => (Operation::Not, 1, 1),
            ("=", _) => (Operation::Equal, 2, 2),
            ("<>", _) => (Operation::NotEqual, 2, 2),
            ("<", _) => (Operation::Less, 2, 2),
            ("<=", _) => (Operation::LessOrEqual, 2, 2),
            (">", _) => (Operation::Greater, 2, 2),
            (">=", _) => (Operation::GreaterOrEqual, 2, 2),
            ("in", _) => (Operation::In, 1, usize::MAX),
            ("is null", _) => (Operation::IsNull, 1, 1),
            ("is distinct from", _) => (Operation::IsDistinctFrom, 2, 2),
            ("like", _) => (Operation::Like, 2, 2),
            ("ilike", _) => (Operation::Ilike, 2, 2),
            ("between", _) => (Operation::Between, 3, 3),
            ("+", _) => (Operation::Add, 2, 2),
            ("-", 1) => (Operation::Negate, 1, 1),
            ("-", _) => (Operation::Subtract, 2, 2),
            ("*", _) => (Operation::Multiply, 2, 2),
            ("/", _) => (Operation::Divide, 2, 2),
            ("%", _) => (Operation::Remainder, 2, 2),
            ("lower", _) => (Operation::Lower, 1, 1),
            ("upper", _) => (Operation::Upper, 1, 1),
            ("length", _) => (Operation::Length, 1, 1),
            ("abs", _) => (Operation::Abs, 1, 1),
            ("coalesce", _) => (Operation::Coalesce, 1, usize::MAX),
            ("nullif", _) => (Operation::NullIf, 2, 2),
            _ => return Err(QueryError::bad_query(format!("there is no operation {name:?}"))),
        };
        if !(least..=most).contains(&args.len()) {
            return Err(wrong_count());
        }
        let operands = self.operands(table, operation, args)?;
        let (args, kind) = match operation {
            Operation::And | Operation::Or | Operation::Not => {
                (self.all_typed(operands, Kind::Bool)?, Some(Kind::Bool))
            }
            Operation::Like | Operation::Ilike => (self.all_typed(operands, Kind::Text)?, Some(Kind::Bool)),
            Operation::Lower | Operation::Upper => (self.all_typed(operands, Kind::Text)?, Some(Kind::Text)),
            Operation::Length => (self.all_typed(operands, Kind::Text)?, Some(Kind::Int8)),
            Operation::Coalesce | Operation::NullIf => unify(operands)?,
            Operation::Add
            | Operation::Subtract
            | Operation::Multiply
            | Operation::Divide
            | Operation::Remainder
            | Operation::Negate
            | Operation::Abs => arithmetic(operation, operands)?,
            _ => (unify(operands)?.0, Some(Kind::Bool)),
        };
        Ok(Operand::Settled(Expression::Apply(operation, args), kind))
    }

    /// The arguments; a list-valued parameter as the only member of `in` stands for its items.
    fn operands(
        &self,
        table: usize,
        operation: Operation,
        args: &[Value],
    ) -> Result<Vec<Operand>, QueryError> {
        if let (Operation::In, [value, Value::Object(member)]) = (operation, args)
            && let Some(Value::String(name)) = member.get("param")
            && let Value::Array(items) = self.parameter(name)?
        {
            let mut operands = vec![self.operand(table, value)?];
            operands.extend(items.into_iter().map(|item| Operand::Waiting(item, Origin::Argument)));
            return Ok(operands);
        }
        args.iter().map(|arg| self.operand(table, arg)).collect()
    }

    fn all_typed(&self, operands: Vec<Operand>, kind: Kind) -> Result<Vec<Expression>, QueryError> {
        operands.into_iter().map(|operand| self.typed(operand, kind)).collect()
    }
}

/// Gives operands that are compared with each other one type: that of the first that has one, or else the first
/// literal's own.
fn unify(operands: Vec<Operand>) -> Result<(Vec<Expression>, Option<Kind>), QueryError> {
    let known = operands.iter().find_map(Operand::kind);
    let kind = known.or_else(|| operands.iter().find_map(Operand::natural_kind));
    let settled = operands.into_iter().map(|operand| {
        // Among literals alone a fraction may meet a whole number; they are read by their own types.
        let own = if known.is_none() { operand.natural_kind().or(kind) } else { kind };
        if let (Some(own), Some(kind)) = (own, kind)
            && !own.compares_with(kind)
        {
            return Err(QueryError::type_mismatch(format!("{} meets {}", own.name(), kind.name())));
        }
        operand.settle(own)
    });
    Ok((settled.collect::<Result<_, _>>()?, kind))
}

/// Numbers only; a result is `float8` where one argument is.
fn arithmetic(
    operation: Operation,
    operands: Vec<Operand>,
) -> Result<(Vec<Expression>, Option<Kind>), QueryError> {
    let known: Vec<Option<Kind>> = operands.iter().map(Operand::natural_kind).collect();
    let (args, _) = unify(operands)?;
    let mut result = Kind::Int8;
    for (arg, known) in args.iter().zip(known) {
        let kind = match arg {
            Expression::Constant(cell) => cell.kind(),
            _ => known,
        };
        match kind {
            None | Some(Kind::Int8) => {}
            Some(Kind::Float8) if operation != Operation::Remainder => result = Kind::Float8,
            Some(Kind::Numeric) => {
                return Err(QueryError::bad_query("the oracle does no arithmetic on numeric"));
            }
            Some(other) => {
                return Err(QueryError::type_mismatch(format!("no arithmetic on {}", other.name())));
            }
        }
    }
    Ok((args, Some(result)))
}
