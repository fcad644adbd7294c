//! Seeded runs of coordinator, workers and clients around the drain, each at its own pace, against a model that
//! keeps every binding's result at every commit version. A failure names its seed; `DRAIN_SEED=<seed>` with
//! `cargo test -p tidegate-replica drain_simulation` runs that one alone, `DRAIN_SEEDS=<n>` the first n.

use crate::support::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tidegate_replica::{
    drain::{Control, Drain, StandingRow},
    worker::{Change, FaultCause, QueryId, WorkerEvent},
};
use tidegate_wire::model::{Cv, PlaceMask};

const WORKERS: u64 = 3;

/// A result: by table and id, the places, what travels, and what does not.
type Rows = BTreeMap<(usize, i64), (u32, i64, i64)>;
/// What a client can see of it.
type Shown = BTreeMap<(usize, i64), (u32, i64)>;
type Name = (u64, u64);

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        (!of.is_empty()).then(|| of[self.below(of.len() as u64) as usize].clone())
    }

    fn shuffle<T>(&mut self, of: &mut [T]) {
        for index in (1..of.len()).rev() {
            of.swap(index, self.below(index as u64 + 1) as usize);
        }
    }
}

/// A binding's result over time.
struct Truth {
    /// From a commit version on; the first holds for all before it too.
    states: Vec<(u64, Rows)>,
}

impl Truth {
    fn at(&self, cv: u64) -> &Rows {
        let after = self.states.partition_point(|state| state.0 <= cv);
        &self.states[after.max(1) - 1].1
    }
}

enum Order {
    Bind(u64, u64),
    Unbind(u64, u64),
    Remove(u64),
}

#[derive(Default)]
struct Worker {
    position: u64,
    orders: VecDeque<Order>,
    events: VecDeque<WorkerEvent>,
    hydrated: BTreeSet<Name>,
}

/// One life of a subscription as its client sees it.
struct Life {
    of: Name,
    epoch: u64,
    next_seq: u64,
    /// Commit version of seq 0, and whether all its parts are there.
    snapshot: Option<(u64, bool)>,
    buffer: Vec<(u64, Vec<Op>)>,
    rows: Shown,
}

/// A subscription as the drain was told of it.
struct Subscribed {
    of: Name,
    worker: usize,
    /// The commit version of seq 0, once it is sent.
    floor: Option<u64>,
    /// Whether an earlier life shows until this one's seq 0 is released.
    replaces: bool,
}

#[derive(Default)]
struct Client {
    released: u64,
    lives: BTreeMap<u64, Life>,
    shown: BTreeMap<u64, (Name, Shown)>,
    told: BTreeMap<u64, Subscribed>,
    owed: BTreeSet<u64>,
}

struct World {
    random: Random,
    drain: Drain<Recorder>,
    head: u64,
    next_id: u64,
    truths: BTreeMap<Name, Truth>,
    /// Families by id: their worker.
    families: BTreeMap<u64, usize>,
    /// The same, of all that ever were.
    worker_of: BTreeMap<u64, usize>,
    /// Bindings the coordinator believes in.
    bound: Vec<Name>,
    /// All that ever were.
    ever: Vec<Name>,
    controls: VecDeque<Control>,
    workers: Vec<Worker>,
    /// Positions and the newest commit version as the drain was told.
    positions: Vec<u64>,
    stops: Vec<BTreeSet<u64>>,
    newest: u64,
    conns: Vec<u64>,
    clients: BTreeMap<u64, Client>,
    /// By epoch: what is subscribed, and what the client resumes from.
    epochs: BTreeMap<u64, (Name, Option<Shown>)>,
    owners_told: BTreeSet<(u64, Option<u64>)>,
    progress_seen: u64,
}

