//! Window functions.

use super::{
    Binder,
    aggregate::function_named,
    function::Call,
    parameters::{Meeting, together, whole_number},
    place::{Place, Result, start},
    query::column,
    scope::folded,
    select::{Block, Within},
};
use crate::{
    algebra::{Bound, Frame, FrameUnit, WindowFunction, WindowKind},
    expr::{
        Scalar,
        typing::{Operand, Type, Typed, unify},
    },
};
use sqlparser::ast::{
    Expr, OrderByExpr, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType,
};
use tidegate_wire::model::ColumnType;

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
        let order = self.order(window.order, block)?;
        let frame = self.frame(window, *place)?;
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

    fn frame(&mut self, window: Window<'_>, place: Place) -> Result<Frame> {
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
        let start = match start_bound {
            WindowFrameBound::Following(None) => {
                return place.bad("a frame does not start at unbounded following");
            }
            bound => self.bound(bound, unit, place)?,
        };
        let end = match end_bound {
            None => Bound::Current,
            Some(WindowFrameBound::Preceding(None)) => {
                return place.bad("a frame does not end at unbounded preceding");
            }
            Some(bound) => self.bound(bound, unit, place)?,
        };
        let backwards = matches!(
            (start, end),
            (Bound::Current, Bound::Preceding(_))
                | (Bound::Following(_), Bound::Preceding(_) | Bound::Current)
        );
        if backwards {
            return place.bad("a frame ends before it starts");
        }
        Ok(Frame { unit, start, end })
    }

    fn bound(&mut self, bound: &WindowFrameBound, unit: FrameUnit, place: Place) -> Result<Bound> {
        let (count, preceding) = match bound {
            WindowFrameBound::CurrentRow => return Ok(Bound::Current),
            WindowFrameBound::Preceding(None) | WindowFrameBound::Following(None) => {
                return Ok(Bound::Unbounded);
            }
            WindowFrameBound::Preceding(Some(count)) => (count, true),
            WindowFrameBound::Following(Some(count)) => (count, false),
        };
        if unit == FrameUnit::Range {
            return place.unsupported("a range frame with an offset");
        }
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
