"""Commands on tables whose log or files lie: the right rows, or an honest error and the table as it was.

Right is what the command would do to the rows that a read returns. An error is a DeltaError with a sentence, and leaves
no version and no file.
"""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.columnar.schema import arrow_schema
from delta_pyds.commands.row_changes import footer_check
from delta_pyds.commands.row_changes.delete import run_delete
from delta_pyds.commands.row_changes.merge import run_merge
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.resolved import MergeClause
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.row_changes.update import run_update
from delta_pyds.data.read.reader import read
from delta_pyds.errors import ConflictError, DeltaError
from delta_pyds.log.committer import FileSystemCommitter, ProposedCommit
from delta_pyds.table.scan.log_answers import log_answers
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import Snapshot, load_snapshot
from delta_pyds.tasks.scan_state import ScanFile
from tests.support.planned_changes import delete, planned_delete, planned_merge, planned_update
from tests.support.sampling import sampled
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import read_rows, struct, write_rows

Row = dict[str, Any]
SCHEMA = {"id": "long", "v": "string", "p": "integer"}
HERE = Place("process", "a test says so")
IDS = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-version",
}
TABLES: dict[str, dict[str, str]] = {
    "vectors": {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
    "rewriting": {"delta.enableChangeDataFeed": "true"},
    "ids": {"delta.enableDeletionVectors": "true", **IDS},
    "ids, rewriting": IDS,
    "ids that have no columns": {"delta.enableRowTracking": "true"},
}


@pytest.mark.parametrize("properties", [{}, {"delta.enableDeletionVectors": "true"}], ids=["rewritten", "marked"])
def test_rows_that_move_need_columns_that_keep_their_ids(tmp_path: Path, properties: dict[str, str]) -> None:
    table = TableBuilder(tmp_path / "t", SCHEMA, properties={**properties, "delta.enableRowTracking": "true"})
    table.create()
    table.append([{"id": n, "v": "a", "p": 0} for n in range(3)])
    version = load_snapshot(table.path).version
    with pytest.raises(DeltaError) as caught:
        plan = planned_update(load_snapshot(table.path), "id = 1", {"v": "'b'"}, CommandOptions())
        run_update(plan, HERE)
    assert caught.value.code == "DELTA_MATERIALIZED_ROW_TRACKING_COLUMN_NAME_MISSING"
    assert load_snapshot(table.path).version == version


# --- lies: each changes the ``add`` of the second of three files, or the file itself. Not among them are sound bounds
# of other rows: skipping believes them, but where a merge looks for its keys.


def _stats(**said: Any) -> Callable[[Row, Path], None]:
    def lie(add: Row, _: Path) -> None:
        add["stats"] = json.dumps({**json.loads(add["stats"]), **said})

    return lie


def _bounds_swapped(add: Row, _: Path) -> None:
    stats = json.loads(add["stats"])
    stats["minValues"], stats["maxValues"] = stats["maxValues"], stats["minValues"]
    add["stats"] = json.dumps(stats)


def _nulls_alone(add: Row, _: Path) -> None:
    stats = json.loads(add["stats"])
    add["stats"] = json.dumps({**stats, "nullCount": dict.fromkeys(SCHEMA, stats["numRecords"])})


def _add(**said: Any) -> Callable[[Row, Path], None]:
    return lambda add, _: add.update(said)


def _vector(**said: Any) -> Callable[[Row, Path], None]:
    def lie(add: Row, _: Path) -> None:
        if "deletionVector" in add:
            add["deletionVector"].update(said)

    return lie


def _without(key: str) -> Callable[[Row, Path], None]:
    def lie(add: Row, _: Path) -> None:
        add.pop(key, None)

    return lie


def _file(change: Callable[[Path], object]) -> Callable[[Row, Path], None]:
    def lie(_: Row, file: Path) -> None:
        change(file)

    return lie


def _vector_files(change: Callable[[Path], object]) -> Callable[[Row, Path], None]:
    def lie(_: Row, file: Path) -> None:
        for vector in file.parent.parent.glob("deletion_vector_*"):
            change(vector)

    return lie


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _pages(file: Path) -> None:
    content = bytearray(file.read_bytes())
    for at in range(4, 40):
        content[at] ^= 0xFF
    file.write_bytes(bytes(content))


def _of_other_rows(rows: list[Row], schema: pa.Schema) -> Callable[[Row, Path], None]:
    return _file(lambda file: pq.write_table(pa.Table.from_pylist(rows, schema), file))


def _as_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


LIES: dict[str, Callable[[Row, Path], None]] = {
    "nothing": lambda _add, _file: None,
    "no statistics": _without("stats"),
    "more rows than there are": _stats(numRecords=11),
    "fewer rows than there are": _stats(numRecords=9),
    "one row": _stats(numRecords=1),
    "no row": _stats(numRecords=0),
    "bounds that are swapped": _bounds_swapped,
    "nulls alone beside bounds": _nulls_alone,
    "a negative number of rows": _stats(numRecords=-5),
    "more rows than memory": _stats(numRecords=2**62),
    "a text for a number of rows": _stats(numRecords="10"),
    "a fraction of rows": _stats(numRecords=9.5),
    "a list for a number of rows": _stats(numRecords=[10]),
    "no number of rows": _stats(numRecords=None),
    "bounds of other types": _stats(minValues={"id": "x", "v": 7}, maxValues={"id": [], "v": {}}),
    "bounds beyond numbers": _stats(minValues={"id": 10**40}, maxValues={"id": 1e300}),
    "bounds that are not an object": _stats(minValues=[1], maxValues="z", nullCount=3),
    "invalid counts of nulls": _stats(nullCount={"id": "many", "v": -1}),
    "statistics that are not JSON": _add(stats='{"numRecords": 10'),
    "statistics that are a list": _add(stats="[1, 2, 3]"),
    "statistics that nest": _add(stats="[" * 5000),
    "another size": _add(size=1),
    "a huge size": _add(size=2**62),
    "a negative size": _add(size=-1),
    "a partition that is not a number": _add(partitionValues={"p": "abc"}),
    "a partition of another name": _add(partitionValues={"q": "1"}),
    "no partition": _add(partitionValues={}),
    "a partition beyond numbers": _add(partitionValues={"p": "99999999999999999999"}),
    "a path that leads away": _add(path="../other/part.parquet"),
    "a path that leads away, encoded": _add(path="%2e%2e/other/part.parquet"),
    "a path of another store": _add(path="s3://bucket/part.parquet"),
    "an absolute path": _add(path="/etc/hostname"),
    "an empty path": _add(path=""),
    "a file that is not there": _file(lambda file: file.unlink()),
    "a file that is cut": _file(_cut),
    "an empty file": _file(lambda file: file.write_bytes(b"")),
    "a file of another kind": _file(lambda file: file.write_text("PAR1" + "x" * 2000 + "PAR1")),
    "a file whose pages are damaged": _file(_pages),
    "a directory for a file": _file(_as_directory),
    "a file without rows": _of_other_rows([], pa.schema([("id", pa.int64()), ("v", pa.string())])),
    "a file without a column": _of_other_rows([{"v": f"v{n}"} for n in range(10)], pa.schema([("v", pa.string())])),
    "a file of other types": _of_other_rows(
        [{"id": f"{n}", "v": n} for n in range(10)], pa.schema([("id", pa.string()), ("v", pa.int64())])
    ),
    "a file of nested columns": _of_other_rows(
        [{"id": {"x": n}, "v": [n]} for n in range(10)],
        pa.schema([("id", pa.struct([("x", pa.int64())])), ("v", pa.list_(pa.int64()))]),
    ),
    "a vector of more rows": _vector(cardinality=5),
    "a vector of fewer rows": _vector(cardinality=1),
    "a vector of no rows": _vector(cardinality=0),
    "a vector of a negative number": _vector(cardinality=-3),
    "a vector of more rows than memory": _vector(cardinality=2**62),
    "a vector of another size": _vector(sizeInBytes=7),
    "a vector of a huge size": _vector(sizeInBytes=2**31 - 1),
    "a vector elsewhere in its file": _vector(offset=2),
    "a vector after the end of its file": _vector(offset=2**40),
    "a vector of another kind": _vector(storageType="x"),
    "a vector of another store": _vector(storageType="p", pathOrInlineDv="s3://bucket/vector.bin"),
    "a vector that leads away": _vector(storageType="p", pathOrInlineDv="file:///etc/hostname"),
    "a vector that is not there": _vector_files(lambda file: file.unlink()),
    "a vector that is cut": _vector_files(_cut),
    "row ids that are missing": _without("baseRowId"),
    "row ids that are negative": _add(baseRowId=-100),
    "row ids beyond numbers": _add(baseRowId=2**63 - 3),
    "commit versions that are missing": _without("defaultRowCommitVersion"),
}


# --- commands, each with what it does to rows


def _delete(path: Path, condition: str | None) -> None:
    run_delete(planned_delete(load_snapshot(str(path)), condition, CommandOptions()), HERE)


def _update(path: Path, condition: str | None) -> None:
    run_update(planned_update(load_snapshot(str(path)), condition, {"v": "'new'"}, CommandOptions()), HERE)


_SOURCE = [{"id": n, "v": "merged", "p": 1} for n in (3, 12, 15, 99)]


def _merge(path: Path, *clauses: MergeClause[str]) -> None:
    columns = struct(SCHEMA)
    rows = pa.Table.from_pylist(_SOURCE, arrow_schema(columns))
    parameters = {"predicate": '["(id = id)"]'}
    plan = planned_merge(
        load_snapshot(str(path)), "t.id = s.id", clauses, rows, columns, CommandOptions(), parameters=parameters
    )
    run_merge(plan, HERE)


def _merged(rows: list[Row]) -> list[Row]:
    new = {row["id"]: row for row in _SOURCE}
    had = {row["id"] for row in rows}
    return [new.get(row["id"], row) for row in rows] + [row for key, row in new.items() if key not in had]


def _of(row: Row, remainder: int) -> bool:
    return row["id"] is not None and row["id"] % 3 == remainder


COMMANDS: dict[str, tuple[Callable[[Path], None], Callable[[list[Row]], list[Row]]]] = {
    "delete some": (lambda path: _delete(path, "id % 3 = 1"), lambda rows: [r for r in rows if not _of(r, 1)]),
    "delete all that it reads": (lambda path: _delete(path, "id >= 0 OR id IS NULL"), lambda _: []),
    "delete a partition": (lambda path: _delete(path, "p = 1"), lambda rows: [r for r in rows if r["p"] != 1]),
    "delete all": (lambda path: _delete(path, None), lambda _: []),
    "update some": (
        lambda path: _update(path, "id % 3 = 1"),
        lambda rows: [{**r, "v": "new"} if _of(r, 1) else r for r in rows],
    ),
    "update all": (lambda path: _update(path, None), lambda rows: [{**r, "v": "new"} for r in rows]),
    "merge": (
        lambda path: _merge(path, MergeClause("matched", "update"), MergeClause("not_matched", "insert")),
        _merged,
    ),
    "merge by source": (
        lambda path: _merge(path, MergeClause("not_matched_by_source", "delete")),
        lambda rows: [r for r in rows if r["id"] in {s["id"] for s in _SOURCE}],
    ),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Of each kind: three files of ten rows in partitions of their own, two rows of the second deleted."""
    made = {}
    for kind, properties in TABLES.items():
        builder = TableBuilder(tmp_path_factory.mktemp("sound") / "t", SCHEMA, ["p"], properties)
        builder.create()
        tracked = "delta.enableRowTracking" in properties
        for p in range(3):
            rows = [{"id": 10 * p + n, "v": f"v{n}", "p": p} for n in range(10)]
            builder.append(rows, **({"baseRowId": 10 * p, "defaultRowCommitVersion": p + 1} if tracked else {}))
        if "delta.enableDeletionVectors" in properties:
            builder.delete(builder.active()[1], [0, 4])
        made[kind] = builder.path
    return made


def _lying(sound: Path, path: Path, lie: Callable[[Row, Path], None]) -> None:
    shutil.copytree(sound, path)
    logs = sorted((path / "_delta_log").glob("*.json"))
    for log in logs[::-1]:
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        found = [line["add"] for line in lines if line.get("add", {}).get("partitionValues") == {"p": "1"}]
        if found:
            file = path / found[0]["path"]
            lie(found[0], file)
            log.write_text("".join(json.dumps(line) + "\n" for line in lines))
            return
    raise AssertionError("no file to lie about")


def _rows(path: Path) -> list[str] | None:
    try:
        return _shown(read_rows(path))
    except DeltaError:
        return None


def _shown(rows: list[Row]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


def _files(path: Path) -> Mapping[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


_STATISTICS = ["no row", "bounds that are swapped", "nulls alone beside bounds"]


@pytest.mark.parametrize("kind", ["vectors", "rewriting"])
@pytest.mark.parametrize("lie", _STATISTICS)
def test_statistics_that_contradict_themselves_hide_no_row(
    sound: dict[str, Path], tmp_path: Path, kind: str, lie: str
) -> None:
    path = tmp_path / "t"
    _lying(sound[kind], path, LIES[lie])
    snapshot = load_snapshot(str(path))
    for where in ("id = 12", "id IN (12, 999)", "id BETWEEN 11 AND 13", "v LIKE 'v2%' AND p = 1", "id IS NOT NULL"):
        rows = [row for row in read_rows(path) if row["id"] == 12]
        found = [row for file in plan_scan(snapshot, where=where).files() for row in _read(snapshot, where, file)]
        assert [row for row in found if row["id"] == 12] == rows != [], where
    assert log_answers(snapshot, [("min", "id"), ("max", "id")]) is None
    _update(path, "id = 12")
    assert [row["v"] for row in read_rows(path) if row["id"] == 12] == ["new"]
    _delete(path, "id = 12")
    assert 12 not in {row["id"] for row in read_rows(path)}


def _read(snapshot: Snapshot, where: str, file: ScanFile) -> list[Row]:
    return [row for batch in read(plan_scan(snapshot, where=where).state, file) for row in batch.to_pylist()]


_NARROW = {"minValues": {"id": 16}, "maxValues": {"id": 17}, "nullCount": {"id": 0}}


@pytest.mark.parametrize("kind", ["vectors", "rewriting"])
@pytest.mark.parametrize(
    "clauses",
    [
        (MergeClause("matched", "update"), MergeClause("not_matched", "insert")),
        (MergeClause("not_matched", "insert"),),
        (MergeClause("matched", "delete"),),
    ],
    ids=["upsert", "insert", "delete"],
)
def test_a_merge_finds_its_keys_whatever_the_log_says_of_a_file(
    sound: dict[str, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str, clauses: Any
) -> None:
    """The reference prunes no file by keys: a row that is not found would be inserted a second time."""
    path = tmp_path / "t"
    _lying(sound[kind], path, _stats(**_NARROW))
    before = read_rows(path)
    _merge(path, *clauses)
    names = {clause.kind + clause.action for clause in clauses}
    expected = _merged(before) if "not_matchedinsert" in names else before
    if "matchedupdate" not in names:
        expected = before + [row for row in expected if row["id"] == 99]
    if "matcheddelete" in names:
        expected = [row for row in expected if row["id"] not in (3, 12, 15)]
    assert _shown(read_rows(path)) == _shown(expected)
    assert "contradicts the statistics in the log" in caplog.text


def test_the_footers_of_a_table_are_read_once(
    sound: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merges one after the other, as of a stream, look only at what is new."""
    path = tmp_path / "t"
    shutil.copytree(sound["vectors"], path)
    opened: list[str] = []
    inner = footer_check.open_data_file

    def opening(opens: Any, state: Any, file: ScanFile) -> Any:
        opened.append(file.path)
        return inner(opens, state, file)

    monkeypatch.setattr(footer_check, "open_data_file", opening)
    for _ in range(3):
        # of the keys 3, 12, 15 and 99 none may be in the third file, nor in the files that the merge writes
        _merge(path, MergeClause("matched", "update", condition="t.id = 3"))
    assert len([file for file in opened if "/p=2/" in file]) == 1
    assert len(opened) == len(set(opened))


def test_a_path_that_is_live_twice_is_not_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A winner's change of one entry must not be taken for one of the other entry, or of another file."""
    path, kinds = tmp_path / "t", {"id": "long"}
    table = TableBuilder(path, kinds, properties={"delta.enableDeletionVectors": "true"})
    table.create()
    [add] = table.append([{"id": n} for n in range(10)])
    table.commit(table.delete_rows(add, range(5, 10)))
    table.commit([action for action in table.delete_rows(add, range(5)) if "add" in action])
    assert sorted(row["id"] for row in read_rows(path)) == list(range(10))
    winners = [lambda: write_rows(path, kinds, [{"id": 20}, {"id": 21}]), lambda: delete(path, "id = 21")]
    propose = FileSystemCommitter.propose

    def losing(committer: FileSystemCommitter, commit: ProposedCommit) -> bool:
        if b"id >= 8" in commit.data and winners:
            winners.pop(0)()
        return propose(committer, commit)

    plan = planned_delete(load_snapshot(str(path)), "id >= 8", CommandOptions())
    monkeypatch.setattr(FileSystemCommitter, "propose", losing)
    with pytest.raises(ConflictError):
        run_delete(plan, HERE)
    assert sorted(row["id"] for row in read_rows(path)) == [*range(10), 20, 21]


@pytest.mark.parametrize(("kind", "lie"), sampled([(kind, lie) for kind in TABLES for lie in LIES], one_in=12))
def test_right_rows_or_an_honest_error(sound: dict[str, Path], tmp_path: Path, kind: str, lie: str) -> None:
    _lying(sound[kind], tmp_path / "lying", LIES[lie])
    readable = _rows(tmp_path / "lying")
    before = None if readable is None else read_rows(tmp_path / "lying")
    for name, (run, expected) in COMMANDS.items():
        path = tmp_path / "t"
        shutil.copytree(tmp_path / "lying", path)
        files = _files(path)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                run(path)
            except DeltaError as error:
                assert len(error.message.split()) > 3, f"{name}: {error}"
                assert _files(path) == files, f"{name}: after an error the table is another one"
            else:
                if before is not None:
                    assert _rows(path) == _shown(expected(before)), name
                else:
                    # the file that cannot be read is as it was, or has left: nothing was asked of it that it cannot say
                    assert _rows(path) is None or name.startswith("delete "), name
        shutil.rmtree(path)
