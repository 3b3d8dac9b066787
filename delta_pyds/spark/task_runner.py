"""The tasks of a command in the executors of a session, classic or of Spark Connect.

Each task travels as a row of a DataFrame to one ``mapInArrow``, and its output comes back as a row: Spark distributes
them, and runs a lost one again.
"""

from __future__ import annotations

import io
import pickle
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from delta_pyds.errors import DeltaError
from delta_pyds.progress import advance_of_step, name_of_step
from delta_pyds.redaction import safe_logger
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.job_description import described
from delta_pyds.spark.other_engines import other_engine, require_distinct_identities
from delta_pyds.spark.settings import DEFAULT_PARALLELISM, LEAF_PARALLELISM
from delta_pyds.spark.source.error_transport import errors_as_they_were, leaves_worker
from delta_pyds.tasks.write_state import TaskOutput, WriteState

logger = safe_logger(__name__)
_Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
T = TypeVar("T")
# the answer of a task; it can be pickled
R = TypeVar("R")

# Spark Connect does not report how many tasks run at once, but shows its administrator's settings
_PARALLELISM_SETTINGS = (LEAF_PARALLELISM, DEFAULT_PARALLELISM)
_ASSUMED_PARALLELISM = 8
_TASKS = pa.schema([("number", pa.int64()), ("task", pa.binary())])
# the packages of the classes of answers: values without effects
_ANSWERED = ("delta_pyds.tasks.", "delta_pyds.protocol.")
_OUTPUTS = pa.schema([("number", pa.int64()), ("output", pa.binary())])
OUTPUT_DDL = "number long, output binary"
_MOST_BITS = 63


