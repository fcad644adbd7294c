//! Damage and failing disks, against a model that is just the list of records that were acknowledged.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use proptest::prelude::*;

use super::*;
use crate::commit_log::log_error::{Corruption, Evidence, HeaderProblem, RecordProblem};

type Records = Vec<Vec<u8>>;
type Files = BTreeMap<String, Vec<u8>>;

const HEADER: u64 = SEGMENT_HEADER_BYTES as u64;

fn small_segments() -> LogOptions {
    LogOptions { segment_bytes_max: 300, sync: SyncPolicy::Never, record_bytes_max: 1000 }
}

fn one_segment() -> LogOptions {
    LogOptions { segment_bytes_max: u64::MAX, ..small_segments() }
}

fn open_on(
    disk: impl Disk + 'static,
    directory: &Path,
    options: LogOptions,
) -> Result<(CommitLog, Records), OpenError<Infallible>> {
    let mut records = Vec::new();
    let log = CommitLog::open_on(
        Box::new(disk),
        directory,
        options,
        |record| {
            records.push(record.payload.to_vec());
            assert_eq!(record.sequence, records.len() as u64, "log_is_gapless");
            Ok(())
        },
        |_| (),
    )?;
    assert_eq!(log.durable_sequence(), records.len() as u64);
    assert_eq!(log.bytes(), read_files(directory).values().map(|bytes| bytes.len() as u64).sum::<u64>());
    Ok((log, records))
}

fn open(directory: &Path, options: LogOptions) -> Result<(CommitLog, Records), OpenError<Infallible>> {
    open_on(SystemDisk, directory, options)
}

/// Appends and syncs one batch of records, each of a length.
fn write(log: &mut CommitLog, records: &mut Records, lengths: &[usize]) -> Result<(), SyncError> {
    let first = log.durable_sequence() + 1;
    let mut batch = Vec::new();
    for (index, length) in lengths.iter().enumerate() {
        let sequence = first + index as u64;
        let payload: Vec<u8> = (0..*length).map(|byte| (sequence as usize * 31 + byte * 7) as u8).collect();
        assert_eq!(log.append(&payload).unwrap(), sequence);
        batch.push(payload);
    }
    assert_eq!(log.durable_sequence(), first - 1, "nothing is durable before the sync");
    log.sync()?;
    records.extend(batch);
    assert_eq!(log.durable_sequence(), records.len() as u64);
    Ok(())
}

/// The segment files by name.
fn read_files(directory: &Path) -> Files {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let segments = entries.filter(|entry| entry.file_name() != LOCK_FILE);
    segments
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect()
}

fn directory_with(files: &Files) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(directory.path().join(name), bytes).unwrap();
    }
    directory
}

/// A log written by batches, as files, with the records after each batch and the end of each batch in its segment.
struct Written {
    files: Files,
    records: Records,
    /// For each batch: the segment's name, where it begins and ends there, and how many records precede it.
    batches: Vec<(String, usize, usize, usize)>,
}

fn written(options: LogOptions, batches: &[&[usize]]) -> Written {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, mut records) = open(directory.path(), options).unwrap();
    let mut ranges = Vec::new();
    for lengths in batches {
        let records_before = records.len();
        write(&mut log, &mut records, lengths).unwrap();
        let bytes: usize = lengths.iter().map(|length| RECORD_HEADER_BYTES + length).sum();
        let end = log.segment.len as usize;
        let name = log.segment.path.file_name().unwrap().to_str().unwrap().to_owned();
        ranges.push((name, end - bytes, end, records_before));
    }
    drop(log);
    Written { files: read_files(directory.path()), records, batches: ranges }
}

/// Opens files that must open with just these records, goes on writing, and opens again.
fn assert_opens_with(files: &Files, options: LogOptions, expected: &[Vec<u8>], context: &str) {
    let directory = directory_with(files);
    let (mut log, mut records) =
        open(directory.path(), options).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert!(records == expected, "{context}: {} records, not {}", records.len(), expected.len());
    write(&mut log, &mut records, &[3, 0, 40]).unwrap();
    drop(log);
    let (_, reopened) = open(directory.path(), options).unwrap();
    assert!(reopened == records, "{context}: what was written after the repair is there");
}

