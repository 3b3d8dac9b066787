"""The state of a table as the rows of a checkpoint.

Files of the previous checkpoint stay Arrow rows throughout; nothing here makes an object for each file.
Protocol: "Action Reconciliation", "Checkpoints".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.errors import ProtocolError
from delta_pyds.log.adds import AddRequest, FileBatch
from delta_pyds.log.checkpoint_schema import (
    REMOVE,
    add_type,
    partition_values_type,
    statistics_type,
)
from delta_pyds.log.checkpoint_statistics import StatisticsConverter, to_json
from delta_pyds.log.commit_writer import wire_form
from delta_pyds.log.file_table import STRING_MAP, TOMBSTONE_COLUMNS
from delta_pyds.log.replay import LogReplay
from delta_pyds.protocol.actions import Action, DomainMetadata, Metadata, Protocol, SetTransaction
from delta_pyds.protocol.partition_values import PartitionValue, parse_partition_value
from delta_pyds.protocol.schema import TIMESTAMP, DataType, StructType
from delta_pyds.protocol.temporal import lacks_zone

_ADD_COLUMNS = (
    "path", "partitionValues", "size", "modificationTime", "tags", "deletionVector", "baseRowId",
    "defaultRowCommitVersion", "clusteringProvider",
)  # fmt: skip
_KNOWN_PARTITION_VALUES = 10_000
KINDS: dict[type[Action], str] = {
    SetTransaction: "txn",
    Metadata: "metaData",
    Protocol: "protocol",
    DomainMetadata: "domainMetadata",
}


@dataclass(frozen=True)
class CheckpointSettings:
    """The settings of a table's checkpoints, from its properties. Times are milliseconds since the epoch.

    ``schema``: logical, with physical names in its metadata if the table maps
    columns. ``partition_columns``: logical names.
    ``statistics_columns``: the columns in ``stats_parsed``, as paths of logical
    names. ``tombstones_since_ms``: older removes are left out.
    ``transactions_since_ms``: transactions that were not updated after it are
    left out; None keeps all. ``sidecar_actions``: the most actions in a sidecar of a V2 checkpoint.
    """

    schema: StructType
    partition_columns: tuple[str, ...] = ()
    statistics_columns: tuple[tuple[str, ...], ...] = ()
    policy: Literal["classic", "v2"] = "classic"
    stats_as_json: bool = True
    stats_as_struct: bool = True
    tombstones_since_ms: int = 0
    transactions_since_ms: int | None = None
    sidecar_actions: int = 50_000


class CheckpointRows:
    """The reconciled state at the version of a replay, as columns of a checkpoint."""

    def __init__(self, replay: LogReplay, settings: CheckpointSettings) -> None:
        self._replay = replay
        self._settings = settings
        schema, partitions = settings.schema, settings.partition_columns
        self._types = {f.physical_name: f.data_type for f in schema if f.name in partitions}
        self._statistics = None
        self._values = None
        if settings.stats_as_struct:
            self._statistics = StatisticsConverter(statistics_type(schema, partitions, settings.statistics_columns))
            self._values = None if self._lacks_zones() else partition_values_type(schema, partitions)
        self.add_type = add_type(
            stats_as_json=settings.stats_as_json,
            statistics=None if self._statistics is None else self._statistics.target,
            partition_values=self._values,
        )

    @cached_property
    def small_actions(self) -> tuple[Action, ...]:
        """All actions except file actions: protocol, metadata, unexpired transactions, live domains."""
        replay, since = self._replay, self._settings.transactions_since_ms
        transactions = replay.transactions.values()
        # as in the reference, a transaction without lastUpdated has expired
        kept = [t for t in transactions if since is None or (t.last_updated is not None and t.last_updated > since)]
        return (replay.protocol, replay.metadata, *kept, *replay.domains.values())

    def small_table(self, schema: pa.Schema) -> pa.Table:
        """The small actions as rows of a checkpoint with that schema."""
        columns = []
        for field in schema:
            rows = [row_of(a, field.type) if KINDS[type(a)] == field.name else None for a in self.small_actions]
            columns.append(pa.array(rows, field.type))
        return pa.Table.from_arrays(columns, schema=schema)

    def count(self) -> tuple[int, int]:
        """The numbers of files and tombstones."""
        adds = sum(b.files.num_rows for b in self._replay.adds(AddRequest(columns=("size",))))
        removes = sum(len(b) for b in self._replay.tombstones(self._settings.tombstones_since_ms))
        return adds, removes

    def adds(self) -> Iterator[pa.StructArray]:
        """Yield the column ``add``, batch by batch."""
        request = AddRequest(
            columns=_ADD_COLUMNS,
            filter_fields=("stats",),
            parsed_filter_fields=("stats", "stats_parsed"),
            with_filter_fields=True,
        )
        for batch in self._replay.adds(request):
            yield self._add(batch)

    def _add(self, batch: FileBatch) -> pa.StructArray:
        files = batch.files
        texts, parsed = _statistics(batch)
        given = {name: files.column(name) for name in _ADD_COLUMNS}
        given["partitionValues"] = _maps(files.column("partitionValues"))
        given["deletionVector"] = _vectors(files.column("deletionVector"))
        given["dataChange"] = pa.repeat(pa.scalar(False), len(files))
        if self._settings.stats_as_json:
            given["stats"] = to_json(texts, parsed)
        if self._statistics is not None:
            given["stats_parsed"] = self._statistics.to_struct(texts, parsed)
        if self._values is not None:
            given["partitionValues_parsed"] = self._partition_values(given["partitionValues"], self._values)
        return pa.StructArray.from_arrays([given[f.name] for f in self.add_type], fields=list(self.add_type))

    def removes(self) -> Iterator[pa.StructArray]:
        """Yield the column ``remove``, batch by batch."""
        for batch in self._replay.tombstones(self._settings.tombstones_since_ms):
            given = {name: batch.column(name) for name in TOMBSTONE_COLUMNS}
            given["deletionVector"] = _vectors(given["deletionVector"])
            given["dataChange"] = pa.repeat(pa.scalar(False), len(batch))
            yield pa.StructArray.from_arrays([given[f.name] for f in REMOVE], fields=list(REMOVE))

    def _lacks_zones(self) -> bool:
        """Whether some partition value is a timestamp without a zone, so that its instant is unknown.

        Typed values are left out then: a wrong instant, or a null, would hide the file from readers.
        """
        names = [name for name, data_type in self._types.items() if data_type == TIMESTAMP]
        if not names:
            return False
        return any(
            text and lacks_zone(text)
            for batch in self._replay.adds(AddRequest(columns=("partitionValues",)))
            for name in names
            for text in pc.unique(_texts(batch.files.column("partitionValues"), name)).to_pylist()
        )

    def _partition_values(self, maps: pa.MapArray, target: pa.StructType) -> pa.StructArray:
        columns = [self._partition_column(maps, field) for field in target]
        return pa.StructArray.from_arrays(columns, fields=list(target))

    def _partition_column(self, maps: pa.MapArray, field: pa.Field) -> pa.Array:
        """The typed values of a partition column; each distinct text is parsed once.

        Raises: ProtocolError for an invalid value: a null instead would hide the file from readers.
        """
        texts = _texts(maps, field.name).dictionary_encode()
        try:
            values = [self._partition_value(v, self._types[field.name]) for v in texts.dictionary.to_pylist()]
        except ProtocolError as e:
            raise ProtocolError(
                f"table {self._replay.segment.table_root}, column {field.name}: {e.message}",
                code=e.code,
                **e.parameters,
            ) from None
        return pa.array(values, field.type).take(texts.indices)

    @cached_property
    def _partition_value(self) -> Callable[[str, DataType], PartitionValue]:
        # values repeat in every batch
        @lru_cache(maxsize=_KNOWN_PARTITION_VALUES)
        def parse(text: str, data_type: DataType) -> PartitionValue:
            return parse_partition_value(text, data_type)

        return parse


def _statistics(batch: FileBatch) -> tuple[pa.StringArray, pa.StructArray | None]:
    """The statistics as text and as a struct; nulls, or None, for a form that the log lacks."""
    texts = parsed = None
    filter_fields = batch.filter_fields
    assert filter_fields is not None  # requested by with_filter_fields
    for i, field in enumerate(filter_fields.type):
        if field.name == "stats":
            texts = filter_fields.field(i).cast(pa.string())
        elif field.name == "stats_parsed" and pa.types.is_struct(field.type):
            parsed = filter_fields.field(i)
    return pa.nulls(batch.files.num_rows, pa.string()) if texts is None else texts, parsed


def _texts(maps: pa.MapArray, name: str) -> pa.StringArray:
    """The texts of one partition column."""
    return pc.map_lookup(maps, query_key=pa.scalar(name), occurrence="last")


def _maps(maps: pa.MapArray) -> pa.MapArray:
    """The maps, with empty maps instead of nulls: the protocol requires partition values."""
    if not maps.null_count:
        return maps
    return pa.array([v or [] for v in maps.to_pylist()], STRING_MAP)


def _vectors(vectors: pa.StructArray) -> pa.StructArray:
    """The vectors, with nulls instead of structs of nulls, which some writers use for a missing vector."""
    kinds = pc.struct_field(vectors, [vectors.type.get_field_index("storageType")])
    if kinds.null_count == vectors.null_count:
        return vectors
    return pa.StructArray.from_arrays(vectors.flatten(), fields=list(vectors.type), mask=kinds.is_null())


def row_of(action: Action, data_type: pa.DataType) -> Any:
    """The action as a value for an Arrow struct, with all fields that the protocol requires."""
    return _pairs(msgspec.to_builtins(wire_form(action)), data_type)


def _pairs(value: Any, data_type: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_map(data_type):
        return list(value.items())
    if pa.types.is_struct(data_type):
        return {f.name: _pairs(value.get(f.name), f.type) for f in data_type}
    return value
