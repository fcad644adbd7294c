//! Commits the recording round after round, at the pace of a faster clock.
//!
//! The first round plays the recording from its first commit; everything up to the opening is committed at once. Every
//! later round begins with one commit that takes the tables back to the opening, so that a client's lists move back in
//! one step and are never empty, and plays what follows it.
//!
//! Where a round stands is kept in the commit log itself: each commit carries an idempotency tag whose key names the
//! round and whose ordinal is the commit's place in it. Commit and position are durable together, so that a restart
//! repeats nothing and leaves nothing out.
//!
//! A visitor may write to the demo's tables, and drop them. Should that stand in a recorded commit's way, the round is
//! given up and the next one begins, with tables that are gone made again.

use super::{notes, recording::Recording};
use crate::{hub::Hub, server::PrepareError};
use std::{sync::Arc, time::Duration};
use tidegate_replica::{
    handle::{CommitOutcome, CommitRefusal, CommitRefusalKind, Replica},
    store::{Commits, Draft, DraftOp, IdempotencyTag},
};
use tidegate_wire::model::Cv;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Between a round's end and the next, and before a log that cannot be written is tried again.
const PAUSE: Duration = Duration::from_secs(3);

/// Most recorded commits that are handed to the store together.
const TOGETHER_MAX: usize = 256;

/// A playback that is later than this (the machine slept, or is too slow) gives up the time it lost.
const LATE_MAX: Duration = Duration::from_secs(1);

/// Why the playback cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store has tables of these names and other columns, or rows from elsewhere.
    #[error("the data folder holds other data than the demo's: {0}; name another folder with --data-dir")]
    OtherData(String),
    /// The log cannot be written.
    #[error("cannot load the demo's data: {0}")]
    Unwritable(String),
}

/// See the module's description.
pub struct Playback {
    replica: Replica,
    recording: Arc<Recording>,
    speed: f64,
    round: u64,
    /// Commits of the round that are applied.
    applied: usize,
}

impl Playback {
    /// Creates the tables, finds where the last run stopped, and in a new store loads everything up to the opening. Where
    /// tables were dropped since, a new round begins.
    ///
    /// # Errors
    /// When the store holds something else, or cannot be written.
    pub async fn open(replica: Replica, recording: Arc<Recording>, speed: f64) -> Result<Self, PrepareError> {
        let refused = |refusal: CommitRefusal| match refusal.kind {
            CommitRefusalKind::NotReady => OpenError::Unwritable(refusal.message),
            _ => OpenError::OtherData(refusal.message),
        };
        let mut playback = Self { replica, recording, speed, round: 0, applied: 0 };
        let before = playback.replica.cv();
        playback.create_tables().await.map_err(refused)?;
        let were_missing = playback.replica.cv() > before;
        playback.replica.create_tables(vec![notes::table()]).await.map_err(refused)?;
        while playback.replica.idempotency(&key_of(playback.round + 1)).is_some() {
            playback.round += 1;
        }
        match playback.replica.idempotency(&key_of(playback.round)) {
            Some(entry)
                if were_missing || entry.refused.is_some() || entry.body_hash != playback.recording.hash =>
            {
                playback.next_round();
            }
            Some(entry) => playback.applied = usize::try_from(entry.applied).unwrap_or(usize::MAX),
            None => {}
        }
        while playback.round == 0 && playback.applied < playback.recording.opening {
            let end = (playback.applied + TOGETHER_MAX).min(playback.recording.opening);
            if let Some(refusal) = playback.commit_until(end).await.refused {
                return Err(refused(refusal).into());
            }
        }
        Ok(playback)
    }

