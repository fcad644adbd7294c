//! `insert`: new rows from values or a query, and what is done where a row is there already.

use super::{Arbiter, ConflictAction, NewRows, OnConflict, Write, WriteKind, assigned, is_default};
use crate::{
    algebra::{Column, Rel, Select},
    expr::{
        Scalar,
        typing::{Operand, Type},
    },
    query::QueryErrorKind,
    sql::{
        Binder, Lift,
        check::no_steps,
        common::scope_table,
        from::unit,
        parameters::Meeting,
        place::{Place, Result, start},
        query::Ordering,
        scope::{Scope, folded, simple},
        select::{Block, Clause},
        statement::written_table,
    },
    store::{TableId, UniqueRule},
    suggestion,
};
use sqlparser::ast::{
    self, ConflictTarget, DoUpdate, Expr, ObjectName, OnConflictAction, OnInsert, Query, SetExpr, Spanned,
    TableObject,
};
use std::{rc::Rc, sync::Arc};
use tidegate_wire::model::{Order, TableSchema};

impl Binder<'_> {
    /// Binds an insert.
    pub(super) fn insert(&mut self, insert: &ast::Insert) -> Result<Write> {
        let place = Place::from(insert.insert_token.0.span);
        for (present, what) in [
            (insert.or.is_some() || insert.ignore || insert.replace_into, "insert or replace"),
            (insert.by_name, "by name"),
            (insert.overwrite || insert.has_table_keyword, "insert overwrite or table"),
            (!insert.assignments.is_empty(), "set in insert"),
            (insert.partitioned.is_some() || !insert.after_columns.is_empty(), "partition"),
            (insert.overriding.is_some(), "overriding"),
            (insert.output.is_some(), "output"),
            (
                insert.priority.is_some() || insert.insert_alias.is_some(),
                "what stands before or after the values",
            ),
            (insert.settings.is_some() || insert.format_clause.is_some(), "settings or format"),
            (insert.multi_table_insert_type.is_some(), "an insert into several tables"),
        ] {
            if present {
                return place.unsupported(what);
            }
        }
        let TableObject::TableName(name) = &insert.table else {
            return place.unsupported("an insert into what is not a table");
        };
        let table = written_table(name, self.snapshot)?;
        let schema = self.schema_of(table);
        let columns = self.target_columns(&insert.columns, &schema)?;
        let rows = match &insert.source {
            None => vec![NewRows::Values(defaults(&schema))],
            Some(query) => self.new_rows(query, &schema, &columns, !insert.columns.is_empty(), place)?,
        };
        let alias = insert.table_alias.as_ref().map(|alias| folded(&alias.alias));
        let shown = alias.unwrap_or_else(|| schema.name.clone());
        let target = row_scope(&shown, &schema);
        let on_conflict = match &insert.on {
            None => None,
            Some(OnInsert::OnConflict(on)) => Some(self.on_conflict(on, table, &schema, &target, place)?),
            Some(_) => return place.unsupported("on duplicate key update"),
        };
        let returning = self.returning(insert.returning.as_deref(), &target)?;
        Ok(Write { table, kind: WriteKind::Insert { rows, on_conflict }, returning })
    }

    /// The schema of a table that is there.
    pub(super) fn schema_of(&self, table: TableId) -> Arc<TableSchema> {
        Arc::clone(self.snapshot.table(table).expect("a name means a table that is there").schema())
    }

    fn target_columns(&self, names: &[ObjectName], schema: &TableSchema) -> Result<Vec<usize>> {
        if names.is_empty() {
            return Ok((0..schema.shown().len()).collect());
        }
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            let column = written_column(name, schema)?;
            if columns.contains(&column) {
                return Place::from(name.span()).bad(format_args!("column {name} is named more than once"));
            }
            columns.push(column);
        }
        Ok(columns)
    }

    fn new_rows(
        &mut self,
        query: &Query,
        schema: &TableSchema,
        columns: &[usize],
        listed: bool,
        place: Place,
    ) -> Result<Vec<NewRows>> {
        let count = |given: usize, place: Place| {
            if given > columns.len() {
                return place.bad("insert has more expressions than target columns");
            }
            if given < columns.len() && listed {
                return place.bad("insert has more target columns than expressions");
            }
            Ok(())
        };
        let plain = query.with.is_none()
            && query.order_by.is_none()
            && query.limit_clause.is_none()
            && query.fetch.is_none()
            && query.locks.is_empty();
        if let (SetExpr::Values(values), true) = (query.body.as_ref(), plain) {
            let width = values.rows.first().map_or(0, |row| row.content.len());
            let mut rows = Vec::with_capacity(values.rows.len());
            for row in &values.rows {
                let here = Place::from(row.opening_token.0.span);
                if row.content.len() != width {
                    return here.bad("the rows of values have different lengths");
                }
                count(width, here)?;
                rows.push(self.row_of_values(&row.content, schema, columns)?);
            }
            return Ok(rows);
        }
        let bound = self.query(query, Lift::No, Ordering::Kept)?;
        count(bound.columns.len(), place)?;
        let mut cells = defaults(schema);
        for (at, (&column, output)) in columns.iter().zip(&bound.columns).enumerate() {
            let operand = match &output.literal {
                Some(literal) => Operand::Unknown(literal.clone()),
                None => Operand::typed(Scalar::Column(at), output.ty),
            };
            cells[column] = assigned(operand, &schema.columns[column], output.place)?;
        }
        // What only orders the rows goes along behind their cells.
        let types = bound.rel.types();
        let order: Vec<(usize, Order)> = bound
            .order
            .iter()
            .enumerate()
            .map(|(at, (_, order))| (schema.columns.len() + at, *order))
            .collect();
        let mut projected = typed(cells, schema);
        projected.extend(
            bound
                .order
                .iter()
                .map(|&(column, _)| Column { scalar: Scalar::Column(column), ty: types[column] }),
        );
        let rel = Arc::new(Rel::Project { input: bound.rel, columns: projected });
        Ok(vec![NewRows::Select(self.select_of(rel, schema.columns.len(), order))])
    }

    fn row_of_values(&mut self, exprs: &[Expr], schema: &TableSchema, columns: &[usize]) -> Result<NewRows> {
        let mut block = Block::new(Rc::new(Scope::default()), Clause::Set);
        let mut cells = defaults(schema);
        for (&column, expr) in columns.iter().zip(exprs) {
            if !is_default(expr) {
                let column_schema = &schema.columns[column];
                let term = self.term(expr, &mut block)?;
                let operand = term.beside(Some(Type::Column(column_schema.ty)), Meeting::Own)?;
                cells[column] = assigned(operand, column_schema, start(expr))?;
            }
        }
        if block.steps.is_empty() {
            return Ok(NewRows::Values(cells));
        }
        let applied = std::mem::take(&mut block.steps).apply(unit(), 0, &|_| None)?;
        let cells = applied.resolved(&cells, &|_| None)?;
        let rel = Arc::new(Rel::Project { input: applied.rel, columns: typed(cells, schema) });
        Ok(NewRows::Select(self.select_of(rel, schema.columns.len(), Vec::new())))
    }

    /// A select of a relation's first columns.
    pub(super) fn select_of(&mut self, rel: Arc<Rel>, shown: usize, order: Vec<(usize, Order)>) -> Select {
        let names = (0..shown).map(|column| format!("column{column}")).collect();
        Select { rel, names, order, slots: std::mem::take(&mut self.slots) }
    }

    fn on_conflict(
        &mut self,
        on: &ast::OnConflict,
        table: TableId,
        schema: &TableSchema,
        target: &Scope,
        place: Place,
    ) -> Result<OnConflict> {
        let place = self.word("conflict", place);
        let relation = self.snapshot.table(table).expect("a name means a table that is there");
        // A number that the store gives is never there already.
        let key = (!schema.rules.row_id).then(|| UniqueRule {
            name: schema.key_constraint().into_owned(),
            columns: schema.primary_key.clone(),
            access: crate::query::shape::Access::Primary,
        });
        let rules: Vec<UniqueRule> = key.into_iter().chain(relation.rules().unique.iter().cloned()).collect();
        let rules = match &on.conflict_target {
            None => rules,
            Some(ConflictTarget::OnConstraint(name)) => {
                let wanted = simple(name).unwrap_or_default();
                let is_index = schema.rules.unique.iter().any(|rule| rule.index && rule.name == wanted);
                let rule = rules.into_iter().find(|rule| rule.name == wanted && !is_index);
                let Some(rule) = rule else {
                    return place.bad(format_args!(
                        "table {} has no primary key or unique constraint named {wanted}",
                        schema.name
                    ));
                };
                vec![rule]
            }
            Some(ConflictTarget::Columns { columns, predicate: None }) => {
                let mut wanted = Vec::with_capacity(columns.len());
                for ident in columns {
                    wanted.push(column_named(&folded(ident), schema, Place::from(ident.span))?);
                }
                wanted.sort_unstable();
                wanted.dedup();
                let is_wanted = |rule: &UniqueRule| {
                    let mut columns = rule.columns.clone();
                    columns.sort_unstable();
                    columns == wanted
                };
                let rules: Vec<_> = rules.into_iter().filter(is_wanted).collect();
                if rules.is_empty() {
                    return place
                        .bad("there is no unique or primary key constraint on the columns of on conflict");
                }
                rules
            }
            Some(ConflictTarget::Columns { .. }) => return place.unsupported("on conflict (…) where"),
        };
        let arbiters =
            rules.into_iter().map(|rule| Arbiter { columns: rule.columns, access: rule.access }).collect();
        let action = match &on.action {
            OnConflictAction::DoNothing => ConflictAction::Nothing,
            OnConflictAction::DoUpdate(_) if on.conflict_target.is_none() => {
                return place.bad("on conflict do update names the columns or constraint of the conflict");
            }
            OnConflictAction::DoUpdate(DoUpdate { assignments, selection }) => {
                let excluded = row_scope("excluded", schema).shifted(schema.columns.len());
                let mut scope = target.clone();
                scope.tables.extend(excluded.tables);
                let mut block = Block::new(Rc::new(scope), Clause::Set);
                let set = self.assignments(assignments, schema, &mut block)?;
                let filter = match selection {
                    Some(selection) => Some(self.condition(selection, &mut block)?),
                    None => None,
                };
                no_steps(&block)?;
                ConflictAction::Update { set, filter }
            }
        };
        Ok(OnConflict { arbiters, action })
    }
}

