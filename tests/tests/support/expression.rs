//! Expressions that can be put to PostgreSQL as SQL text and to the engine as operands.

use tidegate_replica::expr::{
    EvalError, ExistsProbe, Scalar,
    typing::{self, Operand, Type, Typed, TypingError},
};
use tidegate_wire::model::{Row, Value, ValueRef};

/// An expression.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// A value of a type, as a cast literal in SQL and a column of the row in the engine; `None` is NULL.
    Value(&'static str, Option<String>),
    /// A quoted literal without a type; `None` is NULL.
    Literal(Option<String>),
    /// A number.
    Number(String),
    /// `left op right`
    Binary(&'static str, Box<Node>, Box<Node>),
    /// `op operand` or `operand is …`
    Unary(&'static str, Box<Node>),
    /// A function.
    Call(&'static str, Vec<Node>),
    /// `cast(operand as type)`
    Cast(Box<Node>, &'static str),
    /// `cast(operand as numeric(precision, scale))`
    CastNumeric(Box<Node>, u32, i32),
    /// `extract(field from operand)`
    Extract(&'static str, Box<Node>),
    /// `like` (`ilike` when true) with an escape, perhaps.
    Like(Box<Node>, Box<Node>, Option<Box<Node>>, bool),
    /// `value between low and high`
    Between(Box<Node>, Box<Node>, Box<Node>),
    /// `value in (…)`
    In(Box<Node>, Vec<Node>),
    /// `case … end`
    Case(Option<Box<Node>>, Vec<(Node, Node)>, Option<Box<Node>>),
}

/// What became of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// Its type and its text; `None` is NULL.
    Value(String, Option<String>),
    /// Why it has none.
    Error(String),
}

fn quoted(text: &str) -> String {
    let escape = if text.contains('\\') { "E" } else { "" };
    format!("{escape}'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

fn list(nodes: &[Node], cells: &mut Vec<String>) -> String {
    nodes.iter().map(|node| node.expression(cells)).collect::<Vec<_>>().join(", ")
}

impl Node {
    /// A query for the expression's value. Its values come from a row, so that PostgreSQL computes nothing in advance.
    pub(crate) fn sql(&self) -> String {
        let mut cells = Vec::new();
        let expression = self.expression(&mut cells);
        let row: Vec<String> =
            cells.iter().enumerate().map(|(column, value)| format!("{value} as c{column}")).collect();
        format!("select {expression} as x from (select {} offset 0) as r", row.join(", "))
    }

    fn expression(&self, cells: &mut Vec<String>) -> String {
        match self {
            Self::Value(ty, text) => {
                let text = text.as_ref().map_or("null".to_owned(), |text| quoted(text));
                cells.push(format!("{text}::{ty}"));
                format!("c{}", cells.len() - 1)
            }
            Self::Literal(None) => "null".to_owned(),
            Self::Literal(Some(text)) => quoted(text),
            Self::Number(text) => text.clone(),
            Self::Binary(op, left, right) => {
                let left = left.expression(cells);
                format!("({left} {op} {})", right.expression(cells))
            }
            Self::Unary(op, operand) if op.starts_with("is ") => {
                format!("({} {op})", operand.expression(cells))
            }
            Self::Unary(op, operand) => format!("({op} {})", operand.expression(cells)),
            Self::Call(name, arguments) if matches!(*name, "left" | "right" | "position") => {
                format!("pg_catalog.\"{name}\"({})", list(arguments, cells))
            }
            Self::Call(name, arguments) => format!("{name}({})", list(arguments, cells)),
            Self::Cast(operand, ty) => format!("cast({} as {ty})", operand.expression(cells)),
            Self::CastNumeric(operand, precision, scale) => {
                format!("cast({} as numeric({precision},{scale}))", operand.expression(cells))
            }
            Self::Extract(field, operand) => format!("extract({field} from {})", operand.expression(cells)),
            Self::Like(value, pattern, escape, fold_case) => {
                let op = if *fold_case { "ilike" } else { "like" };
                let (value, pattern) = (value.expression(cells), pattern.expression(cells));
                let escape = escape.as_ref().map(|escape| format!(" escape {}", escape.expression(cells)));
                format!("({value} {op} {pattern}{})", escape.unwrap_or_default())
            }
            Self::Between(value, low, high) => {
                let (value, low) = (value.expression(cells), low.expression(cells));
                format!("({value} between {low} and {})", high.expression(cells))
            }
            Self::In(value, members) => {
                let value = value.expression(cells);
                format!("({value} in ({}))", list(members, cells))
            }
            Self::Case(operand, branches, otherwise) => {
                let mut out = String::from("(case ");
                out.extend(operand.iter().map(|operand| operand.expression(cells) + " "));
                for (when, then) in branches {
                    let when = when.expression(cells);
                    out.push_str(&format!("when {when} then {} ", then.expression(cells)));
                }
                out.extend(
                    otherwise.iter().map(|otherwise| format!("else {} ", otherwise.expression(cells))),
                );
                out + "end)"
            }
        }
    }

    /// The expression as the engine types it; what were columns go to `row`, or stay constants without one.
    fn operand(&self, row: &mut Option<Vec<Value>>) -> Result<Operand, TypingError> {
        let typed = match self {
            Self::Value(name, text) => {
                let ty = typing::type_by_name(name).expect("a type");
                let typed = typing::cast(Operand::Unknown(text.clone()), ty)?;
                return Ok(match (row, typed.scalar) {
                    (Some(cells), Scalar::Constant(value)) => {
                        cells.push(value);
                        Operand::typed(Scalar::Column(cells.len() - 1), ty)
                    }
                    (_, scalar) => Operand::typed(scalar, ty),
                });
            }
            Self::Literal(text) => return Ok(Operand::Unknown(text.clone())),
            Self::Number(text) => return Ok(typing::number(text).expect("a number")),
            Self::Binary(op, left, right) => typing::binary(op, left.operand(row)?, right.operand(row)?),
            Self::Unary(op, operand) => typing::unary(op, operand.operand(row)?),
            Self::Call(name, arguments) => typing::call(name, operands(arguments, row)?),
            Self::Cast(operand, ty) => {
                typing::cast(operand.operand(row)?, typing::type_by_name(ty).expect("a type"))
            }
            Self::CastNumeric(operand, precision, scale) => {
                typing::cast_numeric(operand.operand(row)?, *precision, *scale)
            }
            Self::Extract(field, operand) => typing::extract(field, operand.operand(row)?),
            Self::Like(value, pattern, escape, fold_case) => {
                let (value, pattern) = (value.operand(row)?, pattern.operand(row)?);
                let escape = escape.as_ref().map(|escape| escape.operand(row)).transpose()?;
                typing::like(value, pattern, escape, *fold_case)
            }
            Self::Between(value, low, high) => {
                typing::between(value.operand(row)?, low.operand(row)?, high.operand(row)?)
            }
            Self::In(value, members) => typing::in_list(value.operand(row)?, operands(members, row)?),
            Self::Case(operand, branches, otherwise) => {
                let operand = operand.as_ref().map(|operand| operand.operand(row)).transpose()?;
                let mut typed = Vec::new();
                for (when, then) in branches {
                    typed.push((when.operand(row)?, then.operand(row)?));
                }
                let otherwise = otherwise.as_ref().map(|otherwise| otherwise.operand(row)).transpose()?;
                typing::case(operand, typed, otherwise)
            }
        };
        typed.map(Operand::Typed)
    }

    /// What the engine makes of the expression: with its values in a row, or as constants.
    pub(crate) fn evaluate(&self, in_row: bool) -> Outcome {
        let mut cells = in_row.then(Vec::new);
        let typed = match self.operand(&mut cells) {
            Ok(operand) => operand.settle(),
            Err(error) => return Outcome::Error(format!("{error:?}")),
        };
        let name = type_name(typed.ty);
        let cells = cells.unwrap_or_default();
        let read = |typed: Typed| -> Result<Value, EvalError> {
            // Positions move, so that moving them is tested too.
            let shift = cells.len();
            let scalar = typed.scalar.map_columns(&mut |column| Scalar::Column(column + shift));
            let row: Vec<Value> = cells.iter().map(|_| Value::Null).chain(cells.iter().cloned()).collect();
            Ok(scalar.value(&Row::from_values(&row), &NoExists)?.as_ref().to_value())
        };
        let text = typing::cast(Operand::Typed(typed), typing::type_by_name("text").expect("text"))
            .map_err(|error| error.to_string())
            .and_then(|text| read(text).map_err(|error| error.to_string()));
        match text {
            Ok(Value::Null) => Outcome::Value(name, None),
            Ok(value) => match value.as_ref() {
                ValueRef::Text(text) => Outcome::Value(name, Some(text.to_owned())),
                other => Outcome::Error(format!("not a text: {other:?}")),
            },
            Err(error) => Outcome::Error(error),
        }
    }
}

fn operands(nodes: &[Node], row: &mut Option<Vec<Value>>) -> Result<Vec<Operand>, TypingError> {
    nodes.iter().map(|node| node.operand(row)).collect()
}

fn type_name(ty: Type) -> String {
    match ty.postgres_name() {
        "json" => "jsonb".to_owned(),
        name => name.to_owned(),
    }
}

struct NoExists;

impl ExistsProbe for NoExists {
    fn exists(&self, _: usize, _: &Row) -> Result<bool, EvalError> {
        Ok(false)
    }
}
