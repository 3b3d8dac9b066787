"""The command line: what it prints for people and for scripts, and the status that says what happened."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from delta_pyds.catalog.address import locate, reserve
from delta_pyds.catalog.named import forget_catalogs
from delta_pyds.cli.main import main
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import write_rows
from tests.support.unity_server import UnityServer

ROWS = [
    {"id": 1, "price": decimal.Decimal("1.50"), "tags": ["a", 'b"'], "raw": b"\x00\xff", "ratio": 0.5, "note": "x,y",
     "at": dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc)},
    {"id": 2, "price": None, "tags": None, "at": None, "raw": None, "ratio": float("nan"), "note": "second\nline"},
]  # fmt: skip
SCHEMA = {"id": "long", "price": "decimal(10,2)", "at": "timestamp", "raw": "binary", "ratio": "double",
          "note": "string", "tags": {"type": "array", "elementType": "string", "containsNull": True}}  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write_rows(tmp_path / "t", SCHEMA, ROWS)
    return tmp_path / "t"


def _json_lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_cat_prints_rows_as_csv(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cat", str(table), "--columns", "id, price,tags,at,raw,note"]) == 0
    assert capsys.readouterr().out == (
        'id,price,tags,at,raw,note\n1,1.50,"[""a"",""b\\""""]",2026-01-02T00:00:00Z,AP8=,"x,y"\n2,,,,,"second\nline"\n'
    )


