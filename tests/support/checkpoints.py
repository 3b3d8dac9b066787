"""Checkpoints, hints, compactions and version checksums from plain action dicts.

The replay here is deliberately naive: one dictionary per kind of action.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.bitmaps import unique_id
from tests.support.delta_types import primitive_arrow
from tests.support.file_statistics import parse_stats, stats_struct_type, typed

Action = dict[str, Any]
_STRING_MAP = pa.map_(pa.string(), pa.string())
_STRINGS = pa.list_(pa.field("element", pa.string()))
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
        ("maxRowIndex", pa.int64()),
    ]
)
_ROW_TRACKING = [("baseRowId", pa.int64()), ("defaultRowCommitVersion", pa.int64())]
TXN = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
REMOVE = pa.struct(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()),
        ("partitionValues", _STRING_MAP),
        ("size", pa.int64()),
        ("deletionVector", _VECTOR),
        *_ROW_TRACKING,
    ]
)
METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _STRING_MAP)])),
        ("schemaString", pa.string()),
        ("partitionColumns", _STRINGS),
        ("configuration", _STRING_MAP),
        ("createdTime", pa.int64()),
    ]
)
PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", _STRINGS),
        ("writerFeatures", _STRINGS),
    ]
)
DOMAIN = pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())])
CHECKPOINT_METADATA = pa.struct([("version", pa.int64()), ("tags", _STRING_MAP)])
SIDECAR = pa.struct(
    [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()), ("tags", _STRING_MAP)]
)


def add_type(
    *, stats_json: bool = True, stats: pa.StructType | None = None, values: pa.StructType | None = None
) -> Any:
    """The Arrow type of a checkpoint's ``add`` column."""
    fields: list[Any] = [
        ("path", pa.string()),
        ("partitionValues", _STRING_MAP),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("tags", _STRING_MAP),
        ("deletionVector", _VECTOR),
        *_ROW_TRACKING,
        ("clusteringProvider", pa.string()),
    ]
    if stats_json:
        fields.append(("stats", pa.string()))
    if values is not None:
        fields.append(("partitionValues_parsed", values))
    if stats is not None:
        fields.append(("stats_parsed", stats))
    return pa.struct(fields)


class LogState:
    """What a sequence of commits amounts to. Protocol: "Action Reconciliation"."""

    def __init__(self, commits: Iterable[Iterable[Action]]) -> None:
        self.protocol: Action | None = None
        self.metadata: Action | None = None
        self.txns: dict[str, Action] = {}
        self.domains: dict[str, Action] = {}
        self.adds: dict[tuple[str, str | None], Action] = {}
        self.removes: dict[tuple[str, str | None], Action] = {}
        for commit in commits:
            for action in commit:
                self._apply(action)

    def _apply(self, action: Action) -> None:
        ((kind, body),) = action.items()
        if kind == "protocol":
            self.protocol = body
        elif kind == "metaData":
            self.metadata = body
        elif kind == "txn":
            self.txns[body["appId"]] = body
        elif kind == "domainMetadata":
            self.domains[body["domain"]] = body
        elif kind in ("add", "remove"):
            key = (body["path"], unique_id(body.get("deletionVector")))
            live, dead = (self.adds, self.removes) if kind == "add" else (self.removes, self.adds)
            dead.pop(key, None)
            live[key] = body

    @property
    def live_domains(self) -> list[Action]:
        """Domains that were not removed."""
        return [d for d in self.domains.values() if not d.get("removed")]

    def non_file_actions(self, *, removed_domains: bool = False) -> list[Action]:
        """Protocol, metadata, transactions and domains as wrapped actions."""
        out: list[Action] = []
        if self.protocol:
            out.append({"protocol": self.protocol})
        if self.metadata:
            out.append({"metaData": self.metadata})
        out += [{"txn": t} for t in self.txns.values()]
        domains = self.domains.values() if removed_domains else self.live_domains
        return out + [{"domainMetadata": d} for d in domains]

    def file_actions(self, *, tombstones: bool = True) -> list[Action]:
        """Adds and, if asked, removes, as wrapped actions without ``dataChange``."""
        out: list[Action] = [{"add": {**a, "dataChange": False}} for a in self.adds.values()]
        if tombstones:
            dropped = ("stats", "tags")
            for r in self.removes.values():
                out.append({"remove": {k: v for k, v in r.items() if k not in dropped} | {"dataChange": False}})
        return out


