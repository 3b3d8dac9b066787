"""The batch writer on another engine than Apache Spark.

Sail runs our writer as Spark does: a plan, tasks, one commit with the messages of all tasks. But it tells less. The
modes ``append``, ``error`` and ``ignore`` look alike to a source, and nobody knows the session's time zone. So a write
without the option ``createMode`` creates a table, and never adds to one.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import StructType

from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.commands.write.write import WritePlan, plan_write
from delta_pyds.data.write.task_session import time_zone_user
from delta_pyds.errors import OptionError, UserError
from delta_pyds.spark.options.write import parse_write_options
from delta_pyds.spark.other_engines import engine_here
from delta_pyds.spark.planning.time_zone import assumed_time_zone
from delta_pyds.spark.planning.types import from_spark
from delta_pyds.spark.source.unknown_expressions import BY_WRITE, naming_what_computes
from delta_pyds.spark.source.write_result import RESULT_OPTION
from delta_pyds.spark.source.writer import DeltaWriter

_MODE = "createMode"
_ZONE = "timeZone"


def foreign_writer(options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> DeltaWriter:
    """Plan a write of another engine.

    Raises: UserError if the table exists, and the mode may be one that does not add to it; OptionError if a value
        depends on the time zone, and no option names it; as ``parse_write_options`` and ``plan_write``.
    """
    given = {name.lower() for name in options}
    unknown_mode = not overwrite and _MODE.lower() not in given
    if unknown_mode:
        options = {**options, _MODE: "errorIfExists"}
    request = parse_write_options(
        options, from_spark(schema), overwrite=overwrite, assumed_time_zone=assumed_time_zone()
    )
    try:
        with naming_what_computes(BY_WRITE):
            plan = plan_write(request)
    except UserError as e:
        if not unknown_mode or e.code != "DELTA_PATH_EXISTS":
            raise
        raise UserError(
            f"the table at {request.table_root} already exists, and {engine_here()} does not tell a Python source "
            "whether the mode of a write is append, ignore or errorifexists. Nothing was written. Use "
            f'delta_pyds.write, or add .option("{_MODE}", "createIfNotExists") to append.',
            code=e.code,
            table=request.table_root,
        ) from e
    if _ZONE.lower() not in given:
        _require_no_time_zone(request, plan)
    return DeltaWriter(plan, options.get(RESULT_OPTION))


def _require_no_time_zone(request: WriteRequest, plan: WritePlan) -> None:
    """Raises: OptionError if a value of the write depends on the session's time zone."""
    user = None if plan.state is None else time_zone_user(plan.state)
    if user is None and request.replace_where is not None:
        user = "replaceWhere"
    if user is not None:
        raise OptionError(
            f"{engine_here()} does not tell a Python source the session's time zone, and {user} of the write to "
            f"{request.table_root} may depend on it. Nothing was written. Use delta_pyds.write, or add "
            f'.option("{_ZONE}", "{request.time_zone}") with the right zone.',
            option=_ZONE,
            table=request.table_root,
        )
