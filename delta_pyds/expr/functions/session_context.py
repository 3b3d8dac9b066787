"""The common parts of the rules of functions: the session's settings, casts, and checks of arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.casts import cast_literal
from delta_pyds.expr.coercion import castable
from delta_pyds.expr.nodes import Call, Cast, Column, Expr, Literal, LiteralValue, to_sql, type_of
from delta_pyds.expr.types import is_comparable, is_integral, is_numeric, is_total_cast
from delta_pyds.protocol.schema import (
    BINARY,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
    display,
)
from delta_pyds.protocol.temporal import TimeZone

_DATETIME = (DATE, TIMESTAMP, TIMESTAMP_NTZ)


class SessionContext:
    """The session that an expression is bound for.

    Afterwards ``zone.used`` shows whether the meaning depends on the time zone, and
    ``clock_read`` whether it depends on the current time, ``now_micros``.
    """

    def __init__(self, *, time_zone: str, ansi: bool, now_micros: int) -> None:
        self.zone = TimeZone(time_zone)
        self.ansi = ansi
        self.now_micros = now_micros
        self.clock_read = False

    def call(
        self, function: str, args: Sequence[Expr], data_type: DataType, *options: str | int, zoned: bool = False
    ) -> Call:
        if zoned:
            self.zone.used = True
        return Call(function, tuple(args), data_type, self.ansi, self.zone.name if zoned else "", options)

    def cast(self, expr: Expr, target: DataType, *, trying: bool = False) -> Expr:
        """``CAST``: a constant if its value is known, a total ``Cast`` if no value can fail, otherwise a call.

        Raises: ExpressionError for a pair of types that is not supported.
        """
        source = type_of(expr)
        if source == target:
            return expr
        if isinstance(expr, Literal) and (expr.value is None or expr.data_type == VOID):
            return Literal(None, target)
        if not castable(source, target):
            raise ExpressionError(
                f"a cast of '{to_sql(expr)}' from {display(source).upper()} to {display(target).upper()} is not "
                "supported.",
                construct=f"CAST AS {display(target).upper()}",
            )
        total = is_total_cast(source, target)
        if isinstance(expr, Literal) and (source == STRING or total):
            try:
                return cast_literal(expr, target, self.zone)
            except ExpressionError:
                # it is an error only if a row needs the value
                pass
        if total and target != TIMESTAMP:
            return Cast(expr, target)
        zoned = self._needs_zone(source, target)
        return self.call("try_cast" if trying else "cast", (expr,), target, zoned=zoned)

    def store(self, expr: Expr, target: DataType, column: str) -> Expr:
        """``cast`` a value to the type of a table's column. As in the reference, an overflow is an error of the write.

        Raises: as ``cast``.
        """
        stored = self.cast(expr, target)
        if isinstance(stored, Call) and stored.function == "cast" and stored is not expr:
            return replace(stored, options=(column,))
        return stored

    def _needs_zone(self, source: DataType, target: DataType) -> bool:
        if TIMESTAMP not in (source, target):
            return False
        other = target if source == TIMESTAMP else source
        return other in (STRING, *_DATETIME)


Rule = Callable[[SessionContext, str, tuple[Expr, ...]], Expr]


class Registry(dict[str, Rule]):
    """Rules by the names of functions."""

    def function(self, *names: str, counts: tuple[int, ...] = ()) -> Callable[[Rule], Rule]:
        """``counts``: the allowed numbers of arguments; empty if the rule itself checks their number."""

        def register(rule: Rule) -> Rule:
            def counted(context: SessionContext, name: str, args: tuple[Expr, ...]) -> Expr:
                expect_count(name, args, *counts)
                return rule(context, name, args)

            for name in names:
                assert name not in self, name
                self[name] = counted if counts else rule
            return rule

        return register


def expect_count(name: str, args: tuple[Expr, ...], *counts: int) -> None:
    if len(args) not in counts:
        wanted = " or ".join(map(str, counts))
        raise ExpressionError(
            f"the function {name} takes {wanted} arguments, not {len(args)}.",
            code="WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
            construct=name,
        )


def refuse_argument(name: str, expr: Expr, wanted: str) -> ExpressionError:
    return ExpressionError(
        f"the function {name} needs {wanted}, and '{to_sql(expr)}' is of type {display(type_of(expr)).upper()}: "
        "cast it.",
        code="DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
        construct=name,
    )


def text_argument(context: SessionContext, name: str, expr: Expr) -> Expr:
    """A string; most other types are cast to one, as Spark does."""
    data_type = type_of(expr)
    if isinstance(expr, Column) and expr.collated:
        raise ExpressionError(
            f"column '{to_sql(expr)}' has a collation, and {name} by a collation is not supported.", construct=name
        )
    if data_type == BINARY or not is_comparable(data_type):
        raise refuse_argument(name, expr, "STRING")
    return context.cast(expr, STRING)


def whole_argument(context: SessionContext, name: str, expr: Expr) -> Expr:
    data_type = type_of(expr)
    if data_type == VOID or (is_integral(data_type) and is_total_cast(data_type, INTEGER)):
        return context.cast(expr, INTEGER)
    raise refuse_argument(name, expr, "INT")


def double_argument(context: SessionContext, name: str, expr: Expr) -> Expr:
    data_type = type_of(expr)
    if data_type == VOID or is_numeric(data_type):
        return context.cast(expr, DOUBLE)
    raise refuse_argument(name, expr, "DOUBLE")


def date_argument(context: SessionContext, name: str, expr: Expr) -> Expr:
    if type_of(expr) in (*_DATETIME, STRING, VOID):
        return context.cast(expr, DATE)
    raise refuse_argument(name, expr, "DATE")


def moment_argument(context: SessionContext, name: str, expr: Expr) -> Expr:
    """A timestamp of either kind."""
    data_type = type_of(expr)
    if data_type == TIMESTAMP_NTZ:
        return expr
    if data_type in (TIMESTAMP, DATE, STRING, VOID):
        return context.cast(expr, TIMESTAMP)
    raise refuse_argument(name, expr, "TIMESTAMP")


def constant_argument(name: str, expr: Expr, what: str) -> LiteralValue:
    if not isinstance(expr, Literal):
        raise ExpressionError(
            f"the function {name} is supported with a constant {what} only, not with '{to_sql(expr)}'.", construct=name
        )
    return expr.value


def decimal_of(data_type: DataType) -> DecimalType:
    assert isinstance(data_type, DecimalType)
    return data_type
