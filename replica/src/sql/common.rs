//! Common table expressions: each is bound once, and those who read it share its relation.

use super::{
    Binder, Lift,
    place::{Place, Result},
    query::Ordering,
    scope::{ScopeColumn, ScopeTable, folded},
};
use crate::{
    algebra::Rel,
    expr::{
        Scalar,
        typing::{Type, Typed},
    },
};
use sqlparser::ast::{Cte, TableAlias, TableAliasColumnDef, With};
use std::{rc::Rc, sync::Arc};

/// Columns with their names.
pub(super) type Named = Vec<(String, Type)>;

/// A bound common table expression.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) name: String,
    pub(super) rel: Arc<Rel>,
    pub(super) columns: Named,
    /// How many subqueries stand around it.
    pub(super) level: usize,
    /// Whether it reads the row outside the innermost of them.
    pub(super) correlated: bool,
}

impl Binder<'_> {
    /// Binds the expressions of a `with`; they stay in scope until the caller drops them.
    pub(super) fn common_tables(&mut self, with: &With) -> Result<()> {
        let With { with_token: _, recursive, cte_tables } = with;
        let first = self.common.len();
        for cte in cte_tables {
            let Cte { alias, query, from, materialized: _, closing_paren_token: _ } = cte;
            if let Some(from) = from {
                return Place::from(from.span).unsupported("from after a common table expression");
            }
            let place = Place::from(alias.name.span);
            let name = folded(&alias.name);
            if self.common[first..].iter().any(|common| common.name == name) {
                return place.bad(format_args!("with names {name} more than once"));
            }
            let reads = self.frames.last().map_or(0, |frame| frame.reads);
            let bound = if *recursive {
                self.recursive(alias, query)?
            } else {
                self.query(query, Lift::No, Ordering::Dropped)?
            };
            let columns = bound.columns.into_iter().map(|column| (column.name, column.ty)).collect();
            let columns = renamed(columns, Some(alias))?;
            let correlated = self.frames.last().map_or(0, |frame| frame.reads) > reads;
            let level = self.frames.len();
            self.common.push(Rc::new(Common { name, rel: bound.rel, columns, level, correlated }));
        }
        Ok(())
    }

    /// The common table expression of a name, if there is one, as a table of a from clause.
    pub(super) fn common_table(&self, name: &str, place: Place) -> Result<Option<(Arc<Rel>, Named)>> {
        let Some(common) = self.common.iter().rev().find(|common| common.name == name) else {
            return Ok(None);
        };
        if matches!(*common.rel, Rel::Working { .. }) && common.level != self.frames.len() {
            return place.unsupported(format_args!("a recursive reference to {name} in a subquery"));
        }
        if common.correlated && common.level != self.frames.len() {
            return place.unsupported(format_args!(
                "{name}, which reads an outer row, inside a further subquery or lateral"
            ));
        }
        Ok(Some((Arc::clone(&common.rel), common.columns.clone())))
    }
}

/// Columns under the names that an alias gives them.
pub(super) fn renamed(mut columns: Named, alias: Option<&TableAlias>) -> Result<Named> {
    let Some(TableAlias { explicit: _, name, columns: names, at }) = alias else { return Ok(columns) };
    if let Some(at) = at {
        return Place::from(at.span).unsupported("at after an alias");
    }
    if names.len() > columns.len() {
        return Place::from(name.span).bad(format_args!(
            "{} has {} columns, but {} names are given",
            folded(name),
            columns.len(),
            names.len()
        ));
    }
    for (column, TableAliasColumnDef { name, data_type }) in columns.iter_mut().zip(names) {
        if data_type.is_some() {
            return Place::from(name.span).unsupported("a type in a list of columns");
        }
        column.0 = folded(name);
    }
    Ok(columns)
}

/// The table of a scope whose columns are a relation's.
pub(super) fn scope_table(name: Option<String>, columns: Named, key: Vec<usize>) -> ScopeTable {
    let columns = columns
        .into_iter()
        .enumerate()
        .map(|(column, (name, ty))| ScopeColumn { name, value: Typed { scalar: Scalar::Column(column), ty } })
        .collect();
    ScopeTable { name, columns, key }
}