fn open_error(files: &Files, options: LogOptions, context: &str) -> OpenError<Infallible> {
    let directory = directory_with(files);
    let error = match open(directory.path(), options) {
        Ok((_, records)) => panic!("{context}: opened with {} records", records.len()),
        Err(error) => error,
    };
    assert_eq!(&read_files(directory.path()), files, "{context}: a refused log is not touched");
    error
}

fn corruption(files: &Files, options: LogOptions, context: &str) -> Corruption {
    match open_error(files, options, context) {
        OpenError::Corrupt(corruption) => *corruption,
        error => panic!("{context}: {error}"),
    }
}

#[test]
fn records_come_back_over_several_segments() {
    for sync in [SyncPolicy::Always, SyncPolicy::Never] {
        let options = LogOptions { sync, ..small_segments() };
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("a/b");
        let mut expected = Vec::new();
        for round in 0..5 {
            let (mut log, records) = open(&directory, options).unwrap();
            assert_eq!(records, expected, "round {round}");
            for lengths in [&[0][..], &[10, 0, 20], &[100], &[], &[1, 2, 3, 4]] {
                write(&mut log, &mut expected, lengths).unwrap();
            }
            log.append(b"never synced").unwrap();
        }
        let files = read_files(&directory);
        assert!(files.len() > 4);
        assert!(files.values().all(|bytes| bytes.len() <= 300));
        // The remedies of the errors talk about names that sort as the sequences do.
        assert_eq!(files.keys().next().unwrap(), "00000000000000000001.log");
    }
}

#[test]
fn a_batch_is_never_split() {
    let options = small_segments();
    let written = written(options, &[&[10], &[200, 200, 200], &[10]]);
    assert_eq!(written.files.len(), 3);
    assert_opens_with(&written.files, options, &written.records, "an oversized batch");
}

#[test]
fn progress_reaches_the_total() {
    let directory = tempfile::tempdir().unwrap();
    let options = LogOptions { segment_bytes_max: 3 << 20, record_bytes_max: 1 << 20, ..small_segments() };
    let (mut log, mut records) = open(directory.path(), options).unwrap();
    for _ in 0..100 {
        write(&mut log, &mut records, &[100_000, 7]).unwrap();
    }
    let bytes = log.bytes();
    drop(log);
    let mut told = Vec::new();
    let on_record = |_: Record<'_>| Ok::<_, Infallible>(());
    CommitLog::open(directory.path(), options, on_record, |progress| told.push(progress)).unwrap();
    assert!(told.len() >= 6);
    assert!(told.is_sorted_by_key(|progress| (progress.bytes_read, progress.records)));
    assert!(told.iter().all(|progress| progress.bytes_total == bytes));
    assert_eq!(told.last().unwrap(), &ReplayProgress { bytes_read: bytes, bytes_total: bytes, records: 200 });
}

#[test]
fn a_record_over_the_limit_is_refused_and_read_if_it_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, mut records) = open(directory.path(), small_segments()).unwrap();
    write(&mut log, &mut records, &[1000]).unwrap();
    let error = log.append(&[0; 1001]).unwrap_err();
    assert_eq!(error, AppendError::TooLarge { bytes: 1001, bytes_max: 1000 });
    write(&mut log, &mut records, &[1]).unwrap();
    drop(log);
    let options = LogOptions { record_bytes_max: 10, ..small_segments() };
    assert_eq!(open(directory.path(), options).unwrap().1, records);
}

