//! Grouping: one row per key with aggregates of its rows.

use super::{
    accumulator::Accumulator,
    bag::{Bag, encode_order},
    completion::{Columns, Taker},
    join::is_true,
};
use crate::{
    algebra::Aggregate,
    expr::{Beside, Cells, EvalError, NoExists, scalar::Computed},
    pipeline::Budget,
    plan::Path,
    store::KeyBytes,
};
use hashbrown::{HashMap, hash_map::Entry};
use smallvec::SmallVec;
use tidegate_wire::model::{Order, Row, Value, key::encode_cell};

/// The groups by their key.
#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: HashMap<KeyBytes, Group>,
}

#[derive(Debug)]
struct Group {
    /// The key's columns, as the first row had them.
    key: Row,
    rows: i64,
    accumulators: Vec<Accumulator>,
    /// The row that was told last.
    told: Option<Row>,
    is_touched: bool,
}

impl Groups {
    /// What the groups' rows change. With `always`, there is a group for the empty key whatever comes.
    pub(super) fn advance(
        &mut self,
        keys: usize,
        aggregates: &[Aggregate],
        changes: &Bag,
        always: bool,
    ) -> Result<Bag, EvalError> {
        let mut grouping = self.grouping(keys, aggregates, always);
        for (row, weight) in changes {
            grouping.add(row, *weight)?;
        }
        grouping.end()
    }

    /// Takes rows one by one.
    pub(super) fn grouping<'g>(
        &'g mut self,
        keys: usize,
        aggregates: &'g [Aggregate],
        always: bool,
    ) -> Grouping<'g> {
        let mut touched = Vec::new();
        if always {
            let group = Group::new(Row::from_values(&[]), aggregates);
            self.groups.insert(KeyBytes::new(), Group { is_touched: true, ..group });
            touched.push(KeyBytes::new());
        }
        Grouping {
            groups: Held::Lent(&mut self.groups),
            keys,
            aggregates,
            touched,
            encoded: Vec::new(),
            taken: 0,
        }
    }

    /// The groups' rows.
    pub(super) fn told(&self) -> impl Iterator<Item = &Row> {
        self.groups.values().filter_map(|group| group.told.as_ref())
    }

    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    pub(super) fn absorb(&mut self, other: Self) {
        self.groups.extend(other.groups);
    }

    pub(super) fn retain(&mut self, keep: &dyn Fn(&Row) -> bool) {
        self.groups.retain(|_, group| keep(&group.key));
    }
}

/// Groups that take rows.
pub(super) struct Grouping<'g> {
    groups: Held<'g>,
    keys: usize,
    aggregates: &'g [Aggregate],
    /// The keys of the groups that took some.
    touched: Vec<KeyBytes>,
    encoded: Vec<u8>,
    /// How many rows were taken.
    pub(super) taken: usize,
}

impl Grouping<'_> {
    /// Takes a row so many times.
    pub(super) fn add<R: Cells>(&mut self, row: &R, weight: i64) -> Result<(), EvalError> {
        self.taken += 1;
        self.encoded.clear();
        for column in 0..self.keys {
            encode_cell(row.cell(column), Order::ASC, &mut self.encoded);
        }
        let group = self.groups.get().entry_ref(self.encoded.as_slice()).or_insert_with(|| {
            Group::new(Row::encode((0..self.keys).map(|column| row.cell(column))), self.aggregates)
        });
        if !std::mem::replace(&mut group.is_touched, true) {
            self.touched.push(KeyBytes::from_slice(&self.encoded));
        }
        group.rows += weight;
        for (aggregate, accumulator) in self.aggregates.iter().zip(&mut group.accumulators) {
            accumulate(aggregate, accumulator, row, weight)?;
        }
        Ok(())
    }

    /// What that changes.
    pub(super) fn end(mut self) -> Result<Bag, EvalError> {
        let mut out = Bag::new();
        let groups = self.groups.get();
        for key in self.touched {
            let Some(group) = groups.get_mut(&key) else { continue };
            group.is_touched = false;
            let is_there = group.rows > 0 || self.keys == 0;
            let row = if is_there { Some(group.row(self.aggregates)?) } else { None };
            if row != group.told {
                out.extend(std::mem::replace(&mut group.told, row.clone()).map(|row| (row, -1)));
                out.extend(row.map(|row| (row, 1)));
            }
            if !is_there {
                groups.remove(&key);
            }
        }
        Ok(out)
    }
}

