//! The numbers of epochs, and which history a number stands for.
//!
//! A commit version means something only within one history of commits: another data folder, or a store that is kept in
//! memory and was started again, counts its own. A resuming client names the epoch of what it holds, and that tells the
//! history, for no two processes give the same numbers: each begins where the clock puts it, and notes in the data
//! folder which numbers it may give and how far the log went when it opened it. An epoch of an earlier process counts
//! as long as its commit version was in the log when the next one opened it.

use super::{StartError, durable_file};
use parking_lot::Mutex;
use rand::Rng as _;
use serde::{Deserialize, Serialize};
use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};
use tidegate_wire::model::{Cv, Epoch};

/// JavaScript reads whole numbers below this exactly.
const EPOCH_END: u64 = 1 << 53;
/// Numbers for each millisecond of the clock: no process gives that many that fast, so the next one begins after it.
const PER_MS: u64 = 1 << 12;
/// 2024-01-01: counted from there, the numbers last to 2093.
const CLOCK_ORIGIN: Duration = Duration::from_secs(1_704_067_200);
/// Numbers noted in one write.
const RESERVED_AT_ONCE: u64 = 1 << 16;
/// Processes remembered. No snapshot is kept across that many restarts by any client.
const PROCESSES_MAX: usize = 256;

/// A process that served this history.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Process {
    /// The first epoch it gave.
    first: u64,
    /// It gave none from here on.
    end: u64,
    /// The newest commit version when it opened the log.
    opened_at: Cv,
}

/// See the module's description.
pub(super) struct Epochs {
    /// Where the processes are noted; without a data folder, nowhere.
    path: Option<PathBuf>,
    given: Mutex<Given>,
}

struct Given {
    next: u64,
    /// In order, this one last.
    processes: Vec<Process>,
}

impl Epochs {
    /// Takes up the history in a data folder whose log goes up to `opened_at`.
    pub(super) fn open(data_dir: Option<&Path>, opened_at: Cv) -> Result<Self, StartError> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let ms = u64::try_from(since.saturating_sub(CLOCK_ORIGIN).as_millis()).unwrap_or(0);
        // Two processes that start in the same millisecond are apart with that chance at least.
        let clock = ms.saturating_mul(PER_MS) + rand::rng().random_range(1..PER_MS);
        Self::open_at(data_dir, opened_at, clock)
    }

    fn open_at(data_dir: Option<&Path>, opened_at: Cv, clock: u64) -> Result<Self, StartError> {
        let path = data_dir.map(|dir| dir.join("epochs.json"));
        let mut processes: Vec<Process> = match &path {
            None => Vec::new(),
            Some(path) => match durable_file::read(path) {
                Ok(Some(text)) => serde_json::from_slice(&text).map_err(|error| {
                    let path = path.display();
                    StartError(format!("{path} is not a list of epochs: {error}; move it away"))
                })?,
                Ok(None) => Vec::new(),
                Err(error) => return Err(StartError(format!("cannot read {}: {error}", path.display()))),
            },
        };
        // The clock may have been set back.
        let earlier_end = processes.last().map_or(1, |last| last.end + clock % PER_MS);
        let first = clock.max(earlier_end).min(EPOCH_END - RESERVED_AT_ONCE);
        processes.drain(..(processes.len() + 1).saturating_sub(PROCESSES_MAX));
        processes.push(Process { first, end: first + RESERVED_AT_ONCE, opened_at });
        let epochs = Self { path, given: Mutex::new(Given { next: first, processes }) };
        let stored = epochs.store(&epochs.given.lock().processes);
        stored.map_err(|error| StartError(format!("cannot write the data folder's epochs.json: {error}")))?;
        Ok(epochs)
    }

    /// A number that was never given.
    pub(super) fn next(&self) -> Epoch {
        let mut given = self.given.lock();
        let epoch = given.next;
        given.next += 1;
        let end = given.processes.last().map_or(0, |process| process.end);
        if given.next >= end {
            if let Some(process) = given.processes.last_mut() {
                process.end += RESERVED_AT_ONCE;
            }
            if let Err(error) = self.store(&given.processes) {
                // After a restart, what was sent under the numbers from here on is sent again whole.
                tracing::warn!(%error, "the data folder's epochs.json could not be written");
            }
        }
        Epoch(epoch)
    }

    /// Whether what was sent in an epoch up to a commit version is this history's.
    pub(super) fn is_known(&self, epoch: Epoch, cv: Cv) -> bool {
        let given = self.given.lock();
        let of = given.processes.iter().position(|process| (process.first..process.end).contains(&epoch.0));
        of.is_some_and(|index| {
            epoch.0 < given.next && given.processes[index + 1..].iter().all(|later| cv <= later.opened_at)
        })
    }

    fn store(&self, processes: &[Process]) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        durable_file::replace(path, &serde_json::to_vec(processes).map_err(io::Error::other)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: u64 = 1_000 * PER_MS;

    fn open(dir: Option<&Path>, opened_at: u64, clock: u64) -> Epochs {
        Epochs::open_at(dir, Cv(opened_at), clock).expect("it opens")
    }

    #[test]
    fn numbers_go_up_and_stay_exact_in_javascript() {
        let epochs = Epochs::open(None, Cv(0)).expect("it opens");
        let numbers: Vec<u64> = (0..2 * RESERVED_AT_ONCE).map(|_| epochs.next().0).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]));
        assert!(numbers.iter().all(|number| (1..EPOCH_END).contains(number)));
    }

    #[test]
    fn an_epoch_tells_its_history() {
        let (folder, other) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let first = open(Some(folder.path()), 0, CLOCK);
        let (epoch, ungiven) = (first.next(), Epoch(CLOCK + 1));
        assert!(first.is_known(epoch, Cv(70)));
        assert!(!first.is_known(ungiven, Cv(70)), "nobody can hold what was not sent");
        // The clock is set back, and all the same no number comes twice.
        let second = open(Some(folder.path()), 50, CLOCK - PER_MS);
        assert!(second.next() > epoch);
        assert!(second.is_known(epoch, Cv(50)));
        assert!(!second.is_known(epoch, Cv(51)), "commits that the log lost");
        // Another folder, and one that is in memory only.
        for stranger in [open(Some(other.path()), 50, CLOCK + PER_MS), open(None, 50, CLOCK + PER_MS)] {
            assert!(stranger.is_known(stranger.next(), Cv(50)));
            assert!(!stranger.is_known(epoch, Cv(50)));
        }
    }

    #[test]
    fn more_numbers_than_are_noted_at_once_are_known_after_a_restart() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = open(Some(folder.path()), 0, CLOCK);
        let last = (0..RESERVED_AT_ONCE + 10).map(|_| first.next()).last().expect("some");
        let second = open(Some(folder.path()), 9, CLOCK + PER_MS);
        assert!(second.next() > last);
        assert!(second.is_known(last, Cv(9)));
    }

    #[test]
    fn the_oldest_processes_are_forgotten() {
        let folder = tempfile::tempdir().expect("a folder");
        let oldest = open(Some(folder.path()), 0, CLOCK).next();
        let second = open(Some(folder.path()), 0, CLOCK).next();
        for _ in 2..PROCESSES_MAX {
            open(Some(folder.path()), 0, CLOCK);
        }
        let last = open(Some(folder.path()), 0, CLOCK);
        assert_eq!((last.is_known(oldest, Cv(0)), last.is_known(second, Cv(0))), (false, true));
    }
}