#[test]
fn a_refusal_by_the_caller_names_the_record() {
    let written = written(one_segment(), &[&[10], &[20, 30]]);
    let directory = directory_with(&written.files);
    let on_record = |record: Record<'_>| match record.sequence {
        2 => Err(io::Error::other("no such table")),
        _ => Ok(()),
    };
    let error = CommitLog::open(directory.path(), one_segment(), on_record, |_| ()).unwrap_err();
    let expected_offset = HEADER + 24 + 10;
    let OpenError::Record { offset, sequence: 2, .. } = error else { panic!("{error}") };
    assert_eq!(offset, expected_offset);
}

#[test]
fn a_second_opener_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (log, _) = open(directory.path(), small_segments()).unwrap();
    let error = open(directory.path(), small_segments()).unwrap_err();
    assert!(
        matches!(&error, OpenError::Locked { path } if *path == directory.path().join("lock")),
        "{error}"
    );
    drop(log);
    open(directory.path(), small_segments()).unwrap();
}

#[test]
fn a_tail_torn_at_any_byte_is_cut_to_the_batch_before() {
    let batches: &[&[usize]] = &[&[10, 0], &[30], &[0, 25, 0, 40]];
    for (options, segments) in
        [(one_segment(), 1), (LogOptions { segment_bytes_max: 190, ..one_segment() }, 2)]
    {
        let written = written(options, batches);
        assert_eq!(written.files.len(), segments);
        let (name, start, end, records_before) = written.batches.last().unwrap().clone();
        for len in start..end {
            let mut files = written.files.clone();
            files.get_mut(&name).unwrap().truncate(len);
            let expected = &written.records[..records_before];
            assert_opens_with(&files, options, expected, &format!("cut to {len} bytes"));
            // A file system may have grown the file before the data came.
            files.get_mut(&name).unwrap().resize(end + 5000, 0);
            assert_opens_with(&files, options, expected, &format!("zeros from {len}"));
        }
        for garbage in [&b"\0"[..], &[0; 3000], b"garbage", &[0xff; 5000]] {
            let mut files = written.files.clone();
            files.get_mut(&name).unwrap().extend_from_slice(garbage);
            assert_opens_with(&files, options, &written.records, &format!("{} bytes", garbage.len()));
        }
    }
}

#[test]
fn any_damage_within_the_last_batch_drops_all_of_it_and_no_more() {
    let written = written(one_segment(), &[&[10, 0], &[30], &[0, 25, 0, 40]]);
    let (name, start, end, records_before) = written.batches.last().unwrap().clone();
    for at in start..end {
        for span in [1, 16, 60] {
            let mut files = written.files.clone();
            let bytes = files.get_mut(&name).unwrap();
            bytes[at..(at + span).min(end)].iter_mut().for_each(|byte| *byte ^= 0x10);
            let expected = &written.records[..records_before];
            assert_opens_with(&files, one_segment(), expected, &format!("{span} bytes at {at}"));
        }
    }
}

#[test]
fn damage_before_the_last_batch_is_refused_naming_the_place() {
    for options in [one_segment(), LogOptions { segment_bytes_max: 190, ..one_segment() }] {
        let written = written(options, &[&[10, 0], &[30, 5, 0], &[0, 25, 0, 40]]);
        let earlier = &written.batches[..written.batches.len() - 1];
        for (name, start, end, records_before) in earlier {
            for at in *start..*end {
                for bit in [0, 3, 7] {
                    let mut files = written.files.clone();
                    files.get_mut(name).unwrap()[at] ^= 1 << bit;
                    let context = format!("bit {bit} at {at}");
                    let corruption = corruption(&files, options, &context);
                    assert_eq!(corruption.path.file_name().unwrap(), name.as_str(), "{context}");
                    let range = *start as u64..=at as u64;
                    assert!(range.contains(&corruption.offset), "{context}: {corruption}");
                    assert_eq!(corruption.keep_bytes, *start as u64, "{context}");
                    assert_eq!(corruption.first_lost_sequence, *records_before as u64 + 1, "{context}");
                    let text = corruption.to_string();
                    assert!(text.contains(name) && text.contains(&format!("offset {}", corruption.offset)));

                    // The remedy that the error names works.
                    let keep_bytes = corruption.keep_bytes as usize;
                    files.get_mut(name).unwrap().truncate(keep_bytes);
                    files.retain(|other, _| other <= name);
                    let expected = &written.records[..*records_before];
                    assert_opens_with(&files, options, expected, &format!("{context}, truncated"));
                }
            }
        }
    }
}

