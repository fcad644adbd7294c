//! Constraints, and the names that PostgreSQL gives those that have none.

use super::{CellSource, Defined, Definer, Dependents, column_at, new_name, taken};
use crate::sql::{
    check_condition,
    place::{Place, Result, start},
    scope::folded,
};
use crate::suggestion;
use sqlparser::ast::{self, Expr, Ident, IndexColumn, Spanned, TableConstraint};
use std::collections::HashSet;
use tidegate_wire::model::{
    ColumnSchema, ColumnType, TableSchema,
    table_rules::{Check, ForeignKey, ROW_ID, ReferentialAction, Unique},
};

/// Finds names that are free.
pub(super) struct Naming<'n> {
    pub(super) schema: &'n TableSchema,
    /// The names of tables and indexes in the database.
    pub(super) taken: HashSet<String>,
}

impl Naming<'_> {
    fn is_taken(&self, name: &str) -> bool {
        self.taken.contains(name)
            || self.schema.rules.names().any(|own| own == name)
            || (!self.schema.rules.row_id && self.schema.key_constraint() == name)
    }

    /// A name that begins like this, with the first number behind it that makes it free, if one is needed.
    pub(super) fn free(&self, base: &str) -> String {
        let numbered = (1..).map(|number| format!("{base}{number}"));
        let mut names = std::iter::once(base.to_owned()).chain(numbered);
        names.find(|name| !self.is_taken(name)).expect("numbers do not end")
    }
}

