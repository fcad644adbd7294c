//! A select block: from, where, grouping, the select list, distinct and the order.

use super::{
    Binder, Lift,
    from::Source,
    grouping::Grouping,
    name::output_name,
    place::{Place, Result, fits, start},
    query::{Bound, Ordering, Output, column, order_item, ordinal, output_named},
    rewrite::{Position, nodes},
    scope::{Scope, ScopeColumn, folded},
    select_list::{Item, items},
    steps::Steps,
};
use crate::{
    algebra::{Aggregate, Rel, domain},
    expr::{
        Compare, Condition, Scalar,
        typing::{Operand, Typed},
    },
};
use sqlparser::ast::{
    self, BinaryOperator, Distinct, Expr, NamedWindowDefinition, NamedWindowExpr, OrderByExpr, SelectFlavor,
    WindowSpec,
};
use std::{rc::Rc, sync::Arc};
use tidegate_wire::model::{ColumnType, Value};

/// Which clause an expression stands in; it decides what the expression may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clause {
    On,
    Where,
    GroupBy,
    Having,
    Select,
    OrderBy,
    /// A limit or a row of values: only constants.
    Constant,
    /// The new values of an update.
    Set,
    /// What a write shows of the rows it wrote.
    Returning,
    /// A check constraint.
    Check,
}

impl Clause {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::On => "the condition of a join",
            Self::Where => "where",
            Self::GroupBy => "group by",
            Self::Having => "having",
            Self::Select => "the select list",
            Self::OrderBy => "order by",
            Self::Constant => "a constant",
            Self::Set => "set",
            Self::Returning => "returning",
            Self::Check => "a check constraint",
        }
    }

    pub(super) fn has_aggregates(self) -> bool {
        matches!(self, Self::Having | Self::Select | Self::OrderBy)
    }

    pub(super) fn has_windows(self) -> bool {
        matches!(self, Self::Select | Self::OrderBy)
    }
}

/// Whether an expression stands inside an aggregate's or a window function's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Within {
    Nothing,
    Aggregate,
    Window,
}

/// What the expressions of one select block share while they are bound.
pub(super) struct Block<'q> {
    pub(super) scope: Rc<Scope>,
    pub(super) clause: Clause,
    pub(super) within: Within,
    /// What the expressions of the clause need.
    pub(super) steps: Steps,
    /// What the arguments of aggregates need, below the aggregation.
    pub(super) inner: Steps,
    pub(super) aggregates: Vec<Aggregate>,
    pub(super) groupings: Vec<(Vec<Scalar>, Place)>,
    pub(super) windows: Vec<(String, &'q WindowSpec)>,
    /// Columns read outside aggregates, with their places, for the error when they are not grouped.
    pub(super) reads: Vec<(usize, Place)>,
}

impl Block<'_> {
    pub(super) fn new(scope: Rc<Scope>, clause: Clause) -> Self {
        Self {
            scope,
            clause,
            within: Within::Nothing,
            steps: Steps::default(),
            inner: Steps::default(),
            aggregates: Vec::new(),
            groupings: Vec::new(),
            windows: Vec::new(),
            reads: Vec::new(),
        }
    }
}

