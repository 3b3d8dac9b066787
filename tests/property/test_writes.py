"""Random histories of appends, overwrites and replacements: each version holds the rows of a plain model."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_pyds import verify
from delta_pyds.errors import DeltaError
from delta_pyds.table.snapshot import load_snapshot
from tests.support.sampling import examples
from tests.support.table_writes import read_rows, write_rows

SCHEMA = {"id": "long", "p": "string", "x": "double"}
ROW = st.fixed_dictionaries(
    {
        "id": st.one_of(st.none(), st.integers(-3, 6)),
        "p": st.sampled_from([None, "a", "b", "c/d=e %", "\U0001f600"]),
        "x": st.sampled_from([None, 0.0, -0.0, 1.5, float("nan"), float("inf")]),
    }
)
ROWS = st.lists(ROW, max_size=6)
# with what the model must do for each: the predicate in Python, over one row
PREDICATES: list[tuple[str, Any]] = [
    ("id > 2", lambda r: r["id"] is not None and r["id"] > 2),
    ("id IS NULL OR id < 0", lambda r: r["id"] is None or r["id"] < 0),
    ("p = 'a'", lambda r: r["p"] == "a"),
    ("p IS NULL", lambda r: r["p"] is None),
    ("p IN ('b', 'c/d=e %') AND id = 1", lambda r: r["p"] in ("b", "c/d=e %") and r["id"] == 1),
    ("x > 1", lambda r: r["x"] is not None and (r["x"] > 1 or r["x"] != r["x"])),
    ("x = 0", lambda r: r["x"] == 0),
    ("true", lambda _: True),
]
STEP = st.one_of(
    st.tuples(st.just("append"), st.lists(ROWS, min_size=1, max_size=3), st.none()),
    st.tuples(st.just("overwrite"), st.lists(ROWS, min_size=1, max_size=2), st.none()),
    st.tuples(st.just("dynamic"), st.lists(ROWS, min_size=1, max_size=2), st.none()),
    st.tuples(st.just("replace"), st.lists(ROWS, min_size=1, max_size=2), st.sampled_from(PREDICATES)),
)
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "delta.enableDeletionVectors": st.just("true"),
        "delta.columnMapping.mode": st.sampled_from(["name", "id"]),
        "delta.enableRowTracking": st.just("true"),
        "delta.enableChangeDataFeed": st.just("true"),
        "delta.checkpointPolicy": st.just("v2"),
        "delta.checkpointInterval": st.sampled_from(["1", "2", "3"]),
        "delta.enableInCommitTimestamps": st.just("true"),
        "delta.checkpoint.writeStatsAsJson": st.just("false"),
    },
)


def counted(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(repr(sorted((k, v if v != 0 else 0.0) for k, v in row.items())) for row in rows)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    first=ROWS,
    steps=st.lists(STEP, max_size=5),
    properties=PROPERTIES,
    partition_by=st.sampled_from([None, (("p",),), (("p",), ("id",))]),
)
def test_every_version_holds_the_rows_of_the_model(
    first: list[dict[str, Any]], steps: list[Any], properties: dict[str, str], partition_by: Any
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "t"
        write_rows(path, SCHEMA, first, properties=properties, partition_by=partition_by)
        rows = list(first)
        history = {0: rows}
        columns = [c[0] for c in partition_by or ()]
        for kind, tasks, predicate in steps:
            new = [row for task in tasks for row in task]
            request: dict[str, Any] = {"mode": "append" if kind == "append" else "overwrite"}
            if kind == "append":
                after = rows + new
            elif kind == "replace":
                text, matches = predicate
                request["replace_where"] = text
                if not all(matches(row) for row in new):
                    _refused(path, tasks, request)
                    continue
                after = [row for row in rows if not matches(row)] + new
            elif kind == "dynamic" and columns:
                request["partition_overwrite"] = "dynamic"
                touched = {tuple(row[c] for c in columns) for row in new}
                after = [row for row in rows if tuple(row[c] for c in columns) not in touched] + new
            else:
                after = new
            committed = write_rows(path, SCHEMA, tasks, **request)
            rows = after
            if committed is not None:
                history[committed.version] = rows
            assert counted(read_rows(path)) == counted(rows)
        for version, expected in history.items():
            assert counted(read_rows(path, version)) == counted(expected)
        load_snapshot(str(path)).verify_checksum()
        report = verify(str(path))
        assert report.findings == (), str(report)


def _refused(path: Path, tasks: Any, request: dict[str, Any]) -> None:
    before = load_snapshot(str(path)).version
    try:
        write_rows(path, SCHEMA, tasks, **request)
    except DeltaError as error:
        assert error.code == "DELTA_REPLACE_WHERE_MISMATCH"
    else:
        raise AssertionError("rows outside the predicate were written")
    assert load_snapshot(str(path)).version == before
