//! `union`, `intersect`, `except`, `values` and `table`.

use super::{
    Binder, Lift,
    from::Source,
    parameters::{Meeting, together},
    place::{Place, Result, fits},
    query::{Bound, Ordering, Output, column, first_columns},
    scope::Scope,
    select::{Block, Clause},
};
use crate::{
    algebra::{Column, Rel, SetKind},
    expr::{
        Scalar,
        typing::{Operand, Typed, unify},
    },
};
use sqlparser::ast::{ObjectName, Parens, SetExpr, SetOperator, SetQuantifier, Spanned, Table, Values};
use std::{rc::Rc, sync::Arc};

impl Binder<'_> {
    /// The body of a query that is not a single select block, or one that is but is ordered from outside.
    pub(super) fn set_expression(&mut self, body: &SetExpr, lift: Lift) -> Result<Bound> {
        match body {
            SetExpr::Select(select) => self.select(select, &[], lift, Ordering::Dropped),
            SetExpr::Query(query) => self.query(query, lift, Ordering::Dropped),
            SetExpr::SetOperation { .. } => self.set_operations(body, lift),
            SetExpr::Values(values) => self.values(values),
            SetExpr::Table(table) => self.table_command(table),
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                Place::from(body.span()).unsupported("a query that writes")
            }
        }
    }

    /// A chain of set operations. Those of equal precedence nest to the left, as deep as the chain is long, so that side
    /// is walked in a loop.
    fn set_operations(&mut self, body: &SetExpr, lift: Lift) -> Result<Bound> {
        let mut chain = Vec::new();
        let mut leftmost = body;
        while let SetExpr::SetOperation { op, set_quantifier, left, right } = leftmost {
            chain.push((op, set_quantifier, right.as_ref()));
            leftmost = left;
        }
        let mut bound = self.branch(leftmost, lift)?;
        for (op, quantifier, right) in chain.into_iter().rev() {
            let place = Place::from(right.span());
            let all = match quantifier {
                SetQuantifier::All => true,
                SetQuantifier::None | SetQuantifier::Distinct => false,
                SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName => {
                    return place.unsupported("by name");
                }
            };
            self.relation(place)?;
            let right = self.branch(right, lift)?;
            let (left, right, columns) = unified(bound, right, place)?;
            let kind = match op {
                SetOperator::Union => {
                    bound = Bound::unordered(union(left, right, all), columns);
                    continue;
                }
                SetOperator::Except => SetKind::Except,
                SetOperator::Intersect => SetKind::Intersect,
                SetOperator::Minus => return place.unsupported("minus"),
            };
            bound = Bound::unordered(Arc::new(Rel::SetOperation { kind, all, left, right }), columns);
        }
        Ok(bound)
    }

    pub(super) fn branch(&mut self, body: &SetExpr, lift: Lift) -> Result<Bound> {
        self.deeper(|| Place::from(body.span()), |binder| binder.set_expression(body, lift))
    }

    fn values(&mut self, values: &Values) -> Result<Bound> {
        let Values { explicit_row: _, value_keyword: _, rows } = values;
        let place = Place::from(values.span());
        let width = rows.first().map_or(0, |row| row.content.len());
        fits(width, place)?;
        let mut block = Block::new(Rc::new(Scope::default()), Clause::Constant);
        let mut terms = vec![Vec::with_capacity(rows.len()); width];
        for Parens { opening_token, content, closing_token: _ } in rows {
            if content.len() != width {
                return Place::from(opening_token.0.span).bad("the rows of values have different lengths");
            }
            for (column, expr) in terms.iter_mut().zip(content) {
                column.push(self.term(expr, &mut block)?);
            }
        }
        let mut types = Vec::with_capacity(width);
        let mut outputs = Vec::with_capacity(width);
        let mut scalars = vec![Vec::with_capacity(width); rows.len()];
        for (index, terms) in terms.into_iter().enumerate() {
            let operands = together(terms, Meeting::Own)?;
            let literal = match operands.as_slice() {
                [Operand::Unknown(literal)] => Some(literal.clone()),
                _ => None,
            };
            let (cells, ty) = unify(operands).map_err(|error| place.typing(error))?;
            let typed = Typed { scalar: Scalar::Column(index), ty };
            types.push(column(typed, place)?.ty);
            outputs.push(Output { name: format!("column{}", index + 1), ty, place, literal });
            for (row, cell) in scalars.iter_mut().zip(cells) {
                row.push(cell);
            }
        }
        Ok(Bound::unordered(Arc::new(Rel::Values { types, rows: scalars }), outputs))
    }

    /// `table t`.
    fn table_command(&mut self, table: &Table) -> Result<Bound> {
        let Table { table_name, schema_name } = table;
        let Some(table) = table_name else { return Place::UNKNOWN.bad("table needs a name") };
        let name = ObjectName::from(schema_name.iter().chain([table]).cloned().collect::<Vec<_>>());
        let Source { rel, scope, width: _ } = self.table(&name, None)?;
        let columns: Vec<Output> = scope
            .columns
            .into_iter()
            .map(|column| Output {
                name: column.name,
                ty: column.value.ty,
                place: Place::UNKNOWN,
                literal: None,
            })
            .collect();
        let shown = columns.len();
        Ok(Bound::unordered(first_columns(rel, shown), columns))
    }
}

