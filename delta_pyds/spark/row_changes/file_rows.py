"""Given rows of files as a DataFrame, for a command that decides again after a lost race.

Our own reader reads them in tasks. So rows can be selected by position, and files can be of any version of the table.
The columns are those of a ``target_frame``.

Protocol: "Row Tracking", "Deletion Vectors".
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from delta_pyds.catalog.opening import task_options
from delta_pyds.commands.row_changes.plan import RowChangePlan, file_names
from delta_pyds.protocol.schema import StructType, schema_to_string
from delta_pyds.spark.native.eligibility import CHAR
from delta_pyds.spark.planning.types import to_spark
from delta_pyds.spark.source.error_transport import leaves_worker
from delta_pyds.spark.task_runner import map_in_arrow
from delta_pyds.table.transaction.mend import NotRepeatableError
from delta_pyds.tasks.changed_rows import FILE_COLUMN, POSITION_COLUMN, ROW_ID_COLUMN
from delta_pyds.tasks.row_changes import TableFile
from delta_pyds.tasks.scan_state import ScanFile, ScanState

_TASK = spark_types.StructType([spark_types.StructField("task", spark_types.BinaryType())])


@dataclass(frozen=True)
class _ReadRows:
    """Read rows of a file. ``name``: the file's name in ``FILE_COLUMN``."""

    scan: ScanState
    file: ScanFile
    name: str


def file_rows(
    spark: SparkSession,
    plan: RowChangePlan,
    files: Sequence[TableFile],
    *,
    columns: StructType | None = None,
    row_ids: bool = False,
) -> DataFrame:
    """These rows, with ``FILE_COLUMN``, ``POSITION_COLUMN``, and ``ROW_ID_COLUMN`` if ``row_ids``.

    ``columns``: of the table, all by default. Errors of tasks are Spark's exceptions.
    Raises: NotRepeatableError for a column of type char: Spark pads its values only where it reads a source.
    """
    target, snapshot = plan.target, plan.target.snapshot
    scan = replace(
        target.scan,
        output=columns or target.scan.output,
        storage_options=task_options(snapshot.storage, plan.options.storage_options),
        row_position=True,
        row_ids=target.row_id_columns if row_ids else None,
    )
    paths = pa.chunked_array([[target.files[file.number].path for file in files]], pa.string())
    # escaped, because ``target_frame.file_name`` decodes the names of Spark
    names = [name.replace("%", "%25") for name in file_names(snapshot.table_root, paths)]
    tasks = [pickle.dumps(_ReadRows(scan, file.scan, name)) for file, name in zip(files, names, strict=True)]
    schema = spark_types.StructType(list(to_spark(scan.output).fields))
    schema.add(FILE_COLUMN, spark_types.StringType()).add(POSITION_COLUMN, spark_types.LongType())
    if row_ids:
        schema.add(ROW_ID_COLUMN, spark_types.LongType())
    if files and CHAR.search(schema_to_string(scan.output)):
        raise NotRepeatableError
    # Spark distributes the rows to as many partitions as run at once; for no rows Spark Connect needs a schema
    frame = spark.createDataFrame(pa.table([pa.array(tasks, pa.binary())], names=["task"]), _TASK)
    return map_in_arrow(frame, _read, schema)


@leaves_worker
def _read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from delta_pyds.data.read.reader import read

    for batch in batches:
        for text in batch.column(0).to_pylist():
            task: _ReadRows = pickle.loads(text)
            width = len(task.scan.output.fields)
            for rows in read(task.scan, task.file):
                # the path of the file, the position, the row id
                extra = [pa.repeat(task.name, rows.num_rows), *rows.columns[width + 1 : width + 3]]
                names = [*rows.schema.names[:width], FILE_COLUMN, POSITION_COLUMN, ROW_ID_COLUMN]
                columns = [*rows.columns[:width], *extra]
                yield pa.RecordBatch.from_arrays(columns, names=names[: len(columns)])
