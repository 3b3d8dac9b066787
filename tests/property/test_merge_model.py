"""Merges in this process against the same merge of lists in Python, on tables of every kind."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_pyds.columnar.schema import arrow_schema
from delta_pyds.commands.row_changes.merge import run_merge
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.resolved import MergeClause
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.errors import DeltaError
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.verification.verify import verify
from tests.support.change_feed import applied, bag, change_rows
from tests.support.planned_changes import planned_merge
from tests.support.sampling import examples
from tests.support.table_writes import read_rows, struct, write_rows

Row = dict[str, Any]
Pair = Callable[[Row, Row], Any]
SCHEMA = {"id": "long", "g": "string", "v": "integer"}
NOTHING: Row = dict.fromkeys(SCHEMA)


@dataclass(frozen=True)
class Condition:
    """A text, and the same in Python: None for unknown."""

    text: str
    holds: Pair


@dataclass(frozen=True)
class Assignment:
    """``texts``: None is ``*``; ``values``: the new row."""

    texts: Mapping[str, str] | None
    values: Callable[[Row, Row], Row]


def known(function: Callable[..., Any], *values: Any) -> Any:
    """The function's value, unknown where a value is null."""
    return None if None in values else function(*values)


def same(t: Row, s: Row, *names: str) -> Any:
    return known(
        lambda *values: values[: len(names)] == values[len(names) :], *(row[n] for row in (t, s) for n in names)
    )


def both(*values: Any) -> Any:
    return False if False in values else None if None in values else True


def above(row: Row, limit: int) -> Any:
    return known(lambda value: value > limit, row["v"])


def less(t: Row, s: Row) -> Any:
    return known(lambda mine, other: mine < other, t["v"], s["v"])


ON = [
    Condition("t.id = s.id", lambda t, s: same(t, s, "id")),
    Condition("s.id = t.id AND s.g = t.g", lambda t, s: same(t, s, "id", "g")),
    Condition("t.id <=> s.id", lambda t, s: t["id"] == s["id"]),
    Condition("t.id = s.id AND t.v > 2", lambda t, s: both(same(t, s, "id"), above(t, 2))),
    Condition("t.id = s.id AND s.v > 2", lambda t, s: both(same(t, s, "id"), above(s, 2))),
    Condition("t.id = s.id + 1", lambda t, s: known(lambda a, b: a == b + 1, t["id"], s["id"])),
    Condition("t.g = s.g AND t.v < s.v AND t.id = s.id", lambda t, s: both(same(t, s, "g", "id"), less(t, s))),
]
SOURCE_ABOVE = Condition("s.v > 3", lambda _, s: above(s, 3))
TARGET_NULL = Condition("t.v IS NULL", lambda t, _: t["v"] is None)
MATCHED = [SOURCE_ABOVE, Condition("t.v < s.v", less), TARGET_NULL]
OF_SOURCE = [SOURCE_ABOVE, Condition("g IS NOT NULL", lambda _, s: s["g"] is not None)]
OF_TARGET = [Condition("t.v > 3", lambda t, _: above(t, 3)), TARGET_NULL]
STAR = Assignment(None, lambda _, s: dict(s))
UPDATES = [
    STAR,
    Assignment({"v": "t.v + s.v"}, lambda t, s: {**t, "v": known(lambda a, b: a + b, t["v"], s["v"])}),
    Assignment({"t.v": "s.v", "g": "upper(s.g)"}, lambda t, s: {**t, "v": s["v"], "g": known(str.upper, s["g"])}),
]
INSERTS = [
    STAR,
    Assignment(
        {"id": "s.id", "v": "s.v * 2"},
        lambda _, s: {"id": s["id"], "g": None, "v": known(lambda a: a * 2, s["v"])},
    ),
]
BY_SOURCE = [Assignment({"v": "-t.v"}, lambda t, _: {**t, "v": known(lambda a: -a, t["v"])})]
KINDS = {
    "matched": (MATCHED, UPDATES),
    "not_matched": (OF_SOURCE, INSERTS),
    "not_matched_by_source": (OF_TARGET, BY_SOURCE),
}


@dataclass(frozen=True)
class Clause:
    kind: str
    action: str
    condition: Condition | None
    assignment: Assignment | None

    def as_text(self) -> MergeClause[str]:
        texts = None if self.assignment is None else self.assignment.texts
        return MergeClause(self.kind, self.action, self.condition and self.condition.text, texts)  # type: ignore[arg-type]


