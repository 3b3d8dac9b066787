"""``df.createOrReplaceTempView``: a view of a whole read tracks its table, as the reference's does."""

from __future__ import annotations

from typing import Any

from delta_pyds.spark.catalog_names import tracked_views
from delta_pyds.spark.install.patches import Method, Replacement


def _create_method(original: Method) -> Method:
    def create(self: Any, name: str) -> None:
        original(self, name)
        tracked_views.created(name, self)

    return create


FRAME: dict[str, Replacement] = dict.fromkeys(("createTempView", "createOrReplaceTempView"), _create_method)
# on classic sessions this method calls the JVM directly
FRAME["registerTempTable"] = _create_method
