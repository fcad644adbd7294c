//! Subqueries become joins.
//!
//! A query that reads a *domain* (its parameters, or what a subquery reads of outer rows) is evaluated for all rows of the
//! domain at once: its rows carry the domain's columns in front, and every operator keeps the rows of different domain rows
//! apart. What does not read the domain is left as it is and computed once. For an EXISTS or IN whose outer values are
//! only compared for equality, no domain is needed: the comparisons become the mark's own.

use super::{
    Aggregate, AggregateFunction, Column, JoinKind, Rel, Select, Subquery, Test, domain_column,
    equalities::{equalities, reads_domain},
    flat::{Flat, On},
    lax_marks::with_lax_marks,
    positions::{Positions, all, conjuncts},
    recursion::reads,
    semi_join::filtered,
};
use crate::expr::{Condition, Scalar, typing::Type};
use std::{collections::HashMap, sync::Arc};
use tidegate_wire::model::{ColumnType, Value};

/// The select's rows, for all bindings: the slots' values come first in each row.
#[must_use]
pub fn unnest(select: &Select) -> Arc<Flat> {
    let types: Vec<ColumnType> = select.slots.iter().map(|(ty, _)| *ty).collect();
    let domain = Domain::new(Arc::new(Flat::Parameters { types }), 0);
    let none = Arc::new(Flat::Parameters { types: Vec::new() });
    let mut unnester = Unnester { done: HashMap::new(), working: HashMap::new(), none };
    if select.slots.is_empty() {
        return unnester.rows(&select.rel, &domain).rel;
    }
    unnester.with_domain(&select.rel, &domain)
}

/// The rows for which a query is evaluated at once. They begin with the columns of the outer query's domain, so that
/// whatever depends on the slots has their values in front and the state of one binding can be told from another's.
struct Domain {
    rel: Arc<Flat>,
    types: Vec<ColumnType>,
    /// Where the columns that the query itself refers to begin.
    from: usize,
}

impl Domain {
    fn new(rel: Arc<Flat>, from: usize) -> Self {
        Self { types: rel.types(), rel, from }
    }

    fn len(&self) -> usize {
        self.types.len()
    }

    fn columns(&self) -> Vec<Column> {
        Flat::identity(&self.types)
    }
}

/// A query's rows; `depends` when they have the domain's columns in front.
#[derive(Clone)]
struct Rows {
    rel: Arc<Flat>,
    depends: bool,
}

/// A query's rows, with the query and its domain.
struct Done {
    rows: Rows,
    query: Arc<Rel>,
    _domain: Arc<Flat>,
}

struct Unnester {
    /// Queries that were met before, so that what is shared stays shared. By their and the domain's address; both are
    /// kept, so that no other comes to stand there.
    done: HashMap<(*const Rel, *const Flat), Done>,
    /// What the steps read that are being worked on, by their recursions' numbers.
    working: HashMap<usize, Rows>,
    /// The domain of what depends on nothing.
    none: Arc<Flat>,
}

impl Unnester {
    /// The rows with the domain's columns in front.
    fn with_domain(&mut self, rel: &Arc<Rel>, domain: &Domain) -> Arc<Flat> {
        let rows = self.rows(rel, domain);
        behind(rows, domain).rel
    }

    fn rows(&mut self, rel: &Arc<Rel>, domain: &Domain) -> Rows {
        let domain_rel = if reads_domain(rel) { &domain.rel } else { &self.none };
        let key = (Arc::as_ptr(rel), Arc::as_ptr(domain_rel));
        if let Some(done) = self.done.get(&key) {
            return done.rows.clone();
        }
        let (query, kept) = (Arc::clone(rel), Arc::clone(domain_rel));
        let rows = self.compute(rel, domain);
        self.done.insert(key, Done { rows: rows.clone(), query, _domain: kept });
        rows
    }

    /// The rows of what depends on nothing.
    fn alone(&mut self, rel: &Arc<Rel>) -> Arc<Flat> {
        let none = Domain::new(Arc::clone(&self.none), 0);
        self.rows(rel, &none).rel
    }

