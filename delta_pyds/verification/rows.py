"""Rows, checked against the rules of the table: NOT NULL, lengths, constraints, generated columns.

Protocol: "Column Invariants", "CHECK Constraints", "Generated Columns".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from zoneinfo import available_timezones

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.evaluate import matches
from delta_pyds.columnar.rows import column_at, struct_field
from delta_pyds.errors import DeltaError, ExpressionError
from delta_pyds.expr.nodes import Expr, type_of
from delta_pyds.expr.parse import Bound, parse_expression
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.foreign_json import decode_json
from delta_pyds.protocol.properties import CONSTRAINT_PREFIX
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import (
    BOOLEAN,
    GENERATION_EXPRESSION,
    INVARIANTS,
    ArrayType,
    DataType,
    MapType,
    StructType,
)
from delta_pyds.verification.report import Findings
from delta_pyds.verification.view import TableView, fields_of

_CHAR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"
_LENGTH = re.compile(r"(?:var)?char\(\s*(\d+)\s*\)", re.IGNORECASE)
# zones are tried on this many rows; a row that fits no zone is invalid
_SAMPLE = 500
_QUARTERS_WEST, _QUARTERS_EAST = 12 * 4, 14 * 4


@dataclass(frozen=True)
class _Constraint:
    name: str
    text: str
    holds: Callable[[pa.RecordBatch], pa.BooleanArray]


class RowChecks:
    """Checks rows against the rules of one view. A rule that cannot be evaluated gives one warning.

    ``time_zone``: the zone of the sessions that wrote the table. If it is None, a row must be valid in at least one
    zone.
    """

    def __init__(self, view: TableView, findings: Findings, time_zone: str | None = None) -> None:
        self._view = view
        self._time_zone = time_zone
        self._findings = findings
        self._lengths = [
            (at.path, int(match[1]))
            for at in fields_of(view.columns)
            if at.in_struct and (match := _LENGTH.fullmatch(str(at.field.metadata.get(_CHAR_VARCHAR, "")).strip()))
        ]
        self._constraints = list(self._parsed())

    def check(self, rows: pa.RecordBatch, path: str) -> None:
        """Check the live rows, which have the table's columns; a partition column may be missing."""
        if not rows.num_rows:
            return
        for f in self._view.columns:
            column = column_at(rows, (f.name,))
            if column is None:
                continue
            if not f.nullable and column.null_count:
                self._null(f.name, column.null_count, path)
            for name, count in _inner_nulls(column, f.data_type, f.name):
                self._null(name, count, path)
        for names, length in self._lengths:
            self._check_length(rows, names, length, path)
        for constraint in list(self._constraints):
            self._check_constraint(rows, constraint, path)

    def _null(self, name: str, count: int, path: str) -> None:
        self._findings.error("rows.null", path, f"{count} rows have a null in the NOT NULL column {name}.")

    def _check_length(self, rows: pa.RecordBatch, names: tuple[str, ...], length: int, path: str) -> None:
        values = column_at(rows, names)
        if values is None or not pa.types.is_string(values.type):
            return
        longest = pc.max(pc.utf8_length(values)).as_py()
        if longest is not None and longest > length:
            self._findings.error(
                "rows.length",
                path,
                f"{'.'.join(names)} has a text of {longest} characters, but {length} are allowed.",
            )

    # --- expressions

    def _parsed(self) -> Iterator[_Constraint]:
        for name, text in self._texts():
            try:
                bound = self._bound(text, self._time_zone or "UTC")
            except DeltaError as e:
                self._not_checked(name, text, e.message)
                continue
            if not bound.deterministic:
                self._not_checked(name, text, "its value depends on the time of the write")
            elif type_of(bound.expr) != BOOLEAN:
                self._findings.error("rows.invariant", name, f"the expression {text} is not boolean.")
            elif bound.uses_time_zone and self._time_zone is None:
                yield _Constraint(name, text, _ZonedCondition(partial(self._meaning, text)).holds)
            else:
                yield _Constraint(name, text, partial(_matches, bound.expr))

    def _bound(self, text: str, time_zone: str) -> Bound:
        return parse_expression(text, self._view.columns, time_zone=time_zone, ansi=True)

    def _meaning(self, text: str, time_zone: str) -> Expr:
        return self._bound(text, time_zone).expr

    def _not_checked(self, name: str, text: str, reason: str) -> None:
        self._findings.warning(
            "rows.not-checked", name, f"the expression {text} was not checked: {reason.rstrip('.')}."
        )

    def _texts(self) -> Iterator[tuple[str, str]]:
        view = self._view
        if view.supports(Feature.CHECK_CONSTRAINTS):
            for key, value in view.configuration.items():
                if key.startswith(CONSTRAINT_PREFIX):
                    yield f"the constraint {key.removeprefix(CONSTRAINT_PREFIX)}", value
        for at in fields_of(view.columns):
            invariant = at.field.metadata.get(INVARIANTS)
            if invariant is not None and view.supports(Feature.INVARIANTS):
                try:
                    yield f"the invariant of {at.name}", str(decode_json(invariant)["expression"]["expression"])
                except (ValueError, KeyError, TypeError):
                    self._findings.error(
                        "rows.invariant", f"the invariant of {at.name}", f"it cannot be read: {invariant}."
                    )
            generation = at.field.metadata.get(GENERATION_EXPRESSION)
            if generation is not None and view.supports(Feature.GENERATED_COLUMNS) and len(at.path) == 1:
                yield f"the generated column {at.name}", f"{quote_name(at.field.name)} <=> ({generation})"

    def _check_constraint(self, rows: pa.RecordBatch, constraint: _Constraint, path: str) -> None:
        try:
            holds = constraint.holds(rows)
        except (DeltaError, pa.ArrowException) as e:
            self._constraints.remove(constraint)
            self._not_checked(constraint.name, constraint.text, str(e))
            return
        broken = rows.num_rows - holds.true_count
        if broken:
            self._findings.error("rows.constraint", path, f"{broken} rows break {constraint.name}: {constraint.text}.")