impl Definer<'_> {
    /// The names that tables and indexes have.
    pub(super) fn taken_names(&self) -> HashSet<String> {
        let mut taken = HashSet::new();
        for (_, table) in self.snapshot().tables() {
            let schema = table.schema();
            taken.insert(schema.name.clone());
            if !schema.rules.row_id {
                taken.insert(schema.key_constraint().into_owned());
            }
            taken.extend(schema.rules.unique.iter().map(|rule| rule.name.clone()));
            taken.extend(schema.rules.indexes.iter().map(|index| index.name.clone()));
        }
        taken
    }

    fn rule_name(
        &self,
        schema: &TableSchema,
        given: Option<String>,
        base: &str,
        place: Place,
    ) -> Result<String> {
        let naming = Naming { schema, taken: self.taken_names() };
        match given {
            None => Ok(naming.free(base)),
            Some(name) if naming.is_taken(&name) => taken("constraint or index", &name, place),
            Some(name) => Ok(name),
        }
    }

    /// Adds a constraint that stands beside the columns.
    pub(super) fn add_constraint(
        &self,
        schema: &mut TableSchema,
        constraint: &TableConstraint,
        place: Place,
    ) -> Defined<()> {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                plain(key.characteristics.as_ref(), place)?;
                let columns = index_columns(&key.columns, schema, place)?;
                self.add_key(schema, key.name.as_ref().map(folded), columns, place)
            }
            TableConstraint::Unique(unique) => {
                plain(unique.characteristics.as_ref(), place)?;
                if matches!(unique.nulls_distinct, ast::NullsDistinctOption::NotDistinct) {
                    place.unsupported("nulls not distinct")?;
                }
                let columns = index_columns(&unique.columns, schema, place)?;
                let rule = Unique { name: String::new(), columns, index: false };
                self.add_unique(schema, unique.name.as_ref().map(folded), rule, place)
            }
            TableConstraint::Check(check) => self.add_check(schema, check.name.as_ref().map(folded), check),
            TableConstraint::ForeignKey(key) => {
                let columns = names(&key.columns, schema)?;
                self.add_foreign_key(schema, key.name.as_ref().map(folded), columns, key, place)
            }
            other => Ok(place.unsupported(format_args!("the constraint {other}"))?),
        }
    }

    /// Makes columns the primary key, in the place of the numbers of rows.
    pub(super) fn add_key(
        &self,
        schema: &mut TableSchema,
        name: Option<String>,
        columns: Vec<String>,
        place: Place,
    ) -> Defined<()> {
        if !schema.rules.row_id {
            place.bad(format_args!("table {} has a primary key already", schema.name))?;
        }
        let default = format!("{}_pkey", schema.name);
        let name = self.rule_name(schema, name, &default, place)?;
        schema.columns.pop();
        schema.rules.row_id = false;
        schema.rules.key_name = (name != default).then_some(name);
        schema.primary_key = columns.iter().filter_map(|column| schema.column(column)).collect();
        for &column in &schema.primary_key {
            schema.columns[column].nullable = false;
        }
        Ok(())
    }

    pub(super) fn add_unique(
        &self,
        schema: &mut TableSchema,
        name: Option<String>,
        unique: Unique,
        place: Place,
    ) -> Defined<()> {
        let suffix = if unique.index { "idx" } else { "key" };
        let base = format!("{}_{}_{suffix}", schema.name, unique.columns.join("_"));
        let name = self.rule_name(schema, name, &base, place)?;
        schema.rules.unique.push(Unique { name, ..unique });
        Ok(())
    }

    /// Adds a check constraint.
    pub(super) fn add_check(
        &self,
        schema: &mut TableSchema,
        name: Option<String>,
        check: &ast::CheckConstraint,
    ) -> Defined<()> {
        let place = start(&check.expr);
        if check.no_inherit || check.enforced == Some(false) {
            place.unsupported("no inherit or not enforced")?;
        }
        let mut made =
            Check { name: String::new(), expression: check.expr.to_string(), renamed: Default::default() };
        // A condition is read from its own text; its places are those of the statement's.
        let condition = check_condition(schema, &made)
            .map_err(|error| place.error(error.kind, format_args!("check constraint: {}", error.message)))?;
        let mut columns = Vec::new();
        condition.columns(&mut columns);
        columns.sort_unstable();
        columns.dedup();
        let column = match columns.as_slice() {
            [column] => Some(schema.columns[*column].name.as_str()),
            _ => None,
        };
        let base = match column {
            Some(column) => format!("{}_{column}_check", schema.name),
            None => format!("{}_check", schema.name),
        };
        made.name = self.rule_name(schema, name, &base, place)?;
        schema.rules.checks.push(made);
        Ok(())
    }

    pub(super) fn add_foreign_key(
        &self,
        schema: &mut TableSchema,
        name: Option<String>,
        columns: Vec<String>,
        key: &ast::ForeignKeyConstraint,
        place: Place,
    ) -> Defined<()> {
        let target = Place::from(key.foreign_table.span());
        plain(key.characteristics.as_ref(), target)?;
        if key
            .match_kind
            .as_ref()
            .is_some_and(|kind| !matches!(kind, ast::ConstraintReferenceMatchKind::Simple))
        {
            target.unsupported("match full or partial")?;
        }
        let references = new_name(&key.foreign_table)?;
        let own;
        let parent = if references == schema.name {
            &*schema
        } else {
            own = match self.snapshot().table_named(&references) {
                Some((_, relation)) => TableSchema::clone(relation.schema()),
                None => {
                    let instead = suggestion::of_table(&references, self.snapshot());
                    let message = format_args!("unknown table {references}{instead}");
                    return Err(target.error(crate::query::QueryErrorKind::UnknownTable, message).into());
                }
            };
            &own
        };
        let referred: Vec<String> = if key.referred_columns.is_empty() {
            if parent.rules.row_id {
                target.bad(format_args!("table {references} has no primary key to refer to"))?;
            }
            parent.key_names().map(str::to_owned).collect()
        } else {
            names(&key.referred_columns, parent)?
        };
        if referred.len() != columns.len() {
            target.bad("the numbers of referring and referred columns differ")?;
        }
        let base = format!("{}_{}_fkey", schema.name, columns.join("_"));
        let name = self.rule_name(schema, name, &base, place)?;
        schema.rules.foreign_keys.push(ForeignKey {
            name,
            columns,
            references,
            key: referred,
            on_delete: action(key.on_delete.as_ref()),
            on_update: action(key.on_update.as_ref()),
        });
        Ok(())
    }

    /// Takes a constraint away; gives where the columns then come from.
    pub(super) fn drop_constraint(
        &mut self,
        table: crate::store::TableId,
        name: &Ident,
        if_exists: bool,
        dependents: Dependents,
    ) -> Defined<crate::store::TableId> {
        let mut schema = TableSchema::clone(&self.schema(table));
        let wanted = folded(name);
        let rules = &mut schema.rules;
        let before = rules.clone();
        rules.unique.retain(|rule| rule.index || rule.name != wanted);
        rules.checks.retain(|rule| rule.name != wanted);
        rules.foreign_keys.retain(|rule| rule.name != wanted);
        if *rules == before {
            if !rules.row_id && schema.key_constraint() == wanted {
                let cells = number_rows(&mut schema);
                let table = self.replace_with(table, schema, cells, dependents)?;
                return Ok(table);
            }
            if if_exists {
                return Ok(table);
            }
            Place::from(name.span).bad(format_args!("table {} has no constraint {wanted}", schema.name))?;
        }
        let cells = super::same_cells(&schema);
        self.replace_with(table, schema, cells, dependents)
    }

    /// Replaces a table, and sees to the foreign keys that referred to what it has no longer.
    pub(super) fn replace_with(
        &mut self,
        table: crate::store::TableId,
        schema: TableSchema,
        cells: Vec<CellSource>,
        dependents: Dependents,
    ) -> Defined<crate::store::TableId> {
        let name = schema.name.clone();
        // A foreign key of its own to itself may go with it.
        let table = self.editor.step(crate::store::SchemaStep::Replace { table, schema, cells })?;
        self.settle_referrers(&name, dependents)?;
        let table = self.snapshot().table_id(&name).or(table).expect("a replaced table goes on");
        crate::store::check_rules(self.snapshot(), table)?;
        crate::store::constraint::check_table(self.snapshot(), table)?;
        Ok(table)
    }
}

