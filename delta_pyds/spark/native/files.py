"""The files of a scan for Spark's own Parquet reader.

Invariant: each file of the scan occurs once. A file that Spark would leave out, read twice or misread by its name or
size is a reason against Spark's reader.

Protocol: "Add File and Remove File", "Partition Value Serialization".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.objects_of_rows import ObjectsOfRows
from delta_pyds.columnar.scan_files import PARTITION_PREFIX, to_scan_files
from delta_pyds.data.write.layout import unescape_path_name
from delta_pyds.errors import ProtocolError
from delta_pyds.log.adds import AddRequest
from delta_pyds.log.file_table import files_to_batch
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.partition_values import invalid_in_file, parse_partition_value
from delta_pyds.protocol.schema import DataType, PrimitiveType, StructType
from delta_pyds.spark.native.uris import spark_uri, spark_uris
from delta_pyds.storage.allowed_roots import Restricted, require_all_allowed
from delta_pyds.storage.base import Storage
from delta_pyds.storage.resolve import authority_of, scheme_of
from delta_pyds.table.scan.scan import Scan
from delta_pyds.table.transaction.row_counts import row_counts
from delta_pyds.tasks.scan_state import ScanFile, ScanState

# Spark ignores files with such names: it takes them for its own unfinished files.
_HIDDEN = r"(^|/)[_.][^/]*$|\._COPYING_$"
_COLON = ":[^/]*$"
_ABSOLUTE = "^/|^[a-zA-Z][a-zA-Z0-9+.-]*:/"
# Below a directory of this name, Spark looks for no partition values.
_UNFINISHED = "_temporary"
_VECTOR_FIELDS = ("deletionVector",)
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
# The most rows in files with deletion vectors: one bit for each row goes to every executor, 64 MB in all.
MAX_ROWS_WITH_DELETIONS = 1 << 29
# Texts that Spark's cast and the protocol certainly read as the same value.
_PLAIN_TEXTS = {
    **dict.fromkeys(("byte", "short", "integer", "long"), re.compile(r"-?(0|[1-9][0-9]*)")),
    "date": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    "boolean": re.compile("true|false"),
    "string": re.compile(".+", re.DOTALL),
}


@dataclass(frozen=True)
class NativeFiles:
    """The files to read, as Arrow columns. A Python object for a file is made only on request.

    ``rows``: rows of ``columnar.scan_files``, and ``modificationTime`` and ``uri``, Spark's spelling of the file.
    ``hive_columns``: the physical names of the partition columns, in the order of the directories. None unless the
    directories of all files name the values of the log. ``num_records``: the number of rows by position, for files
    with a deletion vector, as far as the log has it.
    """

    rows: pa.Table
    table_root: str
    hive_columns: tuple[str, ...] | None = None
    num_records: Mapping[int, int] = field(default_factory=dict)

    @cached_property
    def files(self) -> Sequence[ScanFile]:
        """The files; each is made on request."""
        return ObjectsOfRows(self.rows, lambda batch: to_scan_files(batch, self.table_root))

    @cached_property
    def with_deletions(self) -> tuple[int, ...]:
        """Positions of the files that have a deletion vector."""
        return tuple(pc.indices_nonzero(_has_vector(self.rows.column("deletionVector"))).to_pylist())

    def rows_at(self, chosen: Sequence[int]) -> pa.Table:
        """The rows at these positions."""
        if isinstance(chosen, range) and chosen.step == 1:
            return self.rows.slice(chosen.start, len(chosen))
        return self.rows.take(pa.array(chosen, pa.int64()))


def list_files(scan: Scan) -> NativeFiles:
    """The files of the scan. Statistics are read for a predicate, and where files have deletion vectors.

    Raises: ProtocolError, DeletionVectorError for a damaged log, and what reading the log raises.
    """
    request = scan.request((*scan.selection.file_fields, "modificationTime"))
    batches = [_with_uris(scan, batch.files) for batch in scan.adds(request)]
    return _native_files(scan, batches, _records(scan, batches))


def _records(scan: Scan, batches: Sequence[pa.RecordBatch]) -> dict[int, int]:
    """The number of rows by position, for files with a deletion vector, as far as the log has it.

    A table without the feature may still have deletion vectors: then the numbers stay unknown.
    """
    if not scan.snapshot.configuration.supports(Feature.DELETION_VECTORS):
        return {}
    deleted: list[tuple[int, str]] = []
    start = 0
    for batch in batches:
        at = pc.indices_nonzero(_has_vector(batch.column("deletionVector")))
        deleted += zip(pc.add(at, start).to_pylist(), batch.column("path").take(at).to_pylist(), strict=True)
        start += batch.num_rows
    if not deleted:
        return {}
    # a checkpoint decodes statistics only of row groups that have such files
    request = AddRequest(("path", "stats"), _VECTOR_FIELDS, _VECTOR_FIELDS, keep=_adds_with_vectors)
    by_path = {
        path: row_counts(stats).num_records
        for batch in scan.adds(request)
        for path, stats in zip(*(batch.files.column(name).to_pylist() for name in request.columns), strict=True)
    }
    return {n: count for n, path in deleted if (count := by_path.get(path)) is not None}


def _adds_with_vectors(add: pa.StructArray) -> pa.BooleanArray:
    if add.type.get_field_index("deletionVector") < 0:
        return pa.repeat(pa.scalar(False), len(add))
    return _has_vector(add.field("deletionVector"))


def files_of(scan: Scan, files: Sequence[pa.RecordBatch]) -> NativeFiles:
    """These files of the scan, in their order. ``files``: rows with all columns of ``FILE_COLUMNS``.

    Raises: ProtocolError for an invalid partition value.
    """
    batches = [_with_uris(scan, batch) for batch in files]
    counts: dict[int, int] = {}
    if scan.snapshot.configuration.supports(Feature.DELETION_VECTORS):
        start = 0
        for batch in files:
            at = pc.indices_nonzero(_has_vector(batch.column("deletionVector")))
            for n, stats in zip(at.to_pylist(), batch.column("stats").take(at).to_pylist(), strict=True):
                if (count := row_counts(stats).num_records) is not None:
                    counts[start + n] = count
            start += batch.num_rows
    return _native_files(scan, batches, counts)


def _with_uris(scan: Scan, files: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of ``NativeFiles``. ``files``: rows of the log, with ``modificationTime``."""
    rows, times = scan.selection.to_scan_batch(files), files.column("modificationTime")
    uris = spark_uris(scan.snapshot.table_root, rows.column("path"))
    return rows.append_column("modificationTime", times.fill_null(0)).append_column("uri", uris)