def test_cat_prints_rows_as_json(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cat", str(table), "--json"]) == 0
    first, second = _json_lines(capsys)
    assert first["price"] == "1.50" and first["tags"] == ["a", 'b"'] and first["raw"] == "AP8="
    assert second["ratio"] is None and second["note"] == "second\nline"


def test_maps_are_objects_or_pairs_by_their_type_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    maps = {
        kind: {"type": "map", "keyType": kind, "valueType": "string", "valueContainsNull": True}
        for kind in ("string", "integer")
    }
    struct = {"type": "struct", "fields": [{"name": "m", "type": maps["string"], "nullable": True, "metadata": {}}]}
    table = TableBuilder(tmp_path, {"i": maps["integer"], "t": maps["string"], "s": struct})
    table.create()
    table.append([{"i": [(1, "a")], "t": [("k", "a")], "s": {"m": [("k", "a")]}}, {"i": [], "t": [], "s": {"m": []}}])
    assert main(["cat", str(tmp_path), "--json"]) == 0
    full, empty = _json_lines(capsys)
    assert full == {"i": [[1, "a"]], "t": {"k": "a"}, "s": {"m": {"k": "a"}}}
    assert empty == {"i": [], "t": {}, "s": {"m": {}}}


def test_days_that_python_does_not_know_are_written_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    far = pa.table({"d": pa.array([4_000_000], pa.date32())})
    write_rows(tmp_path, {"d": "date"}, far.cast(pa.schema([("d", pa.date32())])))
    assert main(["cat", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "d\n12921-08-18\n"
    assert main(["cat", str(tmp_path), "--json"]) == 0
    assert _json_lines(capsys) == [{"d": "12921-08-18"}]


def test_what_is_no_error_of_ours_is_a_sentence_too(
    table: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> int:
        raise OverflowError("date value out of range")

    monkeypatch.setattr("delta_pyds.cli.verbs.detail", fails)
    assert main(["detail", str(table)]) == 6
    error = capsys.readouterr().err
    assert error.startswith("deltapy: ") and "Traceback" not in error and len(error.splitlines()) == 1


def test_a_time_of_the_log_that_is_none_is_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_rows(tmp_path, {"id": "long"}, [{"id": 1}])
    commit = tmp_path / "_delta_log" / f"{0:020d}.json"
    commit.write_text(re.sub(r'"createdTime":\d+', f'"createdTime":{10**17}', commit.read_text()))
    assert main(["detail", str(tmp_path), "--json"]) == 0
    assert _json_lines(capsys)[0]["createdAt"] is None


def test_sizes_that_cannot_be_meant_are_summed_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = TableBuilder(tmp_path, {"id": "long"})
    builder.create()
    (add,) = builder.append([{"id": 1}])
    for n in range(3):
        builder.commit([{"add": {**add["add"], "path": f"{n}.parquet", "size": 2**62}}])
    assert main(["detail", str(tmp_path), "--json"]) == 0
    assert _json_lines(capsys)[0]["sizeInBytes"] is None
    assert main(["explain", str(tmp_path), "--json"]) == 0
    assert _json_lines(capsys)[0]["bytes"] == 3 * 2**62 + add["add"]["size"]


def test_a_terminal_of_another_encoding_shows_escapes(tmp_path: Path) -> None:
    write_rows(tmp_path, {"s": "string"}, [{"s": "漢"}])
    command = [sys.executable, "-m", "delta_pyds.cli.main", "cat", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "latin-1"}, check=False)
    assert (done.returncode, done.stdout) == (0, b"s\n\\u6f22\n")


def test_cat_takes_what_a_read_takes(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_rows(table, SCHEMA, [{**ROWS[0], "id": 3}])
    assert main(["cat", str(table), "--where", "id >= 2", "--columns", "id", "--json"]) == 0
    assert sorted(row["id"] for row in _json_lines(capsys)) == [2, 3]  # type: ignore[type-var]
    assert main(["cat", str(table), "--version", "0", "--limit", "1", "--columns", "id"]) == 0
    assert capsys.readouterr().out == "id\n1\n"
    assert main(["cat", str(table), "--limit", "0", "--columns", "id"]) == 0
    assert capsys.readouterr().out == "id\n"


def test_history_and_detail(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_rows(table, SCHEMA, ROWS, user_metadata="again")
    assert main(["history", str(table), "--limit", "1", "--json"]) == 0
    (commit,) = _json_lines(capsys)
    assert (commit["version"], commit["operation"], commit["userMetadata"]) == (1, "WRITE", "again")
    assert commit["operationParameters"] == {"mode": "Append", "partitionBy": "[]"}
    assert main(["history", str(table)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and lines[0].startswith("version  timestamp") and lines[1].startswith("1 ")
    assert main(["detail", str(table), "--json"]) == 0
    (found,) = _json_lines(capsys)
    assert (found["numFiles"], found["version"], found["format"]) == (2, 1, "delta")
    assert main(["detail", str(table)]) == 0
    assert any(line.split() == ["numFiles", "2"] for line in capsys.readouterr().out.splitlines())


def test_explain(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(table), "--where", "id > 7", "--json"]) == 0
    summary, file = _json_lines(capsys)
    assert (summary["files"], summary["filesRead"], file["ruledOutBy"]) == (1, 0, "id > 7")
    assert main(["explain", str(table)]) == 0
    assert "1 of 1 files read" in capsys.readouterr().out


def test_verify_says_by_its_status_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = TableBuilder(tmp_path, {"id": "long"})
    builder.create()
    (add,) = builder.append([{"id": 1}])
    assert main(["verify", str(tmp_path)]) == 0
    builder.data_file(add).unlink()
    assert main(["verify", str(tmp_path), "--log-only"]) == 0
    capsys.readouterr()
    assert main(["verify", str(tmp_path), "--json"]) == 1
    (report,) = _json_lines(capsys)
    assert report["ok"] is False and report["findings"]


def test_checkpoint(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checkpoint", str(table), "--json"]) == 0
    assert _json_lines(capsys) == [{"version": 0}]
    assert list((table / "_delta_log").glob("*.checkpoint*.parquet"))


def test_optimize_restore_and_vacuum(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        write_rows(table, SCHEMA, ROWS)
    assert main(["optimize", str(table), "--json"]) == 0
    (result,) = _json_lines(capsys)
    assert result["version"] == 4 and result["metrics"]["numFilesRemoved"] == 4  # type: ignore[index]
    assert main(["optimize", str(table), "--zorder-by", "id"]) == 0
    assert "made version 5" in capsys.readouterr().out
    assert main(["restore", str(table), "--version", "1"]) == 0
    assert "made version 6" in capsys.readouterr().out
    assert main(["cat", str(table), "--columns", "id", "--json"]) == 0
    assert len(_json_lines(capsys)) == 4
    assert main(["vacuum", str(table), "--dry-run"]) == 0
    assert capsys.readouterr() == ("", "Nothing would be deleted.\n")
    assert main(["vacuum", str(table), "--dry-run", "--json"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["vacuum", str(table), "--hours", "0"]) == 2
    error = capsys.readouterr().err
    assert "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT" in error and "--unsafe-retention" in error
    assert main(["vacuum", str(table), "--hours", "0", "--unsafe-retention", "--dry-run", "--json"]) == 0
    planned = _json_lines(capsys)
    assert {Path(str(file["path"])).stat().st_size for file in planned} == {file["size"] for file in planned}
    assert len(planned) == 4
    assert main(["vacuum", str(table), "--hours", "0", "--unsafe-retention", "--json"]) == 0
    assert _json_lines(capsys)[0]["numDeletedFiles"] == 4
    assert len(list(table.glob("*.parquet"))) == 2


def test_a_partition_that_is_a_time_needs_a_zone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": 1, "at": dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc)}]
    write_rows(tmp_path, {"id": "long", "at": "timestamp"}, rows, partition_by=(("at",),))
    assert main(["optimize", str(tmp_path)]) == 2
    assert "--time-zone" in capsys.readouterr().err
    assert main(["optimize", str(tmp_path), "--time-zone", "Europe/Paris"]) == 0


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["cat", "{t}/nothing"], 3, "Check the path"),
        (["cat", "{t}", "--version", "7"], 3, "7"),
        (["cat", " "], 2, "empty"),
        (["detail", "file://elsewhere/t"], 2, "elsewhere"),
        (["restore", "{t}", "--version", "7"], 3, "7"),
        (["cat", "{t}", "--where", "id ==="], 4, "id ==="),
        (["cat", "{t}", "--columns", "nothing"], 4, "nothing"),
    ],
)
def test_a_failure_is_a_sentence_and_a_status(
    table: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, text: str
) -> None:
    assert main([argument.replace("{t}", str(table)) for argument in arguments]) == status
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("deltapy: [") and text in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize(
    "arguments", [[], ["nothing"], ["cat"], ["cat", "t", "--limit", "-1"], ["cat", "t", "--limit", "9" * 20],
                  ["cat", "t", "--storage-option", "x"], ["cat", "t", "--time-zone", "Nowhere/X"],
                  ["optimize", "t", "--time-zone", "Nowhere"], ["restore", "t", "--version", "1", "--time-zone", "X"],
                  ["cat", "t", "--version", "1", "--timestamp", "2026-01-01"]]
)  # fmt: skip
def test_arguments_that_are_none(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2


def test_a_damaged_table_has_a_status_of_its_own(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (table / "_delta_log" / f"{0:020d}.json").write_text('{"add":')
    assert main(["detail", str(table)]) == 6
    assert "_delta_log" in capsys.readouterr().err


def test_what_a_log_holds_cannot_write_to_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = TableBuilder(tmp_path, {"id": "long"})
    builder.create()
    builder.commit(operation="\x1b[31mred", commit_info={"userMetadata": "a\nb"})
    assert main(["history", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out and len(out.splitlines()) == 3


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    write_rows(tmp_path, {"id": "long"}, [{"id": n} for n in range(200_000)])
    command = [sys.executable, "-m", "delta_pyds.cli.main", "cat", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"id\n"
        process.stdout.close()
        errors = process.stderr.read()
    assert (process.returncode, errors) == (0, b"")


@pytest.fixture
def managed(tmp_path: Path) -> list[str]:
    """Arguments that name a table of a catalog."""
    catalog = f"sqlite://{tmp_path}/c.db"
    made = reserve("main.db.t", catalog)
    for ids in ([1, 2], [3]):
        write_rows(made.table_root, {"id": "long"}, [{"id": i} for i in ids], storage_options=made.storage_options)
        made = locate(table="main.db.t", catalog=catalog)
    return ["main.db.t", "--catalog", catalog]


def test_a_table_by_its_name_in_a_catalog(
    managed: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = locate(table=managed[0], catalog=managed[2])

    def printed(verb: str, *more: str) -> str:
        assert main([verb, *managed, *more]) == 0
        return capsys.readouterr().out

    assert printed("cat") == "id\n1\n2\n3\n" and printed("cat", "--version", "0") == "id\n1\n2\n"
    assert [json.loads(line)["version"] for line in printed("history", "--json").splitlines()] == [1, 0]
    assert json.loads(printed("detail", "--json"))["version"] == 1
    assert json.loads(printed("explain", "--where", "id = 3", "--json").splitlines()[0])["filesRead"] == 1
    assert json.loads(printed("verify", "--json"))["ok"]
    assert printed("checkpoint") == "A checkpoint of version 1 was written.\n"
    assert json.loads(printed("optimize", "--json"))["version"] == 2
    assert printed("vacuum", "--dry-run") == ""
    assert "restoredFilesSize" in json.loads(printed("restore", "--version", "1", "--json"))
    page = tmp_path / "page.html"
    printed("report", "--to", str(page))
    assert made.table_root in page.read_text()
    assert printed("cat").split() == ["id", "1", "2", "3"]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["history", "main.db.none", "--catalog", "sqlite://{}/c.db"], 3, "no table main.db.none"),
        (["history", "main.db.t", "--catalog", "sqlite://{}/other.db"], 3, "There is no catalog"),
        (["history", "main.db.t", "--catalog", "nobody-knows-it"], 2, "has no settings"),
        (["history", "main.db.t", "--catalog", "https://user:pass@host"], 2, "not a catalog's name"),
    ],
)
@pytest.mark.usefixtures("managed")
def test_a_name_that_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, said: str
) -> None:
    assert main([one.format(tmp_path) for one in arguments]) == status
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1 and ":pass@" not in err


def test_what_the_catalog_keeps_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with UnityServer(str(tmp_path)) as server:
        monkeypatch.setenv("DELTA_PYDS_CATALOG_PROD_URL", server.url)
        made = reserve("main.db.t", "prod")
        write_rows(made.table_root, {"id": "long"}, [{"id": 1}], storage_options=made.storage_options)
        for verb in (["vacuum", "--dry-run"], ["optimize"]):
            assert main([verb[0], "main.db.t", "--catalog", "prod", *verb[1:]]) == 4
            assert "only its catalog may do that" in capsys.readouterr().err
        page = tmp_path / "page.html"
        assert main(["report", "main.db.t", "--catalog", "prod", "-o", str(page)]) == 0
        text = page.read_text()
        assert "VACUUM START on table main.db.t is refused" in text and "OPTIMIZE on table main.db.t is refused" in text
        forget_catalogs()


def test_no_command_prints_what_a_terminal_obeys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    obeyed = "".join(map(chr, [*range(9), *range(11, 32), *range(127, 160), 0x061C, 0x200E, 0x202E, 0x2028, 0x2066]))
    text = f"é\t\U0001f468\u200d\U0001f469 {obeyed} end"
    write_rows(tmp_path, {"id": "long", f"a{chr(0x9B)}b": "string"}, [{"id": 1, f"a{chr(0x9B)}b": text}])
    for command in (["cat"], ["cat", "--json"], ["history", "--json"], ["detail", "--json"], ["explain", "--json"]):
        assert main([command[0], str(tmp_path), *command[1:]]) == 0
        out = capsys.readouterr().out
        assert not set(obeyed) & set(out), command
        if command == ["cat", "--json"]:
            assert json.loads(out) == {"id": 1, f"a{chr(0x9B)}b": text}
        if command == ["cat"]:
            assert "é\t\U0001f468\u200d\U0001f469 \\x00" in out and "\\x1b" in out and "\\u202e" in out


def test_changes_prints_rows_that_commits_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for ids in ([1, 2], [3]):
        write_rows(tmp_path / "t", {"id": "long"}, [{"id": n} for n in ids])
    verb = ["changes", str(tmp_path / "t"), "--columns", "id,_change_type,_commit_version"]
    assert main([*verb, "--since", "0", "--limit", "2"]) == 0
    assert capsys.readouterr().out == "id,_change_type,_commit_version\n1,insert,0\n2,insert,0\n"
    assert main([*verb, "--since", "0", "--until", "2999-01-01", "--net", "--keys", "id", "--json"]) == 0
    assert [line["id"] for line in _json_lines(capsys)] == [1, 2, 3]
    assert main([*verb, "--since", "1970-01-01", "--where", "id > 2", "--json"]) == 0
    assert _json_lines(capsys) == [{"id": 3, "_change_type": "insert", "_commit_version": 1}]
    assert main([*verb, "--since", "7"]) == 4
    assert main([*verb, "--since", "0", "--compute", "never"]) == 4
    assert main([*verb, "--since", "0", "--compute", "some"]) == 2
    assert main([*verb, "--since", "soon"]) == 2
    with pytest.raises(SystemExit):
        main(verb)


def test_explain_says_how_changes_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for ids in ([1, 2], [3]):
        write_rows(tmp_path / "t", {"id": "long"}, [{"id": n} for n in ids])
    assert main(["explain", str(tmp_path / "t"), "--since", "0"]) == 0
    assert "versions 0 to 1  whole files that came or left: 2 data files" in capsys.readouterr().out
    assert main(["explain", str(tmp_path / "t"), "--since", "0", "--where", "id > 2", "--json"]) == 0
    summary, *commits = _json_lines(capsys)
    assert (summary["ways"], summary["dataFilesRead"], summary["filesRuledOut"]) == ({"files": 2}, 1, 1)
    assert [(commit["version"], commit["dataFiles"]) for commit in commits] == [(0, 0), (1, 1)]
    assert main(["explain", str(tmp_path / "t"), "--net"]) == 2
