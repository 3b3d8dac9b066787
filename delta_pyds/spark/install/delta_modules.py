"""``import delta.tables``, where no package ``delta`` is installed: modules of ours under the reference's names.

Invariant: a package that is installed is never hidden, and a module that is not ours never taken away.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame, SparkSession, functions
from pyspark.sql.types import DataType, StructField, StructType

from delta_pyds import exceptions
from delta_pyds.spark.delta_table.merge_builder import DeltaMergeBuilder
from delta_pyds.spark.delta_table.optimize_builder import DeltaOptimizeBuilder
from delta_pyds.spark.delta_table.table import DeltaTable
from delta_pyds.spark.delta_table.table_builder import DeltaTableBuilder
from delta_pyds.spark.table_commands.column_definitions import IdentityGenerator

if TYPE_CHECKING:
    from collections.abc import Sequence

_TABLES: dict[str, Any] = {
    "DeltaTable": DeltaTable,
    "DeltaMergeBuilder": DeltaMergeBuilder,
    "DeltaTableBuilder": DeltaTableBuilder,
    "DeltaOptimizeBuilder": DeltaOptimizeBuilder,
    "IdentityGenerator": IdentityGenerator,
    # what `from delta.tables import *` brings along, and programs use
    "Column": Column,
    "DataFrame": DataFrame,
    "SparkSession": SparkSession,
    "functions": functions,
    "DataType": DataType,
    "StructField": StructField,
    "StructType": StructType,
}


def configure_spark_with_delta_pip(spark_session_builder: Any, extra_packages: Sequence[str] | None = None) -> Any:
    """The builder as it is, for there is no JAR to fetch; with ``extra_packages`` for Spark to fetch.

    Raises: TypeError for what is no builder.
    """
    if not isinstance(spark_session_builder, SparkSession.Builder):
        raise TypeError(
            f"configure_spark_with_delta_pip takes SparkSession.builder, and not a {type(spark_session_builder)}."
        )
    if extra_packages:
        return spark_session_builder.config("spark.jars.packages", ",".join(extra_packages))
    return spark_session_builder


# of the reference whose names these are: programs compare it to know what there is
_VERSION = {"__version__": "4.4.0"}
_EXCEPTIONS = {name: getattr(exceptions, name) for name in exceptions.__all__}
_MODULES: dict[str, dict[str, Any]] = {
    "delta": {"DeltaTable": DeltaTable, "configure_spark_with_delta_pip": configure_spark_with_delta_pip} | _VERSION,
    "delta.tables": _TABLES,
    "delta.version": _VERSION,
    "delta.exceptions": _EXCEPTIONS,
    "delta.exceptions.base": _EXCEPTIONS,
    "delta.exceptions.captured": _EXCEPTIONS,
    "delta.pip_utils": {"configure_spark_with_delta_pip": configure_spark_with_delta_pip},
    "delta.connect": {},
    "delta.connect.tables": _TABLES,
    "delta.connect.exceptions": _EXCEPTIONS,
}
_made: dict[str, ModuleType] = {}


class _Module(ModuleType):
    """A function that is sent to another process may name it: that process makes its own."""

    def __reduce__(self) -> tuple[Any, ...]:
        return module_of_ours, (self.__name__,)


def module_of_ours(name: str) -> ModuleType:
    put_modules()
    return importlib.import_module(name)


def put_modules() -> bool:
    """Returns: whether ``import delta`` finds ours."""
    if "delta" in _made and sys.modules.get("delta") is _made["delta"]:
        return True
    found = None if "delta" in sys.modules else importlib.util.find_spec("delta")
    # a directory of that name in the working directory, which may be one of tables, is no package
    if "delta" in sys.modules or (found is not None and found.origin is not None):
        return False
    for name, content in _MODULES.items():
        module = _Module(name, f"delta_pyds under the name {name}, by delta_pyds.install(spark, delta=True).")
        is_package = any(other.startswith(f"{name}.") for other in _MODULES)
        module.__spec__ = ModuleSpec(name, None, is_package=is_package)
        if is_package:
            module.__path__ = []
        module.__dict__.update(content)
        module.__dict__["__all__"] = list(content)
        _made[name] = sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(_made[parent], child, module)
    return True


def take_back_modules() -> None:
    while _made:
        name, module = _made.popitem()
        if sys.modules.get(name) is module:
            del sys.modules[name]
