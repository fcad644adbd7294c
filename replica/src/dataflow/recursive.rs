//! Recursion: rows found from rows found before, until there is nothing new.
//!
//! The step's operators maintain what the step yields of the rows found so far. Telling them that rows are found or lost
//! makes them tell what more or less that yields, and that goes round until nothing changes. Where a row counts as often
//! as it is found, that is all. Where it counts once, a row may be what it is found from itself, by a detour: so one
//! that loses a way to be found is first taken out, with all that is found from it, and comes back in the end if there is
//! still a way. Ways are counted, so that none has to be searched for.
//!
//! This needs a lost way to be told even where another comes in its place: the step's operators do not net their
//! changes, which is why it may not group or deduplicate.
//!
//! A row that is found in several spellings (1 and 1.0) is told to the step as it was spelled when it was found, and what is
//! found from it is spelled by that. As this depends on what is found before what, all is then found anew, in the order in
//! which it would be found from the start.

use super::{
    Step,
    bag::{Bag, KeyBuffer, consolidate},
    spellings::Spellings,
    state::State,
};
use crate::{
    expr::EvalError,
    pipeline::read::Reader,
    plan::{Node, Recursive},
    store::{Delta, KeyBytes},
};
use hashbrown::{HashMap, hash_map::Entry};
use std::sync::Arc;
use tidegate_wire::model::{Order, Row, key::encode_cell};

/// The rows found, each once, and those that were and may come back; none where rows count as often as they are found.
#[derive(Debug, Default)]
pub(super) struct Found {
    rows: HashMap<KeyBytes, Ways>,
    /// How many of them have several spellings.
    several: usize,
}

/// How a row is found.
#[derive(Debug)]
struct Ways {
    spellings: Spellings,
    /// How often it is there from the start.
    base: i64,
    /// How often the step yields it.
    steps: i64,
    /// The row as the step has been told of it, while it is found.
    found: Option<Row>,
}

/// What one advance has touched so far.
#[derive(Default)]
struct Touched {
    /// Rows as they were found before, if they were.
    before: HashMap<KeyBytes, Option<Row>>,
    /// Rows that lost a way, and rows that gained one, since it was last asked.
    lost: Vec<KeyBytes>,
    gained: Vec<KeyBytes>,
}

/// The operators of a step.
pub(super) struct Loop<'a, 's> {
    pub(super) states: &'a mut [State],
    pub(super) nodes: &'a [Node],
    pub(super) recursive: &'a Recursive,
    pub(super) step: &'a Step<'s>,
}

impl Loop<'_, '_> {
    /// What a recursion changes, given what the operators outside it change.
    pub(super) fn advance(mut self, found: &mut Found, changes: &mut [Bag]) -> Result<Bag, EvalError> {
        let yielded = self.round(self.step, changes, Bag::new())?;
        let base = std::mem::take(&mut changes[self.recursive.base]);
        // From here on nothing changes but what is found.
        let delta = Delta::empty(Arc::clone(&self.step.delta.to));
        let reader = || Reader { snapshot: &delta.to, budget: self.step.after.budget };
        let (before, after) = (reader(), reader());
        let rest = Step {
            delta: &delta,
            before,
            after,
            is_first: false,
            parameters: Bag::new(),
            key: KeyBuffer::default(),
        };
        let mut quiet = vec![Bag::new(); changes.len()];
        let out = if self.recursive.all {
            self.often(&rest, &mut quiet, base.iter().cloned().chain(yielded).collect())
        } else {
            self.once(&rest, &mut quiet, found, &base, &yielded)
        };
        changes[self.recursive.base] = base;
        out
    }

    /// Rows that count as often as they are found.
    fn often(&mut self, rest: &Step<'_>, quiet: &mut [Bag], mut fresh: Bag) -> Result<Bag, EvalError> {
        let mut out = Bag::new();
        loop {
            consolidate(&mut fresh);
            if fresh.is_empty() {
                return Ok(out);
            }
            out.extend(fresh.iter().cloned());
            fresh = self.round(rest, quiet, fresh)?;
        }
    }

    /// Rows that count once.
    fn once(
        &mut self,
        rest: &Step<'_>,
        quiet: &mut [Bag],
        found: &mut Found,
        base: &Bag,
        yielded: &Bag,
    ) -> Result<Bag, EvalError> {
        let mut touched = Touched::default();
        found.count(base, true, &mut touched);
        found.count(yielded, false, &mut touched);
        let lost = found.lose(&mut touched);
        self.settle(rest, quiet, found, &mut touched, lost)?;
        if found.several > 0 && !touched.before.is_empty() {
            let lost = found.lose_all(&mut touched);
            self.settle(rest, quiet, found, &mut touched, lost)?;
        }
        Ok(found.tell(touched))
    }

