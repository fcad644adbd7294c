//! Splits a streamed body into lines, counting them, with the length of a line bounded.

use bytes::{Bytes, BytesMut};

/// A line longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is longer than {max} bytes (limits.line_bytes_max)")]
pub struct LineTooLong {
    /// The line's number.
    pub line: u64,
    /// The limit.
    pub max: usize,
}

/// A line with its number, from 1. Without its end.
pub type Line = (u64, Bytes);

/// See the module's description. Blank lines are counted and left out.
#[derive(Debug)]
pub struct Lines {
    buffer: BytesMut,
    /// Bytes of the buffer known to hold no line end.
    scanned: usize,
    /// Number of the line the buffer starts with.
    line: u64,
    max: usize,
}

impl Lines {
    /// Nothing was fed.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self { buffer: BytesMut::new(), scanned: 0, line: 1, max }
    }

    /// Appends bytes of the body.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete line.
    ///
    /// # Errors
    /// When it is too long, be it complete or not.
    pub fn next_line(&mut self) -> Result<Option<Line>, LineTooLong> {
        loop {
            let end = self.buffer[self.scanned..].iter().position(|byte| *byte == b'\n');
            let length = end.map_or(self.buffer.len(), |end| self.scanned + end);
            if length > self.max {
                return Err(LineTooLong { line: self.line, max: self.max });
            }
            if end.is_none() {
                self.scanned = length;
                return Ok(None);
            }
            let number = self.line;
            self.line += 1;
            self.scanned = 0;
            let content = trim(self.buffer.split_to(length + 1).freeze());
            if !content.is_empty() {
                return Ok(Some((number, content)));
            }
        }
    }

    /// The number of the line that is being read.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The longest a line may be, bytes.
    #[must_use]
    pub fn max(&self) -> usize {
        self.max
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// What is left when the body has ended: a last line without an end.
    #[must_use]
    pub fn rest(&mut self) -> Option<Line> {
        self.scanned = 0;
        let content = trim(self.buffer.split().freeze());
        (!content.is_empty()).then_some((self.line, content))
    }

    /// Puts a line back, with an end, and everything after it as it was: the body is one document after all.
    #[must_use]
    pub fn into_document(mut self, (_, first): Line) -> BytesMut {
        let mut document = BytesMut::from(&first[..]);
        document.extend_from_slice(b"\n");
        document.unsplit(self.buffer.split());
        document
    }
}

fn trim(line: Bytes) -> Bytes {
    let content = line.trim_ascii();
    line.slice_ref(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&str], max: usize) -> Result<Vec<(u64, String)>, LineTooLong> {
        let mut lines = Lines::new(max);
        let mut out = Vec::new();
        let mut push = |(number, line): Line| {
            out.push((number, String::from_utf8(line.to_vec()).expect("UTF-8")));
        };
        for chunk in chunks {
            lines.feed(chunk.as_bytes());
            while let Some(line) = lines.next_line()? {
                push(line);
            }
        }
        if let Some(line) = lines.rest() {
            push(line);
        }
        Ok(out)
    }

    fn numbered(lines: &[(u64, &str)]) -> Vec<(u64, String)> {
        lines.iter().map(|(number, line)| (*number, (*line).to_owned())).collect()
    }

    #[test]
    fn lines_are_found_wherever_the_chunks_end() {
        let body = "one\n\n  \r\ntwo\r\nthree";
        let expected = numbered(&[(1, "one"), (4, "two"), (5, "three")]);
        for cut in 0..=body.len() {
            let (head, tail) = body.split_at(cut);
            assert_eq!(split(&[head, tail], 100).expect("fits"), expected, "cut at {cut}");
        }
        let bytes: Vec<String> = body.chars().map(String::from).collect();
        let bytes: Vec<&str> = bytes.iter().map(String::as_str).collect();
        assert_eq!(split(&bytes, 100).expect("fits"), expected);
    }

    #[test]
    fn the_length_of_a_line_is_bounded() {
        assert_eq!(split(&["abc\nabc"], 3).expect("fits").len(), 2);
        assert_eq!(split(&["abc\nabcd\n"], 3), Err(LineTooLong { line: 2, max: 3 }));
        assert_eq!(split(&["ab", "cd"], 3), Err(LineTooLong { line: 1, max: 3 }), "before its end comes");
    }

    #[test]
    fn a_document_of_several_lines_is_put_together_again() {
        let mut lines = Lines::new(100);
        lines.feed(b"{\n\"ops\":\n[]}");
        let first = lines.next_line().expect("fits").expect("a line");
        assert_eq!(&lines.into_document(first)[..], b"{\n\"ops\":\n[]}");
    }
}
