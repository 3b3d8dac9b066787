"""One Parquet file of a checkpoint, read by kind of action.

Protocol: "Checkpoint Schema", "Sidecar Files".
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from delta_pyds.bounded_cache import BoundedCache
from delta_pyds.columnar.parquet_footer import ParquetFooter, open_parquet
from delta_pyds.errors import CorruptLogError, FileNotFoundInStorageError, MissingLogFilesError
from delta_pyds.log.decoded_size import MAX_TEXT_BYTES, longest_text, rows_per_batch
from delta_pyds.one_ahead import one_ahead
from delta_pyds.protocol.actions import Action
from delta_pyds.storage.base import TAIL_BYTES, Storage
from delta_pyds.storage.read_ahead import Expectation, expect, in_background

_A = TypeVar("_A", bound=Action)

# Rows decoded at a time: enough for vectorised work, and few enough to reuse memory. Each file has some 500 bytes of
# statistics, in several copies. 65,536 rows took 1.3 to 1.6 times as long.
BATCH_ROWS = 16_384

# The cache of footers: its limit, and the memory of a parsed footer for each of its bytes in the file.
_MAX_FACTS_BYTES = 16 << 20
_FACTS_BYTES_PER_FOOTER_BYTE = 8

# The required field of each kind of action; for other kinds it is the path.
_REQUIRED = {"protocol": "minReaderVersion", "metaData": "id", "txn": "appId", "domainMetadata": "domain"}

# rows decoded at a time in search of one row, which is usually among the first
_FEW_ROWS = 4_096

# A gap up to this size between two ranges is fetched with them, to save a request.
_HOLE_BYTES = 1 << 20

# requested together, in this order: opening a table needs both
_TABLE_KINDS = ("protocol", "metaData")


@dataclass
class _PartFacts:
    """Facts about the content of a file: its footer, and its longest texts by leaf and row group."""

    footer: ParquetFooter
    footer_bytes: int
    longest_texts: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def num_bytes(self) -> int:
        return _FACTS_BYTES_PER_FOOTER_BYTE * self.footer_bytes


_FACTS: BoundedCache[Hashable, _PartFacts] = BoundedCache(_MAX_FACTS_BYTES, size_of=attrgetter("num_bytes"))


class CheckpointPart:
    """A Parquet file whose columns are kinds of actions. It is opened once, when it is needed.

    Args:
        storage: the table's storage.
        path: the file.
        referred_by: the file that names it, for messages.
        content: a key that identifies the file's content, for caches; None if the file may change under the same key.
        tail_bytes: see ``Storage.parquet_source``.
        size_bytes: see ``Storage.parquet_source``.

    Raises, from methods that read: MissingLogFilesError if the file does not exist, CorruptLogError if it is damaged.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        referred_by: str | None = None,
        content: Hashable = None,
        tail_bytes: int = TAIL_BYTES,
        size_bytes: int | None = None,
    ) -> None:
        self._storage = storage
        self.path = path
        self._referred_by = referred_by
        self._content = content
        self._tail = tail_bytes, size_bytes
        self._opening: Future[tuple[Any, pq.ParquetFile]] | None = None
        self._table_expectation: Expectation | None = None

    def open_ahead(self) -> None:
        """Open the file in the background, if it is in a store."""
        if self.is_remote and self._opening is None and "_opened" not in self.__dict__:
            self._opening = in_background(self.path, self._open)

    @property
    def is_remote(self) -> bool:
        """Whether the file is in a store, so that each request takes time."""
        return self._storage.scheme != "file"

    @contextmanager
    def translating_errors(self) -> Iterator[None]:
        """Turn errors of Arrow and the storage into errors that name this file and a remedy."""
        try:
            yield
        except FileNotFoundInStorageError:
            where = f", which {self._referred_by} refers to," if self._referred_by else ""
            raise MissingLogFilesError(
                f"the checkpoint file {self.path}{where} does not exist, so the table's files cannot be listed. "
                "Restore it, or delete its checkpoint if the log still has all its commits.",
                code="DELTA_MISSING_PART_FILES",
                path=self.path,
            ) from None
        except (MemoryError, pa.ArrowCapacityError) as e:
            # as for a damaged file: callers then try another checkpoint, or the commits, which may need less memory
            raise CorruptLogError(
                f"the checkpoint file {self.path} needs more memory than available ({str(e) or 'out of memory'}). "
                "Give this process more memory. If other checkpoints of this size can be read, the file is damaged: "
                "restore it.",
                code="DELTA_OUT_OF_MEMORY",
                path=self.path,
            ) from e
        except (
            pa.ArrowException,
            OSError,
            msgspec.ValidationError,
            KeyError,
            TypeError,
            ValueError,
            OverflowError,
        ) as e:
            raise CorruptLogError(
                f"the checkpoint file {self.path} cannot be read ({e}). Restore it, or delete its checkpoint if the "
                "log still has all its commits.",
                code="DELTA_CORRUPT_CHECKPOINT",
                path=self.path,
            ) from e

    def _open(self) -> tuple[Any, pq.ParquetFile]:
        with self.translating_errors():
            source = self._storage.parquet_source(self.path, *(self._tail if self.is_remote else ()))
            # our own read-ahead of an object starts earlier than Arrow's
            parquet = open_parquet(source, pre_buffer=not hasattr(source, "expect"))
            # dotted paths identify columns, as Parquet names its leaves
            if dotted := [name for name in parquet.schema_arrow.names if "." in name]:
                raise pa.ArrowInvalid(f"the column name {dotted[0]!r} contains a dot")
            return source, parquet

    @cached_property
    def _opened(self) -> tuple[Any, pq.ParquetFile]:
        if self._opening is None:
            return self._open()
        try:
            return self._opening.result()
        except BaseException:
            self._opening = None  # a later call tries again
            raise

    @property
    def _source(self) -> Any:
        return self._opened[0]

    @property
    def _file(self) -> pq.ParquetFile:
        return self._opened[1]

    def expect(self, columns: Sequence[str], groups: Iterable[int]) -> Expectation:
        """Request these (dotted) columns of row groups, with everything below them, before they are read."""
        if not hasattr(self._source, "expect"):
            return Expectation()
        with self.translating_errors():
            return expect(self._source, self._ranges(columns, groups), _HOLE_BYTES)

    def _ranges(self, columns: Sequence[str], groups: Iterable[int]) -> list[tuple[int, int]]:
        below = tuple(f"{column}." for column in columns)
        leaves = [i for i, leaf in enumerate(self._leaves) if leaf in columns or leaf.startswith(below)]
        chunks = [self._footer.chunk(group, leaf) for group in groups for leaf in leaves]
        return [(chunk.first_byte, chunk.first_byte + chunk.compressed_bytes) for chunk in chunks]

    @cached_property
    def _facts(self) -> _PartFacts:
        facts = None if self._content is None else _FACTS.get(self._content)
        size = int(self._file.metadata.serialized_size)
        if facts is None or facts.footer_bytes != size:
            facts = _PartFacts(ParquetFooter(self._file.metadata, self._source), size)
            if self._content is not None:
                _FACTS.put(self._content, facts)
        return facts

    @property
    def _footer(self) -> ParquetFooter:
        return self._facts.footer

    @cached_property
    def _leaves(self) -> tuple[str, ...]:
        schema = self._file.schema
        return tuple(schema.column(i).path for i in range(len(schema)))

    @cached_property
    def _instants(self) -> frozenset[str]:
        """The leaves of type INT96, which always holds instants: a timestamp without a zone has its own type."""
        schema = self._file.schema
        return frozenset(path for i, path in enumerate(self._leaves) if schema.column(i).physical_type == "INT96")

    @property
    def num_rows(self) -> int:
        return int(self._file.metadata.num_rows)

    def count(self, leaf: str) -> int | None:
        """The number of rows with a value in a leaf such as ``add.path``; None if the footer does not say."""
        if leaf not in self._leaves:
            return 0
        index = self._leaves.index(leaf)
        metadata = self._file.metadata
        total = 0
        for i in range(metadata.num_row_groups):
            with self.translating_errors():
                null_count = self._footer.chunk(i, index).null_count
            if null_count is None:
                return None
            total += metadata.row_group(i).num_rows - null_count
        return total

    def has_in_all(self, name: str, kind: str) -> bool:
        """Whether every file action of a kind has a value in a field, according to the footer."""
        files, values = self.count(f"{kind}.path"), self.count(f"{kind}.{name}")
        return files is not None and files == values

    def has_below(self, prefix: str) -> bool:
        """Whether a leaf is below ``prefix``, such as ``add.stats_parsed``."""
        return any(path.startswith(prefix + ".") for path in self._leaves)

    def present(self, kind: str, names: Sequence[str]) -> tuple[str, ...]:
        """Those of the (dotted) fields ``names`` of a kind that the file has."""
        return tuple(n for n in names if f"{kind}.{n}" in self._leaves or self.has_below(f"{kind}.{n}"))

    def row_groups_with(self, kind: str) -> list[int]:
        """The row groups that may hold an action of this kind: those whose required field is not always null.

        This needs one column of hundreds. A row group whose null counts are unknown may hold such an action.
        """
        leaves = [i for i, path in enumerate(self._leaves) if path == f"{kind}.{_REQUIRED.get(kind, 'path')}"]
        leaves = leaves or [i for i, path in enumerate(self._leaves) if path.startswith(kind + ".")]
        with self.translating_errors():
            chunks = {i: [self._footer.chunk(i, leaf) for leaf in leaves] for i in range(self._file.num_row_groups)}
        return [i for i, found in chunks.items() if not all(c.null_count == c.num_values for c in found)]

    def actions(self, kind: str, action: type[_A]) -> list[_A]:
        """All actions of one small kind, as objects."""
        with self.expect([kind], self.row_groups_with(kind)):
            return list(self._decoded(kind, action, BATCH_ROWS))

    def first(self, kind: str, action: type[_A]) -> _A | None:
        """The first action of a kind with only one action, such as the protocol.

        No later rows are decoded: some writers put the action into a row group with a hundred thousand files.
        """
        if self._table_expectation is None:
            groups = {group for kind in _TABLE_KINDS for group in self.row_groups_with(kind)}
            self._table_expectation = self.expect(_TABLE_KINDS, groups)
        found = next(self._decoded(kind, action, _FEW_ROWS), None)
        if kind == _TABLE_KINDS[-1]:
            self._table_expectation.close()
        return found

    def _decoded(self, kind: str, action: type[_A], batch_rows: int) -> Iterator[_A]:
        with self.translating_errors():
            groups = self.row_groups_with(kind)
            if groups:
                batch_rows = min(self._rows_per_batch([kind], group, batch_rows) for group in groups)
                for batch in self._file.iter_batches(batch_rows, row_groups=groups, columns=[kind]):
                    column = batch.column(0)
                    present = column.filter(column.is_valid()) if column.null_count else column
                    yield from (msgspec.convert(plain_value(v.as_py(), v.type), action) for v in present)

    def _rows_per_batch(self, columns: Sequence[str], group: int, most: int) -> int:
        below = tuple(f"{column}." for column in columns)
        leaves = [leaf for leaf in self._leaves if leaf in columns or leaf.startswith(below)]
        return rows_per_batch(max((self._longest(leaf, group) for leaf in leaves), default=0), most)

    def _longest(self, leaf: str, group: int) -> int:
        """Bytes of the longest text that rows of a column chunk may share; 0 if it does not matter."""
        if leaf not in self._leaves:
            return 0
        texts = self._facts.longest_texts
        longest = texts.get((leaf, group))
        if longest is None:
            chunk = self._footer.chunk(group, self._leaves.index(leaf))
            longest = longest_text(self._source, self._file.metadata, group, leaf, chunk, BATCH_ROWS)
            texts[leaf, group] = longest
        return longest

    def check_files(self, kind: str, names: set[str]) -> None:
        """Refuse a column of an unexpected type: it would look like a table without files or values.

        Raises: pyarrow.ArrowInvalid. Call it within ``translating_errors``.
        """
        schema = self._file.schema_arrow
        if kind not in schema.names:
            return
        column = schema.field(kind).type
        fields = {f.name: f.type for f in column} if pa.types.is_struct(column) else {}
        if "path" not in fields:
            raise pa.ArrowInvalid(f"the column {kind} has no field path")
        if "partitionValues" in names and not pa.types.is_map(fields.get("partitionValues", pa.null())):
            raise pa.ArrowInvalid(f"the column {kind} has no map partitionValues")

    def rows(self, kind: str, group: int, names: Sequence[str]) -> Iterator[pa.StructArray]:
        """Yield a column of a row group with only these fields, in batches, null rows included.

        Another call, for other fields, may yield batches of other sizes. Extremely long statistics are left out.
        """
        with self.translating_errors():
            if "stats" in names and self._longest(f"{kind}.stats", group) > MAX_TEXT_BYTES:
                names = [name for name in names if name != "stats"]
            columns = self._columns(kind, names)
            batch_rows = self._rows_per_batch(columns, group, BATCH_ROWS)
            batches = self._file.iter_batches(batch_rows, row_groups=[group], columns=columns)
            more = self._file.metadata.row_group(group).num_rows > batch_rows
            for batch in one_ahead(batches) if more else batches:
                yield _with_zone(batch.column(0), kind, self._instants)

    def expect_rows(self, kind: str, group: int, names: Sequence[str]) -> Expectation:
        """Request the ranges that ``rows`` will read."""
        return self.expect(self._columns(kind, names), [group])

    def _columns(self, kind: str, names: Sequence[str]) -> list[str]:
        return [f"{kind}.{n}" for n in dict.fromkeys(names)] if self.present(kind, names) else [f"{kind}.path"]


def _with_zone(array: pa.Array, path: str, instants: frozenset[str]) -> pa.Array:
    """The array with its leaves in ``instants`` as timestamps in UTC."""
    if path in instants:
        return array.cast(pa.timestamp("us", "UTC"))
    if not pa.types.is_struct(array.type) or not any(i.startswith(path + ".") for i in instants):
        return array
    names = [f.name for f in array.type]
    children = [_with_zone(array.field(i), f"{path}.{name}", instants) for i, name in enumerate(names)]
    return pa.StructArray.from_arrays(children, names=names, mask=array.is_null())


def plain_value(value: Any, data_type: pa.DataType) -> Any:
    """A Parquet value as JSON decoding would return it: maps as dicts, absent fields left out."""
    if value is None:
        return None
    if pa.types.is_struct(data_type):
        return {f.name: plain_value(value[f.name], f.type) for f in data_type if value.get(f.name) is not None}
    if pa.types.is_map(data_type):
        return {k: plain_value(v, data_type.item_type) for k, v in value}
    if pa.types.is_list(data_type):
        return [plain_value(v, data_type.value_type) for v in value]
    return value
