//! The relations that expressions need between their input and themselves: subqueries and window functions.

use super::{
    place::{Place, Result, fits},
    rewrite::{Position, Replace, Rewrite, positions},
};
use crate::{
    algebra::{Rel, Subquery, Test, WindowFunction},
    expr::{Condition, Scalar},
};
use std::sync::Arc;
use tidegate_wire::model::Order;

/// One relation on top of the input.
#[derive(Clone, Debug)]
enum Step {
    /// One boolean column; without a condition it is whether there is a row.
    Mark(Subquery, Option<Condition>),
    /// One column.
    Lookup(Subquery),
    /// A column per function.
    Window { partition: Vec<Scalar>, order: Vec<(Scalar, Order)>, functions: Vec<WindowFunction> },
}

/// Relations in the order in which they stand on the input; later ones may read the results of earlier ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    steps: Vec<(Step, Place)>,
    /// Each result's step and its column among that step's.
    results: Vec<(usize, usize)>,
}

impl Steps {
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Where the first one stands in the text.
    pub(super) fn place(&self) -> Place {
        self.steps.first().map_or(Place::UNKNOWN, |(_, place)| *place)
    }

    fn push(&mut self, step: Step, place: Place) -> Scalar {
        self.steps.push((step, place));
        self.result(self.steps.len() - 1, 0)
    }

    fn result(&mut self, step: usize, column: usize) -> Scalar {
        self.results.push((step, column));
        Position::Step(self.results.len() - 1).scalar()
    }

    /// Adds a mark; gives what reads it.
    pub(super) fn mark(&mut self, subquery: Subquery, condition: Option<Condition>, place: Place) -> Scalar {
        self.push(Step::Mark(subquery, condition), place)
    }

    /// Adds a look-up; gives what reads it.
    pub(super) fn lookup(&mut self, subquery: Subquery, place: Place) -> Scalar {
        self.push(Step::Lookup(subquery), place)
    }

    /// Whether one looks a value up.
    pub(super) fn has_lookup(&self) -> bool {
        self.steps.iter().any(|(step, _)| matches!(step, Step::Lookup(_)))
    }

    /// Adds a window function, beside others over the same window where it does not read what comes after those.
    pub(super) fn window(
        &mut self,
        partition: Vec<Scalar>,
        order: Vec<(Scalar, Order)>,
        function: WindowFunction,
        place: Place,
    ) -> Scalar {
        let mut first = 0;
        positions(&function, &mut |position| {
            if let Position::Step(result) = position {
                first = first.max(self.results[result].0 + 1);
            }
        });
        for (index, (step, _)) in self.steps.iter_mut().enumerate().skip(first) {
            if let Step::Window { partition: p, order: o, functions } = step
                && *p == partition
                && *o == order
            {
                let column = functions.iter().position(|f| *f == function).unwrap_or_else(|| {
                    functions.push(function);
                    functions.len() - 1
                });
                return self.result(index, column);
            }
        }
        self.push(Step::Window { partition, order, functions: vec![function] }, place)
    }

    /// Replaces scalars in all steps; the replacement is told each step's place first.
    pub(super) fn rewrite(
        &mut self,
        replace: &mut dyn FnMut(Place, &Scalar) -> Result<Option<Scalar>>,
    ) -> Result<()> {
        for (step, place) in &mut self.steps {
            *step = step.rewrite(&mut |scalar| replace(*place, scalar))?;
        }
        Ok(())
    }

    /// Stacks the steps on a relation that has `width` columns. `resolve` says what other stand-ins are.
    pub(super) fn apply(
        self,
        mut rel: Arc<Rel>,
        width: usize,
        resolve: &dyn Fn(Position) -> Option<usize>,
    ) -> Result<Applied> {
        let mut starts = Vec::with_capacity(self.steps.len());
        let mut end = width;
        for (step, _) in &self.steps {
            starts.push(end);
            end += match step {
                Step::Mark(..) | Step::Lookup(_) => 1,
                Step::Window { functions, .. } => functions.len(),
            };
        }
        fits(end, self.place())?;
        let results: Vec<usize> = self.results.iter().map(|(step, column)| starts[*step] + column).collect();
        for ((step, _), start) in self.steps.into_iter().zip(starts) {
            let step = step.rewrite(&mut |scalar| {
                let Scalar::Column(position) = scalar else { return Ok(None) };
                let real = match Position::of(*position) {
                    Position::Step(result) => Some(results[result]),
                    Position::Subquery(column) => Some(start + column),
                    other => resolve(other),
                };
                Ok(Some(Scalar::Column(real.unwrap_or(*position))))
            })?;
            rel = Arc::new(match step {
                Step::Mark(subquery, condition) => {
                    Rel::Mark { input: rel, subquery, test: condition.map_or(Test::Exists, Test::Any) }
                }
                Step::Lookup(subquery) => Rel::Lookup { input: rel, subquery },
                Step::Window { partition, order, functions } => {
                    Rel::Window { input: rel, partition, order, functions }
                }
            });
        }
        Ok(Applied { rel, width: end, results })
    }
}

/// Steps that have been stacked.
pub(super) struct Applied {
    pub(super) rel: Arc<Rel>,
    pub(super) width: usize,
    results: Vec<usize>,
}

impl Applied {
    /// What stands for the stand-ins of the steps and, by `resolve`, for others.
    pub(super) fn resolved<T: Rewrite>(
        &self,
        of: &T,
        resolve: &dyn Fn(Position) -> Option<usize>,
    ) -> Result<T> {
        of.rewrite(&mut |scalar| {
            let Scalar::Column(position) = scalar else { return Ok(None) };
            let real = match Position::of(*position) {
                Position::Step(result) => Some(self.results[result]),
                other => resolve(other),
            };
            Ok(Some(Scalar::Column(real.unwrap_or(*position))))
        })
    }
}

impl Rewrite for Step {
    fn rewrite(&self, replace: &mut Replace<'_>) -> Result<Self> {
        let within = |subquery: &Subquery, replace: &mut Replace<'_>| -> Result<Subquery> {
            Ok(Subquery { rel: Arc::clone(&subquery.rel), domain: subquery.domain.rewrite(replace)? })
        };
        Ok(match self {
            Self::Mark(subquery, condition) => {
                Self::Mark(within(subquery, replace)?, condition.rewrite(replace)?)
            }
            Self::Lookup(subquery) => Self::Lookup(within(subquery, replace)?),
            Self::Window { partition, order, functions } => Self::Window {
                partition: partition.rewrite(replace)?,
                order: order.rewrite(replace)?,
                functions: functions.rewrite(replace)?,
            },
        })
    }
}
