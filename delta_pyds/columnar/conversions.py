"""CAST and TRY_CAST between atomic types over Arrow arrays, with Spark's semantics in and out of ANSI mode."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.arithmetic import saturating_cast, wrapped
from delta_pyds.columnar.dates import format_wall, wall_of
from delta_pyds.columnar.decimals import fit_decimal
from delta_pyds.columnar.kernel import Kernel, any_true, by_value, floor_divide, null_where
from delta_pyds.columnar.parsing import parse_texts
from delta_pyds.columnar.rows import Rows
from delta_pyds.columnar.values import cast_total, value_type
from delta_pyds.columnar.zones import start_of_day, wall_to_instant
from delta_pyds.errors import ExpressionError
from delta_pyds.expr.nodes import Call, type_of
from delta_pyds.expr.types import is_floating, is_integral
from delta_pyds.protocol.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    display,
)
from delta_pyds.protocol.temporal import DAY_MICROS, show_date

_DATETIME = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_OVERFLOWS = ("CAST_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE")


def _cast(call: Call, args: list[Any], rows: Rows) -> Any:
    """``call.options``: the column in which the value is stored, if any."""
    if not call.options:
        return _converted(call, args, rows)
    try:
        return _converted(call, args, rows)
    except ExpressionError as e:
        if e.code.split(".")[0] not in _OVERFLOWS:
            raise
        raise ExpressionError(
            f"the value does not fit the column '{call.options[0]}': {e.message}",
            code="DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
            column=str(call.options[0]),
        ) from None


def _converted(call: Call, args: list[Any], rows: Rows) -> Any:
    values, source, target = args[0], type_of(call.args[0]), call.data_type
    if source == STRING:
        return parse_texts(call, values, rows)
    if target == STRING:
        return _to_text(call, values, source)
    if source in _DATETIME and target in _DATETIME:
        return _moved(call, values, source, rows)
    if source == TIMESTAMP:
        seconds = floor_divide(values.cast(pa.int64()), 1_000_000)
        # a value out of range is null even without ANSI mode
        return _narrowed(call, seconds, rows, wrap=False)
    if target == TIMESTAMP:
        return _from_seconds(values)
    if source == BOOLEAN:
        numbers = values.cast(pa.int8())
        return (
            fit_decimal(_whole_decimal(numbers), _fitting(call), rows)
            if isinstance(target, DecimalType)
            else numbers.cast(value_type(target))
        )
    if target == BOOLEAN:
        return pc.not_equal(values, pa.scalar(Decimal(0) if isinstance(source, DecimalType) else 0, values.type))
    return _number(call, values, source, rows)


def _fitting(call: Call) -> Call:
    """The call, with nulls instead of errors for a TRY_CAST. It follows ANSI mode in all else."""
    return replace(call, ansi=False) if call.function == "try_cast" else call


def _fail(call: Call, mask: Any, values: Any, rows: Rows) -> Any:
    """Null where the mask is true; in ANSI mode an error."""
    if not any_true(mask):
        return values
    if call.ansi and call.function == "cast":
        source, target = display(type_of(call.args[0])).upper(), display(call.data_type).upper()
        rows.fail(mask, "CAST_OVERFLOW", f"a value of type {source} is out of range for {target}", values)
    return null_where(mask, values)


def _number(call: Call, values: Any, source: DataType, rows: Rows) -> Any:
    target = call.data_type
    if isinstance(target, DecimalType):
        return fit_decimal(_whole_decimal(values) if is_integral(source) else values, _fitting(call), rows)
    if is_floating(target):
        return cast_total(values, source, target)
    if is_integral(source):
        return _narrowed(call, values, rows)
    if isinstance(source, DecimalType):
        return _from_decimal(call, values, rows)
    return _from_floating(call, values, rows)


def _whole_decimal(values: Any) -> Any:
    return values.cast(pa.int64()).cast(pa.decimal128(19, 0))


def _limit(data_type: pa.DataType) -> int:
    return 1 << (int(data_type.bit_width) - 1)


def _strict(call: Call) -> bool:
    return call.ansi or call.function == "try_cast"


def _narrowed(call: Call, values: Any, rows: Rows, *, wrap: bool = True) -> Any:
    to = value_type(call.data_type)
    if to.bit_width < values.type.bit_width and (_strict(call) or not wrap):
        limit = _limit(to)
        over = pc.or_(
            pc.less(values, pa.scalar(-limit, values.type)), pc.greater(values, pa.scalar(limit - 1, values.type))
        )
        values = _fail(call, over, values, rows)
    return values.cast(to, safe=False)


def _from_floating(call: Call, values: Any, rows: Rows) -> Any:
    to = value_type(call.data_type)
    values = values.cast(pa.float64())
    if not _strict(call):
        through = to if to.bit_width >= 32 else pa.int32()
        return saturating_cast(values, through).cast(to, safe=False)
    limit = float(_limit(to))
    # Spark accepts 2^63 itself, because it compares with the range in doubles
    high = pc.greater(values, limit) if to.bit_width == 64 else pc.greater_equal(values, limit)
    low = pc.less(values, -limit) if to.bit_width == 64 else pc.less_equal(values, -limit - 1)
    over = pc.or_(pc.or_(high, low), pc.is_nan(values))
    return saturating_cast(_fail(call, over, values, rows), to)


def _from_decimal(call: Call, values: Any, rows: Rows) -> Any:
    to = value_type(call.data_type)
    whole = pc.trunc(values) if values.type.scale > 0 else values
    limit = _limit(to)
    low, high = (pa.scalar(Decimal(n), pa.decimal256(38, 0)) for n in (-limit, limit - 1))
    over = pc.or_(pc.less(whole, low), pc.greater(whole, high)) if to.bit_width == 64 or _strict(call) else None
    if over is not None and any_true(over):
        if not _strict(call):
            return by_value(whole, lambda value: wrapped(int(value), 64), pa.int64()).cast(to, safe=False)
        whole = _fail(call, over, whole, rows)
    if over is None:
        return by_value(whole, lambda value: wrapped(int(value), to.bit_width), to)
    return whole.cast(pa.decimal128(whole.type.precision, whole.type.scale)).cast(to)


def _from_seconds(values: Any) -> Any:
    """Beyond the range of timestamps, the nearest timestamp, as in Spark."""
    micros, limit = (1 << 63) - 1, ((1 << 63) - 1) // 1_000_000
    seconds = values.cast(pa.int64())
    high, low = pc.greater(seconds, limit), pc.less_equal(seconds, -limit - 1)
    inside = pc.if_else(pc.or_(high, low), pa.scalar(0, pa.int64()), seconds)
    moved = pc.if_else(high, pa.scalar(micros, pa.int64()), pc.multiply(inside, 1_000_000))
    return pc.if_else(low, pa.scalar(-micros - 1, pa.int64()), moved).cast(pa.timestamp("us", tz="UTC"))


def _moved(call: Call, values: Any, source: DataType, rows: Rows) -> Any:
    """Casts between dates and timestamps, by the wall clock time in the zone."""
    to = value_type(call.data_type)
    if source == DATE:
        days = values.cast(pa.int32())
        if call.data_type == TIMESTAMP:
            return start_of_day(days, call.zone).cast(to)
        return pc.multiply_checked(days.cast(pa.int64()), DAY_MICROS).cast(to)
    if source == TIMESTAMP_NTZ and call.data_type == TIMESTAMP:
        return wall_to_instant(values.cast(pa.int64()), call.zone).cast(to)
    wall = wall_of(values, call.zone if source == TIMESTAMP else "")
    if call.data_type == DATE:
        return floor_divide(wall, DAY_MICROS).cast(pa.int32()).cast(to)
    return wall.cast(to)


def _to_text(call: Call, values: Any, source: DataType) -> Any:
    if source == BINARY:
        # Spark does not check the bytes
        return values.cast(pa.string(), safe=False)
    if isinstance(source, DecimalType):
        texts = values.cast(pa.string())
        exponents = pc.match_substring(texts, "E")
        if _strict(call) and any_true(exponents):
            return by_value(values, lambda value: f"{value:f}", pa.string())
        return texts
    if source == DATE:
        return by_value(values.cast(pa.int32()), show_date, pa.string())
    if source in (TIMESTAMP, TIMESTAMP_NTZ):
        return _show_moment(wall_of(values, call.zone if source == TIMESTAMP else ""))
    return values.cast(pa.string())


def _show_moment(wall: Any) -> Any:
    texts = format_wall(wall, ["%Y", "=-", "%m", "=-", "%d", "= ", "%H", "=:", "%M", "=:", "%S"])
    fraction = pc.subtract(wall, pc.multiply(floor_divide(wall, 1_000_000), 1_000_000))
    if not any_true(pc.not_equal(fraction, 0)):
        return texts
    digits = pc.utf8_lpad(fraction.cast(pa.string()), 6, "0")
    tail = pc.utf8_rtrim(pc.binary_join_element_wise(pa.scalar("."), digits, pa.scalar("")), characters="0")
    tail = pc.if_else(pc.equal(fraction, 0), pa.scalar(""), tail)
    return pc.binary_join_element_wise(texts, tail, pa.scalar(""))


CONVERSIONS: dict[str, Kernel] = {"cast": _cast, "try_cast": _cast}
