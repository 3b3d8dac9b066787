"""The effects that paths in a log may have on a reader: it opens files of the table's own store, and nothing else."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from delta_pyds import explain, load_snapshot, verify
from delta_pyds.data.read.reader import read
from delta_pyds.errors import DeltaError
from delta_pyds.table.scan.scan import plan_scan
from tests.support.noting_server import noting_server
from tests.support.table_builder import TableBuilder


def rows(path: Path | str, storage_options: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    snapshot = load_snapshot(str(path), storage_options=storage_options)
    scan = plan_scan(snapshot, storage_options=storage_options)
    return [row for file in scan.files() for batch in read(scan.state, file) for row in batch.to_pylist()]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[str]]]:
    """A foreign server on this machine, and what it was asked; the reader has an identity to give away."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "the-readers-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the-readers-secret")
    with noting_server() as found:
        yield found


FOREIGN = ["s3://b/x.parquet?endpoint_override={}&scheme=http", "http://{}/x.parquet", "gs://b/x?endpoint_override={}",
           "file://{}/x.parquet"]  # fmt: skip


@pytest.mark.parametrize("url", FOREIGN)
@pytest.mark.parametrize("kind", ["v2-json", "v2-parquet"])
def test_no_path_of_a_sidecar_makes_a_request(tmp_path: Path, kind: str, url: str, server: Any) -> None:
    address, asked = server
    table = TableBuilder(tmp_path, {"id": "long"}, properties={"delta.checkpointPolicy": "v2"})
    table.create()
    table.append([{"id": 1}])
    [top] = table.checkpoint(kind=kind)
    with_other_sidecar(top, url.format(address))
    table.cleanup_log(table.version)
    for call in (
        lambda: explain(str(tmp_path)),
        lambda: rows(tmp_path),
        lambda: verify(str(tmp_path)).raise_for_errors(),
    ):
        with pytest.raises(DeltaError, match="_sidecars/x"):
            call()
    assert asked == []


@pytest.mark.parametrize("url", FOREIGN)
@pytest.mark.parametrize("what", ["data file", "deletion vector", "change file"])
def test_no_path_of_a_commit_makes_a_request(tmp_path: Path, what: str, url: str, server: Any) -> None:
    address, asked = server
    path = url.format(address)
    properties = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    table = TableBuilder(tmp_path, {"id": "long"}, properties=properties)
    table.create()
    [add] = table.append([{"id": 1}, {"id": 2}])
    if what == "data file":
        table.commit([table.remove(add), {"add": {**add["add"], "path": path}}])
    elif what == "deletion vector":
        new = table.delete(add, [0])["add"]
        vector = {**new["deletionVector"], "storageType": "p", "pathOrInlineDv": path}
        table.commit([table.remove({"add": new}), {"add": {**new, "deletionVector": vector}}])
    else:
        cdc = {"path": path, "partitionValues": {}, "size": 1000, "dataChange": False}
        table.commit([{"cdc": cdc}])
        with pytest.raises(DeltaError, match=r"may not refer to another store|must be on this machine"):
            changes(tmp_path, table.version)
        assert asked == []
        return
    with pytest.raises(DeltaError, match=r"may not refer to another store|must be on this machine"):
        rows(tmp_path)
    assert not verify(str(tmp_path)).ok
    assert asked == []


def changes(path: Path, version: int) -> list[dict[str, Any]]:
    from delta_pyds.table.change_feed.change_scan import change_range, plan_changes

    snapshot = load_snapshot(str(path))
    scan = plan_changes(snapshot, change_range(snapshot, starting_version=version))
    return [row for file in scan.files() for batch in read(scan.state, file) for row in batch.to_pylist()]


def with_other_sidecar(top: Path, path: str) -> None:
    """Give the sidecar of a V2 checkpoint another path."""
    if top.suffix == ".json":
        lines = [json.loads(line) for line in top.read_text().splitlines()]
        for line in lines:
            if "sidecar" in line:
                line["sidecar"]["path"] = path
        top.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(top)
    found = [dict(row, path=path) if row else None for row in table.column("sidecar").to_pylist()]
    at = table.schema.get_field_index("sidecar")
    pq.write_table(table.set_column(at, "sidecar", pa.array(found, table.schema.field(at).type)), top)


@pytest.mark.parametrize("kind", ["v2-json", "v2-parquet"])
def test_sidecars_are_found_whatever_place_their_paths_name(tmp_path: Path, kind: str) -> None:
    table = TableBuilder(tmp_path, {"id": "long"}, properties={"delta.checkpointPolicy": "v2"})
    table.create()
    table.append([{"id": 1}])
    [top] = table.checkpoint(kind=kind)
    [sidecar] = (tmp_path / "_delta_log" / "_sidecars").iterdir()
    odd = sidecar.rename(sidecar.with_name("a b%.parquet"))
    with_other_sidecar(top, f"s3://elsewhere/_delta_log/_sidecars/{odd.name.replace('%', '%25').replace(' ', '%20')}")
    table.cleanup_log(table.version)
    assert rows(tmp_path) == [{"id": 1}]