class SparkRunner:
    """Runs tasks in the executors of a session, as ``commands.task_runner.TaskRunner`` says.

    ``parallelism``: by default the session's (see ``session_parallelism``).
    A DeltaError of a task is raised itself. Other errors are Spark's exceptions. If a task fails, Spark does not return
    the outputs of the others: their files are in no commit, and are left for vacuum.

    >>> SparkRunner(spark).run(find_rows, tasks)
    """

    def __init__(self, spark: SparkSession, parallelism: int | None = None) -> None:
        self._spark = spark
        self._parallelism = parallelism or session_parallelism(spark)

    @property
    def parallelism(self) -> int:
        return self._parallelism

    def run(self, function: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        if not tasks:
            return []
        # Spark distributes the rows to as many partitions as run at once
        rows = pa.table([range(len(tasks)), [pickle.dumps((function, task)) for task in tasks]], schema=_TASKS)
        frame = self._spark.createDataFrame(rows)
        if other_engine(self._spark) is not None:
            frame = frame.repartition(min(len(tasks), self._parallelism))
        advance = advance_of_step()
        with errors_as_they_were():
            outputs: list[R] = collected(
                map_in_arrow(frame, _run),
                name_of_step() or function.__name__.replace("_", " "),
            )
        if len(outputs) != len(tasks):
            raise DeltaError(
                f"{len(outputs)} of {len(tasks)} tasks answered; the results of the others are unknown. "
                "Nothing was committed."
            )
        advance(len(tasks))
        return outputs

    def write(self, frame: DataFrame, state: WriteState) -> list[TaskOutput]:
        """Write the rows of a DataFrame to new files of a table, each partition in its own task."""

        names = frame.columns

        @leaves_worker
        def write_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from delta_pyds.data.write.task import write
            from delta_pyds.spark.source.writer import task_session

            session = task_session()
            yield output_row(task_number(), write(state, (batch.rename_columns(names) for batch in batches), session))

        # PySpark looks each column up by its name, and takes a dot in it for a nested field
        numbered = frame.toDF(*(f"c{n}" for n in range(len(names))))
        outputs: list[TaskOutput] = collected(
            map_in_arrow(numbered, write_partition), f"new files of {state.table_root}"
        )
        require_numbers(self._spark, outputs, state)
        return outputs


def session_parallelism(spark: SparkSession) -> int:
    """The number of tasks that run at once; on Spark Connect by the server's settings, otherwise 8."""
    if not is_remote(spark):
        return int(spark.sparkContext.defaultParallelism)
    for name in _PARALLELISM_SETTINGS:
        text = spark.conf.get(name, None) or ""
        if text.isascii() and text.isdecimal() and int(text) > 0:
            return int(text)
    return _ASSUMED_PARALLELISM


@leaves_worker
def _run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number, task in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            function, argument = pickle.loads(task)
            yield output_row(number, function(argument))


def map_in_arrow(frame: DataFrame, function: _Task, schema: StructType | str = OUTPUT_DDL) -> DataFrame:
    """``frame.mapInArrow`` to rows of a schema, also if the program has no pandas.

    PySpark 4.2 and 4.3 then ask for pandas, though neither side uses it: ``pandas_udf`` makes the function.
    Raises: PySparkImportError if PySpark's internals have changed, too.
    """
    try:
        return frame.mapInArrow(function, schema)
    except ImportError:
        if is_remote(frame.sparkSession):
            raise
        try:
            from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame
            from pyspark.sql.udf import UserDefinedFunction
            from pyspark.util import PythonEvalType

            classic: Any = frame
            task = UserDefinedFunction(function, schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
            columns: Any = task(*(classic[name] for name in classic.columns))
            mapped = classic._jdf.mapInArrow(columns._jc, False, None)
            return ClassicFrame(mapped, classic.sparkSession)
        except (ImportError, AttributeError, TypeError):
            logger.debug("PySpark's internals of mapInArrow have changed", exc_info=True)
        raise


def output_row(number: int, output: Any) -> pa.RecordBatch:
    """A task's answer, with ``OUTPUT_DDL``. ``number``: the task's; only one of two attempts of a task counts."""
    return pa.RecordBatch.from_arrays(
        [pa.array([number], pa.int64()), pa.array([pickle.dumps(output)])], schema=_OUTPUTS
    )


def task_number() -> int:
    """The number of this task in its query: Spark's, or one that a task of another engine draws."""
    context = TaskContext.get()
    return secrets.randbits(_MOST_BITS) if context is None else int(context.partitionId())


def require_numbers(spark: SparkSession, outputs: Sequence[TaskOutput], state: WriteState) -> None:
    """Refuse identity values that several tasks of another engine than Spark have assigned.

    Raises: UnsupportedOperationError, after the files of the tasks were deleted.
    """
    if any(output.identity_marks for output in outputs) and (engine := other_engine(spark)) is not None:
        try:
            require_distinct_identities(engine, outputs, state.table_root)
        except BaseException:
            # executors import this module, and need no commit
            from delta_pyds.commands.commit import discard_files

            discard_files(state.table_root, state.storage_options, outputs)
            raise


def collected(frame: DataFrame, step: str) -> list[Any]:
    """Run the tasks, which Spark's UI calls by the step. Returns: their outputs, by number.

    Raises: DeltaError for an invalid answer, or for two answers with one number. Nothing is committed then.
    """
    with described(frame.sparkSession, step):
        rows = frame.toArrow()
    outputs = dict(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    if len(outputs) != rows.num_rows:
        raise DeltaError(f"{rows.num_rows} tasks answered under {len(outputs)} numbers. Nothing was committed.")
    return [_answer(outputs[number]) for number in sorted(outputs)]


def _answer(text: bytes) -> Any:
    try:
        return _AnswerReader(io.BytesIO(text)).load()
    except DeltaError:
        raise
    except Exception as error:  # damaged bytes may raise any exception
        raise DeltaError(f"the answer of a task cannot be read: {error}. Nothing was committed.") from error


class _AnswerReader(pickle.Unpickler):
    """Answers are made of the plain values of ``tasks`` and ``protocol``: a server can create no others here."""

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith(_ANSWERED) and "." not in name:
            found = super().find_class(module, name)
            # names that a module imports are not its own
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise DeltaError(
            f"the answer of a task names {module}.{name}, which no task of delta_pyds answers with. The server may "
            "have another version of delta_pyds, or it is not the server that it claims to be. Nothing was committed."
        )