#[test]
fn a_whole_record_out_of_place_is_refused() {
    let written = written(one_segment(), &[&[10, 7], &[30], &[5]]);
    let (name, start, end, _) = written.batches[1].clone();
    let mut files = written.files.clone();
    files.get_mut(&name).unwrap().drain(start..end);
    let found = corruption(&files, one_segment(), "a batch removed");
    assert_eq!(found.problem, RecordProblem::Sequence { expected: 3, found: 4 });
    assert_eq!((found.evidence, found.offset), (Evidence::WholeRecord, start as u64));

    let mut files = written.files.clone();
    let bytes = files.get_mut(&name).unwrap();
    let repeated = bytes[start..end].to_vec();
    bytes.splice(end..end, repeated);
    let found = corruption(&files, one_segment(), "a batch twice");
    assert_eq!(found.problem, RecordProblem::Sequence { expected: 4, found: 3 });

    let log_id = frame_log_id(&written.files[&name]);
    let mut files = written.files.clone();
    let stray =
        RecordHeader { payload_bytes: 0, payload_crc: 0, sequence: 5, batch_index: 1, batch_end: true };
    files.get_mut(&name).unwrap().extend_from_slice(&stray.encode(log_id));
    let found = corruption(&files, one_segment(), "a record of no batch");
    assert_eq!(found.problem, RecordProblem::Batch { sequence: 5 });
}

fn frame_log_id(segment: &[u8]) -> u64 {
    u64::from_le_bytes(segment[20..28].try_into().unwrap())
}

#[test]
fn a_later_batch_far_behind_the_damage_is_found() {
    let far = 3 << 20;
    let options = LogOptions { record_bytes_max: u32::MAX, ..one_segment() };
    for length in [far, far - 24, far - 23, (1 << 20) - 24 - 12, (1 << 20) - 24 - 32] {
        let written = written(options, &[&[10], &[length], &[0]]);
        let (name, start, ..) = written.batches[1].clone();
        let mut files = written.files.clone();
        files.get_mut(&name).unwrap()[start + 3] ^= 1;
        let found = corruption(&files, options, "far");
        let offset = (start + 24 + length) as u64;
        assert_eq!(found.evidence, Evidence::LaterRecord { offset, sequence: 3 });
        assert_eq!(found.problem, RecordProblem::HeaderChecksum);
    }
}

#[test]
fn records_within_a_torn_payload_are_no_evidence() {
    // A log of the same shape but another identity, stored as a value in a record.
    let other = written(one_segment(), &[&[10], &[10], &[10], &[10]]);
    let stored = other.files.values().next().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (mut log, mut records) = open(directory.path(), one_segment()).unwrap();
    write(&mut log, &mut records, &[10]).unwrap();
    log.append(stored).unwrap();
    log.sync().unwrap();
    drop(log);
    let mut files = read_files(directory.path());
    let bytes = files.values_mut().next().unwrap();
    bytes.pop();
    assert_opens_with(&files, one_segment(), &records, "torn");
}