    /// The rows of an input, with the domain in front when `needed`.
    fn input(&mut self, rel: &Arc<Rel>, domain: &Domain, needed: bool) -> Rows {
        let rows = self.rows(rel, domain);
        if needed { behind(rows, domain) } else { rows }
    }

    fn compute(&mut self, rel: &Rel, domain: &Domain) -> Rows {
        let m = domain.len();
        match rel {
            Rel::Table { table, types, key } => {
                independent(Flat::Table { table: *table, types: types.clone(), key: key.clone() })
            }
            Rel::Values { types, rows } if rows.iter().any(Positions::reads_domain) => {
                let mut columns = domain.columns();
                let inputs = rows.iter().map(|row| {
                    columns.truncate(m);
                    columns.extend(
                        row.iter()
                            .zip(types)
                            .map(|(scalar, &ty)| Column { scalar: scalar.behind_domain(domain.from, m), ty }),
                    );
                    Arc::new(Flat::Project { input: Arc::clone(&domain.rel), columns: columns.clone() })
                });
                dependent(Flat::Concat { inputs: inputs.collect() })
            }
            Rel::Values { types, rows } => {
                independent(Flat::Values { types: types.clone(), rows: rows.clone() })
            }
            Rel::Filter { input, condition } => {
                let input = self.input(input, domain, condition.reads_domain());
                let condition = condition.behind_domain(domain.from, offset(&input, m));
                same(&input, filtered(&input.rel, condition))
            }
            Rel::Project { input, columns } => {
                let rows = self.input(input, domain, columns.reads_domain());
                let own = columns.behind_domain(domain.from, offset(&rows, m));
                let columns = if rows.depends { [domain.columns(), own].concat() } else { own };
                same(&rows, Flat::Project { input: with_lax_marks(&rows.rel, columns.positions()), columns })
            }
            Rel::Join { kind, left, right, condition } => {
                let left = self.rows(left, domain);
                let right = self.rows(right, domain);
                self.join(*kind, left, right, condition, domain)
            }
            Rel::Mark { input, subquery, test } => self.mark(input, subquery, test, domain),
            Rel::Lookup { input, subquery } => {
                let left = self.outer(input, subquery, false, domain);
                let condition = Condition::Constant(Some(true));
                self.apply(JoinKind::Left, &left, subquery, &condition, true, domain)
            }
            Rel::Lateral { kind, input, subquery, condition } => {
                let left = self.outer(input, subquery, condition.reads_domain(), domain);
                self.apply(*kind, &left, subquery, condition, false, domain)
            }
            Rel::Aggregate { input, keys, aggregates } => {
                let reads = keys.reads_domain() || aggregates.reads_domain();
                let rows = self.input(input, domain, reads);
                aggregate(&rows, keys, aggregates, domain)
            }
            Rel::Distinct { input } => {
                let rows = self.rows(input, domain);
                let keys = Flat::identity(&rows.rel.types());
                same(&rows, Flat::Aggregate { input: Arc::clone(&rows.rel), keys, aggregates: Vec::new() })
            }
            Rel::Concat { inputs } => {
                let mut rows: Vec<Rows> = inputs.iter().map(|input| self.rows(input, domain)).collect();
                let depends = rows.iter().any(|rows| rows.depends);
                if depends {
                    rows = rows.into_iter().map(|rows| behind(rows, domain)).collect();
                }
                let inputs = rows.into_iter().map(|rows| rows.rel).collect();
                Rows { rel: Arc::new(Flat::Concat { inputs }), depends }
            }
            Rel::Recursive { base, step, working, all } => self.recursive(base, step, *working, *all, domain),
            Rel::Working { working, .. } => {
                self.working.get(working).expect("only a recursion's step reads it").clone()
            }
            Rel::SetOperation { kind, all, left, right } => {
                let (mut left, mut right) = (self.rows(left, domain), self.rows(right, domain));
                if left.depends || right.depends {
                    (left, right) = (behind(left, domain), behind(right, domain));
                }
                let depends = left.depends;
                let rel = Flat::SetOperation { kind: *kind, all: *all, left: left.rel, right: right.rel };
                Rows { rel: Arc::new(rel), depends }
            }
            Rel::Top { input, partition, order, offset: skipped, limit } => {
                let reads = partition.reads_domain() || order.reads_domain();
                let rows = self.input(input, domain, reads);
                let by = offset(&rows, m);
                let partition = apart(&rows, partition.behind_domain(domain.from, by), domain);
                same(
                    &rows,
                    Flat::Top {
                        input: Arc::clone(&rows.rel),
                        partition,
                        order: order.behind_domain(domain.from, by),
                        offset: *skipped,
                        limit: *limit,
                    },
                )
            }
            Rel::Window { input, partition, order, functions } => {
                let reads = partition.reads_domain() || order.reads_domain() || functions.reads_domain();
                let rows = self.input(input, domain, reads);
                let by = offset(&rows, m);
                let partition = apart(&rows, partition.behind_domain(domain.from, by), domain);
                same(
                    &rows,
                    Flat::Window {
                        input: Arc::clone(&rows.rel),
                        partition,
                        order: order.behind_domain(domain.from, by),
                        functions: functions.behind_domain(domain.from, by),
                    },
                )
            }
        }
    }

