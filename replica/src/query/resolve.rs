//! From a parsed query to a shape and its slot values: names looked up, types checked, constants in equality
//! conditions lifted.

use super::{
    Output, QueryError, QueryErrorKind, aggregation,
    expression::{ExpressionResolver, Parameters, lifted_equality},
    grouped,
    layout::build_output,
    resolve_select,
    shape::{Access, Body, Correlation, Exists, Filter, GroupColumn, Place, Shape, Source, Start, TotalOf},
};
use crate::{
    expr::{Condition, Scalar},
    store::{IndexSpec, Snapshot, TableId},
    suggestion,
};
use std::sync::Arc;
use tidegate_wire::model::{
    ColumnType, Order, PlaceMask, TableSchema, Value,
    key::encode_cell,
    query::{self, Expr, Query},
};

/// A query ready to run: its shape and the values of the shape's slots.
#[derive(Clone)]
pub struct Resolved {
    /// The shape.
    pub shape: Arc<Shape>,
    /// One value per slot; never NULL.
    pub values: Vec<Value>,
}

/// What the layout needs to know of a place, beside its [`Place`].
pub(super) struct Shown {
    pub(super) name: Option<String>,
    pub(super) one: bool,
    pub(super) select: Vec<usize>,
    pub(super) on: Vec<(usize, usize)>,
}

type Result<T> = std::result::Result<T, QueryError>;

/// Resolves a query against the tables of a snapshot.
///
/// # Errors
/// With the kind and the place of the fault.
pub fn resolve(query: &Query, snapshot: &Snapshot, parameters: &Parameters<'_>) -> Result<Resolved> {
    if let Some(grouping) = &query.grouping {
        return resolve_select(&grouped::select(query, grouping, snapshot, parameters)?, snapshot);
    }
    let mut resolver = Resolver::new(snapshot, parameters, ExistsAs::Probe);
    resolver.place(query, None, "query")?;
    let Resolver { slots, mut places, shown, .. } = resolver;
    let (layout, tables) = build_output(snapshot, &places, &shown);
    for (place, layout) in places.iter_mut().zip(&layout.places) {
        // A row travels whole wherever it stands, so what one place shows matters at all of its table's places.
        if place.total.is_none() {
            place.used.extend(&tables[layout.table].columns);
        }
        place.used.sort_unstable();
        place.used.dedup();
    }
    let names: Vec<&str> = places
        .iter()
        .map(|place| snapshot.table(place.table).map_or("", |table| table.schema().name.as_str()))
        .collect();
    let slot_types: Vec<ColumnType> = slots.iter().map(|(ty, _)| *ty).collect();
    let key = format!("{names:?} {places:?} {slot_types:?} {layout:?}");
    let fp = layout.fingerprint(key.as_bytes());
    let output = Arc::new(Output { layout, tables, fp });
    Ok(Resolved {
        shape: Arc::new(Shape { key, slots: slot_types, output, body: Body::Nested(places) }),
        values: slots.into_iter().map(|(_, value)| value).collect(),
    })
}

pub(super) fn fail<T>(kind: QueryErrorKind, path: &str, message: impl std::fmt::Display) -> Result<T> {
    Err(QueryError::new(kind, format!("{message} (at {path})")))
}

/// The index of a column by name.
pub(super) fn column(schema: &TableSchema, name: &str, path: &str) -> Result<usize> {
    match schema.column(name) {
        Some(column) => Ok(column),
        None => fail(
            QueryErrorKind::UnknownColumn,
            path,
            format_args!("table {} has no column {name}{}", schema.name, suggestion::of_column(name, schema)),
        ),
    }
}

/// What stands for an EXISTS in a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExistsAs {
    /// Its number, to be answered by a look-up.
    Probe,
    /// A boolean column; they follow the table's own in their order.
    Column,
}