def _matches(expr: Expr, rows: pa.RecordBatch) -> pa.BooleanArray:
    return matches(expr, rows, rows.num_rows)


def _inner_nulls(column: pa.Array, data_type: DataType, name: str) -> Iterator[tuple[str, int]]:
    """Nulls in nested fields that must not be null, if the values around them are not null."""
    if isinstance(data_type, StructType):
        present = column.drop_null() if column.null_count else column
        for f in data_type:
            child = struct_field(present, (f.name,))
            if not f.nullable and child.null_count:
                yield f"{name}.{f.name}", child.null_count
            yield from _inner_nulls(child, f.data_type, f"{name}.{f.name}")
    elif isinstance(data_type, ArrayType):
        if not data_type.contains_null or isinstance(data_type.element_type, StructType | ArrayType | MapType):
            elements = pc.list_flatten(column)
            if not data_type.contains_null and elements.null_count:
                yield f"{name}.element", elements.null_count
            yield from _inner_nulls(elements, data_type.element_type, f"{name}.element")
    elif isinstance(data_type, MapType) and not data_type.value_contains_null:
        present = column.drop_null() if column.null_count else column
        values = pc.list_flatten(present.cast(pa.list_(pa.struct([column.type.key_field, column.type.item_field]))))
        nulls = struct_field(values, (column.type.item_field.name,)).null_count
        if nulls:
            yield f"{name}.value", nulls


@lru_cache(maxsize=1)
def _zones() -> tuple[str, ...]:
    """All time zones of sessions, the likely ones first."""
    quarters = sorted(range(-_QUARTERS_WEST, _QUARTERS_EAST + 1), key=abs)
    offsets = [f"{'-' if q < 0 else '+'}{abs(q) // 4:02d}:{abs(q) % 4 * 15:02d}" for q in quarters if q]
    regions = sorted(name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))
    return (*offsets, *regions)


class _ZonedCondition:
    """A condition that depends on the time zone of the session that wrote the rows, which no table records.

    A row satisfies it if it is true in some time zone: any region, or any offset from UTC by whole quarters of an hour.
    So a value that was valid for its writer is never reported, and a value that is valid in no zone always is.

    ``bind``: returns the expression for one zone.
    """

    def __init__(self, bind: Callable[[str], Expr]) -> None:
        self._bind = lru_cache(maxsize=None)(bind)
        self._known = ["UTC"]

    def holds(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """For each row, whether the condition is true in some time zone; without nulls.

        Raises: DeltaError if it cannot be evaluated in any zone.
        """
        result = self._in_zones(rows, iter(self._known))
        while result.true_count < len(result):
            failing = rows.filter(pc.invert(result))
            sample = failing.slice(0, _SAMPLE)
            zone = next((zone for zone in _zones() if zone not in self._known and self._fits(zone, sample)), None)
            if zone is None:
                return result
            # one session writes a file, and often all files of a table are written in one zone
            self._known.insert(0, zone)
            result = pc.or_(result, self._in_zones(rows, iter([zone])))
        return result

    def _fits(self, zone: str, rows: pa.RecordBatch) -> bool:
        return bool(self._in_zones(rows, iter([zone])).true_count)

    def _in_zones(self, rows: pa.RecordBatch, zones: Iterator[str]) -> pa.BooleanArray:
        result = pa.repeat(pa.scalar(False), rows.num_rows)
        for zone in zones:
            try:
                result = pc.or_(result, matches(self._bind(zone), rows, rows.num_rows))
            except ExpressionError as e:
                # the zone is missing on this machine, or its rules cannot be computed
                if e.code != "INVALID_TIMEZONE":
                    raise
            if result.true_count == len(result):
                break
        return result
