//! The from clause: tables, derived tables and joins.
//!
//! Items separated by commas are joined to the left of those that follow, so that a lateral item reads them all. An item
//! with a right or full join stands by itself first.

use super::{
    Binder, COLUMNS_PER_STEP, Lift,
    common::{Named, renamed, scope_table},
    parse,
    place::{Place, Result, fits},
    query::Ordering,
    scope::{Found, Name, Scope, ScopeColumn, folded, parts, simple},
    select::{Block, Clause},
    steps::Steps,
};
use crate::{
    algebra::{JoinKind, Rel},
    expr::{
        Condition,
        typing::{Operand, Type, Typed, binary, call, unify},
    },
    query::{Parameters, QueryErrorKind},
    store::ViewDefinition,
    suggestion,
};
use serde_json::Map;
use sqlparser::ast::{
    Join, JoinConstraint, JoinOperator, ObjectName, Query, Spanned, Statement, TableAlias, TableFactor,
    TableWithJoins,
};
use std::{rc::Rc, sync::Arc};

/// A relation with the names of its columns.
pub(super) struct Source {
    pub(super) rel: Arc<Rel>,
    pub(super) scope: Scope,
    pub(super) width: usize,
}

/// What has been joined so far.
struct Joined {
    /// Nothing yet: `None`.
    rel: Option<Arc<Rel>>,
    width: usize,
    /// The names of items before this one, which only lateral subqueries read.
    before: Scope,
    /// The names of this item.
    own: Scope,
    /// Whether there are items before that a lateral subquery could name and this relation does not hold.
    apart: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Inner,
    Left,
    Right,
    Full,
}

/// One row without columns.
pub(super) fn unit() -> Arc<Rel> {
    Arc::new(Rel::Values { types: Vec::new(), rows: vec![Vec::new()] })
}