#[test]
fn missing_renamed_and_foreign_segments_are_refused() {
    let options = LogOptions { segment_bytes_max: 100, ..one_segment() };
    let written = written(options, &[&[50], &[51], &[52], &[53]]);
    assert_eq!(written.files.len(), 4);
    let names: Vec<_> = written.files.keys().cloned().collect();
    for (missing, name) in names.iter().take(3).enumerate() {
        let mut files = written.files.clone();
        files.remove(name);
        let error = open_error(&files, options, "missing");
        let sequence = missing as u64 + 1;
        let OpenError::SegmentOrder { expected, found, .. } = error else { panic!("{error}") };
        assert_eq!((expected, found), (sequence, sequence + 1));
    }
    let mut files = written.files.clone();
    let last = files.remove(&names[3]).unwrap();
    files.insert(names[2].clone(), last);
    let error = open_error(&files, options, "renamed");
    let problem = HeaderProblem::FirstSequence { found: 4, named: 3 };
    assert!(matches!(error, OpenError::Header { problem: p, .. } if p == problem), "{error}");

    let foreign = self::written(options, &[&[50], &[51], &[52], &[53]]);
    let mut files = written.files.clone();
    files.insert(names[2].clone(), foreign.files[&names[2]].clone());
    let error = open_error(&files, options, "foreign");
    assert!(matches!(error, OpenError::Header { problem: HeaderProblem::OtherLog, .. }), "{error}");

    // A torn tail is torn only in the last segment.
    for (name, _) in written.files.iter().take(3) {
        let mut files = written.files.clone();
        files.get_mut(name).unwrap().pop();
        let found = corruption(&files, options, "cut in the middle");
        assert_eq!(found.evidence, Evidence::LaterSegment);
    }
}

#[test]
fn files_of_other_names_are_left_alone() {
    let written = written(one_segment(), &[&[50]]);
    let mut files = written.files.clone();
    for name in ["1.log", "server.log", "0000000000000000002.log", "+0000000000000000002.log", "notes"] {
        files.insert(name.into(), b"?".to_vec());
    }
    let directory = directory_with(&files);
    let mut count = 0;
    let on_record = |_: Record<'_>| {
        count += 1;
        Ok::<_, Infallible>(())
    };
    CommitLog::open(directory.path(), one_segment(), on_record, |_| ()).unwrap();
    assert_eq!((count, read_files(directory.path())), (1, files));
}

#[test]
fn a_damaged_header_is_refused() {
    let options = LogOptions { segment_bytes_max: 100, ..one_segment() };
    let written = written(options, &[&[50], &[51]]);
    for name in written.files.keys() {
        for at in 0..SEGMENT_HEADER_BYTES {
            let mut files = written.files.clone();
            files.get_mut(name).unwrap()[at] ^= 1;
            let error = open_error(&files, options, "header");
            let OpenError::Header { path, problem } = &error else { panic!("byte {at}: {error}") };
            assert_eq!(path.file_name().unwrap(), name.as_str());
            let expected = match at {
                0..8 => HeaderProblem::Magic,
                8..12 => HeaderProblem::Version { found: 1 ^ (1 << (8 * (at - 8))), supported: 1 },
                _ => HeaderProblem::Checksum,
            };
            assert_eq!(*problem, expected, "byte {at}");
        }
    }
}

#[test]
fn a_segment_whose_creation_was_cut_short_is_taken_back() {
    let options = LogOptions { segment_bytes_max: 100, ..one_segment() };
    let written = written(options, &[&[50], &[51]]);
    let names: Vec<_> = written.files.keys().cloned().collect();
    for len in 0..=SEGMENT_HEADER_BYTES {
        for zeros in [false, true] {
            let mut files = written.files.clone();
            let bytes = files.get_mut(&names[1]).unwrap();
            bytes.truncate(len);
            if zeros {
                bytes.fill(0);
            }
            assert_opens_with(&files, options, &written.records[..1], &format!("{len} bytes, zeros {zeros}"));
            // The segment before it had been whole when the creation began.
            files.get_mut(&names[0]).unwrap().pop();
            assert_eq!(corruption(&files, options, "before").evidence, Evidence::LaterSegment);
            // With records missing in between it is no segment that the log began.
            files.remove(&names[0]);
            open_error(&files, options, "out of order");
        }
    }
    for contents in [&b"x"[..], &[0; 33], b"something else of 32 bytes......"] {
        let mut files = written.files.clone();
        files.insert(names[1].clone(), contents.to_vec());
        let error = open_error(&files, options, "not a segment");
        assert!(matches!(error, OpenError::Header { .. }), "{error}");
    }
    let only = Files::from([(names[0].clone(), Vec::new())]);
    assert_opens_with(&only, options, &[], "the first segment");
}

