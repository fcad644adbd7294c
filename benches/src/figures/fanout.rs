//! How many updates a second reach 1,000 subscribers of one query, against an axum server that only broadcasts.
//!
//! All send the same bytes, are fed at the same set rates and read by the same readers. A rate is kept when every
//! update reached every reader and 99 of a hundred within a second of when they were *due*, not of when the server
//! got round to them. Trials take turns, so that whatever else the machine does meets all alike.

use crate::{
    broadcaster::{self, Broadcaster, Writes},
    load::{Expect, Outcome, Readers, Spec, mark},
    machine::cpu_seconds,
    report::Report,
    sample::show,
    serving::{Fsync, Serving, commit},
};
use anyhow::ensure;
use bytes::Bytes;
use serde_json::json;
use std::time::{Duration, Instant};
use tidegate_wire::{
    codec::{BatchHead, Codec, OpsEncoder, encode_batch_head},
    model::{Cv, Epoch, Fingerprint, OpKind, PlaceMask, Seq, SubId, ValueRef},
    protocol::{ServerMessage, server::Progress},
};

const SUBSCRIBERS: usize = 1_000;
/// More rows than commits are ever merged, so that every update stays one of its own.
const ROWS: u32 = 1_024;
/// Fills a message, with its progress, to about 200 bytes.
const FILL: &str = "............";
const TRIAL: Duration = Duration::from_secs(4);
/// How often what is due is handed on.
const TICK: Duration = Duration::from_millis(2);
const P99_MAX: f64 = 1.0;
/// Updates a second at one subscriber, to begin with; doubled until one is not kept.
const RATE_FIRST: f64 = 25.0;
const RATE_MAX: f64 = 20_000.0;
/// How often the interval between kept and not kept is halved.
const HALVINGS: usize = 4;

/// One of the servers.
trait Sender {
    /// What the readers need to know.
    fn spec(&self) -> Spec;
    /// Whether all connections would get what is sent now.
    fn is_ready(&self) -> bool;
    /// Sends the updates `numbers`, each due at the given moment.
    fn send(&self, updates: &[(u64, u32)]) -> anyhow::Result<()>;
}

fn text(update: (u64, u32)) -> String {
    mark::mark(update.0, update.1) + FILL
}

impl Sender for Serving {
    fn spec(&self) -> Spec {
        Spec {
            addr: self.addr(),
            path: "/v1/sync".to_owned(),
            connections: SUBSCRIBERS,
            queries: vec![json!({"table": "board"})],
        }
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn send(&self, updates: &[(u64, u32)]) -> anyhow::Result<()> {
        let draft = |update: &(u64, u32)| {
            let id = update.1 % ROWS;
            let line =
                json!({"ops": [{"update": "board", "key": {"id": id}, "set": {"text": text(*update)}}]});
            anyhow::Ok(self.replica().draft(line.to_string().as_bytes())?)
        };
        let drafts = updates.iter().map(draft).collect::<Result<_, _>>()?;
        let replica = self.replica().clone();
        self.runtime.block_on(async { commit(&replica, drafts).await })?;
        Ok(())
    }
}

impl Sender for Broadcaster {
    fn spec(&self) -> Spec {
        Spec {
            addr: self.addr.to_string(),
            path: broadcaster::PATH.to_owned(),
            connections: SUBSCRIBERS,
            queries: Vec::new(),
        }
    }

    fn is_ready(&self) -> bool {
        self.listeners() == SUBSCRIBERS
    }

    fn send(&self, updates: &[(u64, u32)]) -> anyhow::Result<()> {
        for update in updates {
            self.send(message(*update));
        }
        Ok(())
    }
}

/// The bytes that the server sends for an update: a batch of one edit, and the progress that releases it.
fn message(update: (u64, u32)) -> Bytes {
    let number = u64::from(update.1);
    let mut out = Vec::with_capacity(256);
    let head = BatchHead {
        sub: SubId(1),
        epoch: Epoch(300),
        seq: Seq(1 + number),
        cv: Cv(1_000 + number),
        fp: Fingerprint(0x0123_4567_89ab_cdef),
        more: false,
    };
    encode_batch_head(Codec::MessagePack, &head, &mut out);
    let mut ops = OpsEncoder::new(Codec::MessagePack);
    let text = text(update);
    let cells = [ValueRef::Int8((update.1 % ROWS).into()), ValueRef::Text(&text)];
    ops.push(OpKind::Edit, 0, PlaceMask(1), cells.into_iter());
    out.extend(ops.finish());
    let progress = ServerMessage::Progress(Progress { cv_min: Cv(1_000 + number) });
    Codec::MessagePack.encode(&progress, &mut out);
    out.into()
}

/// One trial's result.
struct Trial {
    outcome: Outcome,
    updates: u32,
    is_kept: bool,
    /// CPU microseconds of this process per delivered update.
    cpu: f64,
    /// CPU microseconds of the readers per delivered update.
    readers_cpu: f64,
}

fn trial(sender: &dyn Sender, rate: f64) -> anyhow::Result<Trial> {
    let mut readers = Readers::start(&sender.spec())?;
    let connecting = Instant::now();
    while !sender.is_ready() {
        ensure!(connecting.elapsed() < Duration::from_secs(30), "the connections of the trial before linger");
        std::thread::sleep(TICK);
    }
    let readers_before = readers.wait(Expect::Each(0), TICK)?;
    let cpu = cpu_seconds();
    let (begin, begin_micros) = (Instant::now(), mark::now());
    let updates = (rate * TRIAL.as_secs_f64()) as u32;
    let mut sent = 0;
    while sent < updates {
        let due = ((begin.elapsed().as_secs_f64() * rate) as u32).min(updates);
        let at = |number: u32| (begin_micros + (f64::from(number) / rate * 1e6) as u64, number);
        let batch: Vec<_> = (sent..due).map(at).collect();
        if !batch.is_empty() {
            sender.send(&batch)?;
        }
        sent = due;
        std::thread::sleep(TICK);
        // A server that cannot even take the updates has failed the trial; what is left unsent shows as missing.
        if begin.elapsed() > TRIAL * 3 {
            break;
        }
    }
    let mut outcome = readers.wait(Expect::Each(updates), Duration::from_secs(5))?;
    outcome.bytes -= readers_before.bytes;
    let delivered = outcome.released.max(1) as f64;
    let cpu = (cpu_seconds() - cpu) / delivered * 1e6;
    readers.end()?;
    let is_kept = outcome.complete && outcome.p99 < P99_MAX;
    let readers_cpu = (outcome.cpu - readers_before.cpu) / delivered * 1e6;
    Ok(Trial { outcome, updates, is_kept, cpu, readers_cpu })
}

/// The search for the highest rate that one server keeps.
struct Search<'s> {
    name: &'static str,
    sender: &'s dyn Sender,
    kept: f64,
    best: Option<Trial>,
    not_kept: Option<f64>,
    halvings: usize,
}

