//! Queries in JSON that show groups instead of rows: to the algebra that a `select` means, so that both are computed by the
//! same operators.

use super::{
    Parameters, QueryError, aggregation,
    resolve::{ExistsAs, Resolver, column, full_order},
    shape::{Correlation, Exists, Filter, Start},
};
use crate::{
    algebra::{
        Column, Rel, Select, Subquery, Test, domain,
        positions::{Positions as _, all, conjuncts},
    },
    expr::{Compare, Condition, Scalar},
    store::{Snapshot, TableId},
};
use std::sync::Arc;
use tidegate_wire::model::{
    ColumnSchema, Direction, Nulls, Order, TableSchema,
    query::{Grouping, Query},
};

type Result<T> = std::result::Result<T, QueryError>;

/// What a query with `group_by` means.
///
/// # Errors
/// With the kind and the place of the fault.
pub(super) fn select(
    query: &Query,
    grouping: &Grouping,
    snapshot: &Snapshot,
    parameters: &Parameters<'_>,
) -> Result<Select> {
    let mut resolver = Resolver::new(snapshot, parameters, ExistsAs::Column);
    let (table, schema) = resolver.table(&query.table, "query")?;
    // Order, limit and start are the groups'.
    let rows = Query { order_by: Vec::new(), limit: None, start: None, ..query.clone() };
    let (lifted, rest) = resolver.lifted(&rows, &schema, "query")?;
    let filter = resolver.filter(&rows, &rest, table, &schema, &[], "query")?;
    let slots = (0..lifted.len()).map(|slot| Scalar::Column(domain(slot)));
    let equal = lifted.iter().zip(slots).map(|(pair, slot)| equal(pair.column, slot)).collect();
    let input = filtered(snapshot, table, &filter, equal);

    let (mut keys, mut names) = (Vec::new(), Vec::new());
    for (index, name) in grouping.columns.iter().enumerate() {
        let at = column(&schema, name, &format!("query.group_by[{index}]"))?;
        keys.push(Column { scalar: Scalar::Column(at), ty: schema.columns[at].ty });
        names.push(name);
    }
    let mut aggregates = Vec::new();
    for (index, (name, aggregation)) in grouping.aggregates.iter().enumerate() {
        let path = format!("query.aggregates[{index}]");
        aggregates.push(aggregation::aggregate(aggregation, &schema, &path)?);
        names.push(name);
    }
    let types = keys.iter().map(|key| key.ty).chain(aggregates.iter().map(|aggregate| aggregate.ty));
    let columns = names.into_iter().zip(types).map(|(name, ty)| ColumnSchema::plain(name, ty, true));
    let name = format!("(groups of {})", query.table);
    let groups = TableSchema::plain(&name, columns.collect(), (0..keys.len()).collect());
    let mut rel = Rel::Aggregate { input, keys, aggregates };

    let order = full_order(query, &groups, "query")?;
    if let Some(start) = &query.start {
        let start = resolver.start(start, &groups, &order, "query.start")?;
        rel = Rel::Filter { input: Arc::new(rel), condition: beyond(&start) };
    }
    let mut columns = match &query.select {
        Some(names) => {
            names.iter().map(|name| column(&groups, name, "query.select")).collect::<Result<Vec<_>>>()?
        }
        None => (0..groups.columns.len()).collect(),
    };
    let names = columns.iter().map(|&at| groups.columns[at].name.clone()).collect();
    let mut of_projected = Vec::with_capacity(order.len());
    for (at, order) in order {
        let projected = columns.iter().position(|column| *column == at).unwrap_or_else(|| {
            columns.push(at);
            columns.len() - 1
        });
        of_projected.push((projected, order));
    }
    let order = of_projected;
    let columns = columns
        .into_iter()
        .map(|at| Column { scalar: Scalar::Column(at), ty: groups.columns[at].ty })
        .collect();
    rel = Rel::Project { input: Arc::new(rel), columns };
    if query.limit.is_some() {
        let order = order.iter().map(|&(column, order)| (Scalar::Column(column), order)).collect();
        let input = Arc::new(rel);
        rel = Rel::Top { input, partition: Vec::new(), order, offset: 0, limit: query.limit };
    }
    Ok(Select { rel: Arc::new(rel), names, order, slots: resolver.slots })
}

