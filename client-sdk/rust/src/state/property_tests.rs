//! Random layouts, rows and operations against a result built from scratch.

use super::{
    Changes, Effect, State, StateOptions,
    naive::{NaiveRow, result},
};
use crate::query::Query;
use proptest::prelude::*;
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::Value as Json;
use std::{collections::HashMap, sync::Arc};
use tidegate_wire::{
    codec::Codec,
    model::{
        ColumnType, Cv, Direction, Epoch, Fingerprint, Layout, Nulls, Order, OrderColumn, PlaceLayout,
        PlaceMask, PlaceValue, Seq, SubId, TableLayout, Value, layout::LayoutColumn,
    },
    protocol::{
        Cell, ClientMessage, ServerMessage,
        server::{Batch, Op, Progress, Subscribed},
    },
};

const TYPES: [ColumnType; 7] = [
    ColumnType::Int8,
    ColumnType::Int8,
    ColumnType::Float8,
    ColumnType::Numeric,
    ColumnType::Text,
    ColumnType::Date,
    ColumnType::Timestamptz,
];

fn value(ty: ColumnType, nullable: bool, rng: &mut StdRng) -> Value {
    if nullable && rng.random_bool(0.2) {
        return Value::Null;
    }
    let pick = |texts: &[&str], rng: &mut StdRng| (*texts.choose(rng).expect("some")).to_owned();
    match ty {
        ColumnType::Int8 => Value::Int8(*[-1, 0, 1, 2, 3].choose(rng).expect("some")),
        ColumnType::Float8 => {
            Value::Float8(*[-0.0, 0.0, 0.5, 1.0, 2.0, f64::NAN, f64::INFINITY].choose(rng).expect("some"))
        }
        ColumnType::Numeric => Value::Numeric(Arc::new(
            pick(&["0", "1", "1.0", "0.5", "2.00", "NaN"], rng).parse().expect("numeric"),
        )),
        ColumnType::Date => Value::Date(rng.random_range(0..3)),
        ColumnType::Timestamptz => Value::Timestamptz(rng.random_range(0..4) * 43_200_000_000),
        _ => Value::Text(pick(&["", "a", "ab", "b"], rng).into()),
    }
}

fn random_layout(rng: &mut StdRng) -> Layout {
    let tables: Vec<TableLayout> = (0..rng.random_range(1..=3))
        .map(|index| {
            let columns: Vec<_> = (0..rng.random_range(2..=5))
                .map(|c| LayoutColumn { name: format!("c{c}"), ty: *TYPES.choose(rng).expect("some") })
                .collect();
            let key =
                if rng.random_bool(0.4) { vec![1, 0] } else { vec![rng.random_range(0..columns.len())] };
            TableLayout { name: format!("t{index}"), columns, key }
        })
        .collect();
    let mut places: Vec<PlaceLayout> = Vec::new();
    for index in 0..rng.random_range(1..=6) {
        let table = rng.random_range(0..tables.len());
        let width = tables[table].columns.len();
        let parents: Vec<usize> = (0..index).filter(|&place| places[place].value.is_none()).collect();
        let parent = parents.choose(rng).copied();
        let on = parent.map_or(Vec::new(), |parent| {
            let parent: &PlaceLayout = &places[parent];
            let parent_width = tables[parent.table].columns.len();
            // Mostly columns of one kind, or nothing would ever meet.
            let pairs: Vec<(usize, usize)> =
                (0..parent_width).flat_map(|p| (0..width).map(move |c| (p, c))).collect();
            let meets = |&&(p, c): &&(usize, usize)| {
                let (a, b) = (tables[parent.table].columns[p].ty, tables[table].columns[c].ty);
                a == b || (a.is_number() && b.is_number())
            };
            let meeting: Vec<_> = pairs.iter().filter(meets).copied().collect();
            let from = if meeting.is_empty() || rng.random_bool(0.1) { &pairs } else { &meeting };
            (0..rng.random_range(1..=2)).map(|_| *from.choose(rng).expect("some")).collect()
        });
        let term = |column, rng: &mut StdRng| OrderColumn {
            column,
            order: Order {
                direction: if rng.random() { Direction::Asc } else { Direction::Desc },
                nulls: if rng.random() { Nulls::First } else { Nulls::Last },
            },
        };
        let mut order: Vec<_> =
            (0..rng.random_range(0..=2)).map(|_| term(rng.random_range(0..width), rng)).collect();
        for &column in &tables[table].key {
            order.push(term(column, rng));
        }
        let one = index > 0 && rng.random_bool(0.3);
        let mut columns: Vec<usize> = (0..width).filter(|_| rng.random_bool(0.7)).collect();
        let value = (one && rng.random_bool(0.5)).then(|| {
            columns = vec![rng.random_range(0..width)];
            let is_count = tables[table].columns[columns[0]].ty == ColumnType::Int8;
            PlaceValue { or: if is_count { Json::from(0) } else { Json::Null } }
        });
        places.push(PlaceLayout {
            parent,
            name: parent.map(|_| format!("p{index}")),
            table,
            columns,
            on,
            order,
            one,
            value,
        });
    }
    Layout { tables, places }
}

