//! `with recursive`.

use super::{
    Binder, Lift,
    common::{Common, renamed},
    place::{Place, Result},
    query::{Bound, Ordering},
    scope::folded,
    set_operation::unified,
};
use crate::algebra::{Rel, recursion};
use sqlparser::ast::{Query, SetExpr, SetOperator, SetQuantifier, Spanned, TableAlias};
use std::{rc::Rc, sync::Arc};

impl Binder<'_> {
    /// Binds a common table expression that may read itself: a union whose second part reads what is found so far.
    pub(super) fn recursive(&mut self, alias: &TableAlias, query: &Query) -> Result<Bound> {
        if let SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, left, right } =
            query.body.as_ref()
        {
            let all = match set_quantifier {
                SetQuantifier::All => true,
                SetQuantifier::None | SetQuantifier::Distinct => false,
                _ => return Place::from(right.span()).unsupported("by name"),
            };
            let bound = self.one_deeper(query, |binder| binder.recursive_union(alias, left, right, all))?;
            if let Some(bound) = bound {
                if query.order_by.is_some() || query.limit_clause.is_some() || query.fetch.is_some() {
                    return Place::from(alias.name.span)
                        .unsupported("order by or limit inside a recursive query");
                }
                return Ok(bound);
            }
        }
        self.query(query, Lift::No, Ordering::Dropped)
    }

    /// `None` when the second part does not read what is found.
    fn recursive_union(
        &mut self,
        alias: &TableAlias,
        left: &SetExpr,
        right: &SetExpr,
        all: bool,
    ) -> Result<Option<Bound>> {
        let place = Place::from(alias.name.span);
        let name = folded(&alias.name);
        let base = self.branch(left, Lift::No)?;
        let columns = base.columns.iter().map(|column| (column.name.clone(), column.ty)).collect();
        let columns = renamed(columns, Some(alias))?;
        let working = self.workings;
        self.workings += 1;
        let types = base.rel.types();
        let rel = Arc::new(Rel::Working { working, types: types.clone() });
        let level = self.frames.len();
        self.common.push(Rc::new(Common { name: name.clone(), rel, columns, level, correlated: false }));
        let step = self.branch(right, Lift::No);
        self.common.pop();
        let step = step?;
        if !recursion::reads(&step.rel, working) {
            return Ok(None);
        }
        if let Some(what) = recursion::misuse(&step.rel, working) {
            return place.unsupported(format_args!("a recursive reference to {name} in {what}"));
        }
        let (base, step, columns) = unified(base, step, place)?;
        if let Some(at) = base.types().iter().zip(&types).position(|(both, own)| both != own) {
            return place.mismatch(format_args!(
                "column {} of {name} is {} at the start and {} in the recursive part; cast one of them",
                at + 1,
                types[at],
                base.types()[at],
            ));
        }
        let rel = Arc::new(Rel::Recursive { base, step, working, all });
        Ok(Some(Bound::unordered(rel, columns)))
    }
}
