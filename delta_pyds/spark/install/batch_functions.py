"""``writeStream.foreachBatch`` on Spark Connect, where the user's function runs in a process of the server.

Invariant: if delta_pyds is installed here, it is also installed there before the function's first batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from delta_pyds.spark.install import recorded_options as record
from delta_pyds.spark.install.formats import delta_is_ours
from delta_pyds.spark.install.patches import Method, Replacement
from delta_pyds.spark.registration import is_registered

Install = Callable[..., Any]


@dataclass(frozen=True)
class InstalledThere:
    """The user's function, which installs delta_pyds first. cloudpickle sends the function, and ``install`` by name."""

    function: Callable[[Any, int], Any]
    install: Install
    delta: bool

    def __call__(self, batch: Any, number: int) -> Any:
        self.install(batch.sparkSession, delta=self.delta)
        return self.function(batch, number)


def writer(install: Install) -> dict[str, Replacement]:
    def replacement(original: Method) -> Method:
        def foreach_batch(self: Any, func: Any) -> Any:
            spark = record.session_of(self)
            # a server that may lack this package gets the function unchanged
            known = is_registered(spark) and callable(func)
            return original(self, InstalledThere(func, install, delta_is_ours(spark)) if known else func)

        return record.own_sink_method(foreach_batch)

    return {"foreachBatch": replacement}