impl Binder<'_> {
    /// Binds a select block with the order by that stands after it.
    pub(super) fn select<'q>(
        &mut self,
        select: &'q ast::Select,
        order_by: &'q [OrderByExpr],
        lift: Lift,
        ordering: Ordering,
    ) -> Result<Bound> {
        let ast::Select {
            select_token,
            optimizer_hints: _,
            distinct,
            select_modifiers,
            top,
            top_before_distinct: _,
            projection,
            exclude,
            into,
            from,
            lateral_views,
            prewhere,
            selection,
            connect_by,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having,
            named_window,
            qualify,
            window_before_qualify: _,
            value_table_mode,
            flavor,
        } = select;
        let place = Place::from(select_token.0.span);
        for (present, what) in [
            (select_modifiers.is_some(), "a modifier of select"),
            (top.is_some(), "top"),
            (exclude.is_some(), "exclude"),
            (into.is_some(), "select into"),
            (!lateral_views.is_empty(), "lateral view"),
            (prewhere.is_some(), "prewhere"),
            (!connect_by.is_empty(), "connect by"),
            (!cluster_by.is_empty(), "cluster by"),
            (!distribute_by.is_empty(), "distribute by"),
            (!sort_by.is_empty(), "sort by"),
            (qualify.is_some(), "qualify"),
            (value_table_mode.is_some(), "select as struct or value"),
            (*flavor != SelectFlavor::Standard, "from before select"),
        ] {
            if present {
                return place.unsupported(what);
            }
        }

        let Source { mut rel, scope, mut width } = self.from(from)?;
        let mut block = Block::new(Rc::new(scope), Clause::Where);
        if let Some(selection) = selection {
            (rel, width) = self.selection(selection, &mut block, rel, width, lift)?;
        }
        block.windows = named_windows(named_window)?;
        let items = items(projection, &block.scope)?;

        block.clause = Clause::GroupBy;
        let mut grouping = Grouping::new(Rc::clone(&block.scope));
        let explicit = self.group_by(group_by, &items, &mut block, &mut grouping)?;
        let applied = std::mem::take(&mut block.steps).apply(rel, width, &|_| None)?;
        for key in &mut grouping.keys {
            key.scalar = applied.resolved(&key.scalar, &|_| None)?;
        }
        (rel, width) = (applied.rel, applied.width);

        block.clause = Clause::Having;
        let having = match having {
            Some(having) => Some((self.condition(having, &mut block)?, start(having))),
            None => None,
        };
        let having_steps = std::mem::take(&mut block.steps);

        block.clause = Clause::Select;
        let (mut columns, outputs) = self.outputs(&items, &mut block, &grouping)?;

        block.clause = Clause::OrderBy;
        let on = match distinct {
            Some(Distinct::On(exprs)) => Some(exprs),
            _ => None,
        };
        let mut partition = Vec::new();
        // What is written the same is the same column, though a subquery or window function in it is bound anew.
        // A number is another's position, not the same number.
        let mut written: Vec<(&Expr, usize)> = Vec::new();
        for (column, item) in items.iter().enumerate() {
            if let Item::Expr(expr, _) = item
                && !matches!(bare(expr), Expr::Value(_))
            {
                written.push((bare(expr), column));
            }
        }
        for expr in on.into_iter().flatten() {
            let column = match written.iter().find(|(other, _)| *other == bare(expr)) {
                Some((_, column)) => *column,
                None => self.order_column(expr, "distinct on", &mut block, &mut columns, &outputs)?,
            };
            partition.push(column);
            if !matches!(bare(expr), Expr::Value(_)) {
                written.push((bare(expr), column));
            }
        }
        let mut order = Vec::new();
        let known = columns.len();
        for item in order_by {
            let (expr, direction) = order_item(item)?;
            let same = written.iter().find(|(other, _)| on.is_some() && *other == bare(expr));
            let column = match same {
                Some((_, column)) => *column,
                None => self.order_column(expr, "order by", &mut block, &mut columns, &outputs)?,
            };
            if column >= outputs.len() && matches!(distinct, Some(Distinct::Distinct)) {
                return start(expr)
                    .bad("with select distinct, order by names expressions of the select list");
            }
            if on.is_some() && order.len() < partition.len() && !partition.contains(&column) {
                return start(expr).bad("the expressions of distinct on come first in order by");
            }
            order.push((column, direction));
        }
        if ordering == Ordering::Dropped && on.is_none() {
            order.clear();
            columns.truncate(known);
        }

        let grouped =
            explicit || having.is_some() || !block.aggregates.is_empty() || !block.groupings.is_empty();
        let mut having = having;
        let mut having_steps = having_steps;
        let mut resolve: Box<dyn Fn(Position) -> Option<usize>> = Box::new(|_| None);
        if grouped {
            for ((typed, _), output) in
                columns.iter_mut().zip(outputs.iter().map(Some).chain(std::iter::repeat(None)))
            {
                let place = output.map_or(place, |output: &Output| output.place);
                typed.scalar = grouping.over_groups(&typed.scalar, &block.reads, place)?;
            }
            if let Some((condition, place)) = &mut having {
                *condition = grouping.over_groups(condition, &block.reads, *place)?;
            }
            grouping.steps_over_groups(&mut having_steps, &block.reads)?;
            grouping.steps_over_groups(&mut block.steps, &block.reads)?;
            let applied = std::mem::take(&mut block.inner).apply(rel, width, &|_| None)?;
            let aggregates = applied.resolved(&block.aggregates, &|_| None)?;
            let copies: usize = aggregates.iter().map(nodes).sum::<usize>() + grouping.keys.len();
            self.charge(copies.saturating_mul(grouping.set_count()), place)?;
            let groupings = grouping.groupings(&block.groupings)?;
            let (keys, count) = (grouping.keys.len(), aggregates.len());
            width = fits(keys + count + groupings.len(), place)?;
            rel = grouping.relation(applied.rel, aggregates, &groupings)?;
            resolve = Box::new(move |position| match position {
                Position::Aggregate(aggregate) => Some(keys + aggregate),
                Position::Grouping(grouping) => Some(keys + count + grouping),
                _ => None,
            });
            if let Some((condition, _)) = having {
                let applied = having_steps.apply(rel, width, &resolve)?;
                let condition = applied.resolved(&condition, &resolve)?;
                width = applied.width;
                rel = Arc::new(Rel::Filter { input: applied.rel, condition });
            }
        }
        let applied = block.steps.apply(rel, width, &resolve)?;
        let mut projected = Vec::with_capacity(fits(columns.len(), place)?);
        for (typed, place) in columns {
            let typed = Typed { scalar: applied.resolved(&typed.scalar, &resolve)?, ty: typed.ty };
            projected.push(column(typed, place)?);
        }
        rel = Arc::new(Rel::Project { input: applied.rel, columns: projected });
        match distinct {
            None | Some(Distinct::All) => {}
            Some(Distinct::Distinct) => rel = Arc::new(Rel::Distinct { input: rel }),
            Some(Distinct::On(_)) => {
                rel = Arc::new(Rel::Top {
                    input: rel,
                    partition: partition.into_iter().map(Scalar::Column).collect(),
                    order: order.iter().map(|(column, order)| (Scalar::Column(*column), *order)).collect(),
                    offset: 0,
                    limit: Some(1),
                });
            }
        }
        Ok(Bound { rel, columns: outputs, order })
    }

    /// Filters by a where clause: first by what needs no subquery, then by marks, then by what looks values up, so that each
    /// subquery is asked only for rows that passed those before it.
    pub(super) fn selection<'q>(
        &mut self,
        selection: &'q Expr,
        block: &mut Block<'q>,
        mut rel: Arc<Rel>,
        mut width: usize,
        lift: Lift,
    ) -> Result<(Arc<Rel>, usize)> {
        let (mut plain, mut rest) = (Vec::new(), Vec::new());
        for conjunct in operands(selection, &BinaryOperator::And) {
            let condition = self.condition(conjunct, block)?;
            let steps = std::mem::take(&mut block.steps);
            let condition = if lift == Lift::Yes { self.lifted(condition, &rel) } else { condition };
            if steps.is_empty() { plain.push(condition) } else { rest.push((steps, condition)) }
        }
        rest.sort_by_key(|(steps, _)| steps.has_lookup());
        let filtered = |input, condition| Arc::new(Rel::Filter { input, condition });
        rel = match plain.len() {
            0 => rel,
            1 => filtered(rel, plain.remove(0)),
            _ => filtered(rel, Condition::And(plain)),
        };
        for (steps, condition) in rest {
            let applied = steps.apply(rel, width, &|_| None)?;
            let condition = applied.resolved(&condition, &|_| None)?;
            (rel, width) = (filtered(applied.rel, condition), applied.width);
        }
        Ok((rel, width))
    }

    /// An equality of a column with a constant of its type, with a slot in the constant's place.
    fn lifted(&mut self, condition: Condition, rel: &Rel) -> Condition {
        let Condition::Compare(Compare::Equal, left, right) = &condition else { return condition };
        let (column, value, column_first) = match (left, right) {
            (Scalar::Column(column), Scalar::Constant(value)) => (*column, value, true),
            (Scalar::Constant(value), Scalar::Column(column)) => (*column, value, false),
            _ => return condition,
        };
        if !matches!(Position::of(column), Position::Input(_)) {
            return condition;
        }
        let Some(ty) = rel.types().get(column).copied().filter(|ty| value_type(value) == Some(*ty)) else {
            return condition;
        };
        let slot = Scalar::Column(domain(self.slots.len()));
        self.slots.push((ty, value.clone()));
        let column = Scalar::Column(column);
        if column_first {
            Condition::Compare(Compare::Equal, column, slot)
        } else {
            Condition::Compare(Compare::Equal, slot, column)
        }
    }

    /// The columns of the select list, and what they are to those outside.
    #[expect(clippy::type_complexity, reason = "two lists of equal length")]
    fn outputs<'q>(
        &mut self,
        items: &[Item<'q>],
        block: &mut Block<'q>,
        grouping: &Grouping,
    ) -> Result<(Vec<(Typed, Place)>, Vec<Output>)> {
        let (mut columns, mut outputs) = (Vec::new(), Vec::new());
        for (index, item) in items.iter().enumerate() {
            let (typed, output) = match item {
                Item::Column(ScopeColumn { name, value }, place) => {
                    if let Scalar::Column(column) = value.scalar {
                        block.reads.push((column, *place));
                    }
                    let (name, ty) = (name.clone(), value.ty);
                    (value.clone(), Output { name, ty, place: *place, literal: None })
                }
                Item::Expr(expr, alias) => {
                    let place = start(expr);
                    let operand = match grouping.key_of_item(index) {
                        Some(key) => Operand::Typed(key.clone()),
                        None => self.operand(expr, block)?,
                    };
                    let literal = match &operand {
                        Operand::Unknown(literal) => Some(literal.clone()),
                        Operand::Typed(_) => None,
                    };
                    let typed = operand.settle();
                    let name = alias.clone().unwrap_or_else(|| output_name(expr));
                    let ty = typed.ty;
                    (typed, Output { name, ty, place, literal })
                }
            };
            columns.push((typed, output.place));
            outputs.push(output);
        }
        Ok((columns, outputs))
    }

    /// The column that an item of `order by` or `distinct on` is: one of the select list, or one more behind it.
    fn order_column<'q>(
        &mut self,
        expr: &'q Expr,
        clause: &str,
        block: &mut Block<'q>,
        columns: &mut Vec<(Typed, Place)>,
        outputs: &[Output],
    ) -> Result<usize> {
        if let Some(column) = ordinal(expr, clause, outputs.len())? {
            return Ok(column);
        }
        if let Expr::Identifier(ident) = expr {
            let name = folded(ident);
            let same: Vec<usize> =
                (0..outputs.len()).filter(|&column| outputs[column].name == name).collect();
            if let Some((first, rest)) = same.split_first() {
                if rest.iter().all(|column| columns[*column].0 == columns[*first].0) {
                    return Ok(*first);
                }
                output_named(&name, outputs, start(expr))?;
            }
        }
        let typed = self.operand(expr, block)?.settle();
        Ok(columns.iter().position(|(column, _)| *column == typed).unwrap_or_else(|| {
            columns.push((typed, start(expr)));
            columns.len() - 1
        }))
    }
}