impl Binder<'_> {
    /// Binds a from clause.
    pub(super) fn from(&mut self, items: &[TableWithJoins]) -> Result<Source> {
        let mut joined =
            Joined { rel: None, width: 0, before: Scope::default(), own: Scope::default(), apart: false };
        for TableWithJoins { relation, joins } in items {
            let own = std::mem::take(&mut joined.own);
            joined.before = joined.before.and(&own);
            if joins.iter().all(|join| keeps_left(&join.join_operator)) {
                self.join(&mut joined, relation, Side::Inner, &JoinConstraint::None)?;
                self.joins(&mut joined, joins)?;
            } else {
                let apart = joined.rel.is_some();
                let source = self.item(relation, joins, apart)?;
                fits(joined.width + source.width, start_of(relation))?;
                add(&mut joined, source);
            }
            if let Some(name) = joined.before.common_table(&joined.own) {
                return start_of(relation)
                    .bad(format_args!("table name {name} stands in from more than once; give it an alias"));
            }
        }
        let scope = joined.before.and(&joined.own);
        Ok(Source { rel: joined.rel.unwrap_or_else(unit), scope, width: joined.width })
    }

    /// An item by itself.
    fn item(&mut self, relation: &TableFactor, joins: &[Join], apart: bool) -> Result<Source> {
        let (before, own) = (Scope::default(), Scope::default());
        let mut joined = Joined { rel: None, width: 0, before, own, apart };
        self.join(&mut joined, relation, Side::Inner, &JoinConstraint::None)?;
        self.joins(&mut joined, joins)?;
        Ok(Source { rel: joined.rel.unwrap_or_else(unit), scope: joined.own, width: joined.width })
    }

    fn joins(&mut self, joined: &mut Joined, joins: &[Join]) -> Result<()> {
        for Join { relation, global, join_operator } in joins {
            let place = start_of(relation);
            if *global {
                return place.unsupported("a global join");
            }
            let (side, constraint) = match join_operator {
                JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => (Side::Inner, constraint),
                JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
                    (Side::Left, constraint)
                }
                JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
                    (Side::Right, constraint)
                }
                JoinOperator::FullOuter(constraint) => (Side::Full, constraint),
                JoinOperator::CrossJoin(constraint @ JoinConstraint::None) => {
                    self.join(joined, relation, Side::Inner, constraint)?;
                    continue;
                }
                JoinOperator::CrossJoin(_) => return place.bad("a cross join has no condition"),
                JoinOperator::Semi(_)
                | JoinOperator::LeftSemi(_)
                | JoinOperator::RightSemi(_)
                | JoinOperator::Anti(_)
                | JoinOperator::LeftAnti(_)
                | JoinOperator::RightAnti(_)
                | JoinOperator::CrossApply
                | JoinOperator::OuterApply
                | JoinOperator::AsOf { match_condition: _, constraint: _ }
                | JoinOperator::StraightJoin(_)
                | JoinOperator::ArrayJoin
                | JoinOperator::LeftArrayJoin
                | JoinOperator::InnerArrayJoin => return place.unsupported("this kind of join"),
            };
            if matches!(constraint, JoinConstraint::None) {
                return place.bad("a join needs on, using or natural");
            }
            self.join(joined, relation, side, constraint)?;
        }
        Ok(())
    }

    /// Joins one more relation.
    fn join(
        &mut self,
        joined: &mut Joined,
        relation: &TableFactor,
        side: Side,
        constraint: &JoinConstraint,
    ) -> Result<()> {
        let place = start_of(relation);
        self.relation(place)?;
        let columns = joined.before.columns.len() + joined.own.columns.len();
        self.charge(columns / COLUMNS_PER_STEP, place)?;
        let mut subquery = None;
        let right = match relation {
            TableFactor::Derived { lateral: true, subquery: query, alias, sample } => {
                if sample.is_some() {
                    return place.unsupported("tablesample");
                }
                if joined.apart {
                    return place.unsupported("lateral beside a right or full join");
                }
                if matches!(side, Side::Right | Side::Full) {
                    return place.bad("lateral cannot be joined by a right or full join");
                }
                let outer = Rc::new(joined.before.and(&joined.own));
                let (bound, columns) = self.subquery(outer, query)?;
                let columns = columns.into_iter().map(|column| (column.name, column.ty)).collect();
                let source = derived(Arc::clone(&bound.rel), columns, alias.as_ref())?;
                if !bound.domain.is_empty() {
                    subquery = Some(bound);
                }
                source
            }
            relation => self.factor(relation, joined.apart || joined.rel.is_some())?,
        };
        if let Some(name) = joined.own.common_table(&right.scope) {
            return place
                .bad(format_args!("table name {name} stands in from more than once; give it an alias"));
        }
        let Some(left) = joined.rel.take() else {
            joined.rel = Some(match subquery {
                Some(subquery) => Arc::new(Rel::Lateral {
                    kind: JoinKind::Inner,
                    input: unit(),
                    subquery,
                    condition: Condition::Constant(Some(true)),
                }),
                None => right.rel,
            });
            joined.width = right.width;
            joined.own = right.scope;
            return Ok(());
        };
        let width = fits(joined.width + right.width, place)?;
        let (left_scope, right_scope) = if side == Side::Right {
            (std::mem::take(&mut joined.own).shifted(right.width), right.scope)
        } else {
            (std::mem::take(&mut joined.own), right.scope.shifted(joined.width))
        };
        let (condition, own, steps) = self.constraint(constraint, left_scope, right_scope, side, place)?;
        joined.own = own;
        joined.width = width;
        let kind = match side {
            Side::Inner => JoinKind::Inner,
            Side::Left | Side::Right => JoinKind::Left,
            Side::Full => JoinKind::Full,
        };
        let join = |condition| match subquery {
            Some(subquery) => Rel::Lateral { kind, input: left, subquery, condition },
            None if side == Side::Right => Rel::Join { kind, left: right.rel, right: left, condition },
            None => Rel::Join { kind, left, right: right.rel, condition },
        };
        joined.rel = Some(match steps {
            steps if steps.is_empty() => Arc::new(join(condition)),
            steps if side != Side::Inner => {
                return steps.place().unsupported("a subquery in the condition of an outer join");
            }
            steps => {
                let rel = Arc::new(join(Condition::Constant(Some(true))));
                let applied = steps.apply(rel, width, &|_| None)?;
                let condition = applied.resolved(&condition, &|_| None)?;
                joined.width = applied.width;
                Arc::new(Rel::Filter { input: applied.rel, condition })
            }
        });
        Ok(())
    }

    /// The condition of a join, the names after it, and what the condition needs.
    fn constraint(
        &mut self,
        constraint: &JoinConstraint,
        left: Scope,
        right: Scope,
        side: Side,
        place: Place,
    ) -> Result<(Condition, Scope, Steps)> {
        match constraint {
            JoinConstraint::None => Ok((Condition::Constant(Some(true)), left.and(&right), Steps::default())),
            JoinConstraint::On(expr) => {
                let own = left.and(&right);
                let mut block = Block::new(Rc::new(own.clone()), Clause::On);
                let condition = self.condition(expr, &mut block)?;
                Ok((condition, own, block.steps))
            }
            JoinConstraint::Using(names) => {
                let mut columns = Vec::with_capacity(names.len());
                for name in names {
                    match simple(name) {
                        Some(column) => columns.push((column, Place::from(name.span()))),
                        None => return Place::from(name.span()).bad("using takes names of columns"),
                    }
                }
                let (condition, own) = merged(&columns, &left, &right, side)?;
                Ok((condition, own, Steps::default()))
            }
            JoinConstraint::UsingAlias(_, alias) => {
                Place::from(alias.span).unsupported("an alias after using")
            }
            JoinConstraint::Natural => {
                let common =
                    |column: &&ScopeColumn| right.columns.iter().any(|other| other.name == column.name);
                let columns: Vec<_> =
                    left.columns.iter().filter(common).map(|column| (column.name.clone(), place)).collect();
                let (condition, own) = merged(&columns, &left, &right, side)?;
                Ok((condition, own, Steps::default()))
            }
        }
    }

    /// A relation of a from clause. `apart` says whether there is something before it that lateral would read.
    fn factor(&mut self, factor: &TableFactor, apart: bool) -> Result<Source> {
        let place = start_of(factor);
        match factor {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_directives,
                inheritance,
            } => {
                if *with_ordinality {
                    return place.unsupported("with ordinality");
                }
                if sample.is_some() {
                    return place.unsupported("tablesample");
                }
                if inheritance.is_some() {
                    return place.unsupported("only or * with a table");
                }
                if !with_hints.is_empty()
                    || version.is_some()
                    || !partitions.is_empty()
                    || json_path.is_some()
                    || !index_directives.is_empty()
                {
                    return place.unsupported("what stands after the table's name");
                }
                match args {
                    Some(arguments) => self.table_function(name, arguments, alias.as_ref(), place),
                    None => self.table(name, alias.as_ref()),
                }
            }
            TableFactor::Derived { lateral: _, subquery, alias, sample } => {
                if sample.is_some() {
                    return place.unsupported("tablesample");
                }
                self.derived_table(subquery, alias.as_ref())
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let TableWithJoins { relation, joins } = table_with_joins.as_ref();
                let source = self.deeper(|| place, |binder| binder.item(relation, joins, apart))?;
                let Some(alias) = alias else { return Ok(source) };
                let columns = source
                    .scope
                    .columns
                    .iter()
                    .map(|column| (column.name.clone(), column.value.ty))
                    .collect();
                let names = renamed(columns, Some(alias))?;
                let columns = names
                    .into_iter()
                    .zip(source.scope.columns)
                    .map(|((name, _), column)| ScopeColumn { name, value: column.value })
                    .collect();
                let table =
                    super::scope::ScopeTable { name: Some(folded(&alias.name)), columns, key: Vec::new() };
                Ok(Source { scope: Scope::of(table), ..source })
            }
            TableFactor::TableFunction { expr: _, alias: _ }
            | TableFactor::Function { lateral: _, name: _, args: _, with_ordinality: _, alias: _ }
            | TableFactor::UNNEST { .. } => place.unsupported("a function in from"),
            TableFactor::JsonTable { .. }
            | TableFactor::OpenJsonTable { .. }
            | TableFactor::Pivot { .. }
            | TableFactor::Unpivot { .. }
            | TableFactor::UnpivotExpr { .. }
            | TableFactor::MatchRecognize { .. }
            | TableFactor::XmlTable { .. }
            | TableFactor::SemanticView { .. } => place.unsupported("this kind of from item"),
        }
    }

    /// A stored table or a common table expression, under its name or an alias.
    pub(super) fn table(&mut self, name: &ObjectName, alias: Option<&TableAlias>) -> Result<Source> {
        let place = Place::from(name.span());
        let unknown = |name: &str| {
            let common = self.common.iter().map(|common| common.name.as_str());
            let instead = suggestion::of_relation(name, self.snapshot, common);
            place.error(QueryErrorKind::UnknownTable, format_args!("unknown table {name}{instead}"))
        };
        let table = match parts(name).as_deref() {
            Some([table]) => folded(table),
            Some([schema, table]) if folded(schema) == "public" => folded(table),
            _ => return Err(unknown(&name.to_string())),
        };
        let shown = alias.map_or_else(|| table.clone(), |alias| folded(&alias.name));
        if let Some([_]) = parts(name).as_deref()
            && let Some((rel, columns)) = self.common_table(&table, place)?
        {
            return Ok(source(rel, renamed(columns, alias)?, Some(shown), Vec::new()));
        }
        let Some(id) = self.snapshot.table_id(&table) else {
            return match self.snapshot.view(&table) {
                Some(view) => self.view(&view.definition.clone(), shown, alias, place),
                None => Err(unknown(&table)),
            };
        };
        let Some(relation) = self.snapshot.table(id) else { return Err(unknown(&table)) };
        let schema = relation.schema();
        let columns =
            schema.shown().iter().map(|column| (column.name.clone(), Type::Column(column.ty))).collect();
        let types = schema.columns.iter().map(|column| column.ty).collect();
        let rel = Arc::new(Rel::Table { table: id, types, key: schema.primary_key.clone() });
        // Names of columns do not make a key that no name means.
        let is_named = schema.primary_key.iter().all(|&column| column < schema.shown().len());
        let key = if is_named && !id.is_view() { schema.primary_key.clone() } else { Vec::new() };
        let source = source(rel, renamed(columns, alias)?, Some(shown), key);
        Ok(Source { width: schema.columns.len(), ..source })
    }

    /// A view, as its definition says.
    fn view(
        &mut self,
        definition: &ViewDefinition,
        shown: String,
        alias: Option<&TableAlias>,
        place: Place,
    ) -> Result<Source> {
        self.relation(place)?;
        // The text stands by itself: it sees nothing of the query around it, and its places are its own.
        let (args, claims) = (Map::new(), Map::new());
        let parameters = Parameters { args: &args, claims: &claims, declared: None };
        let bound = parse::parse(&definition.sql).and_then(|parsed| match parsed.statements.as_slice() {
            [Statement::Query(query)] => {
                let mut binder = Binder::new(self.snapshot, &parameters, &parsed.words);
                // What is counted is counted on.
                binder.query_depth = self.query_depth + 1;
                binder.count_on(self);
                let bound = binder.query(query, Lift::No, Ordering::Dropped);
                self.count_on(&binder);
                bound
            }
            _ => place.bad("its definition is not one query"),
        });
        let bound = bound.map_err(|error| {
            place.error(error.kind, format_args!("view {}: {}", definition.name, error.message))
        })?;
        let columns = bound.columns.into_iter().map(|column| (column.name, column.ty)).collect();
        Ok(source(bound.rel, renamed(columns, alias)?, Some(shown), Vec::new()))
    }

    fn derived_table(&mut self, query: &Query, alias: Option<&TableAlias>) -> Result<Source> {
        let bound = self.query(query, Lift::No, Ordering::Dropped)?;
        let columns = bound.columns.into_iter().map(|column| (column.name, column.ty)).collect();
        derived(bound.rel, columns, alias)
    }
}

