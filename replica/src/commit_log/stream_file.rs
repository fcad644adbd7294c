//! A recorded commit stream as a file of lines: plain, gzip or zstd.
//!
//! Read by the loaders and replayers, on their own thread; what a line means is theirs to say. A file is read through
//! once, in order, with memory for one line and the decoder.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thiserror::Error;

/// Longest line that is read, in bytes, without its line end: 64 MiB.
pub const LINE_BYTES_MAX: usize = 64 << 20;

const BUFFER_BYTES: usize = 256 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Why a commit-stream file could not be read on. The cause, where there is one, is in `source()`.
#[derive(Debug, Error)]
pub enum StreamFileError {
    /// The file could not be opened.
    #[error("cannot open the commit stream {}; check the path and permissions", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file could not be read.
    #[error("cannot read {} at line {line}; check the disk", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The line that was being read, from 1.
        line: u64,
        /// What the operating system said.
        source: io::Error,
    },
    /// The compressed data ends too early.
    #[error("{} is truncated: its {encoding} data ends within line {line}; copy or download the file again", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// The line that was being read, from 1.
        line: u64,
        /// How the file is compressed.
        encoding: Encoding,
        /// What the decoder said.
        source: io::Error,
    },
    /// The compressed data is damaged, or is not what its first bytes say.
    #[error("{} is damaged: its {encoding} data cannot be decoded at line {line}; copy or download the file again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line that was being read, from 1.
        line: u64,
        /// How the file is compressed.
        encoding: Encoding,
        /// What the decoder said.
        source: io::Error,
    },
    /// A line is over the limit.
    #[error("{} line {line} is longer than {bytes_max} bytes; split the commit", path.display())]
    LineTooLong {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The limit, [`LINE_BYTES_MAX`].
        bytes_max: usize,
    },
    /// A line is not UTF-8.
    #[error("{} line {line} is not UTF-8 at byte {column}; convert the file to UTF-8", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The first byte of the line that is not UTF-8, from 1.
        column: usize,
    },
    /// An earlier call failed, and there is no way to go on behind the fault.
    #[error("{} was not read on after an error at line {line}; open it again", path.display())]
    Stopped {
        /// The file.
        path: PathBuf,
        /// The line of the error, from 1.
        line: u64,
    },
}

/// How a file is compressed, as its first bytes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Not compressed.
    Plain,
    /// gzip, one or more members.
    Gzip,
    /// Zstandard, one or more frames.
    Zstd,
}

impl Encoding {
    fn detect(first_bytes: &[u8]) -> Encoding {
        match first_bytes {
            [0x1f, 0x8b, ..] => Encoding::Gzip,
            // The second form is a skippable frame, with which some writers begin.
            [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Encoding::Zstd,
            _ => Encoding::Plain,
        }
    }
}

impl std::fmt::Display for Encoding {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Encoding::Plain => "plain",
            Encoding::Gzip => "gzip",
            Encoding::Zstd => "zstd",
        })
    }
}

/// Reads the lines of a commit-stream file.
pub struct StreamFile {
    path: PathBuf,
    encoding: Encoding,
    reader: Box<dyn BufRead + Send>,
    /// Counted where the file is read, below the decoder.
    bytes_read: Arc<AtomicU64>,
    bytes_total: u64,
    line_bytes_max: usize,
    /// The number of the line in `buffer`.
    line: u64,
    buffer: Vec<u8>,
    /// Set by an error.
    stopped: bool,
}

impl StreamFile {
    /// Opens a file and finds out from its first bytes, not its name, how it is compressed.
    ///
    /// # Errors
    /// [`StreamFileError::Open`], or [`StreamFileError::Read`] when the first bytes cannot be read.
    pub fn open(path: &Path) -> Result<StreamFile, StreamFileError> {
        StreamFile::open_with_limit(path, LINE_BYTES_MAX)
    }