/// A disk on which any step can fail.
#[derive(Clone, Default)]
struct FaultyDisk(Arc<Mutex<Faults>>);

#[derive(Default)]
struct Faults {
    /// Steps taken so far.
    steps: usize,
    /// The steps that fail.
    failing: std::ops::Range<usize>,
    /// How many more bytes can be written, and `None` for any number. Cut bytes come back.
    room: Option<usize>,
    /// What was done.
    trace: Vec<&'static str>,
}

impl FaultyDisk {
    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.0.lock().unwrap()
    }

    fn step(&self, name: &'static str) -> io::Result<()> {
        let mut faults = self.faults();
        faults.trace.push(name);
        faults.steps += 1;
        let step = faults.steps - 1;
        if faults.failing.contains(&step) { Err(io::Error::other("injected")) } else { Ok(()) }
    }

    /// From now on, the steps in this range fail, counted from the next one.
    fn fail(&self, steps: std::ops::Range<usize>) {
        let mut faults = self.faults();
        faults.failing = steps.start + faults.steps..steps.end.saturating_add(faults.steps);
        faults.trace.clear();
    }
}

struct FaultyFile {
    disk: FaultyDisk,
    file: File,
}

impl Disk for FaultyDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn SegmentFile>> {
        self.step("create")?;
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        Ok(Box::new(FaultyFile { disk: self.clone(), file }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn SegmentFile>> {
        self.step("open")?;
        let file = OpenOptions::new().write(true).open(path)?;
        Ok(Box::new(FaultyFile { disk: self.clone(), file }))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step("remove")?;
        let bytes = fs::metadata(path)?.len();
        fs::remove_file(path)?;
        self.faults().room.iter_mut().for_each(|room| *room += bytes as usize);
        Ok(())
    }

    fn sync_directory(&self, _path: &Path) -> io::Result<()> {
        self.step("sync_directory")
    }
}

impl SegmentFile for FaultyFile {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let failed = self.disk.step("write").err();
        let mut faults = self.disk.faults();
        // A failing write leaves its first half.
        let fitting = if failed.is_some() { bytes.len() / 2 } else { bytes.len() };
        let fitting = faults.room.unwrap_or(usize::MAX).min(fitting);
        faults.room.iter_mut().for_each(|room| *room -= fitting);
        SegmentFile::write_at(&mut self.file, offset, &bytes[..fitting])?;
        match failed {
            Some(error) => Err(error),
            None if fitting < bytes.len() => Err(io::ErrorKind::StorageFull.into()),
            None => Ok(()),
        }
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.disk.step("truncate")?;
        let bytes = self.file.metadata()?.len() - len;
        self.disk.faults().room.iter_mut().for_each(|room| *room += bytes as usize);
        self.file.set_len(len)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        self.disk.step("sync_data")
    }

    fn sync_all(&mut self) -> io::Result<()> {
        self.disk.step("sync_all")
    }
}

/// The batch under test, and options with which it goes into the open segment or needs a new one.
const BATCH: &[usize] = &[40, 0, 60];

fn both_places(sync: SyncPolicy) -> [LogOptions; 2] {
    let options = LogOptions { sync, ..small_segments() };
    [options, LogOptions { segment_bytes_max: 180, ..options }]
}

#[test]
fn a_disk_that_fills_up_at_any_byte_costs_only_the_batch() {
    for sync in [SyncPolicy::Always, SyncPolicy::Never] {
        for options in both_places(sync) {
            let mut succeeded = false;
            for room in 0.. {
                let directory = tempfile::tempdir().unwrap();
                let disk = FaultyDisk::default();
                let (mut log, mut records) = open_on(disk.clone(), directory.path(), options).unwrap();
                write(&mut log, &mut records, &[10, 20]).unwrap();
                let bytes = log.bytes();
                disk.faults().room = Some(room);
                match write(&mut log, &mut records, BATCH) {
                    Ok(()) => {
                        succeeded = true;
                        break;
                    }
                    Err(SyncError::Failed { records_dropped: 3, source, .. }) => {
                        assert_eq!(source.kind(), io::ErrorKind::StorageFull);
                    }
                    Err(error) => panic!("room {room}: {error}"),
                }
                assert_eq!(log.durable_sequence(), 2);
                assert!([bytes, bytes + HEADER].contains(&log.bytes()));
                let on_disk: usize = read_files(directory.path()).values().map(Vec::len).sum();
                assert_eq!(log.bytes(), on_disk as u64, "nothing of the batch is left");
                if room % 2 == 0 {
                    // Still full: fails again, and again leaves nothing.
                    write(&mut log, &mut records, BATCH).unwrap_err();
                }
                disk.faults().room = None;
                // A small batch first, which fits into the old segment although the failed one did not.
                write(&mut log, &mut records, &[1]).unwrap();
                write(&mut log, &mut records, BATCH).unwrap();
                drop(log);
                assert_eq!(open(directory.path(), options).unwrap().1, records, "room {room}");
            }
            assert!(succeeded);
        }
    }
}

#[test]
fn a_failure_of_any_single_step_is_undone() {
    for sync in [SyncPolicy::Always, SyncPolicy::Never] {
        for options in both_places(sync) {
            let mut traces = Vec::new();
            for step in 0.. {
                let directory = tempfile::tempdir().unwrap();
                let disk = FaultyDisk::default();
                let (mut log, mut records) = open_on(disk.clone(), directory.path(), options).unwrap();
                write(&mut log, &mut records, &[10, 20]).unwrap();
                disk.fail(step..step + 1);
                let result = write(&mut log, &mut records, BATCH);
                traces.push(disk.faults().trace.join(" "));
                match result {
                    Ok(()) => break,
                    Err(SyncError::Failed { .. }) => {}
                    Err(error) => panic!("step {step}: {error}"),
                }
                write(&mut log, &mut records, &[1]).unwrap();
                write(&mut log, &mut records, BATCH).unwrap();
                drop(log);
                assert_eq!(open(directory.path(), options).unwrap().1, records, "step {step}");
            }
            // Which steps there are, and that under `Always` undoing is made durable too.
            let rolls = options.segment_bytes_max < 200;
            let expected: &[&str] = match (sync, rolls) {
                (SyncPolicy::Never, false) => &["write truncate", "write"],
                (SyncPolicy::Never, true) => {
                    &["create", "create write remove", "create write write truncate", "create write write"]
                }
                (SyncPolicy::Always, false) => {
                    &["write truncate sync_all", "write sync_data truncate sync_all", "write sync_data"]
                }
                (SyncPolicy::Always, true) => &[
                    "create",
                    "create write remove sync_directory",
                    "create write sync_all remove sync_directory",
                    "create write sync_all sync_directory remove sync_directory",
                    "create write sync_all sync_directory write truncate sync_all",
                    "create write sync_all sync_directory write sync_data truncate sync_all",
                    "create write sync_all sync_directory write sync_data",
                ],
            };
            assert_eq!(traces, expected);
        }
    }
}

#[test]
fn a_failure_that_cannot_be_undone_poisons_the_log_until_it_is_reopened() {
    for sync in [SyncPolicy::Always, SyncPolicy::Never] {
        for options in both_places(sync) {
            let mut poisonings = 0;
            for step in 0..10 {
                for steps_failing in [2, 100] {
                    let directory = tempfile::tempdir().unwrap();
                    let disk = FaultyDisk::default();
                    let (mut log, mut records) = open_on(disk.clone(), directory.path(), options).unwrap();
                    write(&mut log, &mut records, &[10, 20]).unwrap();
                    disk.fail(step..step + steps_failing);
                    match write(&mut log, &mut records, BATCH) {
                        Ok(()) => continue,
                        Err(SyncError::FailedAndPoisoned { records_dropped: 3, .. }) => poisonings += 1,
                        // Where the step to be undone left nothing to undo.
                        Err(SyncError::Failed { step: SyncStep::CreateSegment, .. }) if step == 0 => continue,
                        Err(error) => panic!("step {step}: {error}"),
                    }
                    disk.fail(0..0);
                    assert_eq!(log.append(b"x"), Err(AppendError::Poisoned));
                    assert!(matches!(log.sync(), Err(SyncError::Poisoned)));
                    assert_eq!(disk.faults().trace, Vec::<&str>::new(), "a poisoned log writes nothing");
                    assert_eq!(log.durable_sequence(), 2);
                    drop(log);
                    let (mut log, reopened) = open(directory.path(), options).unwrap();
                    assert_eq!(reopened[..2], records);
                    assert!(reopened.len() == 2 || reopened.len() == 5, "the batch is all or nothing");
                    records = reopened;
                    write(&mut log, &mut records, BATCH).unwrap();
                    drop(log);
                    assert_eq!(open(directory.path(), options).unwrap().1, records);
                }
            }
            assert!(poisonings >= 2, "{options:?}");
        }
    }
}

#[test]
fn what_a_killed_process_left_is_synced_before_it_counts_as_durable() {
    let options = LogOptions { segment_bytes_max: 100, ..one_segment() };
    let written = written(options, &[&[50], &[51]]);
    let options = LogOptions { sync: SyncPolicy::Always, ..options };
    let directory = directory_with(&written.files);
    let disk = FaultyDisk::default();
    drop(open_on(disk.clone(), directory.path(), options).unwrap());
    assert_eq!(disk.faults().trace.join(" "), "open open sync_data sync_all sync_directory");
    for step in 0..5 {
        let disk = FaultyDisk::default();
        disk.fail(step..step + 1);
        assert!(open_on(disk, directory.path(), options).is_err(), "step {step}");
    }
}

fn batches() -> impl Strategy<Value = Vec<Vec<usize>>> {
    let length = prop_oneof![Just(0usize), 1..40usize, 200..900usize];
    prop::collection::vec(prop::collection::vec(length, 1..8), 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_records_come_back(batches in batches(), segment_bytes_max in 33..5000u64, reopen in any::<u32>()) {
        let options = LogOptions { segment_bytes_max, ..small_segments() };
        let directory = tempfile::tempdir().unwrap();
        let (mut log, mut records) = open(directory.path(), options).unwrap();
        for (index, lengths) in batches.iter().enumerate() {
            write(&mut log, &mut records, lengths).unwrap();
            if reopen >> index & 1 == 1 {
                drop(log);
                let reopened = open(directory.path(), options).unwrap();
                prop_assert_eq!(&reopened.1, &records);
                log = reopened.0;
            }
        }
        drop(log);
        prop_assert_eq!(&open(directory.path(), options).unwrap().1, &records);
    }

    /// Loss of power within a sync: of the last batch's sectors, any may have reached the disk.
    #[test]
    fn a_batch_torn_by_sectors_is_all_or_nothing(batches in batches(), lost in any::<u64>(), cut in any::<bool>()) {
        const SECTOR: usize = 128;
        let options = one_segment();
        let batches: Vec<&[usize]> = batches.iter().map(Vec::as_slice).collect();
        let written = written(options, &batches);
        let (name, start, end, records_before) = written.batches.last().unwrap().clone();
        let mut files = written.files.clone();
        let bytes = files.get_mut(&name).unwrap();
        for sector in start / SECTOR..=end / SECTOR {
            if lost >> (sector % 64) & 1 == 1 {
                let from = (sector * SECTOR).clamp(start, end);
                let to = ((sector + 1) * SECTOR).clamp(start, end);
                bytes[from..to].fill(0);
            }
        }
        if cut {
            bytes.truncate(end - (lost as usize % (end - start)));
        }
        let expected = if files == written.files { written.records.len() } else { records_before };
        assert_opens_with(&files, options, &written.records[..expected], "sectors");
    }
}