    /// A recursion. The rows found belong to a row of the domain as soon as either part reads it.
    fn recursive(
        &mut self,
        base: &Arc<Rel>,
        step: &Arc<Rel>,
        number: usize,
        all: bool,
        domain: &Domain,
    ) -> Rows {
        let depends = reads_domain(base) || reads_domain(step);
        let base = self.input(base, domain, depends).rel;
        let working = Arc::new(Flat::Working { types: base.types(), depends });
        self.working.insert(number, Rows { rel: Arc::clone(&working), depends });
        let step = self.input(step, domain, depends).rel;
        self.working.remove(&number);
        // Over another domain the rows found are others.
        self.done.retain(|_, done| !reads(&done.query, number));
        Rows { rel: Arc::new(Flat::Recursive { base, step, working, all }), depends }
    }

    /// The outer rows of a subquery, with the domain in front when the subquery reads it through them.
    fn outer(&mut self, input: &Arc<Rel>, subquery: &Subquery, needed: bool, domain: &Domain) -> Rows {
        self.input(input, domain, needed || subquery.domain.reads_domain())
    }

    /// A join of rows that may depend on one domain.
    fn join(
        &mut self,
        kind: JoinKind,
        mut left: Rows,
        mut right: Rows,
        condition: &Condition,
        domain: &Domain,
    ) -> Rows {
        let m = domain.len();
        let depends = left.depends || right.depends || condition.reads_domain();
        // The domain has to be on the side whose rows stay without a partner.
        let is_needed_left = depends && (kind != JoinKind::Inner || !right.depends);
        if is_needed_left {
            left = behind(left, domain);
        }
        if depends && kind == JoinKind::Full {
            right = behind(right, domain);
        }
        let (by_left, by_right) = (offset(&left, m), offset(&right, m));
        let (left_types, right_types) = (left.rel.types(), right.rel.types());
        let left_own = left_types.len() - by_left;
        // Where the domain's columns are in a row of the pair.
        let domain_at = if left.depends { 0 } else { left_types.len() };
        let joined = condition.map(&mut |position| {
            Scalar::Column(match domain_column(position) {
                Some(column) => domain_at + domain.from + column,
                None if position < left_own => by_left + position,
                None => left_types.len() + by_right + position - left_own,
            })
        });
        let mut conditions = Vec::new();
        conjuncts(&joined, &mut conditions);
        if left.depends && right.depends {
            conditions.extend((0..m).map(|column| agree(column, left_types.len() + column)));
        }
        let types = [left_types.clone(), right_types.clone()].concat();
        let pair = Flat::Join { kind, left: left.rel, right: right.rel, condition: all(conditions) };
        if !depends {
            return independent(pair);
        }
        let mut columns: Vec<Column> = (0..m)
            .map(|column| {
                let own = Scalar::Column(domain_at + column);
                let scalar = if kind == JoinKind::Full {
                    Scalar::Coalesce(vec![own, Scalar::Column(left_types.len() + column)])
                } else {
                    own
                };
                Column { scalar, ty: domain.types[column] }
            })
            .collect();
        let own = (by_left..left_types.len()).chain(left_types.len() + by_right..types.len());
        columns.extend(own.map(|at| Column { scalar: Scalar::Column(at), ty: types[at] }));
        dependent(Flat::Project { input: Arc::new(pair), columns })
    }

