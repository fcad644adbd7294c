//! Grouping: one row per key with aggregates of its rows.

use super::{
    accumulator::Accumulator,
    bag::{Bag, encode_order},
    completion::{Columns, Taker},
    join::is_true,
    spellings::Spellings,
};
use crate::{
    algebra::{Aggregate, Column},
    expr::{Beside, Cells, EvalError, NoExists, Scalar, scalar::Computed},
    pipeline::Budget,
    plan::Path,
    store::KeyBytes,
};
use hashbrown::HashMap;
use slab::Slab;
use smallvec::SmallVec;
use tidegate_wire::model::{Order, Row, Value, key::encode_cell};

/// The groups by their key.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// Each group's place.
    by_key: HashMap<KeyBytes, usize>,
    groups: Slab<Group>,
}

#[derive(Debug)]
struct Group {
    /// The key's columns.
    key: Spellings,
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
            let group = Group { is_touched: true, ..Group::new(Row::from_values(&[]), aggregates) };
            touched.push(self.insert(KeyBytes::new(), group));
        }
        Grouping {
            groups: Held::Lent(self),
            keys,
            aggregates,
            touched,
            last: None,
            encoded: Vec::new(),
            buffer: Vec::new(),
            taken: 0,
        }
    }

    fn insert(&mut self, key: KeyBytes, group: Group) -> usize {
        let place = self.groups.insert(group);
        self.by_key.insert(key, place);
        place
    }

    /// The groups' rows.
    pub(super) fn told(&self) -> impl Iterator<Item = &Row> {
        self.groups.iter().filter_map(|(_, group)| group.told.as_ref())
    }

    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    /// Takes over the groups of another, whose keys are others.
    pub(super) fn absorb(&mut self, mut other: Self) {
        for (key, place) in other.by_key {
            self.insert(key, other.groups.remove(place));
        }
    }

    pub(super) fn retain(&mut self, keep: &dyn Fn(&Row) -> bool) {
        self.groups.retain(|_, group| keep(group.key.row()));
        self.by_key.retain(|_, place| self.groups.contains(*place));
    }
}

/// Groups that take rows.
pub(super) struct Grouping<'g> {
    groups: Held<'g>,
    keys: usize,
    aggregates: &'g [Aggregate],
    /// The places of the groups that took some.
    touched: Vec<usize>,
    /// The place of the group that took the last one, whose key is in `encoded`. Rows of a group often follow each other.
    last: Option<usize>,
    encoded: Vec<u8>,
    buffer: Vec<u8>,
    /// How many rows were taken.
    pub(super) taken: usize,
}

impl Grouping<'_> {
    /// Takes a row so many times.
    pub(super) fn add<R: Cells>(&mut self, row: &R, weight: i64) -> Result<(), EvalError> {
        self.taken += 1;
        self.buffer.clear();
        let mut has_spellings = false;
        for column in 0..self.keys {
            let cell = row.cell(column);
            has_spellings |= cell.has_spellings();
            encode_cell(cell, Order::ASC, &mut self.buffer);
        }
        let place = match self.last {
            Some(place) if self.buffer == self.encoded => place,
            _ => self.find(row),
        };
        let group = &mut self.groups.get().groups[place];
        if has_spellings {
            group.key.add((0..self.keys).map(|column| row.cell(column)), weight, group.rows);
        }
        group.rows += weight;
        for (aggregate, accumulator) in self.aggregates.iter().zip(&mut group.accumulators) {
            accumulate(aggregate, accumulator, row, weight, &mut self.buffer)?;
        }
        Ok(())
    }

    /// The place of the group of a row whose key is in the buffer.
    fn find<R: Cells>(&mut self, row: &R) -> usize {
        std::mem::swap(&mut self.encoded, &mut self.buffer);
        let groups = self.groups.get();
        let place = match groups.by_key.get(self.encoded.as_slice()) {
            Some(place) => *place,
            None => {
                let key = Row::encode((0..self.keys).map(|column| row.cell(column)));
                groups.insert(KeyBytes::from_slice(&self.encoded), Group::new(key, self.aggregates))
            }
        };
        self.touch(place);
        self.last = Some(place);
        place
    }

    /// Notes that a group takes rows.
    fn touch(&mut self, place: usize) {
        if !std::mem::replace(&mut self.groups.get().groups[place].is_touched, true) {
            self.touched.push(place);
        }
    }

    /// What that changes.
    pub(super) fn end(mut self) -> Result<Bag, EvalError> {
        let mut out = Bag::new();
        let Groups { by_key, groups } = self.groups.get();
        for place in self.touched {
            let group = &mut groups[place];
            group.is_touched = false;
            if group.rows > 0 || self.keys == 0 {
                group.tell(self.aggregates, &mut out)?;
                continue;
            }
            let group = groups.remove(place);
            self.buffer.clear();
            group.key.row().cells().for_each(|cell| encode_cell(cell, Order::ASC, &mut self.buffer));
            by_key.remove(self.buffer.as_slice());
            out.extend(group.told.map(|row| (row, -1)));
        }
        Ok(out)
    }
}

/// The groups of an operator, or those of a portion of its rows.
enum Held<'g> {
    Lent(&'g mut Groups),
    Own(Groups),
}

