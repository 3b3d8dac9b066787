"""Skipping is at least as good as the reference's, and loses no row: generated predicates over all types.

Invariant: for each predicate we keep at most as many files as the reference keeps, and both return the rows that a
scan of all files finds. Where the documented exceptions of ``predicates`` apply, the reference is asked for as much as
we want to know, and that they do apply somewhere is asserted too.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import delta_pyds
from tests.interop.engines import Engines
from tests.interop.predicates import Predicate, generate, near
from tests.support.table_writes import read_rows

COUNT = int(os.environ.get("INTEROP_PREDICATES", "60"))
_FILES, _ROWS_OF_FILE, _BATCH = 24, 12, 30
_K, _J = "CAST(id DIV 12 AS INT)", "CAST(id % 12 AS INT)"
_FLOAT = (
    "CASE WHEN {k} = 11 OR {k} % 6 = 1 AND {j} = 4 THEN CAST('NaN' AS {t}) WHEN {k} = 12 THEN CAST('-0.0' AS {t}) "
    "WHEN {k} = 13 THEN CAST(0 AS {t}) WHEN {k} = 9 AND {j} = 0 THEN CAST('Infinity' AS {t}) "
    "WHEN {k} = 10 AND {j} = 1 THEN CAST('-Infinity' AS {t}) ELSE CAST({k} * 2.5 - 30 + {j} / 8 AS {t}) END"
)
_LONG = (
    "CASE WHEN {k} = 5 AND {j} = 3 THEN 9223372036854775807L WHEN {k} = 6 AND {j} = 3 "
    "THEN -9223372036854775807L - 1L ELSE {k} * 100000000000 - 1200000000000 + {j} END"
)
_TEXT = (
    "concat(element_at(array('a', 'b', 'é', '😀', '\uffff', 'zz', ''), {k} % 7 + 1), "
    "CASE {k} % 3 WHEN 0 THEN '' WHEN 1 THEN repeat('x', 40) ELSE repeat('😀', 33) END, char(97 + {j}))"
)
_DATA: tuple[tuple[str, str, str], ...] = (
    # name, kind, value from the number of the file and of the row in it
    ("y", "byte", "CAST({k} * 9 - 110 + {j} AS TINYINT)"),
    ("h", "short", "CAST({k} * 100 - 1200 + {j} * 7 AS SMALLINT)"),
    ("i", "integer", "({k} % 8) * 1000 + {j} * 10"),
    ("l", "long", _LONG),
    ("m", "decimal", "CAST({k} * 123456789012345.6789 - {j} AS DECIMAL(24, 4))"),
    ("n", "small decimal", "CAST({k} * 10.25 + {j} / 4 - 100 AS DECIMAL(9, 2))"),
    ("f", "float", _FLOAT.replace("{t}", "FLOAT")),
    ("d", "double", _FLOAT.replace("{t}", "DOUBLE")),
    ("s", "string", _TEXT),
    ("a", "date", "date_add(DATE '2020-01-01', {k} * 10 + {j} - 100)"),
    ("t", "timestamp", "TIMESTAMP '1969-12-25 00:00:00.123456' + make_dt_interval({k}, {j}, 0, {j} * 0.000377)"),
    ("o", "timestamp_ntz", "TIMESTAMP_NTZ '2020-01-01 00:00:00.9995' + make_dt_interval({k}, {j}, 0, {j} * 0.000377)"),
    ("b", "boolean", "CASE {k} % 3 WHEN 0 THEN true WHEN 1 THEN false ELSE {j} % 2 = 0 END"),
    ("x", "binary", "CAST(concat('b', {k}) AS BINARY)"),
)  # fmt: skip
_INNER = (
    ("st.i", "integer", "{k} * 10 + {j}"),
    ("st.s", "string", _TEXT),
    ("st.z.d", "double", _FLOAT.replace("{t}", "DOUBLE")),
    ("st.z.a", "date", "date_add(DATE '1999-12-31', {k})"),
)
_LATE = (("late", "integer", "{k} * 10 + {j}"), ("later", "string", _TEXT))
_PARTITION = (
    ("p", "integer", "{k} % 4"),
    ("q", "string", "element_at(array('a', 'ü x=1', NULL), {k} % 3 + 1)"),
    ("r", "date", "date_add(DATE '2020-01-01', CAST({k} DIV 6 AS INT))"),
)
_FLOATING = [name for name, kind, _ in (*_DATA, *_INNER) if kind in ("float", "double")]
_KINDS = {name: kind for name, kind, _ in (*_DATA, *_INNER, *_LATE, *_PARTITION)}
# statistics of id, of the data columns and of what is nested; none of the last two
_PROPERTIES = {"delta.dataSkippingNumIndexedCols": str(1 + len(_DATA) + len(_INNER))}
_LAYOUTS = {
    "every type": _PROPERTIES,
    "deletion vectors, column mapping and a checkpoint": {
        **_PROPERTIES,
        "delta.enableDeletionVectors": "true",
        "delta.columnMapping.mode": "name",
    },
}
_DIRECTIONS = ("reference -> us", "us -> reference")


def _value(number: int, value: str) -> str:
    """Files of even numbers have some nulls, and among the last ones each column is null all through in one."""
    null = "({k} > 15 AND {k} % 8 = " + f"{number % 8} OR {{k}} % 2 = 0 AND (id + {number}) % 11 = 0)"
    return f"IF({null}, NULL, {value})".replace("{k}", _K).replace("{j}", _J)


def _select() -> list[str]:
    inner = [_value(n, value) for n, (_, _, value) in enumerate(_INNER)]
    struct = f"named_struct('i', {inner[0]}, 's', {inner[1]}, 'z', named_struct('d', {inner[2]}, 'a', {inner[3]}))"
    return [
        "id",
        *(f"{_value(n, value)} AS {name}" for n, (name, _, value) in enumerate(_DATA)),
        f"IF({_K} = 20 OR {_K} % 5 = 4 AND {_J} % 2 = 0, NULL, {struct}) AS st",
        *(f"{_value(n + 3, value)} AS {name}" for n, (name, _, value) in enumerate(_LATE)),
        *(f"{value.replace('{k}', _K)} AS {name}" for name, _, value in _PARTITION),
    ]


def _make(engines: Engines, path: Path, direction: str, layout: str) -> None:
    """One file for each number of a file, in a partition of its own or with others."""
    properties, partition = _LAYOUTS[layout], [name for name, *_ in _PARTITION]

    def rows_of(first: int, end: int) -> Any:
        return engines.spark.range(first * _ROWS_OF_FILE, end * _ROWS_OF_FILE, 1, end - first).selectExpr(*_select())

    by_us = direction == "us -> reference"
    if by_us:
        delta_pyds.write(rows_of(0, 16), str(path), partition_by=partition, properties=properties)
    else:
        writer = rows_of(0, 16).write.format("delta").partitionBy(*partition)
        writer.options(**properties).save(str(path))
    if "checkpoint" in layout:
        # some values that were bounds are no longer there, and the bounds are
        engines.sql(f"DELETE FROM delta.`{path}` WHERE id % 12 IN (0, 5, 11) AND id % 5 < 3").collect()
        if by_us:
            delta_pyds.checkpoint(str(path))
        else:
            engines.checkpoint_as_reference(path)
    if by_us:
        engines.append(rows_of(16, _FILES), path)
        return
    engines.append_as_reference(rows_of(16, 21), path)
    engines.spark.conf.set("spark.databricks.delta.stats.collect", "false")
    try:
        engines.append_as_reference(rows_of(21, _FILES), path)
    finally:
        engines.spark.conf.unset("spark.databricks.delta.stats.collect")


def _columns(path: Path) -> dict[str, tuple[str, list[Any]]]:
    """Of each column its kind and values to compare it with: those that it holds, and those beside them."""
    rows = sorted(read_rows(path), key=lambda row: row["id"])
    columns: dict[str, tuple[str, list[Any]]] = {"id": ("long", [row["id"] for row in rows]), "st": ("struct", [])}
    for name, kind in _KINDS.items():
        held = [v for v in (_dig(row, name.split(".")) for row in rows) if v is not None]
        # as text: a set knows neither NaN nor -0.0
        columns[name] = kind, list({repr(v): v for one in held for v in near(one, kind)}.values())
    return columns


def _dig(row: Any, path: Sequence[str]) -> Any:
    for name in path:
        row = None if row is None else row[name]
    return row


class _Reference:
    """The table through the reference, many predicates at a time."""

    def __init__(self, engines: Engines, path: Path) -> None:
        self._engines = engines
        self._df = engines.reference(path)

    def scan(self, texts: Sequence[str]) -> tuple[list[int], list[list[int]]]:
        """Of each predicate how many files are kept, and the ids of the rows."""
        parts = [self._df.where(text).selectExpr(f"{n} AS n", "id") for n, text in enumerate(texts)]
        union = reduce(lambda a, b: a.union(b), parts)
        leaves = union._jdf.queryExecution().optimizedPlan().collectLeaves()
        if leaves.size() == len(texts):
            kept = [len(leaves.apply(n).relation().location().inputFiles()) for n in range(len(texts))]
        else:
            # of a predicate that is never true nothing is left in the plan
            kept = [len(part.inputFiles()) for part in parts]
        found: list[list[int]] = [[] for _ in texts]
        for n, number in union.collect():
            found[n].append(number)
        return kept, [sorted(ids) for ids in found]

    def kept(self, text: str) -> int:
        return len(self._df.where(text).inputFiles())

    def rows_of_all_files(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of the rows for which each predicate is true, by reading all of them."""
        row = self._df.selectExpr(*(f"collect_list(IF({text}, id, NULL)) AS c{n}" for n, text in enumerate(texts)))
        return [sorted(ids) for ids in row.collect()[0]]


