//! Grouping: keys and grouping sets, and expressions over groups instead of rows.

use super::{
    Binder,
    place::{Place, Result, start},
    query::column,
    rewrite::{Position, Rewrite},
    scope::{Found, Name, Scope, folded},
    select::Block,
    select_list::Item,
    steps::Steps,
};
use crate::{
    algebra::{Aggregate, Column, Rel},
    expr::{
        Scalar,
        typing::{Operand, Typed},
    },
};
use sqlparser::ast::{Expr, GroupByExpr};
use std::{rc::Rc, sync::Arc};
use tidegate_wire::model::{ColumnType, Value};

/// Most grouping sets of one block.
const GROUPING_SETS_MAX: usize = 4_096;

/// Most elements of a `cube`, which has a set for each of their combinations.
const CUBE_MAX: usize = 12;

/// How a block groups.
pub(super) struct Grouping {
    scope: Rc<Scope>,
    /// What groups, over the rows that are grouped.
    pub(super) keys: Vec<Typed>,
    /// The keys of each grouping set; one for a plain group by.
    sets: Vec<Vec<usize>>,
    /// Items of the select list that group by names by position or alias.
    items: Vec<(usize, usize)>,
}

impl Grouping {
    /// All rows are one group.
    pub(super) fn new(scope: Rc<Scope>) -> Self {
        Self { scope, keys: Vec::new(), sets: vec![Vec::new()], items: Vec::new() }
    }

    /// The key that an item of the select list is, where group by names it by position or alias.
    pub(super) fn key_of_item(&self, item: usize) -> Option<&Typed> {
        self.items.iter().find(|(candidate, _)| *candidate == item).map(|(_, key)| &self.keys[*key])
    }

    fn key(&mut self, key: Typed) -> usize {
        self.keys.iter().position(|known| known.scalar == key.scalar).unwrap_or_else(|| {
            self.keys.push(key);
            self.keys.len() - 1
        })
    }

    /// An expression over rows as one over their groups.
    pub(super) fn over_groups<T: Rewrite>(
        &mut self,
        of: &T,
        reads: &[(usize, Place)],
        place: Place,
    ) -> Result<T> {
        of.rewrite(&mut |scalar| self.over_group(scalar, reads, place))
    }

    /// Like [`Self::over_groups`], for what expressions need below them.
    pub(super) fn steps_over_groups(&mut self, steps: &mut Steps, reads: &[(usize, Place)]) -> Result<()> {
        steps.rewrite(&mut |place, scalar| self.over_group(scalar, reads, place))
    }

    fn over_group(
        &mut self,
        scalar: &Scalar,
        reads: &[(usize, Place)],
        place: Place,
    ) -> Result<Option<Scalar>> {
        // A constant is not a key, even one that a key comes to.
        let is_constant = matches!(scalar, Scalar::Constant(_));
        if !is_constant && let Some(key) = self.keys.iter().position(|key| key.scalar == *scalar) {
            return Ok(Some(Scalar::Column(key)));
        }
        let Scalar::Column(position) = scalar else { return Ok(None) };
        if !matches!(Position::of(*position), Position::Input(_)) {
            return Ok(Some(scalar.clone()));
        }
        if let Some(column) = self.dependent(scalar) {
            return Ok(Some(Scalar::Column(self.key(column))));
        }
        let place = reads.iter().find(|(read, _)| read == position).map_or(place, |(_, place)| *place);
        let mut columns = self.scope.tables.iter().flat_map(|table| &table.columns);
        let name = columns
            .find(|column| column.value.scalar == *scalar)
            .map_or("of a subquery", |column| column.name.as_str());
        place.bad(format_args!("column {name} must be in group by or in an aggregate"))
    }

    /// The column, if it is one of a table whose whole primary key is grouped by.
    fn dependent(&mut self, scalar: &Scalar) -> Option<Typed> {
        if self.sets.len() != 1 || self.sets[0].is_empty() {
            return None;
        }
        let grouped = |column: &Scalar| self.keys.iter().any(|key| key.scalar == *column);
        let table = self.scope.tables.iter().find(|table| {
            !table.key.is_empty()
                && table.columns.iter().any(|column| column.value.scalar == *scalar)
                && table.key.iter().all(|key| grouped(&table.columns[*key].value.scalar))
        })?;
        let column = table.columns.iter().find(|column| column.value.scalar == *scalar)?;
        let value = column.value.clone();
        // The one set has every key.
        let key = self.key(value.clone());
        if !self.sets[0].contains(&key) {
            self.sets[0].push(key);
        }
        Some(value)
    }

