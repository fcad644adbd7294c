//! Scalar functions: which one a name and arguments mean.

use super::{
    BOOL, BYTEA, DATE, FLOAT8, INT8, JSON, NUMERIC, Operand, TEXT, TIMESTAMPTZ, Type, Typed, TypingError,
    called, fold, operator, unify,
};
use crate::expr::{Function, Scalar, datetime::Part};
use Type::{Int4, Interval};
use tidegate_wire::model::Value;

/// A function of a name with the types it takes and gives.
type Overload = (&'static str, &'static [Type], Type, Function);

/// All functions whose arguments have fixed types. Where PostgreSQL's integer arguments are of 32 bits, those here are of
/// 64, as all integer columns are.
const OVERLOADS: &[Overload] = &[
    ("lower", &[TEXT], TEXT, Function::Lower),
    ("upper", &[TEXT], TEXT, Function::Upper),
    ("initcap", &[TEXT], TEXT, Function::Initcap),
    ("length", &[TEXT], Int4, Function::Length),
    ("length", &[BYTEA], Int4, Function::OctetLength),
    ("char_length", &[TEXT], Int4, Function::Length),
    ("character_length", &[TEXT], Int4, Function::Length),
    ("octet_length", &[TEXT], Int4, Function::OctetLength),
    ("octet_length", &[BYTEA], Int4, Function::OctetLength),
    ("left", &[TEXT, INT8], TEXT, Function::Left),
    ("right", &[TEXT, INT8], TEXT, Function::Right),
    ("substring", &[TEXT, INT8], TEXT, Function::Substring),
    ("substring", &[TEXT, INT8, INT8], TEXT, Function::Substring),
    ("substring", &[TEXT, TEXT], TEXT, Function::SubstringMatching),
    ("substr", &[TEXT, INT8], TEXT, Function::Substring),
    ("substr", &[TEXT, INT8, INT8], TEXT, Function::Substring),
    ("trim", &[TEXT], TEXT, Function::Trim),
    ("trim", &[TEXT, TEXT], TEXT, Function::Trim),
    ("btrim", &[TEXT], TEXT, Function::Trim),
    ("btrim", &[TEXT, TEXT], TEXT, Function::Trim),
    ("ltrim", &[TEXT], TEXT, Function::TrimStart),
    ("ltrim", &[TEXT, TEXT], TEXT, Function::TrimStart),
    ("rtrim", &[TEXT], TEXT, Function::TrimEnd),
    ("rtrim", &[TEXT, TEXT], TEXT, Function::TrimEnd),
    ("replace", &[TEXT, TEXT, TEXT], TEXT, Function::Replace),
    ("translate", &[TEXT, TEXT, TEXT], TEXT, Function::Translate),
    ("strpos", &[TEXT, TEXT], Int4, Function::Position),
    ("position", &[TEXT, TEXT], Int4, Function::Position),
    ("starts_with", &[TEXT, TEXT], BOOL, Function::StartsWith),
    ("lpad", &[TEXT, INT8], TEXT, Function::PadStart),
    ("lpad", &[TEXT, INT8, TEXT], TEXT, Function::PadStart),
    ("rpad", &[TEXT, INT8], TEXT, Function::PadEnd),
    ("rpad", &[TEXT, INT8, TEXT], TEXT, Function::PadEnd),
    ("split_part", &[TEXT, TEXT, INT8], TEXT, Function::SplitPart),
    ("repeat", &[TEXT, INT8], TEXT, Function::Repeat),
    ("reverse", &[TEXT], TEXT, Function::Reverse),
    ("ascii", &[TEXT], Int4, Function::Ascii),
    ("chr", &[INT8], TEXT, Function::Chr),
    ("md5", &[TEXT], TEXT, Function::Md5),
    ("md5", &[BYTEA], TEXT, Function::Md5),
    ("abs", &[FLOAT8], FLOAT8, Function::Abs),
    ("abs", &[NUMERIC], NUMERIC, Function::Abs),
    ("abs", &[INT8], INT8, Function::Abs),
    ("abs", &[Int4], Int4, Function::Abs),
    ("sign", &[FLOAT8], FLOAT8, Function::Sign),
    ("sign", &[NUMERIC], NUMERIC, Function::Sign),
    ("round", &[FLOAT8], FLOAT8, Function::Round),
    ("round", &[NUMERIC], NUMERIC, Function::Round),
    ("round", &[NUMERIC, INT8], NUMERIC, Function::Round),
    ("floor", &[FLOAT8], FLOAT8, Function::Floor),
    ("floor", &[NUMERIC], NUMERIC, Function::Floor),
    ("ceil", &[FLOAT8], FLOAT8, Function::Ceil),
    ("ceil", &[NUMERIC], NUMERIC, Function::Ceil),
    ("ceiling", &[FLOAT8], FLOAT8, Function::Ceil),
    ("ceiling", &[NUMERIC], NUMERIC, Function::Ceil),
    ("trunc", &[FLOAT8], FLOAT8, Function::Trunc),
    ("trunc", &[NUMERIC], NUMERIC, Function::Trunc),
    ("trunc", &[NUMERIC, INT8], NUMERIC, Function::Trunc),
    ("div", &[NUMERIC, NUMERIC], NUMERIC, Function::WholeQuotient),
    ("power", &[FLOAT8, FLOAT8], FLOAT8, Function::Power),
    ("power", &[NUMERIC, NUMERIC], NUMERIC, Function::Power),
    ("pow", &[FLOAT8, FLOAT8], FLOAT8, Function::Power),
    ("pow", &[NUMERIC, NUMERIC], NUMERIC, Function::Power),
    ("sqrt", &[FLOAT8], FLOAT8, Function::Sqrt),
    ("sqrt", &[NUMERIC], NUMERIC, Function::Sqrt),
    ("cbrt", &[FLOAT8], FLOAT8, Function::CubeRoot),
    ("exp", &[FLOAT8], FLOAT8, Function::Exp),
    ("exp", &[NUMERIC], NUMERIC, Function::Exp),
    ("ln", &[FLOAT8], FLOAT8, Function::Ln),
    ("ln", &[NUMERIC], NUMERIC, Function::Ln),
    ("log", &[FLOAT8], FLOAT8, Function::Log),
    ("log", &[NUMERIC], NUMERIC, Function::Log),
    ("log", &[NUMERIC, NUMERIC], NUMERIC, Function::Log),
    ("log10", &[FLOAT8], FLOAT8, Function::Log),
    ("log10", &[NUMERIC], NUMERIC, Function::Log),
    ("date_trunc", &[TEXT, TIMESTAMPTZ], TIMESTAMPTZ, Function::TruncateMoment),
    ("date_trunc", &[TEXT, Interval], Interval, Function::TruncateInterval),
    ("date_part", &[TEXT, TIMESTAMPTZ], FLOAT8, Function::PartOfMoment),
    ("date_part", &[TEXT, DATE], FLOAT8, Function::PartOfMoment),
    ("date_part", &[TEXT, Interval], FLOAT8, Function::PartOfInterval),
    ("make_date", &[INT8, INT8, INT8], DATE, Function::MakeDate),
    ("to_timestamp", &[FLOAT8], TIMESTAMPTZ, Function::MomentOfEpoch),
    ("to_timestamp", &[TEXT, TEXT], TIMESTAMPTZ, Function::ParseMoment),
    ("to_date", &[TEXT, TEXT], DATE, Function::ParseDate),
    ("to_char", &[TIMESTAMPTZ, TEXT], TEXT, Function::MomentText),
    ("to_char", &[FLOAT8, TEXT], TEXT, Function::NumberText),
    ("to_char", &[NUMERIC, TEXT], TEXT, Function::NumberText),
    ("to_char", &[INT8, TEXT], TEXT, Function::NumberText),
    ("jsonb_array_length", &[JSON], Int4, Function::JsonLength),
    ("json_array_length", &[JSON], Int4, Function::JsonLength),
    ("jsonb_typeof", &[JSON], TEXT, Function::JsonKind),
    ("json_typeof", &[JSON], TEXT, Function::JsonKind),
];