fn shown(rows: &Rows) -> Shown {
    rows.iter().map(|(key, row)| (*key, (row.0, row.1))).collect()
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            random: Random(seed),
            drain: Drain::new(Recorder::default()),
            head: 5,
            next_id: 1,
            truths: BTreeMap::new(),
            families: BTreeMap::new(),
            worker_of: BTreeMap::new(),
            bound: Vec::new(),
            ever: Vec::new(),
            controls: VecDeque::new(),
            workers: (0..WORKERS).map(|_| Worker { position: 5, ..Worker::default() }).collect(),
            positions: vec![0; WORKERS as usize],
            // Where the workers start.
            stops: vec![BTreeSet::from([5]); WORKERS as usize],
            newest: 0,
            conns: Vec::new(),
            clients: BTreeMap::new(),
            epochs: BTreeMap::new(),
            owners_told: BTreeSet::new(),
            progress_seen: 0,
        }
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn random_row(&mut self, table: usize) -> (u32, i64, i64) {
        let places = if table == 1 { 2 } else { [1, 4, 5][self.random.below(3) as usize] };
        (places, self.random.below(3) as i64, self.random.below(2) as i64)
    }

    fn mutate(&mut self, rows: &mut Rows) {
        for _ in 0..1 + self.random.below(4) {
            let key = (self.random.below(2) as usize, self.random.below(5) as i64);
            if rows.contains_key(&key) && self.random.one_in(3) {
                rows.remove(&key);
            } else {
                let row = self.random_row(key.0);
                rows.insert(key, row);
            }
        }
    }

    /// The changes from one result to another, split, with detours, in any order.
    fn changes(&mut self, binding: u64, before: &Rows, after: &Rows) -> Vec<Change> {
        let mut changes = Vec::new();
        let keys: BTreeSet<_> = before.keys().chain(after.keys()).copied().collect();
        for key in keys {
            let (old, new) = (before.get(&key), after.get(&key));
            let as_row = |of: &(u32, i64, i64)| row(key.1, of.1, of.2);
            for place in 0..3_u8 {
                let stands = |of: Option<&(u32, i64, i64)>| of.is_some_and(|it| it.0 & (1 << place) != 0);
                let (was, is) = (stands(old), stands(new));
                let old = old.map(as_row);
                let new = new.map(as_row);
                match (was, is) {
                    (true, true) if old == new => {}
                    (true, true) if self.random.one_in(2) => {
                        changes.push(change(binding, place, old, None));
                        changes.push(change(binding, place, None, new));
                    }
                    (true, true) => changes.push(change(binding, place, old, new)),
                    (true, false) => changes.push(change(binding, place, old, None)),
                    // As a join's terms have it: in with the content before, then edited.
                    (false, true) if old.is_some() && old != new => {
                        changes.push(change(binding, place, None, old.clone()));
                        changes.push(change(binding, place, old, new));
                    }
                    (false, true) => changes.push(change(binding, place, None, new)),
                    (false, false) => {
                        if let Some(new) =
                            new.filter(|_| self.random.one_in(4) && (place == 1) == (key.0 == 1))
                        {
                            changes.push(change(binding, place, None, Some(new.clone())));
                            changes.push(change(binding, place, Some(new), None));
                        }
                    }
                }
            }
        }
        self.random.shuffle(&mut changes);
        changes
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..=11 => self.commit(),
            12..=29 => self.advance(),
            30..=36 => self.obey(),
            37..=60 => self.deliver_event(),
            61..=76 => self.deliver_control(),
            77..=82 => self.coordinate(),
            83..=97 => self.client(),
            98 => self.worker_faults(),
            _ => {
                self.drain.keep_alive();
                self.check_output();
            }
        }
    }

    fn commit(&mut self) {
        self.head += 1;
        let names: Vec<_> = self.truths.keys().copied().collect();
        for name in names {
            if self.random.one_in(3) {
                let mut rows = self.truths[&name].at(self.head).clone();
                self.mutate(&mut rows);
                self.truths.get_mut(&name).expect("listed").states.push((self.head, rows));
            }
        }
        if self.random.one_in(3) {
            self.controls.push_back(Control::Newest { cv: Cv(self.head) });
        }
    }

    fn advance(&mut self) {
        // Worker 0 is quick, the last one slow.
        let index = (self.random.below(WORKERS * (WORKERS + 1) / 2)) as usize;
        let index = [0, 0, 0, 1, 1, 2][index];
        let from = self.workers[index].position;
        if from == self.head || self.workers[index].events.len() > 40 {
            return;
        }
        let to = from + 1 + self.random.below((self.head - from).min(3));
        let mut by_family: BTreeMap<u64, Vec<Change>> = BTreeMap::new();
        for name in self.workers[index].hydrated.clone() {
            let (before, after) = (self.truths[&name].at(from).clone(), self.truths[&name].at(to).clone());
            by_family.entry(name.0).or_default().extend(self.changes(name.1, &before, &after));
        }
        let mut slices = Vec::new();
        for (query, mut changes) in by_family {
            self.random.shuffle(&mut changes);
            while !changes.is_empty() {
                let take = 1 + self.random.below(changes.len() as u64) as usize;
                slices.push(changed(query, to, changes.drain(..take).collect()));
            }
        }
        self.random.shuffle(&mut slices);
        let worker = &mut self.workers[index];
        worker.events.extend(slices);
        worker.events.push_back(progressed(index as u16, to));
        worker.position = to;
    }

    fn obey(&mut self) {
        let index = self.random.below(WORKERS) as usize;
        let Some(order) = self.workers[index].orders.pop_front() else { return };
        let position = self.workers[index].position;
        match order {
            Order::Bind(query, binding) if self.random.one_in(12) => {
                let cause = FaultCause::Deadline;
                self.workers[index].events.push_back(faulted(query, Some(binding), cause));
            }
            Order::Bind(query, binding) if self.families.contains_key(&query) => {
                let rows = self.truths[&(query, binding)].at(position).clone();
                let changes = self.changes(binding, &Rows::new(), &rows);
                self.workers[index].events.push_back(hydrated(query, binding, position, changes));
                self.workers[index].hydrated.insert((query, binding));
            }
            Order::Bind(..) => {}
            Order::Unbind(query, binding) => {
                self.workers[index].hydrated.remove(&(query, binding));
            }
            Order::Remove(query) => self.workers[index].hydrated.retain(|name| name.0 != query),
        }
    }

    fn coordinate(&mut self) {
        match self.random.below(11) {
            0..=2 if self.families.len() < 7 => {
                let query = self.id();
                let worker = self.random.below(WORKERS);
                self.families.insert(query, worker as usize);
                self.worker_of.insert(query, worker as usize);
                self.controls.push_back(register(query, worker as u16));
            }
            0..=8 if self.bound.len() < 16 => {
                let families: Vec<_> = self.families.iter().map(|(q, w)| (*q, *w)).collect();
                let Some((query, worker)) = self.random.pick(&families) else { return };
                let binding = self.id();
                let mut rows = Rows::new();
                self.mutate(&mut rows);
                self.truths.insert((query, binding), Truth { states: vec![(0, rows)] });
                self.bound.push((query, binding));
                self.ever.push((query, binding));
                self.controls.push_back(bind(query, binding));
                self.workers[worker].orders.push_back(Order::Bind(query, binding));
            }
            9 => {
                let Some((query, binding)) = self.random.pick(&self.bound.clone()) else { return };
                self.bound.retain(|name| *name != (query, binding));
                self.controls.push_back(unbind(query, binding));
            }
            _ => {
                let Some((query, _)) = self.random.pick(&self.bound.clone()) else { return };
                self.bound.retain(|name| name.0 != query);
                let fault = fault(FaultCause::Removed);
                self.controls.push_back(Control::Remove { query: QueryId(query), fault });
                self.families.remove(&query);
            }
        }
    }

    fn worker_faults(&mut self) {
        let index = self.random.below(WORKERS) as usize;
        let hydrated: Vec<_> = self.workers[index].hydrated.iter().copied().collect();
        let Some((query, binding)) = self.random.pick(&hydrated) else { return };
        if self.random.one_in(2) {
            self.workers[index].hydrated.remove(&(query, binding));
            self.workers[index].events.push_back(faulted(query, Some(binding), FaultCause::Derive));
        } else {
            self.workers[index].hydrated.retain(|name| name.0 != query);
            self.families.remove(&query);
            self.workers[index].events.push_back(faulted(query, None, FaultCause::Derive));
        }
    }

    fn client(&mut self) {
        let conns = self.conns.clone();
        match self.random.below(20) {
            0..=2 if conns.len() < 6 => {
                let conn = self.id();
                self.conns.push(conn);
                self.controls.push_back(connect(conn));
            }
            3 if self.random.one_in(3) => {
                let Some(conn) = self.random.pick(&conns) else { return };
                self.conns.retain(|it| *it != conn);
                let conn = tidegate_replica::drain::ConnId(conn);
                self.controls.push_back(Control::Disconnect { conn });
            }
            4..=5 => {
                let (Some(conn), sub) = (self.random.pick(&conns), self.random.below(6)) else { return };
                self.controls.push_back(detach(conn, sub));
            }
            _ => {
                // Now and then one that has ended.
                let names = if self.random.one_in(12) { &self.ever } else { &self.bound };
                let name = self.random.pick(&names.clone());
                let (Some(conn), Some(name)) = (self.random.pick(&conns), name) else { return };
                let sub = self.random.below(6);
                let epoch = self.id();
                let base = self.random.one_in(4).then(|| {
                    let cv = self.random.below(self.head + 1);
                    self.truths[&name].at(cv).clone()
                });
                self.epochs.insert(epoch, (name, base.as_ref().map(shown)));
                let standing = base.map(|rows| {
                    rows.iter()
                        .map(|(key, it)| StandingRow {
                            table: key.0,
                            places: PlaceMask(it.0),
                            row: row(key.1, it.1, it.2),
                        })
                        .collect()
                });
                self.controls.push_back(attach_from(conn, sub, name.0, name.1, epoch, standing));
            }
        }
    }

    fn deliver_event(&mut self) {
        let index = self.random.below(WORKERS) as usize;
        let Some(event) = self.workers[index].events.pop_front() else { return };
        match &event {
            WorkerEvent::Progressed { cv, .. } => {
                self.positions[index] = cv.0;
                self.stops[index].insert(cv.0);
                self.newest = self.newest.max(cv.0);
            }
            WorkerEvent::Hydrated { cv, .. } => self.newest = self.newest.max(cv.0),
            _ => {}
        }
        self.drain.event(event);
        self.check_output();
    }

    fn deliver_control(&mut self) {
        let Some(control) = self.controls.pop_front() else { return };
        match &control {
            Control::Connect { conn } => {
                self.clients.insert(conn.0, Client::default());
            }
            Control::Disconnect { conn } => {
                self.clients.remove(&conn.0);
            }
            Control::Attach { conn, sub, epoch, .. } => {
                let of = self.epochs[&epoch.0].0;
                let worker = self.worker_of.get(&of.0).copied().unwrap_or(0);
                if let Some(client) = self.clients.get_mut(&conn.0) {
                    let replaces = client.told.contains_key(&sub.0);
                    client.told.insert(sub.0, Subscribed { of, worker, floor: None, replaces });
                }
            }
            Control::Detach { conn, sub } => {
                if let Some(client) = self.clients.get_mut(&conn.0) {
                    client.forget(sub.0);
                }
            }
            // The drain hears of an end before the worker does, else the worker's silence would pass for "no change".
            Control::Unbind { query, binding, .. } => {
                let worker = self.worker_of[&query.0];
                self.workers[worker].orders.push_back(Order::Unbind(query.0, binding.0));
            }
            Control::Remove { query, .. } => {
                let worker = self.worker_of[&query.0];
                self.workers[worker].orders.push_back(Order::Remove(query.0));
            }
            Control::Newest { cv } => self.newest = self.newest.max(cv.0),
            _ => {}
        }
        self.drain.control(control);
        self.check_output();
    }

    fn check_output(&mut self) {
        for out in self.drain.sink().take() {
            match out {
                Out::Subscribed { conn, sub, epoch, resumed } => {
                    let (of, base) = self.epochs[&epoch].clone();
                    assert_eq!(resumed, base.is_some());
                    let rows = base.unwrap_or_default();
                    let life = Life { of, epoch, next_seq: 0, snapshot: None, buffer: vec![], rows };
                    self.client_of(conn).lives.insert(sub, life);
                }
                Out::Batch { cv, more, ops, to } => {
                    for (conn, sub, epoch, seq) in to {
                        self.client_of(conn).batch(cv, more, &ops, sub, epoch, seq);
                    }
                }
                Out::Progress { conn, cv } => {
                    self.progress_seen += 1;
                    let client = self.clients.get_mut(&conn).expect("only known connections are told");
                    client.progress(cv);
                    for (sub, (of, rows)) in &client.shown {
                        let truth = shown(self.truths[of].at(cv));
                        assert_eq!(
                            *rows, truth,
                            "view_equals_fresh_query: connection {conn}, subscription {sub} at {cv}"
                        );
                    }
                }
                Out::Faulted { conn, sub, .. } => {
                    let client = self.client_of(conn);
                    let of = client.told.get(&sub).map(|told| told.of);
                    assert!(of.is_some(), "a subscription is told once");
                    client.forget(sub);
                }
                Out::Owner { query, binding, .. } => {
                    assert!(self.owners_told.insert((query, binding)), "an owner is told once");
                }
            }
        }
        self.check_nobody_is_held();
    }

    fn client_of(&mut self, conn: u64) -> &mut Client {
        self.clients.get_mut(&conn).expect("only known connections are told")
    }

    /// Whatever can be released is released: a connection waits for workers of its own only.
    fn check_nobody_is_held(&self) {
        for (conn, client) in &self.clients {
            let holds = client.told.iter().any(|(sub, told)| {
                told.replaces
                    && told
                        .floor
                        .is_none_or(|floor| floor > client.released || !client.shown.contains_key(sub))
            });
            let cv = |told: &Subscribed| told.floor.unwrap_or(0).max(self.positions[told.worker]);
            let cv_min = client.told.values().map(cv).min().unwrap_or(self.newest);
            // Some workers merge commits: a release is possible where all of them stood.
            let workers: BTreeSet<_> = client.told.values().map(|told| told.worker).collect();
            let stood = |cv: &u64| workers.iter().all(|&worker| self.stops[worker].contains(cv));
            let cv_min =
                if workers.is_empty() { cv_min } else { (0..=cv_min).rev().find(stood).unwrap_or(0) };
            if let Some(&first) = client.owed.first()
                && !holds
            {
                assert!(
                    first > cv_min || cv_min < client.released,
                    "slow_worker_holds_only_its_own: connection {conn} could be released to {cv_min}"
                );
            }
        }
    }

    /// Lets everything arrive, and looks at what every client shows.
    fn settle(&mut self) {
        for _ in 0..200_000 {
            let workers_done = self.workers.iter().all(|worker| {
                worker.orders.is_empty() && worker.events.is_empty() && worker.position == self.head
            });
            if workers_done && self.controls.is_empty() {
                break;
            }
            match self.random.below(4) {
                0 => self.advance(),
                1 => self.obey(),
                2 => self.deliver_event(),
                _ => self.deliver_control(),
            }
        }
        for (conn, client) in &self.clients {
            assert!(client.owed.is_empty(), "connection {conn} is owed {:?}", client.owed);
            for (sub, told) in &client.told {
                let (of, rows) = client.shown.get(sub).unwrap_or_else(|| {
                    panic!("connection {conn}, subscription {sub} of {:?} is met with silence", told.of)
                });
                assert_eq!(*of, told.of);
                assert_eq!(
                    *rows,
                    shown(self.truths[of].at(self.head)),
                    "connection {conn}, {sub} at the end"
                );
            }
        }
    }
}

