"""``delta_pyds.write`` with ``replace_where`` on data columns: all of it in tasks of the session, committed from here.

Through the format Spark asks a process without a session to commit, which can look for the replaced rows in its own
threads only. Here the session is at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_pyds.commands.write.write import commit_write, plan_write
from delta_pyds.spark.options.write import parse_write_options
from delta_pyds.spark.planning.types import from_spark
from delta_pyds.spark.source.write_result import WriteResult, result_of
from delta_pyds.spark.task_runner import SparkRunner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def replace_rows(frame: DataFrame, options: Mapping[str, str], *, time_zone: str) -> WriteResult | None:
    """Write ``frame`` over the rows that ``replaceWhere`` names; None where that is a matter of whole partitions.

    ``options``: of the format, with the path. Raises: whatever planning, a task and the commit raise.
    """
    request = parse_write_options(options, from_spark(frame.schema), overwrite=True, assumed_time_zone=time_zone)
    plan = plan_write(request)
    if not plan.replaces_rows or plan.state is None:
        return None
    runner = SparkRunner(frame.sparkSession, request.task_parallelism)
    outputs = runner.write(frame, plan.state)
    return result_of(commit_write(plan, outputs, runner=runner), plan.nothing_to_do)