@st.composite
def clauses(draw: st.DrawFn) -> list[Clause]:
    found: list[Clause] = []
    for kind, (conditions, assignments) in KINDS.items():
        for number in range(count := draw(st.integers(0, 2))):
            condition = draw(st.sampled_from(conditions))
            if number == count - 1 and draw(st.booleans()):
                condition = None
            delete = kind != "not_matched" and draw(st.booleans())
            action = "delete" if delete else "insert" if kind == "not_matched" else "update"
            found.append(Clause(kind, action, condition, None if delete else draw(st.sampled_from(assignments))))
    return found or [Clause("not_matched", "insert", None, STAR)]


_row = st.fixed_dictionaries(
    {
        "id": st.integers(0, 12) | st.none(),
        "g": st.sampled_from(["a", "b", "A"]) | st.none(),
        "v": st.integers(0, 9) | st.none(),
    }
)


class SeveralMatchesError(Exception):
    pass


def merged(target: Sequence[Row], source: Sequence[Row], on: Condition, given: Sequence[Clause]) -> list[Row]:
    """The merge, as its definition says it."""
    of_kind = {
        kind: [c for c in given if c.kind == kind] for kind in ("matched", "not_matched", "not_matched_by_source")
    }
    first = of_kind["matched"]
    exempt = not (first or of_kind["not_matched_by_source"]) or (
        len(first) == 1 and first[0].action == "delete" and first[0].condition is None
    )

    def changed(kind: str, t: Row, s: Row) -> Iterator[Row]:
        for clause in of_kind[kind]:
            if clause.condition is None or clause.condition.holds(t, s):
                if clause.assignment is not None:
                    yield clause.assignment.values(t, s)
                return
        if kind != "not_matched":
            yield t

    result: list[Row] = []
    met: set[int] = set()
    for t in target:
        partners = [n for n, s in enumerate(source) if on.holds(t, s)]
        met |= set(partners)
        if len(partners) > 1 and not exempt:
            raise SeveralMatchesError
        kind = "matched" if partners else "not_matched_by_source"
        result += changed(kind, t, source[partners[0]] if partners else NOTHING)
    for n, s in enumerate(source):
        if n not in met:
            result += changed("not_matched", NOTHING, s)
    return result


def counted(rows: Sequence[Row]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[name] for name in SCHEMA) for row in rows)


def merge(path: Path, source: Sequence[Row], on: str, given: Sequence[Clause]) -> Any:
    schema = struct(SCHEMA)
    clauses = [clause.as_text() for clause in given]
    rows = pa.Table.from_pylist(list(source), arrow_schema(schema))
    plan = planned_merge(load_snapshot(str(path)), on, clauses, rows, schema, CommandOptions())
    return run_merge(plan, Place("process", "a test"))


_properties = st.fixed_dictionaries(
    {},
    optional={
        "delta.enableDeletionVectors": st.just("true"),
        "delta.enableChangeDataFeed": st.just("true"),
        "delta.enableRowTracking": st.just("true"),
        "delta.columnMapping.mode": st.just("name"),
    },
)


def _ids(path: Path, properties: Mapping[str, str]) -> set[int]:
    """Of all rows, where the table tracks them; none is there twice."""
    if "delta.enableRowTracking" not in properties:
        return set()
    ids = [row["_row_id"] for row in read_rows(path, row_ids=True)]
    assert len(ids) == len(set(ids))
    return set(ids)


@given(
    st.lists(st.lists(_row, min_size=1, max_size=8), min_size=1, max_size=3),
    st.lists(st.tuples(st.lists(_row, max_size=8), st.sampled_from(ON), clauses()), min_size=1, max_size=2),
    _properties,
    st.booleans(),
)
@settings(max_examples=examples(120), deadline=None)
def test_rows_after_a_merge_are_those_of_the_model(
    files: list[list[Row]],
    merges: list[tuple[list[Row], Condition, list[Clause]]],
    properties: dict[str, str],
    partitioned: bool,
) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        path = folder / "table"
        more = {"partition_by": (("g",),)} if partitioned else {}
        write_rows(path, SCHEMA, files, properties=properties, **more)
        rows = [row for file in files for row in file]
        for source, on, given in merges:
            try:
                expected = merged(rows, source, on, given)
            except SeveralMatchesError:
                with pytest.raises(DeltaError, match="DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"):
                    merge(path, source, on.text, given)
                expected = rows
            else:
                before = _ids(path, properties)
                result = merge(path, source, on.text, given)
                after = _ids(path, properties)
                assert (len(after - before), len(before - after)) in (
                    (0, 0), (result.num_inserted_rows, result.num_deleted_rows),
                )  # fmt: skip
            rows = expected
            assert counted(read_rows(path)) == counted(rows)
        if "delta.enableChangeDataFeed" in properties:
            assert applied([], change_rows(path)) == bag(rows)
        assert not [finding for finding in verify(str(path)).findings if finding.severity == "error"]
    finally:
        shutil.rmtree(folder)
