//! Algebra as one line of text, so that a test can say what it expects.

use crate::{
    algebra::{
        Aggregate, Bound, Column, Frame, JoinKind, Rel, Select, SetKind, Subquery, Test, WindowFunction,
        WindowKind, domain_column,
    },
    expr::{Condition, Scalar},
};
use tidegate_wire::model::{Direction, Nulls, Order, Value};

/// A whole select.
pub(super) fn select(select: &Select) -> String {
    let mut out = format!("{} -> {}", select.names.join(", "), rel(&select.rel));
    if !select.order.is_empty() {
        let order: Vec<String> =
            select.order.iter().map(|(column, order)| format!("{column}{}", direction(*order))).collect();
        out.push_str(&format!(" order {}", order.join(", ")));
    }
    if !select.slots.is_empty() {
        let slots: Vec<String> =
            select.slots.iter().map(|(ty, slot)| format!("{ty} {}", value(slot))).collect();
        out.push_str(&format!(" slots {}", slots.join(", ")));
    }
    out
}

fn list<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
    items.iter().map(show).collect::<Vec<_>>().join(", ")
}

pub(super) fn rel(of: &Rel) -> String {
    match of {
        Rel::Table { table, types: _, key: _ } => format!("table{}", table.0),
        Rel::Values { types: _, rows } => {
            format!("values({})", list(rows, |row| format!("({})", list(row, scalar))))
        }
        Rel::Filter { input, condition: c } => format!("filter({}, {})", rel(input), condition(c)),
        Rel::Project { input, columns: c } => format!("project({}, [{}])", rel(input), columns(c)),
        Rel::Join { kind, left, right, condition: c } => {
            format!("{}({}, {}, {})", join(*kind), rel(left), rel(right), condition(c))
        }
        Rel::Mark { input, subquery: s, test } => {
            let test = match test {
                Test::Exists => "exists".to_owned(),
                Test::Any(c) => format!("any {}", condition(c)),
            };
            format!("mark({}, {}, {test})", rel(input), subquery(s))
        }
        Rel::Lookup { input, subquery: s } => format!("lookup({}, {})", rel(input), subquery(s)),
        Rel::Lateral { kind, input, subquery: s, condition: c } => {
            format!("lateral {}({}, {}, {})", join(*kind), rel(input), subquery(s), condition(c))
        }
        Rel::Aggregate { input, keys, aggregates } => {
            format!("aggregate({}, [{}], [{}])", rel(input), columns(keys), list(aggregates, aggregate))
        }
        Rel::Distinct { input } => format!("distinct({})", rel(input)),
        Rel::Concat { inputs } => format!("concat({})", list(inputs, |input| rel(input))),
        Rel::SetOperation { kind, all, left, right } => {
            let kind = if *kind == SetKind::Except { "except" } else { "intersect" };
            format!("{kind}{}({}, {})", if *all { " all" } else { "" }, rel(left), rel(right))
        }
        Rel::Top { input, partition, order: o, offset, limit } => {
            let limit = limit.map_or_else(|| "all".to_owned(), |limit| limit.to_string());
            format!("top({}, [{}], [{}], {offset}, {limit})", rel(input), list(partition, scalar), order(o))
        }
        Rel::Window { input, partition, order: o, functions } => {
            let functions = list(functions, window);
            format!("window({}, [{}], [{}], [{functions}])", rel(input), list(partition, scalar), order(o))
        }
        Rel::Recursive { base, step, working, all } => {
            format!("recursive{}{working}({}, {})", if *all { " all " } else { " " }, rel(base), rel(step))
        }
        Rel::Working { working, types: _ } => format!("working{working}"),
    }
}

fn join(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "join",
        JoinKind::Left => "left join",
        JoinKind::Full => "full join",
    }
}

fn subquery(of: &Subquery) -> String {
    format!("{{{} | {}}}", columns(&of.domain), rel(&of.rel))
}

fn columns(columns: &[Column]) -> String {
    list(columns, |column| format!("{}:{}", scalar(&column.scalar), column.ty))
}

fn direction(order: Order) -> String {
    let direction = if order.direction == Direction::Asc { "" } else { " desc" };
    if order == Order::with_default_nulls(order.direction) {
        return direction.to_owned();
    }
    format!("{direction} nulls {}", if order.nulls == Nulls::First { "first" } else { "last" })
}

