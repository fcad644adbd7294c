//! SQL's scalar functions. Which of them a name and arguments mean is decided in `typing`.

mod numbers;

use super::{
    EvalError, arithmetic, calendar, cast, datetime, format, interval::Interval, json_path, like::fold,
    regex, text,
};
use tidegate_wire::model::{ColumnType, Value, ValueRef};

/// A function. Its arguments' types are checked when the query is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// `lower(text)`
    Lower,
    /// `upper(text)`
    Upper,
    /// `initcap(text)`
    Initcap,
    /// `length(text)`: code points
    Length,
    /// `octet_length(text or bytea)`
    OctetLength,
    /// `concat(…)` of texts; NULLs are skipped
    Concat,
    /// `concat_ws(separator, …)` of texts; NULLs are skipped
    ConcatWith,
    /// `a || b` of texts or bytes
    Append,
    /// `left(text, n)`; negative drops the last −n
    Left,
    /// `right(text, n)`; negative drops the first −n
    Right,
    /// `substring(text, from[, count])`, from 1
    Substring,
    /// `substring(text from pattern)`
    SubstringMatching,
    /// `trim(text[, characters])`: on both sides
    Trim,
    /// `ltrim(text[, characters])`
    TrimStart,
    /// `rtrim(text[, characters])`
    TrimEnd,
    /// `replace(text, from, to)`
    Replace,
    /// `translate(text, from, to)`
    Translate,
    /// `strpos(text, part)`: code points from 1, 0 when absent
    Position,
    /// `starts_with(text, prefix)`
    StartsWith,
    /// `lpad(text, length[, fill])`
    PadStart,
    /// `rpad(text, length[, fill])`
    PadEnd,
    /// `split_part(text, delimiter, n)`
    SplitPart,
    /// `repeat(text, n)`
    Repeat,
    /// `reverse(text)`
    Reverse,
    /// `ascii(text)`
    Ascii,
    /// `chr(code point)`
    Chr,
    /// `md5(text or bytea)`
    Md5,
    /// A LIKE pattern with another escape character, as one with `\`
    LikeEscape,
    /// `abs(number)`
    Abs,
    /// `-number`
    Negate,
    /// `sign(number)`
    Sign,
    /// `round(number[, places])`
    Round,
    /// `floor(number)`
    Floor,
    /// `ceil(number)`
    Ceil,
    /// `trunc(number[, places])`
    Trunc,
    /// `div(numeric, numeric)`: the whole quotient
    WholeQuotient,
    /// `sqrt(number)`
    Sqrt,
    /// `cbrt(float8)`
    CubeRoot,
    /// `exp(number)`
    Exp,
    /// `ln(number)`
    Ln,
    /// `log(number)` to base 10, `log(base, number)`
    Log,
    /// `power(number, number)`
    Power,
    /// An integer that must fit 32 bits
    Int4,
    /// A numeric as `numeric(precision, scale)`, which are the other arguments
    Precision,
    /// `greatest(…)`; NULLs are skipped
    Greatest,
    /// `least(…)`; NULLs are skipped
    Least,
    /// `date_trunc(part, timestamptz)`
    TruncateMoment,
    /// `date_trunc(part, interval)`
    TruncateInterval,
    /// `extract(part from date)`
    ExtractDate(datetime::Part),
    /// `extract(part from timestamptz)`
    ExtractMoment(datetime::Part),
    /// `extract(part from interval)`
    ExtractInterval(datetime::Part),
    /// `date_part(part, timestamptz)`
    PartOfMoment,
    /// `date_part(part, interval)`
    PartOfInterval,
    /// `timestamptz + interval`
    AddInterval,
    /// `timestamptz - interval`
    SubtractInterval,
    /// `timestamptz - timestamptz`, an interval
    Elapsed,
    /// `date + days`
    AddDays,
    /// `date - days`
    SubtractDays,
    /// `date - date` in days
    DaysBetween,
    /// `interval + interval`
    AddIntervals,
    /// `interval - interval`
    SubtractIntervals,
    /// `-interval`
    NegateInterval,
    /// `interval * float8`
    MultiplyInterval,
    /// `interval / float8`
    DivideInterval,
    /// What an interval compares by
    IntervalOrder,
    /// An interval's text
    IntervalText,
    /// `make_date(year, month, day)`
    MakeDate,
    /// `to_timestamp(seconds)`
    MomentOfEpoch,
    /// `to_timestamp(text, format)`
    ParseMoment,
    /// `to_date(text, format)`
    ParseDate,
    /// `to_char(timestamptz, format)`
    MomentText,
    /// `to_char(number, format)`
    NumberText,
    /// `json -> key` or index
    JsonMember,
    /// `json ->> key` or index
    JsonMemberText,
    /// `json #> path`
    JsonPath,
    /// `json #>> path`
    JsonPathText,
    /// `json ? key`
    JsonHasKey,
    /// `json @> json`
    JsonContains,
    /// `jsonb_array_length(json)`
    JsonLength,
    /// `jsonb_typeof(json)`
    JsonKind,
}

