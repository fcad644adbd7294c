//! `create table`

use super::{Defined, Definer, constraint::number, new_name, taken};
use crate::{sql::place::Place, store::SchemaStep};
use sqlparser::ast::{self, CreateTableOptions, Spanned};
use tidegate_wire::model::{TableSchema, row::COLUMNS_MAX};

impl Definer<'_> {
    pub(super) fn create_table(&mut self, create: &ast::CreateTable, place: Place) -> Defined<()> {
        let kept = ast::CreateTable {
            // Whatever else the statement says is compared with saying nothing.
            columns: Vec::new(),
            constraints: Vec::new(),
            if_not_exists: false,
            table_options: CreateTableOptions::None,
            ..create.clone()
        };
        for (present, what) in [
            (create.temporary || create.global.is_some(), "a temporary table"),
            (create.or_replace, "create or replace table"),
            (create.query.is_some(), "create table as"),
            (create.like.is_some(), "create table like"),
            (
                create.inherits.is_some() || create.partition_of.is_some() || create.partition_by.is_some(),
                "inheritance or partitions",
            ),
            (create.on_commit.is_some(), "on commit"),
            (create.external || create.transient || create.volatile || create.iceberg, "this kind of table"),
            (!matches!(create.table_options, CreateTableOptions::None), "options of a table"),
        ] {
            if present {
                place.unsupported(what)?;
            }
        }
        let bare = ast::helpers::stmt_create_table::CreateTableBuilder::new(create.name.clone()).build();
        if kept != bare {
            place.unsupported("what stands after the columns")?;
        }
        let name = new_name(&create.name)?;
        let place = Place::from(create.name.span());
        if self.snapshot().table_id(&name).is_some() {
            if create.if_not_exists {
                return Ok(());
            }
            taken::<()>("table", &name, place)?;
        }
        if self.taken_names().contains(&name) {
            taken::<()>("constraint or index", &name, place)?;
        }
        if create.columns.is_empty() {
            place.unsupported("a table without columns")?;
        }
        if create.columns.len() >= COLUMNS_MAX {
            place.bad(format_args!("more than the limit of {} columns", COLUMNS_MAX - 1))?;
        }
        let mut schema = TableSchema::plain(&name, Vec::new(), Vec::new());
        number(&mut schema);
        for column in &create.columns {
            self.add_column(&mut schema, column)?;
        }
        for constraint in &create.constraints {
            self.add_constraint(&mut schema, constraint, place)?;
        }
        drop_repeated(&mut schema);
        self.step(SchemaStep::Create { schema })?;
        Ok(())
    }
}

/// Leaves out what is unique already by the primary key or an earlier constraint on the same columns.
fn drop_repeated(schema: &mut TableSchema) {
    let mut known: Vec<Vec<String>> = vec![schema.key_names().map(str::to_owned).collect()];
    schema.rules.unique.retain(|rule| {
        let is_new = !known.contains(&rule.columns);
        known.push(rule.columns.clone());
        is_new
    });
}
