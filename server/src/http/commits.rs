//! `POST /v1/commits`: a stream of commits, applied in order up to the first that is refused.
//!
//! The body is read, split, parsed and committed in a pipeline: while one chunk of commits becomes durable the next is
//! parsed and the one after that gathered. Each stage holds one chunk, so a client that sends faster than commits can
//! be made durable is slowed down by its own TCP connection. A chunk is what has come in by the time the stage before
//! it is free, up to `CHUNK_COMMITS`: a slow stream's commits are not held back to fill it.
//!
//! The whole runs in a task of its own. When the client goes away in the midst, the chunk under way is finished, and
//! what was applied stays.

use super::{
    encoding::Decoder,
    error::ApiError,
    idempotency::KeyGuard,
    lines::{Line, Lines},
    source::{Source, SourceFault},
    with_cv,
};
use crate::{codes, hub::Hub, state::Shared};
use axum::{
    Json,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode, header::CONTENT_ENCODING},
    response::{IntoResponse as _, Response},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::json;
use std::{sync::Arc, time::Instant};
use tidegate_replica::{
    handle::Replica,
    store::{CommitError, CommitProblem, Commits, Draft, IdempotencyTag, limits::IDEMPOTENCY_KEY_BYTES_MAX},
};
use tidegate_wire::{
    codec::decode_json,
    model::{Cv, commit::TablesLine},
    protocol::ErrorCode,
};
use tokio::sync::mpsc;
use xxhash_rust::xxh3::xxh3_128;