    /// How many relations the grouping sets make.
    pub(super) fn set_count(&self) -> usize {
        self.sets.len()
    }

    /// The keys that each `grouping()` asks about.
    pub(super) fn groupings(&self, groupings: &[(Vec<Scalar>, Place)]) -> Result<Vec<Vec<usize>>> {
        let key =
            |scalar: &Scalar, place: &Place| match self.keys.iter().position(|key| key.scalar == *scalar) {
                Some(key) => Ok(key),
                None => place.bad("the arguments of grouping are expressions of group by"),
            };
        groupings
            .iter()
            .map(|(arguments, place)| arguments.iter().map(|argument| key(argument, place)).collect())
            .collect()
    }

    /// The groups: all keys, the aggregates, then what each `grouping()` gives.
    pub(super) fn relation(
        &self,
        input: Arc<Rel>,
        aggregates: Vec<Aggregate>,
        groupings: &[Vec<usize>],
    ) -> Result<Arc<Rel>> {
        let mut keys = Vec::with_capacity(self.keys.len());
        for key in &self.keys {
            keys.push(column(key.clone(), Place::UNKNOWN)?);
        }
        let of_set = |set: &[usize]| {
            let set_keys = set.iter().map(|key| keys[*key].clone()).collect();
            let grouped = Arc::new(Rel::Aggregate {
                input: Arc::clone(&input),
                keys: set_keys,
                aggregates: aggregates.clone(),
            });
            if groupings.is_empty() && set.iter().copied().eq(0..keys.len()) {
                return grouped;
            }
            let mut columns = Vec::with_capacity(keys.len() + aggregates.len() + groupings.len());
            for (key, Column { ty, .. }) in keys.iter().enumerate() {
                let scalar = match set.iter().position(|member| *member == key) {
                    Some(position) => Scalar::Column(position),
                    None => Scalar::Constant(Value::Null),
                };
                columns.push(Column { scalar, ty: *ty });
            }
            for (index, aggregate) in aggregates.iter().enumerate() {
                columns.push(Column { scalar: Scalar::Column(set.len() + index), ty: aggregate.ty });
            }
            for arguments in groupings {
                let bits = arguments.iter().fold(0, |bits, key| bits << 1 | i64::from(!set.contains(key)));
                columns.push(Column { scalar: Scalar::Constant(Value::Int8(bits)), ty: ColumnType::Int8 });
            }
            Arc::new(Rel::Project { input: grouped, columns })
        };
        let mut sets: Vec<Arc<Rel>> = self.sets.iter().map(|set| of_set(set)).collect();
        Ok(if sets.len() == 1 { sets.remove(0) } else { Arc::new(Rel::Concat { inputs: sets }) })
    }
}

