//! Expressions as SQL writes them, over columns that have names.

use crate::{
    algebra::{Aggregate, AggregateFunction, Bound, Frame, FrameUnit, WindowFunction, WindowKind},
    expr::{Condition, Scalar},
};
use std::fmt::Display;
use tidegate_wire::model::{Direction, Nulls, Order, Value};

/// Gives a column's name.
pub(super) type Column<'a> = &'a dyn Fn(usize) -> String;

pub(super) fn value(of: &Value) -> String {
    match of {
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        other => other.to_json().to_string(),
    }
}

pub(super) fn direction(order: Order) -> &'static str {
    match (order.direction, order.nulls) {
        (Direction::Asc, Nulls::Last) => "",
        (Direction::Asc, Nulls::First) => " nulls first",
        (Direction::Desc, Nulls::First) => " desc",
        (Direction::Desc, Nulls::Last) => " desc nulls last",
    }
}

/// `1 key`, `2 keys`.
pub(crate) fn counted(count: impl Display, noun: &str) -> String {
    let count = count.to_string();
    format!("{count} {noun}{}", if count == "1" { "" } else { "s" })
}

pub(super) fn list<T>(items: &[T], separator: &str, show: impl Fn(&T) -> String) -> String {
    items.iter().map(show).collect::<Vec<_>>().join(separator)
}

/// Nothing where nothing is ordered by.
pub(super) fn order_by(order: &[(Scalar, Order)], column: Column<'_>) -> String {
    if order.is_empty() {
        return String::new();
    }
    let terms = list(order, ", ", |(of, order)| format!("{}{}", scalar(of, column), direction(*order)));
    format!(" order by {terms}")
}

pub(super) fn scalar(of: &Scalar, column: Column<'_>) -> String {
    let all = |operands: &[Scalar]| list(operands, ", ", |operand| scalar(operand, column));
    match of {
        Scalar::Constant(of) => value(of),
        Scalar::Column(position) => column(*position),
        Scalar::Arithmetic(op, left, right) => {
            format!("({} {op} {})", scalar(left, column), scalar(right, column))
        }
        Scalar::Convert(ty, of) => format!("{}::{ty}", scalar(of, column)),
        Scalar::Case(branches, otherwise) => {
            let branches = list(branches, "", |(when, then)| {
                format!(" when {} then {}", condition(when, column), scalar(then, column))
            });
            format!("case{branches} else {} end", scalar(otherwise, column))
        }
        Scalar::Coalesce(operands) => format!("coalesce({})", all(operands)),
        Scalar::Call(function, arguments) => {
            format!("{}({})", words(&format!("{function:?}")), all(arguments))
        }
        Scalar::Condition(of) => condition(of, column),
    }
}

/// `DateTrunc` as `date_trunc`.
fn words(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

pub(super) fn condition(of: &Condition, column: Column<'_>) -> String {
    let show = |of: &Scalar| scalar(of, column);
    match of {
        Condition::Constant(Some(truth)) => truth.to_string(),
        Condition::Constant(None) => "null".to_owned(),
        Condition::And(operands) => list(operands, " and ", |operand| condition(operand, column)),
        Condition::Or(operands) => {
            format!("({})", list(operands, " or ", |operand| condition(operand, column)))
        }
        Condition::Not(inner) => match &**inner {
            Condition::IsDistinct(left, right) => {
                format!("{} is not distinct from {}", show(left), show(right))
            }
            inner => format!("not ({})", condition(inner, column)),
        },
        Condition::Is(inner, truth) => {
            let truth = truth.map_or_else(|| "unknown".to_owned(), |truth| truth.to_string());
            format!("({}) is {truth}", condition(inner, column))
        }
        Condition::Compare(op, left, right) => {
            format!("{} {op} {}", show(left), show(right))
        }
        Condition::In(of, members) => {
            format!("{} in ({})", show(of), list(members, ", ", show))
        }
        Condition::IsNull(of) => format!("{} is null", show(of)),
        Condition::IsDistinct(left, right) => format!("{} is distinct from {}", show(left), show(right)),
        Condition::Matches(of, pattern) => format!("{} {pattern}", show(of)),
        Condition::MatchesComputed(of, pattern, folded) => {
            format!("{} {} {}", show(of), if *folded { "ilike" } else { "like" }, show(pattern))
        }
        Condition::Regex(of, pattern) => format!("{} {pattern}", show(of)),
        Condition::RegexComputed(of, pattern, folded) => {
            format!("{} {} {}", show(of), if *folded { "~*" } else { "~" }, show(pattern))
        }
        Condition::Truth(of) => show(of),
        Condition::Exists(number) => format!("exists {}", number + 1),
    }
}

pub(super) fn aggregate(of: &Aggregate, column: Column<'_>) -> String {
    let name = match of.function {
        AggregateFunction::Average => "avg".to_owned(),
        AggregateFunction::StddevSample => "stddev".to_owned(),
        AggregateFunction::VarianceSample => "variance".to_owned(),
        AggregateFunction::VariancePop => "var_pop".to_owned(),
        other => words(&format!("{other:?}")),
    };
    let arguments = list(&of.arguments, ", ", |argument| scalar(&argument.scalar, column));
    let arguments = if of.arguments.is_empty() { "*".to_owned() } else { arguments };
    let distinct = if of.distinct { "distinct " } else { "" };
    let ordered = order_by(&of.order, column);
    let filter = of
        .filter
        .as_ref()
        .map_or_else(String::new, |filter| format!(" filter (where {})", condition(filter, column)));
    format!("{name}({distinct}{arguments}{ordered}){filter}")
}

pub(super) fn window(of: &WindowFunction, column: Column<'_>) -> String {
    match &of.kind {
        WindowKind::RowNumber => "row_number()".to_owned(),
        WindowKind::Rank => "rank()".to_owned(),
        WindowKind::DenseRank => "dense_rank()".to_owned(),
        WindowKind::Lag { value: of, offset, default } => {
            let (name, offset) = if *offset < 0 { ("lead", -offset) } else { ("lag", *offset) };
            format!("{name}({}, {offset}, {})", scalar(of, column), value(default))
        }
        WindowKind::PercentRank => "percent_rank()".to_owned(),
        WindowKind::CumeDist => "cume_dist()".to_owned(),
        WindowKind::Ntile(buckets) => format!("ntile({buckets})"),
        WindowKind::FirstValue(of, over) => {
            format!("first_value({}) {}", scalar(of, column), frame(over, column))
        }
        WindowKind::LastValue(of, over) => {
            format!("last_value({}) {}", scalar(of, column), frame(over, column))
        }
        WindowKind::NthValue(of, number, over) => {
            format!("nth_value({}, {number}) {}", scalar(of, column), frame(over, column))
        }
        WindowKind::Aggregate(of, over) => format!("{} {}", aggregate(of, column), frame(over, column)),
    }
}

fn frame(of: &Frame, column: Column<'_>) -> String {
    let unit = match of.unit {
        FrameUnit::Rows => "rows",
        FrameUnit::Range => "range",
        FrameUnit::Groups => "groups",
    };
    let bound = |bound: &Bound, side| match bound {
        Bound::Limit(limit) => scalar(&limit.value, column),
        Bound::Unbounded => format!("unbounded {side}"),
        Bound::Preceding(count) => format!("{count} preceding"),
        Bound::Current => "current row".to_owned(),
        Bound::Following(count) => format!("{count} following"),
    };
    format!("{unit} between {} and {}", bound(&of.start, "preceding"), bound(&of.end, "following"))
}
