//! `create index` and `drop index`

use super::{Defined, Definer, constraint::index_columns, new_name, taken};
use crate::{
    query::QueryErrorKind,
    sql::{
        place::{Place, start},
        query::order_item,
        scope::folded,
        statement::{bare_name, written_table},
    },
    store::SchemaStep,
};
use sqlparser::ast::{self, IndexType, ObjectName, Spanned};
use tidegate_wire::model::{
    Direction, Order, TableSchema,
    table_rules::{Index, IndexColumn, Unique},
};

impl Definer<'_> {
    pub(super) fn create_index(&mut self, create: &ast::CreateIndex, place: Place) -> Defined<()> {
        for (present, what) in [
            (create.predicate.is_some(), "an index with where"),
            (!create.include.is_empty(), "include"),
            (create.nulls_distinct == Some(false), "nulls not distinct"),
            (!create.with.is_empty() || !create.index_options.is_empty(), "options of an index"),
            (
                create.using.as_ref().is_some_and(|using| *using != IndexType::BTree),
                "an index other than btree",
            ),
            (!create.alter_options.is_empty() || create.r#async, "what stands after the columns"),
        ] {
            if present {
                place.unsupported(what)?;
            }
        }
        let table = written_table(&create.table_name, self.snapshot())?;
        let mut schema = TableSchema::clone(&self.schema(table));
        let columns = index_columns(&create.columns, &schema, place)?;
        let name = create.name.as_ref().map(new_name).transpose()?;
        if let Some(name) = &name
            && self.taken_names().contains(name)
        {
            if create.if_not_exists {
                return Ok(());
            }
            taken::<()>("table, constraint or index", name, place)?;
        }
        if create.unique {
            self.add_unique(&mut schema, name, Unique { name: String::new(), columns, index: true }, place)?;
        } else {
            let base = format!("{}_{}_idx", schema.name, columns.join("_"));
            let naming = super::constraint::Naming { schema: &schema, taken: self.taken_names() };
            let name = name.unwrap_or_else(|| naming.free(&base));
            let mut ordered = Vec::with_capacity(columns.len());
            for (column, written) in columns.into_iter().zip(&create.columns) {
                let (expr, order) = order_item(&written.column)?;
                let descending = order.direction == Direction::Desc;
                if order != Order::with_default_nulls(order.direction) {
                    start(expr).unsupported("nulls first or last in an index")?;
                }
                ordered.push(IndexColumn { name: column, descending });
            }
            schema.rules.indexes.push(Index { name, columns: ordered });
        }
        self.step(SchemaStep::Amend { table, schema })?;
        Ok(())
    }

    pub(super) fn drop_index(&mut self, name: &ObjectName, if_exists: bool) -> Defined<()> {
        let place = Place::from(name.span());
        let wanted = bare_name(name).unwrap_or_else(|| folded(&ast::Ident::new(name.to_string())));
        let found = self.snapshot().tables().find_map(|(table, relation)| {
            let rules = &relation.schema().rules;
            let is_it = rules.indexes.iter().any(|index| index.name == wanted)
                || rules.unique.iter().any(|rule| rule.name == wanted);
            is_it.then_some(table)
        });
        let Some(table) = found else {
            if if_exists {
                return Ok(());
            }
            let message = format_args!("there is no index {wanted}");
            return Err(place.error(QueryErrorKind::UnknownName, message).into());
        };
        let mut schema = TableSchema::clone(&self.schema(table));
        if schema.rules.unique.iter().any(|rule| rule.name == wanted && !rule.index) {
            let problem = format!("constraint {wanted} needs the index; drop the constraint instead");
            return Err(super::depends(problem).in_table(&schema.name).into());
        }
        schema.rules.indexes.retain(|index| index.name != wanted);
        schema.rules.unique.retain(|rule| rule.name != wanted);
        let cells = super::same_cells(&schema);
        self.replace_with(table, schema, cells, super::Dependents::Kept)?;
        Ok(())
    }
}
