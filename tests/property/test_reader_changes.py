"""Selected rows, deleted rows, predicate, splits and row groups against a plain model."""

from __future__ import annotations

import dataclasses
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_pyds.expr.nodes import And, Column, Comparison, Expr, In, Literal, Not, Or
from delta_pyds.expr.stats_rewrite import skipping
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.schema import LONG, STRING
from tests.support.bitmaps import write_vectors
from tests.support.sampling import examples
from tests.support.scans import scan, state_of, struct, write

TYPES = ("insert", "delete", "update_preimage", "update_postimage")
PARTITIONS = ("_commit_version", "_change_type")
FEED = struct(("a", LONG), ("s", STRING), ("_change_type", STRING), ("_commit_version", LONG))
Row = dict[str, Any]


def _predicates() -> st.SearchStrategy[Expr]:
    numbers = st.builds(
        lambda op, n: Comparison(op, Column(("a",), LONG), Literal(n, LONG)),
        st.sampled_from(["=", "<", "<=", ">", ">="]),
        st.integers(-5, 305),
    )
    types = st.builds(
        lambda values: In(Column(("_change_type",), STRING), tuple(sorted(values))),
        st.sets(st.sampled_from(TYPES), min_size=1),
    )
    versions = st.builds(lambda n: Comparison("=", Column(("_commit_version",), LONG), Literal(n, LONG)), st.just(3))
    leaves = numbers | types | types.map(Not) | versions
    return st.recursive(
        leaves,
        lambda inner: st.builds(
            lambda kind, parts: kind(tuple(parts)),
            st.sampled_from([And, Or]),
            st.lists(inner, min_size=2, max_size=3),
        ),
        max_leaves=5,
    )


def _holds(expr: Expr, row: Row) -> bool:
    """No column is null, so two values are enough."""
    if isinstance(expr, And):
        return all(_holds(child, row) for child in expr.children)
    if isinstance(expr, Or):
        return any(_holds(child, row) for child in expr.children)
    if isinstance(expr, Not):
        return not _holds(expr.child, row)
    if isinstance(expr, In):
        assert isinstance(expr.child, Column)
        return row[expr.child.path[0]] in expr.values
    assert isinstance(expr, Comparison) and isinstance(expr.left, Column) and isinstance(expr.right, Literal)
    value, bound = row[expr.left.path[0]], expr.right.value
    return bool(
        {"=": value == bound, "<": value < bound, "<=": value <= bound, ">": value > bound, ">=": value >= bound}[
            expr.op
        ]
    )


POSITIONS = (
    st.none()
    | st.sets(st.integers(0, 299), max_size=40)
    | st.tuples(st.integers(0, 299), st.integers(0, 299), st.integers(1, 3)).map(lambda r: set(range(*r)))
)


@given(
    num_rows=st.integers(0, 300),
    row_group_size=st.integers(1, 120),
    cuts=st.lists(st.floats(0, 1), max_size=4),
    selected=POSITIONS,
    deleted=POSITIONS,
    predicate=st.none() | _predicates(),
    skips=st.booleans(),
    columns=st.permutations(range(4)),
    width=st.integers(0, 4),
    batch_rows=st.integers(1, 200),
    change_data=st.booleans(),
    storage=st.sampled_from(["u", "i"]),
)
@settings(max_examples=examples(250), deadline=None)
def test_the_wanted_rows_come_once_with_their_positions_and_types(
    num_rows: int,
    row_group_size: int,
    cuts: list[float],
    selected: set[int] | None,
    deleted: set[int] | None,
    predicate: Expr | None,
    skips: bool,
    columns: list[int],
    width: int,
    batch_rows: int,
    change_data: bool,
    storage: str,
) -> None:
    def vector(positions: set[int] | None) -> DeletionVectorDescriptor | None:
        if positions is None:
            return None
        here = sorted(p for p in positions if p < num_rows)
        return msgspec.convert(write_vectors(root, [here], storage=storage)[0], DeletionVectorDescriptor)

    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        stored = [TYPES[i * 7 % 4] for i in range(num_rows)]
        numbers = pa.array(range(num_rows), pa.int64())
        table = pa.table({"a": numbers, "_change_type": pa.array(stored, pa.string()), "s": numbers.cast(pa.string())})
        whole = dataclasses.replace(
            write(root / "f.parquet", table, row_group_size=row_group_size),
            partition_values=("3", "delete"),
            selected=vector(selected),
            deletion_vector=vector(deleted),
            change_data=change_data,
        )
        bounds = sorted({0, whole.size_bytes, *(int(c * whole.size_bytes) for c in cuts)})
        splits = [dataclasses.replace(whole, start=at, length=end - at) for at, end in pairwise(bounds)]
        state = state_of(
            root,
            struct(*(FEED.fields[i] for i in columns[:width])),
            inputs=FEED,
            partition_columns=PARTITIONS,
            predicate=predicate,
            skip=skipping(predicate, PARTITIONS) if predicate is not None and skips else None,
            row_position=True,
            batch_rows=batch_rows,
        )
        got = scan(state, *splits).drop_columns("_file_path").to_pylist()

    wanted = []
    for i in range(num_rows):
        kind = stored[i] if change_data else "delete"
        row: Row = {"a": i, "s": str(i), "_change_type": kind, "_commit_version": 3}
        if (
            (selected is None or i in selected)
            and i not in (deleted or ())
            and (predicate is None or _holds(predicate, row))
        ):
            wanted.append({FEED.names[c]: row[FEED.names[c]] for c in columns[:width]} | {"_row_position": i})
    assert sorted(got, key=lambda row: int(row["_row_position"])) == wanted
