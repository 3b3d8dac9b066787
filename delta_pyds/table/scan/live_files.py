"""Files of a scan as actions, for writes that remove them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import pyarrow as pa

from delta_pyds.columnar.exact_sum import exact_sum
from delta_pyds.columnar.objects_of_rows import ObjectsOfRows
from delta_pyds.columnar.older_arrow import rows_with_dicts
from delta_pyds.errors import CorruptLogError
from delta_pyds.log.file_table import FILE_COLUMNS, file_schema
from delta_pyds.protocol.actions import AddFile, RemoveFile
from delta_pyds.table.scan.scan import Scan

# the fields of an add that a remove repeats; nobody reads statistics of removed files
REMOVAL_COLUMNS = (
    "path", "partitionValues", "size", "tags", "deletionVector", "baseRowId", "defaultRowCommitVersion",
)  # fmt: skip

_REMEDY = "Delete the checkpoint if its commits are still in the log, or restore the log."


def live_files(
    scan: Scan,
    columns: tuple[str, ...] = tuple(FILE_COLUMNS),
    keep: Callable[[pa.RecordBatch], pa.Array] | None = None,
) -> Iterator[AddFile]:
    """Yield the files that the scan would read, in bounded memory, with the given fields of their ``add``.

    Skipping is conservative: some files may have no matching row.

    Args:
        keep: computes a mask over files as Arrow rows; no action is built for the others.
    """
    for batch in scan.adds(scan.request(columns)):
        yield from adds_of(batch.files if keep is None else batch.files.filter(keep(batch.files)))


class LiveFiles(ObjectsOfRows[AddFile]):
    """The files that a scan would read, with all fields of their ``add``. Actions are built only on request.

    ``rows``: columns of ``FILE_COLUMNS``, in the order of the files.
    """

    def __init__(self, scan: Scan) -> None:
        columns = tuple(FILE_COLUMNS)
        batches = [batch.files for batch in scan.adds(scan.request(columns))]
        super().__init__(pa.Table.from_batches(batches, file_schema(columns)), adds_of)

    @property
    def num_bytes(self) -> int:
        """The size of the files."""
        return exact_sum(self.rows.column("size"))


def removal(file: AddFile, *, deletion_timestamp_ms: int, data_change: bool) -> RemoveFile:
    """The ``remove`` action of a file, with all fields that the change feed and vacuum need."""
    return RemoveFile(
        path=file.path,
        deletion_timestamp=deletion_timestamp_ms,
        data_change=data_change,
        extended_file_metadata=True,
        partition_values=file.partition_values or {},
        size=file.size,
        tags=file.tags,
        deletion_vector=file.deletion_vector,
        base_row_id=file.base_row_id,
        default_row_commit_version=file.default_row_commit_version,
    )


def adds_of(files: pa.RecordBatch) -> Iterator[AddFile]:
    """Build ``add`` actions from Arrow rows with columns of ``FILE_COLUMNS``.

    Raises: CorruptLogError for a row that is not a valid action: pages of a checkpoint may be damaged.
    """
    try:
        rows = rows_with_dicts(files)
    except KeyError as error:
        raise CorruptLogError(f"a checkpoint has a file with two values of one key ({error}). {_REMEDY}") from None
    for row in rows:
        given = {k: v for k, v in row.items() if v is not None}
        vector = given.get("deletionVector")
        if vector is not None and vector.get("storageType") is None:
            del given["deletionVector"]  # in some checkpoints a missing vector is a struct of nulls
        try:
            yield msgspec.convert(given, AddFile)
        except msgspec.ValidationError as error:
            path = row.get("path")
            raise CorruptLogError(
                f"the log's entry of the file {path!r} is damaged ({error}). {_REMEDY}", path=path
            ) from None