    fn open_with_limit(path: &Path, line_bytes_max: usize) -> Result<StreamFile, StreamFileError> {
        let opened = File::open(path).and_then(|file| {
            let metadata = file.metadata()?;
            if metadata.is_dir() {
                Err(io::ErrorKind::IsADirectory.into())
            } else {
                Ok((metadata.len(), file))
            }
        });
        let (bytes_total, file) =
            opened.map_err(|source| StreamFileError::Open { path: path.into(), source })?;
        let bytes_read = Arc::new(AtomicU64::new(0));
        let mut file = CountingReader { file, bytes_read: Arc::clone(&bytes_read) };
        let unreadable = |source| StreamFileError::Read { path: path.into(), line: 1, source };

        let mut first_bytes = Vec::new();
        (&mut file).take(4).read_to_end(&mut first_bytes).map_err(unreadable)?;
        let encoding = Encoding::detect(&first_bytes);
        let raw = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(first_bytes).chain(file));
        let reader: Box<dyn BufRead + Send> = match encoding {
            Encoding::Plain => Box::new(raw),
            Encoding::Gzip => {
                Box::new(BufReader::with_capacity(BUFFER_BYTES, flate2::bufread::MultiGzDecoder::new(raw)))
            }
            Encoding::Zstd => {
                let decoder = zstd::Decoder::with_buffer(raw).map_err(unreadable)?;
                Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder))
            }
        };
        Ok(StreamFile {
            path: path.into(),
            encoding,
            reader,
            bytes_read,
            bytes_total,
            line_bytes_max,
            line: 0,
            buffer: Vec::new(),
            stopped: false,
        })
    }

    /// The next line that is not blank, with its number (from 1, blank lines counted) and without its line end
    /// (`\n` or `\r\n`); `None` at the end. The last line needs no line end. A byte order mark at the start of the
    /// file is skipped.
    ///
    /// # Errors
    /// See [`StreamFileError`]; each names file and line. After an error, every later call is refused with
    /// [`StreamFileError::Stopped`].
    pub fn next_line(&mut self) -> Result<Option<(u64, &str)>, StreamFileError> {
        if self.stopped {
            return Err(StreamFileError::Stopped { path: self.path.clone(), line: self.line });
        }
        // Whatever returns early below is an error.
        self.stopped = true;
        let line_range = loop {
            self.line += 1;
            if !self.read_line()? {
                self.stopped = false;
                self.line -= 1;
                return Ok(None);
            }
            let start = match self.line {
                1 if self.buffer.starts_with(BYTE_ORDER_MARK) => BYTE_ORDER_MARK.len(),
                _ => 0,
            };
            if !self.buffer[start..].trim_ascii().is_empty() {
                break start..self.buffer.len();
            }
        };
        let text =
            std::str::from_utf8(&self.buffer[line_range]).map_err(|error| StreamFileError::NotUtf8 {
                path: self.path.clone(),
                line: self.line,
                column: error.valid_up_to() + 1,
            })?;
        self.stopped = false;
        Ok(Some((self.line, text)))
    }

    /// Fills `buffer` with the next line, without its line end; `false` at the end of the file.
    fn read_line(&mut self) -> Result<bool, StreamFileError> {
        self.buffer.clear();
        // Two more than the limit, for the line end of a line of just that length.
        let bytes_wanted = self.line_bytes_max as u64 + 2;
        let read = (&mut self.reader).take(bytes_wanted).read_until(b'\n', &mut self.buffer);
        let bytes = read.map_err(|source| self.read_error(source))?;
        if self.buffer.pop_if(|byte| *byte == b'\n').is_some() {
            self.buffer.pop_if(|byte| *byte == b'\r');
        }
        if self.buffer.len() > self.line_bytes_max {
            let (path, bytes_max) = (self.path.clone(), self.line_bytes_max);
            return Err(StreamFileError::LineTooLong { path, line: self.line, bytes_max });
        }
        Ok(bytes > 0)
    }

    fn read_error(&self, source: io::Error) -> StreamFileError {
        let (path, line, encoding) = (self.path.clone(), self.line, self.encoding);
        // An error of the operating system has a number; a decoder's has none.
        if encoding == Encoding::Plain || source.raw_os_error().is_some() {
            StreamFileError::Read { path, line, source }
        } else if source.kind() == io::ErrorKind::UnexpectedEof {
            StreamFileError::Truncated { path, line, encoding, source }
        } else {
            StreamFileError::Damaged { path, line, encoding, source }
        }
    }

    /// How the file is compressed.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Bytes of the file, as compressed, that have been read; some of them may still wait in buffers.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// Size of the file when it was opened, in bytes, as compressed; 0 for a pipe.
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total
    }
}

impl std::fmt::Debug for StreamFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("StreamFile")
            .field("path", &self.path)
            .field("encoding", &self.encoding)
            .field("line", &self.line)
            .finish_non_exhaustive()
    }
}

struct CountingReader {
    file: File,
    bytes_read: Arc<AtomicU64>,
}

