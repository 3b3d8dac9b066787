from __future__ import annotations

from dataclasses import fields, replace

import pytest

from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.errors import OptionError, UnsupportedOperationError
from delta_pyds.spark.options import write
from delta_pyds.spark.options.write import parse_stream_write_options, parse_write_options, with_options, write_texts
from tests.support.table_writes import struct


def parsed(**options: str) -> WriteRequest:
    return parse_write_options(
        {"path": "/t", **options}, struct({"id": "long"}), overwrite=False, assumed_time_zone="UTC"
    )


def test_an_application_version_is_a_long() -> None:
    assert parsed(txnAppId="a", txnVersion=str(2**63 - 1)).application == ("a", 2**63 - 1)
    for version in ("-1", "1.0", "", str(2**63)):
        with pytest.raises(OptionError) as error:
            parsed(txnAppId="a", txnVersion=version)
        assert error.value.code == "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"


def test_an_unknown_compression_is_refused_before_any_task_starts() -> None:
    assert parsed(compression="ZSTD").compression == "ZSTD"
    for name in ("zip", ""):
        with pytest.raises(OptionError, match="compression"):
            parsed(compression=name)


def test_the_number_of_tasks_is_a_count() -> None:
    assert (parsed().task_parallelism, parsed(taskParallelism="3").task_parallelism) == (None, 3)
    for text in ("0", "many", ""):
        with pytest.raises(OptionError, match="taskParallelism"):
            parsed(taskParallelism=text)


# --- streams


@pytest.mark.parametrize("name", ["replaceOn", "replaceUsing", "targetAlias", "useNullIntolerantEqualityWithDPO"])
def test_an_option_that_would_leave_other_rows_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedOperationError, match=name) as error:
        parsed(**{name: "true"})
    assert error.value.parameters["option"] == name
    parsed(useNullIntolerantEqualityWithDPO="false")


def streamed(overwrite: bool = False, **options: str) -> tuple[WriteRequest, str | None]:
    return parse_stream_write_options(
        {"path": "/t", "checkpointLocation": "/c", "queryName": "q", **options},
        struct({"id": "long"}),
        overwrite=overwrite,
        assumed_time_zone="UTC",
    )


def test_a_sink_takes_what_a_write_takes() -> None:
    given = {"mergeSchema": "true", "userMetadata": "u", "compression": "zstd", "targetFileSize": "1m"}
    request, application = streamed(**given, partitionBy="id", **{"delta.appendOnly": "true"})
    assert (request.mode, application) == ("append", None)
    assert request.merge_schema and request.user_metadata == "u" and request.compression == "zstd"
    assert request.target_file_bytes == 1 << 20 and request.partition_by == (("id",),)
    assert request.properties == {"delta.appendOnly": "true"}
    assert streamed(True, overwriteSchema="true")[0].overwrite_schema
    assert streamed(createMode="errorIfNotExists", partitionOverwriteMode="static")[0].mode == "append"


def test_an_application_of_a_stream_has_no_version_of_its_own() -> None:
    request, application = streamed(txnAppId="mine")
    assert (application, request.application) == ("mine", None)
    with pytest.raises(OptionError, match="batch id"):
        streamed(txnAppId="mine", txnVersion="3")
    with pytest.raises(OptionError, match="txnAppId is empty"):
        streamed(txnAppId=" ")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"replaceWhere": "id = 1"}, "replaceWhere"),
        ({"partitionOverwriteMode": "dynamic"}, "foreachBatch"),
        ({"dataChange": "false"}, "dataChange"),
        ({"createMode": "ignore"}, "createMode=ignore"),
        ({"createMode": "errorIfExists"}, "second batch"),
        ({"overwriteSchema": "true"}, 'outputMode("complete")'),
        ({"versionAsOf": "1"}, "latest version"),
        ({"timestampAsOf": "2024-01-01"}, "timestampAsOf"),
        ({"replaceOn": "t.id = s.id"}, "replaceOn"),
        ({"replaceUsing": "id"}, "replaceUsing"),
        ({"mergeSchema": "maybe"}, "mergeSchema"),
        ({"compression": "zip"}, "compression"),
        ({"path": " "}, ".start("),
    ],
)
def test_what_means_nothing_in_a_stream_is_refused_by_name(options: dict[str, str], named: str) -> None:
    with pytest.raises(OptionError) as error:
        streamed(**options)
    assert named in error.value.message


