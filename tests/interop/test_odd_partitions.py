"""`deltalake` changes our tables whose partition values need escapes: it finds a file again by the text of its path.

Protocol: "Add File and Remove File" (the path is URI-encoded), "Partition Value Serialization".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import delta_pyds
from tests.interop.engines import Engines, adds, as_text, core_rows, rows
from tests.interop.test_deltalake import their_rows

# Every printable character that is neither a letter nor a digit, and what escapes, directories and encodings know. Of
# the tilde see below.
_VALUES: tuple[str | None, ...] = (
    None, " ", "  a ", "a b", "R&D", "a+b", "a=b", "a,b", "a@b", "a!b", "a$b", "a(b)", "a;b", "a'b", "a*b",
    "a:b", "#", "a?b", "a/b", "a\\b", 'a"b', "a<b>", "a[b]", "a{b}", "a^b", "a`b", "a|b", "%", "a%", "a%b", "a%20b",
    "a%2Fb", "a%2fb", ".", "..", "a..b", "\n", "a\nb", "\x01", "\x7f", "café", "cafe\u0301", "日本", "\U0001f600",
    "null", "__HIVE_DEFAULT_PARTITION__x",
)  # fmt: skip
_OF_EACH = 6


def _rows(ids: Iterable[int], shift: int = 0) -> pa.Table:
    """Row ``id`` is in the partition ``id // _OF_EACH``."""
    numbers = list(ids)
    return pa.table({
        "id": pa.array(numbers, pa.int64()),
        "v": pa.array([i + shift for i in numbers], pa.int64()),
        "p": pa.array([_VALUES[i // _OF_EACH] for i in numbers], pa.string()),
    })  # fmt: skip


def _ids(*places: int) -> list[int]:
    """The rows that have these places in their partitions."""
    return [part * _OF_EACH + place for part in range(len(_VALUES)) for place in places]


def _update(path: Path) -> None:
    deltalake.DeltaTable(path).update({"v": "v + 1000"}, predicate=f"id % {_OF_EACH} = 0")


def _delete(path: Path) -> None:
    deltalake.DeltaTable(path).delete(f"id % {_OF_EACH} = 1")


def _merge(path: Path) -> None:
    source = _rows(_ids(2, 5), 2000)
    merge = deltalake.DeltaTable(path).merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


def _overwrite(path: Path) -> None:
    """Row 3 of each partition, by a predicate on rows."""
    deltalake.write_deltalake(path, _rows(_ids(3), 3000), mode="overwrite", predicate=f"id % {_OF_EACH} = 3")


def _optimize(path: Path) -> None:
    deltalake.DeltaTable(path).optimize.compact()


def _overwrite_all(path: Path) -> None:
    deltalake.write_deltalake(path, _rows(_ids(0, 4), 4000), mode="overwrite")


_COMMANDS = (_update, _delete, _merge, _overwrite, _optimize, _overwrite_all)


def _after(done: Callable[[Path], None], before: dict[int, int]) -> dict[int, int]:
    """``v`` by id after a command, by the command's own meaning."""
    if done is _update:
        return {i: v + 1000 if i % _OF_EACH == 0 else v for i, v in before.items()}
    if done is _delete:
        return {i: v for i, v in before.items() if i % _OF_EACH != 1}
    if done is _merge:
        return before | {i: i + 2000 for i in _ids(2, 5)}
    if done is _overwrite:
        return before | {i: i + 3000 for i in _ids(3)}
    return {i: i + 4000 for i in _ids(0, 4)} if done is _overwrite_all else before


@pytest.mark.also_bounded
@pytest.mark.cell("odd partition values", "us -> deltalake")
def test_deltalake_changes_our_table_with_odd_partition_values(engines: Engines, tmp_path: Path) -> None:
    path = tmp_path / "t"
    expected = {i: i for i in _ids(0, 1, 2, 3, 4)}
    for places in ((0, 1, 2), (3, 4)):
        frame = engines.spark.createDataFrame(_rows(_ids(*places)))
        delta_pyds.write(frame, str(path), mode="append", partition_by="p")
    for command in _COMMANDS:
        command(path)
        expected = _after(command, expected)
        wanted = as_text(_rows(expected).set_column(1, "v", pa.array(expected.values(), pa.int64())))
        assert core_rows(path) == wanted, f"we, after {command.__name__}"
        assert rows(engines.reference(path)) == wanted, f"the reference, after {command.__name__}"
        assert their_rows(path) == wanted, f"deltalake, after {command.__name__}"
    assert rows(delta_pyds.read(engines.spark, str(path))) == wanted
    _sound(path)


@pytest.mark.cell("odd partition values", "us -> deltalake")
def test_deltalake_compacts_no_partition_with_a_tilde_in_its_own_table_either(engines: Engines, tmp_path: Path) -> None:
    """It escapes the tilde where it plans a compaction, and then finds no such file. All else it does."""
    tables = tmp_path / "ours", tmp_path / "theirs"
    parts = [pa.table({"id": [i, i + 1], "v": [0, 0], "p": ["a~b", "a~b"]}) for i in (0, 2)]
    for part in parts:
        delta_pyds.write(engines.spark.createDataFrame(part), str(tables[0]), mode="append", partition_by="p")
        deltalake.write_deltalake(tables[1], part, mode="append", partition_by=["p"])
    wanted = as_text(pa.table({"id": [0, 1, 3], "v": [9, 0, 0], "p": ["a~b"] * 3}))
    for path in tables:
        deltalake.DeltaTable(path).update({"v": "9"}, predicate="id = 0")
        deltalake.DeltaTable(path).delete("id = 2")
        with pytest.raises(deltalake.exceptions.DeltaError, match=r"missing files.*p=a%7Eb"):
            deltalake.DeltaTable(path).optimize.compact()
        assert core_rows(path) == rows(engines.reference(path)) == their_rows(path) == wanted
        _sound(path)


def _sound(path: Path) -> None:
    report = delta_pyds.verify(str(path))
    assert not report.errors, f"verify: {report}"


# texts that all versions of Java have in common
_NUMBERS = (0.0, -0.0, 1.0, 0.5, -2.5, 0.001, 9.99e-4, 1e-5, 9999999.0, 1e7, 1e10, 12345678.0, 1e21, float("nan"),
            float("inf"), float("-inf"))  # fmt: skip


@pytest.mark.cell("odd partition values", "ping-pong")
@pytest.mark.parametrize("kind", ["double", "float"])
def test_floating_point_partitions_are_spelled_alike(engines: Engines, tmp_path: Path, kind: str) -> None:
    source = engines.spark.createDataFrame(list(enumerate(_NUMBERS)), "id LONG, p DOUBLE")
    frame = source.selectExpr("id", f"CAST(p AS {kind}) AS p")
    delta_pyds.write(frame, str(tmp_path / "ours"), partition_by="p")
    frame.write.format("delta").partitionBy("p").save(str(tmp_path / "theirs"))
    ours, theirs = (
        {(add["partitionValues"]["p"], add["path"].rpartition("/")[0]) for add in adds(tmp_path / name, [0])}
        for name in ("ours", "theirs")
    )
    assert ours == theirs
    assert rows(engines.reference(tmp_path / "ours")) == core_rows(tmp_path / "theirs") == core_rows(tmp_path / "ours")
    some = frame.where("id % 2 = 1").selectExpr("id + 100 AS id", "p")
    for name in ("ours", "theirs"):
        engines.append(some, tmp_path / name, mode="overwrite", partitionOverwriteMode="dynamic")
    assert engines.agree(tmp_path / "ours") == engines.agree(tmp_path / "theirs")