/// A server with one query, and a client that follows it.
struct Run {
    rng: StdRng,
    layout: Layout,
    codec: Codec,
    rows: Vec<NaiveRow>,
    state: State,
    sub: SubId,
    epoch: Epoch,
    seq: Seq,
    cv: Cv,
    /// The root rows that the client was told of.
    told: HashMap<Arc<[u8]>, Json>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let layout = random_layout(&mut rng);
        let codec = Codec::ALL[rng.random_range(0..2)];
        let options = StateOptions { client_id: None, mutations_max: 1, waiting_ops_max: 1 << 20 };
        let mut state = State::new(options);
        let sub = state.subscribe(Query::named("q"), &mut Vec::new());
        state.connect(codec, None, &mut Vec::new());
        let (rows, told) = (Vec::new(), HashMap::new());
        Self { rng, layout, codec, rows, state, sub, epoch: Epoch(0), seq: Seq(0), cv: Cv(0), told }
    }

    fn receive(&mut self, message: &ServerMessage) -> Vec<Effect> {
        // Through the codec, so that cells come in their travelling forms.
        let mut bytes = Vec::new();
        self.codec.encode(message, &mut bytes);
        let mut effects = Vec::new();
        let state = &mut self.state;
        self.codec.decode(&bytes, |message| state.receive(message, &mut effects)).expect("decodes");
        assert!(!effects.iter().any(|e| matches!(e, Effect::Violation(_))), "{effects:?}");
        effects
    }

    fn cells(&self, values: impl IntoIterator<Item = Value>) -> Vec<Cell> {
        values.into_iter().map(|value| Cell::from_value(&value, self.codec)).collect()
    }

    fn random_row(&mut self) -> Option<NaiveRow> {
        let table = self.rng.random_range(0..self.layout.tables.len());
        let mask = (0..self.layout.places.len())
            .filter(|&place| self.layout.places[place].table == table && self.rng.random_bool(0.7))
            .fold(0, |mask, place| mask | 1 << place);
        let layout = &self.layout.tables[table];
        let cells = layout.columns.iter().enumerate();
        let cells =
            cells.map(|(c, column)| value(column.ty, !layout.key.contains(&c), &mut self.rng)).collect();
        (mask != 0).then_some(NaiveRow { table, cells, places: PlaceMask(mask) })
    }

    fn position(&self, row: &NaiveRow) -> Option<usize> {
        let key = &self.layout.tables[row.table].key;
        let same = |other: &NaiveRow| {
            other.table == row.table && key.iter().all(|&c| other.cells[c] == row.cells[c])
        };
        self.rows.iter().position(same)
    }

    /// Changes some rows; the operations, at most one for each row.
    fn commit(&mut self, count: usize) -> Vec<Op> {
        let mut done: Vec<NaiveRow> = Vec::new();
        let mut ops = Vec::new();
        for _ in 0..count {
            let Some(row) = self.random_row() else { continue };
            let key = self.layout.tables[row.table].key.clone();
            let same = |other: &NaiveRow| {
                other.table == row.table && key.iter().all(|&c| other.cells[c] == row.cells[c])
            };
            if done.iter().any(same) {
                continue;
            }
            done.push(row.clone());
            let (table, places) = (row.table, row.places);
            let cells = self.cells(row.cells.clone());
            match self.position(&row) {
                None => {
                    self.rows.push(row);
                    ops.push(Op::Add { table, places, cells });
                }
                Some(index) if self.rng.random_bool(0.4) => {
                    self.rows.swap_remove(index);
                    let key = self.cells(key.iter().map(|&c| row.cells[c].clone()));
                    ops.push(Op::Remove { table, key });
                }
                Some(index) => {
                    self.rows[index] = row;
                    ops.push(Op::Edit { table, places, cells });
                }
            }
        }
        ops
    }

    fn subscribed(&mut self, resumed: bool) {
        self.epoch = self.epoch.next();
        self.seq = Seq(0);
        let Layout { tables, places } = self.layout.clone();
        let (sub, epoch, fp) = (self.sub, self.epoch, Fingerprint(1));
        self.receive(&ServerMessage::Subscribed(Subscribed { sub, epoch, fp, tables, places, resumed }));
    }

    fn batch(&mut self, more: bool, ops: Vec<Op>) {
        let (sub, epoch, seq, cv, fp) = (self.sub, self.epoch, self.seq, self.cv, Fingerprint(1));
        self.receive(&ServerMessage::Batch(Batch { sub, epoch, seq, cv, fp, more, ops }));
        self.seq = seq.next();
    }

    fn snapshot(&mut self) {
        self.subscribed(false);
        let rows = self.rows.clone();
        let mut ops: Vec<_> = rows
            .into_iter()
            .map(|row| Op::Add { table: row.table, places: row.places, cells: self.cells(row.cells) })
            .collect();
        let rest = ops.split_off(self.rng.random_range(0..=ops.len()));
        if self.rng.random() {
            self.batch(true, ops);
            self.batch(false, rest);
        } else {
            self.batch(false, ops.into_iter().chain(rest).collect());
        }
    }

    fn progress(&mut self) {
        let before = self.shown();
        let effects = self.receive(&ServerMessage::Progress(Progress { cv_min: self.cv }));
        let [Effect::Released(release)] = effects.as_slice() else { panic!("{effects:?}") };
        assert_eq!(release.cv, self.cv);
        let after = self.shown();
        assert_eq!(after.to_json(), result(&self.layout, &self.rows), "{:?}", self.layout);
        let Some(Effect::Released(release)) = effects.into_iter().next() else { unreachable!() };
        let changes = release.results.into_iter().next().map_or_else(Changes::default, |r| r.changes);
        let mut changed = 0;
        for change in changes.into_sorted() {
            changed += 1;
            let old = change.old.map(|node| node.to_json());
            let new = change.new.map(|node| node.to_json());
            let told = match new {
                Some(new) => self.told.insert(change.key, new),
                None => self.told.remove(&change.key),
            };
            assert_eq!(told, old);
        }
        let mut told: Vec<String> = self.told.values().map(Json::to_string).collect();
        let mut shown: Vec<String> = after.iter().map(|node| node.to_json().to_string()).collect();
        told.sort();
        shown.sort();
        assert_eq!(told, shown);
        // Whatever no change names is the same node in both versions.
        let kept = after.iter().filter(|node| before.iter().any(|other| Arc::ptr_eq(node, other))).count();
        assert!(kept + changed >= after.len(), "{kept} kept, {changed} changed, {} rows", after.len());
    }

    fn shown(&self) -> super::Rows {
        let subscription = self.state.subscriptions.get(&self.sub).expect("subscribed");
        subscription.tree.as_ref().map(super::result_tree::ResultTree::rows).unwrap_or_default()
    }

    fn step(&mut self) {
        match self.rng.random_range(0..20) {
            // A new epoch, perhaps with an unreleased batch before it.
            0 => {
                self.cv = self.cv.next();
                self.commit(10);
                self.snapshot();
            }
            // A lost connection, continued.
            1 => {
                self.progress();
                let commits = self.rng.random_range(0..3);
                let difference = (0..commits).flat_map(|_| self.commit(1)).collect::<Vec<_>>();
                self.state.disconnect();
                let mut effects = Vec::new();
                self.state.connect(self.codec, None, &mut effects);
                let resume = effects.iter().find_map(|effect| match effect {
                    Effect::Send(ClientMessage::Subscribe(subscribe)) => subscribe.resume,
                    _ => None,
                });
                let resume = resume.expect("a released subscription resumes");
                assert_eq!((resume.epoch, resume.cv), (self.epoch, self.cv));
                self.cv = self.cv.next();
                // A difference names each row once; with several commits it might not, so a snapshot follows then.
                if commits <= 1 {
                    self.subscribed(true);
                    self.batch(false, difference);
                } else {
                    self.snapshot();
                }
            }
            _ => {
                self.cv = self.cv.next();
                let count = self.rng.random_range(1..6);
                let ops = self.commit(count);
                self.batch(false, ops);
            }
        }
        if self.rng.random_bool(0.7) {
            self.progress();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn view_equals_fresh_query(seed in any::<u64>()) {
        let mut run = Run::new(seed);
        run.commit(20);
        run.cv = Cv(1);
        run.snapshot();
        run.progress();
        for _ in 0..40 {
            run.step();
        }
        run.progress();
        // Nothing is left behind once the subscription ends.
        run.state.unsubscribe(run.sub, &mut Vec::new());
        prop_assert_eq!(run.state.rows_held(), 0);
    }
}