# --- what a local path leads to


def test_a_shallow_clone_reads_files_of_another_table(tmp_path: Path) -> None:
    origin = TableBuilder(tmp_path / "origin", {"id": "long"})
    origin.create()
    [add] = origin.append([{"id": 7}])
    for scheme in ("", "file:", "file://"):
        clone = TableBuilder(tmp_path / f"clone{len(scheme)}", {"id": "long"})
        clone.create([{"add": {**add["add"], "path": f"{scheme}{tmp_path}/origin/{add['add']['path']}"}}])
        assert rows(clone.path) == [{"id": 7}]


@pytest.mark.parametrize("path", ["../origin/{}", "x/%2E%2E/../../origin/{}", "{root}/clone/../origin/{}"])
def test_no_path_leads_upwards(tmp_path: Path, path: str) -> None:
    origin = TableBuilder(tmp_path / "origin", {"id": "long"})
    origin.create()
    [add] = origin.append([{"id": 7}])
    clone = TableBuilder(tmp_path / "clone", {"id": "long"})
    clone.create([{"add": {**add["add"], "path": path.format(add["add"]["path"], root=tmp_path)}}])
    with pytest.raises(DeltaError, match=r"names the file .*\.\."):
        rows(clone.path)
    assert {f.rule for f in verify(str(clone.path)).errors} == {"commit.path", "file.unreadable"}


