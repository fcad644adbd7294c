//! Expressions: from the parser's tree to typed scalars over the input's columns.

use super::{
    Binder,
    parameters::{Meeting, Term, together},
    place::{Place, Result, start},
    rewrite::Position,
    scope::{Name, Scope, folded, simple},
    select::{Block, Clause, Within, operands},
    type_name::Target,
};
use crate::expr::{
    Condition, Scalar,
    typing::{self, Operand, Type, Typed},
};
use sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, CeilFloorKind, DateTimeField, Expr, Ident, Interval, TrimWhereField,
    TypedString, UnaryOperator, Value as Literal, ValueWithSpan,
};
use std::rc::Rc;
use tidegate_wire::model::{ColumnType, Value};

pub(super) const BOOL: Type = Type::Column(ColumnType::Bool);

impl Binder<'_> {
    /// A boolean expression.
    pub(super) fn condition<'q>(&mut self, expr: &'q Expr, block: &mut Block<'q>) -> Result<Condition> {
        let place = start(expr);
        let operand = self.term(expr, block)?.beside(Some(BOOL), Meeting::Same)?;
        let typed = operand.settle_as(BOOL).map_err(|error| place.typing(error))?;
        typed.condition().map_err(|error| place.typing(error))
    }

    /// An expression whose parameters take the type their values have.
    pub(super) fn operand<'q>(&mut self, expr: &'q Expr, block: &mut Block<'q>) -> Result<Operand> {
        self.term(expr, block)?.natural()
    }

    /// A constant.
    pub(super) fn constant(&mut self, expr: &Expr, what: &str) -> Result<Typed> {
        let operand = match self.constant_operand(expr)? {
            Operand::Unknown(Some(text)) => match typing::number(&text) {
                Some(number) => number,
                None => return start(expr).mismatch(format_args!("{what} is a whole number")),
            },
            operand => operand,
        };
        Ok(operand.settle())
    }

    /// An expression that reads nothing of any row, before it meets a type.
    pub(super) fn constant_operand(&mut self, expr: &Expr) -> Result<Operand> {
        let mut block = Block::new(Rc::new(Scope::default()), Clause::Constant);
        let frames = std::mem::take(&mut self.frames);
        let operand = self.term(expr, &mut block)?.natural()?;
        self.frames = frames;
        Ok(operand)
    }

    /// An expression.
    pub(super) fn term<'q>(&mut self, expr: &'q Expr, block: &mut Block<'q>) -> Result<Term> {
        self.deeper(|| start(expr), |binder| binder.term_here(expr, block))
    }

    fn term_here<'q>(&mut self, expr: &'q Expr, block: &mut Block<'q>) -> Result<Term> {
        let place = || start(expr);
        let typed = match expr {
            Expr::Nested(inner) => return self.term(inner, block),
            Expr::Value(value) => return self.literal(value),
            Expr::Identifier(ident) => self.column(None, ident, block)?,
            Expr::CompoundIdentifier(idents) => match idents.as_slice() {
                [table, column] => self.column(Some(folded(table)), column, block)?,
                [schema, table, column] if folded(schema) == "public" => {
                    self.column(Some(folded(table)), column, block)?
                }
                _ => return place().bad("a column's name has at most a schema and a table before it"),
            },
            Expr::BinaryOp { left, op, right } => match op {
                BinaryOperator::And | BinaryOperator::Or => self.chain(expr, op, block)?,
                op => self.binary(left, op, right, block)?,
            },
            Expr::UnaryOp { op, expr: inner } => self.unary(*op, inner, block)?,
            Expr::Cast { kind, expr: inner, data_type, format } => {
                if !matches!(kind, CastKind::Cast | CastKind::DoubleColon) {
                    return place().unsupported("try_cast");
                }
                if format.is_some() {
                    return place().unsupported("cast with a format");
                }
                let target = self.type_name(data_type, place())?;
                let term = self.term(inner, block)?;
                let operand = match target {
                    Target::Type(ty) => term.beside(Some(ty), Meeting::Own)?,
                    Target::Numeric(..) => {
                        term.beside(Some(Type::Column(ColumnType::Numeric)), Meeting::Own)?
                    }
                };
                target.cast(operand).map_err(|error| place().typing(error))?
            }
            Expr::TypedString(TypedString { data_type, value, uses_odbc_syntax: _ }) => {
                let place = Place::from(value.span);
                let target = self.type_name(data_type, place)?;
                let operand = self.literal(value)?.natural()?;
                target.cast(operand).map_err(|error| place.typing(error))?
            }
            Expr::Interval(interval) => self.interval(interval)?,
            Expr::Case { case_token: _, end_token: _, operand, conditions, else_result } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref(), block, place())?
            }
            Expr::Extract { field, syntax: _, expr: inner } => {
                let from = self.operand(inner, block)?;
                let field = field.to_string().trim_matches('\'').to_ascii_lowercase();
                typing::extract(&field, from).map_err(|error| place().typing(error))?
            }
            Expr::Ceil { expr: inner, field } => self.rounding("ceil", inner, field, block)?,
            Expr::Floor { expr: inner, field } => self.rounding("floor", inner, field, block)?,
            Expr::Position { expr: part, r#in } => self.call("strpos", &[r#in, part], block, place())?,
            Expr::Substring { expr: text, substring_from, substring_for, special: _, shorthand: _ } => {
                let mut arguments = vec![self.operand(text, block)?];
                match substring_from {
                    Some(from) => arguments.push(self.operand(from, block)?),
                    None => arguments.extend(typing::number("1")),
                }
                if let Some(count) = substring_for {
                    arguments.push(self.operand(count, block)?);
                }
                typing::call("substring", arguments).map_err(|error| place().typing(error))?
            }
            Expr::Trim { expr: text, trim_where, trim_what, trim_characters } => {
                let name = match trim_where {
                    None | Some(TrimWhereField::Both) => "btrim",
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                };
                let mut arguments: Vec<&'q Expr> = vec![text];
                arguments.extend(trim_what.as_deref());
                arguments.extend(trim_characters.iter().flatten());
                self.call(name, &arguments, block, place())?
            }
            Expr::Function(function) => self.function(function, block)?,
            Expr::IsNull(inner) => self.one("is null", inner, block)?,
            Expr::IsNotNull(inner) => self.one("is not null", inner, block)?,
            Expr::IsTrue(_)
            | Expr::IsNotTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsNotFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotUnknown(_)
            | Expr::IsDistinctFrom(_, _)
            | Expr::IsNotDistinctFrom(_, _)
            | Expr::Between { .. }
            | Expr::Like { .. }
            | Expr::ILike { .. } => self.predicate(expr, block)?,
            Expr::In { .. } | Expr::AnyOp { .. } | Expr::AllOp { .. } => self.membership(expr, block)?,
            Expr::Exists { subquery, negated } => self.exists(subquery, *negated, block)?,
            Expr::Subquery(query) => self.scalar_subquery(query, block)?,
            Expr::Tuple(_) => return place().unsupported("a row that is not compared"),
            Expr::Array(_) => return place().unsupported("an array outside any, some and all"),
            Expr::Collate { .. } => return place().unsupported("collate"),
            Expr::AtTimeZone { .. } => return place().unsupported("at time zone"),
            Expr::SimilarTo { .. } => return place().unsupported("similar to"),
            Expr::Overlay { .. } => return place().unsupported("overlay"),
            Expr::IsJson { .. } => return place().unsupported("is json"),
            Expr::IsNormalized { .. } => return place().unsupported("is normalized"),
            Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_) => {
                return place().bad("grouping sets stand in group by only");
            }
            Expr::Wildcard(_) | Expr::QualifiedWildcard(..) => {
                return place().bad("* stands in the select list and count(*) only");
            }
            Expr::CompoundFieldAccess { .. } | Expr::JsonAccess { .. } => {
                return place().unsupported("a subscript or field of an expression");
            }
            Expr::RLike { .. }
            | Expr::Convert { .. }
            | Expr::Prefixed { .. }
            | Expr::Struct { .. }
            | Expr::Named { .. }
            | Expr::Dictionary(_)
            | Expr::Map(_)
            | Expr::MatchAgainst { .. }
            | Expr::OuterJoin(_)
            | Expr::Prior(_)
            | Expr::Lambda(_)
            | Expr::MemberOf(_) => return place().unsupported("this kind of expression"),
        };
        Ok(Term::Operand(Operand::Typed(typed)))
    }

    fn literal(&mut self, value: &ValueWithSpan) -> Result<Term> {
        let ValueWithSpan { value, span } = value;
        let place = Place::from(*span);
        let text = |text: &str| {
            if text.contains('\0') {
                return place.bad("a text has a NUL character");
            }
            Ok(Term::Operand(Operand::Unknown(Some(text.to_owned()))))
        };
        match value {
            Literal::Number(digits, false) => match typing::number(digits) {
                Some(number) => Ok(Term::Operand(number)),
                None => place.bad(format_args!("{digits} is not a number")),
            },
            Literal::SingleQuotedString(string)
            | Literal::EscapedStringLiteral(string)
            | Literal::UnicodeStringLiteral(string) => text(string),
            Literal::DollarQuotedString(string) => text(&string.value),
            Literal::Boolean(truth) => {
                Ok(Term::Operand(Operand::typed(Scalar::Constant(Value::Bool(*truth)), BOOL)))
            }
            Literal::Null => Ok(Term::Operand(Operand::Unknown(None))),
            Literal::Placeholder(name) => self.placeholder(name, place),
            _ => place.unsupported("this kind of literal"),
        }
    }

    fn column(&mut self, table: Option<String>, column: &Ident, block: &mut Block<'_>) -> Result<Typed> {
        let place = Place::from(column.span);
        let name = folded(column);
        let scope = Rc::clone(&block.scope);
        let typed = self.resolve(&scope, Name { table: table.as_deref(), column: &name }, place)?;
        if block.within != Within::Aggregate
            && let Scalar::Column(position) = typed.scalar
            && matches!(Position::of(position), Position::Input(_))
        {
            block.reads.push((position, place));
        }
        Ok(typed)
    }

    /// A chain of `and` or `or`.
    fn chain<'q>(&mut self, expr: &'q Expr, op: &BinaryOperator, block: &mut Block<'q>) -> Result<Typed> {
        let mut conditions = Vec::new();
        for operand in operands(expr, op) {
            conditions.push(self.condition(operand, block)?);
        }
        let all =
            if *op == BinaryOperator::And { Condition::And(conditions) } else { Condition::Or(conditions) };
        Ok(truth(all))
    }

    fn binary<'q>(
        &mut self,
        left: &'q Expr,
        op: &BinaryOperator,
        right: &'q Expr,
        block: &mut Block<'q>,
    ) -> Result<Typed> {
        let place = start(left);
        let name = op.to_string().to_ascii_lowercase();
        let compares = matches!(name.as_str(), "=" | "<>" | "!=" | "<" | "<=" | ">" | ">=");
        if let (Some(left), Some(right)) = (row(left), row(right)) {
            if !compares {
                return place.unsupported(format_args!("operator {name} between rows"));
            }
            let left = self.row_operands(left, block)?;
            let right = self.row_operands(right, block)?;
            return self.compare_rows(&name, left, right, place);
        }
        let terms = vec![self.term(left, block)?, self.term(right, block)?];
        let meeting = if compares { Meeting::Same } else { Meeting::Own };
        let [left, right] = two(together(terms, meeting)?);
        typing::binary(&name, left, right).map_err(|error| place.typing(error))
    }

    fn unary<'q>(&mut self, op: UnaryOperator, expr: &'q Expr, block: &mut Block<'q>) -> Result<Typed> {
        let place = start(expr);
        let name = match op {
            UnaryOperator::Plus => "+",
            UnaryOperator::Minus => "-",
            UnaryOperator::Not => {
                return Ok(truth(Condition::Not(Box::new(self.condition(expr, block)?))));
            }
            other => return place.unsupported(format_args!("operator {other}")),
        };
        // To PostgreSQL a minus sign before a number is a part of it, so that the least int8 is one.
        if name == "-"
            && let Some(number) = negated(expr).and_then(|digits| typing::number(&digits))
        {
            return Ok(number.settle());
        }
        // The parser lets a power bind tighter than a sign, PostgreSQL the other way round.
        if let Expr::BinaryOp {
            left,
            op: power @ (BinaryOperator::PGExp | BinaryOperator::BitwiseXor),
            right,
        } = expr
        {
            let base = self.operand(left, block)?;
            let base = typing::unary(name, base).map_err(|error| place.typing(error))?;
            let exponent = self.operand(right, block)?;
            let power = power.to_string();
            return typing::binary(&power, Operand::Typed(base), exponent)
                .map_err(|error| place.typing(error));
        }
        self.one(name, expr, block)
    }

    /// A unary operator on an expression.
    fn one<'q>(&mut self, op: &str, expr: &'q Expr, block: &mut Block<'q>) -> Result<Typed> {
        let operand = self.operand(expr, block)?;
        typing::unary(op, operand).map_err(|error| start(expr).typing(error))
    }

    fn interval(&mut self, interval: &Interval) -> Result<Typed> {
        let Interval { value, leading_field, leading_precision, last_field, fractional_seconds_precision } =
            interval;
        let place = start(value);
        if leading_precision.is_some() || last_field.is_some() || fractional_seconds_precision.is_some() {
            return place.unsupported("an interval with a precision or two fields");
        }
        let Expr::Value(literal) = value.as_ref() else {
            return place.unsupported("an interval that is not a literal");
        };
        let Operand::Unknown(Some(text)) = self.literal(literal)?.natural()? else {
            return place.unsupported("an interval that is not a quoted literal");
        };
        let text = match leading_field {
            None => text,
            Some(field) if text.trim().parse::<i64>().is_ok() => format!("{} {field}", text.trim()),
            Some(_) => return place.unsupported("an interval with a field that is not a whole number of it"),
        };
        typing::cast(Operand::Unknown(Some(text)), Type::Interval).map_err(|error| place.typing(error))
    }

    fn case<'q>(
        &mut self,
        operand: Option<&'q Expr>,
        conditions: &'q [CaseWhen],
        otherwise: Option<&'q Expr>,
        block: &mut Block<'q>,
        place: Place,
    ) -> Result<Typed> {
        let (mut whens, mut results) = (Vec::new(), Vec::new());
        if let Some(operand) = operand {
            whens.push(self.term(operand, block)?);
        }
        for CaseWhen { condition, result } in conditions {
            whens.push(self.term(condition, block)?);
            results.push(self.term(result, block)?);
        }
        if let Some(otherwise) = otherwise {
            results.push(self.term(otherwise, block)?);
        }
        let mut whens = if operand.is_some() {
            together(whens, Meeting::Same)?
        } else {
            whens
                .into_iter()
                .map(|when| when.beside(Some(BOOL), Meeting::Same))
                .collect::<Result<Vec<_>>>()?
        }
        .into_iter();
        let mut results = together(results, Meeting::Own)?;
        let operand = if operand.is_some() { whens.next() } else { None };
        let otherwise = if otherwise.is_some() { results.pop() } else { None };
        if let Some(operand) = &operand {
            self.charge_copies(operand, conditions.len(), place)?;
        }
        let branches = whens.zip(results).collect();
        typing::case(operand, branches, otherwise).map_err(|error| place.typing(error))
    }

    fn rounding<'q>(
        &mut self,
        name: &str,
        expr: &'q Expr,
        field: &CeilFloorKind,
        block: &mut Block<'q>,
    ) -> Result<Typed> {
        match field {
            CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) => {
                self.call(name, &[expr], block, start(expr))
            }
            CeilFloorKind::DateTimeField(_) | CeilFloorKind::Scale(_) => {
                start(expr).unsupported(format_args!("{name} with a second argument"))
            }
        }
    }

    /// A scalar function's call.
    pub(super) fn call<'q>(
        &mut self,
        name: &str,
        arguments: &[&'q Expr],
        block: &mut Block<'q>,
        place: Place,
    ) -> Result<Typed> {
        let mut terms = Vec::with_capacity(arguments.len());
        for argument in arguments {
            terms.push(self.term(argument, block)?);
        }
        let operands = match name {
            "coalesce" | "nullif" | "greatest" | "least" => together(terms, Meeting::Own)?,
            _ => terms.into_iter().map(Term::natural).collect::<Result<_>>()?,
        };
        typing::call(name, operands).map_err(|error| place.typing(error))
    }

    /// The members of a row.
    pub(super) fn row_operands<'q>(
        &mut self,
        row: Vec<&'q Expr>,
        block: &mut Block<'q>,
    ) -> Result<Vec<Term>> {
        row.into_iter().map(|member| self.term(member, block)).collect()
    }
}