def _native_files(scan: Scan, batches: Sequence[pa.RecordBatch], records: Mapping[int, int]) -> NativeFiles:
    if not batches:
        empty = files_to_batch((), (*scan.selection.file_fields, "modificationTime"))
        batches = [_with_uris(scan, empty)]
    rows = pa.Table.from_batches(batches)
    return NativeFiles(rows, scan.snapshot.table_root, hive_columns(scan, rows), records)


def group_numbers(columns: Sequence[pa.ChunkedArray]) -> pa.Array:
    """A number for each row; rows with equal values have the same number."""
    numbers: pa.Array | None = None
    for column in columns:
        encoded = column.combine_chunks().dictionary_encode()
        codes = encoded.indices.cast(pa.int64()).fill_null(len(encoded.dictionary))
        if numbers is not None:
            both = pc.add(pc.multiply(numbers, len(encoded.dictionary) + 1), codes)
            codes = both.dictionary_encode().indices.cast(pa.int64())
        numbers = codes
    assert numbers is not None
    return numbers


def first_of_each(numbers: pa.Array) -> pa.Array:
    """The position of the first row with each number, in ascending order."""
    return pc.index_in(pc.unique(numbers), value_set=numbers)


def _has_vector(vectors: pa.Array) -> pa.Array:
    # some writers of checkpoints write a struct of nulls if there is no deletion vector
    return pc.is_valid(pc.struct_field(vectors, "storageType"))


def require_allowed_files(storage: Storage, files: NativeFiles) -> None:
    """Check that the storage allows the files, because Spark opens them without it. Raises: StorageError."""
    if isinstance(storage, Restricted):
        require_all_allowed(storage, (file.path for file in files.files))


def reasons_against_files(files: NativeFiles, scan: ScanState) -> Iterator[str]:
    """The reasons why Spark would not read exactly these files."""
    uris = files.rows.column("uri")

    def first(odd: pa.ChunkedArray) -> str | None:
        at = pc.index(odd, True).as_py()
        return None if at < 0 else files.files[at].path

    if path := first(pc.match_substring_regex(uris, _HIDDEN)):
        yield f"Spark ignores the file '{path}' because of its name"
    if pc.count_distinct(uris).as_py() < len(uris):
        counts = pc.value_counts(uris)
        twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")[0]
        yield f"the file '{first(pc.equal(uris, twice))}' is in the table twice"
    if path := first(pc.less_equal(files.rows.column("size").fill_null(0), 0)):
        yield f"the log does not record the size of the file '{path}', so Spark would ignore it as empty"
    scheme = scheme_of(scan.table_root)
    # Hadoop looks for a checksum file beside such a file, and cannot build its name
    if scheme == "file" and (path := first(pc.match_substring_regex(uris, _COLON))):
        yield f"there is a colon in the name of the local file '{path}'"
    yield from _reasons_against_places(files, scan.table_root)
    for i in files.with_deletions:
        if i not in files.num_records:
            yield (
                f"the log does not record the number of rows of the file '{files.files[i].path}', which has deleted "
                "rows"
            )
            return
    if sum(files.num_records.values()) > MAX_ROWS_WITH_DELETIONS:
        yield "the table's deletion vectors are too large to send to every executor"


