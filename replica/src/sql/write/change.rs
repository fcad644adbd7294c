//! `update` and `delete`: the rows they are about, with all that is needed to write them.

use super::{Write, WriteKind, assigned, insert::written_column, is_default};
use crate::{
    algebra::{Column, Rel},
    expr::Scalar,
    sql::{
        Binder, Lift,
        expression::row,
        from::Source,
        parameters::Meeting,
        place::{Place, Result, fits, start},
        scope::parts,
        select::{Block, Clause},
        statement::written_table,
    },
    store::TableId,
};
use sqlparser::ast::{
    self, Assignment, AssignmentTarget, Expr, FromTable, ObjectName, TableFactor, TableWithJoins,
    UpdateTableFromKind,
};
use std::{rc::Rc, sync::Arc};
use tidegate_wire::model::TableSchema;

impl Binder<'_> {
    /// Binds an update.
    pub(super) fn update(&mut self, update: &ast::Update) -> Result<Write> {
        let place = Place::from(update.update_token.0.span);
        for (present, what) in [
            (update.on_cluster.is_some() || update.settings.is_some(), "on cluster or settings"),
            (update.output.is_some(), "output"),
            (update.or.is_some(), "update or"),
            (!update.order_by.is_empty() || update.limit.is_some(), "order by or limit in update"),
        ] {
            if present {
                return place.unsupported(what);
            }
        }
        let (table, schema) = self.target(&update.table, place)?;
        let mut items = vec![update.table.clone()];
        if let Some(UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)) = &update.from
        {
            items.extend(from.iter().cloned());
        }
        let Source { rel, scope, width } = self.from(&items)?;
        let mut block = Block::new(Rc::new(scope.clone()), Clause::Where);
        let (rel, wider) = self.affected(update.selection.as_ref(), &mut block, rel, width)?;
        block.clause = Clause::Set;
        let (set, values): (Vec<usize>, Vec<Scalar>) =
            self.assignments(&update.assignments, &schema, &mut block)?.into_iter().unzip();
        let applied = std::mem::take(&mut block.steps).apply(rel, wider, &|_| None)?;
        let values = applied.resolved(&values, &|_| None)?;
        let types = applied.rel.types();
        let mut columns: Vec<Column> =
            (0..width).map(|column| Column { scalar: Scalar::Column(column), ty: types[column] }).collect();
        columns.extend(
            values
                .into_iter()
                .zip(&set)
                .map(|(scalar, &column)| Column { scalar, ty: schema.columns[column].ty }),
        );
        let shown = fits(columns.len(), place)?;
        let rows = self.select_of(Arc::new(Rel::Project { input: applied.rel, columns }), shown, Vec::new());
        let returning = self.returning(update.returning.as_deref(), &scope)?;
        Ok(Write { table, kind: WriteKind::Update { rows, set }, returning })
    }

    /// Binds a delete.
    pub(super) fn delete(&mut self, delete: &ast::Delete) -> Result<Write> {
        let place = Place::from(delete.delete_token.0.span);
        for (present, what) in [
            (!delete.tables.is_empty(), "a delete from several tables"),
            (delete.on_cluster.is_some() || delete.settings.is_some(), "on cluster or settings"),
            (delete.output.is_some(), "output"),
            (!delete.order_by.is_empty() || delete.limit.is_some(), "order by or limit in delete"),
        ] {
            if present {
                return place.unsupported(what);
            }
        }
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        let [target] = from.as_slice() else {
            return place.unsupported("a delete from several tables");
        };
        let (table, _) = self.target(target, place)?;
        let mut items = vec![target.clone()];
        items.extend(delete.using.iter().flatten().cloned());
        let Source { rel, scope, width } = self.from(&items)?;
        let mut block = Block::new(Rc::new(scope.clone()), Clause::Where);
        let (rel, _) = self.affected(delete.selection.as_ref(), &mut block, rel, width)?;
        let types = rel.types();
        let columns =
            (0..width).map(|column| Column { scalar: Scalar::Column(column), ty: types[column] }).collect();
        let rows = self.select_of(Arc::new(Rel::Project { input: rel, columns }), width, Vec::new());
        let returning = self.returning(delete.returning.as_deref(), &scope)?;
        Ok(Write { table, kind: WriteKind::Delete { rows }, returning })
    }

    /// The table that an update or delete writes to.
    fn target(&self, target: &TableWithJoins, place: Place) -> Result<(TableId, Arc<TableSchema>)> {
        let TableFactor::Table { name, .. } = &target.relation else {
            return place.unsupported("writing to what is not a table");
        };
        if !target.joins.is_empty() {
            return place.bad("a join as what is written to is not supported; use from or using");
        }
        if self.is_common(name) {
            return place
                .bad(format_args!("{name} is a common table expression, which cannot be written to"));
        }
        let table = written_table(name, self.snapshot)?;
        Ok((table, self.schema_of(table)))
    }

    fn is_common(&self, name: &ObjectName) -> bool {
        let parts = parts(name).unwrap_or_default();
        parts.len() == 1
            && self.common.iter().any(|common| common.name == crate::sql::scope::folded(parts[0]))
    }

    fn affected<'q>(
        &mut self,
        selection: Option<&'q Expr>,
        block: &mut Block<'q>,
        rel: Arc<Rel>,
        width: usize,
    ) -> Result<(Arc<Rel>, usize)> {
        match selection {
            Some(selection) => self.selection(selection, block, rel, width, Lift::Yes),
            None => Ok((rel, width)),
        }
    }

    /// Columns and their new values.
    pub(super) fn assignments<'q>(
        &mut self,
        assignments: &'q [Assignment],
        schema: &TableSchema,
        block: &mut Block<'q>,
    ) -> Result<Vec<(usize, Scalar)>> {
        let mut set: Vec<(usize, Scalar)> = Vec::with_capacity(assignments.len());
        for Assignment { target, value } in assignments {
            let pairs: Vec<(&ObjectName, &'q Expr)> = match target {
                AssignmentTarget::ColumnName(name) => vec![(name, value)],
                AssignmentTarget::Tuple(names) => match row(value) {
                    Some(values) if values.len() == names.len() => names.iter().zip(values).collect(),
                    Some(_) => return start(value).bad("the numbers of columns and of values differ"),
                    // Of one column the parentheses around the value are just that.
                    None if names.len() == 1 => names.iter().map(|name| (name, value)).collect(),
                    None => return start(value).unsupported("several columns set to a subquery"),
                },
            };
            for (name, value) in pairs {
                let column = written_column(name, schema)?;
                if set.iter().any(|(other, _)| *other == column) {
                    return start(value).bad(format_args!("column {name} is set more than once"));
                }
                let scalar = self.new_value(value, column, schema, block)?;
                set.push((column, scalar));
            }
        }
        Ok(set)
    }

    fn new_value<'q>(
        &mut self,
        value: &'q Expr,
        column: usize,
        schema: &TableSchema,
        block: &mut Block<'q>,
    ) -> Result<Scalar> {
        let column = &schema.columns[column];
        if is_default(value) {
            return Ok(Scalar::Constant(column.default_value()));
        }
        let term = self.term(value, block)?;
        let operand = term.beside(Some(crate::expr::typing::Type::Column(column.ty)), Meeting::Own)?;
        assigned(operand, column, start(value))
    }
}
