"""Commit lines: what is required is there, and what is read back is what was written."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_pyds.errors import ProtocolError
from delta_pyds.log.commit_reader import decode_commit
from delta_pyds.log.commit_writer import encode_commit
from delta_pyds.protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CheckpointMetadata,
    CommitInfo,
    DomainMetadata,
    Format,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    Sidecar,
    SingleAction,
)
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor

FORMAT = {"provider": "parquet", "options": {}}

# the least that each kind can say, and the line that it must become
LEAST: list[tuple[Action, dict[str, Any]]] = [
    (CommitInfo(), {"commitInfo": {}}),
    (
        Metadata(id="m", schema_string="{}"),
        {"metaData": {"id": "m", "format": FORMAT, "schemaString": "{}", "partitionColumns": [], "configuration": {}}},
    ),
    (Protocol(1, 2), {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}),
    (
        Protocol(3, 7),
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": []}},
    ),
    (Protocol(2, 7), {"protocol": {"minReaderVersion": 2, "minWriterVersion": 7, "writerFeatures": []}}),
    (
        AddFile("f"),
        {"add": {"path": "f", "partitionValues": {}, "size": 0, "modificationTime": 0, "dataChange": True}},
    ),
    (RemoveFile("f"), {"remove": {"path": "f", "dataChange": True}}),
    (
        RemoveFile("f", deletion_timestamp=0, partition_values={}, size=0),
        {
            "remove": {
                "path": "f",
                "deletionTimestamp": 0,
                "dataChange": True,
                "extendedFileMetadata": True,
                "partitionValues": {},
                "size": 0,
            }
        },
    ),
    (
        RemoveFile("f", partition_values={}, size=0, extended_file_metadata=False),
        {
            "remove": {
                "path": "f",
                "dataChange": True,
                "extendedFileMetadata": False,
                "partitionValues": {},
                "size": 0,
            }
        },
    ),
    (AddCDCFile("c"), {"cdc": {"path": "c", "partitionValues": {}, "size": 0, "dataChange": False}}),
    (SetTransaction("a", 0), {"txn": {"appId": "a", "version": 0}}),
    (DomainMetadata("d"), {"domainMetadata": {"domain": "d", "configuration": "", "removed": False}}),
    (Sidecar("s"), {"sidecar": {"path": "s", "sizeInBytes": 0, "modificationTime": 0}}),
    (CheckpointMetadata(0), {"checkpointMetadata": {"version": 0}}),
]


@pytest.mark.parametrize(("action", "line"), LEAST, ids=[next(iter(line)) for _, line in LEAST])
def test_required_fields_are_written_and_nothing_else(action: Action, line: dict[str, Any]) -> None:
    assert json.loads(encode_commit([action])) == line


def test_each_action_is_a_line_in_the_given_order() -> None:
    lines = encode_commit(iter([CommitInfo(operation="WRITE"), RemoveFile("b"), AddFile("a\nb")])).split(b"\n")
    assert [list(json.loads(line)) for line in lines[:-1]] == [["commitInfo"], ["remove"], ["add"]]
    assert lines[-1] == b""


def test_the_reference_finds_the_in_commit_timestamp_first() -> None:
    data = encode_commit([CommitInfo(timestamp=1, in_commit_timestamp=2, data_change=True, is_blind_append=False)])
    assert data.startswith(b'{"commitInfo":{"inCommitTimestamp":2,')
    assert json.loads(data)["commitInfo"] == {
        "inCommitTimestamp": 2,
        "timestamp": 1,
        "isBlindAppend": False,
        "dataChange": True,
    }


def test_a_commit_info_is_first_or_refused() -> None:
    with pytest.raises(ValueError, match="first action"):
        encode_commit([AddFile("a"), CommitInfo()])


@pytest.mark.parametrize("metadata", [Metadata(schema_string="{}"), Metadata(id="m")])
def test_metadata_that_no_reader_could_use_is_refused(metadata: Metadata) -> None:
    with pytest.raises(ProtocolError, match="metaData action cannot be written"):
        encode_commit([metadata])


def test_no_actions_are_an_empty_file() -> None:
    assert encode_commit([]) == b""


text = st.text(max_size=8)
numbers = st.integers(-(2**63), 2**63 - 1)
maybe_numbers = st.none() | numbers
maps = st.dictionaries(text, st.none() | text, max_size=3)
vectors = st.builds(
    DeletionVectorDescriptor,
    storage_type=st.sampled_from("uip"),
    path_or_inline_dv=text,
    size_in_bytes=st.integers(-(2**31), 2**31 - 1),
    cardinality=numbers,
    offset=st.none() | st.integers(-(2**31), 2**31 - 1),
    max_row_index=maybe_numbers,
)
files: dict[str, Any] = {
    "path": text,
    "data_change": st.booleans(),
    "stats": st.none() | text,
    "tags": st.none() | maps,
    "deletion_vector": st.none() | vectors,
    "base_row_id": maybe_numbers,
    "default_row_commit_version": maybe_numbers,
}
json_values = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(text, inner, max_size=2),
    max_leaves=4,
)
features = st.none() | st.lists(text, max_size=2)
actions = st.one_of(
    st.builds(
        AddFile,
        **files,
        partition_values=st.none() | maps,
        size=numbers,
        modification_time=numbers,
        clustering_provider=st.none() | text,
    ),
    st.builds(
        RemoveFile,
        **files,
        partition_values=st.none() | maps,
        size=maybe_numbers,
        deletion_timestamp=maybe_numbers,
        extended_file_metadata=st.none() | st.booleans(),
    ),
    st.builds(AddCDCFile, path=text, partition_values=st.none() | maps, size=numbers, tags=st.none() | maps),
    st.builds(SetTransaction, app_id=text, version=numbers, last_updated=maybe_numbers),
    st.builds(DomainMetadata, domain=text, configuration=text, removed=st.booleans()),
    st.builds(
        Protocol,
        min_reader_version=st.integers(0, 9),
        min_writer_version=st.integers(0, 9),
        reader_features=features,
        writer_features=features,
    ),
    st.builds(
        Metadata,
        id=st.text(min_size=1, max_size=5),
        name=st.none() | text,
        description=st.none() | text,
        format=st.none() | st.builds(Format, provider=text, options=st.none() | maps),
        schema_string=text,
        partition_columns=st.none() | st.lists(text, max_size=3),
        created_time=maybe_numbers,
        configuration=st.none() | maps,
    ),
    st.builds(Sidecar, path=text, size_in_bytes=numbers, modification_time=numbers, tags=st.none() | maps),
    st.builds(CheckpointMetadata, version=numbers, tags=st.none() | maps),
)
commit_infos = st.builds(
    CommitInfo,
    timestamp=maybe_numbers,
    in_commit_timestamp=maybe_numbers,
    operation=st.none() | text,
    operation_parameters=json_values,
    operation_metrics=json_values,
    is_blind_append=st.none() | st.booleans(),
    data_change=st.none() | st.booleans(),
    txn_id=st.none() | text,
    tags=json_values,
)


def completed(action: Action) -> Action:
    """The action with the protocol's values for those that are missing."""
    replace = msgspec.structs.replace
    if isinstance(action, (AddFile, AddCDCFile)):
        return replace(action, partition_values=action.partition_values or {})
    if isinstance(action, RemoveFile) and action.extended_file_metadata is None:
        extended = action.partition_values is not None and action.size is not None
        return replace(action, extended_file_metadata=True if extended else None)
    if isinstance(action, Protocol):
        reader, writer = action.reader_features, action.writer_features
        return replace(
            action,
            reader_features=[] if reader is None and action.min_reader_version >= 3 else reader,
            writer_features=[] if writer is None and action.min_writer_version >= 7 else writer,
        )
    if isinstance(action, Metadata):
        form = action.format or Format("parquet")
        return replace(
            action,
            format=replace(form, options=form.options or {}),
            partition_columns=action.partition_columns or [],
            configuration=action.configuration or {},
        )
    return action


def action_of(line: SingleAction) -> Action:
    """The one action of a decoded line."""
    [action] = (action for action in msgspec.structs.asdict(line).values() if action is not None)
    return action


@given(st.none() | commit_infos, st.lists(actions, max_size=5))
def test_what_is_read_back_is_what_was_written(info: CommitInfo | None, rest: list[Action]) -> None:
    written = [*([] if info is None else [info]), *rest]
    read = decode_commit(encode_commit(written), "f")
    assert [action_of(line) for line in read] == [completed(action) for action in written]