/// Functions whose value changes without the data, or from row to row.
const VOLATILE: &[&str] = &[
    "now",
    "current_date",
    "current_time",
    "current_timestamp",
    "localtime",
    "localtimestamp",
    "clock_timestamp",
    "statement_timestamp",
    "transaction_timestamp",
    "timeofday",
    "age",
    "random",
    "gen_random_uuid",
    "nextval",
    "setseed",
];

/// Whether a scalar function of the name (lower case) exists.
#[must_use]
pub fn is_function(name: &str) -> bool {
    matches!(name, "coalesce" | "nullif" | "greatest" | "least" | "concat" | "concat_ws" | "mod")
        || OVERLOADS.iter().any(|(own, ..)| *own == name)
}

/// A scalar function's call; the name is in lower case. `position` takes the text first, then the part, as `strpos`.
///
/// # Errors
/// A function that is not supported, or arguments it does not take.
pub fn call(name: &str, arguments: Vec<Operand>) -> Result<Typed, TypingError> {
    if VOLATILE.contains(&name) && !(name == "age" && arguments.len() > 1) {
        return Err(TypingError::Unsupported(format!(
            "{name} is not supported: the answer of a live query may depend on the data alone; pass the value as a \
             parameter"
        )));
    }
    let count = arguments.len();
    let arity =
        |wanted: &str| Err(TypingError::Unsupported(format!("{name} takes {wanted} arguments, not {count}")));
    match name {
        "coalesce" | "greatest" | "least" if count == 0 => return arity("1 or more"),
        "coalesce" => {
            let (scalars, ty) = unify(arguments)?;
            return Ok(Typed { scalar: fold(Scalar::Coalesce(scalars)), ty });
        }
        "greatest" | "least" => {
            let (scalars, ty) = unify(arguments)?;
            if matches!(ty, Interval | JSON) && count > 1 {
                return Err(TypingError::Unsupported(format!("{name} of {ty} is not supported")));
            }
            let function = if name == "greatest" { Function::Greatest } else { Function::Least };
            return Ok(called(function, scalars, ty));
        }
        "nullif" => {
            let Ok([value, other]) = <[Operand; 2]>::try_from(arguments) else { return arity("2") };
            return null_if(value, other);
        }
        "concat" if count == 0 => return arity("1 or more"),
        "concat" => {
            let texts = arguments.into_iter().map(joined).collect();
            return Ok(called(Function::Concat, texts, TEXT));
        }
        "concat_ws" if count < 2 => return arity("2 or more"),
        "concat_ws" => {
            let mut arguments = arguments.into_iter();
            let separator = arguments.next().unwrap_or(Operand::Unknown(None)).settle_as(TEXT)?.scalar;
            let texts = std::iter::once(separator).chain(arguments.map(joined)).collect();
            return Ok(called(Function::ConcatWith, texts, TEXT));
        }
        "mod" => {
            let Ok([value, other]) = <[Operand; 2]>::try_from(arguments) else { return arity("2") };
            return operator::binary("%", value, other);
        }
        _ => {}
    }
    let (_, takes, result, function) = resolve(name, &arguments)?;
    let mut scalars = Vec::with_capacity(count);
    for (argument, ty) in arguments.into_iter().zip(*takes) {
        scalars.push(argument.settle_as(*ty)?.scalar);
    }
    let typed = called(*function, scalars, *result);
    Ok(if (*function, *result) == (Function::Abs, Int4) { operator::within_int4(typed) } else { typed })
}