    /// Plays until it is stopped; a commit under way is finished. The hub is told when each commit began.
    pub async fn run(mut self, hub: Arc<Hub>, stop: CancellationToken) {
        tracing::info!("replaying 4 to 10 February 2013 at {} times real time; Ctrl-C stops", self.speed);
        let mut clock = self.clock();
        loop {
            let ended = self.applied >= self.round_len();
            if ended {
                tracing::info!("the week is over and starts again in {} s", PAUSE.as_secs());
                self.next_round();
            }
            let due = if ended { Instant::now() + PAUSE } else { clock.due(self.at(self.applied)) };
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep_until(due) => {}
            }
            let now = Instant::now();
            let mut end = self.applied + 1;
            while end < (self.applied + TOGETHER_MAX).min(self.round_len()) && clock.due(self.at(end)) <= now
            {
                end += 1;
            }
            let is_rewind = self.is_rewind(self.applied);
            let outcome = if is_rewind { self.go_back().await } else { self.commit_until(end).await };
            hub.arrivals.note(outcome.cv, outcome.applied, now.into_std());
            match outcome.refused {
                Some(refusal) if refusal.kind == CommitRefusalKind::NotReady => {
                    tracing::warn!("{refusal}; trying again in {} s", PAUSE.as_secs());
                    clock.delay(PAUSE);
                }
                Some(refusal) => {
                    tracing::warn!(
                        "someone else has changed the demo's data, so the week starts again with what was recorded: {refusal}"
                    );
                    self.applied = self.round_len();
                }
                None if is_rewind || due + LATE_MAX < now => clock = self.clock(),
                None => {}
            }
        }
    }

    fn next_round(&mut self) {
        self.round += 1;
        self.applied = 0;
    }

    /// How many commits the present round has.
    fn round_len(&self) -> usize {
        let recorded = self.recording.commits.len();
        if self.round == 0 { recorded } else { 1 + recorded - self.recording.opening }
    }

    /// Whether a commit of the present round is the one that goes back to the opening.
    fn is_rewind(&self, ordinal: usize) -> bool {
        self.round > 0 && ordinal == 0
    }

    /// The recorded commit at a place of the present round; for a rewind, the last of those it stands for.
    fn recorded(&self, ordinal: usize) -> usize {
        if self.round == 0 { ordinal } else { self.recording.opening + ordinal - 1 }
    }

    /// When it happened.
    fn at(&self, ordinal: usize) -> i64 {
        self.recording.commits[self.recorded(ordinal)].at
    }

    /// A clock that now shows the time of the last applied commit.
    fn clock(&self) -> Clock {
        let at = if self.applied == 0 { self.at(0) } else { self.at(self.applied - 1) };
        Clock { at, since: Instant::now(), speed: self.speed }
    }

    /// Begins a round after the first, with tables that are gone made again.
    async fn go_back(&mut self) -> CommitOutcome {
        match self.create_tables().await {
            Ok(_) => self.commit_until(1).await,
            Err(refusal) => CommitOutcome { applied: 0, cv: self.replica.cv(), refused: Some(refusal) },
        }
    }

    /// Creates those of the recording's tables that there are not.
    async fn create_tables(&self) -> Result<Cv, CommitRefusal> {
        self.replica.create_tables(self.recording.tables.clone()).await
    }

    /// Commits the round's commits from the present one up to `end`.
    async fn commit_until(&mut self, end: usize) -> CommitOutcome {
        let idempotency = IdempotencyTag {
            key: key_of(self.round).into(),
            body_hash: self.recording.hash,
            ordinal: self.applied as u64,
        };
        let mut commits = Commits { idempotency: Some(idempotency), ..Commits::default() };
        for ordinal in self.applied..end {
            let draft = if self.is_rewind(ordinal) {
                self.rewind()
            } else {
                self.replica.draft(self.recording.line(self.recorded(ordinal)))
            };
            match draft {
                Ok(draft) => commits.drafts.push(draft),
                Err(error) => {
                    commits.then_refused = Some(error);
                    break;
                }
            }
        }
        let outcome = self.replica.commit(commits).await;
        self.applied += outcome.applied;
        outcome
    }

    /// One commit that empties the tables and fills them as at the opening. A row that is then as it was
    /// does not count as changed.
    fn rewind(&self) -> Result<Draft, tidegate_replica::store::CommitError> {
        let snapshot = self.replica.snapshot();
        let mut ops = Vec::new();
        for (id, table) in snapshot.tables() {
            if self.recording.tables.iter().any(|recorded| recorded.name == table.schema().name) {
                ops.extend(table.rows().iter().map(|(_, row)| DraftOp::delete(id, table.schema(), row)));
            }
        }
        for commit in 0..self.recording.opening {
            ops.extend(self.replica.draft(self.recording.line(commit))?.ops);
        }
        let at = self.recording.commits[self.recording.opening - 1].at;
        Ok(Draft { at: Some(at), ops })
    }
}