/// An expression without the parentheses around it.
fn bare(mut expr: &Expr) -> &Expr {
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

/// The type whose value this is; `None` for NULL.
fn value_type(value: &Value) -> Option<ColumnType> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) => ColumnType::Bool,
        Value::Int8(_) => ColumnType::Int8,
        Value::Float8(_) => ColumnType::Float8,
        Value::Text(_) => ColumnType::Text,
        Value::Bytea(_) => ColumnType::Bytea,
        Value::Timestamptz(_) => ColumnType::Timestamptz,
        Value::Date(_) => ColumnType::Date,
        Value::Uuid(_) => ColumnType::Uuid,
        Value::Numeric(_) => ColumnType::Numeric,
        Value::Json(_) => ColumnType::Json,
    })
}

/// The operands of a chain of one operator, in order. The tree is as deep as the chain is long, so it is not recursed
/// into.
pub(super) fn operands<'q>(expr: &'q Expr, wanted: &BinaryOperator) -> Vec<&'q Expr> {
    let mut stack = vec![expr];
    let mut operands = Vec::new();
    while let Some(expr) = stack.pop() {
        match expr {
            Expr::BinaryOp { left, op, right } if op == wanted => {
                stack.push(right);
                stack.push(left);
            }
            Expr::Nested(inner) => stack.push(inner),
            other => operands.push(other),
        }
    }
    operands
}

fn named_windows(definitions: &[NamedWindowDefinition]) -> Result<Vec<(String, &WindowSpec)>> {
    let mut windows: Vec<(String, &WindowSpec)> = Vec::new();
    for NamedWindowDefinition(name, window) in definitions {
        let place = Place::from(name.span);
        let name = folded(name);
        if windows.iter().any(|(other, _)| *other == name) {
            return place.bad(format_args!("window {name} is defined more than once"));
        }
        match window {
            NamedWindowExpr::WindowSpec(spec) => windows.push((name, spec)),
            NamedWindowExpr::NamedWindow(_) => return place.unsupported("a window without parentheses"),
        }
    }
    Ok(windows)
}