impl Binder<'_> {
    /// Binds a group by; gives whether there is one.
    pub(super) fn group_by<'q>(
        &mut self,
        group_by: &'q GroupByExpr,
        items: &[Item<'q>],
        block: &mut Block<'q>,
        grouping: &mut Grouping,
    ) -> Result<bool> {
        let exprs = match group_by {
            GroupByExpr::All(_) => return Place::UNKNOWN.unsupported("group by all"),
            GroupByExpr::Expressions(exprs, modifiers) => {
                if !modifiers.is_empty() {
                    let place = exprs.first().map_or(Place::UNKNOWN, start);
                    return place.unsupported("what stands after group by's expressions");
                }
                exprs
            }
        };
        for expr in exprs {
            let sets = self.element(expr, items, block, grouping)?;
            if grouping.sets.len().saturating_mul(sets.len()) > GROUPING_SETS_MAX {
                return start(expr)
                    .bad(format_args!("more than the limit of {GROUPING_SETS_MAX} grouping sets"));
            }
            let combined = |set: &Vec<usize>| {
                sets.iter()
                    .map(|more| {
                        let mut set = set.clone();
                        set.extend(more.iter().copied().filter(|key| !set.contains(key)).collect::<Vec<_>>());
                        set.dedup();
                        set
                    })
                    .collect::<Vec<_>>()
            };
            grouping.sets = grouping.sets.iter().flat_map(combined).collect();
        }
        Ok(!exprs.is_empty())
    }

    /// The grouping sets that one element of group by stands for.
    fn element<'q>(
        &mut self,
        expr: &'q Expr,
        items: &[Item<'q>],
        block: &mut Block<'q>,
        grouping: &mut Grouping,
    ) -> Result<Vec<Vec<usize>>> {
        Ok(match expr {
            Expr::Rollup(elements) => {
                let elements = self.composites(elements, items, block, grouping)?;
                (0..=elements.len()).rev().map(|count| elements[..count].concat()).collect()
            }
            Expr::Cube(elements) => {
                let elements = self.composites(elements, items, block, grouping)?;
                if elements.len() > CUBE_MAX {
                    return start(expr)
                        .bad(format_args!("cube has more than the limit of {CUBE_MAX} elements"));
                }
                let count = elements.len();
                let set = |bits: usize| {
                    let chosen = (0..count).filter(|element| bits & 1 << (count - 1 - element) != 0);
                    chosen.flat_map(|element| elements[element].iter().copied()).collect()
                };
                (0..1_usize << count).rev().map(set).collect()
            }
            Expr::GroupingSets(sets) => {
                let mut all = Vec::new();
                for set in sets {
                    if let [nested @ (Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_))] =
                        set.as_slice()
                    {
                        let place = start(nested);
                        all.extend(
                            self.deeper(|| place, |binder| binder.element(nested, items, block, grouping))?,
                        );
                    } else {
                        all.push(self.keys(set, items, block, grouping)?);
                    }
                }
                all
            }
            Expr::Tuple(exprs) => vec![self.keys(exprs, items, block, grouping)?],
            expr => vec![self.keys(std::slice::from_ref(expr), items, block, grouping)?],
        })
    }

    fn composites<'q>(
        &mut self,
        elements: &'q [Vec<Expr>],
        items: &[Item<'q>],
        block: &mut Block<'q>,
        grouping: &mut Grouping,
    ) -> Result<Vec<Vec<usize>>> {
        elements.iter().map(|element| self.keys(element, items, block, grouping)).collect()
    }

    fn keys<'q>(
        &mut self,
        exprs: &'q [Expr],
        items: &[Item<'q>],
        block: &mut Block<'q>,
        grouping: &mut Grouping,
    ) -> Result<Vec<usize>> {
        let mut keys = Vec::with_capacity(exprs.len());
        for expr in exprs {
            let key = self.key(expr, items, block, grouping)?;
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    fn key<'q>(
        &mut self,
        expr: &'q Expr,
        items: &[Item<'q>],
        block: &mut Block<'q>,
        grouping: &mut Grouping,
    ) -> Result<usize> {
        let place = start(expr);
        let named = match super::query::ordinal(expr, "group by", items.len())? {
            Some(item) => Some(item),
            None => alias_of_item(expr, items, &block.scope)?,
        };
        let Some(item) = named else {
            let key = self.operand(expr, block)?;
            return Ok(grouping.key(checked(key, place)?));
        };
        if let Some((_, key)) = grouping.items.iter().find(|(candidate, _)| *candidate == item) {
            return Ok(*key);
        }
        let operand = match &items[item] {
            Item::Expr(expr, _) => self.operand(expr, block)?,
            Item::Column(column, _) => Operand::Typed(column.value.clone()),
        };
        let key = grouping.key(checked(operand, place)?);
        grouping.items.push((item, key));
        Ok(key)
    }
}

fn checked(operand: Operand, place: Place) -> Result<Typed> {
    let typed = operand.settle();
    typed.column_type().map_err(|error| place.typing(error))?;
    Ok(typed)
}

/// The item of the select list whose alias a group by names. A column of the input goes before an alias.
fn alias_of_item(expr: &Expr, items: &[Item<'_>], scope: &Scope) -> Result<Option<usize>> {
    let Expr::Identifier(ident) = expr else { return Ok(None) };
    let name = folded(ident);
    if !matches!(scope.find(Name { table: None, column: &name }), Found::Nothing) {
        return Ok(None);
    }
    let named = |item: &Item<'_>| matches!(item, Item::Expr(_, Some(alias)) if *alias == name);
    let mut found = items.iter().enumerate().filter(|(_, item)| named(item));
    match (found.next(), found.next()) {
        (Some((item, _)), None) => Ok(Some(item)),
        (Some(_), Some(_)) => start(expr).bad(format_args!("group by {name} is ambiguous")),
        (None, _) => Ok(None),
    }
}