def _a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _endless(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("replace", [_a_pipe, _endless])
@pytest.mark.parametrize("what", ["data file", "deletion vector", "sidecar"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, what: str, replace: Callable[[Path], None]) -> None:
    table = TableBuilder(
        tmp_path, {"id": "long"}, properties={"delta.checkpointPolicy": "v2", "delta.enableDeletionVectors": "true"}
    )
    table.create()
    [add] = table.append([{"id": 1}, {"id": 2}])
    new = table.delete(add, [0])
    table.checkpoint(kind="v2-parquet")
    table.cleanup_log(table.version)
    [sidecar] = (tmp_path / "_delta_log" / "_sidecars").iterdir()
    file = {"data file": table.data_file(new), "deletion vector": table.vector_file(new), "sidecar": sidecar}[what]
    replace(file)
    with pytest.raises(DeltaError, match=f"{re.escape(file.name)}.*not a regular file"):
        rows(tmp_path)
    assert not verify(str(tmp_path)).ok


def _a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _a_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _to_nowhere(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


_IRREGULAR = [_a_pipe, _endless, _a_directory, _a_loop, _to_nowhere]


@pytest.mark.parametrize("replace", _IRREGULAR)
def test_a_commit_that_is_no_regular_file_is_never_passed_over(tmp_path: Path, replace: Callable[[Path], None]) -> None:
    table = TableBuilder(tmp_path, {"id": "long"})
    table.create()
    table.append([{"id": 1}])
    table.append([{"id": 2}])
    replace(tmp_path / "_delta_log" / f"{2:020d}.json")
    with pytest.raises(DeltaError, match=f"{2:020d}.json"):
        rows(tmp_path)
    report = verify(str(tmp_path))
    assert [f.rule for f in report.errors if f"{2:020d}.json" in f"{f.where} {f.message}"] == ["commit.unreadable"]
    assert load_snapshot(str(tmp_path), version=1).version == 1


@pytest.mark.parametrize("replace", _IRREGULAR)
def test_what_else_in_a_log_is_no_regular_file_is_passed_over_and_named(
    tmp_path: Path, replace: Callable[[Path], None]
) -> None:
    table = TableBuilder(tmp_path, {"id": "long"})
    table.create()
    table.append([{"id": 1}])
    log = tmp_path / "_delta_log"
    table.checkpoint()
    table.append([{"id": 2}])
    table.compact_log(1, 2)
    table.checksum()
    names = [f"{1:020d}.checkpoint.parquet", f"{1:020d}.{2:020d}.compacted.json", f"{2:020d}.crc"]
    for name in names:
        replace(log / name)
    # a commit that nobody needs, as a checkpoint is after it
    table.append([{"id": 3}])
    table.checkpoint()
    replace(log / f"{3:020d}.json")
    assert sorted(row["id"] for row in rows(tmp_path)) == [1, 2, 3]
    report = verify(str(tmp_path))
    assert [f.where.rsplit("/", 1)[-1] for f in report.findings if f.rule == "log.not-a-file"] == sorted(names)


@pytest.mark.parametrize("replace", [_a_pipe, _endless])
def test_a_hint_or_checksum_that_is_no_file_is_no_hint(tmp_path: Path, replace: Callable[[Path], None]) -> None:
    table = TableBuilder(tmp_path, {"id": "long"})
    table.create()
    table.append([{"id": 1}])
    table.checkpoint()
    replace(table.checksum())
    replace(tmp_path / "_delta_log" / "_last_checkpoint")
    assert rows(tmp_path) == [{"id": 1}]


def test_no_message_tells_what_is_in_a_file_that_the_log_points_to(tmp_path: Path) -> None:
    """A deletion vector at an absolute path, whose first bytes were told as its size."""
    secret = tmp_path / "secret"
    secret.write_bytes(b"TOPSECRET" * 20)
    table = TableBuilder(tmp_path / "t", {"id": "long"}, properties={"delta.enableDeletionVectors": "true"})
    table.create()
    [add] = table.append([{"id": 1}, {"id": 2}])
    new = table.delete(add, [0])["add"]
    vector = {**new["deletionVector"], "storageType": "p", "pathOrInlineDv": str(secret)}
    table.commit([table.remove({"add": new}), {"add": {**new, "deletionVector": vector}}])
    with pytest.raises(DeltaError) as caught:
        rows(table.path)
    told = str(int.from_bytes(secret.read_bytes()[vector["offset"] :][:4], "big"))
    assert told not in str(caught.value) and "SECRET" not in str(caught.value)


# --- allowed roots


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A table with one file of its own and one of another table."""
    origin = TableBuilder(tmp_path / "origin", {"id": "long"})
    origin.create()
    [add] = origin.append([{"id": 7}])
    clone = TableBuilder(tmp_path / "clone", {"id": "long"})
    clone.create([{"add": {**add["add"], "path": f"file://{tmp_path}/origin/{add['add']['path']}"}}])
    clone.append([{"id": 1}])
    return clone.path


def test_absolute_paths_lead_below_allowed_roots_only(clone: Path) -> None:
    def ids(*roots: str) -> list[int]:
        return sorted(row["id"] for row in rows(clone, {"allowed_roots": list(roots)}))

    origin = str(clone.parent / "origin")
    assert ids(origin) == ids(f"file://{origin}/") == ids("/nowhere", str(clone.parent)) == ids("/") == [1, 7]
    for roots in ([], [f"{origin}/deeper"], [origin[:-1]], ["s3://bucket"]):
        with pytest.raises(DeltaError, match="not below the table or a directory") as caught:
            ids(*roots)
        assert str(origin) in str(caught.value)
    report = verify(str(clone), storage_options={"allowed_roots": []})
    assert [f.rule for f in report.errors] == ["file.unreadable"]
    assert verify(str(clone), storage_options={"allowed_roots": origin}).ok


@pytest.mark.parametrize("wrong", [{"a": 1}, [1], [""], 3, ["relative/dir"]])
def test_roots_that_are_none_are_refused(clone: Path, wrong: Any) -> None:
    with pytest.raises(DeltaError, match="allowed_roots"):
        load_snapshot(str(clone), storage_options={"allowed_roots": wrong})


def test_the_formats_options_say_the_same() -> None:
    from delta_pyds.errors import OptionError
    from delta_pyds.spark.options.read import parse_read_options
    from delta_pyds.spark.options.values import storage_options

    for text, roots in (("/a b", ["/a b"]), ('["/a", "s3://b"]', ["/a", "s3://b"]), ("[]", []), ("", [])):
        given = {"path": "/t", "allowedRoots": text, "storageOptions": '{"anon": true}'}
        wanted = {"anon": True, "allowed_roots": roots}
        assert (
            parse_read_options(given).storage_options
            == storage_options({k.lower(): v for k, v in given.items()})
            == wanted
        )
    for text in ("[1]", '["/a"', '[""]'):
        with pytest.raises(OptionError, match="the option allowedRoots"):
            parse_read_options({"path": "/t", "allowedRoots": text})


def test_the_prefix_of_a_deletion_vector_leads_nowhere_else(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"}, properties={"delta.enableDeletionVectors": "true"})
    table.create()
    [add] = table.append([{"id": 1}, {"id": 2}])
    new = table.delete(add, [0])["add"]
    file = table.vector_file({"add": new})
    file.rename(tmp_path / file.name)
    vector = {**new["deletionVector"], "pathOrInlineDv": "../t/.." + new["deletionVector"]["pathOrInlineDv"][-20:]}
    table.commit([table.remove({"add": new}), {"add": {**new, "deletionVector": vector}}])
    with pytest.raises(DeltaError, match=r"names the file '\.\./t/\.\./"):
        rows(table.path)
