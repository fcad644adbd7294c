//! `alter table`

use super::{
    CellSource, Defined, Definer, Dependents, column_at, constraint::number, new_name, same_cells, taken,
};
use crate::{
    query::QueryErrorKind,
    sql::{check_condition, place::Place, scope::folded, statement::written_table},
    store::{SchemaStep, TableId},
};
use sqlparser::ast::{
    self, AlterColumnOperation, AlterTableOperation, DropBehavior, Ident, RenameTableNameKind, Spanned,
};
use tidegate_wire::model::TableSchema;

impl Definer<'_> {
    pub(super) fn alter_table(&mut self, alter: &ast::AlterTable, place: Place) -> Defined<()> {
        if alter.location.is_some() || alter.on_cluster.is_some() || alter.table_type.is_some() {
            place.unsupported("this kind of alter table")?;
        }
        let mut table = match written_table(&alter.name, self.snapshot()) {
            Ok(table) => table,
            Err(error) if alter.if_exists && error.kind == QueryErrorKind::UnknownTable => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for operation in &alter.operations {
            table = self.alter(table, operation, Place::from(alter.name.span()))?;
        }
        Ok(())
    }

    /// Does one thing to a table; gives what it is then.
    fn alter(&mut self, table: TableId, operation: &AlterTableOperation, place: Place) -> Defined<TableId> {
        match operation {
            AlterTableOperation::AddColumn {
                column_keyword: _,
                if_not_exists,
                column_def,
                column_position,
            } => {
                if column_position.is_some() {
                    place.unsupported("a place for a column")?;
                }
                let mut schema = TableSchema::clone(&self.schema(table));
                let exists = schema.column(&folded(&column_def.name)).is_some();
                if exists && *if_not_exists {
                    return Ok(table);
                }
                let mut cells = same_cells(&schema);
                let had_row_id = schema.rules.row_id;
                let at = self.add_column(&mut schema, column_def)?;
                let value = schema.columns[at].default.clone().unwrap_or(serde_json::Value::Null);
                cells.insert(at, CellSource::Value(value));
                if had_row_id && !schema.rules.row_id {
                    cells.pop();
                }
                self.replace(table, schema, cells)
            }
            AlterTableOperation::DropColumn {
                has_column_keyword: _,
                column_names,
                if_exists,
                drop_behavior,
            } => {
                let mut table = table;
                for name in column_names {
                    table = self.drop_column(table, name, *if_exists, dependents(*drop_behavior))?;
                }
                Ok(table)
            }
            AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                self.rename_column(table, old_column_name, new_column_name)
            }
            AlterTableOperation::RenameTable { table_name } => {
                let (RenameTableNameKind::To(name) | RenameTableNameKind::As(name)) = table_name;
                self.rename_table(table, new_name(name)?, Place::from(name.span()))
            }
            AlterTableOperation::AlterColumn { column_name, op } => self.alter_column(table, column_name, op),
            AlterTableOperation::AddConstraint { constraint, not_valid } => {
                if *not_valid {
                    place.unsupported("not valid")?;
                }
                let mut schema = TableSchema::clone(&self.schema(table));
                let had_row_id = schema.rules.row_id;
                self.add_constraint(&mut schema, constraint, place)?;
                if had_row_id == schema.rules.row_id {
                    let amended = self.step(SchemaStep::Amend { table, schema })?;
                    return Ok(amended.expect("an amended table goes on"));
                }
                let cells = same_cells(&schema);
                self.replace(table, schema, cells)
            }
            AlterTableOperation::DropConstraint { if_exists, name, drop_behavior } => {
                self.drop_constraint(table, name, *if_exists, dependents(*drop_behavior))
            }
            AlterTableOperation::RenameConstraint { old_name, new_name } => {
                self.rename_constraint(table, old_name, &folded(new_name))
            }
            other => {
                let text = other.to_string().to_lowercase();
                let words: Vec<&str> = text.split_whitespace().take(2).collect();
                Ok(place.unsupported(format_args!("alter table … {}", words.join(" ")))?)
            }
        }
    }

    fn alter_column(&mut self, table: TableId, name: &Ident, op: &AlterColumnOperation) -> Defined<TableId> {
        let place = Place::from(name.span);
        let mut schema = TableSchema::clone(&self.schema(table));
        let at = column_at(&schema, name)?;
        match op {
            AlterColumnOperation::SetNotNull => schema.columns[at].nullable = false,
            AlterColumnOperation::DropNotNull => {
                if schema.primary_key.contains(&at) {
                    place.bad(format_args!("column {name} is part of the primary key"))?;
                }
                schema.columns[at].nullable = true;
            }
            AlterColumnOperation::SetDefault { value } => {
                schema.columns[at].default = self.default(value, &schema.columns[at])?;
            }
            AlterColumnOperation::DropDefault => schema.columns[at].default = None,
            AlterColumnOperation::SetDataType { .. } => {
                place.bad(
                    "changing a column's type is not supported; add a column, update it and drop the other",
                )?;
            }
            AlterColumnOperation::AddGenerated { .. } => place.unsupported("a generated column")?,
            AlterColumnOperation::GenericOptions { .. } => place.unsupported("options of a column")?,
        }
        let cells = same_cells(&schema);
        self.replace(table, schema, cells)
    }

    fn drop_column(
        &mut self,
        table: TableId,
        name: &Ident,
        if_exists: bool,
        dependents: Dependents,
    ) -> Defined<TableId> {
        let mut schema = TableSchema::clone(&self.schema(table));
        let at = match column_at(&schema, name) {
            Ok(at) => at,
            Err(_) if if_exists => return Ok(table),
            Err(error) => return Err(error.into()),
        };
        if schema.shown().len() == 1 {
            Place::from(name.span).unsupported("a table without columns")?;
        }
        let column = schema.columns[at].name.clone();
        let reading = schema.clone();
        let rules = &mut schema.rules;
        // What is about the column goes with it.
        rules.unique.retain(|rule| !rule.columns.contains(&column));
        rules.foreign_keys.retain(|rule| {
            let is_own = rule.references == reading.name && rule.key.contains(&column);
            !rule.columns.contains(&column) && !is_own
        });
        rules.indexes.retain(|index| index.columns.iter().all(|other| other.name != column));
        rules.checks.retain(|check| {
            let mut columns = Vec::new();
            if let Ok(condition) = check_condition(&reading, check) {
                condition.columns(&mut columns);
            }
            !columns.contains(&at)
        });
        let mut cells = same_cells(&schema);
        if schema.primary_key.contains(&at) {
            number(&mut schema);
            cells.push(CellSource::RowId);
        }
        schema.columns.remove(at);
        cells.remove(at);
        for key in &mut schema.primary_key {
            *key -= usize::from(*key > at);
        }
        self.replace_with(table, schema, cells, dependents)
    }

    fn rename_column(&mut self, table: TableId, old: &Ident, new: &Ident) -> Defined<TableId> {
        let mut schema = TableSchema::clone(&self.schema(table));
        let at = column_at(&schema, old)?;
        let (old, name) = (schema.columns[at].name.clone(), folded(new));
        if schema.column(&name).is_some() {
            taken::<()>("column", &name, Place::from(new.span))?;
        }
        schema.columns[at].name.clone_from(&name);
        let renamed = |columns: &mut Vec<String>| {
            columns.iter_mut().filter(|column| **column == old).for_each(|column| column.clone_from(&name));
        };
        schema.rules.unique.iter_mut().for_each(|rule| renamed(&mut rule.columns));
        for key in &mut schema.rules.foreign_keys {
            renamed(&mut key.columns);
            if key.references == schema.name {
                renamed(&mut key.key);
            }
        }
        for column in schema.rules.indexes.iter_mut().flat_map(|index| &mut index.columns) {
            if column.name == old {
                column.name.clone_from(&name);
            }
        }
        for check in &mut schema.rules.checks {
            let written =
                check.renamed.iter().find(|(_, now)| **now == old).map(|(written, _)| written.clone());
            check.renamed.insert(written.unwrap_or_else(|| old.clone()), name.clone());
        }
        let parent = schema.name.clone();
        let cells = same_cells(&schema);
        let table = self.editor.step(SchemaStep::Replace { table, schema, cells })?;
        self.amend_referrers(&parent, |key| renamed(&mut key.key))?;
        Ok(table.expect("a replaced table goes on"))
    }

    fn rename_table(&mut self, table: TableId, name: String, place: Place) -> Defined<TableId> {
        if self.taken_names().contains(&name) {
            taken::<()>("table, constraint or index", &name, place)?;
        }
        let mut schema = TableSchema::clone(&self.schema(table));
        let old = std::mem::replace(&mut schema.name, name.clone());
        if !schema.rules.row_id && schema.rules.key_name.is_none() {
            schema.rules.key_name = Some(format!("{old}_pkey"));
        }
        for key in schema.rules.foreign_keys.iter_mut().filter(|key| key.references == old) {
            key.references.clone_from(&name);
        }
        let cells = same_cells(&schema);
        let table = self.editor.step(SchemaStep::Replace { table, schema, cells })?;
        self.amend_referrers(&old, |key| key.references.clone_from(&name))?;
        Ok(table.expect("a replaced table goes on"))
    }

    /// Lets the foreign keys of other tables follow a table that has other names.
    fn amend_referrers(
        &mut self,
        parent: &str,
        rename: impl Fn(&mut tidegate_wire::model::table_rules::ForeignKey),
    ) -> Defined<()> {
        let children: Vec<(TableId, TableSchema)> = self
            .snapshot()
            .tables()
            .filter(|(_, child)| child.schema().name != *parent)
            .filter_map(|(child, relation)| {
                let mut schema = TableSchema::clone(relation.schema());
                let keys = schema.rules.foreign_keys.iter_mut().filter(|key| key.references == parent);
                keys.for_each(&rename);
                (schema != **relation.schema()).then_some((child, schema))
            })
            .collect();
        for (table, schema) in children {
            self.editor.step(SchemaStep::Amend { table, schema })?;
        }
        Ok(())
    }

    fn rename_constraint(&mut self, table: TableId, old: &Ident, new: &str) -> Defined<TableId> {
        let mut schema = TableSchema::clone(&self.schema(table));
        let wanted = folded(old);
        let is_key = !schema.rules.row_id && schema.key_constraint() == wanted;
        if self.taken_names().contains(new) || schema.rules.names().any(|name| name == new) {
            taken::<()>("constraint or index", new, Place::from(old.span))?;
        }
        let rules = &mut schema.rules;
        let unique = rules.unique.iter_mut().map(|rule| &mut rule.name);
        let checks = rules.checks.iter_mut().map(|rule| &mut rule.name);
        let foreign = rules.foreign_keys.iter_mut().map(|rule| &mut rule.name);
        let found = unique.chain(checks).chain(foreign).find(|name| **name == wanted);
        match found {
            Some(name) => new.clone_into(name),
            None if is_key => rules.key_name = Some(new.to_owned()),
            None => {
                Place::from(old.span).bad(format_args!("table {} has no constraint {wanted}", schema.name))?
            }
        }
        self.step(SchemaStep::Amend { table, schema })?;
        Ok(table)
    }
}

fn dependents(behavior: Option<DropBehavior>) -> Dependents {
    match behavior {
        Some(DropBehavior::Cascade) => Dependents::Dropped,
        _ => Dependents::Kept,
    }
}
