"""Files of a scan as actions, for writes that remove them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import pyarrow as pa

from delta_pyds.log.file_table import FILE_COLUMNS
from delta_pyds.protocol.actions import AddFile, RemoveFile
from delta_pyds.table.scan.scan import Scan

# what a remove repeats of an add; statistics stay behind, for nobody reads them there
REMOVAL_COLUMNS = (
    "path", "partitionValues", "size", "tags", "deletionVector", "baseRowId", "defaultRowCommitVersion",
)  # fmt: skip


def live_files(
    scan: Scan,
    columns: tuple[str, ...] = tuple(FILE_COLUMNS),
    keep: Callable[[pa.RecordBatch], pa.Array] | None = None,
) -> Iterator[AddFile]:
    """Yield the files that the scan would read, in bounded memory, with those fields of their ``add``.

    Skipping is sound and not exact: among them may be files none of whose rows match. ``keep``: a mask over files as
    Arrow rows, so that no action is made of the others.
    """
    for batch in scan.adds(scan.request(columns)):
        yield from adds_of(batch.files if keep is None else batch.files.filter(keep(batch.files)))


def removal(file: AddFile, *, deletion_timestamp_ms: int, data_change: bool) -> RemoveFile:
    """The ``remove`` of a file, with what readers of changes and vacuum need of it."""
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
    """Files as Arrow rows, with columns of ``FILE_COLUMNS``, as actions."""
    for row in files.to_pylist(maps_as_pydicts="strict"):
        given = {k: v for k, v in row.items() if v is not None}
        vector = given.get("deletionVector")
        if vector is not None and vector.get("storageType") is None:
            del given["deletionVector"]  # some checkpoints hold a struct of nulls where there is no vector
        yield msgspec.convert(given, AddFile)
