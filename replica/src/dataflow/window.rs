//! Window functions: a partition that changes is computed again.

use super::{accumulator::Accumulator, aggregate::accumulate, bag::Bag, ordered::Rows};
use crate::{
    algebra::{Aggregate, Bound, Frame, FrameUnit, Limit, WindowFunction, WindowKind},
    expr::{EvalError, NoExists, Scalar},
    store::KeyBytes,
};
use std::ops::Range;
use tidegate_wire::model::{Row, Value, key::encode_cell};

/// A partition in order, each row as often as it is there.
struct Partition<'r> {
    rows: Vec<&'r Row>,
    /// Per row, the number of its group of equals.
    group: Vec<usize>,
    /// Where each group begins, and where the last one ends.
    starts: Vec<usize>,
    /// Each group's key in the order.
    keys: Vec<&'r KeyBytes>,
}

/// Appends a partition's rows with their functions' values.
pub(super) fn compute(
    rows: &Rows,
    functions: &[WindowFunction],
    sign: i64,
    out: &mut Bag,
) -> Result<(), EvalError> {
    let mut partition =
        Partition { rows: Vec::new(), group: Vec::new(), starts: Vec::new(), keys: Vec::new() };
    for ((order, _), (row, weight)) in rows {
        if partition.keys.last() != Some(&order) {
            partition.starts.push(partition.rows.len());
            partition.keys.push(order);
        }
        for _ in 0..*weight {
            partition.rows.push(row);
            partition.group.push(partition.starts.len() - 1);
        }
    }
    partition.starts.push(partition.rows.len());
    let columns =
        functions.iter().map(|function| partition.column(function)).collect::<Result<Vec<_>, _>>()?;
    for (at, row) in partition.rows.iter().enumerate() {
        let values = columns.iter().map(|column| column[at].as_ref());
        out.push((Row::encode(row.cells().chain(values)), sign));
    }
    Ok(())
}

