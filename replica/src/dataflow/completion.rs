//! How a join completes rows of one of its inputs with rows of the others, and what becomes of the completed ones. Where
//! it computes the join of a large table whole, several threads take a portion each.

use super::{
    Step,
    bag::{Arrangement, Bag},
    join::{LastFound, is_true, look_up, look_up_in, read},
};
use crate::{
    expr::{Beside, Cells, Condition, EvalError, NoExists, Scalar, scalar::Computed},
    pipeline::Budget,
    plan::{Join, LookupAccess, Path, Source},
    query::shape::Access,
    store::{TableId, tree::Tree},
    worker::STACK_BYTES,
};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::{sync::LazyLock, thread};
use tidegate_wire::model::{Row, ValueRef, row::RowEncoder};

/// Work for which a thread of its own is worth its start, in rows read; little in tests, so that they have portions.
const PORTION_COST_MIN: f64 = if cfg!(test) { 100.0 } else { 100_000.0 };

/// Most threads that compute one join.
const THREADS_MAX: usize = 4;

/// Threads that may compute one join here. Asked once, as the system is asked by reading files.
static THREADS: LazyLock<usize> =
    LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX));

/// What takes the rows of a join.
pub(super) trait Taker: Send + Sized {
    /// Takes a row, given by the path that completed it and the rows side by side that make it, so many times.
    fn take(&mut self, budget: &Budget, path: &Path, rows: &Beside<'_>, weight: i64)
    -> Result<(), EvalError>;

    /// Another one for a portion of the rows; nothing where all have to come to this one.
    fn fork(&self) -> Option<Self>;

    /// Takes over what another one took.
    fn merge(&mut self, other: Self);
}

/// The rows as a bag.
impl Taker for Bag {
    fn take(
        &mut self,
        budget: &Budget,
        path: &Path,
        rows: &Beside<'_>,
        weight: i64,
    ) -> Result<(), EvalError> {
        budget.pass()?;
        let whole = if path.steps.is_empty() {
            project(&path.columns, rows.first())?
        } else {
            computed(&path.columns, rows)?
        };
        self.push((whole, weight));
        Ok(())
    }

    fn fork(&self) -> Option<Self> {
        Some(Self::new())
    }

    fn merge(&mut self, other: Self) {
        self.extend(other);
    }
}

/// Completes rows of one input.
pub(super) struct Completion<'a, 's> {
    arrangements: &'a [Vec<Arrangement>],
    join: &'a Join,
    step: &'a Step<'s>,
    /// The input whose changes are completed; `None` reads every input as it is after the step.
    start: Option<usize>,
    /// Per step of the path, what need not be looked up in its table.
    hashed: &'a [Option<Arrangement>],
    /// Per step of the path, what was looked up last.
    last: SmallVec<[LastFound<'s>; 4]>,
}

impl<'a, 's> Completion<'a, 's> {
    /// One for rows of the input `start`, or of any one.
    pub(super) fn new(
        arrangements: &'a [Vec<Arrangement>],
        join: &'a Join,
        step: &'a Step<'s>,
        start: Option<usize>,
        hashed: &'a [Option<Arrangement>],
    ) -> Self {
        let last = join.inputs.iter().map(|_| LastFound::default()).collect();
        Self { arrangements, join, step, start, hashed, last }
    }

    pub(super) fn passes(
        &self,
        filter: &Condition,
        row: &Row,
        table: Option<TableId>,
    ) -> Result<bool, EvalError> {
        is_true(filter, row).inspect_err(|_| {
            if let Some(table) = table {
                self.step.after.note_failure(table, row);
            }
        })
    }