/// The rows of both, without duplicates unless `all`.
fn union(left: Arc<Rel>, right: Arc<Rel>, all: bool) -> Arc<Rel> {
    // A union of a union is one union; duplicates are removed at the end.
    let left = match left.as_ref() {
        Rel::Distinct { input } if !all && matches!(**input, Rel::Concat { .. }) => Arc::clone(input),
        _ => left,
    };
    let mut inputs = match left.as_ref() {
        Rel::Concat { inputs } => inputs.clone(),
        _ => vec![left],
    };
    inputs.push(right);
    let concat = Arc::new(Rel::Concat { inputs });
    if all { concat } else { Arc::new(Rel::Distinct { input: concat }) }
}

/// Both sides with their columns in common types.
pub(super) fn unified(left: Bound, right: Bound, place: Place) -> Result<(Arc<Rel>, Arc<Rel>, Vec<Output>)> {
    if left.columns.len() != right.columns.len() {
        return place.bad(format_args!(
            "the sides of a set operation have {} and {} columns",
            left.columns.len(),
            right.columns.len()
        ));
    }
    let (mut lefts, mut rights) = (Vec::new(), Vec::new());
    let mut outputs = Vec::with_capacity(left.columns.len());
    for (index, (l, r)) in left.columns.iter().zip(&right.columns).enumerate() {
        let operand = |output: &Output| match &output.literal {
            Some(literal) => Operand::Unknown(literal.clone()),
            None => Operand::typed(Scalar::Column(index), output.ty),
        };
        let (scalars, ty) = unify(vec![operand(l), operand(r)]).map_err(|error| place.typing(error))?;
        let mut scalars = scalars.into_iter();
        let mut side = |columns: &mut Vec<Column>| -> Result<()> {
            let scalar = scalars.next().unwrap_or(Scalar::Column(index));
            columns.push(column(Typed { scalar, ty }, place)?);
            Ok(())
        };
        side(&mut lefts)?;
        side(&mut rights)?;
        outputs.push(Output { ty, literal: None, ..l.clone() });
    }
    Ok((projected(left.rel, lefts), projected(right.rel, rights), outputs))
}

/// The columns of a relation; the relation itself when they are its own.
fn projected(rel: Arc<Rel>, columns: Vec<Column>) -> Arc<Rel> {
    let same = columns.iter().enumerate().all(|(index, column)| column.scalar == Scalar::Column(index));
    if same && rel.types().len() == columns.len() {
        return rel;
    }
    Arc::new(Rel::Project { input: rel, columns })
}
