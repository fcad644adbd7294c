//! Window functions.

use super::{
    Binder,
    aggregate::function_named,
    function::Call,
    parameters::{Meeting, together, whole_number},
    place::{Place, Result, start},
    query::{column, order_item},
    scope::folded,
    select::{Block, Within},
};
use crate::{
    algebra::{Bound, Frame, FrameUnit, Limit, WindowFunction, WindowKind},
    expr::{
        Scalar,
        interval::Interval,
        typing::{self, Operand, Type, Typed, unify},
    },
};
use sqlparser::ast::{
    Expr, OrderByExpr, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType,
};
use std::sync::Arc;
use tidegate_wire::model::{ColumnType, Direction, Numeric, Order, Value, ValueRef};

/// A window with what the ones it builds on say.
#[derive(Clone, Copy)]
struct Window<'q> {
    partition: &'q [Expr],
    order: &'q [OrderByExpr],
    frame: Option<&'q WindowFrame>,
}

impl Binder<'_> {
    /// A call with `over`.
    pub(super) fn window<'q>(
        &mut self,
        call: &Call<'q>,
        over: &'q WindowType,
        block: &mut Block<'q>,
    ) -> Result<Typed> {
        let Call { name, place, .. } = call;
        if block.within != Within::Nothing {
            return place
                .bad(format_args!("{name} over a window stands inside another function's arguments"));
        }
        if !block.clause.has_windows() {
            return place.bad(format_args!("window functions are not allowed in {}", block.clause.name()));
        }
        self.relation(*place)?;
        block.within = Within::Window;
        let window = match over {
            WindowType::NamedWindow(name) => {
                named(block, &folded(name), block.windows.len(), Place::from(name.span))?
            }
            WindowType::WindowSpec(spec) => built(block, spec, block.windows.len(), *place)?,
        };
        let mut partition = Vec::with_capacity(window.partition.len());
        for expr in window.partition {
            let typed = self.operand(expr, block)?.settle();
            partition.push(column(typed, start(expr))?.scalar);
        }
        let (mut order, mut types) = (Vec::new(), Vec::new());
        for item in window.order {
            let (expr, direction) = order_item(item)?;
            let typed = self.operand(expr, block)?.settle();
            types.push(typed.ty);
            order.push((column(typed, start(expr))?.scalar, direction));
        }
        let frame = self.frame(window, &mut order, &types, *place)?;
        let (kind, ty) = self.window_call(call, frame, block)?;
        block.within = Within::Nothing;
        let result = column(Typed { scalar: Scalar::Column(0), ty }, *place)?.ty;
        let function = WindowFunction { kind, ty: result };
        Ok(Typed { scalar: block.steps.window(partition, order, function, *place), ty })
    }

    fn window_call<'q>(
        &mut self,
        call: &Call<'q>,
        frame: Frame,
        block: &mut Block<'q>,
    ) -> Result<(WindowKind, Type)> {
        let Call { name, place, star, arguments, distinct, order, filter } = call;
        if *distinct {
            return place.unsupported("distinct in a window function");
        }
        if !order.is_empty() {
            return place.unsupported("order by in a window function's arguments");
        }
        if function_named(name).is_some() {
            let (aggregate, ty) = self.aggregate_call(call, block)?;
            return Ok((WindowKind::Aggregate(aggregate, frame), ty));
        }
        if filter.is_some() {
            return place.bad("filter is for aggregates");
        }
        if *star {
            return place.bad(format_args!("{name}(*) is not supported"));
        }
        let arity = |wanted: std::ops::RangeInclusive<usize>| {
            if wanted.contains(&arguments.len()) {
                return Ok(());
            }
            place.bad(format_args!("{name} does not take {} arguments", arguments.len()))
        };
        let int8 = Type::Column(ColumnType::Int8);
        Ok(match name.as_str() {
            "row_number" => {
                arity(0..=0)?;
                (WindowKind::RowNumber, int8)
            }
            "rank" => {
                arity(0..=0)?;
                (WindowKind::Rank, int8)
            }
            "dense_rank" => {
                arity(0..=0)?;
                (WindowKind::DenseRank, int8)
            }
            "percent_rank" => {
                arity(0..=0)?;
                (WindowKind::PercentRank, Type::Column(ColumnType::Float8))
            }
            "cume_dist" => {
                arity(0..=0)?;
                (WindowKind::CumeDist, Type::Column(ColumnType::Float8))
            }
            "ntile" => {
                arity(1..=1)?;
                (
                    WindowKind::Ntile(self.at_least_one(arguments[0], "the number of buckets of ntile")?),
                    Type::Int4,
                )
            }
            "nth_value" => {
                arity(2..=2)?;
                let typed = self.operand(arguments[0], block)?.settle();
                let number = self.at_least_one(arguments[1], "the number of nth_value")?;
                (WindowKind::NthValue(typed.scalar, number, frame), typed.ty)
            }
            "first_value" | "last_value" => {
                arity(1..=1)?;
                let typed = self.operand(arguments[0], block)?.settle();
                let ty = typed.ty;
                let kind = if name == "first_value" {
                    WindowKind::FirstValue(typed.scalar, frame)
                } else {
                    WindowKind::LastValue(typed.scalar, frame)
                };
                (kind, ty)
            }
            "lag" | "lead" => {
                arity(1..=3)?;
                self.lag(call, block)?
            }
            _ => return place.unsupported(format_args!("window function {name}")),
        })
    }

    fn lag<'q>(&mut self, call: &Call<'q>, block: &mut Block<'q>) -> Result<(WindowKind, Type)> {
        let Call { name, arguments, .. } = call;
        let offset = match arguments.get(1) {
            None => 1,
            Some(expr) => {
                let what = format!("the offset of {name}");
                let typed = self.constant(expr, &what)?;
                match whole_number(&typed.scalar, &what, start(expr))? {
                    Some(offset) => offset,
                    None => return start(expr).unsupported(format_args!("{what} that is NULL")),
                }
            }
        };
        let mut terms = vec![self.term(arguments[0], block)?];
        let default_place = arguments.get(2).map_or(call.place, |expr| start(expr));
        if let Some(default) = arguments.get(2) {
            terms.push(self.term(default, block)?);
        }
        let mut operands = together(terms, Meeting::Own)?;
        if operands.len() == 1 {
            operands.push(Operand::Unknown(None));
        }
        let (scalars, ty) = unify(operands).map_err(|error| default_place.typing(error))?;
        let mut scalars = scalars.into_iter();
        let (Some(value), Some(Scalar::Constant(default))) = (scalars.next(), scalars.next()) else {
            return default_place.unsupported(format_args!("a default of {name} that is not a constant"));
        };
        let offset = if name == "lead" { offset.checked_neg() } else { Some(offset) };
        let Some(offset) = offset.filter(|offset| i32::try_from(*offset).is_ok()) else {
            return call.place.bad(format_args!("the offset of {name} is out of range"));
        };
        Ok((WindowKind::Lag { value, offset, default }, ty))
    }

    /// A constant that is at least 1.
    fn at_least_one(&mut self, expr: &Expr, what: &str) -> Result<u64> {
        let typed = self.constant(expr, what)?;
        match whole_number(&typed.scalar, what, start(expr))?.map(u64::try_from) {
            Some(Ok(count @ 1..)) => Ok(count),
            Some(_) => start(expr).bad(format_args!("{what} is greater than 0")),
            None => start(expr).unsupported(format_args!("{what} that is NULL")),
        }
    }

    /// A window's frame. Where a range has an offset, dates are ordered as the moments that they are compared as.
    fn frame(
        &mut self,
        window: Window<'_>,
        order: &mut [(Scalar, Order)],
        types: &[Type],
        place: Place,
    ) -> Result<Frame> {
        let Some(WindowFrame { units, start_bound, end_bound }) = window.frame else {
            return Ok(Frame { unit: FrameUnit::Range, start: Bound::Unbounded, end: Bound::Current });
        };
        let unit = match units {
            WindowFrameUnits::Rows => FrameUnit::Rows,
            WindowFrameUnits::Range => FrameUnit::Range,
            WindowFrameUnits::Groups if window.order.is_empty() => {
                return place.bad("a frame of groups needs an order by");
            }
            WindowFrameUnits::Groups => FrameUnit::Groups,
        };
        let end_bound = end_bound.as_ref().unwrap_or(&WindowFrameBound::CurrentRow);
        use WindowFrameBound::{CurrentRow, Following, Preceding};
        match (start_bound, end_bound) {
            (Following(None), _) => return place.bad("a frame does not start at unbounded following"),
            (_, Preceding(None)) => return place.bad("a frame does not end at unbounded preceding"),
            (CurrentRow, Preceding(_)) | (Following(_), Preceding(_) | CurrentRow) => {
                return place.bad("a frame ends before it starts");
            }
            _ => {}
        }
        let mut bound = |bound: &WindowFrameBound| match bound {
            Preceding(Some(offset)) | Following(Some(offset)) if unit == FrameUnit::Range => {
                let ([order], [ty]) = (&mut *order, types) else {
                    return place.bad("a range frame with an offset needs an order by of one expression");
                };
                self.limit(offset, matches!(bound, Preceding(_)), order, *ty, place)
            }
            bound => self.bound(bound, place),
        };
        Ok(Frame { unit, start: bound(start_bound)?, end: bound(end_bound)? })
    }

    /// How far a range goes from the current row's value in the order.
    fn limit(
        &mut self,
        offset: &Expr,
        preceding: bool,
        order: &mut (Scalar, Order),
        ty: Type,
        place: Place,
    ) -> Result<Bound> {
        let what = "the offset of a frame";
        let column = match ty {
            Type::Int4 => ColumnType::Int8,
            Type::Column(ColumnType::Date) => ColumnType::Timestamptz,
            Type::Column(column) => column,
            Type::Interval => return place.unsupported("a range frame with an offset over an interval"),
        };
        let wanted = match column {
            ColumnType::Int8 | ColumnType::Float8 | ColumnType::Numeric => Type::Column(column),
            ColumnType::Timestamptz => Type::Interval,
            _ => return place.unsupported(format_args!("a range frame with an offset over {ty}")),
        };
        let operand = self.constant_operand(offset)?;
        let offset_place = start(offset);
        let offset = operand.settle_as(wanted).map_err(|error| offset_place.typing(error))?;
        let Scalar::Constant(distance) = &offset.scalar else {
            return offset_place.unsupported(format_args!("{what} that is not a constant or parameter"));
        };
        let is_negative = match (wanted, distance) {
            (_, Value::Null) => true,
            (Type::Interval, distance) => Interval::from_value(distance.as_ref()).span() < 0,
            (_, distance) => distance.as_ref().compare(ValueRef::Int8(0)).is_lt(),
        };
        if is_negative {
            return offset_place.bad(format_args!("{what} is not negative or NULL"));
        }
        if ty == Type::Column(ColumnType::Date)
            && !matches!(order.0, Scalar::Convert(Type::Column(ColumnType::Timestamptz), _))
        {
            let date = std::mem::replace(&mut order.0, Scalar::Constant(Value::Null));
            order.0 = Scalar::Convert(Type::Column(ColumnType::Timestamptz), Box::new(date));
        }
        let here = Operand::typed(order.0.clone(), Type::Column(column));
        let is_below = preceding == (order.1.direction == Direction::Asc);
        let value = typing::binary(if is_below { "-" } else { "+" }, here, Operand::Typed(offset))
            .map_err(|error| offset_place.typing(error))?;
        let extreme = match (column, is_below) {
            (ColumnType::Float8, true) => Value::Float8(f64::NEG_INFINITY),
            (ColumnType::Float8, false) => Value::Float8(f64::INFINITY),
            (ColumnType::Numeric, true) => Value::Numeric(Arc::new(Numeric::NegativeInfinity)),
            (ColumnType::Numeric, false) => Value::Numeric(Arc::new(Numeric::Infinity)),
            (ColumnType::Timestamptz, true) => Value::Timestamptz(i64::MIN),
            (ColumnType::Timestamptz, false) => Value::Timestamptz(i64::MAX),
            (_, true) => Value::Int8(i64::MIN),
            (_, false) => Value::Int8(i64::MAX),
        };
        Ok(Bound::Limit(Box::new(Limit {
            value: value.scalar,
            extreme,
            is_behind: !preceding,
            order: order.1,
        })))
    }

    /// A bound that counts rows or groups.
    fn bound(&mut self, bound: &WindowFrameBound, place: Place) -> Result<Bound> {
        let (count, preceding) = match bound {
            WindowFrameBound::CurrentRow => return Ok(Bound::Current),
            WindowFrameBound::Preceding(None) | WindowFrameBound::Following(None) => {
                return Ok(Bound::Unbounded);
            }
            WindowFrameBound::Preceding(Some(count)) => (count, true),
            WindowFrameBound::Following(Some(count)) => (count, false),
        };
        let what = "the offset of a frame";
        let typed = self.constant(count, what)?;
        let count = whole_number(&typed.scalar, what, start(count))?;
        let Some(count) = count.and_then(|count| u64::try_from(count).ok()) else {
            return place.bad("the offset of a frame is not negative or NULL");
        };
        Ok(if preceding { Bound::Preceding(count) } else { Bound::Following(count) })
    }
}