impl Held<'_> {
    fn get(&mut self) -> &mut Groups {
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
            groups: Held::Own(Groups::default()),
            touched: Vec::new(),
            last: None,
            encoded: Vec::new(),
            buffer: Vec::new(),
            taken: 0,
            ..*self
        })
    }

    fn merge(&mut self, mut other: Self) {
        self.taken += other.taken;
        let Groups { by_key, groups: mut others } = std::mem::take(other.groups.get());
        for (key, place) in by_key {
            let other = others.remove(place);
            let groups = self.groups.get();
            match groups.by_key.get(&key) {
                None => self.touched.push(groups.insert(key, other)),
                Some(&place) => {
                    groups.groups[place].merge(other);
                    self.touch(place);
                }
            }
        }
    }
}

/// Adds a row to an accumulator so many times, if it counts. `buffer` is for the accumulator's keys: one for many rows
/// saves an allocation for each.
pub(crate) fn accumulate<R: Cells>(
    aggregate: &Aggregate,
    accumulator: &mut Accumulator,
    row: &R,
    weight: i64,
    buffer: &mut Vec<u8>,
) -> Result<(), EvalError> {
    if let Some(filter) = &aggregate.filter
        && !is_true(filter, row)?
    {
        return Ok(());
    }
    buffer.clear();
    encode_order(&aggregate.order, row, buffer)?;
    // Mostly there is one argument, which is a column; collecting it would be a good part of an advance.
    if let [Column { scalar: Scalar::Column(at), .. }] = aggregate.arguments.as_slice() {
        accumulator.add(aggregate.function, &[row.cell(*at)], buffer, weight);
        return Ok(());
    }
    let values = aggregate
        .arguments
        .iter()
        .map(|argument| argument.scalar.value(row, &NoExists))
        .collect::<Result<SmallVec<[_; 2]>, _>>()?;
    let values: SmallVec<[_; 2]> = values.iter().map(Computed::as_ref).collect();
    accumulator.add(aggregate.function, &values, buffer, weight);
    Ok(())
}

impl Group {
    fn new(key: Row, aggregates: &[Aggregate]) -> Self {
        let accumulators = aggregates.iter().map(Accumulator::new).collect();
        let key = Spellings::of(key);
        Self { key, rows: 0, accumulators, told: None, is_touched: false }
    }

    /// Adds the rows of another group of the same key.
    fn merge(&mut self, other: Self) {
        self.key.merge(other.key, self.rows, other.rows);
        self.rows += other.rows;
        for (own, other) in self.accumulators.iter_mut().zip(other.accumulators) {
            own.merge(other);
        }
    }

    /// Adds what its row changes to, if it does.
    fn tell(&mut self, aggregates: &[Aggregate], out: &mut Bag) -> Result<(), EvalError> {
        let values = self
            .accumulators
            .iter()
            .zip(aggregates)
            .map(|(accumulator, aggregate)| accumulator.value(aggregate))
            .collect::<Result<SmallVec<[Value; 2]>, _>>()?;
        let values = values.iter().map(Value::as_ref);
        let key = self.key.row();
        if let Some(told) = &self.told
            && values.clone().enumerate().all(|(at, value)| value.is_same(told.cell(key.len() + at)))
            && key.cells().enumerate().all(|(at, cell)| cell.is_same(told.cell(at)))
        {
            return Ok(());
        }
        let row = Row::encode(key.cells().chain(values));
        out.extend(self.told.replace(row.clone()).map(|row| (row, -1)));
        out.push((row, 1));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Spellings of 1.
    const SPELLINGS: [&str; 3] = ["1", "1.0", "1.00"];

    fn row(spelling: usize) -> Row {
        let number = SPELLINGS[spelling].parse().expect("a number");
        Row::from_values(&[Value::Numeric(std::sync::Arc::new(number))])
    }

    fn told(groups: &Groups) -> Vec<Row> {
        groups.told().cloned().collect()
    }

    proptest! {
        /// Fails when a group keeps the spelling of the row that came first.
        #[test]
        fn a_key_is_spelled_as_if_computed_anew(
            steps in prop::collection::vec(prop::collection::vec((0_usize..3, any::<bool>()), 1..4), 1..20),
        ) {
            let (mut groups, mut counts, mut shown) = (Groups::default(), [0_i64; 3], Vec::new());
            for step in steps {
                let mut changes = Bag::new();
                for (spelling, comes) in step {
                    if comes || counts[spelling] > 0 {
                        let weight = if comes { 1 } else { -1 };
                        counts[spelling] += weight;
                        changes.push((row(spelling), weight));
                    }
                }
                for (row, weight) in groups.advance(1, &[], &changes, false).expect("no aggregate fails") {
                    if weight > 0 { shown.push(row) } else { shown.retain(|other| *other != row) }
                }
                let present: Bag = (0..3).rev().filter(|&at| counts[at] > 0).map(|at| (row(at), counts[at])).collect();
                let mut anew = Groups::default();
                anew.advance(1, &[], &present, false).expect("no aggregate fails");
                prop_assert_eq!(told(&groups), told(&anew));
                prop_assert_eq!(&shown, &told(&anew));
            }
        }
    }
}