class CheckpointWriter:
    """Writes the checkpoint files of one version; what it wrote is in ``files`` and ``sidecar_files``."""

    def __init__(
        self,
        log: Path,
        version: int,
        state: LogState,
        *,
        stats_json: bool = True,
        stats_struct: bool = False,
        partition_values_struct: bool = False,
        tombstones: bool = True,
        row_group_size: int | None = None,
    ) -> None:
        self.log, self.version, self.state = log, version, state
        self.row_group_size = row_group_size
        self.files: list[Path] = []
        self.sidecar_files: list[Path] = []
        self.sidecars: list[Action] = []
        self._file_actions = state.file_actions(tombstones=tombstones)
        metadata = state.metadata or {"schemaString": '{"type":"struct","fields":[]}', "partitionColumns": []}
        fields = json.loads(metadata["schemaString"])["fields"]
        partitions = metadata["partitionColumns"]
        self._data = [f for f in fields if f["name"] not in partitions and f["type"] != "void"]
        self._partitions = [f for f in fields if f["name"] in partitions]
        self._stats_json = stats_json
        self._stats = stats_struct_type(self._data) if stats_struct else None
        self._values = (
            pa.struct([(_physical(f), primitive_arrow(f["type"])) for f in self._partitions])
            if partition_values_struct and self._partitions
            else None
        )

    def write(self, kind: str, parts: int, sidecars: int) -> dict[str, Any]:
        """Write a checkpoint of ``kind`` and return its hint, without checksum."""
        base = f"{self.version:020d}.checkpoint"
        if kind == "classic":
            self._parquet(self.log / f"{base}.parquet", [*self.state.non_file_actions(), *self._file_actions])
        elif kind == "multipart":
            everything = [*self.state.non_file_actions(), *self._file_actions]
            for part in range(parts):
                name = f"{base}.{part + 1:010d}.{parts:010d}.parquet"
                self._parquet(self.log / name, everything[part::parts])
        elif kind in ("v2-json", "v2-parquet", "v2-classic"):
            self._v2(base, kind, sidecars)
        else:
            raise ValueError(f"no such kind of checkpoint: {kind}")
        return self._hint(kind, parts)

    def _v2(self, base: str, kind: str, sidecars: int) -> None:
        (self.log / "_sidecars").mkdir(exist_ok=True)
        for number in range(sidecars):
            # part of the names that the reference gives, so that they do not look like checkpoints' names
            file = self.log / "_sidecars" / f"{base}.{number + 1:010d}.{sidecars:010d}.{uuid.uuid4()}.parquet"
            self._parquet(file, self._file_actions[number::sidecars], kinds=("add", "remove"))
            self.sidecar_files.append(self.files.pop())
            body = {"path": file.name, "sizeInBytes": file.stat().st_size, "modificationTime": _mtime_ms(file)}
            self.sidecars.append({"sidecar": body})
        actions = [{"checkpointMetadata": {"version": self.version}}, *self.state.non_file_actions(), *self.sidecars]
        if not sidecars:
            actions += self._file_actions
        if kind == "v2-json":
            file = self.log / f"{base}.{uuid.uuid4()}.json"
            file.write_text("".join(json.dumps(a) + "\n" for a in actions))
            self.files.append(file)
        else:
            name = f"{base}.parquet" if kind == "v2-classic" else f"{base}.{uuid.uuid4()}.parquet"
            self._parquet(self.log / name, actions, v2=True)

    def _parquet(self, file: Path, actions: list[Action], kinds: tuple[str, ...] = (), v2: bool = False) -> None:
        types = {
            "txn": TXN,
            "add": add_type(stats_json=self._stats_json, stats=self._stats, values=self._values),
            "remove": REMOVE,
            "metaData": METADATA,
            "protocol": PROTOCOL,
            "domainMetadata": DOMAIN,
        }
        if v2:
            types |= {"checkpointMetadata": CHECKPOINT_METADATA, "sidecar": SIDECAR}
        if kinds:
            types = {k: t for k, t in types.items() if k in kinds}
        columns = [pa.array([self._row(a, k) for a in actions], t) for k, t in types.items()]
        table = pa.Table.from_arrays(columns, schema=pa.schema(list(types.items())))
        pq.write_table(table, file, row_group_size=self.row_group_size, store_schema=False)
        self.files.append(file)

    def _row(self, action: Action, kind: str) -> Any:
        body = action.get(kind)
        if body is None:
            return None
        row = {k: list(v.items()) if k in _MAPS and isinstance(v, dict) else v for k, v in body.items()}
        if kind == "metaData":
            row["format"] = {**body["format"], "options": list(body["format"].get("options", {}).items())}
        if kind == "add" and self._stats is not None:
            row["stats_parsed"] = parse_stats(body.get("stats"), self._data)
        if kind == "add" and self._values is not None:
            texts = body["partitionValues"]
            row["partitionValues_parsed"] = {
                _physical(f): typed(texts[_physical(f)], f["type"]) if texts.get(_physical(f)) else None
                for f in self._partitions
            }
        return row

    def _hint(self, kind: str, parts: int) -> dict[str, Any]:
        sizes = sum(f.stat().st_size for f in (*self.files, *self.sidecar_files))
        extra = len(self.sidecars) + 1 if kind.startswith("v2") else 0
        hint: dict[str, Any] = {
            "version": self.version,
            "size": len(self.state.non_file_actions()) + len(self._file_actions) + extra,
        }
        if kind == "multipart":
            hint["parts"] = parts
        hint |= {"sizeInBytes": sizes, "numOfAddFiles": len(self.state.adds)}
        if kind.startswith("v2"):
            top = self.files[-1]
            hint["v2Checkpoint"] = {
                "path": top.name,
                "sizeInBytes": top.stat().st_size,
                "modificationTime": _mtime_ms(top),
                "nonFileActions": [
                    *self.state.non_file_actions(),
                    {"checkpointMetadata": {"version": self.version}},
                ],
                "sidecarFiles": [s["sidecar"] for s in self.sidecars],
            }
        return hint


