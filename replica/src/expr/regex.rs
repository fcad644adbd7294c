//! PostgreSQL's advanced regular expressions: `~`, `~*` and `substring(text from pattern)`. Translated for the crate
//! `regex`; back-references and look-around, which it does not have, are refused by name.

use super::EvalError;
use regex_automata::{
    Anchored, Input, MatchKind,
    nfa::thompson::pikevm::{self, PikeVM},
    util::syntax,
};
use std::{fmt, iter::Peekable, str::Chars};

/// A compiled regular expression.
#[derive(Clone)]
pub struct Regex {
    source: String,
    fold_case: bool,
    compiled: regex::Regex,
}

impl fmt::Display for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = if self.fold_case { "~*" } else { "~" };
        write!(f, "{operator} '{}'", self.source.replace('\'', "''"))
    }
}

impl PartialEq for Regex {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && self.fold_case == other.fold_case
    }
}

impl fmt::Debug for Regex {
    /// Only what tells it from others: shapes of queries are named by this text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Regex").field("source", &self.source).field("fold_case", &self.fold_case).finish()
    }
}

impl Regex {
    /// Compiles a pattern; `fold_case` makes it `~*`.
    ///
    /// # Errors
    /// A pattern that is wrong, too large or uses what is not supported.
    pub fn compile(pattern: &str, fold_case: bool) -> Result<Self, EvalError> {
        let translated = translate(pattern, fold_case)?;
        let compiled = regex::RegexBuilder::new(&translated.pattern)
            .case_insensitive(translated.fold_case)
            .dot_matches_new_line(true)
            .build()
            .map_err(|error| EvalError::Regex(last_line(&error.to_string())))?;
        Ok(Self { source: pattern.to_owned(), fold_case, compiled })
    }

    /// Whether a part of the text matches.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.compiled.is_match(text)
    }
}

/// The first part of the text that matches, or of that what the first parentheses matched. The leftmost match, and of
/// those the longest, as PostgreSQL takes it.
pub(super) fn substring(text: &str, pattern: &str) -> Result<Option<String>, EvalError> {
    let translated = translate(pattern, false)?;
    if translated.lazy {
        return Err(EvalError::RegexFeature("quantifiers that are not greedy, for substring, are"));
    }
    let regex = Regex::compile(pattern, false)?;
    let Some(leftmost) = regex.compiled.find(text) else { return Ok(None) };
    let refused = |error: &dyn fmt::Display| EvalError::Regex(last_line(&error.to_string()));
    let longest = PikeVM::builder()
        .syntax(syntax::Config::new().dot_matches_new_line(true).case_insensitive(translated.fold_case))
        .configure(pikevm::Config::new().match_kind(MatchKind::All))
        .build(&translated.pattern)
        .map_err(|error| refused(&error))?;
    let (mut cache, mut captures) = (longest.create_cache(), longest.create_captures());
    let input = Input::new(text).span(leftmost.start()..text.len()).anchored(Anchored::Yes);
    longest.captures(&mut cache, input, &mut captures);
    let group = usize::from(translated.captures);
    Ok(captures.get_group(group).and_then(|span| text.get(span.start..span.end)).map(str::to_owned))
}

fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or(text).trim_start_matches("error: ").to_owned()
}

struct Translated {
    pattern: String,
    fold_case: bool,
    /// Whether there are parentheses that capture.
    captures: bool,
    /// Whether a quantifier is not greedy.
    lazy: bool,
}

/// Most repetitions of a bound.
const REPEAT_MAX: u32 = 255;

fn fail<T>(problem: &str) -> Result<T, EvalError> {
    Err(EvalError::Regex(problem.to_owned()))
}

fn translate(pattern: &str, fold_case: bool) -> Result<Translated, EvalError> {
    let mut out = Translated {
        pattern: String::with_capacity(pattern.len() + 8),
        fold_case,
        captures: false,
        lazy: false,
    };
    let mut rest = pattern;
    if rest.starts_with("***") {
        return Err(EvalError::RegexFeature("directors (***) are"));
    }
    if let Some(after) = rest.strip_prefix("(?")
        && after.starts_with(|c: char| c.is_ascii_alphabetic())
    {
        let Some((options, after)) = after.split_once(')') else { return fail("invalid embedded option") };
        for option in options.chars() {
            match option {
                'i' => out.fold_case = true,
                'c' => out.fold_case = false,
                's' | 't' => {}
                'b' | 'e' | 'q' | 'm' | 'n' | 'p' | 'w' | 'x' => {
                    return Err(EvalError::RegexFeature("embedded options but i, c, s and t are"));
                }
                _ => return fail("invalid embedded option"),
            }
        }
        rest = after;
    }
    Translator { chars: rest.chars().peekable(), out: &mut out }.run()?;
    Ok(out)
}