/// A scope of a table's shown columns, which begin a row.
pub(super) fn row_scope(name: &str, schema: &TableSchema) -> Scope {
    let columns =
        schema.shown().iter().map(|column| (column.name.clone(), Type::Column(column.ty))).collect();
    Scope::of(scope_table(Some(name.to_owned()), columns, Vec::new()))
}

/// What the columns of a new row hold that says nothing of them.
fn defaults(schema: &TableSchema) -> Vec<Scalar> {
    schema.columns.iter().map(|column| Scalar::Constant(column.default_value())).collect()
}

fn typed(cells: Vec<Scalar>, schema: &TableSchema) -> Vec<Column> {
    cells.into_iter().zip(&schema.columns).map(|(scalar, column)| Column { scalar, ty: column.ty }).collect()
}

/// The column that a name means to a write.
pub(super) fn written_column(name: &ObjectName, schema: &TableSchema) -> Result<usize> {
    let place = Place::from(name.span());
    match simple(name) {
        Some(name) => column_named(&name, schema, place),
        None => place.unsupported("a part of a column"),
    }
}

fn column_named(name: &str, schema: &TableSchema, place: Place) -> Result<usize> {
    schema.shown().iter().position(|column| column.name == name).ok_or_else(|| {
        let instead = suggestion::of_column(name, schema);
        let message = format_args!("table {} has no column {name}{instead}", schema.name);
        place.error(QueryErrorKind::UnknownColumn, message)
    })
}
