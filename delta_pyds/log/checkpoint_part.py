"""One Parquet file of a checkpoint: its rows of one kind of action.

Protocol: "Checkpoint Schema", "Sidecar Files".
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
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
from delta_pyds.log.decoded_size import MAX_TEXT_BYTES, longest_text, rows_at_once
from delta_pyds.protocol.actions import Action
from delta_pyds.storage.base import TAIL_BYTES, Storage
from delta_pyds.storage.read_ahead import Expectation, expect, in_background

_A = TypeVar("_A", bound=Action)

# Rows decoded at a time. Large enough for vectorised work; small enough that what
# a batch needs (some 500 bytes of statistics a file, several times over) is memory
# that was touched before: 65,536 rows took 1.3 to 1.6 times as long.
BATCH_ROWS = 16_384

# Of footers, for the next that opens their files; and what one takes, as bytes, Arrow's objects and ours.
_MAX_KNOWN_BYTES = 16 << 20
_KNOWN_BYTES_PER_BYTE = 8

# The field without which there is no action of a kind; of the others it is the path.
_REQUIRED = {"protocol": "minReaderVersion", "metaData": "id", "txn": "appId", "domainMetadata": "domain"}

# looking for one row, that is mostly among the first
_FEW_ROWS = 4_096

# What is fetched for nothing, where it spares a request.
_HOLE_BYTES = 1 << 20

# asked for together, in this order: whoever opens a table wants both
_OF_A_TABLE = ("protocol", "metaData")


@dataclass
class _Known:
    """What was found out about one content of one file: its footer, and its longest texts by leaf and row group."""

    footer: ParquetFooter
    footer_bytes: int
    longest_texts: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def num_bytes(self) -> int:
        return _KNOWN_BYTES_PER_BYTE * self.footer_bytes


_KNOWN: BoundedCache[Hashable, _Known] = BoundedCache(_MAX_KNOWN_BYTES, size_of=attrgetter("num_bytes"))


class CheckpointPart:
    """A Parquet file whose columns are kinds of actions. Opened when it is needed, once.

    ``referred_by``: the file that names it, for messages. ``content``: what the file holds, by a name that no other
    content will ever have; None where that is not certain. What is known of it is kept for the next that opens it.
    ``tail_bytes``, ``size_bytes``: see ``Storage.parquet_source``.

    Raises, whatever is read: MissingLogFilesError where there is no such file, CorruptLogError for a damaged one.
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
        self._of_a_table: Expectation | None = None

    def open_ahead(self) -> None:
        """Open it in the background, if it lies in a store, which would be waited for."""
        if self.waits and self._opening is None and "_opened" not in self.__dict__:
            self._opening = in_background(self.path, self._open)

    @property
    def waits(self) -> bool:
        """Whether reading is waiting for somebody."""
        return self._storage.scheme != "file"

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Turn what Arrow and the storage say about this file into a sentence for the user."""
        try:
            yield
        except FileNotFoundInStorageError:
            where = f", which {self._referred_by} refers to," if self._referred_by else ""
            raise MissingLogFilesError(
                f"the checkpoint file {self.path}{where} does not exist, so the table's files cannot be listed. "
                "Restore it, or delete the checkpoint it belongs to if all commits of the log are still there.",
                code="DELTA_MISSING_PART_FILES",
                path=self.path,
            ) from None
        except (MemoryError, pa.ArrowCapacityError) as e:
            # the same class: another checkpoint, or the commits, may say the same in less memory
            raise CorruptLogError(
                f"the checkpoint file {self.path} needs more memory than there is ({str(e) or 'out of memory'}). "
                "Give this process more memory. If checkpoints of this size can be read elsewhere, it was damaged: "
                "then restore it.",
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
                f"the checkpoint file {self.path} cannot be read ({e}). Restore it, or delete the checkpoint it "
                "belongs to if all commits of the log are still there.",
                code="DELTA_CORRUPT_CHECKPOINT",
                path=self.path,
            ) from e

    def _open(self) -> tuple[Any, pq.ParquetFile]:
        with self.explaining():
            source = self._storage.parquet_source(self.path, *(self._tail if self.waits else ()))
            # what an object is told to expect comes sooner than what Arrow asks for before it decodes
            parquet = open_parquet(source, pre_buffer=not hasattr(source, "expect"))
            # columns are told apart by dotted paths, as Parquet names its leaves
            if dotted := [name for name in parquet.schema_arrow.names if "." in name]:
                raise pa.ArrowInvalid(f"its column {dotted[0]!r} has a dot in its name")
            return source, parquet

    @cached_property
    def _opened(self) -> tuple[Any, pq.ParquetFile]:
        if self._opening is None:
            return self._open()
        try:
            return self._opening.result()
        except BaseException:
            self._opening = None  # whoever asks again may have more luck
            raise

    @property
    def _source(self) -> Any:
        return self._opened[0]

    @property
    def _file(self) -> pq.ParquetFile:
        return self._opened[1]

    def expect(self, columns: Sequence[str], groups: Iterable[int]) -> Expectation:
        """Ask a store for all that is below these (dotted) columns in row groups, before it is read."""
        if not hasattr(self._source, "expect"):
            return Expectation()
        with self.explaining():
            return expect(self._source, self._ranges(columns, groups), _HOLE_BYTES)

    def _ranges(self, columns: Sequence[str], groups: Iterable[int]) -> list[tuple[int, int]]:
        below = tuple(f"{column}." for column in columns)
        leaves = [i for i, leaf in enumerate(self._leaves) if leaf in columns or leaf.startswith(below)]
        chunks = [self._footer.chunk(group, leaf) for group in groups for leaf in leaves]
        return [(chunk.first_byte, chunk.first_byte + chunk.compressed_bytes) for chunk in chunks]

    @cached_property
    def _known(self) -> _Known:
        known = None if self._content is None else _KNOWN.get(self._content)
        size = int(self._file.metadata.serialized_size)
        if known is None or known.footer_bytes != size:
            known = _Known(ParquetFooter(self._file.metadata, self._source), size)
            if self._content is not None:
                _KNOWN.put(self._content, known)
        return known

    @property
    def _footer(self) -> ParquetFooter:
        return self._known.footer

    @cached_property
    def _leaves(self) -> tuple[str, ...]:
        schema = self._file.schema
        return tuple(schema.column(i).path for i in range(len(schema)))

    @cached_property
    def _instants(self) -> frozenset[str]:
        """Leaves of the type INT96, which only ever holds instants: a timestamp without zone has its own type."""
        schema = self._file.schema
        return frozenset(path for i, path in enumerate(self._leaves) if schema.column(i).physical_type == "INT96")

    @property
    def num_rows(self) -> int:
        return int(self._file.metadata.num_rows)

    def count(self, leaf: str) -> int | None:
        """How many rows have a value in a leaf such as ``add.path``; None where the footer does not tell."""
        if leaf not in self._leaves:
            return 0
        index = self._leaves.index(leaf)
        metadata = self._file.metadata
        total = 0
        for i in range(metadata.num_row_groups):
            with self.explaining():
                null_count = self._footer.chunk(i, index).null_count
            if null_count is None:
                return None
            total += metadata.row_group(i).num_rows - null_count
        return total

    def has_in_all(self, name: str, kind: str) -> bool:
        """True if the footer tells that every file of a kind has a value in a field."""
        files, values = self.count(f"{kind}.path"), self.count(f"{kind}.{name}")
        return files is not None and files == values

    def has_below(self, prefix: str) -> bool:
        """True if some leaf is below ``prefix``, such as ``add.stats_parsed``."""
        return any(path.startswith(prefix + ".") for path in self._leaves)

    def present(self, kind: str, names: Sequence[str]) -> tuple[str, ...]:
        """Those of the (dotted) fields of a kind that the file has."""
        return tuple(n for n in names if f"{kind}.{n}" in self._leaves or self.has_below(f"{kind}.{n}"))

    def row_groups_with(self, kind: str) -> list[int]:
        """Row groups that may hold such an action: those where the field that each has is not always null.

        One column of hundreds is asked, and no footer leaves its statistics out, as some do of floating columns.
        """
        leaves = [i for i, path in enumerate(self._leaves) if path == f"{kind}.{_REQUIRED.get(kind, 'path')}"]
        leaves = leaves or [i for i, path in enumerate(self._leaves) if path.startswith(kind + ".")]
        with self.explaining():
            chunks = {i: [self._footer.chunk(i, leaf) for leaf in leaves] for i in range(self._file.num_row_groups)}
        return [i for i, found in chunks.items() if not all(c.null_count == c.num_values for c in found)]

    def actions(self, kind: str, action: type[_A]) -> list[_A]:
        """All actions of one small kind, as objects."""
        with self.expect([kind], self.row_groups_with(kind)):
            return list(self._each(kind, action, BATCH_ROWS))

    def first(self, kind: str, action: type[_A]) -> _A | None:
        """The first action of a kind, such as the protocol, of which there is one: nothing behind it is decoded.

        It shares its row group with a hundred thousand files, in the checkpoints of some writers.
        """
        if self._of_a_table is None:
            groups = {group for kind in _OF_A_TABLE for group in self.row_groups_with(kind)}
            self._of_a_table = self.expect(_OF_A_TABLE, groups)
        found = next(self._each(kind, action, _FEW_ROWS), None)
        if kind == _OF_A_TABLE[-1]:
            self._of_a_table.close()
        return found

    def _each(self, kind: str, action: type[_A], batch_rows: int) -> Iterator[_A]:
        with self.explaining():
            groups = self.row_groups_with(kind)
            if groups:
                batch_rows = min(self._rows_at_once([kind], group, batch_rows) for group in groups)
                for batch in self._file.iter_batches(batch_rows, row_groups=groups, columns=[kind]):
                    column = batch.column(0)
                    present = column.filter(column.is_valid()) if column.null_count else column
                    yield from (msgspec.convert(plain_value(v.as_py(), v.type), action) for v in present)

    def _rows_at_once(self, columns: Sequence[str], group: int, most: int) -> int:
        below = tuple(f"{column}." for column in columns)
        leaves = [leaf for leaf in self._leaves if leaf in columns or leaf.startswith(below)]
        return rows_at_once(max((self._longest(leaf, group) for leaf in leaves), default=0), most)

    def _longest(self, leaf: str, group: int) -> int:
        """Bytes of the longest text that rows of a column chunk may share; 0 where it does not matter."""
        if leaf not in self._leaves:
            return 0
        texts = self._known.longest_texts
        known = texts.get((leaf, group))
        if known is None:
            chunk = self._footer.chunk(group, self._leaves.index(leaf))
            known = longest_text(self._source, self._file.metadata, group, leaf, chunk, BATCH_ROWS)
            texts[leaf, group] = known
        return known

    def check_files(self, kind: str, names: set[str]) -> None:
        """Refuse a column of another shape, which would read as a table without files or without values."""
        schema = self._file.schema_arrow
        if kind not in schema.names:
            return
        column = schema.field(kind).type
        fields = {f.name: f.type for f in column} if pa.types.is_struct(column) else {}
        if "path" not in fields:
            raise pa.ArrowInvalid(f"its column {kind} has no field path")
        if "partitionValues" in names and not pa.types.is_map(fields.get("partitionValues", pa.null())):
            raise pa.ArrowInvalid(f"its column {kind} has no map partitionValues")

    def rows(self, kind: str, group: int, names: Sequence[str]) -> Iterator[pa.StructArray]:
        """A column of a row group with just these fields, batch by batch, null rows included.

        The batches of other fields of the same group may be cut elsewhere. Statistics of an absurd length are left out.
        """
        with self.explaining():
            if "stats" in names and self._longest(f"{kind}.stats", group) > MAX_TEXT_BYTES:
                names = [name for name in names if name != "stats"]
            columns = self._columns(kind, names)
            batch_rows = self._rows_at_once(columns, group, BATCH_ROWS)
            batches = self._file.iter_batches(batch_rows, row_groups=[group], columns=columns)
            more = self._file.metadata.row_group(group).num_rows > batch_rows
            for batch in _decoded_ahead(batches) if more else batches:
                yield _with_zone(batch.column(0), kind, self._instants)

    def expect_rows(self, kind: str, group: int, names: Sequence[str]) -> Expectation:
        """Ask a store for what ``rows`` will read."""
        return self.expect(self._columns(kind, names), [group])

    def _columns(self, kind: str, names: Sequence[str]) -> list[str]:
        return [f"{kind}.{n}" for n in dict.fromkeys(names)] if self.present(kind, names) else [f"{kind}.path"]


def _decoded_ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches, each decoded while the one before is looked at."""
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(next, batches, None)
        while (batch := pending.result()) is not None:
            pending = pool.submit(next, batches, None)
            yield batch


def _with_zone(array: pa.Array, path: str, instants: frozenset[str]) -> pa.Array:
    """The array with those of its leaves that are instants in UTC."""
    if path in instants:
        return array.cast(pa.timestamp("us", "UTC"))
    if not pa.types.is_struct(array.type) or not any(i.startswith(path + ".") for i in instants):
        return array
    names = [f.name for f in array.type]
    children = [_with_zone(array.field(i), f"{path}.{name}", instants) for i, name in enumerate(names)]
    return pa.StructArray.from_arrays(children, names=names, mask=array.is_null())


def plain_value(value: Any, data_type: pa.DataType) -> Any:
    """A Parquet value in the shape that JSON would give: maps as objects, absent fields left out."""
    if value is None:
        return None
    if pa.types.is_struct(data_type):
        return {f.name: plain_value(value[f.name], f.type) for f in data_type if value.get(f.name) is not None}
    if pa.types.is_map(data_type):
        return {k: plain_value(v, data_type.item_type) for k, v in value}
    if pa.types.is_list(data_type):
        return [plain_value(v, data_type.value_type) for v in value]
    return value