@pytest.mark.parametrize(
    "layout", [pytest.param(name, marks=pytest.mark.also_bounded if "every" in name else ()) for name in _LAYOUTS]
)
@pytest.mark.parametrize(
    "direction",
    [pytest.param(d, marks=pytest.mark.cell("data skipping", d, f"{2 * COUNT} predicates")) for d in _DIRECTIONS],
)
def test_no_more_files_than_the_reference_and_no_row_less(
    engines: Engines, tmp_path: Path, direction: str, layout: str
) -> None:
    path = tmp_path / "t"
    _make(engines, path, direction, layout)
    num_files = delta_pyds.explain(str(path)).num_files
    assert num_files == _FILES
    predicates = generate(_columns(path), COUNT, f"{direction}/{layout}")
    reference = _Reference(engines, path)
    zeros = {row["id"] for row in read_rows(path) for name in _FLOATING if _dig(row, name.split(".")) == 0}
    wrong, exceptions, ours_kept, theirs_kept = [], [], 0, 0
    for start in range(0, len(predicates), _BATCH):
        batch = predicates[start : start + _BATCH]
        texts = [p.text for p in batch]
        kept, rows = reference.scan(texts)
        for predicate, theirs, found, right in zip(batch, kept, rows, reference.rows_of_all_files(texts), strict=True):
            ours = delta_pyds.explain(str(path), where=predicate.text).num_kept
            ours_kept += ours
            theirs_kept += theirs
            if not _found_but_zeros(found, right, zeros):
                wrong.append(f"the reference returns {len(found)} rows of {len(right)}: {predicate.text}")
            read = sorted(row["id"] for row in read_rows(path, where=predicate.text, columns=["id"]))
            if read != right:
                wrong.append(f"we return {len(read)} rows of {len(right)}: {predicate.text}")
            if ours > theirs and predicate.is_exception and ours <= reference.kept(predicate.relaxed):
                exceptions.append(predicate)
            elif ours > theirs:
                wrong.append(f"we keep {ours} files, the reference {theirs}: {predicate.text}")
    assert not wrong, f"{len(wrong)} of {len(predicates)} predicates:\n" + "\n".join(wrong)
    assert exceptions, "none of the documented exceptions was met: are they still needed?"
    assert ours_kept < num_files * len(predicates) * 0.8, "the predicates rule out too little to say anything."
    print(f"{len(predicates)} predicates, kept {ours_kept} and {theirs_kept} files, {len(exceptions)} exceptions")
    _same_through_spark(engines, path, predicates[:: max(1, COUNT // 6)])
    engines.assert_sound(path)


def _found_but_zeros(found: Sequence[int], right: Sequence[int], zeros: set[int]) -> bool:
    """Whether the reference returns the rows. It may lose zeros, as ``test_the_reference_loses_zeros`` shows."""
    return set(found) <= set(right) and set(right) - set(found) <= zeros


def _same_through_spark(engines: Engines, path: Path, predicates: Sequence[Predicate]) -> None:
    """Both our readers on some of them: the comparison above is of the core."""
    expected = _Reference(engines, path).rows_of_all_files([p.text for p in predicates])
    for predicate, ids in zip(predicates, expected, strict=True):
        by_source = engines.ours(path, where=predicate.text).select("id")
        by_spark = delta_pyds.read(engines.spark, str(path), where=predicate.text).select("id")
        for df in (by_source, by_spark):
            assert sorted(row.id for row in df.collect()) == ids, predicate.text


@pytest.mark.cell("data skipping", "deltalake -> us")
def test_why_a_floating_maximum_rules_nothing_out(engines: Engines, tmp_path: Path) -> None:
    """``deltalake`` leaves NaN, Spark's greatest value, out of the maximum. We find it; the reference does not."""
    path = tmp_path / "t"
    deltalake.write_deltalake(path, pa.table({"id": [1, 2, 3], "f": [1.0, float("nan"), None]}))
    where = "f > 5"
    assert delta_pyds.explain(str(path), where=where).num_kept == 1
    assert [row["id"] for row in read_rows(path, where=where)] == [2]
    assert _Reference(engines, path).rows_of_all_files([where]) == [[2]]
    assert engines.reference(path).where(where).inputFiles() == [], "the reference finds it: is the exception needed?"


@pytest.mark.also_bounded
@pytest.mark.cell("data skipping", "reference -> us")
def test_the_reference_loses_zeros(engines: Engines, tmp_path: Path) -> None:
    """Its reader takes -0.0 and 0.0 for two values when it rules row groups out, in its own files too. We do not."""
    path = tmp_path / "t"
    rows = engines.spark.range(0, 48, 1, 2).selectExpr("id", "IF(id < 24, -0.0D, 0.0D) AS d")
    engines.append_as_reference(rows, path)
    assert len(engines.reference(path).where("d = 0").collect()) < 48, "it finds them: is the exception needed?"
    for df in (engines.ours(path, where="d = 0"), delta_pyds.read(engines.spark, str(path), where="d = 0")):
        assert df.count() == 48