pub(super) struct Resolver<'a> {
    snapshot: &'a Snapshot,
    parameters: &'a Parameters<'a>,
    exists_as: ExistsAs,
    pub(super) slots: Vec<(ColumnType, Value)>,
    places: Vec<Place>,
    shown: Vec<Shown>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, parameters: &'a Parameters<'a>, exists_as: ExistsAs) -> Self {
        Self { snapshot, parameters, exists_as, slots: Vec::new(), places: Vec::new(), shown: Vec::new() }
    }

    pub(super) fn table(&self, name: &str, path: &str) -> Result<(TableId, Arc<TableSchema>)> {
        let found = self.snapshot.table_id(name).and_then(|id| Some((id, self.snapshot.table(id)?)));
        match found {
            Some((id, relation)) => Ok((id, Arc::clone(relation.schema()))),
            None if self.snapshot.view(name).is_some() => fail(
                QueryErrorKind::NotReady,
                path,
                format_args!("the rows of view {name} are not kept at present; try again, or read it in SQL"),
            ),
            None => {
                let instead = suggestion::of_table(name, self.snapshot);
                fail(QueryErrorKind::UnknownTable, path, format_args!("unknown table {name}{instead}"))
            }
        }
    }

    fn place(&mut self, query: &Query, parent: Option<(usize, &query::Related)>, path: &str) -> Result<()> {
        if self.places.len() == PlaceMask::PLACES_MAX {
            return fail(
                QueryErrorKind::BadQuery,
                path,
                format_args!(
                    "a query has at most {} places (the root and each related)",
                    PlaceMask::PLACES_MAX
                ),
            );
        }
        let (table, schema) = self.table(&query.table, path)?;
        let index = self.places.len();
        let mut group = Vec::new();
        let mut on = Vec::new();
        if let Some((parent, related)) = parent {
            let parent_schema = self.place_schema(parent);
            for pair in self.correlations(&parent_schema, &schema, &related.on, path)? {
                on.push((pair.outer, pair.inner));
                group.push(GroupColumn {
                    column: pair.inner,
                    ty: pair.inner_ty,
                    source: Source::Parent(pair.outer),
                });
            }
        }
        let total = match parent.and_then(|(_, related)| related.aggregate.as_ref()) {
            Some(aggregation) => {
                if let Some((_, own)) = on.iter().find(|(_, own)| schema.columns[*own].ty == ColumnType::Json)
                {
                    let name = &schema.columns[*own].name;
                    let problem = format_args!("\"on\" of an aggregate cannot have {name}, which is json");
                    return fail(QueryErrorKind::BadQuery, path, problem);
                }
                let aggregate = aggregation::aggregate(aggregation, &schema, path)?;
                Some(TotalOf { aggregate, on: on.iter().map(|&(_, own)| own).collect() })
            }
            None => None,
        };
        let (lifted, rest) = self.lifted(query, &schema, path)?;
        group.extend(lifted);
        let order = full_order(query, &schema, path)?;
        let filter = self.filter(query, &rest, table, &schema, &order, path)?;
        let one = parent.is_some_and(|(_, related)| related.one);
        let limit = match (query.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)), one) {
            (Some(limit), true) => Some(limit.min(1)),
            (None, true) => Some(1),
            (limit, false) => limit,
        };
        let select = match &query.select {
            Some(names) => names
                .iter()
                .map(|name| column(&schema, name, &format!("{path}.select")))
                .collect::<Result<Vec<_>>>()?,
            None if total.is_some() => Vec::new(),
            None => (0..schema.shown().len()).collect(),
        };
        for related in &query.related {
            if select.iter().any(|&shown| schema.columns[shown].name == related.name) {
                return fail(
                    QueryErrorKind::BadQuery,
                    path,
                    format_args!(
                        "\"{}\" is both a shown column and a related query; rename one",
                        related.name
                    ),
                );
            }
        }
        reorder_to_primary(&mut group, &schema);
        let (access, limit) = choose_access(table, &schema, &group, &order, limit);
        let mut used: Vec<usize> = select.clone();
        for argument in total.iter().flat_map(|total| &total.aggregate.arguments) {
            argument.scalar.columns(&mut used);
        }
        used.extend(order.iter().map(|(column, _)| column));
        used.extend(group.iter().map(|column| column.column));
        filter_columns(&filter, &mut used);
        self.places.push(Place {
            parent: parent.map(|(parent, _)| parent),
            children: Vec::new(),
            table,
            group,
            condition: filter,
            order,
            limit,
            access,
            used,
            total,
        });
        self.shown.push(Shown { name: parent.map(|(_, related)| related.name.clone()), one, select, on });
        for (number, related) in query.related.iter().enumerate() {
            let child = self.places.len();
            self.places[index].children.push(child);
            self.place(&related.query, Some((index, related)), &format!("{path}.related[{number}].query"))?;
            let columns: Vec<usize> = self.shown[child].on.iter().map(|&(parent, _)| parent).collect();
            self.places[index].used.extend(columns);
        }
        Ok(())
    }

    /// The equalities of a query's condition that become slots, and the other operands of its outermost `and`.
    #[expect(clippy::type_complexity, reason = "two lists, taken apart at once")]
    pub(super) fn lifted<'q>(
        &mut self,
        query: &'q Query,
        schema: &TableSchema,
        path: &str,
    ) -> Result<(Vec<GroupColumn>, Vec<(&'q Expr, String)>)> {
        let mut conjuncts = Vec::new();
        if let Some(filter) = &query.filter {
            flatten_and(filter, format!("{path}.where"), &mut conjuncts);
        }
        let (mut lifted, mut rest) = (Vec::new(), Vec::new());
        for (expr, expr_path) in conjuncts {
            match lifted_equality(expr, schema, self.parameters, &expr_path)? {
                Some((column, value)) => {
                    let ty = schema.columns[column].ty;
                    lifted.push(GroupColumn { column, ty, source: Source::Slot(self.slots.len()) });
                    self.slots.push((ty, value));
                }
                None => rest.push((expr, expr_path)),
            }
        }
        Ok((lifted, rest))
    }

    fn place_schema(&self, place: usize) -> Arc<TableSchema> {
        let relation =
            self.snapshot.table(self.places[place].table).expect("a resolved place's table exists");
        Arc::clone(relation.schema())
    }

    fn correlations(
        &self,
        outer: &TableSchema,
        inner: &TableSchema,
        on: &[(String, String)],
        path: &str,
    ) -> Result<Vec<Correlation>> {
        on.iter()
            .map(|(outer_name, inner_name)| {
                let (outer_column, inner_column) =
                    (column(outer, outer_name, path)?, column(inner, inner_name, path)?);
                let (outer_ty, inner_ty) = (outer.columns[outer_column].ty, inner.columns[inner_column].ty);
                if !comparable(outer_ty, inner_ty) {
                    return fail(
                        QueryErrorKind::TypeMismatch,
                        path,
                        format_args!(
                            "\"on\" compares {}.{outer_name} ({outer_ty}) with {}.{inner_name} ({inner_ty})",
                            outer.name, inner.name
                        ),
                    );
                }
                Ok(Correlation { outer: outer_column, outer_ty, inner: inner_column, inner_ty })
            })
            .collect()
    }

    pub(super) fn filter(
        &self,
        query: &Query,
        conjuncts: &[(&Expr, String)],
        table: TableId,
        schema: &TableSchema,
        order: &[(usize, Order)],
        path: &str,
    ) -> Result<Filter> {
        let mut exists = Vec::new();
        let mut conditions = Vec::new();
        for (expr, expr_path) in conjuncts {
            let mut on_exists = |node: &query::Exists, path: &str| {
                let resolved = self.exists(node, table, schema, path)?;
                exists.push(resolved);
                let number = exists.len() - 1;
                Ok(match self.exists_as {
                    ExistsAs::Probe => Condition::Exists(number),
                    ExistsAs::Column => Condition::Truth(Scalar::Column(schema.columns.len() + number)),
                })
            };
            let mut resolver =
                ExpressionResolver { schema, parameters: self.parameters, on_exists: &mut on_exists };
            conditions.push(resolver.condition(expr, expr_path)?);
        }
        let condition = match (conditions.len(), query.limit) {
            (_, Some(0)) => Condition::Constant(Some(false)),
            (0, _) => Condition::Constant(Some(true)),
            (1, _) => conditions.remove(0),
            _ => Condition::And(conditions),
        };
        let start = match &query.start {
            Some(start) => Some(self.start(start, schema, order, &format!("{path}.start"))?),
            None => None,
        };
        Ok(Filter { condition, exists, start })
    }

    pub(super) fn start(
        &self,
        start: &query::Start,
        schema: &TableSchema,
        order: &[(usize, Order)],
        path: &str,
    ) -> Result<Start> {
        let prefix = order.get(..start.values.len()).unwrap_or(&[]);
        let (mut values, mut key) = (Vec::new(), Vec::new());
        for &(column, order) in prefix {
            let name = &schema.columns[column].name;
            let Some(json) = start.values.get(name) else {
                return fail(
                    QueryErrorKind::BadQuery,
                    path,
                    format_args!("a start has values for a prefix of the order columns; {name} is missing"),
                );
            };
            let value = match Value::from_json(schema.columns[column].ty, json) {
                Ok(value) => value,
                Err(error) => {
                    return fail(QueryErrorKind::TypeMismatch, path, format_args!("column {name}: {error}"));
                }
            };
            encode_cell(value.as_ref(), order, &mut key);
            values.push(value);
        }
        if prefix.len() != start.values.len() {
            for name in start.values.keys() {
                column(schema, name, path)?;
            }
            return fail(QueryErrorKind::BadQuery, path, "a start has values for order columns only");
        }
        Ok(Start { columns: prefix.to_vec(), values, key, inclusive: start.inclusive })
    }

    fn exists(
        &self,
        node: &query::Exists,
        outer_table: TableId,
        outer: &TableSchema,
        path: &str,
    ) -> Result<Exists> {
        let query_path = format!("{path}.query");
        let query = &node.query;
        if !query.related.is_empty() {
            return fail(
                QueryErrorKind::BadQuery,
                &query_path,
                "related inside exists shows nothing; leave it out",
            );
        }
        let (table, schema) = self.table(&query.table, &query_path)?;
        for name in query.select.iter().flatten() {
            column(&schema, name, &query_path)?;
        }
        let on = self.correlations(outer, &schema, &node.on, path)?;
        let mut conjuncts = Vec::new();
        if let Some(filter) = &query.filter {
            flatten_and(filter, format!("{query_path}.where"), &mut conjuncts);
        }
        let mut constants = Vec::new();
        let mut rest = Vec::new();
        for (expr, expr_path) in conjuncts {
            match lifted_equality(expr, &schema, self.parameters, &expr_path)? {
                Some(constant) => constants.push(constant),
                None => rest.push((expr, expr_path)),
            }
        }
        let order = full_order(query, &schema, &query_path)?;
        let filter = self.filter(query, &rest, table, &schema, &order, &query_path)?;
        let inner_columns: Vec<usize> =
            on.iter().map(|pair| pair.inner).chain(constants.iter().map(|(column, _)| *column)).collect();
        let outer_columns: Vec<usize> = on.iter().map(|pair| pair.outer).collect();
        let mut used = inner_columns.clone();
        filter_columns(&filter, &mut used);
        used.sort_unstable();
        used.dedup();
        Ok(Exists {
            inner: access_by(table, &schema, &inner_columns, &[]),
            outer: access_by(outer_table, outer, &outer_columns, &[]),
            table,
            on,
            constants,
            filter,
            used,
        })
    }
}