struct Translator<'a> {
    chars: Peekable<Chars<'a>>,
    out: &'a mut Translated,
}

impl Translator<'_> {
    fn run(&mut self) -> Result<(), EvalError> {
        // Whether what stands before is something that a quantifier may follow.
        let mut atom = false;
        while let Some(c) = self.chars.next() {
            match c {
                '*' | '+' | '?' => {
                    self.quantifier(&c.to_string(), &mut atom)?;
                }
                '{' if self.chars.peek().is_some_and(char::is_ascii_digit) => {
                    let bound = self.bound()?;
                    self.quantifier(&bound, &mut atom)?;
                }
                '(' => {
                    if self.chars.next_if_eq(&'?').is_some() {
                        match self.chars.next() {
                            Some(':') => self.out.pattern.push_str("(?:"),
                            Some('=' | '!') => return Err(EvalError::RegexFeature("look-ahead is")),
                            Some('<') => return Err(EvalError::RegexFeature("look-behind is")),
                            _ => return fail("quantifier operand invalid"),
                        }
                    } else {
                        self.out.captures = true;
                        self.out.pattern.push('(');
                    }
                    atom = false;
                }
                ')' => {
                    self.out.pattern.push(')');
                    atom = true;
                }
                '|' => {
                    self.out.pattern.push('|');
                    atom = false;
                }
                '^' => {
                    self.out.pattern.push_str("\\A");
                    atom = false;
                }
                '$' => {
                    self.out.pattern.push_str("\\z");
                    atom = false;
                }
                '.' => {
                    self.out.pattern.push('.');
                    atom = true;
                }
                '[' => atom = self.bracket()?,
                '\\' => atom = self.escape()?,
                c => {
                    push_literal(&mut self.out.pattern, c);
                    atom = true;
                }
            }
        }
        Ok(())
    }

    fn quantifier(&mut self, text: &str, atom: &mut bool) -> Result<(), EvalError> {
        if !*atom {
            return fail("quantifier operand invalid");
        }
        *atom = false;
        self.out.pattern.push_str(text);
        if self.chars.next_if_eq(&'?').is_some() {
            self.out.pattern.push('?');
            self.out.lazy = true;
        }
        Ok(())
    }

    /// What follows `{`, a digit first.
    fn bound(&mut self) -> Result<String, EvalError> {
        let mut number = || {
            let mut digits = String::new();
            while let Some(digit) = self.chars.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            digits
        };
        let least = number();
        let parse = |digits: &str| match digits.parse::<u32>() {
            Ok(count) if count <= REPEAT_MAX => Ok(count),
            _ => Err(EvalError::Regex("invalid repetition count(s)".to_owned())),
        };
        let least = parse(&least)?;
        let bound = if self.chars.next_if_eq(&',').is_some() {
            let mut digits = String::new();
            while let Some(digit) = self.chars.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            if digits.is_empty() {
                format!("{{{least},}}")
            } else {
                let most = parse(&digits)?;
                if most < least {
                    return fail("invalid repetition count(s)");
                }
                format!("{{{least},{most}}}")
            }
        } else {
            format!("{{{least}}}")
        };
        if self.chars.next() != Some('}') {
            return fail("invalid repetition count(s)");
        }
        Ok(bound)
    }

    /// What follows a backslash. Gives whether a quantifier may follow.
    fn escape(&mut self) -> Result<bool, EvalError> {
        let Some(c) = self.chars.next() else { return fail("invalid escape \\ sequence") };
        let out = match c {
            'm' => "\\b{start}",
            'M' => "\\b{end}",
            'y' => "\\b",
            'Y' => "\\B",
            'A' => "\\A",
            'Z' => "\\z",
            '1'..='9' => return Err(EvalError::RegexFeature("back-references are")),
            'd' => "[0-9]",
            'D' => "[^0-9]",
            'w' => "[\\p{Alphabetic}\\p{N}_]",
            'W' => "[^\\p{Alphabetic}\\p{N}_]",
            's' => "\\s",
            'S' => "\\S",
            c => {
                let c = self.character(c)?;
                push_literal(&mut self.out.pattern, c);
                return Ok(true);
            }
        };
        self.out.pattern.push_str(out);
        Ok(!matches!(c, 'm' | 'M' | 'y' | 'Y' | 'A' | 'Z'))
    }

    /// The character that a backslash and `c` stand for.
    fn character(&mut self, c: char) -> Result<char, EvalError> {
        Ok(match c {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'B' => '\\',
            'e' => '\u{1b}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'u' => self.code_point(4)?,
            'U' => self.code_point(8)?,
            'x' => {
                let mut digits = String::new();
                while let Some(digit) = self.chars.next_if(char::is_ascii_hexdigit) {
                    digits.push(digit);
                }
                code_point(&digits)?
            }
            c if c.is_ascii_alphanumeric() => return fail("invalid escape \\ sequence"),
            c => c,
        })
    }

    fn code_point(&mut self, count: usize) -> Result<char, EvalError> {
        let digits: String = self.chars.by_ref().take(count).collect();
        if digits.len() == count { code_point(&digits) } else { fail("invalid escape \\ sequence") }
    }

    /// What follows `[`. Gives whether a quantifier may follow.
    fn bracket(&mut self) -> Result<bool, EvalError> {
        let ahead: String = self.chars.clone().take(6).collect();
        if let Some(boundary) = match ahead.as_str() {
            "[:<:]]" => Some("\\b{start}"),
            "[:>:]]" => Some("\\b{end}"),
            _ => None,
        } {
            self.chars.by_ref().take(6).for_each(drop);
            self.out.pattern.push_str(boundary);
            return Ok(false);
        }
        let mut set = String::from("[");
        if self.chars.next_if_eq(&'^').is_some() {
            set.push('^');
        }
        let mut first = true;
        loop {
            let Some(c) = self.chars.next() else { return fail("brackets [] not balanced") };
            match c {
                ']' if !first => break,
                '[' if self.chars.peek() == Some(&':') => {
                    let name = self.class_name()?;
                    // Where case does not count, neither of the two classes means less than all letters.
                    let folded = self.out.fold_case && matches!(name.as_str(), "upper" | "lower");
                    set.push_str(class(if folded { "alpha" } else { &name })?);
                }
                '[' if matches!(self.chars.peek(), Some('=' | '.')) => {
                    return Err(EvalError::RegexFeature("collating elements and equivalence classes are"));
                }
                '\\' if matches!(self.chars.peek(), Some('d' | 'w' | 's')) => {
                    set.push_str(match self.chars.next() {
                        Some('d') => "0-9",
                        Some('w') => "\\p{Alphabetic}\\p{N}_",
                        _ => "\\s",
                    });
                }
                c => {
                    let c = self.member(c)?;
                    push_literal(&mut set, c);
                    let mut ahead = self.chars.clone();
                    if ahead.next() == Some('-') && ahead.next().is_some_and(|end| end != ']') {
                        self.chars.next();
                        set.push('-');
                        let Some(end) = self.chars.next() else { return fail("brackets [] not balanced") };
                        let end = self.member(end)?;
                        push_literal(&mut set, end);
                    }
                }
            }
            first = false;
        }
        set.push(']');
        self.out.pattern.push_str(&set);
        Ok(true)
    }

    fn member(&mut self, c: char) -> Result<char, EvalError> {
        if c != '\\' {
            return Ok(c);
        }
        let Some(c) = self.chars.next() else { return fail("invalid escape \\ sequence") };
        if c.is_ascii_digit() || matches!(c, 'D' | 'W' | 'S' | 'd' | 'w' | 's') {
            return fail("invalid escape \\ sequence");
        }
        self.character(c)
    }

    fn class_name(&mut self) -> Result<String, EvalError> {
        self.chars.next();
        let mut name = String::new();
        while let Some(c) = self.chars.next_if(char::is_ascii_alphabetic) {
            name.push(c);
        }
        if self.chars.next() != Some(':') || self.chars.next() != Some(']') {
            return fail("invalid character class");
        }
        Ok(name)
    }
}

