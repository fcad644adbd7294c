//! LIKE and ILIKE patterns: `%` any run, `_` one code point, `\` takes the next code point as it is.

use super::EvalError;
use std::fmt::{self, Write as _};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Token {
    Char(char),
    One,
    Run,
}

/// A compiled pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern {
    tokens: Vec<Token>,
    fold_case: bool,
}

/// Lower case by Unicode's simple mapping, one code point for one, as PostgreSQL's `C.UTF-8` maps.
pub(crate) fn fold(c: char) -> char {
    // İ alone has a full lower case of two code points; its simple one is their first.
    c.to_lowercase().next().unwrap_or(c)
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.fold_case { "ilike '" } else { "like '" })?;
        for token in &self.tokens {
            match token {
                Token::Run => f.write_char('%')?,
                Token::One => f.write_char('_')?,
                Token::Char(c @ ('%' | '_' | '\\')) => write!(f, "\\{c}")?,
                Token::Char('\'') => f.write_str("''")?,
                Token::Char(c) => f.write_char(*c)?,
            }
        }
        f.write_char('\'')
    }
}

impl Pattern {
    /// Compiles a pattern; `fold_case` makes it ILIKE.
    ///
    /// # Errors
    /// When the pattern ends in its escape character.
    pub fn compile(pattern: &str, fold_case: bool) -> Result<Self, EvalError> {
        let mut tokens = Vec::with_capacity(pattern.len());
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            let literal = match c {
                '%' => {
                    if tokens.last() != Some(&Token::Run) {
                        tokens.push(Token::Run);
                    }
                    continue;
                }
                '_' => {
                    tokens.push(Token::One);
                    continue;
                }
                '\\' => chars.next().ok_or(EvalError::LikeEscape)?,
                c => c,
            };
            tokens.push(Token::Char(if fold_case { fold(literal) } else { literal }));
        }
        Ok(Self { tokens, fold_case })
    }

    /// Whether the whole text matches. Takes at most text × pattern steps.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let tokens = &self.tokens;
        let (mut rest, mut at) = (text.chars(), 0);
        // Where to go on when a literal after the last run does not match: the run takes one more code point.
        let mut retry: Option<(std::str::Chars<'_>, usize)> = None;
        loop {
            if let Some(Token::Run) = tokens.get(at) {
                at += 1;
                if at == tokens.len() {
                    return true;
                }
                retry = Some((rest.clone(), at));
                continue;
            }
            let mut next = rest.clone();
            let matched = match (tokens.get(at), next.next()) {
                (None, None) => return true,
                (Some(Token::One), Some(_)) => true,
                (Some(Token::Char(want)), Some(c)) => *want == if self.fold_case { fold(c) } else { c },
                _ => false,
            };
            if matched {
                rest = next;
                at += 1;
                continue;
            }
            let Some((from, after)) = &mut retry else { return false };
            if from.next().is_none() {
                return false;
            }
            rest = from.clone();
            at = *after;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_like_postgresql() {
        for (pattern, text, like, ilike) in [
            ("a%", "abc", true, true),
            ("A%", "abc", false, true),
            ("%b%", "abc", true, true),
            ("a_c", "aéc", true, true),
            ("", "", true, true),
            ("", "a", false, false),
            ("%", "", true, true),
            ("_", "", false, false),
            ("%a%b%c", "xxaxxbxxc", true, true),
            ("%a%b%c", "xxaxxbxxcx", false, false),
            (r"100\%", "100%", true, true),
            (r"100\%", "1000", false, false),
            (r"a\_b", "a_b", true, true),
            (r"a\\b", r"a\b", true, true),
            ("É%", "été", false, true),
            ("%%x", "aax", true, true),
            ("%aab", "aaab", true, true),
        ] {
            assert_eq!(
                Pattern::compile(pattern, false).expect("valid").matches(text),
                like,
                "{text} like {pattern}"
            );
            assert_eq!(
                Pattern::compile(pattern, true).expect("valid").matches(text),
                ilike,
                "{text} ilike {pattern}"
            );
        }
        assert_eq!(Pattern::compile(r"a\", false), Err(EvalError::LikeEscape));
    }
}