/// Where a relation starts. A span of a derived table would cost a walk through all of it.
fn start_of(factor: &TableFactor) -> Place {
    match factor {
        TableFactor::Derived { subquery, .. } => super::query::start_of(subquery),
        TableFactor::NestedJoin { table_with_joins, .. } => start_of(&table_with_joins.relation),
        factor => factor.span().into(),
    }
}

fn derived(rel: Arc<Rel>, columns: Named, alias: Option<&TableAlias>) -> Result<Source> {
    let name = alias.map(|alias| folded(&alias.name));
    Ok(source(rel, renamed(columns, alias)?, name, Vec::new()))
}

fn source(rel: Arc<Rel>, columns: Named, name: Option<String>, key: Vec<usize>) -> Source {
    let width = columns.len();
    Source { rel, scope: Scope::of(scope_table(name, columns, key)), width }
}

/// Whether a join can be made on top of what stands left of the item too.
fn keeps_left(operator: &JoinOperator) -> bool {
    !matches!(operator, JoinOperator::Right(_) | JoinOperator::RightOuter(_) | JoinOperator::FullOuter(_))
}

/// Adds an item that stood by itself.
fn add(joined: &mut Joined, source: Source) {
    joined.own = source.scope.shifted(joined.width);
    joined.width += source.width;
    joined.rel = Some(match joined.rel.take() {
        None => source.rel,
        Some(left) => Arc::new(Rel::Join {
            kind: JoinKind::Inner,
            left,
            right: source.rel,
            condition: Condition::Constant(Some(true)),
        }),
    });
}