/// The members of a row constructor.
pub(super) fn row(expr: &Expr) -> Option<Vec<&Expr>> {
    use sqlparser::ast::{FunctionArg, FunctionArgExpr, FunctionArguments};
    match expr {
        Expr::Tuple(members) => Some(members.iter().collect()),
        Expr::Nested(inner) => row(inner),
        Expr::Function(function) if simple(&function.name).as_deref() == Some("row") => {
            match &function.args {
                FunctionArguments::List(list) => list
                    .args
                    .iter()
                    .map(|argument| match argument {
                        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
                        _ => None,
                    })
                    .collect(),
                _ => None,
            }
        }
        _ => None,
    }
}

/// A condition as a boolean.
pub(super) fn truth(condition: Condition) -> Typed {
    Typed { scalar: Scalar::Condition(Box::new(condition)), ty: BOOL }
}

/// The two operands that two terms became.
pub(super) fn two(operands: Vec<Operand>) -> [Operand; 2] {
    let mut operands = operands.into_iter();
    let mut next = || operands.next().unwrap_or(Operand::Unknown(None));
    [next(), next()]
}

/// A literal number with a minus sign before it, or without the one that it has.
fn negated(mut expr: &Expr) -> Option<String> {
    let mut sign = "-";
    loop {
        match expr {
            Expr::Nested(inner) => expr = inner,
            Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } => {
                sign = if sign.is_empty() { "-" } else { "" };
                expr = inner;
            }
            Expr::Value(ValueWithSpan { value: Literal::Number(digits, false), .. }) => {
                return Some(format!("{sign}{digits}"));
            }
            _ => return None,
        }
    }
}
