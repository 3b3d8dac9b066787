"""Delta tables written by hand: an oracle that shares no code with the package.

    t = TableBuilder(path, {"id": "long", "p": "string"}, partition_columns=["p"])
    t.create()
    [add] = t.append([{"id": 1, "p": "a"}, {"id": 2, "p": "a"}])
    t.commit(t.delete_rows(add, [0]))
    t.checkpoint()
    assert t.expected_rows() == [{"id": 2, "p": "a"}]

Actions are wrapped dicts, ``{"add": {...}}``, as in a commit file. ``commit``
also takes raw strings, for damaged lines. A version's time is
``BASE_TIME_MS + version * 60_000`` unless told otherwise; the commit file's
modification time is set to it. All names in calls are logical names.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast
from urllib.parse import quote, unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support import bitmaps, checkpoints
from tests.support.checkpoints import Action, LogState
from tests.support.data_files import hive_escape, partition_text, physical_table, widen
from tests.support.delta_types import (
    FileNaming,
    assign_mapping,
    copy_of,
    keep_mapping,
    physical_name,
    schema_of,
    to_logical,
    type_of,
)
from tests.support.file_statistics import collect_statistics, stats_to_json, typed
from tests.support.large_table import LargeTable, generate_large

__all__ = ["BASE_TIME_MS", "Action", "LargeTable", "TableBuilder", "generate_large", "partition_text"]

BASE_TIME_MS = 1_700_000_000_000
_MODE = "delta.columnMapping.mode"
_READER_FEATURES = {"columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "typeWidening", "variantType"}
Rows: TypeAlias = Sequence[Mapping[str, Any]] | pa.Table


class TableBuilder:
    """One table, its log, and a model of the rows that every version holds."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: Any,
        partition_columns: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        *,
        protocol: tuple[int, int] | None = None,
        features: tuple[Sequence[str], Sequence[str]] | None = None,
        physical_names: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> None:
        """``features``: (reader, writer); without it and ``protocol`` they follow from properties and types."""
        self.path = Path(path)
        self.log_path = self.path / "_delta_log"
        self.log_path.mkdir(parents=True, exist_ok=True)
        self.version = -1
        self._commits: dict[int, list[Action]] = {}
        self._times: dict[int, int | None] = {}
        self._transaction_ids: dict[int, str] = {}
        self._contents: dict[str, pa.Table] = {}
        self._deleted: dict[str | None, set[int]] = {None: set()}
        self._metadata: Action = {"id": str(uuid.uuid4()), "configuration": {}, "partitionColumns": []}
        self._metadata = self.metadata(
            schema, properties, partition_columns=partition_columns, physical_names=physical_names, name=name
        )["metaData"]
        self._protocol = self._make_protocol(protocol, features)

    # ---- what the table is

    @property
    def schema(self) -> dict[str, Any]:
        """The latest schema as JSON, with column mapping metadata."""
        return cast("dict[str, Any]", json.loads(self._metadata["schemaString"]))

    @property
    def partition_columns(self) -> list[str]:
        """Logical names."""
        return list(self._metadata["partitionColumns"])

    @property
    def properties(self) -> dict[str, str]:
        """The latest table properties."""
        return dict(self._metadata["configuration"])

    @property
    def table_id(self) -> str:
        """The table's id."""
        return str(self._metadata["id"])

    def metadata(
        self,
        schema: Any = None,
        properties: Mapping[str, str] | None = None,
        *,
        partition_columns: Sequence[str] | None = None,
        physical_names: Mapping[str, str] | None = None,
        **extra: Any,
    ) -> Action:
        """A metaData action: the latest one with changes; columns of the same name keep their mapping."""
        configuration = dict(self._metadata["configuration"] if properties is None else properties)
        new = schema_of(schema) if schema is not None else self.schema
        if configuration.get(_MODE, "none") != "none":
            if self._metadata.get("schemaString"):
                keep_mapping(new, self.schema)
            first = int(configuration.get("delta.columnMapping.maxColumnId", 0)) + 1
            configuration["delta.columnMapping.maxColumnId"] = str(assign_mapping(new, physical_names, first))
        partitions = self.partition_columns if partition_columns is None else list(partition_columns)
        action = {
            "id": self._metadata["id"],
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(new, separators=(",", ":"), ensure_ascii=False),
            "partitionColumns": partitions,
            "configuration": configuration,
            "createdTime": BASE_TIME_MS,
        }
        return {"metaData": action | {k: v for k, v in extra.items() if v is not None}}

    def protocol(self) -> Action:
        """The table's protocol action."""
        return {"protocol": self._protocol}

    def _make_protocol(
        self, versions: tuple[int, int] | None, features: tuple[Sequence[str], Sequence[str]] | None
    ) -> dict[str, Any]:
        if features is None and versions is None:
            wanted = self._needed_features()
            if not wanted:
                versions = (1, 2)
            elif wanted == ["columnMapping"]:
                versions = (2, 5)
            elif wanted == ["changeDataFeed"]:
                versions = (1, 4)
            else:
                features = ([f for f in wanted if f in _READER_FEATURES], wanted)
        if features is None:
            assert versions is not None
            return {"minReaderVersion": versions[0], "minWriterVersion": versions[1]}
        reader, writer = versions or ((3 if features[0] else 1), 7)
        action: dict[str, Any] = {"minReaderVersion": reader, "minWriterVersion": writer}
        if reader >= 3:
            action["readerFeatures"] = list(features[0])
        return action | {"writerFeatures": list(dict.fromkeys([*features[0], *features[1]]))}

    def _needed_features(self) -> list[str]:
        schema, on = self._metadata["schemaString"], self.properties
        tests = {
            "columnMapping": on.get(_MODE, "none") != "none",
            "changeDataFeed": on.get("delta.enableChangeDataFeed") == "true",
            "deletionVectors": on.get("delta.enableDeletionVectors") == "true",
            "timestampNtz": '"timestamp_ntz"' in schema,
            "variantType": '"variant"' in schema,
            "v2Checkpoint": on.get("delta.checkpointPolicy") == "v2",
            "typeWidening": on.get("delta.enableTypeWidening") == "true",
            "inCommitTimestamp": on.get("delta.enableInCommitTimestamps") == "true",
            "rowTracking": on.get("delta.enableRowTracking") == "true",
            "domainMetadata": on.get("delta.enableRowTracking") == "true",
        }
        return [name for name, needed in tests.items() if needed]

    # ---- commits

    def create(self, actions: Sequence[Action | str] = (), **options: Any) -> int:
        """Commit protocol and metadata, and ``actions`` after them."""
        first = [self.protocol(), {"metaData": self._metadata}]
        return self.commit([*first, *actions], **{"operation": "CREATE TABLE", **options})

    def commit(
        self,
        actions: Sequence[Action | str] = (),
        version: int | None = None,
        timestamp_ms: int | None = None,
        in_commit_timestamp: int | None = None,
        *,
        operation: str = "WRITE",
        commit_info: bool | Mapping[str, Any] = True,
    ) -> int:
        """Write one commit file and return its version.

        ``timestamp_ms``: the file's modification time. ``in_commit_timestamp``:
        written when given, or when the table's property asks for it.
        """
        version = self.version + 1 if version is None else version
        timestamp = BASE_TIME_MS + version * 60_000 if timestamp_ms is None else timestamp_ms
        parsed = [a for a in map(_parsed, actions) if a]
        for action in parsed:
            self._metadata = action.get("metaData", self._metadata)
            self._protocol = action.get("protocol", self._protocol)
        if in_commit_timestamp is None and self.properties.get("delta.enableInCommitTimestamps") == "true":
            in_commit_timestamp = timestamp
        lines: list[Action | str] = list(actions)
        if commit_info or in_commit_timestamp is not None:
            info: dict[str, Any] = {} if in_commit_timestamp is None else {"inCommitTimestamp": in_commit_timestamp}
            info |= {"timestamp": timestamp, "operation": operation, "operationParameters": {}, "isBlindAppend": False}
            info |= {"engineInfo": "TableBuilder", "txnId": str(uuid.uuid4())}
            self._transaction_ids[version] = info["txnId"]
            lines.insert(0, {"commitInfo": info | (dict(commit_info) if isinstance(commit_info, Mapping) else {})})
        file = self.commit_file(version)
        file.write_text("".join(_line(a) + "\n" for a in lines), encoding="utf-8")
        self.set_mtime(version, timestamp)
        self._commits[version] = parsed
        self._times[version] = in_commit_timestamp
        self.version = max(self.version, version)
        return version

    def append(self, rows: Rows, *, commit: Mapping[str, Any] | None = None, **options: Any) -> list[Action]:
        """Write ``rows``, one file per partition, commit them, return the add actions; see ``write_file``."""
        adds = [
            self.write_file(part, **{"partition_values": values, **options})
            for values, part in self._by_partition(rows, options.get("partition_values"))
        ]
        self.commit(adds, **(commit or {}))
        return adds

    def _by_partition(self, rows: Rows, given: Any) -> list[tuple[dict[str, Any] | None, Rows]]:
        if given is not None or not self.partition_columns:
            return [(given, rows)]
        names = self.partition_columns
        groups: dict[str, tuple[dict[str, Any], list[Mapping[str, Any]]]] = {}
        for row in rows.to_pylist() if isinstance(rows, pa.Table) else rows:
            values = {n: row.get(n) for n in names}
            groups.setdefault(repr(values), (values, []))[1].append(row)
        return list(groups.values())

    def set_mtime(self, version: int | Path, timestamp_ms: int) -> None:
        """Set the modification time of a commit file, or of any path."""
        file = self.commit_file(version) if isinstance(version, int) else version
        os.utime(file, ns=(timestamp_ms * 1_000_000, timestamp_ms * 1_000_000))

    def commit_file(self, version: int) -> Path:
        """Where a version's commit is."""
        return self.log_path / f"{version:020d}.json"

    # ---- data files

    def write_file(
        self,
        rows: Rows,
        partition_values: Mapping[str, Any] | None = None,
        path: str | None = None,
        *,
        stats: bool | str | Mapping[str, Any] = True,
        columns: Sequence[str] | None = None,
        row_group_size: int | None = None,
        physical_names: Mapping[str, str] | None = None,
        field_ids: bool | Mapping[str, int] = True,
        file_types: Mapping[str, Any] | None = None,
        extra_columns: Mapping[str, Any] | None = None,
        parquet: Mapping[str, Any] | None = None,
        **add_fields: Any,
    ) -> Action:
        """Write one data file and return its add action, uncommitted.

        ``partition_values``: typed values or their strings. ``path``: on disk,
        not percent-encoded; relative to the table, or absolute.
        ``stats``: True, False, "wide" (tightBounds false), an object, or the JSON text.
        ``columns``: those that the file holds (of a pa.Table: those it has).
        ``physical_names`` and ``field_ids``: what the file says instead of the
        schema, by dotted logical name; ``field_ids`` False leaves them out.
        ``file_types``: narrower types of top-level columns, for type widening.
        ``extra_columns``: columns that the schema does not have, by their name in the file.
        ``parquet``: options of ``pyarrow.parquet.write_table``. ``add_fields``: ``baseRowId=...``.
        """
        schema, partitions = self.schema, self.partition_columns
        fields = [f for f in schema["fields"] if f["name"] not in partitions and f["type"] != "void"]
        if columns is not None or isinstance(rows, pa.Table):
            present = columns if columns is not None else rows.column_names
            fields = [f for f in fields if f["name"] in present]
        fields = [{**f, "type": type_of((file_types or {}).get(f["name"], f["type"]))} for f in fields]
        records = rows.to_pylist() if isinstance(rows, pa.Table) else list(rows)
        canonical = physical_table(records, fields, FileNaming(with_ids=False))
        ids = field_ids if isinstance(field_ids, Mapping) else None
        content = physical_table(records, fields, FileNaming(physical_names, ids, with_ids=field_ids is not False))
        for name, values in (extra_columns or {}).items():
            content = content.append_column(name, values if isinstance(values, pa.Array) else pa.array(values))
        strings = {n: partition_text(v) for n, v in self._partition_values(partition_values).items()}
        file, logged = self._place(path, strings)
        options = {"row_group_size": row_group_size, "store_schema": False, **(parquet or {})}
        pq.write_table(content, file, **options)
        self._contents[logged] = canonical
        add: dict[str, Any] = {
            "path": logged,
            "partitionValues": {physical_name(f): strings[f["name"]] for f in self._partition_fields()},
            "size": file.stat().st_size,
            "modificationTime": BASE_TIME_MS,
            "dataChange": True,
        }
        text = self._stats_text(stats, canonical, fields)
        return {"add": add | ({"stats": text} if text is not None else {}) | add_fields}

    def _stats_text(self, stats: Any, content: pa.Table, fields: list[dict[str, Any]]) -> str | None:
        if isinstance(stats, str) and stats != "wide":
            return stats
        if isinstance(stats, Mapping):
            return stats_to_json(stats)
        if not stats:
            return None
        indexed = int(self.properties.get("delta.dataSkippingNumIndexedCols", 32))
        tight = False if stats == "wide" else None
        return stats_to_json(
            collect_statistics(content.to_pylist(), fields, indexed_columns=indexed, tight_bounds=tight)
        )

    def _partition_fields(self) -> list[dict[str, Any]]:
        by_name = {f["name"]: f for f in self.schema["fields"]}
        return [by_name[n] for n in self.partition_columns]

    def _partition_values(self, given: Mapping[str, Any] | None) -> dict[str, Any]:
        values = dict(given or {})
        if set(values) != set(self.partition_columns):
            raise ValueError(f"partition_values must name {self.partition_columns}, got {sorted(values)}")
        return values

    def _place(self, path: str | None, strings: Mapping[str, str | None]) -> tuple[Path, str]:
        if path is None:
            folders = [
                f"{hive_escape(n)}={hive_escape(v) if v else '__HIVE_DEFAULT_PARTITION__'}" for n, v in strings.items()
            ]
            path = "/".join([*folders, f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"])
        file = self.path / path  # an absolute path stays what it is
        file.parent.mkdir(parents=True, exist_ok=True)
        encoded = quote(path, safe="/=:@!$&'()*+,;~-._")
        return file, f"file:{encoded}" if path.startswith("/") else encoded

    def add(self, path: str, *, rows: Rows | None = None, size: int = 1000, **fields: Any) -> Action:
        """An add action for a file that is not written; ``path`` as in the log, ``rows`` for the model."""
        if rows is not None:
            records = rows.to_pylist() if isinstance(rows, pa.Table) else list(rows)
            data = [f for f in self.schema["fields"] if f["name"] not in self.partition_columns and f["type"] != "void"]
            self._contents[path] = physical_table(records, data, FileNaming(with_ids=False))
        body = {"path": path, "partitionValues": {}, "size": size, "modificationTime": BASE_TIME_MS, "dataChange": True}
        return {"add": body | fields}

    def remove(self, add: Action, *, deletion_timestamp: int | None = None, **fields: Any) -> Action:
        """The remove action of an add action."""
        body = add["add"]
        kept = ("path", "partitionValues", "size", "deletionVector", "baseRowId", "defaultRowCommitVersion")
        when = BASE_TIME_MS + (self.version + 1) * 60_000 if deletion_timestamp is None else deletion_timestamp
        out = {"deletionTimestamp": when, "dataChange": True, "extendedFileMetadata": True}
        return {"remove": {k: body[k] for k in kept if k in body} | out | fields}

    # ---- deletion vectors

    def delete_rows(
        self, add: Action, positions: Iterable[int], storage: str = "u", *, prefix: str = "", magic: int = bitmaps.MAGIC
    ) -> tuple[Action, Action]:
        """Mark more rows of a file as deleted: (remove, add), uncommitted. ``storage``: ``u``, ``i`` or ``p``."""
        return self.delete_rows_of_many([(add, positions)], storage, prefix=prefix, magic=magic)[0]

    def delete_rows_of_many(
        self,
        work: Sequence[tuple[Action, Iterable[int]]],
        storage: str = "u",
        *,
        prefix: str = "",
        magic: int = bitmaps.MAGIC,
    ) -> list[tuple[Action, Action]]:
        """Like ``delete_rows`` for several files, whose vectors share one file."""
        dead = [
            self._deleted[bitmaps.unique_id(add["add"].get("deletionVector"))] | set(positions)
            for add, positions in work
        ]
        descriptors = bitmaps.write_vectors(
            self.path, [sorted(d) for d in dead], storage=storage, prefix=prefix, magic=magic
        )
        out = []
        for (add, _), positions, descriptor in zip(work, dead, descriptors, strict=True):
            self._deleted[bitmaps.unique_id(descriptor)] = positions
            body = {**add["add"], "deletionVector": descriptor}
            if body.get("stats"):
                body["stats"] = json.dumps({**json.loads(body["stats"]), "tightBounds": False}, separators=(",", ":"))
            out.append((self.remove(add), {"add": body}))
        return out

    def delete(self, add: Action, positions: Iterable[int], storage: str = "u", **options: Any) -> Action:
        """``delete_rows`` and commit; returns the new add action."""
        remove, new = self.delete_rows(add, positions, storage, **options)
        self.commit([remove, new], operation="DELETE")
        return new

    def vector_file(self, add: Action) -> Path:
        """The file that holds an add action's deletion vector, for damaging it."""
        wanted = bitmaps.unique_id(add["add"]["deletionVector"])
        descriptor = add["add"]["deletionVector"]
        if descriptor["storageType"] == "p":
            return Path(unquote(urlparse(descriptor["pathOrInlineDv"]).path))
        for file in self.path.rglob("deletion_vector_*.bin"):
            name = uuid.UUID(file.stem.removeprefix("deletion_vector_"))
            if f"{bitmaps.z85(name.bytes)}@" in str(wanted):
                return file
        raise ValueError(f"no file holds {wanted}")

    # ---- files of the log

    def state(self, version: int | None = None, first: int = 0) -> LogState:
        """The naive replay of commits ``first`` to ``version``."""
        last = self.version if version is None else version
        return LogState(self._commits[v] for v in sorted(self._commits) if first <= v <= last)

    def checkpoint(
        self,
        version: int | None = None,
        kind: str = "classic",
        *,
        parts: int = 2,
        sidecars: int = 1,
        write_hint: bool = True,
        hint_checksum: bool = True,
        **content: Any,
    ) -> list[Path]:
        """Write a checkpoint and return its files, without sidecars.

        ``kind``: "classic", "multipart", "v2-json", "v2-parquet" or "v2-classic" (a V2 checkpoint
        under the classic name). ``sidecars`` 0 puts file actions in the checkpoint itself.
        ``content``: ``stats_json``, ``stats_struct``, ``partition_values_struct``, ``tombstones``, ``row_group_size``.
        """
        version = self.version if version is None else version
        writer = checkpoints.CheckpointWriter(self.log_path, version, self.state(version), **content)
        hint = writer.write(kind, parts, sidecars)
        if write_hint:
            self.last_checkpoint(hint, checksum=hint_checksum)
        return writer.files

    def last_checkpoint(self, hint: Mapping[str, Any] | str, *, checksum: bool | str = True) -> Path:
        """Write ``_last_checkpoint``: an object, or any text. ``checksum``: computed, left out, or the one given."""
        file = self.log_path / "_last_checkpoint"
        if isinstance(hint, str):
            file.write_text(hint)
            return file
        content = dict(hint)
        if checksum:
            content["checksum"] = checksum if isinstance(checksum, str) else checkpoints.hint_checksum(hint)
        file.write_text(json.dumps(content, separators=(",", ":"), ensure_ascii=False), encoding="utf-8")
        return file

    def compact_log(self, first: int, last: int) -> Path:
        """Write the compaction of commits ``first`` to ``last``."""
        state = self.state(last, first)
        actions = [*state.non_file_actions(removed_domains=True)]
        actions += [{"add": a} for a in state.adds.values()] + [{"remove": r} for r in state.removes.values()]
        file = self.log_path / f"{first:020d}.{last:020d}.compacted.json"
        file.write_text("".join(_line(a) + "\n" for a in actions), encoding="utf-8")
        return file

    def checksum(self, version: int | None = None, *, all_files: bool = False, **changes: Any) -> Path:
        """Write a version checksum file; ``changes`` replace its fields, to make it wrong."""
        version = self.version if version is None else version
        time = self._times.get(version)
        content = checkpoints.checksum_content(self.state(version), in_commit_timestamp=time, all_files=all_files)
        content["txnId"] = self._transaction_ids.get(version, content["txnId"])
        file = self.log_path / f"{version:020d}.crc"
        file.write_text(json.dumps(content | changes, separators=(",", ":")))
        return file

    def cleanup_log(self, before: int) -> None:
        """Delete commits, checksums and checkpoints of versions below ``before``; the model keeps them."""
        for file in self.log_path.iterdir():
            if re.match(r"\d{20}\.(json|crc|checkpoint\..*)$", file.name) and int(file.name[:20]) < before:
                file.unlink()

    # ---- the model

    def active(self, version: int | None = None) -> list[Action]:
        """The add actions of a version, wrapped."""
        return [{"add": a} for a in self.state(version).adds.values()]

    def expected_rows(self, version: int | None = None) -> list[dict[str, Any]]:
        """The rows of a version, in no particular order, by logical name and in schema order."""
        state = self.state(version)
        assert state.metadata is not None
        fields = json.loads(state.metadata["schemaString"])["fields"]
        partitions = state.metadata["partitionColumns"]
        return [row for add in state.adds.values() for row in self._rows(add, fields, partitions)]

    def _rows(self, add: dict[str, Any], fields: list[Any], partitions: list[str]) -> list[dict[str, Any]]:
        if add["path"] not in self._contents:
            raise ValueError(f"the model does not know the rows of {add['path']}: give add() its rows")
        gone = self._deleted[bitmaps.unique_id(add.get("deletionVector"))]
        out = []
        for position, row in enumerate(self._contents[add["path"]].to_pylist()):
            if position in gone:
                continue
            values = {}
            for f in fields:
                if f["name"] in partitions:
                    text = add["partitionValues"].get(physical_name(f))
                    values[f["name"]] = typed(text, f["type"]) if text else None
                else:
                    values[f["name"]] = widen(to_logical(row.get(physical_name(f)), f["type"]), f["type"])
            out.append(values)
        return out

    # ---- damage and copies

    def copy(self, target: str | os.PathLike[str]) -> Path:
        """Copy the table's files, with their times."""
        return Path(shutil.copytree(self.path, target))

    def truncate(self, path: str | Path, size: int = 0) -> None:
        """Cut a file (relative to the table) to ``size`` bytes."""
        os.truncate(self.path / path, size)

    def flip_byte(self, path: str | Path, offset: int) -> None:
        """Invert one byte of a file (relative to the table); negative offsets count from the end."""
        file = self.path / path
        content = bytearray(file.read_bytes())
        content[offset] ^= 0xFF
        file.write_bytes(content)

    def data_file(self, add: Action) -> Path:
        """The data file of an add action."""
        logged = unquote(add["add"]["path"])
        return self.path / logged.removeprefix("file:")


def _line(action: Action | str) -> str:
    return action if isinstance(action, str) else json.dumps(action, separators=(",", ":"), ensure_ascii=False)


def _parsed(action: Action | str) -> Action | None:
    """Apply a line to the model; damaged lines change nothing."""
    if not isinstance(action, str):
        return cast("Action", copy_of(action))
    try:
        value = json.loads(action)
    except ValueError:
        return None
    return value if isinstance(value, dict) and len(value) == 1 else None


def build(path: Path, schema: Any, **options: Any) -> TableBuilder:
    table = TableBuilder(path, schema, **options)
    table.create()
    return table