/// What `concat` writes of an argument.
fn joined(argument: Operand) -> Scalar {
    match argument.settle() {
        Typed { scalar, ty: Interval } => fold(Scalar::Call(Function::IntervalText, vec![scalar])),
        typed => typed.scalar,
    }
}

fn null_if(value: Operand, other: Operand) -> Result<Typed, TypingError> {
    let ty = match (value.ty(), other.ty()) {
        // The result has the first one's type, but where `=` is of one type only, that; integers of any size compare.
        (Some(NUMERIC), Some(FLOAT8)) => FLOAT8,
        (Some(Int4 | INT8), Some(ty @ (NUMERIC | FLOAT8))) => ty,
        (Some(ty), _) | (None, Some(ty)) => ty,
        (None, None) => TEXT,
    };
    let result = value.clone().settle_as(ty)?.scalar;
    let equal = operator::binary("=", value, other)?.condition()?;
    let null = Scalar::Constant(Value::Null);
    Ok(Typed { scalar: fold(Scalar::Case(vec![(equal, null)], Box::new(result))), ty })
}

/// The function that PostgreSQL takes: that which needs the fewest conversions, and of several the one whose arguments
/// become the types it prefers.
fn resolve(name: &str, arguments: &[Operand]) -> Result<&'static Overload, TypingError> {
    let mut best: Option<((usize, usize), &Overload)> = None;
    let mut known = false;
    for overload in OVERLOADS.iter().filter(|overload| overload.0 == name) {
        known = true;
        let takes = overload.1;
        if takes.len() != arguments.len() {
            continue;
        }
        let fits = arguments.iter().zip(takes).all(|(argument, ty)| match argument.ty() {
            None => true,
            Some(own) => own.converts_to(*ty),
        });
        if !fits {
            continue;
        }
        let exact = arguments.iter().zip(takes).filter(|(argument, ty)| argument.ty() == Some(**ty)).count();
        let preferred = arguments
            .iter()
            .zip(takes)
            .filter(|(argument, ty)| argument.ty() != Some(**ty))
            .map(|(argument, ty)| match *ty {
                TEXT if argument.ty().is_none() => 2,
                FLOAT8 | TIMESTAMPTZ | Interval => 1,
                _ => 0,
            })
            .sum();
        if best.is_none_or(|(score, _)| (exact, preferred) > score) {
            best = Some(((exact, preferred), overload));
        }
    }
    if let Some((_, overload)) = best {
        return Ok(overload);
    }
    if !known {
        return Err(TypingError::Unsupported(format!("function {name} is not supported")));
    }
    if !OVERLOADS.iter().any(|(own, takes, ..)| *own == name && takes.len() == arguments.len()) {
        return Err(TypingError::Unsupported(format!("{name} does not take {} arguments", arguments.len())));
    }
    let types: Vec<String> = arguments
        .iter()
        .map(|argument| argument.ty().map_or_else(|| "a literal".to_owned(), |ty| ty.to_string()))
        .collect();
    Err(TypingError::Mismatch(format!("function {name} does not take ({})", types.join(", "))))
}

/// `extract(field from value)`: a numeric.
///
/// # Errors
/// A field that the value's type does not have.
pub fn extract(field: &str, from: Operand) -> Result<Typed, TypingError> {
    let typed = match from.ty() {
        None => from.settle_as(TIMESTAMPTZ)?,
        Some(_) => from.settle(),
    };
    let Some(part) = Part::from_name(field) else {
        return Err(TypingError::Mismatch(format!("unit \"{field}\" not recognized for type {}", typed.ty)));
    };
    let function = match typed.ty {
        DATE => Function::ExtractDate(part),
        TIMESTAMPTZ => Function::ExtractMoment(part),
        Interval => Function::ExtractInterval(part),
        ty => return Err(TypingError::Mismatch(format!("extract does not take {ty}"))),
    };
    Ok(called(function, vec![typed.scalar], NUMERIC))
}
