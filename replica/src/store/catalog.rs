//! What is known of the tables together: their names, and which of them refer to which. One value is shared by all
//! snapshots between two changes of the tables, so that two snapshots with the same one have the same tables.

use super::{
    Relation, TableId,
    rules::{access, positions},
};
use crate::query::shape::Access;
use std::{collections::HashMap, sync::Arc};
use tidegate_wire::model::{
    TableSchema,
    table_rules::{ForeignKey, ReferentialAction},
};

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    names: HashMap<String, TableId>,
    /// The foreign keys of each table that has some.
    of_child: HashMap<TableId, Vec<Arc<Reference>>>,
    /// The foreign keys that refer to each table that some refer to.
    to_parent: HashMap<TableId, Vec<Arc<Reference>>>,
}

/// A foreign key with both sides looked up.
#[derive(Debug)]
pub struct Reference {
    /// Its name.
    pub name: String,
    /// The table whose rows refer.
    pub child: TableId,
    /// Its columns.
    pub columns: Vec<usize>,
    /// How its rows are found by them.
    pub child_access: Access,
    /// The table that is referred to.
    pub parent: TableId,
    /// Its columns, in the order of `columns`.
    pub key: Vec<usize>,
    /// How its rows are found by them, taken in the order of `parent_order`.
    pub parent_access: Access,
    /// Positions among `key`.
    pub parent_order: Vec<usize>,
    /// What becomes of a row whose counterpart is deleted.
    pub on_delete: ReferentialAction,
    /// What becomes of a row whose counterpart gets another key.
    pub on_update: ReferentialAction,
}

impl Catalog {
    pub(super) fn new(tables: &[Option<Arc<Relation>>]) -> Self {
        let mut catalog = Self::default();
        let live = || {
            let tables = tables.iter().enumerate();
            tables.filter_map(|(at, table)| Some((TableId(at as u32), table.as_deref()?)))
        };
        catalog.names.extend(live().map(|(id, table)| (table.schema().name.clone(), id)));
        for (child, table) in live() {
            for key in &table.schema().rules.foreign_keys {
                let parent = catalog.names.get(&key.references);
                let parent = parent.and_then(|&id| Some((id, tables[id.0 as usize].as_deref()?)));
                let Some((parent, relation)) = parent else { continue };
                if let Ok(reference) = Reference::new(child, table.schema(), key, parent, relation.schema()) {
                    let reference = Arc::new(reference);
                    catalog.of_child.entry(child).or_default().push(Arc::clone(&reference));
                    catalog.to_parent.entry(parent).or_default().push(reference);
                }
            }
        }
        catalog
    }

    pub(super) fn table_id(&self, name: &str) -> Option<TableId> {
        self.names.get(name).copied()
    }

    pub(super) fn of_child(&self, table: TableId) -> &[Arc<Reference>] {
        self.of_child.get(&table).map_or(&[], Vec::as_slice)
    }

    pub(super) fn to_parent(&self, table: TableId) -> &[Arc<Reference>] {
        self.to_parent.get(&table).map_or(&[], Vec::as_slice)
    }
}

impl Reference {
    /// A foreign key between two tables, or why there can be none.
    pub(super) fn new(
        child: TableId,
        child_schema: &TableSchema,
        foreign_key: &ForeignKey,
        parent: TableId,
        parent_schema: &TableSchema,
    ) -> Result<Self, String> {
        let ForeignKey { name, columns, references, key, on_delete, on_update } = foreign_key;
        let mut pairs = Vec::with_capacity(columns.len());
        for (column, target) in columns.iter().zip(key) {
            let Some(at) = child_schema.column(column) else {
                return Err(format!("the table has no column {column}"));
            };
            let Some(to) = parent_schema.shown().iter().position(|shown| shown.name == *target) else {
                return Err(format!("table {references} has no column {target}"));
            };
            let (own, other) = (child_schema.columns[at].ty, parent_schema.columns[to].ty);
            if own != other {
                return Err(format!("column {column} is {own} and {references}.{target} is {other}"));
            }
            pairs.push((at, to));
        }
        let is_key =
            |unique: &[usize]| unique.len() == pairs.len() && pairs.iter().all(|(_, to)| unique.contains(to));
        let unique = parent_schema.rules.unique.iter().map(|rule| positions(parent_schema, &rule.columns));
        let Some(unique) =
            std::iter::once(parent_schema.primary_key.clone()).chain(unique).find(|it| is_key(it))
        else {
            return Err(format!(
                "there is no unique constraint of table {references} on ({})",
                key.join(", ")
            ));
        };
        let parent_order =
            unique.iter().filter_map(|column| pairs.iter().position(|(_, to)| to == column)).collect();
        let (columns, key): (Vec<usize>, Vec<usize>) = pairs.iter().copied().unzip();
        Ok(Self {
            name: name.clone(),
            child,
            child_access: access(child, child_schema, &columns),
            columns,
            parent,
            parent_access: access(parent, parent_schema, &unique),
            key,
            parent_order,
            on_delete: *on_delete,
            on_update: *on_update,
        })
    }
}
