"""What the reference's ``DeltaTable`` has beside: the same names and arguments, refused by name until they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.spark.delta_table import argument_checks as checks
from delta_pyds.spark.delta_table.spark_errors import as_spark_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class LaterMethods:
    """Each raises UnsupportedOperationError that names the method; a wrong argument is refused first, as it will be."""

    def generate(self, mode: str) -> None:
        """Comes later: manifest files."""
        _not_yet("generate")

    def vacuum(self, retentionHours: float | None = None) -> NoReturn:
        """Comes later: deleting files that no version needs."""
        if retentionHours is not None:
            float(retentionHours)
        _not_yet("vacuum")

    def restoreToVersion(self, version: int) -> NoReturn:
        """Comes later: a read of the version, written with ``mode="overwrite"``, does the same."""
        checks.whole_number(version, "version")
        _not_yet("restoreToVersion")

    def restoreToTimestamp(self, timestamp: str) -> NoReturn:
        """Comes later: a read of the time, written with ``mode="overwrite"``, does the same."""
        checks.text(timestamp, "timestamp")
        _not_yet("restoreToTimestamp")

    def clone(
        self, target: str, isShallow: bool = False, replace: bool = False, properties: dict[str, str] | None = None
    ) -> NoReturn:
        """Comes later."""
        checks.clone_arguments(target, isShallow, replace, properties)
        _not_yet("clone")

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: dict[str, str] | None = None,
    ) -> NoReturn:
        """Comes later."""
        checks.whole_number(version, "version")
        checks.clone_arguments(target, isShallow, replace, properties)
        _not_yet("cloneAtVersion")

    def cloneAtTimestamp(
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: dict[str, str] | None = None,
    ) -> NoReturn:
        """Comes later."""
        checks.text(timestamp, "timestamp")
        checks.clone_arguments(target, isShallow, replace, properties)
        _not_yet("cloneAtTimestamp")

    @classmethod
    def convertToDelta(
        cls, sparkSession: SparkSession, identifier: str, partitionSchema: str | StructType | None = None
    ) -> NoReturn:
        """Comes later: a log for Parquet files that are there."""
        _not_yet("convertToDelta")


def _not_yet(method: str, instead: str = "") -> NoReturn:
    parameters: dict[str, Any] = {"method": f"DeltaTable.{method}"}
    raise as_spark_error(
        UnsupportedOperationError(
            f"DeltaTable.{method} is not part of this version of delta_pyds: it comes later.{instead}", **parameters
        )
    )
