//! A query: its common table expressions, its body, and the order and limit of that.

use super::{
    Binder, Lift, SUBQUERY_DEPTH_MAX,
    parameters::whole_number,
    place::{Place, Result, start},
    scope::folded,
};
use crate::{
    algebra::{Column, Rel},
    expr::{
        Scalar,
        typing::{Type, Typed},
    },
    suggestion::suggestion,
};
use sqlparser::ast::{
    self, Expr, Fetch, LimitClause, LockClause, LockType, Offset, OrderBy, OrderByExpr, OrderByKind,
    OrderByOptions, OrderBySort, SetExpr, Spanned, Value as Literal,
};
use std::sync::Arc;
use tidegate_wire::model::{Direction, Nulls, Order};

/// A column of a query's result.
#[derive(Clone, Debug)]
pub(super) struct Output {
    pub(super) name: String,
    pub(super) ty: Type,
    pub(super) place: Place,
    /// The literal without a type that the column is everywhere: a set operation may give it another one than text.
    pub(super) literal: Option<Option<String>>,
}

/// What becomes of a query's order where nothing but the result's order depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ordering {
    /// It is kept, with the columns it needs behind those that show.
    Kept,
    /// It is dropped: the rows are a bag.
    Dropped,
}

/// A bound query.
pub(super) struct Bound {
    /// The columns that show, then those that only order.
    pub(super) rel: Arc<Rel>,
    pub(super) columns: Vec<Output>,
    pub(super) order: Vec<(usize, Order)>,
}

impl Bound {
    /// One without an order.
    pub(super) fn unordered(rel: Arc<Rel>, columns: Vec<Output>) -> Self {
        Self { rel, columns, order: Vec::new() }
    }
}

/// The part of the rows that limit and offset leave.
struct Part {
    offset: u64,
    limit: Option<u64>,
}