fn class(name: &str) -> Result<&'static str, EvalError> {
    Ok(match name {
        "alpha" => "\\p{Alphabetic}",
        "digit" => "0-9",
        "alnum" => "\\p{Alphabetic}\\p{N}",
        "upper" => "\\p{Uppercase}",
        "lower" => "\\p{Lowercase}",
        "space" => "\\s",
        "blank" => "[:blank:]",
        "punct" => "[:punct:]",
        "cntrl" => "[:cntrl:]",
        "xdigit" => "[:xdigit:]",
        "graph" => "[:graph:]",
        "print" => "[:print:]",
        "word" => "\\p{Alphabetic}\\p{N}_",
        _ => return fail("invalid character class"),
    })
}

fn code_point(digits: &str) -> Result<char, EvalError> {
    u32::from_str_radix(digits, 16)
        .ok()
        .and_then(char::from_u32)
        .ok_or_else(|| EvalError::Regex("invalid escape \\ sequence".to_owned()))
}

fn push_literal(out: &mut String, c: char) {
    if c.is_ascii_punctuation()
        && !matches!(c, '<' | '>' | '_' | '\'' | '"' | ',' | ':' | ';' | '=' | '!' | '%' | '@' | '`' | '/')
    {
        out.push('\\');
    }
    out.push(c);
}