/// The groups of an operator, or those of a portion of its rows.
enum Held<'g> {
    Lent(&'g mut HashMap<KeyBytes, Group>),
    Own(HashMap<KeyBytes, Group>),
}

impl Held<'_> {
    fn get(&mut self) -> &mut HashMap<KeyBytes, Group> {
        match self {
            Self::Lent(groups) => groups,
            Self::Own(groups) => groups,
        }
    }
}

impl Taker for Grouping<'_> {
    fn take(&mut self, _: &Budget, path: &Path, rows: &Beside<'_>, weight: i64) -> Result<(), EvalError> {
        self.add(&Columns::of(path, rows)?, weight)
    }

    fn fork(&self) -> Option<Self> {
        let can_merge = !self.aggregates.iter().any(|aggregate| aggregate.distinct);
        can_merge.then(|| Self {
            groups: Held::Own(HashMap::new()),
            touched: Vec::new(),
            encoded: Vec::new(),
            taken: 0,
            ..*self
        })
    }

    fn merge(&mut self, mut other: Self) {
        self.taken += other.taken;
        let groups = self.groups.get();
        for (key, group) in std::mem::take(other.groups.get()) {
            match groups.entry(key) {
                Entry::Vacant(entry) => {
                    self.touched.push(entry.key().clone());
                    entry.insert(group);
                }
                Entry::Occupied(mut entry) => {
                    if !std::mem::replace(&mut entry.get_mut().is_touched, true) {
                        self.touched.push(entry.key().clone());
                    }
                    entry.get_mut().merge(group);
                }
            }
        }
    }
}

/// Adds a row to an accumulator so many times, if it counts.
pub(crate) fn accumulate<R: Cells>(
    aggregate: &Aggregate,
    accumulator: &mut Accumulator,
    row: &R,
    weight: i64,
) -> Result<(), EvalError> {
    if let Some(filter) = &aggregate.filter
        && !is_true(filter, row)?
    {
        return Ok(());
    }
    let mut order = Vec::new();
    encode_order(&aggregate.order, row, &mut order)?;
    if let [argument] = aggregate.arguments.as_slice() {
        let value = argument.scalar.value(row, &NoExists)?;
        accumulator.add(aggregate.function, &[value.as_ref()], &order, weight);
        return Ok(());
    }
    let values = aggregate
        .arguments
        .iter()
        .map(|argument| argument.scalar.value(row, &NoExists))
        .collect::<Result<SmallVec<[_; 2]>, _>>()?;
    let values: SmallVec<[_; 2]> = values.iter().map(Computed::as_ref).collect();
    accumulator.add(aggregate.function, &values, &order, weight);
    Ok(())
}

impl Group {
    fn new(key: Row, aggregates: &[Aggregate]) -> Self {
        let accumulators = aggregates.iter().map(Accumulator::new).collect();
        Self { key, rows: 0, accumulators, told: None, is_touched: false }
    }

    /// Adds the rows of another group of the same key.
    fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        for (own, other) in self.accumulators.iter_mut().zip(other.accumulators) {
            own.merge(other);
        }
    }

    /// The group's row.
    fn row(&self, aggregates: &[Aggregate]) -> Result<Row, EvalError> {
        let values = self
            .accumulators
            .iter()
            .zip(aggregates)
            .map(|(accumulator, aggregate)| accumulator.value(aggregate))
            .collect::<Result<Vec<Value>, _>>()?;
        Ok(Row::encode(self.key.cells().chain(values.iter().map(Value::as_ref))))
    }
}
