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

use super::{
    Step,
    bag::{Bag, KeyBuffer, consolidate},
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
}

/// How a row is found.
#[derive(Debug)]
struct Ways {
    row: Row,
    /// How often it is there from the start.
    base: i64,
    /// How often the step yields it.
    steps: i64,
    is_found: bool,
}

/// What one advance has touched so far.
#[derive(Default)]
struct Touched {
    /// Rows with whether they were found before.
    before: HashMap<KeyBytes, bool>,
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
        loop {
            let lost = found.lose(&mut touched);
            if lost.is_empty() {
                break;
            }
            let yielded = self.round(rest, quiet, lost)?;
            found.count(&yielded, false, &mut touched);
        }
        loop {
            let gained = found.gain(&mut touched);
            if gained.is_empty() {
                break;
            }
            let yielded = self.round(rest, quiet, gained)?;
            found.count(&yielded, false, &mut touched);
        }
        Ok(found.tell(touched))
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
                row: row.clone(),
                base: 0,
                steps: 0,
                is_found: false,
            });
            if let Entry::Vacant(entry) = touched.before.entry(key.clone()) {
                entry.insert(known.is_found);
            }
            *(if is_base { &mut known.base } else { &mut known.steps }) += weight;
            (if *weight < 0 { &mut touched.lost } else { &mut touched.gained }).push(key);
        }
    }

    /// Takes out what lost a way and is not there from the start.
    fn lose(&mut self, touched: &mut Touched) -> Bag {
        let mut out = Bag::new();
        for key in touched.lost.drain(..) {
            let Some(ways) = self.rows.get_mut(&key) else { continue };
            if ways.is_found && ways.base <= 0 {
                ways.is_found = false;
                out.push((ways.row.clone(), -1));
                touched.gained.push(key);
            }
        }
        out
    }

    /// Puts in what there is a way to find.
    fn gain(&mut self, touched: &mut Touched) -> Bag {
        let mut out = Bag::new();
        for key in touched.gained.drain(..) {
            let Some(ways) = self.rows.get_mut(&key) else { continue };
            if !ways.is_found && ways.base + ways.steps > 0 {
                ways.is_found = true;
                out.push((ways.row.clone(), 1));
            }
        }
        out
    }

    /// What has changed, and an end to what is neither found nor counted.
    fn tell(&mut self, touched: Touched) -> Bag {
        let mut out = Bag::new();
        for (key, was_found) in touched.before {
            let Entry::Occupied(entry) = self.rows.entry(key) else { continue };
            let ways = entry.get();
            debug_assert_eq!(
                ways.is_found,
                ways.base + ways.steps > 0,
                "what is found has a way, and only that"
            );
            if was_found != ways.is_found {
                out.push((ways.row.clone(), if was_found { -1 } else { 1 }));
            }
            if (ways.base, ways.steps) == (0, 0) {
                entry.remove();
            }
        }
        out
    }

    /// The rows found.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values().filter(|ways| ways.is_found).map(|ways| &ways.row)
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn absorb(&mut self, other: Self) {
        self.rows.extend(other.rows);
    }

    pub(super) fn retain(&mut self, keep: &dyn Fn(&Row) -> bool) {
        self.rows.retain(|_, ways| keep(&ways.row));
    }
}
