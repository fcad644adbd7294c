//! Functions of texts. Positions and lengths count code points.

use super::{EvalError, like::fold};
use compact_str::CompactString;
use tidegate_wire::model::Value;

/// Longest text that a function makes, in bytes, so that a query cannot take all memory.
const LENGTH_MAX: usize = 64 << 20;

fn argument<T>(function: &'static str, problem: &'static str) -> Result<T, EvalError> {
    Err(EvalError::Argument { function, problem })
}

/// Upper case by Unicode's simple mapping, one code point for one, as PostgreSQL's `C.UTF-8` maps.
pub(super) fn raise(c: char) -> char {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(one), None) => one,
        // Greek letters with an iota below have a full upper case of two code points beside their simple one.
        _ => match c {
            '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => {
                char::from_u32(c as u32 + 8).unwrap_or(c)
            }
            '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => char::from_u32(c as u32 + 9).unwrap_or(c),
            _ => c,
        },
    }
}

pub(super) fn initcap(text: &str) -> CompactString {
    let mut inside = false;
    text.chars()
        .map(|c| {
            let mapped = if inside { fold(c) } else { raise(c) };
            inside = c.is_alphanumeric();
            mapped
        })
        .collect()
}

pub(super) fn left(text: &str, count: i64) -> CompactString {
    let keep = if count < 0 { (text.chars().count() as i64).saturating_add(count) } else { count };
    text.chars().take(usize::try_from(keep).unwrap_or(0)).collect()
}

pub(super) fn right(text: &str, count: i64) -> CompactString {
    let length = text.chars().count() as i64;
    let skip = if count < 0 { count.saturating_neg() } else { length.saturating_sub(count) };
    text.chars().skip(usize::try_from(skip).unwrap_or(0)).collect()
}

/// `substring(text, from[, count])`, from 1.
pub(super) fn substring(text: &str, from: i64, count: Option<i64>) -> Result<CompactString, EvalError> {
    let end = match count {
        Some(count) if count < 0 => return argument("substring", "negative substring length not allowed"),
        Some(count) => from.saturating_add(count),
        None => i64::MAX,
    };
    let start = from.max(1);
    let count = usize::try_from(end.saturating_sub(start)).unwrap_or(0);
    let skip = usize::try_from(start - 1).unwrap_or(usize::MAX);
    Ok(text.chars().skip(skip).take(count).collect())
}

/// `strpos(text, part)`: 0 when absent.
pub(super) fn position(text: &str, part: &str) -> i64 {
    text.find(part).map_or(0, |at| text[..at].chars().count() as i64 + 1)
}

pub(super) fn replace(text: &str, from: &str, to: &str) -> Result<CompactString, EvalError> {
    if from.is_empty() {
        return Ok(text.into());
    }
    let growth = to.len().saturating_sub(from.len()).saturating_mul(text.len() / from.len());
    if text.len().saturating_add(growth) > LENGTH_MAX {
        return argument("replace", "requested length too large");
    }
    Ok(text.replace(from, to).into())
}

pub(super) fn translate(text: &str, from: &str, to: &str) -> CompactString {
    let to: Vec<char> = to.chars().collect();
    text.chars()
        .filter_map(|c| match from.chars().position(|other| other == c) {
            Some(index) => to.get(index).copied(),
            None => Some(c),
        })
        .collect()
}

pub(super) fn repeat(text: &str, count: i64) -> Result<CompactString, EvalError> {
    let count = usize::try_from(count).unwrap_or(0);
    if text.len().saturating_mul(count) > LENGTH_MAX {
        return argument("repeat", "requested length too large");
    }
    Ok(text.repeat(count).into())
}

/// `lpad` and, at the end, `rpad`: cuts a text that is longer.
pub(super) fn pad(text: &str, length: i64, fill: &str, at_end: bool) -> Result<CompactString, EvalError> {
    let length = usize::try_from(length).unwrap_or(0);
    let own = text.chars().count();
    if own >= length || fill.is_empty() {
        return Ok(text.chars().take(length).collect());
    }
    if length > LENGTH_MAX / 4 {
        return argument("lpad", "requested length too large");
    }
    let padding = fill.chars().cycle().take(length - own);
    Ok(if at_end { text.chars().chain(padding).collect() } else { padding.chain(text.chars()).collect() })
}

