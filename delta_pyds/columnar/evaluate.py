"""Evaluates bound expressions over Arrow arrays, with Spark's semantics to the letter.

Strings compare by their UTF-8 bytes, NaN equals NaN and is the greatest
value, -0.0 equals 0.0, logic is three-valued. Only Arrow kernels touch rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.errors import ColumnNotFoundError
from delta_pyds.expr.nodes import (
    ANY_STRING,
    And,
    Cast,
    Column,
    Comparison,
    Expr,
    In,
    IsNull,
    Like,
    Literal,
    LiteralValue,
    Not,
    Remainder,
    Wildcard,
    type_of,
)
from delta_pyds.protocol.schema import TIMESTAMP, DataType, DecimalType, PrimitiveType

Resolver = Callable[[tuple[str, ...]], pa.Array]

_ARROW_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(), "long": pa.int64(), "integer": pa.int32(), "short": pa.int16(), "byte": pa.int8(),
    "float": pa.float32(), "double": pa.float64(), "boolean": pa.bool_(), "binary": pa.binary(), "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"), "timestamp_ntz": pa.timestamp("us"), "void": pa.null(),
}  # fmt: skip
_KERNELS: dict[str, Callable[..., Any]] = {
    "=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip


def arrow_type(data_type: DataType) -> pa.DataType:
    """The Arrow type of a comparable type's values; counts for dates and timestamps keep their type."""
    if isinstance(data_type, DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    assert isinstance(data_type, PrimitiveType)
    return _ARROW_TYPES[data_type.name]


def scalar(value: LiteralValue, data_type: DataType) -> pa.Scalar:
    """A constant as Arrow has it."""
    return values_array((value,), data_type)[0]


def values_array(values: tuple[LiteralValue, ...], data_type: DataType) -> pa.Array:
    """Constants as an Arrow array; dates and timestamps are given as counts."""
    target = arrow_type(data_type)
    if pa.types.is_date32(target):
        return pa.array(values, pa.int32()).cast(target)
    if pa.types.is_timestamp(target):
        return pa.array(values, pa.int64()).cast(target)
    return pa.array(values, target)


def batch_resolver(batch: pa.RecordBatch) -> Resolver:
    """Columns and nested fields of a batch by their path; a field of a null struct is null."""
    index = {name: number for number, name in enumerate(batch.schema.names)}

    def resolve(path: tuple[str, ...]) -> pa.Array:
        if path[0] not in index:
            raise ColumnNotFoundError(
                f"the batch has no column '{path[0]}', only {', '.join(index) or 'none'}.", column=".".join(path)
            )
        return struct_field(batch.column(index[path[0]]), path[1:])

    return resolve


def struct_field(array: pa.Array, path: tuple[str, ...]) -> pa.Array:
    """A field inside a struct array; null where any struct around it is."""
    for name in path:
        position = array.type.get_field_index(name) if pa.types.is_struct(array.type) else -1
        if position < 0:
            raise ColumnNotFoundError(f"there is no field '{name}' in {array.type}.", column=name)
        # struct_field, unlike StructArray.field, minds the parent's nulls and its offset
        array = pc.struct_field(array, [position])
    return array


def matches(expr: Expr, columns: Resolver | pa.RecordBatch, num_rows: int) -> pa.BooleanArray:
    """For each row whether the expression is true; null counts as no. The result has no nulls."""
    result = evaluate(expr, columns, num_rows)
    return cast(pa.BooleanArray, result.fill_null(False) if result.null_count else result)


def evaluate(expr: Expr, columns: Resolver | pa.RecordBatch, num_rows: int) -> pa.Array:
    """The values of an expression over ``num_rows`` rows; a predicate gives booleans, null for unknown.

    ``columns``: a batch, or a function from a path of logical names to an
    array of ``num_rows`` values in the Arrow type that Spark uses for the
    column's type.
    """
    resolver = batch_resolver(columns) if isinstance(columns, pa.RecordBatch) else columns
    result = _value(expr, resolver)
    if isinstance(result, pa.Scalar):
        return pa.repeat(result, num_rows)
    return result.combine_chunks() if isinstance(result, pa.ChunkedArray) else result


def _value(expr: Expr, columns: Resolver) -> Any:
    if isinstance(expr, Column):
        return columns(expr.path)
    if isinstance(expr, Literal):
        return scalar(expr.value, expr.data_type)
    if isinstance(expr, Comparison):
        return _comparison(expr, columns)
    if isinstance(expr, In):
        return is_in(_value(expr.child, columns), expr.values, type_of(expr.child))
    if isinstance(expr, Like):
        return _like(_value(expr.child, columns), expr.parts)
    if isinstance(expr, IsNull):
        return pc.is_null(_value(expr.child, columns))
    if isinstance(expr, Not):
        return pc.invert(_value(expr.child, columns))
    if isinstance(expr, Cast):
        return _cast(_value(expr.child, columns), type_of(expr.child), expr.data_type)
    if isinstance(expr, Remainder):
        return _remainder(_value(expr.child, columns), expr.divisor)
    combine = pc.and_kleene if isinstance(expr, And) else pc.or_kleene
    result = _value(expr.children[0], columns)
    for child in expr.children[1:]:
        result = combine(result, _value(child, columns))
    return result


def _comparison(expr: Comparison, columns: Resolver) -> Any:
    left = _value(expr.left, columns)
    if isinstance(expr.right, Literal):
        return compare_constant(expr.op, left, expr.right)
    right = _value(expr.right, columns)
    plain = _KERNELS[expr.op](left, right)
    if not pa.types.is_floating(left.type):
        return plain
    left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
    if expr.op in ("=", ">=", "<="):
        # IEEE says false wherever NaN takes part
        greater = {"=": pc.and_(left_nan, right_nan), ">=": left_nan, "<=": right_nan}[expr.op]
        return pc.or_(plain, greater)
    if expr.op == "<>":
        return pc.and_not(plain, pc.and_(left_nan, right_nan))
    above, below = (left_nan, right_nan) if expr.op == ">" else (right_nan, left_nan)
    return pc.or_(plain, pc.and_not(above, below))


def compare_constant(op: str, values: Any, constant: Literal) -> Any:
    """``values op constant`` for a constant of the values' own type."""
    floating = pa.types.is_floating(values.type)
    if floating and constant.value != constant.value:
        is_nan = pc.is_nan(values)
        known: dict[str, Callable[[], Any]] = {"=": lambda: is_nan, "<>": lambda: pc.invert(is_nan)}
        return known[op]()
    result = _KERNELS[op](values, scalar(constant.value, constant.data_type))
    if floating and op in (">", ">="):
        return pc.or_(result, pc.is_nan(values))
    return result


def is_in(values: Any, wanted: tuple[LiteralValue, ...], data_type: DataType) -> Any:
    """``values IN (wanted)``: null for null."""
    if pa.types.is_floating(values.type) and 0.0 in wanted:
        # the kernel looks values up by their bits
        wanted = (*(v for v in wanted if v != 0.0), 0.0, -0.0)
    found = pc.is_in(values, value_set=values_array(wanted, data_type))
    return found if values.null_count == 0 else pc.if_else(pc.is_valid(values), found, pa.scalar(None, pa.bool_()))


def _like(values: Any, parts: tuple[str | Wildcard, ...]) -> Any:
    before, after = parts[0] == ANY_STRING, parts[-1] == ANY_STRING
    middle = parts[1 if before else 0 : len(parts) - 1 if after else len(parts)]
    if len(middle) == 1 and isinstance(middle[0], str):
        if before and after:
            return pc.match_substring(values, middle[0])
        return pc.ends_with(values, middle[0]) if before else pc.starts_with(values, middle[0])
    return pc.match_substring_regex(_decodable(values), _regex(parts))


def _decodable(values: Any) -> Any:
    """Strings that a pattern can count characters of: what is no UTF-8 is replaced as Java does when it decodes."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        texts = (None if v is None else v.decode("utf-8", "replace") for v in values.cast(pa.binary()).to_pylist())
        return pa.array(texts, pa.string())
    return values


def _regex(parts: tuple[str | Wildcard, ...]) -> str:
    texts = []
    for part in parts:
        if isinstance(part, Wildcard):
            texts.append(".*" if part == ANY_STRING else ".")
        else:
            texts.append(re.escape(part))
    return r"(?s)\A" + "".join(texts) + r"\z"


def _cast(values: Any, source: DataType, target: DataType) -> Any:
    to = arrow_type(target)
    # expr.build turns these into comparisons of dates: a zone cannot be had here
    assert target != TIMESTAMP or source == TIMESTAMP
    if isinstance(source, DecimalType) and pa.types.is_floating(to):
        # the direct cast does not round to the nearest double; parsing text does
        return values.cast(pa.string()).cast(to)
    # whole numbers beyond 2^53 round to the nearest float, as in Java
    return values.cast(to, safe=not pa.types.is_floating(to))


def _remainder(values: Any, divisor: int) -> Any:
    if abs(divisor) == 1:
        # the smallest number divided by -1 overflows
        return pc.bit_wise_xor(values, values)
    by = pa.scalar(divisor, values.type)
    return pc.subtract(values, pc.multiply(pc.divide(values, by), by))
