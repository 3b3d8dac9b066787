"""The files of a scan for Spark's own Parquet reader.

Invariant: each file of the scan occurs once. A file that Spark's listing would leave out, list twice or misread is a
reason against Spark's reader.

Protocol: "Add File and Remove File", "Partition Value Serialization".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from delta_pyds.columnar.scan_files import to_scan_files
from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.actions import AddFile
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.partition_values import invalid_in_file, parse_partition_value
from delta_pyds.protocol.paths import is_absolute
from delta_pyds.protocol.schema import DataType, PrimitiveType
from delta_pyds.storage.resolve import normalize_table_root, scheme_of
from delta_pyds.table.scan.scan import Scan
from delta_pyds.table.transaction.row_counts import row_counts
from delta_pyds.tasks.scan_file import scan_file
from delta_pyds.tasks.scan_state import ScanFile, ScanState

# Spark ignores such names as its own unfinished files.
_HIDDEN = re.compile(r"[_.].*|.*\._COPYING_", re.DOTALL)
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = re.compile("%([0-9a-fA-F]{2})")
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
    """The files to read. ``files`` have resolved paths.

    ``hive_columns``: the physical names of the partition columns in the order of the directories, if the directories of
    all files name the values of the log; else None. ``num_records``: by position the rows of files with a deletion
    vector, as far as the log knows them.
    """

    files: tuple[ScanFile, ...]
    hive_columns: tuple[str, ...] | None
    num_records: dict[int, int] = field(default_factory=dict)

    @property
    def with_deletions(self) -> tuple[int, ...]:
        """Positions of the files that have a deletion vector."""
        return tuple(i for i, file in enumerate(self.files) if file.deletion_vector is not None)


def list_files(scan: Scan, limit: int) -> NativeFiles | None:
    """The files of the scan; None if there are more than ``limit``.

    Raises: ProtocolError, DeletionVectorError for a damaged log, and what reading the log raises.
    """
    fields = (*scan.selection.file_fields, "stats")
    with_vectors = scan.snapshot.configuration.supports(Feature.DELETION_VECTORS)
    files: list[ScanFile] = []
    relative: list[str | None] = []
    records: dict[int, int] = {}
    for batch in scan.adds(scan.request(fields if with_vectors else scan.selection.file_fields)):
        if len(files) + batch.files.num_rows > limit:
            return None
        rows = scan.selection.to_scan_batch(batch.files)
        names = rows.column("path").to_pylist()
        for offset, file in enumerate(to_scan_files(rows, scan.snapshot.table_root)):
            # a table without the feature may still have deletion vectors, and then their rows are unknown
            if file.deletion_vector is not None and with_vectors:
                count = row_counts(batch.files.column("stats")[offset].as_py()).num_records
                if count is not None:
                    records[len(files)] = count
            relative.append(None if is_absolute(names[offset]) else file.path)
            files.append(file)
    return NativeFiles(tuple(files), _hive_columns(scan, files, relative), records)


def files_of(scan: Scan, adds: Sequence[AddFile]) -> NativeFiles:
    """These files of the scan, in their order.

    Raises: ProtocolError for an invalid partition value.
    """
    files = [scan_file(add, scan.state, add.deletion_vector) for add in adds]
    relative = [None if is_absolute(add.path) else file.path for add, file in zip(adds, files, strict=True)]
    counts = {n: row_counts(add.stats).num_records for n, add in enumerate(adds) if add.deletion_vector is not None}
    if not scan.snapshot.configuration.supports(Feature.DELETION_VECTORS):
        counts = {}
    known = {n: count for n, count in counts.items() if count is not None}
    return NativeFiles(tuple(files), _hive_columns(scan, files, relative), known)


def reasons_against_files(files: NativeFiles, scan: ScanState) -> Iterator[str]:
    """The reasons why Spark would not read exactly these files."""
    paths = [file.path for file in files.files]
    if hidden := [path for path in paths if _HIDDEN.fullmatch(path.rsplit("/", 1)[-1])]:
        yield f"Spark ignores files with a name like that of '{hidden[0]}'"
    if len({spark_path(path) for path in paths}) < len(paths):
        yield "a file is in the table twice"
    scheme = scheme_of(scan.table_root)
    # Hadoop looks for a checksum file beside it, and cannot build that file's name
    if scheme == "file" and (colons := [path for path in paths if ":" in path.rsplit("/", 1)[-1]]):
        yield f"there is a colon in the name of the local file '{colons[0]}'"
    if strange := [path for path in paths if scheme_of(path) != scheme]:
        yield f"the file '{strange[0]}' is in another file system than the table"
    elif scheme != "file" and (others := [p for p in paths if _bucket(p) != _bucket(scan.table_root)]):
        # Spark's connector may read another bucket elsewhere: only the table's bucket was compared
        yield f"the file '{others[0]}' is in another bucket than the table"
    for i in files.with_deletions:
        if i not in files.num_records:
            yield f"the log does not record the number of rows of the file '{paths[i]}', which has deleted rows"
            return
    if sum(files.num_records.values()) > MAX_ROWS_WITH_DELETIONS:
        yield "its deletion vectors are too large to be sent to every executor"


def _bucket(path: str) -> str:
    return path.partition("://")[2].partition("/")[0]


def spark_path(path: str) -> str:
    """A resolved path in Hadoop's form, with the scheme of the store's connector."""
    scheme = scheme_of(path)
    if scheme == "file":
        return "file:" + normalize_table_root(path)
    return path.replace("s3://", "s3a://", 1) if scheme == "s3" else path


# --- the Hive layout


def _hive_columns(scan: Scan, files: Sequence[ScanFile], paths: Sequence[str | None]) -> tuple[str, ...] | None:
    """The partition columns, if the directories of all files name the values of the log."""
    configuration = scan.snapshot.configuration
    by_name = {f.name: f for f in configuration.schema}
    columns = [by_name[name] for name in configuration.partition_columns]
    names = [c.physical_name for c in columns]
    if not columns or not files:
        return None
    known = [scan.state.partition_columns.index(n) if n in scan.state.partition_columns else None for n in names]
    root = scan.snapshot.table_root.rstrip("/") + "/"
    seen: set[tuple[str, tuple[str | None, ...]]] = set()
    for file, path in zip(files, paths, strict=True):
        if path is None or not path.startswith(root):
            return None
        directory = path[len(root) :].rpartition("/")[0]
        key = directory, file.partition_values
        if key in seen:
            continue
        values = _directory_values(directory, names)
        if values is None:
            return None
        for value, column, at in zip(values, columns, known, strict=True):
            try:
                if at is not None and not _same(value, file.partition_values[at], column.data_type):
                    return None
            except ProtocolError as e:
                raise invalid_in_file(e, scan.snapshot.table_root, file.path, column.name) from None
        seen.add(key)
    return tuple(names)


def _directory_values(directory: str, names: Sequence[str]) -> list[str] | None:
    parts = directory.split("/")
    if len(parts) != len(names):
        return None
    values = []
    for part, name in zip(parts, names, strict=True):
        key, equals, value = part.partition("=")
        if not equals or not value or _unescape(key) != name:
            return None
        values.append(_unescape(value))
    return values


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda m: chr(int(m[1], 16)), text)


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
