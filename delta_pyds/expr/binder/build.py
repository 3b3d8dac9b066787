"""Builds bound trees: names resolved, types determined as in Spark's ANSI mode, constants folded.

Both the parser and the filters that Spark pushes use this module, so a
predicate means the same in both. A construct that cannot be evaluated
exactly on every row is refused here, before a file is opened.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

from delta_pyds.errors import ColumnNotFoundError, ExpressionError
from delta_pyds.expr.casts import EXACT, cast_literal, nearest_float
from delta_pyds.expr.coercion import operand_type
from delta_pyds.expr.logic import always, and_, is_null, never, not_, or_, require_comparable
from delta_pyds.expr.nodes import (
    FALSE,
    NULL,
    SWAPPED,
    TRUE,
    Cast,
    Column,
    Comparison,
    Expr,
    In,
    Literal,
    LiteralValue,
    Remainder,
    to_sql,
    type_of,
)
from delta_pyds.expr.ordering import Cut, cut, domain, image, is_nan, unwrap
from delta_pyds.expr.parser.syntax import ConstantList
from delta_pyds.expr.types import common_type, common_type_of_list, is_floating, is_integral, is_total_cast
from delta_pyds.protocol.schema import (
    BOOLEAN,
    COLLATIONS,
    DOUBLE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    StructType,
    display,
)
from delta_pyds.protocol.temporal import TimeZone


def bind_column(path: Sequence[str], schema: StructType) -> Column:
    """The column or nested field of that name, matched without case.

    Raises: ColumnNotFoundError, which lists the existing names.
    """
    fields, data_type, collated = schema, None, False
    found: list[str] = []
    for depth, name in enumerate(path):
        field = fields.find(name)
        if field is None:
            where = f"column '{'.'.join(found)}' has no field" if found else "the table has no column"
            raise ColumnNotFoundError(
                f"{where} '{name}'. It has: {', '.join(fields.names) or 'nothing'}.", column=".".join(path)
            )
        found.append(field.name)
        data_type, collated = field.data_type, COLLATIONS in field.metadata
        if depth + 1 < len(path):
            if not isinstance(data_type, StructType):
                raise ColumnNotFoundError(
                    f"column '{'.'.join(found)}' is of type {display(data_type).upper()}, which has no field "
                    f"'{path[depth + 1]}'; elements of arrays and maps cannot be named in a predicate.",
                    column=".".join(path),
                )
            fields = data_type
    if data_type is None:
        raise ColumnNotFoundError("a column has no name.", column="")
    return Column(tuple(found), data_type, collated)


def literal_of(value: object, data_type: DataType) -> Literal:
    """A Python value as a constant of a column's type: ``date`` and ``datetime`` become numbers.

    Raises: ExpressionError if it is not a value of the type.
    """
    if isinstance(value, dt.datetime):
        if data_type in (TIMESTAMP, TIMESTAMP_NTZ) and (value.tzinfo is not None) == (data_type == TIMESTAMP):
            epoch = dt.datetime(1970, 1, 1, tzinfo=value.tzinfo and dt.timezone.utc)
            return Literal((value - epoch) // dt.timedelta(microseconds=1), data_type)
    elif isinstance(value, dt.date):
        if display(data_type) == "date":
            return Literal(value.toordinal() - 719_163, data_type)
    elif value is None or _is_value_of(value, data_type):
        if isinstance(value, bytearray):
            value = bytes(value)
        if isinstance(value, float) and display(data_type) == "float":
            value = nearest_float(value)
        assert value is None or isinstance(value, (bool, int, float, str, bytes, Decimal))
        return Literal(value, data_type)
    raise ExpressionError(f"the value {value!r} is not a {display(data_type).upper()}.")


def _is_value_of(value: object, data_type: DataType) -> bool:
    if isinstance(data_type, DecimalType):
        if not isinstance(value, Decimal) or not value.is_finite():
            return False
        scaled = EXACT.scaleb(value, data_type.scale)
        return scaled == scaled.to_integral_value() and (not scaled or scaled.adjusted() < data_type.precision)
    if is_integral(data_type):
        values = domain(data_type)
        return type(value) is int and values is not None and values.first <= value <= values.last
    kinds: dict[str, type | tuple[type, ...]] = {
        "float": float, "double": float, "string": str, "boolean": bool, "binary": (bytes, bytearray),
    }  # fmt: skip
    kind = kinds.get(display(data_type))
    return kind is not None and isinstance(value, kind)


class Builder:
    """Builds expressions whose meaning may depend on the session's time zone.

    Afterwards ``zone.used`` shows whether it does.
    """

    def __init__(self, time_zone: str = "UTC") -> None:
        self.zone = TimeZone(time_zone)

    def cast(self, expr: Expr, target: DataType) -> Expr:
        """``CAST``: constants of most types; columns only if no value can fail or change its order."""
        if isinstance(expr, Literal):
            return cast_literal(expr, target, self.zone)
        source = type_of(expr)
        if source == target:
            return expr
        if not is_total_cast(source, target):
            raise ExpressionError(
                f"a cast of {to_sql(expr)} from {display(source).upper()} to {display(target).upper()} is not "
                f"supported in a predicate: compare it with a value of type {display(source).upper()}."
            )
        return Cast(expr, target)

    def compare(self, op: str, left: Expr, right: object) -> Expr:
        """``left op right``; a ``right`` that is not an expression is a Python value of ``left``'s type."""
        other = _operand(left, right)
        if isinstance(left, Literal) and not isinstance(other, Literal):
            left, other, op = other, left, SWAPPED[op]
        require_comparable(left, other)
        if not isinstance(other, Literal):
            target = common_type(type_of(left), type_of(other))
            sides = self._side(left, target), self._side(other, target)
            for side in sides:
                _refuse_zoned(side)
            return Comparison(op, *sides)
        if other.value is None or (isinstance(left, Literal) and left.value is None):
            common_type(type_of(left), type_of(other))
            return NULL
        target = common_type(operand_type(left, other), operand_type(other, left))
        _require_fitting(op, left, other)
        constant = self._constant(other, target)
        if isinstance(left, Literal):
            mine = self._constant(left, target).value
            return TRUE if _compare_values(op, mine, constant.value) else FALSE
        if type_of(left) == BOOLEAN and isinstance(constant.value, bool):
            return _compare_boolean(op, left, constant.value)
        if type_of(left) == TIMESTAMP_NTZ and target == TIMESTAMP:
            assert isinstance(constant.value, int)
            return self._compare_wall_clock(op, left, constant.value)
        return self._compare_constant(op, self._side(left, target), constant.value)

    def _constant(self, literal: Literal, target: DataType) -> Literal:
        cast = cast_literal(literal, target, self.zone)
        decimals = isinstance(literal.data_type, DecimalType) and isinstance(target, DecimalType)
        if decimals and cast.value != literal.value:
            # Spark rounds in some of its rules and not in others
            raise ExpressionError(
                f"the number {to_sql(literal)} has more digits after the point than a comparison in 38 digits can "
                "hold: round it.",
            )
        return cast

    def _side(self, expr: Expr, target: DataType) -> Expr:
        source = type_of(expr)
        if source == target:
            return expr
        if not is_total_cast(source, target):
            raise ExpressionError(
                f"comparing {to_sql(expr)} here needs a cast of every row from {display(source).upper()} to "
                f"{display(target).upper()}. This is not supported, because the cast can fail or change the value: "
                f"compare with a value of type {display(source).upper()}.",
            )
        return Cast(expr, target)

    def _compare_constant(self, op: str, expr: Expr, constant: LiteralValue) -> Expr:
        base = unwrap(expr)
        data_type = type_of(base)
        if is_nan(constant):
            return _compare_nan(op, base, data_type)
        if base is expr:
            return Comparison(op, base, Literal(constant, data_type))
        values = domain(data_type)
        assert values is not None and isinstance(constant, (int, float, Decimal))
        return _compare_position(op, base, cut(values, image(expr, self.zone), constant))

    def _compare_wall_clock(self, op: str, expr: Expr, instant: int) -> Expr:
        """Compare a timestamp_ntz with an instant, separately for each period with one offset from UTC."""
        pieces = self.zone.offsets_around(instant)
        for (_, before), (start, after) in pairwise(pieces):
            # a wall clock time that does not exist sorts after later ones, so Spark's own answer depends on its plan
            since = instant - (start or 0) + after * 1_000_000
            if 0 <= since < (after - before) * 1_000_000:
                raise ExpressionError(
                    f"comparing {to_sql(expr)} with a TIMESTAMP right after clocks in {self.zone.name} are set forward "
                    "is not supported: write a TIMESTAMP_NTZ literal.",
                )
        parts = []
        for number, (start, offset) in enumerate(pieces):
            bounds = [Comparison(op, expr, Literal(instant + offset * 1_000_000, TIMESTAMP_NTZ))]
            if start is not None:
                bounds.append(Comparison(">=", expr, Literal(start, TIMESTAMP_NTZ)))
            if number + 1 < len(pieces):
                bounds.append(Comparison("<", expr, Literal(pieces[number + 1][0], TIMESTAMP_NTZ)))
            parts.append(and_(bounds))
        return or_(parts)

    def null_safe_equal(self, left: Expr, right: object) -> Expr:
        """``left <=> right``: never null."""
        other = _operand(left, right)
        if isinstance(left, Literal):
            left, other = other, left
        if isinstance(other, Literal) and other.value is None:
            return is_null(left)
        equal = self.compare("=", left, other)
        known = [not_(is_null(left)), not_(is_null(other)), equal]
        return or_([and_(known), and_([is_null(left), is_null(other)])])

    def is_in(self, expr: Expr, values: Sequence[object], lists: Sequence[ConstantList] = ()) -> Expr:
        """``expr IN (values)``: constants, or Python values of ``expr``'s type. An empty list matches nothing.

        ``lists``: further constants, possibly many.
        """
        literals = [v if isinstance(v, Literal) else literal_of(v, type_of(expr)) for v in values]
        samples = [*literals, *(Literal(many.values[0], many.data_type) for many in lists)]
        if not samples:
            return FALSE
        for literal in samples:
            require_comparable(expr, literal)
        target = common_type_of_list([type_of(expr), *(literal.data_type for literal in samples)])
        inside: dict[LiteralValue, None] = {}
        for many in lists:
            own = None if isinstance(expr, Literal) else _own_values(expr, many, target)
            if own is None:
                literals += many.literals
            else:
                inside.update(own)
        constants = [self._constant(literal, target).value for literal in literals]
        known = [Literal(c, target) for c in dict.fromkeys(constants) if c is not None]
        nulls: list[Expr] = [NULL] if None in constants else []
        if isinstance(expr, Literal) or target == BOOLEAN or (target == TIMESTAMP and type_of(expr) == TIMESTAMP_NTZ):
            return or_([self.compare("=", expr, literal) for literal in known] + nulls)
        if not known and not lists:
            return NULL
        side = self._side(expr, target)
        base = unwrap(side)
        impossible = never(base)
        others: list[Expr] = []
        for literal in known:
            equal = self._compare_constant("=", side, literal.value)
            if isinstance(equal, Comparison) and isinstance(equal.right, Literal) and not is_nan(equal.right.value):
                inside[equal.right.value] = None
            elif equal != impossible:
                others.append(equal)
        if len(inside) == 1:
            others.insert(0, Comparison("=", base, Literal(next(iter(inside)), type_of(base))))
        elif inside:
            others.insert(0, In(base, tuple(inside)))
        return or_([*(others or [impossible]), *nulls])

    def between(self, expr: Expr, low: Expr, high: Expr) -> Expr:
        return and_([self.compare(">=", expr, low), self.compare("<=", expr, high)])