    /// Works through what is lost, with all that is then lost, and puts back what there is a way to find.
    fn settle(
        &mut self,
        rest: &Step<'_>,
        quiet: &mut [Bag],
        found: &mut Found,
        touched: &mut Touched,
        mut lost: Bag,
    ) -> Result<(), EvalError> {
        while !lost.is_empty() {
            let yielded = self.round(rest, quiet, lost)?;
            found.count(&yielded, false, touched);
            lost = found.lose(touched);
        }
        loop {
            let gained = found.gain(touched);
            if gained.is_empty() {
                return Ok(());
            }
            let yielded = self.round(rest, quiet, gained)?;
            found.count(&yielded, false, touched);
        }
    }

    /// Tells the step's operators what is found or lost; what the step yields then.
    fn round(&mut self, step: &Step<'_>, changes: &mut [Bag], found: Bag) -> Result<Bag, EvalError> {
        for _ in &found {
            step.after.budget.spend()?;
            step.after.budget.pass()?;
        }
        let Recursive { step: last, looped, .. } = self.recursive;
        let (working, operators) = looped.split_first().expect("a step reads what is found");
        changes[*working] = found;
        for &at in operators {
            let node = &self.nodes[at];
            changes[at] = self.states[at].advance(&node.operator, step, changes, node.depends)?;
        }
        Ok(std::mem::take(&mut changes[*last]))
    }
}

impl Found {
    /// Counts ways that come and go.
    fn count(&mut self, ways: &Bag, is_base: bool, touched: &mut Touched) {
        for (row, weight) in ways {
            let mut key = Vec::new();
            row.cells().for_each(|cell| encode_cell(cell, Order::ASC, &mut key));
            let key = KeyBytes::from_slice(&key);
            let known = self.rows.entry(key.clone()).or_insert_with(|| Ways {
                spellings: Spellings::of(row.clone()),
                base: 0,
                steps: 0,
                found: None,
            });
            touched.before.entry(key.clone()).or_insert_with(|| known.found.clone());
            self.several -= usize::from(known.spellings.are_several());
            known.spellings.add(row.cells(), *weight, known.base + known.steps);
            self.several += usize::from(known.spellings.are_several());
            *(if is_base { &mut known.base } else { &mut known.steps }) += weight;
            (if *weight < 0 { &mut touched.lost } else { &mut touched.gained }).push(key);
        }
    }

    /// Takes out what lost a way and is not there from the start, or not in its spelling.
    fn lose(&mut self, touched: &mut Touched) -> Bag {
        let mut out = Bag::new();
        for key in touched.lost.drain(..) {
            let Some(ways) = self.rows.get_mut(&key) else { continue };
            let (is_base, spellings) = (ways.base > 0, &ways.spellings);
            if let Some(row) = ways.found.take_if(|row| !is_base || !spellings.contain(row)) {
                out.push((row, -1));
                touched.gained.push(key);
            }
        }
        out
    }

    /// Takes out everything.
    fn lose_all(&mut self, touched: &mut Touched) -> Bag {
        let mut out = Bag::new();
        for (key, ways) in &mut self.rows {
            let Some(row) = ways.found.take() else { continue };
            touched.before.entry(key.clone()).or_insert_with(|| Some(row.clone()));
            touched.gained.push(key.clone());
            out.push((row, -1));
        }
        out
    }

    /// Puts in what there is a way to find.
    fn gain(&mut self, touched: &mut Touched) -> Bag {
        let mut out = Bag::new();
        for key in touched.gained.drain(..) {
            let Some(ways) = self.rows.get_mut(&key) else { continue };
            if ways.found.is_none() && ways.base + ways.steps > 0 {
                let row = ways.spellings.row();
                ways.found = Some(row.clone());
                out.push((row.clone(), 1));
            }
        }
        out
    }

    /// What has changed, and an end to what is neither found nor counted.
    fn tell(&mut self, touched: Touched) -> Bag {
        let mut out = Bag::new();
        for (key, before) in touched.before {
            let Entry::Occupied(entry) = self.rows.entry(key) else { continue };
            let ways = entry.get();
            debug_assert_eq!(
                ways.found.is_some(),
                ways.base + ways.steps > 0,
                "what is found has a way, and only that"
            );
            if before.as_ref().map(Row::as_bytes) != ways.found.as_ref().map(Row::as_bytes) {
                out.extend(before.map(|row| (row, -1)));
                out.extend(ways.found.clone().map(|row| (row, 1)));
            }
            if (ways.base, ways.steps) == (0, 0) {
                entry.remove();
            }
        }
        out
    }

    /// The rows found.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values().filter_map(|ways| ways.found.as_ref())
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn absorb(&mut self, other: Self) {
        self.rows.extend(other.rows);
        self.several += other.several;
    }

    pub(super) fn retain(&mut self, keep: &dyn Fn(&Row) -> bool) {
        self.rows.retain(|_, ways| keep(ways.spellings.row()));
        self.several = self.rows.values().filter(|ways| ways.spellings.are_several()).count();
    }
}