/// The conjuncts of a condition with their paths.
fn flatten_and<'q>(expr: &'q Expr, path: String, out: &mut Vec<(&'q Expr, String)>) {
    match expr {
        Expr::Op(op, args) if op == "and" => {
            for (index, arg) in args.iter().enumerate() {
                flatten_and(arg, format!("{path}.args[{index}]"), out);
            }
        }
        _ => out.push((expr, path)),
    }
}

/// `order_by` without repeated columns, then the primary key's columns that are not in it.
pub(super) fn full_order(query: &Query, schema: &TableSchema, path: &str) -> Result<Vec<(usize, Order)>> {
    let mut order: Vec<(usize, Order)> = Vec::new();
    for (index, term) in query.order_by.iter().enumerate() {
        let column = column(schema, &term.column, &format!("{path}.order_by[{index}]"))?;
        if !order.iter().any(|(other, _)| *other == column) {
            order.push((column, term.order));
        }
    }
    for &column in &schema.primary_key {
        if !order.iter().any(|(other, _)| *other == column) {
            order.push((column, Order::ASC));
        }
    }
    Ok(order)
}

/// Puts the key's columns into the primary key's order when they are its first columns, so that no index is needed.
fn reorder_to_primary(group: &mut [GroupColumn], schema: &TableSchema) {
    let prefix = &schema.primary_key[..group.len().min(schema.primary_key.len())];
    if group.len() == prefix.len() && prefix.iter().all(|column| group.iter().any(|g| g.column == *column)) {
        group.sort_by_key(|g| prefix.iter().position(|column| *column == g.column));
    }
}