def remainder(expr: Expr, divisor: Expr) -> Expr:
    """``expr % divisor`` of whole numbers, by a constant that is not 0."""
    if not isinstance(divisor, Literal) or not is_integral(divisor.data_type) or not is_integral(type_of(expr)):
        raise ExpressionError(
            f"'{to_sql(expr)} % {to_sql(divisor)}' is not supported: % works on whole numbers, with a literal divisor."
        )
    if divisor.value in (0, None) or not isinstance(divisor.value, int):
        raise ExpressionError(
            f"'{to_sql(expr)} % {to_sql(divisor)}' divides by {to_sql(divisor)}.", code="REMAINDER_BY_ZERO"
        )
    target = common_type(type_of(expr), divisor.data_type)
    if isinstance(expr, Literal):
        if not isinstance(expr.value, int):
            return Literal(None, target)
        size = abs(expr.value) % abs(divisor.value)
        return Literal(-size if expr.value < 0 else size, target)
    return Remainder(expr if type_of(expr) == target else Cast(expr, target), divisor.value, target)


def _own_values(expr: Expr, many: ConstantList, target: DataType) -> dict[LiteralValue, None] | None:
    """The constants as values of ``expr``'s own type, without impossible ones; None if simple casts do not suffice."""
    own = type_of(unwrap(expr))
    if own == target == many.data_type == STRING:
        return dict.fromkeys(many.values)
    if own == target == DOUBLE and many.data_type != STRING:
        return dict.fromkeys(map(float, many.values))
    if isinstance(own, DecimalType) and own == target:
        return _own_decimals(own, many)
    whole = is_integral(own) and is_integral(target)
    if is_integral(many.data_type) and whole:
        values = domain(own)
        assert values is not None
        numbers = [v for v in many.values if isinstance(v, int)]
        if min(numbers) < values.first or max(numbers) > values.last:
            numbers = [v for v in numbers if values.first <= v <= values.last]
        return dict.fromkeys(numbers)
    return None