impl Function {
    /// Whether NULL in gives NULL out.
    #[must_use]
    pub fn is_strict(self) -> bool {
        !matches!(self, Self::Concat | Self::ConcatWith | Self::Greatest | Self::Least)
    }

    /// Computes the function. But for `concat`, `concat_ws`, `greatest` and `least`, NULL in gives NULL out.
    ///
    /// # Errors
    /// A result outside its type's range, or an argument outside the function's domain.
    pub fn call(self, arguments: &[ValueRef<'_>]) -> Result<Value, EvalError> {
        match (self, arguments) {
            (Self::Concat, texts) => {
                let mut out = String::new();
                texts.iter().for_each(|value| push_text(*value, &mut out));
                return Ok(Value::Text(out.into()));
            }
            (Self::ConcatWith, [ValueRef::Text(separator), texts @ ..]) => {
                let (mut out, mut first) = (String::new(), true);
                for value in texts.iter().filter(|value| !value.is_null()) {
                    if !first {
                        out.push_str(separator);
                    }
                    first = false;
                    push_text(*value, &mut out);
                }
                return Ok(Value::Text(out.into()));
            }
            (Self::Greatest | Self::Least, values) => {
                let present = values.iter().filter(|value| !value.is_null());
                // Of equal values the first counts.
                let chosen = present.reduce(|chosen, value| {
                    let order = value.compare(*chosen);
                    let better = if self == Self::Greatest { order.is_gt() } else { order.is_lt() };
                    if better { value } else { chosen }
                });
                return Ok(chosen.map_or(Value::Null, |value| value.to_value()));
            }
            _ => {}
        }
        if arguments.iter().any(|value| value.is_null()) {
            return Ok(Value::Null);
        }
        let computed = match self.call_of_text(arguments)? {
            Some(value) => Some(value),
            None => match self.call_of_moments(arguments)? {
                Some(value) => Some(value),
                None => self.call_of_numbers(arguments)?,
            },
        };
        debug_assert!(computed.is_some(), "argument types are checked when a query is registered: {self:?}");
        Ok(computed.unwrap_or(Value::Null))
    }

    /// Functions of texts, bytes and documents.
    fn call_of_text(self, arguments: &[ValueRef<'_>]) -> Result<Option<Value>, EvalError> {
        use ValueRef::{Bytea, Int8, Json, Text};
        Ok(Some(match (self, arguments) {
            (Self::Lower, [Text(t)]) => Value::Text(t.chars().map(fold).collect()),
            (Self::Upper, [Text(t)]) => Value::Text(t.chars().map(text::raise).collect()),
            (Self::Initcap, [Text(t)]) => Value::Text(text::initcap(t)),
            (Self::Length, [Text(t)]) => Value::Int8(t.chars().count() as i64),
            (Self::OctetLength, [Text(t)]) => Value::Int8(t.len() as i64),
            (Self::OctetLength, [Bytea(b)]) => Value::Int8(b.len() as i64),
            (Self::Append, [Text(a), Text(b)]) => Value::Text(compact_str::format_compact!("{a}{b}")),
            (Self::Append, [Bytea(a), Bytea(b)]) => Bytea(&[*a, *b].concat()).to_value(),
            (Self::Left, [Text(t), Int8(n)]) => Value::Text(text::left(t, *n)),
            (Self::Right, [Text(t), Int8(n)]) => Value::Text(text::right(t, *n)),
            (Self::Substring, [Text(t), Int8(from)]) => Value::Text(text::substring(t, *from, None)?),
            (Self::Substring, [Text(t), Int8(from), Int8(count)]) => {
                Value::Text(text::substring(t, *from, Some(*count))?)
            }
            (Self::SubstringMatching, [Text(t), Text(pattern)]) => {
                regex::substring(t, pattern)?.map_or(Value::Null, |found| Value::Text(found.into()))
            }
            (Self::Trim | Self::TrimStart | Self::TrimEnd, [Text(t), characters @ ..]) => {
                let characters = match characters {
                    [Text(characters)] => characters,
                    _ => " ",
                };
                let matched = |c: char| characters.contains(c);
                let mut rest = *t;
                if self != Self::TrimEnd {
                    rest = rest.trim_start_matches(matched);
                }
                if self != Self::TrimStart {
                    rest = rest.trim_end_matches(matched);
                }
                Value::Text(rest.into())
            }
            (Self::Replace, [Text(t), Text(from), Text(to)]) => Value::Text(text::replace(t, from, to)?),
            (Self::Translate, [Text(t), Text(from), Text(to)]) => Value::Text(text::translate(t, from, to)),
            (Self::Position, [Text(t), Text(part)]) => Value::Int8(text::position(t, part)),
            (Self::StartsWith, [Text(t), Text(prefix)]) => Value::Bool(t.starts_with(prefix)),
            (Self::PadStart | Self::PadEnd, [Text(t), Int8(length), fill @ ..]) => {
                let fill = match fill {
                    [Text(fill)] => fill,
                    _ => " ",
                };
                Value::Text(text::pad(t, *length, fill, self == Self::PadEnd)?)
            }
            (Self::SplitPart, [Text(t), Text(delimiter), Int8(part)]) => {
                Value::Text(text::split_part(t, delimiter, *part)?)
            }
            (Self::Repeat, [Text(t), Int8(count)]) => Value::Text(text::repeat(t, *count)?),
            (Self::Reverse, [Text(t)]) => Value::Text(t.chars().rev().collect()),
            (Self::Ascii, [Text(t)]) => Value::Int8(text::ascii(t)),
            (Self::Chr, [Int8(code)]) => text::chr(*code)?,
            (Self::Md5, [Text(t)]) => Value::Text(text::md5(t.as_bytes())),
            (Self::Md5, [Bytea(b)]) => Value::Text(text::md5(b)),
            (Self::LikeEscape, [Text(pattern), Text(escape)]) => {
                Value::Text(text::like_escape(pattern, escape)?)
            }
            (Self::JsonMember | Self::JsonMemberText, [Json(json), Text(key)]) => {
                json_path::member(json, key, self == Self::JsonMemberText)?
            }
            (Self::JsonMember | Self::JsonMemberText, [Json(json), Int8(index)]) => {
                json_path::item(json, *index, self == Self::JsonMemberText)?
            }
            (Self::JsonPath | Self::JsonPathText, [Json(json), Text(path)]) => {
                json_path::at_path(json, path, self == Self::JsonPathText)?
            }
            (Self::JsonHasKey, [Json(json), Text(key)]) => Value::Bool(json_path::has_key(json, key)),
            (Self::JsonContains, [Json(outer), Json(inner)]) => {
                Value::Bool(json_path::contains(outer, inner))
            }
            (Self::JsonLength, [Json(json)]) => json_path::array_length(json)?,
            (Self::JsonKind, [Json(json)]) => json_path::kind(json),
            _ => return Ok(None),
        }))
    }

    /// Functions of dates, moments and intervals.
    fn call_of_moments(self, arguments: &[ValueRef<'_>]) -> Result<Option<Value>, EvalError> {
        use ValueRef::{Bytea, Date, Float8, Int8, Text, Timestamptz};
        let interval = |value: &ValueRef<'_>| Interval::from_value(*value);
        Ok(Some(match (self, arguments) {
            (Self::TruncateMoment, [Text(part), Timestamptz(t)]) => {
                let part = datetime::part_of(part, "timestamp with time zone")?;
                Value::Timestamptz(datetime::truncate_moment(part, *t)?)
            }
            (Self::TruncateInterval, [Text(part), value]) => {
                let part = datetime::part_of(part, "interval")?;
                datetime::truncate_interval(part, interval(value))?.to_value()
            }
            (Self::ExtractDate(part), [Date(d)]) => datetime::extract_date(part, *d)?,
            (Self::ExtractMoment(part), [Timestamptz(t)]) => datetime::extract_moment(part, *t)?,
            (Self::ExtractInterval(part), [value]) => datetime::extract_interval(part, interval(value))?,
            (Self::PartOfMoment, [Text(part), Timestamptz(t)]) => {
                let part = datetime::part_of(part, "timestamp with time zone")?;
                to_float8(datetime::extract_moment(part, *t)?)?
            }
            (Self::PartOfMoment, [Text(part), Date(d)]) => {
                match datetime::part_of(part, "timestamp without time zone")? {
                    datetime::Part::TimeZone => {
                        return Err(EvalError::Unit {
                            unit: (*part).to_owned(),
                            ty: "timestamp without time zone",
                        });
                    }
                    part => to_float8(datetime::extract_moment(part, calendar::midnight(*d)?)?)?,
                }
            }
            (Self::PartOfInterval, [Text(part), value]) => {
                let part = datetime::part_of(part, "interval")?;
                to_float8(datetime::extract_interval(part, interval(value))?)?
            }
            (Self::AddInterval, [Timestamptz(t), value]) => {
                Value::Timestamptz(datetime::add_interval(*t, interval(value))?)
            }
            (Self::SubtractInterval, [Timestamptz(t), value]) => {
                Value::Timestamptz(datetime::add_interval(*t, interval(value).negate()?)?)
            }
            (Self::Elapsed, [Timestamptz(to), Timestamptz(from)]) => Interval::between(*from, *to).to_value(),
            (Self::AddDays, [Date(d), Int8(days)]) => {
                Value::Date(calendar::date(i64::from(*d).saturating_add(*days))?)
            }
            (Self::SubtractDays, [Date(d), Int8(days)]) => {
                Value::Date(calendar::date(i64::from(*d).saturating_sub(*days))?)
            }
            (Self::DaysBetween, [Date(a), Date(b)]) => Value::Int8(i64::from(*a) - i64::from(*b)),
            (Self::AddIntervals, [a, b]) => interval(a).plus(interval(b))?.to_value(),
            (Self::SubtractIntervals, [a, b]) => interval(a).plus(interval(b).negate()?)?.to_value(),
            (Self::NegateInterval, [value]) => interval(value).negate()?.to_value(),
            (Self::MultiplyInterval, [value @ Bytea(_), Float8(factor)]) => {
                interval(value).multiply(*factor)?.to_value()
            }
            (Self::DivideInterval, [value @ Bytea(_), Float8(divisor)]) => {
                interval(value).divide(*divisor)?.to_value()
            }
            (Self::IntervalOrder, [value]) => interval(value).order(),
            (Self::IntervalText, [value]) => Value::Text(cast::interval_text(*value).into()),
            (Self::MakeDate, [Int8(year), Int8(month), Int8(day)]) => {
                Value::Date(datetime::make_date(*year, *month, *day)?)
            }
            (Self::MomentOfEpoch, [Float8(seconds)]) => {
                Value::Timestamptz(datetime::moment_of_epoch(*seconds)?)
            }
            (Self::ParseMoment, [Text(t), Text(format)]) => {
                Value::Timestamptz(format::parse_moment(t, format)?)
            }
            (Self::ParseDate, [Text(t), Text(format)]) => cast::date_of(format::parse_moment(t, format)?)?,
            (Self::MomentText, [_, Text("")]) => Value::Null,
            (Self::MomentText, [Timestamptz(t), Text(format)]) => {
                Value::Text(format::moment_text(*t, format)?.into())
            }
            _ => return Ok(None),
        }))
    }
}

fn to_float8(value: Value) -> Result<Value, EvalError> {
    arithmetic::convert(value.as_ref(), ColumnType::Float8)
}

/// As `concat` writes it, which says `t` for true.
fn push_text(value: ValueRef<'_>, out: &mut String) {
    match value {
        ValueRef::Bool(truth) => out.push(if truth { 't' } else { 'f' }),
        ValueRef::Text(text) => out.push_str(text),
        value => out.push_str(&cast::text_of(value)),
    }
}