def test_an_unknown_option_of_a_stream_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        streamed(optimiseWriteOfThisTest="true")
    assert caplog.text.count("optimisewriteofthistest") == 1
    assert "checkpointlocation" not in caplog.text and "queryname" not in caplog.text


def test_an_option_without_effect_is_told_once_by_a_stream(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "_warned", set())
    for _ in range(3):
        streamed(optimizeWrite="true")
    assert caplog.text.count("optimizewrite is ignored") == 1
    parsed(optimizeWrite="false")
    parsed(optimizeWrite="true")
    assert caplog.text.count("optimizewrite is ignored") == 2


def test_the_table_of_a_write_is_known_from_its_options_alone() -> None:
    request = parsed(Path="file:/t/", storageOptions='{"key": "k"}')
    assert (request.table_root, request.storage_options) == ("/t", {"key": "k"})


# --- the way back to texts

FULL = WriteRequest(
    "/t",
    struct({"id": "long"}),
    "overwrite",
    storage_options={"key": "k", "allowed_roots": ["/a"]},
    create_mode="errorIfNotExists",
    replace_where="id = 'ü, `'",
    partition_overwrite="static",
    merge_schema=True,
    overwrite_schema=True,
    partition_by=(("a.b", "c`d"), ("e,f",)),
    cluster_by=(),
    properties={"delta.appendOnly": "true", "Owner": "me"},
    table_comment="",
    user_metadata="m",
    application=("job", 7),
    data_change=False,
    max_records_per_file=5,
    target_file_bytes=1 << 20,
    compression="zstd",
    time_zone="Europe/Berlin",
    isolation_level="Serializable",
    max_attempts=3,
    max_backoff_ms=4,
    task_parallelism=2,
    read_version=9,
    reads_table=False,
    reads_where="p = 1",
    row_level_concurrency=False,
)


def test_every_field_of_a_request_comes_back_from_its_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    # together they contradict each other, which is not asked here
    monkeypatch.setattr(WriteRequest, "check", lambda _: None)
    untold = {"table_root", "incoming", "mode", "replace_using"}
    blank = WriteRequest("/t", FULL.incoming, FULL.mode)
    assert [f.name for f in fields(FULL) if getattr(FULL, f.name) == getattr(blank, f.name)] == [
        f.name for f in fields(FULL) if f.name in untold
    ]

    def back(request: WriteRequest) -> WriteRequest:
        texts = {**write_texts(request), "path": request.table_root}
        return parse_write_options(texts, request.incoming, overwrite=True, assumed_time_zone="Asia/Tokyo")

    assert back(FULL) == FULL
    assert back(blank) == blank
    assert list(write_texts(blank)) == ["timeZone"]


def test_options_win_over_the_arguments_of_a_write() -> None:
    asked = replace(FULL, partition_overwrite=None, overwrite_schema=False, data_change=True, partition_by=None)
    asked = replace(asked, read_version=None, reads_where=None)
    told = with_options(
        asked,
        {
            "REPLACEWHERE": "id = 2",
            "txnVersion": "8",
            "tableProperties": '{"x": "y"}',
            "delta.appendOnly": "false",
            "storageOptions": "{}",
            "createMode": "IGNORE",
        },
    )
    assert (told.replace_where, told.application, told.create_mode) == ("id = 2", ("job", 8), "ignore")
    assert told.properties == {"x": "y", "delta.appendOnly": "false"} and told.storage_options == {}
    same = replace(
        told, **{name: getattr(asked, name) for name in (
            "replace_where", "application", "create_mode", "properties", "storage_options",
        )}
    )  # fmt: skip
    assert same == asked