impl Client {
    fn forget(&mut self, sub: u64) {
        self.told.remove(&sub);
        self.lives.remove(&sub);
        self.shown.remove(&sub);
    }

    fn batch(&mut self, cv: u64, more: bool, ops: &[Op], sub: u64, epoch: u64, seq: u64) {
        let life = self.lives.get_mut(&sub).expect("subscribed precedes seq 0");
        assert_eq!(epoch, life.epoch, "no batch of an earlier epoch follows");
        assert_eq!(seq, life.next_seq, "seq_is_gapless: subscription {sub}");
        life.next_seq += 1;
        match life.snapshot {
            Some((_, true)) => {
                assert!(!more && !ops.is_empty(), "a commit's batch has operations and stands alone");
                assert!(cv > self.released, "progress_is_irrevocable: {cv} after {}", self.released);
            }
            _ => {
                assert!(
                    cv >= self.released,
                    "progress_is_irrevocable: seq 0 of {cv} after {}",
                    self.released
                );
                life.snapshot = Some((cv, !more));
                self.told.get_mut(&sub).expect("the drain was told").floor = Some(cv);
            }
        }
        assert!(life.buffer.last().is_none_or(|last| last.0 <= cv));
        life.buffer.push((cv, ops.to_vec()));
        self.owed.insert(cv);
    }

