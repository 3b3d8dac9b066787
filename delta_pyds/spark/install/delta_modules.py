"""``import delta.tables`` without an installed package ``delta``: our modules under the reference's names.

Invariant: an installed package is never hidden, and only our modules are removed.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, functions
from pyspark.sql.types import DataType, StructField, StructType

from delta_pyds import exceptions
from delta_pyds.spark.delta_table.merge_builder import DeltaMergeBuilder
from delta_pyds.spark.delta_table.optimize_builder import DeltaOptimizeBuilder
from delta_pyds.spark.delta_table.table import DeltaTable
from delta_pyds.spark.delta_table.table_builder import DeltaTableBuilder
from delta_pyds.spark.settings import JARS_PACKAGES
from delta_pyds.spark.table_commands.column_definitions import IdentityGenerator

_TABLES: dict[str, Any] = {
    "DeltaTable": DeltaTable,
    "DeltaMergeBuilder": DeltaMergeBuilder,
    "DeltaTableBuilder": DeltaTableBuilder,
    "DeltaOptimizeBuilder": DeltaOptimizeBuilder,
    "IdentityGenerator": IdentityGenerator,
    # further names of `from delta.tables import *`, which programs use
    "Column": Column,
    "DataFrame": DataFrame,
    "SparkSession": SparkSession,
    "functions": functions,
    "DataType": DataType,
    "StructField": StructField,
    "StructType": StructType,
}


def configure_spark_with_delta_pip(spark_session_builder: Any, extra_packages: Sequence[str] | None = None) -> Any:
    """Return the builder unchanged: no JAR is needed. Spark fetches ``extra_packages``, if given.

    Raises: TypeError if ``spark_session_builder`` is not a builder.
    """
    if not isinstance(spark_session_builder, SparkSession.Builder):
        raise TypeError(
            f"configure_spark_with_delta_pip takes SparkSession.builder, but got a {type(spark_session_builder)}."
        )
    if extra_packages:
        return spark_session_builder.config(JARS_PACKAGES, ",".join(extra_packages))
    return spark_session_builder


# the version of the reference that has these names: programs compare it
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
    """A module that is pickled by name. A function that uses it gets the module of the process where it runs."""

    def __reduce__(self) -> tuple[Any, ...]:
        return module_of_ours, (self.__name__,)


def module_of_ours(name: str) -> ModuleType:
    put_modules()
    return importlib.import_module(name)


def put_modules() -> bool:
    """Returns: whether ``import delta`` finds our modules."""
    if "delta" in _made and sys.modules.get("delta") is _made["delta"]:
        return True
    found = None if "delta" in sys.modules else importlib.util.find_spec("delta")
    # a directory `delta` in the working directory may hold tables, so it does not count as a package
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


def remove_modules() -> None:
    while _made:
        name, module = _made.popitem()
        if sys.modules.get(name) is module:
            del sys.modules[name]