impl Binder<'_> {
    /// Binds a query.
    pub(super) fn query(&mut self, query: &ast::Query, lift: Lift, ordering: Ordering) -> Result<Bound> {
        let ast::Query {
            with: _,
            body,
            order_by: _,
            limit_clause: _,
            fetch: _,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = query;
        let place = || start_of(query);
        if let Some(LockClause { lock_type, of: _, nonblock: _ }) = locks.first() {
            let what = match lock_type {
                LockType::Update => "for update",
                LockType::Share => "for share",
            };
            return self.word("for", end(body)).unsupported(what);
        }
        if for_clause.is_some() {
            return self.word("for", end(body)).unsupported("for browse, json or xml");
        }
        if settings.is_some() || format_clause.is_some() {
            return place().unsupported("settings or format");
        }
        if !pipe_operators.is_empty() {
            return place().unsupported("a pipe operator");
        }
        self.one_deeper(query, |binder| binder.body(query, lift, ordering))
    }

    /// Binds something of a query, with the query's common table expressions in scope.
    pub(super) fn one_deeper<T>(
        &mut self,
        query: &ast::Query,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if self.query_depth > SUBQUERY_DEPTH_MAX {
            return start_of(query)
                .bad(format_args!("subqueries nest deeper than the limit of {SUBQUERY_DEPTH_MAX} levels"));
        }
        self.relation(Place::UNKNOWN)?;
        self.query_depth += 1;
        let expression_depth = std::mem::take(&mut self.expression_depth);
        let common = self.common.len();
        if let Some(with) = &query.with {
            self.common_tables(with)?;
        }
        let bound = bind(self)?;
        self.common.truncate(common);
        self.expression_depth = expression_depth;
        self.query_depth -= 1;
        Ok(bound)
    }

    fn body(&mut self, query: &ast::Query, lift: Lift, ordering: Ordering) -> Result<Bound> {
        let ast::Query { body, order_by, limit_clause, fetch, .. } = query;
        let place = || start_of(query);
        let part = self.part(limit_clause.as_ref(), fetch.as_ref())?;
        let order_by = match order_by {
            Some(order_by) => order_items(order_by, place)?,
            None => &[],
        };
        let ordered = if part.is_some() { Ordering::Kept } else { ordering };
        let mut bound = match body.as_ref() {
            SetExpr::Select(select) => self.select(select, order_by, lift, ordered)?,
            SetExpr::Query(query) if order_by.is_empty() && part.is_none() => {
                self.query(query, lift, ordering)?
            }
            body => {
                let mut bound = self.set_expression(body, lift)?;
                bound.order = order_of_outputs(order_by, &bound.columns)?;
                bound
            }
        };
        if let Some(Part { offset, limit }) = part {
            let order = bound.order.iter().map(|(column, order)| (Scalar::Column(*column), *order)).collect();
            bound.rel = Arc::new(Rel::Top { input: bound.rel, partition: Vec::new(), order, offset, limit });
        }
        if ordering == Ordering::Dropped {
            bound.order.clear();
            bound.rel = first_columns(bound.rel, bound.columns.len());
        }
        Ok(bound)
    }

    fn part(&mut self, limit: Option<&LimitClause>, fetch: Option<&Fetch>) -> Result<Option<Part>> {
        let (limit, offset) = match limit {
            None => (None, None),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) => {
                if let Some(by) = limit_by.first() {
                    return start(by).unsupported("limit by");
                }
                (limit.as_ref(), offset.as_ref().map(|Offset { value, rows: _ }| value))
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit: _ }) => {
                return start(offset).unsupported("limit with a comma");
            }
        };
        let offset_count = match offset {
            Some(expr) => self.count(expr, "offset")?.unwrap_or(0),
            None => 0,
        };
        let limit_count = match (limit, fetch) {
            (Some(limit), Some(_)) => return start(limit).bad("limit stands beside fetch"),
            (Some(limit), None) => self.count(limit, "limit")?,
            (None, Some(Fetch { with_ties, percent, quantity })) => {
                let place = quantity.as_ref().map_or_else(|| self.word("fetch", Place::UNKNOWN), start);
                if *with_ties {
                    return place.unsupported("fetch with ties");
                }
                if *percent {
                    return place.unsupported("fetch percent");
                }
                match quantity {
                    Some(quantity) => self.count(quantity, "fetch")?,
                    None => Some(1),
                }
            }
            (None, None) => None,
        };
        Ok((limit_count.is_some() || offset_count > 0)
            .then_some(Part { offset: offset_count, limit: limit_count }))
    }

    /// The number of rows that a limit or an offset says; `None` for NULL, which is as if it was not there.
    fn count(&mut self, expr: &Expr, what: &str) -> Result<Option<u64>> {
        let place = start(expr);
        let typed = self.constant(expr, what)?;
        match whole_number(&typed.scalar, what, place)? {
            None => Ok(None),
            Some(number) => match u64::try_from(number) {
                Ok(number) => Ok(Some(number)),
                Err(_) => place.bad(format_args!("{what} must not be negative")),
            },
        }
    }
}

/// Where a query starts, found without a walk through all of it.
pub(super) fn start_of(query: &ast::Query) -> Place {
    if let Some(with) = &query.with {
        return with.with_token.0.span.into();
    }
    let mut body = query.body.as_ref();
    loop {
        body = match body {
            SetExpr::Select(select) => return select.select_token.0.span.into(),
            SetExpr::SetOperation { left, .. } => left,
            SetExpr::Query(query) if query.with.is_none() => query.body.as_ref(),
            SetExpr::Values(values) => return values.span().into(),
            _ => return Place::UNKNOWN,
        };
    }
}

/// Where a body ends, as far as the parser says.
fn end(body: &SetExpr) -> Place {
    body.span().end.into()
}

/// The first columns of a relation.
pub(super) fn first_columns(rel: Arc<Rel>, count: usize) -> Arc<Rel> {
    let types = rel.types();
    if types.len() == count {
        return rel;
    }
    let columns = types
        .into_iter()
        .take(count)
        .enumerate()
        .map(|(column, ty)| Column { scalar: Scalar::Column(column), ty })
        .collect();
    Arc::new(Rel::Project { input: rel, columns })
}