def _own_decimals(own: DecimalType, many: ConstantList) -> dict[LiteralValue, None] | None:
    """Numbers within a decimal type, with its scale; None if one has more fractional digits."""
    scale = many.data_type.scale if isinstance(many.data_type, DecimalType) else 0
    if many.data_type == STRING or is_floating(many.data_type) or scale > own.scale:
        return None
    step = Decimal(1).scaleb(-own.scale)
    return dict.fromkeys([EXACT.quantize(Decimal(value), step) for value in many.values])


def _operand(left: Expr, right: object) -> Expr:
    return right if isinstance(right, Expr) else literal_of(right, type_of(left))


def _refuse_zoned(side: Expr) -> None:
    """Refuse a cast to TIMESTAMP in the session's time zone, which is supported for constants but not for rows."""
    while isinstance(side, Cast):
        if side.data_type == TIMESTAMP and type_of(side.child) != TIMESTAMP:
            raise ExpressionError(
                f"comparing {to_sql(side.child)} with a TIMESTAMP column needs the session's time zone for every row, "
                "which is not supported: compare each of them with a literal."
            )
        side = side.child


def _require_fitting(op: str, left: Expr, literal: Literal) -> None:
    """Refuse ``bigint < 9223372036854775808``: Spark folds it to true, even for null, and returns wrong rows."""
    value = literal.value
    if (
        isinstance(literal.data_type, DecimalType)
        and is_integral(type_of(left))
        and isinstance(value, Decimal)
        and not isinstance(left, Literal)
        and op not in ("=", "<>")
        and not -(1 << 63) <= value <= (1 << 63) - 1
    ):
        raise ExpressionError(
            f"the number {to_sql(literal)} is out of range for BIGINT, and an order between it and {to_sql(left)} is "
            "not supported: Spark would treat null as a number there. Write IS NOT NULL, or a smaller number."
        )