def _reasons_against_places(files: NativeFiles, table_root: str) -> Iterator[str]:
    """Files in other file systems or buckets than the table."""
    scheme = scheme_of(table_root)
    near = (
        "file:/" if scheme == "file" else f"{spark_uri(table_root).partition('://')[0]}://{authority_of(table_root)}/"
    )
    others = pc.indices_nonzero(pc.invert(pc.starts_with(files.rows.column("uri"), near))).to_pylist()
    paths = [files.files[n].path for n in others]
    if strange := [path for path in paths if scheme_of(path) != scheme]:
        yield f"the file '{strange[0]}' is in another file system than the table"
    elif scheme != "file" and (apart := [path for path in paths if authority_of(path) != authority_of(table_root)]):
        # Spark's connector may read another bucket elsewhere: only the table's bucket was compared
        yield f"the file '{apart[0]}' is in another bucket than the table"


# --- the Hive layout


def hive_columns(scan: Scan, rows: pa.Table) -> tuple[str, ...] | None:
    """The partition columns, if the directories of all files name the values of the log, and Spark finds no others.

    Each directory is compared once. Spark also takes columns from the table's directory and from those above it, if
    their names have the form ``a=b``. They do no harm under names that the table does not have.

    Raises: ProtocolError for an invalid partition value.
    """
    configuration, root = scan.snapshot.configuration, scan.snapshot.table_root
    by_name = {f.name: f for f in configuration.schema}
    columns = [by_name[name] for name in configuration.partition_columns]
    names = [c.physical_name for c in columns]
    if not columns or not rows.num_rows or not _harmless_ancestors(root, configuration.schema):
        return None
    prefix = spark_uri(root).rstrip("/") + "/"
    uris = rows.column("uri")
    inside = pc.and_(pc.starts_with(uris, prefix), pc.invert(pc.match_substring_regex(rows.column("path"), _ABSOLUTE)))
    if not pc.all(inside).as_py():
        return None
    known = [scan.state.partition_columns.index(n) if n in scan.state.partition_columns else None for n in names]
    directories = pc.list_element(pc.split_pattern(uris, "/", max_splits=1, reverse=True), 0)
    values = [rows.column(f"{PARTITION_PREFIX}{i}") for i in range(len(scan.state.partition_columns))]
    chosen = rows.take(first_of_each(group_numbers([directories, *values])))
    for file in ObjectsOfRows(chosen, lambda batch: to_scan_files(batch, root)):
        directory = file.path[len(root.rstrip("/")) + 1 :].rpartition("/")[0]
        found = _directory_values(directory, names)
        if found is None:
            return None
        for value, column, at in zip(found, columns, known, strict=True):
            try:
                if at is not None and not _same(value, file.partition_values[at], column.data_type):
                    return None
            except ProtocolError as e:
                raise invalid_in_file(e, root, file.path, column.name) from None
    return tuple(names)


def _harmless_ancestors(root: str, schema: StructType) -> bool:
    """Whether the directories at the end of the table's path give Spark no column that the table may have."""
    taken = {f.physical_name.lower() for f in schema}
    for part in reversed(root.split("/")):
        name, equals, value = part.partition("=")
        if part.lower() == _UNFINISHED:
            return False
        if not equals:
            return True
        folded = unescape_path_name(name).lower()
        if not name or not value or folded in taken:
            return False
        taken.add(folded)
    return True


def _directory_values(directory: str, names: Sequence[str]) -> list[str] | None:
    parts = directory.split("/")
    if len(parts) != len(names):
        return None
    values = []
    for part, name in zip(parts, names, strict=True):
        key, equals, value = part.partition("=")
        if not equals or not value or unescape_path_name(key) != name:
            return None
        values.append(unescape_path_name(value))
    return values


def _same(directory: str, text: str | None, data_type: DataType) -> bool:
    """Whether Spark reads the directory's value as the log's value."""
    if text is None or text == "":
        return directory == _HIVE_NULL
    if directory != text or text == _HIVE_NULL or not isinstance(data_type, PrimitiveType):
        return False
    plain = _PLAIN_TEXTS.get(data_type.name)
    if plain is None or not plain.fullmatch(text):
        return False
    # the Python source refuses an invalid value
    parse_partition_value(text, data_type)
    return True