/// Joins columns of one name: the condition, and the names in which each of them stands once.
fn merged(
    columns: &[(String, Place)],
    left: &Scope,
    right: &Scope,
    side: Side,
) -> Result<(Condition, Scope)> {
    let mut conditions = Vec::with_capacity(columns.len());
    let mut merged = Vec::with_capacity(columns.len());
    for (name, place) in columns {
        let (l, r) = (side_column(left, name, "left", *place)?, side_column(right, name, "right", *place)?);
        let typing = |error| place.typing(error);
        let (l_operand, r_operand) = (Operand::Typed(l), Operand::Typed(r));
        let equal = binary("=", l_operand.clone(), r_operand.clone()).map_err(typing)?;
        conditions.push(equal.condition().map_err(typing)?);
        let value = if side == Side::Full {
            call("coalesce", vec![l_operand, r_operand]).map_err(typing)?
        } else {
            let (scalars, ty) = unify(vec![l_operand, r_operand]).map_err(typing)?;
            let mut scalars = scalars.into_iter();
            let (l, r) = (scalars.next(), scalars.next());
            let Some(scalar) = (if side == Side::Right { r } else { l }) else {
                return place.bad("a joined column has no value");
            };
            Typed { scalar, ty }
        };
        merged.push(ScopeColumn { name: name.clone(), value });
    }
    let rest = |scope: &Scope| -> Vec<ScopeColumn> {
        let joined = |column: &&ScopeColumn| !columns.iter().any(|(name, _)| *name == column.name);
        scope.columns.iter().filter(joined).cloned().collect()
    };
    let mut scope = Scope { tables: left.tables.clone(), columns: merged };
    scope.tables.extend(right.tables.iter().cloned());
    scope.columns.extend(rest(left));
    scope.columns.extend(rest(right));
    let condition = match conditions.len() {
        0 => Condition::Constant(Some(true)),
        1 => conditions.remove(0),
        _ => Condition::And(conditions),
    };
    Ok((condition, scope))
}

fn side_column(scope: &Scope, name: &str, side: &str, place: Place) -> Result<Typed> {
    match scope.find(Name { table: None, column: name }) {
        Found::Column(typed) => Ok(typed.clone()),
        Found::Ambiguous => {
            place.bad(format_args!("column {name} is ambiguous on the {side} side of the join"))
        }
        Found::NoColumn | Found::Nothing => Err(place.error(
            QueryErrorKind::UnknownColumn,
            format_args!("the {side} side of the join has no column {name}{}", scope.suggestion(name)),
        )),
    }
}
