"""Methods that run a query: ``df.collect()``, ``df.count()``, ``df.show()`` and others.

Invariant: a DeltaError of a worker is raised unwrapped, without the tracebacks that Spark and PySpark add.
The results, and every other error, are Spark's.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from delta_pyds.spark.install.patches import Method, Replacement
from delta_pyds.spark.spark_errors import errors_of_spark

_ACTIONS = ("collect", "count", "show", "explain", "toPandas", "toArrow", "head", "first", "take", "tail", "isEmpty",
            "foreach", "foreachPartition")  # fmt: skip


def _action(original: Method) -> Method:
    @wraps(original)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with errors_of_spark():
            return original(self, *args, **kwargs)

    return run


# toPandas logs a warning of this method's error, and raises the error again
PANDAS: dict[str, Replacement] = {"_collect_as_arrow": _action}
FRAME: dict[str, Replacement] = dict.fromkeys(_ACTIONS, _action)
