//! Formats of numbers.

use super::super::EvalError;

/// A number as decimal text, cut to the decimals that a format shows.
pub(in super::super) struct NumberText {
    /// Whether it is below zero.
    pub negative: bool,
    /// The digits before the point, at least one.
    pub whole: String,
    /// The digits after the point.
    pub fraction: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Item {
    /// `9` or, when `true`, `0`.
    Digit(bool),
    Point,
    /// A thousands separator.
    Group,
    /// `S`: the sign, `+` or `-`.
    Sign,
    /// `MI`: `-` or a space.
    Minus,
    /// `PL`: `+` or a space.
    Plus,
    /// `SG`: `+` or `-`.
    SignHere,
    Literal(char),
}

struct Format {
    items: Vec<Item>,
    fill: bool,
    brackets: bool,
    before: usize,
    after: usize,
    /// The number of the first position before the point that shows a zero, from 0.
    zero_from: Option<usize>,
    /// How many decimals show even when they are zeros and the format does not fill.
    zero_to: usize,
}

impl Format {
    fn parse(text: &str) -> Result<Self, EvalError> {
        let mut format = Self {
            items: Vec::new(),
            fill: true,
            brackets: false,
            before: 0,
            after: 0,
            zero_from: None,
            zero_to: 0,
        };
        let (mut rest, mut decimal) = (text, false);
        while let Some(c) = rest.chars().next() {
            let two: String = rest.chars().take(2).collect::<String>().to_ascii_uppercase();
            let (item, length) = match (two.as_str(), c.to_ascii_uppercase()) {
                ("FM", _) => {
                    format.fill = false;
                    rest = &rest[2..];
                    continue;
                }
                ("PR", _) => {
                    format.brackets = true;
                    rest = &rest[2..];
                    continue;
                }
                ("MI", _) => (Item::Minus, 2),
                ("PL", _) => (Item::Plus, 2),
                ("SG", _) => (Item::SignHere, 2),
                ("RN" | "TH", _) => return Err(EvalError::Format(two)),
                (_, 'V' | 'L') => return Err(EvalError::Format(c.to_string())),
                ("EE", _) => return Err(EvalError::Format("EEEE".to_owned())),
                (_, '9' | '0') => (Item::Digit(c == '0'), 1),
                (_, '.' | 'D') => (Item::Point, 1),
                (_, ',' | 'G') => (Item::Group, 1),
                (_, 'S') => (Item::Sign, 1),
                (_, '"') => {
                    let mut chars = rest[1..].chars();
                    loop {
                        match chars.next() {
                            None | Some('"') => break,
                            Some('\\') => format.items.extend(chars.next().map(Item::Literal)),
                            Some(c) => format.items.push(Item::Literal(c)),
                        }
                    }
                    rest = chars.as_str();
                    continue;
                }
                (_, '\\') if rest[1..].starts_with('"') => (Item::Literal('"'), 2),
                _ => (Item::Literal(c), c.len_utf8()),
            };
            match item {
                Item::Digit(zero) if decimal => {
                    format.after += 1;
                    if zero {
                        format.zero_to = format.after;
                    }
                }
                Item::Digit(zero) => {
                    if zero && format.zero_from.is_none() {
                        format.zero_from = Some(format.before);
                    }
                    format.before += 1;
                }
                Item::Point if decimal => {
                    return Err(EvalError::Format("multiple decimal points".to_owned()));
                }
                Item::Point => decimal = true,
                Item::Sign if format.has(Item::Sign) => {
                    return Err(EvalError::Format("S twice".to_owned()));
                }
                _ => {}
            }
            format.items.push(item);
            rest = &rest[length..];
        }
        Ok(format)
    }

    fn has(&self, wanted: Item) -> bool {
        self.items.contains(&wanted)
    }
}

/// `to_char(number, format)`; `number` gives the number rounded to so many decimals.
pub(in super::super) fn number_text(
    format: &str,
    number: impl FnOnce(usize) -> Result<NumberText, EvalError>,
) -> Result<String, EvalError> {
    let format = Format::parse(format)?;
    let number = number(format.after)?;
    let overflow = number.whole.len() > format.before;
    let last_shown = if format.fill {
        format.after
    } else {
        number.fraction.trim_end_matches('0').len().max(format.zero_to)
    };
    // Without a zero in the format a number below one shows no zero before the point, if it shows something behind it.
    let hides_zero = number.whole == "0" && format.after > 0 && format.zero_from.is_none() && last_shown > 0;
    let digits_from = if overflow {
        0
    } else if hides_zero {
        format.before
    } else {
        format.before.saturating_sub(number.whole.len())
    };
    let shown_from = format.zero_from.map_or(digits_from, |zero| zero.min(digits_from));
    let has_sign = format.has(Item::Sign) || format.has(Item::Minus) || format.has(Item::SignHere);
    let own_sign = !has_sign;
    let digits: Vec<char> = number.whole.chars().collect();
    let first_digit = format.items.iter().position(|item| matches!(item, Item::Digit(_)));
    let leading_sign = format
        .items
        .iter()
        .position(|item| *item == Item::Sign)
        .is_some_and(|at| first_digit.is_some_and(|first| at < first));
    let sign = if number.negative { '-' } else { '+' };

    let mut out = String::new();
    let (mut position, mut decimals, mut in_fraction, mut signed) = (0, 0, false, false);
    let mut write_sign = |out: &mut String| {
        if signed {
            return;
        }
        signed = true;
        if format.brackets {
            if number.negative {
                out.push('<');
            } else if format.fill {
                out.push(' ');
            }
        } else if leading_sign {
            out.push(sign);
        } else if own_sign {
            if number.negative {
                out.push('-');
            } else if format.fill {
                out.push(' ');
            }
        }
    };
    for item in &format.items {
        match *item {
            Item::Digit(_) if in_fraction => {
                decimals += 1;
                if overflow {
                    out.push('#');
                } else if decimals <= last_shown {
                    out.push(number.fraction.chars().nth(decimals - 1).unwrap_or('0'));
                }
            }
            Item::Digit(_) => {
                if position >= shown_from {
                    write_sign(&mut out);
                    out.push(if overflow {
                        '#'
                    } else if position >= digits_from {
                        digits.get(position - digits_from).copied().unwrap_or('0')
                    } else {
                        '0'
                    });
                } else if format.fill {
                    out.push(' ');
                }
                position += 1;
            }
            Item::Point => {
                in_fraction = true;
                if format.after > 0 || overflow {
                    write_sign(&mut out);
                    out.push('.');
                }
            }
            Item::Group => {
                if position > shown_from {
                    out.push(',');
                } else if format.fill {
                    out.push(' ');
                }
            }
            Item::Sign if leading_sign => {}
            Item::Sign | Item::SignHere => out.push(sign),
            Item::Minus => match (number.negative, format.fill) {
                (true, _) => out.push('-'),
                (false, true) => out.push(' '),
                _ => {}
            },
            Item::Plus => match (number.negative, format.fill) {
                (false, _) => out.push('+'),
                (true, true) => out.push(' '),
                _ => {}
            },
            Item::Literal(c) => out.push(c),
        }
    }
    write_sign(&mut out);
    if format.brackets {
        if number.negative {
            out.push('>');
        } else if format.fill {
            out.push(' ');
        }
    }
    Ok(out)
}