    fn mark(&mut self, input: &Arc<Rel>, subquery: &Subquery, test: &Test, domain: &Domain) -> Rows {
        let tested = match test {
            Test::Exists => Condition::Constant(Some(true)),
            Test::Any(condition) => condition.clone(),
        };
        let left = self.outer(input, subquery, tested.reads_domain(), domain);
        let by = offset(&left, domain.len());
        let left_len = left.rel.types().len();
        let outer: Vec<Column> = subquery.domain.behind_domain(domain.from, by);
        let (right, on, right_by) = match equalities(&subquery.rel, &outer) {
            Some((rel, pairs)) => {
                let rel = self.alone(&rel);
                let types = rel.types();
                let on = pairs
                    .into_iter()
                    .map(|(column, at)| On {
                        left: outer[column].clone(),
                        right: Column { scalar: Scalar::Column(at), ty: types[at] },
                        null_agrees: false,
                    })
                    .collect();
                (rel, on, 0)
            }
            None => {
                let (inner, outer) = distinct(&left, outer, domain);
                let rel = self.with_domain(&subquery.rel, &inner);
                let on = outer.iter().enumerate().map(|(at, left)| On {
                    left: left.clone(),
                    right: Column { scalar: Scalar::Column(at), ty: left.ty },
                    null_agrees: true,
                });
                (rel, on.collect(), inner.len())
            }
        };
        let own = left_len - by;
        let condition = tested.map(&mut |position| {
            Scalar::Column(match domain_column(position) {
                Some(column) => domain.from + column,
                None if position < own => by + position,
                None => left_len + right_by + position - own,
            })
        });
        let is_two_valued = *test == Test::Exists;
        let left_rel = Arc::clone(&left.rel);
        same(&left, Flat::Mark { left: left_rel, right, on, condition, is_two_valued })
    }

    /// The outer rows, each with the rows of its subquery.
    fn apply(
        &mut self,
        kind: JoinKind,
        left: &Rows,
        subquery: &Subquery,
        condition: &Condition,
        is_single: bool,
        domain: &Domain,
    ) -> Rows {
        let by = offset(left, domain.len());
        let left_types = left.rel.types();
        let mut outer: Vec<Column> = subquery.domain.behind_domain(domain.from, by);
        let (right, keys) = if outer.is_empty() {
            (self.alone(&subquery.rel), 0)
        } else {
            let (inner, all) = distinct(left, outer, domain);
            outer = all;
            (self.with_domain(&subquery.rel, &inner), inner.len())
        };
        let is_one_row = matches!(&*subquery.rel, Rel::Aggregate { keys, .. } if keys.is_empty());
        let right =
            if is_single && !is_one_row { Arc::new(Flat::Single { input: right, keys }) } else { right };
        let right_types = right.types();
        let own = left_types.len() - by;
        let joined = condition.map(&mut |position| {
            Scalar::Column(match domain_column(position) {
                Some(column) => domain.from + column,
                None if position < own => by + position,
                None => left_types.len() + keys + position - own,
            })
        });
        let mut conditions = Vec::new();
        for (at, column) in outer.iter().enumerate() {
            let other = Scalar::Column(left_types.len() + at);
            conditions.push(Condition::equal(column.scalar.clone(), other, true));
        }
        conjuncts(&joined, &mut conditions);
        let pair = Flat::Join { kind, left: Arc::clone(&left.rel), right, condition: all(conditions) };
        let types = [left_types.clone(), right_types].concat();
        let kept = (0..left_types.len()).chain(left_types.len() + keys..types.len());
        let columns = kept.map(|at| Column { scalar: Scalar::Column(at), ty: types[at] }).collect();
        same(left, Flat::Project { input: Arc::new(pair), columns })
    }
}

fn independent(rel: Flat) -> Rows {
    Rows { rel: Arc::new(rel), depends: false }
}

