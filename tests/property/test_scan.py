"""A scan with a predicate gives exactly the rows that a full scan, filtered, gives: with any statistics."""

from __future__ import annotations

import datetime as dt
import tempfile
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_pyds.columnar.evaluate import matches
from delta_pyds.columnar.rows import batch_resolver
from delta_pyds.data.read.reader import output_schema, read
from delta_pyds.expr.parse import parse_predicate
from delta_pyds.table.scan.scan import Scan, plan_scan
from delta_pyds.table.snapshot import load_snapshot
from tests.support.sampling import examples
from tests.support.table_builder import TableBuilder

SCHEMA = {
    "id": "long", "f": "double", "d": "decimal(20,2)", "s": "string", "ts": "timestamp", "n": {"x": "integer"},
    "p": "integer",
}  # fmt: skip

EPOCH = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
values = {
    "id": st.integers(-3, 3),
    "f": st.sampled_from([float("nan"), -0.0, 0.0, 1.5, float("inf"), float("-inf"), -2.0]),
    "d": st.sampled_from([Decimal("-1.25"), Decimal("0.00"), Decimal("3.10"), Decimal("123456789012345678.91")]),
    "s": st.sampled_from(["", "a", "ab", "abc" * 20, "é", "\U0001f600", "b%_"]),
    "ts": st.integers(0, 2_000_000).map(lambda us: EPOCH + dt.timedelta(microseconds=us)),
    "n": st.none() | st.fixed_dictionaries({"x": st.none() | st.integers(-2, 2)}),
}
rows = st.lists(st.fixed_dictionaries({k: st.none() | v for k, v in values.items()}), min_size=1, max_size=6)
files = st.tuples(
    rows,
    st.none() | st.integers(0, 2),
    st.sampled_from([True, True, False, "wide", '{"numRecords":6,"minValues":{"f":"NaN"}}', "not json", "null"]),
    st.sets(st.integers(0, 5), max_size=3),
)

OPERANDS = {
    "id": ["-1", "0", "2", "1.5", "CAST('1' AS BIGINT)"],
    "f": ["0", "1.5", "CAST('NaN' AS DOUBLE)", "-1e0", "CAST('Infinity' AS DOUBLE)"],
    "d": ["0", "3.1", "-1.25", "123456789012345678.91", "5e0"],
    "s": ["''", "'a'", "'abb'", "'é'", "'zz'"],
    "ts": ["TIMESTAMP '2024-01-01 00:00:00'", "TIMESTAMP '2024-01-01 00:00:01.000500'", "'2024-01-01 00:00:00.5'"],
    "n.x": ["0", "1", "-2"],
    "p": ["0", "1", "NULL"],
}
columns = st.sampled_from(list(OPERANDS))


@st.composite
def leaf(draw: st.DrawFn) -> str:
    column = draw(columns)
    kind = draw(st.sampled_from(["op", "op", "in", "null", "like", "between"]))
    operand = st.sampled_from(OPERANDS[column])
    if kind == "in":
        return f"{column} {draw(st.sampled_from(['IN', 'NOT IN']))} ({draw(operand)}, {draw(operand)})"
    if kind == "null":
        return f"{column} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    if kind == "like" and column == "s":
        return f"s LIKE '{draw(st.sampled_from(['a%', '%b', 'ab_%', 'abc%', 'é']))}'"
    if kind == "between":
        return f"{column} BETWEEN {draw(operand)} AND {draw(operand)}"
    return f"{column} {draw(st.sampled_from(['=', '<', '<=', '>', '>=', '<>', '<=>']))} {draw(operand)}"


predicates = st.recursive(
    leaf(),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda t: f"NOT ({t})"),
    ),
    max_leaves=4,
)


def table_of(scan: Scan) -> pa.Table:
    batches = [b for file in scan.files() for b in read(scan.state, file)]
    return pa.Table.from_batches(batches, output_schema(scan.state))


def multiset(table: pa.Table) -> list[str]:
    return sorted(repr(r) for r in table.to_pylist())


@settings(deadline=None, max_examples=examples(50))
@given(
    st.lists(files, min_size=1, max_size=4),
    st.lists(predicates, min_size=5, max_size=5),
    st.sampled_from([None, "classic", "v2-json"]),
    st.booleans(),
    st.sampled_from(["none", "name"]),
)
def test_a_scan_with_a_predicate_equals_a_filtered_full_scan(
    content: list[Any], texts: list[str], checkpoint: str | None, struct: bool, mapping: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        features = ["deletionVectors", "v2Checkpoint", "columnMapping"]
        table = TableBuilder(
            folder,
            SCHEMA,
            partition_columns=["p"],
            properties={"delta.columnMapping.mode": mapping},
            features=(features, features),
        )
        table.create()
        for data, partition, stats, deleted in content:
            add = table.write_file(data, {"p": partition}, stats=stats, row_group_size=2)
            table.commit([add])
            # a file with a deletion vector must have the number of its rows
            if stats in (True, "wide") and (deleted := {i for i in deleted if i < len(data)}):
                table.delete(add, deleted)
        if checkpoint:
            sound = all(stats not in ("not json", "null") for _, _, stats, _ in content)
            table.checkpoint(kind=checkpoint, stats_json=not (struct and sound), stats_struct=struct and sound)
        snapshot = load_snapshot(folder)
        full = table_of(plan_scan(snapshot)).combine_chunks()
        for text in texts:
            predicate = parse_predicate(text, snapshot.schema, time_zone="UTC").expr
            (whole,) = full.to_batches() or [pa.RecordBatch.from_pylist([], full.schema)]
            want = full.filter(matches(predicate, batch_resolver(whole), whole.num_rows))
            scan = plan_scan(snapshot, where=text)
            assert multiset(table_of(scan)) == multiset(want), text
            narrow = table_of(plan_scan(snapshot, where=text, columns="s"))
            assert multiset(narrow) == multiset(want.select(["s"])), text
            report = scan.explain()
            assert report.num_files == len(table.active())
            assert report.num_kept == len(list(scan.files()))
