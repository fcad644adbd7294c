//! What a text's tokens are made into before the parser sees them.

use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::ops::RangeInclusive;

/// The tokens as the parser is to see them.
pub(super) fn prepared(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let tokens = with_parameters(tokens);
    let closing = closing(&tokens);
    let mut wrapped = negated_exists(&tokens, &closing);
    wrapped.extend(grouping_elements(&tokens, &closing));
    wrap(tokens, &wrapped)
}

/// Per opening parenthesis, where it is closed.
fn closing(tokens: &[TokenWithSpan]) -> Vec<Option<usize>> {
    let (mut closing, mut open) = (vec![None; tokens.len()], Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        match token.token {
            Token::LParen => open.push(at),
            Token::RParen => {
                if let Some(opening) = open.pop() {
                    closing[opening] = Some(at);
                }
            }
            _ => {}
        }
    }
    closing
}

fn is_word(tokens: &[TokenWithSpan], at: usize, wanted: &[&str]) -> bool {
    let word = tokens.get(at).and_then(|token| bare_word(&token.token));
    word.is_some_and(|word| wanted.iter().any(|wanted| word.eq_ignore_ascii_case(wanted)))
}

/// Every `exists (…)` after `not`: the parser takes `not exists (…)` for the operand of an operator that follows, where
/// SQL negates last.
fn negated_exists(tokens: &[TokenWithSpan], closing: &[Option<usize>]) -> Vec<RangeInclusive<usize>> {
    let begins = |at: &usize| is_word(tokens, at - 1, &["not"]) && is_word(tokens, *at, &["exists"]);
    let exists = (1..tokens.len()).filter(begins);
    exists.filter_map(|at| Some(at..=(*closing.get(at + 1)?)?)).collect()
}

/// Every element of a `rollup`, `cube` or `grouping sets` that only begins with parentheses: the parser takes what is in
/// them for the whole element.
fn grouping_elements(tokens: &[TokenWithSpan], closing: &[Option<usize>]) -> Vec<RangeInclusive<usize>> {
    let mut elements = Vec::new();
    for opening in 1..tokens.len() {
        let is_sets = is_word(tokens, opening - 1, &["rollup", "cube"])
            || (opening > 1
                && is_word(tokens, opening - 1, &["sets"])
                && is_word(tokens, opening - 2, &["grouping"]));
        let Some(end) = closing[opening].filter(|_| is_sets) else { continue };
        let (mut start, mut at) = (opening + 1, opening + 1);
        while at <= end {
            if at == end || tokens[at].token == Token::Comma {
                if closing[start].is_some_and(|first| first + 1 < at) {
                    elements.push(start..=at - 1);
                }
                start = at + 1;
            }
            at = closing[at].unwrap_or(at) + 1;
        }
    }
    elements
}

/// Puts parentheses around some tokens.
fn wrap(tokens: Vec<TokenWithSpan>, wrapped: &[RangeInclusive<usize>]) -> Vec<TokenWithSpan> {
    if wrapped.is_empty() {
        return tokens;
    }
    let (mut opened, mut closed) = (vec![0; tokens.len()], vec![0; tokens.len()]);
    for range in wrapped {
        opened[*range.start()] += 1;
        closed[*range.end()] += 1;
    }
    let mut out = Vec::with_capacity(tokens.len() + 2 * wrapped.len());
    for (at, token) in tokens.into_iter().enumerate() {
        let span = token.span;
        let sign = |token: Token| TokenWithSpan { token, span };
        out.extend((0..opened[at]).map(|_| sign(Token::LParen)));
        out.push(token);
        out.extend((0..closed[at]).map(|_| sign(Token::RParen)));
    }
    out
}

/// Makes one placeholder of a colon, the word that follows at once, and further words with dots between: a dot in a name
/// and a cast after one are written without spaces.
pub(super) fn with_parameters(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        if token.token != Token::Colon {
            if !matches!(token.token, Token::Whitespace(_)) {
                out.push(token);
            }
            continue;
        }
        let mut span = token.span;
        let mut name = String::from(":");
        if let Some(next) = tokens.next_if(|next| bare_word(&next.token).is_some()) {
            name.push_str(bare_word(&next.token).unwrap_or_default());
            span = span.union(&next.span);
            while tokens.peek().is_some_and(|next| next.token == Token::Period) {
                let Some(dot) = tokens.next() else { break };
                match tokens.next_if(|next| bare_word(&next.token).is_some()) {
                    Some(next) => {
                        name.push('.');
                        name.push_str(bare_word(&next.token).unwrap_or_default());
                        span = span.union(&next.span);
                    }
                    None => {
                        out.push(TokenWithSpan {
                            token: Token::Placeholder(std::mem::take(&mut name)),
                            span,
                        });
                        out.push(dot);
                        break;
                    }
                }
            }
            if !name.is_empty() {
                out.push(TokenWithSpan { token: Token::Placeholder(name), span });
            }
        } else {
            out.push(token);
        }
    }
    out
}

fn bare_word(token: &Token) -> Option<&str> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(&word.value),
        _ => None,
    }
}