/// Most commits in one chunk.
const CHUNK_COMMITS: usize = 256;
/// Most bytes of lines in one chunk, unless one line alone is longer.
const CHUNK_BYTES: usize = 4 << 20;
/// See the module's description.
pub async fn post(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    super::refuse_foreign_origin(&headers)?;
    let replica = shared.replica()?.clone();
    let encoding = headers.get(CONTENT_ENCODING).map(|value| value.to_str().unwrap_or("?"));
    let decoder = Decoder::of(encoding).ok_or_else(|| {
        ApiError::new(ErrorCode::BadMessage, "a body may be encoded in gzip or zstd, or not at all")
            .with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
    })?;
    let key = idempotency_key(&headers)?;
    let task = shared.tasks.spawn({
        let shared = Arc::clone(&shared);
        async move { run(&shared, replica, key, Source::new(body, decoder, &shared)).await }
    });
    match task.await {
        Ok(answer) => {
            let cv = answer?;
            Ok(with_cv(cv, Json(json!({ "cv": cv })).into_response()))
        }
        Err(_) => {
            Err(ApiError::new(ErrorCode::Internal, "applying the commits failed; see the server's log"))
        }
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    match value.to_str() {
        Ok(key)
            if (1..=IDEMPOTENCY_KEY_BYTES_MAX).contains(&key.len())
                && key.bytes().all(|byte| byte.is_ascii_graphic()) =>
        {
            Ok(Some(key.to_owned()))
        }
        _ => Err(ApiError::new(
            ErrorCode::BadMessage,
            format!("Idempotency-Key must be 1 to {IDEMPOTENCY_KEY_BYTES_MAX} visible ASCII characters"),
        )),
    }
}

/// Applies a body; the commit version to answer with, or the refusal.
async fn run(
    shared: &Arc<Shared>,
    replica: Replica,
    key: Option<String>,
    mut source: Source,
) -> Result<Cv, ApiError> {
    let line_bytes_max = shared.config.limits.line_bytes_max;
    let start = match key {
        None => {
            Start { cv: replica.cv(), skip: 0, ended: false, refused: None, idempotency: None, guard: None }
        }
        Some(key) => {
            let body = source.whole(shared.config.limits.body_bytes_max).await?;
            let body_hash = xxh3_128(&body);
            source = Source::buffered(body);
            let guard = shared.key_locks.lock(&key).await;
            resume(&replica, key, body_hash, guard)?
        }
    };
    if let Some(Refused { line: Some(line), code, message }) = start.refused {
        source.discard().await;
        return Err(LineFault::new(line, code, message).answer(start.skip, start.cv));
    }
    let cv_at_start = start.cv;
    let (sender, receiver) = mpsc::channel(1);
    let committer = shared.tasks.spawn(commit_chunks(
        replica.clone(),
        start.committer(),
        receiver,
        Arc::clone(&shared.hub),
    ));
    let mut reader = Reader {
        replica: replica.clone(),
        lines: Lines::new(line_bytes_max),
        skip: start.skip,
        refused: start.refused,
    };
    let read = reader.run(&mut source, sender).await;
    let mut committed = match committer.await {
        Ok(committed) => committed,
        Err(_) => {
            return Err(ApiError::new(
                ErrorCode::Internal,
                "applying the commits failed; see the server's log",
            ));
        }
    };
    if let Some((key, body_hash)) = start.idempotency
        && !start.ended
        && committed.refused.is_none()
    {
        let ordinal = committed.applied;
        let tag = IdempotencyTag { key: key.into(), body_hash, ordinal };
        remember_end(&replica, tag, &mut committed, read.as_ref().err()).await;
    }
    drop(start.guard);
    let tables_cv = match &read {
        Ok(tables_cv) => *tables_cv,
        Err(_) => None,
    };
    // The last of: what was there, the tables, the commits.
    let cv = committed.cv.unwrap_or_else(|| tables_cv.unwrap_or(cv_at_start));
    let fault = match (committed.refused, read) {
        (Some(fault), _) | (None, Err(fault)) => fault,
        (None, Ok(_)) => return Ok(cv),
    };
    source.discard().await;
    Err(fault.answer(committed.applied, cv))
}

/// Has the store remember how a body ended that its commits do not tell of: at a line that holds none, or without
/// any. When the store cannot, that is the answer, and a repeat is dealt with like a first.
async fn remember_end(
    replica: &Replica,
    tag: IdempotencyTag,
    committed: &mut Committed,
    fault: Option<&LineFault>,
) {
    let then_refused = match fault {
        Some(fault) => {
            let Some(kind) = codes::remembered_refusal(fault.code) else { return };
            let problem = CommitProblem::Recorded { kind, text: fault.message.clone() };
            Some(CommitError::new(problem).at_line(fault.line))
        }
        None if committed.applied == 0 => None,
        None => return,
    };
    let line = fault.map_or(1, |fault| fault.line);
    let commits = Commits { drafts: Vec::new(), then_refused, idempotency: Some(tag) };
    let outcome = replica.commit(commits).await;
    committed.cv.get_or_insert(outcome.cv);
    if let Some(refusal) = outcome.refused {
        committed.refused = Some(LineFault::new(line, codes::commit_refusal(refusal.kind), refusal.message));
    }
}

/// What is known of a body before its first commit.
struct Start {
    cv: Cv,
    /// Commits applied by an earlier attempt.
    skip: u64,
    /// Whether an earlier attempt came to the end of a body without commits.
    ended: bool,
    /// The refusal an earlier attempt ended with.
    refused: Option<Refused>,
    idempotency: Option<(String, u128)>,
    guard: Option<KeyGuard>,
}

/// A refusal that is remembered.
struct Refused {
    /// The line, when it is one that holds no commit; else it follows from the commits applied.
    line: Option<u64>,
    code: ErrorCode,
    message: String,
}

impl Start {
    fn committer(&self) -> CommitterStart {
        CommitterStart {
            applied: self.skip,
            // A repeat answers with the version of the first attempt.
            cv: (self.skip > 0 || self.ended || self.refused.is_some()).then_some(self.cv),
            idempotency: self.idempotency.clone(),
        }
    }
}

struct CommitterStart {
    applied: u64,
    cv: Option<Cv>,
    idempotency: Option<(String, u128)>,
}

fn resume(replica: &Replica, key: String, body_hash: u128, guard: KeyGuard) -> Result<Start, ApiError> {
    let entry = replica.idempotency(&key);
    let (skip, ended, cv, refused) = match entry {
        None => (0, false, replica.cv(), None),
        Some(entry) if entry.body_hash != body_hash => {
            return Err(ApiError::new(
                ErrorCode::Conflict,
                format!("Idempotency-Key {key} was used with another body; use a new key for a new body"),
            ));
        }
        Some(entry) => {
            let ended = entry.applied == 0 && entry.refused.is_none();
            let refused = entry.refused.map(|refusal| Refused {
                line: entry.refused_line,
                code: codes::commit_refusal(refusal.kind),
                message: refusal.message,
            });
            (entry.applied, ended, entry.cv, refused)
        }
    };
    Ok(Start { cv, skip, ended, refused, idempotency: Some((key, body_hash)), guard: Some(guard) })
}

/// A line that ended the body.
#[derive(Debug)]
struct LineFault {
    line: u64,
    code: ErrorCode,
    message: String,
    status: Option<StatusCode>,
}

impl LineFault {
    fn new(line: u64, code: ErrorCode, message: impl Into<String>) -> Self {
        Self { line, code, message: message.into(), status: None }
    }

    fn answer(self, applied: u64, cv: Cv) -> ApiError {
        let error = ApiError::new(self.code, format!("line {}: {}", self.line, self.message))
            .with_progress(applied, cv, self.line);
        match self.status {
            Some(status) => error.with_status(status),
            None => error,
        }
    }
}

/// Drafted commits, and the refusal that ends the body.
#[derive(Debug, Default)]
struct Chunk {
    drafts: Vec<Draft>,
    /// The drafts' line numbers, then that of the refused one.
    lines: Vec<u64>,
    refused: Option<CommitError>,
}

/// Parses lines up to the first that is refused.
fn parse(lines: Vec<Line>, draft: impl Fn(&[u8]) -> Result<Draft, Box<CommitError>>) -> Chunk {
    let mut chunk = Chunk::default();
    for (number, line) in lines {
        chunk.lines.push(number);
        match draft(&line) {
            Ok(draft) => chunk.drafts.push(draft),
            Err(error) => {
                chunk.refused = Some(match head(&line) {
                    Head::Tables => {
                        CommitError::new(CommitProblem::Malformed("tables stand at the head only".to_owned()))
                    }
                    Head::Commit | Head::Cut => *error,
                });
                break;
            }
        }
    }
    chunk
}

/// What the first line of a body is.
#[derive(Debug, PartialEq, Eq)]
enum Head {
    Tables,
    /// A commit, or something that parsing it as one will refuse.
    Commit,
    /// The beginning of a JSON document that goes on in the next line.
    Cut,
}

fn head(line: &[u8]) -> Head {
    #[derive(Deserialize)]
    struct Peek {
        tables: Option<IgnoredAny>,
    }
    // The parser would take a list for a `Peek` as well.
    if line.first() != Some(&b'{') {
        return Head::Commit;
    }
    match serde_json::from_slice(line) {
        Ok(Peek { tables: Some(_) }) => Head::Tables,
        Err(error) if error.is_eof() => Head::Cut,
        Ok(Peek { tables: None }) | Err(_) => Head::Commit,
    }
}

/// Reads lines, parses them and hands chunks on.
struct Reader {
    replica: Replica,
    lines: Lines,
    /// Commits still to be passed over.
    skip: u64,
    /// What the first commit that is not passed over was refused with.
    refused: Option<Refused>,
}

impl Reader {
    /// Reads to the end or the first fault; the version of the tables line, if there was one.
    async fn run(
        &mut self,
        source: &mut Source,
        sender: mpsc::Sender<Chunk>,
    ) -> Result<Option<Cv>, LineFault> {
        let mut gathered: Vec<Line> = Vec::new();
        let mut gathered_bytes = 0;
        let mut tables_cv = None;
        let mut at_head = true;
        let mut ended = false;
        loop {
            // First what is there already, then more of the body, then handing on.
            while gathered.len() < CHUNK_COMMITS && gathered_bytes < CHUNK_BYTES {
                let line = match self.lines.next_line() {
                    Ok(Some(line)) => Some(line),
                    Ok(None) if ended => self.lines.rest(),
                    Ok(None) => None,
                    Err(error) => {
                        // What came before it is applied all the same.
                        self.hand_on(&sender, gathered).await?;
                        let fault = LineFault::new(error.line, ErrorCode::MessageTooLarge, error.to_string());
                        return Err(fault);
                    }
                };
                let Some(mut line) = line else { break };
                if std::mem::take(&mut at_head) {
                    match head(&line.1) {
                        Head::Tables => {
                            tables_cv = Some(self.create_tables(&line).await?);
                            continue;
                        }
                        Head::Cut if !ended || !self.lines.is_empty() => {
                            line = self.whole_document(source, line).await?;
                            ended = true;
                            if head(&line.1) == Head::Tables {
                                tables_cv = Some(self.create_tables(&line).await?);
                                continue;
                            }
                        }
                        Head::Cut | Head::Commit => {}
                    }
                }
                if self.skip > 0 {
                    self.skip -= 1;
                    continue;
                }
                if let Some(Refused { code, message, .. }) = self.refused.take() {
                    return Err(LineFault::new(line.0, code, message));
                }
                gathered_bytes += line.1.len();
                gathered.push(line);
            }
            let full = gathered.len() >= CHUNK_COMMITS || gathered_bytes >= CHUNK_BYTES;
            if ended && gathered.is_empty() {
                return Ok(tables_cv);
            }
            tokio::select! {
                biased;
                bytes = source.next(), if !full && !ended => match bytes {
                    Ok(Some(bytes)) => self.lines.feed(&bytes),
                    Ok(None) => ended = true,
                    Err(fault) => {
                        self.hand_on(&sender, gathered).await?;
                        return Err(self.at_line(fault));
                    }
                },
                permit = sender.reserve(), if !gathered.is_empty() => {
                    // The committer stops listening at a refusal, which is then the answer.
                    let Ok(permit) = permit else { return Ok(tables_cv) };
                    let chunk = self.parse(std::mem::take(&mut gathered)).await?;
                    gathered_bytes = 0;
                    let stop = chunk.refused.is_some();
                    permit.send(chunk);
                    if stop {
                        return Ok(tables_cv);
                    }
                }
            }
        }
    }

    /// Parses and hands on what was gathered before a fault.
    async fn hand_on(&self, sender: &mpsc::Sender<Chunk>, gathered: Vec<Line>) -> Result<(), LineFault> {
        if !gathered.is_empty() {
            let chunk = self.parse(gathered).await?;
            // A committer that stopped listening has a refusal of its own.
            let _ = sender.send(chunk).await;
        }
        Ok(())
    }

    /// Parsing a chunk can take milliseconds, which would hold up the connections of this thread.
    async fn parse(&self, lines: Vec<Line>) -> Result<Chunk, LineFault> {
        let first = lines.first().map_or(0, |(number, _)| *number);
        let replica = self.replica.clone();
        tokio::task::spawn_blocking(move || parse(lines, |line| replica.draft(line).map_err(Box::new)))
            .await
            .map_err(|_| LineFault::new(first, ErrorCode::Internal, "parsing the commits failed"))
    }

    fn at_line(&self, fault: SourceFault) -> LineFault {
        let mut line = LineFault::new(self.lines.line(), fault.code, fault.message);
        line.status = fault.status;
        line
    }

    async fn create_tables(&self, (number, line): &Line) -> Result<Cv, LineFault> {
        let head: TablesLine = decode_json(line)
            .map_err(|error| LineFault::new(*number, ErrorCode::BadMessage, error.to_string()))?;
        self.replica
            .create_tables(head.tables)
            .await
            .map_err(|refusal| LineFault::new(*number, codes::commit_refusal(refusal.kind), refusal.message))
    }

    /// The whole body as one document, after its first line turned out to be cut.
    async fn whole_document(&mut self, source: &mut Source, first: Line) -> Result<Line, LineFault> {
        let number = first.0;
        let max = self.lines.max();
        let mut document = std::mem::replace(&mut self.lines, Lines::new(max)).into_document(first);
        loop {
            if document.len() > max {
                let message = format!("the document is longer than {max} bytes (limits.line_bytes_max)");
                return Err(LineFault::new(number, ErrorCode::MessageTooLarge, message));
            }
            match source.next().await {
                Ok(Some(bytes)) => document.extend_from_slice(&bytes),
                Ok(None) => return Ok((number, document.freeze())),
                Err(fault) => return Err(self.at_line(fault)),
            }
        }
    }
}

/// How far the committer got.
#[derive(Debug)]
struct Committed {
    applied: u64,
    /// The last applied commit's version, when any was, now or by an earlier attempt.
    cv: Option<Cv>,
    refused: Option<LineFault>,
}

async fn commit_chunks(
    replica: Replica,
    start: CommitterStart,
    mut chunks: mpsc::Receiver<Chunk>,
    hub: Arc<Hub>,
) -> Committed {
    let CommitterStart { applied, cv, idempotency } = start;
    let mut committed = Committed { applied, cv, refused: None };
    while let Some(chunk) = chunks.recv().await {
        let count = chunk.drafts.len();
        let idempotency = idempotency.as_ref().map(|(key, body_hash)| IdempotencyTag {
            key: key.as_str().into(),
            body_hash: *body_hash,
            ordinal: committed.applied,
        });
        let arrived_at = Instant::now();
        let commits = Commits { drafts: chunk.drafts, then_refused: chunk.refused, idempotency };
        let outcome = replica.commit(commits).await;
        committed.applied += outcome.applied as u64;
        if outcome.applied > 0 {
            committed.cv = Some(outcome.cv);
            hub.arrivals.note(outcome.cv, outcome.applied.min(count), arrived_at);
        }
        if let Some(refusal) = outcome.refused {
            committed.cv.get_or_insert(outcome.cv);
            let line = chunk.lines.get(outcome.applied).copied().unwrap_or_default();
            let fault = LineFault::new(line, codes::commit_refusal(refusal.kind), refusal.message);
            committed.refused = Some(fault);
            break;
        }
    }
    committed
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn the_head_of_a_body_is_recognized() {
        assert_eq!(head(br#"{"tables":[]}"#), Head::Tables);
        assert_eq!(head(br#"{"tables":["#), Head::Cut);
        assert_eq!(head(br#"{"ops":[]}"#), Head::Commit);
        assert_eq!(head(b"{"), Head::Cut);
        assert_eq!(head(b"nonsense"), Head::Commit);
        assert_eq!(head(b"[1]"), Head::Commit);
    }

    #[test]
    fn a_chunk_ends_at_the_first_line_that_is_refused() {
        let line = |number, text: &'static str| (number, Bytes::from_static(text.as_bytes()));
        let draft = |line: &[u8]| match line {
            b"good" => Ok(Draft::default()),
            _ => Err(Box::new(CommitError::new(CommitProblem::Malformed("bad".to_owned())))),
        };
        let chunk = parse(vec![line(2, "good"), line(4, "good"), line(5, "bad"), line(6, "good")], draft);
        assert_eq!((chunk.drafts.len(), chunk.lines), (2, vec![2, 4, 5]));
        assert!(chunk.refused.is_some());
        let late = parse(vec![line(3, r#"{"tables":[]}"#)], draft).refused.expect("refused").to_string();
        assert!(late.contains("head"), "{late}");
    }

    #[test]
    fn a_fault_answers_with_line_and_progress() {
        let error = LineFault::new(7, ErrorCode::Conflict, "row 1 of t exists").answer(3, Cv(12));
        assert_eq!(
            error.body(),
            json!({"error": {"code": "conflict", "message": "line 7: row 1 of t exists", "applied": 3, "cv": 12, "line": 7}})
        );
    }
}