/// Time as it was recorded, running faster than ours.
#[derive(Debug)]
struct Clock {
    /// Recorded time, milliseconds since 1970, …
    at: i64,
    /// … that it showed at this moment.
    since: Instant,
    speed: f64,
}

impl Clock {
    /// When it shows a recorded time.
    fn due(&self, at: i64) -> Instant {
        #[expect(clippy::cast_precision_loss, reason = "a week has far fewer than 2^52 milliseconds")]
        let ahead_ms = (at - self.at).max(0) as f64 / self.speed;
        // A speed next to nothing must not overflow what `Instant` can hold.
        self.since + Duration::from_secs_f64((ahead_ms / 1_000.0).min(1e9))
    }

    /// Stands still for a while.
    fn delay(&mut self, pause: Duration) {
        self.since += pause;
    }
}

fn key_of(round: u64) -> String {
    format!("tidegate-demo-round-{round}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value, json};
    use tidegate_replica::handle::ReplicaOptions;

    const COUNTS: &str = "select (select count(*) from airlines), (select count(*) from planes),
        (select count(*) from weather), (select count(*) from flights), (select count(*) from notes)";

    fn run(replica: &Replica, text: &str) -> Vec<Value> {
        let answer = tokio::task::block_in_place(|| replica.sql(text, &Map::new(), &Map::new(), 1));
        let answer = answer.expect(text);
        let rows = answer.results.into_iter().filter_map(|result| result.rows).flat_map(|table| table.rows);
        rows.flatten().collect()
    }

    async fn opened(replica: &Replica, recording: &Arc<Recording>) -> Playback {
        Playback::open(replica.clone(), Arc::clone(recording), 600.0).await.expect("it opens")
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn tables_that_were_dropped_are_made_again() {
        let options = ReplicaOptions { workers: 1, ..ReplicaOptions::default() };
        let replica = Replica::start(options, Box::new(()), |_, _| ()).expect("it starts");
        let recording = Arc::new(Recording::built_in());
        let mut playback = opened(&replica, &recording).await;
        let at_the_opening = run(&replica, COUNTS);
        assert_eq!((playback.round, at_the_opening[0].clone()), (0, json!(16)));

        // While it plays: the round is given up, and the next one has everything.
        run(&replica, "drop table flights; drop table airlines");
        let end = playback.round_len();
        let refusal = playback.commit_until(end).await.refused.expect("there is no table of flights");
        assert!(refusal.message.contains("flights"), "{refusal}");
        playback.next_round();
        assert_eq!(playback.go_back().await.refused, None);
        assert_eq!(run(&replica, COUNTS), at_the_opening);

        // While it does not.
        run(&replica, "drop table notes; drop table planes");
        let mut playback = opened(&replica, &recording).await;
        assert_eq!((playback.round, playback.applied), (2, 0));
        assert_eq!(playback.go_back().await.refused, None);
        assert_eq!(run(&replica, COUNTS), at_the_opening);

        // A restart without that goes on in the round.
        let playback = opened(&replica, &recording).await;
        assert_eq!((playback.round, playback.applied), (2, 1));
        replica.shutdown();
    }
}