impl Partition<'_> {
    /// A function's value for each row.
    fn column(&self, function: &WindowFunction) -> Result<Vec<Value>, EvalError> {
        let count = self.rows.len();
        let number = |number: usize| Value::Int8(i64::try_from(number).unwrap_or(i64::MAX));
        match &function.kind {
            WindowKind::RowNumber => Ok((1..=count).map(number).collect()),
            WindowKind::Rank => Ok((0..count).map(|at| number(self.starts[self.group[at]] + 1)).collect()),
            WindowKind::DenseRank => Ok((0..count).map(|at| number(self.group[at] + 1)).collect()),
            WindowKind::Lag { value, offset, default } => (0..count)
                .map(|at| {
                    let from = i64::try_from(at).unwrap_or(i64::MAX).checked_sub(*offset);
                    let row =
                        from.and_then(|from| usize::try_from(from).ok()).and_then(|from| self.rows.get(from));
                    row.map_or(Ok(default.clone()), |row| evaluate(value, row))
                })
                .collect(),
            WindowKind::PercentRank => Ok((0..count)
                .map(|at| {
                    let before = self.starts[self.group[at]];
                    Value::Float8(if count == 1 { 0.0 } else { before as f64 / (count - 1) as f64 })
                })
                .collect()),
            WindowKind::CumeDist => Ok((0..count)
                .map(|at| Value::Float8(self.starts[self.group[at] + 1] as f64 / count as f64))
                .collect()),
            WindowKind::Ntile(buckets) => {
                let buckets = usize::try_from(*buckets).unwrap_or(usize::MAX);
                // The first buckets have one row more where they cannot all have the same.
                let (size, larger) = (count / buckets, count % buckets);
                let end_of_larger = larger * (size + 1);
                let bucket = |at: usize| {
                    if at < end_of_larger { at / (size + 1) } else { larger + (at - end_of_larger) / size }
                };
                Ok((0..count).map(|at| number(bucket(at) + 1)).collect())
            }
            WindowKind::FirstValue(value, frame) => self.pick(value, frame, |frame| frame.start),
            WindowKind::LastValue(value, frame) => self.pick(value, frame, |frame| frame.end - 1),
            WindowKind::NthValue(value, number, frame) => {
                let behind = usize::try_from(number - 1).unwrap_or(usize::MAX);
                self.pick(value, frame, |frame| frame.start.saturating_add(behind))
            }
            WindowKind::Aggregate(aggregate, frame) => self.aggregate(aggregate, frame),
        }
    }

    /// The value of one row of each row's frame; NULL where the frame is empty or does not have it.
    fn pick(
        &self,
        value: &Scalar,
        frame: &Frame,
        which: impl Fn(&Range<usize>) -> usize,
    ) -> Result<Vec<Value>, EvalError> {
        (0..self.rows.len())
            .map(|at| match self.frame(at, frame)? {
                frame if frame.is_empty() || !frame.contains(&which(&frame)) => Ok(Value::Null),
                frame => evaluate(value, self.rows[which(&frame)]),
            })
            .collect()
    }

    /// An aggregate over each row's frame. Frames move forward, so that each row comes and goes once.
    fn aggregate(&self, aggregate: &Aggregate, frame: &Frame) -> Result<Vec<Value>, EvalError> {
        let mut values = Vec::with_capacity(self.rows.len());
        let mut accumulator = Accumulator::new(aggregate);
        let mut buffer = Vec::new();
        let mut held = 0..0;
        let mut last: Option<(Range<usize>, Value)> = None;
        for at in 0..self.rows.len() {
            let wanted = self.frame(at, frame)?;
            if let Some((range, value)) = &last
                && *range == wanted
            {
                values.push(value.clone());
                continue;
            }
            if wanted.start >= held.end || wanted.start < held.start || wanted.end < held.end {
                accumulator = Accumulator::new(aggregate);
                held = wanted.start..wanted.start;
            }
            for row in &self.rows[held.start..wanted.start.min(held.end)] {
                accumulate(aggregate, &mut accumulator, *row, -1, &mut buffer)?;
            }
            for row in &self.rows[held.end..wanted.end] {
                accumulate(aggregate, &mut accumulator, *row, 1, &mut buffer)?;
            }
            held = wanted.clone();
            let value = accumulator.value(aggregate)?;
            values.push(value.clone());
            last = Some((wanted, value));
        }
        Ok(values)
    }

    /// The rows that a row's frame has.
    fn frame(&self, at: usize, frame: &Frame) -> Result<Range<usize>, EvalError> {
        let count = self.rows.len();
        let group = self.group[at];
        let groups = self.starts.len() - 1;
        let by = |steps: u64| usize::try_from(steps).unwrap_or(usize::MAX);
        let is_rows = frame.unit == FrameUnit::Rows;
        // In rows, or in groups of equals.
        let (here, all) = if is_rows { (at, count) } else { (group, groups) };
        let start = match &frame.start {
            Bound::Unbounded => 0,
            Bound::Preceding(steps) => here.saturating_sub(by(*steps)),
            Bound::Current => here,
            Bound::Following(steps) => here.saturating_add(by(*steps)).min(all),
            Bound::Limit(limit) => {
                // Where the limit is out of range, a row at the end of the range is still before one that is behind.
                let (limit, is_behind) = limit_key(limit, self.rows[at])?;
                self.before(&limit, is_behind.unwrap_or(false))
            }
        };
        let end = match &frame.end {
            Bound::Unbounded => all,
            Bound::Preceding(steps) => (here + 1).saturating_sub(by(*steps)),
            Bound::Current => here + 1,
            Bound::Following(steps) => here.saturating_add(1).saturating_add(by(*steps)).min(all),
            Bound::Limit(limit) => {
                let (limit, is_behind) = limit_key(limit, self.rows[at])?;
                self.before(&limit, is_behind.unwrap_or(true))
            }
        };
        let (start, end) = if is_rows { (start, end) } else { (self.starts[start], self.starts[end]) };
        Ok(start..end.max(start))
    }

    /// How many groups come before a key; with `included` those at it count.
    fn before(&self, limit: &[u8], included: bool) -> usize {
        self.keys.partition_point(|key| key.as_slice() < limit || (included && key.as_slice() == limit))
    }
}

/// The key in the order of a limit that a row sets; where that is out of range, the end of the range and whether that is
/// behind the row.
fn limit_key(limit: &Limit, row: &Row) -> Result<(Vec<u8>, Option<bool>), EvalError> {
    let mut key = Vec::new();
    match limit.value.value(row, &NoExists) {
        Ok(value) => {
            encode_cell(value.as_ref(), limit.order, &mut key);
            Ok((key, None))
        }
        Err(EvalError::OutOfRange(_) | EvalError::OutsideYears { .. }) => {
            encode_cell(limit.extreme.as_ref(), limit.order, &mut key);
            Ok((key, Some(limit.is_behind)))
        }
        Err(error) => Err(error),
    }
}

fn evaluate(scalar: &Scalar, row: &Row) -> Result<Value, EvalError> {
    Ok(scalar.value(row, &NoExists)?.as_ref().to_value())
}
