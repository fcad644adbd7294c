//! LIKE and case mapping, over code points.

/// Whether the text matches the pattern (`%` any run, `_` any one code point, `\` takes the next literally), or `None`
/// where the pattern ends in a lone escape.
pub(super) fn like(text: &str, pattern: &str) -> Option<bool> {
    enum Part {
        Any,
        One,
        Literal(char),
    }
    let mut parts = Vec::new();
    let mut rest = pattern.chars();
    while let Some(next) = rest.next() {
        parts.push(match next {
            '%' => Part::Any,
            '_' => Part::One,
            '\\' => Part::Literal(rest.next()?),
            other => Part::Literal(other),
        });
    }
    // matched[i]: the parts so far match exactly the first i code points.
    let text: Vec<char> = text.chars().collect();
    let mut matched = vec![false; text.len() + 1];
    matched[0] = true;
    for part in parts {
        let mut next = vec![false; text.len() + 1];
        match part {
            Part::Any => {
                let mut seen = false;
                for (index, slot) in next.iter_mut().enumerate() {
                    seen |= matched[index];
                    *slot = seen;
                }
            }
            Part::One => next[1..].copy_from_slice(&matched[..text.len()]),
            Part::Literal(wanted) => {
                for index in 0..text.len() {
                    next[index + 1] = matched[index] && text[index] == wanted;
                }
            }
        }
        matched = next;
    }
    Some(matched[text.len()])
}

/// Lower case by Unicode's simple mapping: one code point for one, without context, as PostgreSQL's `C.UTF-8` does.
pub(super) fn lower(text: &str) -> String {
    // U+0130 is the one character whose full mapping is longer than its simple one.
    text.chars().map(|c| if c == '\u{130}' { 'i' } else { c.to_lowercase().next().unwrap_or(c) }).collect()
}

/// Upper case by Unicode's simple mapping.
pub(super) fn upper(text: &str) -> String {
    text.chars().map(upper_char).collect()
}

fn upper_char(c: char) -> char {
    let mut full = c.to_uppercase();
    match (full.next(), full.next()) {
        (Some(only), None) => only,
        // Where the full mapping is a string, the simple one is the title-case letter for Greek with iota subscript,
        // and the letter itself for all others (ß, ligatures).
        _ => match c as u32 {
            code @ (0x1f80..=0x1f87 | 0x1f90..=0x1f97 | 0x1fa0..=0x1fa7) => {
                char::from_u32(code + 8).unwrap_or(c)
            }
            code @ (0x1fb3 | 0x1fc3 | 0x1ff3) => char::from_u32(code + 9).unwrap_or(c),
            _ => c,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_goes_by_code_points_and_escapes() {
        for (text, pattern, expected) in [
            ("", "", true),
            ("", "%", true),
            ("", "_", false),
            ("😀", "_", true),
            ("aXb", "a_b", true),
            ("aXb", "a\\_b", false),
            ("a_b", "a\\_b", true),
            ("100%", "100\\%", true),
            ("100x", "100\\%", false),
            ("a\\b", "a\\\\b", true),
            ("abcabd", "%ab_", true),
            ("abcabd", "a%c", false),
            ("A", "a", false),
        ] {
            assert_eq!(like(text, pattern), Some(expected), "{text:?} like {pattern:?}");
        }
        assert_eq!(like("a", "a\\"), None);
    }

    #[test]
    fn case_mapping_is_simple() {
        assert_eq!(lower("ÉΣİẞ"), "éσiß");
        assert_eq!(upper("éσςßᾳ"), "ÉΣΣßᾼ");
    }
}