/// A window of the window clause, among the first `known`.
fn named<'q>(block: &Block<'q>, name: &str, known: usize, place: Place) -> Result<Window<'q>> {
    let found = block.windows[..known].iter().position(|(other, _)| other == name);
    match found {
        Some(index) => built(block, block.windows[index].1, index, place),
        None => place.bad(format_args!("unknown window {name}")),
    }
}

/// A window's definition, with what it takes from the one it names.
fn built<'q>(block: &Block<'q>, spec: &'q WindowSpec, known: usize, place: Place) -> Result<Window<'q>> {
    let WindowSpec { window_name, partition_by, order_by, window_frame } = spec;
    let own = Window { partition: partition_by, order: order_by, frame: window_frame.as_ref() };
    let Some(name) = window_name else { return Ok(own) };
    let base = named(block, &folded(name), known, place)?;
    if !own.partition.is_empty() {
        return place.bad(format_args!("a window that builds on {} has no partition by", folded(name)));
    }
    if !own.order.is_empty() && !base.order.is_empty() {
        return place.bad(format_args!("window {} has an order by already", folded(name)));
    }
    if base.frame.is_some() {
        return place.bad(format_args!("window {} has a frame and is not built on", folded(name)));
    }
    let order = if own.order.is_empty() { base.order } else { own.order };
    Ok(Window { partition: base.partition, order, frame: own.frame })
}