impl<'s> Search<'s> {
    fn new(name: &'static str, sender: &'s dyn Sender) -> Self {
        Self { name, sender, kept: 0.0, best: None, not_kept: None, halvings: 0 }
    }

    /// One trial; whether another is to follow.
    fn step(&mut self) -> anyhow::Result<bool> {
        let rate = match self.not_kept {
            None if self.kept == 0.0 => RATE_FIRST,
            None => self.kept * 2.0,
            Some(not_kept) => (self.kept + not_kept) / 2.0,
        };
        if self.not_kept.is_some() {
            self.halvings += 1;
        }
        let trial = trial(self.sender, rate)?;
        let Outcome { p50, p99, closed, released, duplicates, bytes, .. } = &trial.outcome;
        eprintln!(
            "  {} {rate:.0}/s: {}, p50 {}, p99 {}, released {released} of {}, closed {closed}, bytes an update {:.0}, \
             CPU an update {:.2} µs, readers {:.2} µs",
            self.name,
            if trial.is_kept { "kept" } else { "not kept" },
            show(*p50),
            show(*p99),
            u64::from(trial.updates) * SUBSCRIBERS as u64,
            *bytes as f64 / *released as f64,
            trial.cpu,
            trial.readers_cpu
        );
        ensure!(*duplicates == 0, "updates came twice");
        if trial.is_kept {
            self.kept = rate;
            self.best = Some(trial);
        } else {
            self.not_kept = Some(rate);
        }
        Ok(self.halvings < HALVINGS && self.kept < RATE_MAX && (self.kept > 0.0 || self.not_kept.is_none()))
    }
}

/// Measures the figure.
pub(crate) fn measure() -> anyhow::Result<Report> {
    let serving = Serving::start(
        Fsync::Off,
        &json!([{"name": "board", "primary_key": ["id"], "columns": [
            {"name": "id", "type": "int8"}, {"name": "text", "type": "text"}]}]),
    )?;
    let inserts: Vec<_> =
        (0..ROWS).map(|id| json!({"insert": "board", "row": {"id": id, "text": "-"}})).collect();
    serving.commit(vec![serving.draft(&json!(inserts))?])?;
    let (single, gathered) = (Broadcaster::start(Writes::Single)?, Broadcaster::start(Writes::Gathered)?);
    let mut searches = [
        Search::new("tidegate", &serving),
        Search::new("bare axum, single sends", &single),
        Search::new("bare axum, gathered sends", &gathered),
    ];
    let mut open = [true; 3];
    while open.contains(&true) {
        for (search, open) in searches.iter_mut().zip(&mut open) {
            if *open {
                *open = search.step()?;
            }
        }
    }
    let [own, single_search, gathered_search] = &searches;
    let per_second = |search: &Search<'_>| search.kept * SUBSCRIBERS as f64;
    for other in [single_search, gathered_search] {
        ensure!(other.kept > 0.0, "{} keeps no rate: this machine is too busy", other.name);
    }
    let (to_single, to_gathered) = (own.kept / single_search.kept, own.kept / gathered_search.kept);
    let mut report = Report::new(
        format!(
            "{:.0}k updates/s; bare axum sending one by one {:.0}k: {to_single:.2}×, gathering {:.0}k: {to_gathered:.2}×",
            per_second(own) / 1e3,
            per_second(single_search) / 1e3,
            per_second(gathered_search) / 1e3
        ),
        to_single >= 0.6,
    )
    .value("updates_per_second", per_second(own))
    .value("bare_single_updates_per_second", per_second(single_search))
    .value("bare_gathered_updates_per_second", per_second(gathered_search))
    .value("ratio_to_single", to_single)
    .value("ratio_to_gathered", to_gathered);
    for search in &searches {
        let Some(best) = &search.best else { continue };
        report = report.note(format!(
            "{} at the highest kept rate: p50 {}, p99 {}; CPU per delivered update {:.2} µs, the readers' {:.2} µs",
            search.name,
            show(best.outcome.p50),
            show(best.outcome.p99),
            best.cpu,
            best.readers_cpu
        ));
    }
    report = report
        .note("the target is taken against the broadcaster that sends one by one, which does as much per update and connection; the one \
             that gathers shows what a ring without any state per connection can do")
        .note(format!(
            "one commit = one update at each of {SUBSCRIBERS} connections; trials of {} s, the three in turn",
            TRIAL.as_secs()
        ));
    single.stop();
    gathered.stop();
    serving.check(1)?;
    serving.stop();
    Ok(report)
}