impl Read for CountingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read(buffer)?;
        self.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn file_with(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 3).unwrap()
    }

    fn read(stream: &mut StreamFile) -> Result<Vec<(u64, String)>, StreamFileError> {
        let mut lines = Vec::new();
        while let Some((line, text)) = stream.next_line()? {
            lines.push((line, text.to_owned()));
        }
        Ok(lines)
    }

    fn read_bytes(bytes: &[u8], line_bytes_max: usize) -> Result<Vec<(u64, String)>, StreamFileError> {
        read(&mut StreamFile::open_with_limit(file_with(bytes).path(), line_bytes_max).unwrap())
    }

    #[test]
    fn the_encodings_give_the_same_lines() {
        let text = "\u{feff}{\"tables\":[]}\r\n\n  \t\r\n{\"ops\":[\"é\"]}\n\n{\"ops\":[]}";
        let expected = [(1, "{\"tables\":[]}"), (4, "{\"ops\":[\"é\"]}"), (6, "{\"ops\":[]}")];
        let (head, tail) = text.as_bytes().split_at(30);
        let members = |encode: fn(&[u8]) -> Vec<u8>| [encode(head), encode(b""), encode(tail)].concat();
        let skippable = [&[0x52, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 7, 7], &*zstd(text.as_bytes())].concat();
        for (encoding, bytes) in [
            (Encoding::Plain, text.as_bytes().to_vec()),
            (Encoding::Gzip, gzip(text.as_bytes())),
            (Encoding::Gzip, members(gzip)),
            (Encoding::Zstd, zstd(text.as_bytes())),
            (Encoding::Zstd, members(zstd)),
            (Encoding::Zstd, skippable),
        ] {
            let file = file_with(&bytes);
            let mut stream = StreamFile::open(file.path()).unwrap();
            assert_eq!(stream.encoding(), encoding);
            let lines = read(&mut stream).unwrap();
            let lines: Vec<_> = lines.iter().map(|(line, text)| (*line, text.as_str())).collect();
            assert_eq!(lines, expected, "{encoding}");
            assert!(stream.next_line().unwrap().is_none(), "the end stays the end");
            assert_eq!((stream.bytes_read(), stream.bytes_total()), (bytes.len() as u64, bytes.len() as u64));
        }
    }

    #[test]
    fn files_without_lines_and_short_files() {
        for bytes in [&b""[..], b"\n", b" \n\r\n", b"\xef\xbb\xbf\n", &gzip(b""), &zstd(b"")] {
            assert_eq!(read_bytes(bytes, 100).unwrap(), []);
        }
        assert_eq!(read_bytes(b"7", 100).unwrap(), [(1, "7".to_owned())]);
        assert!(matches!(StreamFile::open(Path::new("/nonexistent")), Err(StreamFileError::Open { .. })));
        let directory = tempfile::tempdir().unwrap();
        assert!(matches!(StreamFile::open(directory.path()), Err(StreamFileError::Open { .. })));
    }

    #[test]
    fn a_line_over_the_limit_is_refused_and_one_at_it_is_read() {
        for end in ["", "\n", "\r\n", "\n7\n"] {
            let at_limit = format!("1\n{}{end}", "x".repeat(100));
            assert_eq!(read_bytes(at_limit.as_bytes(), 100).unwrap()[1], (2, "x".repeat(100)), "{end:?}");
            let over = format!("1\n{}{end}", "x".repeat(101));
            let error = read_bytes(over.as_bytes(), 100).unwrap_err();
            let expected = matches!(error, StreamFileError::LineTooLong { line: 2, bytes_max: 100, .. });
            assert!(expected, "{end:?}: {error}");
        }
    }

    #[test]
    fn a_line_that_is_not_utf8_is_refused_and_so_is_reading_on() {
        let file = file_with(b"{}\n\n{\"a\":\"\xff\"}\n{}\n");
        let mut stream = StreamFile::open(file.path()).unwrap();
        assert_eq!(stream.next_line().unwrap(), Some((1, "{}")));
        let error = stream.next_line().unwrap_err();
        assert!(matches!(error, StreamFileError::NotUtf8 { line: 3, column: 7, .. }), "{error}");
        assert!(error.to_string().contains(&format!("{} line 3", file.path().display())), "{error}");
        assert!(matches!(stream.next_line(), Err(StreamFileError::Stopped { line: 3, .. })));
    }

    #[test]
    fn compressed_files_cut_anywhere_are_noticed() {
        let text: String = (0..200).map(|line| format!("{{\"at\":{}}}\n", line * 7919 % 1000)).collect();
        let lines = text.lines().count() as u64;
        for encode in [gzip, zstd] {
            let first = encode(text.as_bytes());
            let whole = [first.clone(), encode(b"{}\n")].concat();
            // From 4 bytes on, a file is told from plain text; the whole first member is a file of its own.
            for len in (4..whole.len()).filter(|len| *len != first.len()) {
                let error = read_bytes(&whole[..len], 100).unwrap_err();
                let StreamFileError::Truncated { line, .. } = error else { panic!("{len} bytes: {error:?}") };
                assert!(line <= lines + 2);
                assert!(len < first.len() || line > lines, "{len} bytes: line {line}");
            }
        }
    }

    #[test]
    fn a_damaged_compressed_file_is_refused() {
        let text = "{\"ops\":[]}\n".repeat(50);
        let mut bytes = gzip(text.as_bytes());
        let crc_at = bytes.len() - 8;
        bytes[crc_at] ^= 1;
        let error = read_bytes(&bytes, 100).unwrap_err();
        assert!(matches!(error, StreamFileError::Damaged { encoding: Encoding::Gzip, .. }), "{error:?}");
        let mut bytes = zstd(text.as_bytes());
        bytes[5] ^= 0xff;
        assert!(read_bytes(&bytes, 100).is_err());
    }
}