/// `split_part(text, delimiter, n)`; a negative n counts from the end.
pub(super) fn split_part(text: &str, delimiter: &str, part: i64) -> Result<CompactString, EvalError> {
    if part == 0 {
        return argument("split_part", "field position must not be zero");
    }
    if text.is_empty() {
        return Ok(CompactString::default());
    }
    if delimiter.is_empty() {
        return Ok(if part == 1 || part == -1 { text.into() } else { CompactString::default() });
    }
    let nth = usize::try_from(part.unsigned_abs() - 1).unwrap_or(usize::MAX);
    let found = if part > 0 {
        text.split(delimiter).nth(nth)
    } else {
        let parts: Vec<&str> = text.split(delimiter).collect();
        parts.len().checked_sub(1).and_then(|last| last.checked_sub(nth)).map(|index| parts[index])
    };
    Ok(found.unwrap_or_default().into())
}

/// The code point of the first character; 0 of an empty text.
pub(super) fn ascii(text: &str) -> i64 {
    text.chars().next().map_or(0, |c| i64::from(u32::from(c)))
}

pub(super) fn chr(code: i64) -> Result<Value, EvalError> {
    match u32::try_from(code).ok().and_then(char::from_u32) {
        Some('\0') => argument("chr", "null character not permitted"),
        Some(c) => Ok(Value::Text(CompactString::from_iter([c]))),
        None => argument("chr", "requested character not valid for encoding"),
    }
}

/// `like_escape(pattern, escape)`: the pattern with `\` as its escape character.
pub(super) fn like_escape(pattern: &str, escape: &str) -> Result<CompactString, EvalError> {
    let mut escapes = escape.chars();
    let escape = match (escapes.next(), escapes.next()) {
        (escape, None) => escape,
        _ => return argument("like", "invalid escape string: it must be empty or one character"),
    };
    if escape == Some('\\') {
        return Ok(pattern.into());
    }
    let mut out = CompactString::with_capacity(pattern.len() + 4);
    let mut after_escape = false;
    for c in pattern.chars() {
        if Some(c) == escape && !after_escape {
            out.push('\\');
            after_escape = true;
            continue;
        }
        if c == '\\' && !after_escape {
            out.push('\\');
        }
        out.push(c);
        after_escape = false;
    }
    Ok(out)
}

/// RFC 1321, as hexadecimal digits.
pub(super) fn md5(bytes: &[u8]) -> CompactString {
    const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    let mut state: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() < bytes.len() + 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let end = padded.len() - 8;
    padded[end..].copy_from_slice(&(bytes.len() as u64).wrapping_mul(8).to_le_bytes());
    for block in padded.chunks_exact(64) {
        let word = |index: usize| {
            let at = index * 4;
            u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
        };
        let [mut a, mut b, mut c, mut d] = state;
        for step in 0..64 {
            let (mixed, index) = match step / 16 {
                0 => ((b & c) | (!b & d), step),
                1 => ((d & b) | (!d & c), (5 * step + 1) % 16),
                2 => (b ^ c ^ d, (3 * step + 5) % 16),
                _ => (c ^ (b | !d), (7 * step) % 16),
            };
            // The table of RFC 1321: the integer part of 2^32 × |sin(step + 1)|.
            let sine = (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32;
            let sum = a.wrapping_add(mixed).wrapping_add(sine).wrapping_add(word(index));
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(SHIFTS[step / 16][step % 4]));
        }
        for (part, new) in state.iter_mut().zip([a, b, c, d]) {
            *part = part.wrapping_add(new);
        }
    }
    let mut out = CompactString::with_capacity(32);
    for byte in state.iter().flat_map(|part| part.to_le_bytes()) {
        out.push_str(&format!("{byte:02x}"));
    }
    out
}