/// Gives a table numbers of rows as its key; gives where its columns come from.
pub(super) fn number_rows(schema: &mut TableSchema) -> Vec<CellSource> {
    let mut cells = super::same_cells(schema);
    cells.push(CellSource::RowId);
    number(schema);
    cells
}

/// Gives a schema a column that numbers rows as its key.
pub(super) fn number(schema: &mut TableSchema) {
    schema.rules.row_id = true;
    schema.rules.key_name = None;
    schema.primary_key = vec![schema.columns.len()];
    schema.columns.push(ColumnSchema::plain(ROW_ID, ColumnType::Int8, false));
}

fn action(action: Option<&ast::ReferentialAction>) -> ReferentialAction {
    match action {
        None | Some(ast::ReferentialAction::NoAction) => ReferentialAction::NoAction,
        Some(ast::ReferentialAction::Restrict) => ReferentialAction::Restrict,
        Some(ast::ReferentialAction::Cascade) => ReferentialAction::Cascade,
        Some(ast::ReferentialAction::SetNull) => ReferentialAction::SetNull,
        Some(ast::ReferentialAction::SetDefault) => ReferentialAction::SetDefault,
    }
}

/// Refuses what puts a check off.
fn plain(characteristics: Option<&ast::ConstraintCharacteristics>, place: Place) -> Result<()> {
    let Some(ast::ConstraintCharacteristics { deferrable, initially, enforced }) = characteristics else {
        return Ok(());
    };
    if *deferrable == Some(true)
        || matches!(initially, Some(ast::DeferrableInitial::Deferred))
        || *enforced == Some(false)
    {
        return place.unsupported("a deferrable constraint, or one that is not enforced");
    }
    Ok(())
}

/// The names of columns that are there.
fn names(columns: &[Ident], schema: &TableSchema) -> Result<Vec<String>> {
    let mut names = Vec::with_capacity(columns.len());
    for column in columns {
        column_at(schema, column)?;
        let name = folded(column);
        if names.contains(&name) {
            return Place::from(column.span).bad(format_args!("column {name} is named twice"));
        }
        names.push(name);
    }
    Ok(names)
}

/// The names of an index's columns, where it has nothing else.
pub(super) fn index_columns(
    columns: &[IndexColumn],
    schema: &TableSchema,
    place: Place,
) -> Result<Vec<String>> {
    let mut idents = Vec::with_capacity(columns.len());
    for IndexColumn { column, operator_class } in columns {
        let Expr::Identifier(ident) = &column.expr else {
            return start(&column.expr).unsupported("an index of an expression");
        };
        if operator_class.is_some() {
            return place.unsupported("an operator class");
        }
        idents.push(ident.clone());
    }
    names(&idents, schema)
}
