//! The file's lines, read and looked at ahead of their sending on a thread of their own.

use crate::cli::Failure;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use std::{
    borrow::Cow,
    fmt,
    path::Path,
    sync::mpsc::{Receiver, sync_channel},
    thread,
};
use tidegate_replica::commit_log::StreamFile;

/// Lines read ahead.
const AHEAD_MAX: usize = 4_096;

/// A line that is not blank.
#[derive(Debug)]
pub struct Line {
    /// Its number in the file, from 1.
    pub number: u64,
    /// The line, without its end.
    pub text: Vec<u8>,
    /// What it is.
    pub kind: LineKind,
    /// Bytes of the file, as compressed, that were read by then.
    pub bytes_read: u64,
}

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub enum LineKind {
    /// The tables that the stream writes to.
    Tables,
    /// A commit, or something that the server will refuse as one.
    Commit {
        /// When it happened, milliseconds since 1970.
        at: Option<i64>,
        /// How many operations it has.
        ops: u64,
        /// The table of the first operation.
        first_table: Option<String>,
    },
}

impl LineKind {
    fn of(text: &str) -> Self {
        #[derive(Deserialize)]
        struct Peek<'a> {
            tables: Option<IgnoredAny>,
            at: Option<i64>,
            #[serde(default, borrow)]
            ops: Ops<'a>,
        }
        match serde_json::from_str(text) {
            Ok(Peek { tables: Some(_), .. }) => Self::Tables,
            Ok(Peek { at, ops, .. }) => {
                Self::Commit { at, ops: ops.count, first_table: ops.first_table.map(Cow::into_owned) }
            }
            Err(_) => Self::Commit { at: None, ops: 0, first_table: None },
        }
    }
}

/// A list of operations, counted.
#[derive(Debug, Default)]
struct Ops<'a> {
    count: u64,
    first_table: Option<Cow<'a, str>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Ops<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct First<'a> {
            #[serde(alias = "update", alias = "delete", borrow)]
            insert: Cow<'a, str>,
        }
        struct Counter;
        impl<'de> Visitor<'de> for Counter {
            type Value = Ops<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of operations")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Ops<'de>, A::Error> {
                let mut ops = Ops::default();
                if let Some(First { insert }) = seq.next_element()? {
                    ops = Ops { count: 1, first_table: Some(insert) };
                }
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    ops.count += 1;
                }
                Ok(ops)
            }
        }
        deserializer.deserialize_seq(Counter)
    }
}

/// See the module's description.
pub struct Lines {
    receiver: Receiver<Result<Line, Failure>>,
    peeked: Option<Line>,
    bytes_total: u64,
}

impl Lines {
    /// Opens a file and begins to read it.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let mut file = StreamFile::open(path).map_err(failure)?;
        let bytes_total = file.bytes_total();
        let (sender, receiver) = sync_channel(AHEAD_MAX);
        let read = move || {
            loop {
                let line = match file.next_line() {
                    Ok(None) => return,
                    Ok(Some((number, text))) => Ok((number, text.as_bytes().to_vec(), LineKind::of(text))),
                    Err(error) => Err(failure(error)),
                };
                let bytes_read = file.bytes_read();
                let ended = line.is_err();
                let line = line.map(|(number, text, kind)| Line { number, text, kind, bytes_read });
                // Nobody listens any more when the replay has failed.
                if sender.send(line).is_err() || ended {
                    return;
                }
            }
        };
        thread::Builder::new()
            .name("replay-reader".to_owned())
            .spawn(read)
            .map_err(|error| Failure::Failed(format!("cannot start a thread: {error}")))?;
        Ok(Self { receiver, peeked: None, bytes_total })
    }

    /// The next line when it is wanted; `None` also at the end.
    ///
    /// # Errors
    /// When the file cannot be read on.
    pub fn next_if(&mut self, wanted: impl FnOnce(&Line) -> bool) -> Result<Option<Line>, Failure> {
        if self.peeked.is_none() {
            self.peeked = self.receiver.recv().ok().transpose()?;
        }
        Ok(self.peeked.take_if(|line| wanted(line)))
    }

    /// Size of the file, in bytes, as compressed; 0 for a pipe.
    #[must_use]
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total
    }
}

fn failure(error: tidegate_replica::commit_log::StreamFileError) -> Failure {
    let cause = std::error::Error::source(&error).map(|cause| format!(" ({cause})")).unwrap_or_default();
    Failure::Failed(format!("{error}{cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart_and_counted() {
        let commit = |at, ops, table: Option<&str>| LineKind::Commit {
            at,
            ops,
            first_table: table.map(str::to_owned),
        };
        for (text, kind) in [
            (r#"{"tables":[]}"#, LineKind::Tables),
            (
                r#"{"at":7,"ops":[{"insert":"t","row":{"a":[1,2]}},{"delete":"u","key":{}}]}"#,
                commit(Some(7), 2, Some("t")),
            ),
            (r#"{"ops":[{"key":{"a":1},"update":"é","set":{}}]}"#, commit(None, 1, Some("é"))),
            (r#"{"ops":[]}"#, commit(None, 0, None)),
            ("nonsense", commit(None, 0, None)),
        ] {
            assert_eq!(LineKind::of(text), kind, "{text}");
        }
    }
}