fn access_by(table: TableId, schema: &TableSchema, columns: &[usize], order: &[(usize, Order)]) -> Access {
    if schema.primary_key.starts_with(columns) && order.is_empty() {
        return Access::Primary;
    }
    let columns = columns.iter().map(|&column| (column, Order::ASC)).chain(order.iter().copied()).collect();
    Access::Index(Arc::new(IndexSpec { table, columns }))
}

/// How a place's rows are read, and its limit where one still has a meaning: under a whole primary key there is one
/// row at most.
fn choose_access(
    table: TableId,
    schema: &TableSchema,
    group: &[GroupColumn],
    order: &[(usize, Order)],
    limit: Option<usize>,
) -> (Access, Option<usize>) {
    let columns: Vec<usize> = group.iter().map(|column| column.column).collect();
    let single = schema.primary_key.iter().all(|column| columns.contains(column));
    if limit.is_none() || limit == Some(0) || single {
        let limit = if limit == Some(0) { limit } else { None };
        return (access_by(table, schema, &columns, &[]), limit);
    }
    // Columns fixed by the key do not order; the primary key's columns at the end are in every index anyway.
    let mut order: Vec<(usize, Order)> =
        order.iter().copied().filter(|(column, _)| !columns.contains(column)).collect();
    let suffix: Vec<(usize, Order)> = schema
        .primary_key
        .iter()
        .filter(|column| !columns.contains(column))
        .map(|&column| (column, Order::ASC))
        .collect();
    if order.ends_with(&suffix) {
        order.truncate(order.len() - suffix.len());
    }
    (access_by(table, schema, &columns, &order), limit)
}

fn filter_columns(filter: &Filter, out: &mut Vec<usize>) {
    filter.condition.columns(out);
    out.extend(filter.exists.iter().flat_map(|exists| exists.on.iter().map(|pair| pair.outer)));
    out.extend(filter.start.iter().flat_map(|start| start.columns.iter().map(|(column, _)| *column)));
}

/// Whether values of the two types compare.
pub(super) fn comparable(a: ColumnType, b: ColumnType) -> bool {
    let moment = |ty| matches!(ty, ColumnType::Date | ColumnType::Timestamptz);
    a == b || (a.is_number() && b.is_number()) || (moment(a) && moment(b))
}