/// The items of an order by.
fn order_items(order_by: &OrderBy, place: impl Fn() -> Place) -> Result<&[OrderByExpr]> {
    let OrderBy { kind, interpolate } = order_by;
    if interpolate.is_some() {
        return place().unsupported("interpolate");
    }
    match kind {
        OrderByKind::All(_) => place().unsupported("order by all"),
        OrderByKind::Expressions(items) => Ok(items),
    }
}

/// An item of an order by, and how it orders.
pub(super) fn order_item(item: &OrderByExpr) -> Result<(&Expr, Order)> {
    let OrderByExpr { expr, options: OrderByOptions { sort, nulls_first }, with_fill } = item;
    if with_fill.is_some() {
        return start(expr).unsupported("with fill");
    }
    let direction = match sort {
        None | Some(OrderBySort::Asc) => Direction::Asc,
        Some(OrderBySort::Desc) => Direction::Desc,
        Some(OrderBySort::Using(_)) => return start(expr).unsupported("order by … using"),
    };
    let mut order = Order::with_default_nulls(direction);
    if let Some(first) = nulls_first {
        order.nulls = if *first { Nulls::First } else { Nulls::Last };
    }
    Ok((expr, order))
}

/// The column of the result that a literal numbers. A literal that numbers none is refused, as in PostgreSQL.
pub(super) fn ordinal(expr: &Expr, clause: &str, columns: usize) -> Result<Option<usize>> {
    let Expr::Value(value) = expr else { return Ok(None) };
    let place = Place::from(value.span);
    match &value.value {
        Literal::Number(text, _) => match text.parse::<usize>() {
            Ok(number) if (1..=columns).contains(&number) => Ok(Some(number - 1)),
            Ok(number) => place.bad(format_args!("{clause} position {number} is not in the select list")),
            Err(_) => place.bad(format_args!("a constant in {clause} is not a position")),
        },
        Literal::Placeholder(_) | Literal::Null | Literal::Boolean(_) => Ok(None),
        _ => place.bad(format_args!("a constant in {clause} is not a position")),
    }
}

/// The order of a set operation, which names columns of the result.
fn order_of_outputs(items: &[OrderByExpr], columns: &[Output]) -> Result<Vec<(usize, Order)>> {
    items
        .iter()
        .map(|item| {
            let (expr, order) = order_item(item)?;
            if let Some(column) = ordinal(expr, "order by", columns.len())? {
                return Ok((column, order));
            }
            let Expr::Identifier(ident) = expr else {
                return start(expr)
                    .unsupported("order by of a set operation that is not a column of the result");
            };
            match output_named(&folded(ident), columns, start(expr))? {
                Some(column) => Ok((column, order)),
                None => Err(start(expr).error(
                    crate::query::QueryErrorKind::UnknownColumn,
                    format_args!(
                        "the result has no column {}{}",
                        folded(ident),
                        suggestion(&folded(ident), columns.iter().map(|column| column.name.as_str()))
                    ),
                )),
            }
        })
        .collect()
}

/// The column of the result that has a name.
pub(super) fn output_named(name: &str, columns: &[Output], place: Place) -> Result<Option<usize>> {
    let mut found = columns.iter().enumerate().filter(|(_, column)| column.name == name);
    match (found.next(), found.next()) {
        (Some((column, _)), None) => Ok(Some(column)),
        (Some(_), Some(_)) => place.bad(format_args!("order by {name} is ambiguous")),
        (None, _) => Ok(None),
    }
}

/// A column with its type as relations have it.
pub(super) fn column(typed: Typed, place: Place) -> Result<Column> {
    let ty = typed.column_type().map_err(|error| place.typing(error))?;
    Ok(Column { scalar: typed.scalar, ty })
}