    /// Completes all rows of an input, which costs about so much as reading so many rows.
    pub(super) fn all_rows<T: Taker>(
        &self,
        start: usize,
        cost: f64,
        changes: &[Bag],
        taker: &mut T,
    ) -> Result<(), EvalError> {
        let (input, path) = (&self.join.inputs[start], &self.join.paths[start]);
        match &input.source {
            Source::Table { table, .. } => {
                let Some(tree) = self.step.after.tree(*table, &Access::Primary)? else { return Ok(()) };
                let portions = THREADS.min((cost / PORTION_COST_MIN) as usize);
                if portions > 1
                    && self.step.after.budget.is_divisible()
                    && let Some(takers) = (0..portions).map(|_| taker.fork()).collect::<Option<Vec<T>>>()
                {
                    return self.portions(start, *table, &tree, takers, taker);
                }
                self.table_rows(start, *table, tree.iter(), taker)
            }
            Source::Node(node) => {
                for (row, weight) in &changes[*node] {
                    if is_true(&input.filter, row)? {
                        self.complete(path, 0, &Beside::one(row), *weight, taker)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Completes some rows of a table that an input reads.
    fn table_rows<'r>(
        &self,
        start: usize,
        table: TableId,
        rows: impl Iterator<Item = (&'r [u8], &'r Row)>,
        taker: &mut impl Taker,
    ) -> Result<(), EvalError> {
        let (input, path) = (&self.join.inputs[start], &self.join.paths[start]);
        read(&self.step.after, table, rows, &mut |row| {
            if is_true(&input.filter, row)? {
                self.complete(path, 0, &Beside::one(row), 1, taker)?;
            }
            Ok(true)
        })
    }

    /// Completes all rows of a table, a portion for each of some takers, on a thread for each.
    fn portions<T: Taker>(
        &self,
        start: usize,
        table: TableId,
        tree: &Tree<Row>,
        takers: Vec<T>,
        taker: &mut T,
    ) -> Result<(), EvalError> {
        let Self { arrangements, join, step, hashed, .. } = *self;
        // An index that is there for this reading only is built once.
        for next in &join.paths[start].steps {
            if let (LookupAccess::Table(access), Source::Table { table, .. }) =
                (&next.by.access, &join.inputs[next.input].source)
            {
                step.after.tree(*table, access)?;
            }
        }
        let (delta, is_first, budget) = (step.delta, step.is_first, step.after.budget);
        let portions = tree.portions(takers.len()).zip(takers);
        let portions: Vec<_> =
            portions.map(|(rows, taker)| Mutex::new(Some((rows, taker, budget.portion())))).collect();
        let work = |portion: &Mutex<Option<_>>| {
            let (rows, mut taker, budget) = portion.lock().take().expect("a portion is worked through once");
            let done = {
                let step = Step::new(delta, is_first, Bag::new(), &budget);
                let completion = Completion::new(arrangements, join, &step, None, hashed);
                completion.table_rows(start, table, rows, &mut taker)
            };
            done.map_err(|error| (error, budget.take_failed())).map(|()| (taker, budget))
        };
        let done = thread::scope(|scope| {
            let threads: Vec<_> = portions
                .iter()
                .map(|portion| {
                    let thread = thread::Builder::new().name("portion".to_owned()).stack_size(STACK_BYTES);
                    thread.spawn_scoped(scope, || work(portion))
                })
                .collect();
            let joined = threads.into_iter().zip(&portions).map(|(thread, portion)| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                // The system has no thread to spare, which makes it slower and is no fault.
                Err(_) => work(portion),
            });
            joined.collect::<Vec<_>>()
        });
        for done in done {
            match done {
                Ok((other, portion)) => {
                    taker.merge(other);
                    budget.add(&portion)?;
                }
                Err((error, row)) => {
                    budget.set_failed(row);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Completes rows from a step of their path on.
    pub(super) fn complete<T: Taker>(
        &self,
        path: &Path,
        at: usize,
        rows: &Beside<'_>,
        weight: i64,
        taker: &mut T,
    ) -> Result<(), EvalError> {
        let Some(next) = path.steps.get(at) else {
            return taker.take(self.step.after.budget, path, rows, weight);
        };
        let is_after = self.start.is_none_or(|start| next.input < start);
        let input = (&self.join.inputs[next.input], &self.arrangements[next.input][..]);
        let mut each = |found: &Row, times: i64| {
            let wide = rows.and(found);
            if is_true(&next.condition, &wide)? {
                self.complete(path, at + 1, &wide, weight * times, taker)?;
            }
            Ok(true)
        };
        match self.hashed.get(at) {
            Some(Some(arrangement)) => look_up_in(self.step, arrangement, &next.by, rows, &mut each),
            _ => look_up(self.step, is_after, input, &next.by, self.last.get(at), rows, &mut each),
        }
    }
}

/// The columns of a row that is not made: read from the rows that make it, or computed.
pub(super) struct Columns<'a> {
    columns: &'a [Scalar],
    rows: &'a Beside<'a>,
    /// All of them, where one has to be computed.
    computed: SmallVec<[Computed<'a>; 8]>,
}

impl<'a> Columns<'a> {
    /// Computes them.
    pub(super) fn of(path: &'a Path, rows: &'a Beside<'a>) -> Result<Self, EvalError> {
        let mut computed = SmallVec::new();
        if path.columns.iter().any(|column| !matches!(column, Scalar::Column(_))) {
            for column in &path.columns {
                computed.push(column.value(rows, &NoExists)?);
            }
        }
        Ok(Self { columns: &path.columns, rows, computed })
    }
}

impl Cells for Columns<'_> {
    #[inline]
    fn cell(&self, position: usize) -> ValueRef<'_> {
        match &self.columns[position] {
            Scalar::Column(at) => self.rows.cell(*at),
            _ => self.computed[position].as_ref(),
        }
    }

    fn copy(&self, position: usize, to: &mut RowEncoder) {
        to.push(self.cell(position));
    }
}

/// The columns computed from a row.
pub(super) fn project(columns: &[Scalar], row: &Row) -> Result<Row, EvalError> {
    let is_same = columns.len() == row.len()
        && columns
            .iter()
            .enumerate()
            .all(|(at, column)| matches!(column, Scalar::Column(from) if *from == at));
    if is_same {
        return Ok(row.clone());
    }
    computed(columns, row)
}

/// A row of columns computed.
fn computed<R: Cells>(columns: &[Scalar], row: &R) -> Result<Row, EvalError> {
    let mut encoder = RowEncoder::default();
    for column in columns {
        match column {
            Scalar::Column(at) => row.copy(*at, &mut encoder),
            computed => encoder.push(computed.value(row, &NoExists)?.as_ref()),
        }
    }
    Ok(encoder.finish())
}