fn dependent(rel: Flat) -> Rows {
    Rows { rel: Arc::new(rel), depends: true }
}

/// Rows that depend on the domain as their input does.
fn same(input: &Rows, rel: Flat) -> Rows {
    Rows { rel: Arc::new(rel), depends: input.depends }
}

/// How far a query's own columns stand behind the domain's.
fn offset(rows: &Rows, domain: usize) -> usize {
    if rows.depends { domain } else { 0 }
}

/// The rows with the domain's columns in front, once for each of its rows if they do not depend on it.
fn behind(rows: Rows, domain: &Domain) -> Rows {
    if rows.depends {
        return rows;
    }
    dependent(Flat::Join {
        kind: JoinKind::Inner,
        left: Arc::clone(&domain.rel),
        right: rows.rel,
        condition: Condition::Constant(Some(true)),
    })
}

/// A partition that keeps the domain's rows apart.
fn apart(rows: &Rows, own: Vec<Scalar>, domain: &Domain) -> Vec<Scalar> {
    if !rows.depends {
        return own;
    }
    (0..domain.len()).map(Scalar::Column).chain(own).collect()
}

/// Two columns are equal or both NULL.
fn agree(a: usize, b: usize) -> Condition {
    Condition::equal(Scalar::Column(a), Scalar::Column(b), true)
}

/// The different values that a subquery reads of outer rows, and what each is of the outer row. Equal values that are
/// spelled differently are told apart by their texts, which the subquery may show.
fn distinct(left: &Rows, outer: Vec<Column>, domain: &Domain) -> (Domain, Vec<Column>) {
    let from = offset(left, domain.len());
    let has_spellings =
        |column: &&Column| matches!(column.ty, ColumnType::Numeric | ColumnType::Float8 | ColumnType::Json);
    let text = |column: &Column| Column {
        scalar: Scalar::Convert(Type::Column(ColumnType::Text), Box::new(column.scalar.clone())),
        ty: ColumnType::Text,
    };
    let texts = outer.iter().filter(has_spellings).map(text).collect();
    let own = [outer, texts].concat();
    let keys = if left.depends { [domain.columns(), own].concat() } else { own };
    let input = Arc::clone(&left.rel);
    let rel = Flat::Aggregate { input, keys: keys.clone(), aggregates: Vec::new() };
    (Domain::new(Arc::new(rel), from), keys)
}

fn aggregate(rows: &Rows, keys: &[Column], aggregates: &[Aggregate], domain: &Domain) -> Rows {
    let by = offset(rows, domain.len());
    let aggregates: Vec<Aggregate> = aggregates.to_vec().behind_domain(domain.from, by);
    let own: Vec<Column> = keys.to_vec().behind_domain(domain.from, by);
    if !rows.depends {
        let input = with_lax_marks(&rows.rel, [own.positions(), aggregates.positions()].concat());
        return independent(Flat::Aggregate { input, keys: own, aggregates });
    }
    let keys_all = [domain.columns(), own].concat();
    let input = with_lax_marks(&rows.rel, [keys_all.positions(), aggregates.positions()].concat());
    let groups = Flat::Aggregate { input, keys: keys_all, aggregates: aggregates.clone() };
    if !keys.is_empty() || domain.len() == 0 {
        return dependent(groups);
    }
    // Without keys there is a row even where there is nothing to aggregate.
    let m = domain.len();
    let pair = Flat::Join {
        kind: JoinKind::Left,
        left: Arc::clone(&domain.rel),
        right: Arc::new(groups),
        condition: all((0..m).map(|column| agree(column, m + column)).collect()),
    };
    let mut columns = domain.columns();
    for (at, aggregate) in aggregates.iter().enumerate() {
        let value = Scalar::Column(2 * m + at);
        let scalar = if aggregate.function == AggregateFunction::Count {
            Scalar::Coalesce(vec![value, Scalar::Constant(Value::Int8(0))])
        } else {
            value
        };
        columns.push(Column { scalar, ty: aggregate.ty });
    }
    dependent(Flat::Project { input: Arc::new(pair), columns })
}