_MAPS = {"partitionValues", "tags", "configuration"}


def _physical(f: Mapping[str, Any]) -> str:
    return str(f["metadata"].get("delta.columnMapping.physicalName", f["name"]))


def _mtime_ms(file: Path) -> int:
    return file.stat().st_mtime_ns // 1_000_000


def canonical_json(value: Mapping[str, Any]) -> str:
    """The form that a hint's checksum is taken of, sorted as the reference sorts. Protocol: "JSON checksum"."""
    leaves: list[tuple[str, str]] = []
    for key, child in value.items():
        if key != "checksum":
            _collect(_text(key), child, leaves)
    return ",".join(sorted((f"{path}={leaf}" for path, leaf in leaves), key=str.encode))


def _collect(path: str, value: Any, leaves: list[tuple[str, str]]) -> None:
    if isinstance(value, Mapping):
        for key, child in value.items():
            _collect(f"{path}+{_text(key)}", child, leaves)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            _collect(f"{path}+{index}", child, leaves)
    else:
        leaves.append((path, _text(value) if isinstance(value, str) else json.dumps(value)))


def _text(value: str) -> str:
    return f'"{quote(value, safe="")}"'


def hint_checksum(hint: Mapping[str, Any]) -> str:
    """The MD5 of the canonical form, 32 hexadecimal digits."""
    return hashlib.md5(canonical_json(hint).encode()).hexdigest()


def checksum_content(state: LogState, *, in_commit_timestamp: int | None, all_files: bool) -> dict[str, Any]:
    """The content of a version checksum file. Protocol: "Version Checksum File"."""
    adds = list(state.adds.values())
    vectors = [a["deletionVector"] for a in adds if a.get("deletionVector")]
    content: dict[str, Any] = {
        "txnId": str(uuid.uuid4()),
        "tableSizeBytes": sum(a["size"] for a in adds),
        "numFiles": len(adds),
        "numDeletedRecordsOpt": sum(v["cardinality"] for v in vectors),
        "numDeletionVectorsOpt": len(vectors),
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": list(state.txns.values()),
        "domainMetadata": state.live_domains,
        "metadata": state.metadata,
        "protocol": state.protocol,
    }
    if in_commit_timestamp is not None:
        content["inCommitTimestampOpt"] = in_commit_timestamp
    if all_files:
        content["allFiles"] = adds
    return content