    fn progress(&mut self, cv: u64) {
        assert!(cv >= self.released, "progress_is_irrevocable: {cv} after {}", self.released);
        self.released = cv;
        self.owed.retain(|owed| *owed > cv);
        for (sub, life) in &mut self.lives {
            let released = life.buffer.partition_point(|batch| batch.0 <= cv);
            for (_, ops) in life.buffer.drain(..released) {
                for (kind, table, places, id, value) in ops {
                    let key = (table, id);
                    match kind {
                        '-' => assert!(life.rows.remove(&key).is_some(), "a removal finds its row"),
                        '+' => {
                            assert!(life.rows.insert(key, (places, value)).is_none(), "an addition is new")
                        }
                        _ => assert!(
                            life.rows.insert(key, (places, value)).is_some_and(|old| old != (places, value)),
                            "an edit changes something"
                        ),
                    }
                }
            }
            if life.snapshot.is_some_and(|(at, complete)| complete && at <= cv) {
                self.shown.insert(*sub, (life.of, life.rows.clone()));
            }
        }
    }
}

/// Checks at every release `batches_precede_progress`, `progress_is_irrevocable`, `seq_is_gapless`,
/// `commit_is_atomic_for_a_client`, `slow_worker_holds_only_its_own`, and that what a client shows for all its
/// subscriptions is the model's at that one commit version.
#[test]
fn simulated_clients_show_one_commit_version() {
    let seeds: Vec<u64> = match std::env::var("DRAIN_SEED") {
        Ok(seed) => vec![seed.parse().expect("DRAIN_SEED is a number")],
        Err(_) => (0..std::env::var("DRAIN_SEEDS")
            .map_or(120, |n| n.parse().expect("DRAIN_SEEDS is a number")))
            .collect(),
    };
    let mut progress = 0;
    for seed in seeds {
        let run = std::panic::catch_unwind(|| {
            let mut world = World::new(seed);
            for _ in 0..1_500 {
                world.step();
            }
            world.settle();
            world.progress_seen
        });
        progress += run.unwrap_or_else(|panic| {
            eprintln!("DRAIN_SEED={seed} cargo test -p tidegate-replica drain_simulation");
            std::panic::resume_unwind(panic)
        });
    }
    assert!(progress > 100, "the runs release something: {progress}");
}