def _compare_values(op: str, left: LiteralValue, right: LiteralValue) -> bool:
    a, b = _key(left), _key(right)
    if op in ("=", "<>"):
        return bool(a == b) == (op == "=")
    if op in ("<", ">="):
        return bool(a < b) == (op == "<")
    return bool(a > b) == (op == ">")


def _key(value: LiteralValue) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8")
    if isinstance(value, float):
        return (is_nan(value), 0.0 if is_nan(value) else value)
    return value


def _compare_boolean(op: str, expr: Expr, constant: bool) -> Expr:
    """``expr op constant`` over booleans; false is less than true."""
    if op in ("=", "<>"):
        return expr if (op == "=") == constant else not_(expr)
    if op in ("<", ">="):
        below = not_(expr) if constant else never(expr)
        return below if op == "<" else not_(below) if constant else always(expr)
    above = never(expr) if constant else expr
    return above if op == ">" else always(expr) if constant else not_(expr)


def _compare_nan(op: str, base: Expr, data_type: DataType) -> Expr:
    """``base op NaN``: NaN is above all numbers, and only floating types have it."""
    if op in ("<=", ">"):
        return always(base) if op == "<=" else never(base)
    if not is_floating(data_type):
        return always(base) if op in ("<", "<>") else never(base)
    return Comparison("<>" if op in ("<", "<>") else "=", base, Literal(float("nan"), data_type))


def _compare_position(op: str, base: Expr, where: Cut) -> Expr:
    """``base op constant`` in terms of base's own values, by the position of the constant among them."""
    data_type = type_of(base)

    def compared(operator: str, value: LiteralValue) -> Expr:
        return Comparison(operator, base, Literal(value, data_type))

    def below(value: LiteralValue, any_below: bool) -> Expr:
        if value is None:
            # not for floats, whose last value is infinity, so NaN needs no case here
            return always(base)
        return compared("<", value) if any_below else never(base)

    if where.single:
        return compared(op, where.lower)
    if op in ("=", "<>"):
        if not where.any_equal:
            equal = never(base)
            return equal if op == "=" else always(base)
        inside = and_([not_(below(where.lower, where.any_below)), below(where.upper, True)])
        if op == "=":
            return inside
        return or_([below(where.lower, where.any_below), not_(below(where.upper, True))])
    if op in ("<", ">="):
        cut_off = below(where.lower, where.any_below)
    else:
        cut_off = below(where.upper, where.any_below or where.any_equal)
    return cut_off if op in ("<", "<=") else not_(cut_off)