fn equal(column: usize, other: Scalar) -> Condition {
    Condition::Compare(Compare::Equal, Scalar::Column(column), other)
}

/// The rows of a table that pass a filter and further conditions. Behind the table's columns they have what the filter's
/// EXISTS say.
fn filtered(snapshot: &Snapshot, table: TableId, filter: &Filter, mut own: Vec<Condition>) -> Arc<Rel> {
    let relation = snapshot.table(table).expect("a resolved query's table exists");
    let schema = relation.schema();
    let types: Vec<_> = schema.columns.iter().map(|column| column.ty).collect();
    let width = types.len();
    let (mut conditions, mut of_marks) = (Vec::new(), Vec::new());
    conjuncts(&filter.condition, &mut conditions);
    conditions.extend(filter.start.as_ref().map(beyond));
    for condition in conditions {
        let mut reads_mark = false;
        condition.read(&mut |position| reads_mark |= position >= width);
        if reads_mark { of_marks.push(condition) } else { own.push(condition) }
    }
    let table = Rel::Table { table, types, key: schema.primary_key.clone() };
    let mut rel = with(Arc::new(table), own);
    for exists in &filter.exists {
        rel = Arc::new(Rel::Mark { input: rel, subquery: subquery(snapshot, exists), test: Test::Exists });
    }
    with(rel, of_marks)
}

fn with(input: Arc<Rel>, conditions: Vec<Condition>) -> Arc<Rel> {
    if conditions.is_empty() { input } else { Arc::new(Rel::Filter { input, condition: all(conditions) }) }
}

/// The inner rows of an EXISTS, whose domain is the outer columns that it compares with.
fn subquery(snapshot: &Snapshot, exists: &Exists) -> Subquery {
    let mut conditions: Vec<Condition> = exists
        .constants
        .iter()
        .map(|(column, value)| equal(*column, Scalar::Constant(value.clone())))
        .collect();
    for (at, pair) in exists.on.iter().enumerate() {
        conditions.extend(agree(pair, Scalar::Column(domain(at))));
    }
    let domain = exists.on.iter();
    let domain =
        domain.map(|pair| Column { scalar: Scalar::Column(pair.outer), ty: pair.outer_ty }).collect();
    Subquery { rel: filtered(snapshot, exists.table, &exists.filter, conditions), domain }
}

/// That a pair of columns agrees. Values of different types that are equal have different keys, by which equalities are
/// looked up; as neither less nor greater they are compared themselves.
fn agree(pair: &Correlation, outer: Scalar) -> Vec<Condition> {
    if pair.outer_ty == pair.inner_ty {
        return vec![equal(pair.inner, outer)];
    }
    let compare = |op| Condition::Compare(op, Scalar::Column(pair.inner), outer.clone());
    vec![compare(Compare::LessOrEqual), compare(Compare::GreaterOrEqual)]
}

/// That a row lies beyond a cursor.
fn beyond(start: &Start) -> Condition {
    let mut condition = Condition::Constant(Some(start.inclusive));
    for (&(column, order), value) in start.columns.iter().zip(&start.values).rev() {
        let cell = Scalar::Column(column);
        let is_null = Condition::IsNull(cell.clone());
        let value = Scalar::Constant(value.clone());
        let after = match (&value, order) {
            (Scalar::Constant(value), Order { nulls: Nulls::First, .. }) if value.is_null() => {
                Condition::Not(Box::new(is_null))
            }
            (Scalar::Constant(value), _) if value.is_null() => Condition::Constant(Some(false)),
            (_, Order { direction, nulls }) => {
                let op = if direction == Direction::Asc { Compare::Greater } else { Compare::Less };
                let greater = Condition::Compare(op, cell.clone(), value.clone());
                if nulls == Nulls::Last { Condition::Or(vec![greater, is_null]) } else { greater }
            }
        };
        let same = Condition::equal(cell, value, true);
        condition = Condition::Or(vec![after, Condition::And(vec![same, condition])]);
    }
    condition
}