fn order(order: &[(Scalar, Order)]) -> String {
    list(order, |(of, order)| format!("{}{}", scalar(of), direction(*order)))
}

fn aggregate(of: &Aggregate) -> String {
    let mut out = format!(
        "{:?}({}{}):{}",
        of.function,
        if of.distinct { "distinct " } else { "" },
        list(&of.arguments, |column| scalar(&column.scalar)),
        of.ty
    );
    if !of.order.is_empty() {
        out.push_str(&format!(" order {}", order(&of.order)));
    }
    if let Some(filter) = &of.filter {
        out.push_str(&format!(" filter {}", condition(filter)));
    }
    out
}

fn window(of: &WindowFunction) -> String {
    let kind = match &of.kind {
        WindowKind::RowNumber => "row_number".to_owned(),
        WindowKind::Rank => "rank".to_owned(),
        WindowKind::DenseRank => "dense_rank".to_owned(),
        WindowKind::Lag { value: of, offset, default } => {
            format!("lag({}, {offset}, {})", scalar(of), value(default))
        }
        WindowKind::PercentRank => "percent_rank".to_owned(),
        WindowKind::CumeDist => "cume_dist".to_owned(),
        WindowKind::Ntile(buckets) => format!("ntile({buckets})"),
        WindowKind::FirstValue(of, f) => format!("first({}) {}", scalar(of), frame(f)),
        WindowKind::LastValue(of, f) => format!("last({}) {}", scalar(of), frame(f)),
        WindowKind::NthValue(of, number, f) => format!("nth({}, {number}) {}", scalar(of), frame(f)),
        WindowKind::Aggregate(of, f) => format!("{} {}", aggregate(of), frame(f)),
    };
    format!("{kind}:{}", of.ty)
}

fn frame(of: &Frame) -> String {
    let bound = |bound: &Bound| match bound {
        Bound::Limit(limit) => format!("[{}]", scalar(&limit.value)),
        Bound::Unbounded => "*".to_owned(),
        Bound::Preceding(count) => format!("-{count}"),
        Bound::Current => "0".to_owned(),
        Bound::Following(count) => format!("+{count}"),
    };
    format!("{:?} {}..{}", of.unit, bound(&of.start), bound(&of.end)).to_lowercase()
}

pub(super) fn value(of: &Value) -> String {
    match of {
        Value::Text(text) => format!("'{text}'"),
        other => other.to_json().to_string(),
    }
}

pub(super) fn scalar(of: &Scalar) -> String {
    match of {
        Scalar::Constant(of) => value(of),
        Scalar::Column(position) => match domain_column(*position) {
            Some(column) => format!("d{column}"),
            None => format!("${position}"),
        },
        Scalar::Arithmetic(op, left, right) => {
            format!("({} {op} {})", scalar(left), scalar(right))
        }
        Scalar::Convert(ty, of) => format!("{ty}({})", scalar(of)),
        Scalar::Call(function, arguments) => {
            format!("{}({})", format!("{function:?}").to_lowercase(), list(arguments, scalar))
        }
        Scalar::Condition(of) => condition(of),
        Scalar::Coalesce(operands) => format!("coalesce({})", list(operands, scalar)),
        Scalar::Case(branches, otherwise) => {
            let branches = list(branches, |(when, then)| format!("{}: {}", condition(when), scalar(then)));
            format!("case({branches}, {})", scalar(otherwise))
        }
    }
}

pub(super) fn condition(of: &Condition) -> String {
    match of {
        Condition::Constant(Some(truth)) => truth.to_string(),
        Condition::Constant(None) => "unknown".to_owned(),
        Condition::And(all) => format!("and({})", list(all, condition)),
        Condition::Or(any) => format!("or({})", list(any, condition)),
        Condition::Not(of) => format!("not({})", condition(of)),
        Condition::Is(of, truth) => format!("is({}, {truth:?})", condition(of)),
        Condition::Compare(op, left, right) => {
            format!("{} {op} {}", scalar(left), scalar(right))
        }
        Condition::In(of, members) => format!("{} in ({})", scalar(of), list(members, scalar)),
        Condition::IsNull(of) => format!("null({})", scalar(of)),
        Condition::IsDistinct(left, right) => format!("{} distinct {}", scalar(left), scalar(right)),
        Condition::Truth(of) => scalar(of),
        other => format!("{other:?}"),
    }
}
