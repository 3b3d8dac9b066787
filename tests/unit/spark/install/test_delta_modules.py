"""``import delta.tables`` where no package ``delta`` is installed."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds.spark.install.delta_modules import configure_spark_with_delta_pip, put_modules, remove_modules


@pytest.fixture(autouse=True)
def none_installed() -> Iterator[None]:
    assert importlib.util.find_spec("delta") is None, "a package delta is installed beside the tests"
    yield
    remove_modules()


def test_programs_import_what_they_import_of_the_reference() -> None:
    assert put_modules() and put_modules()

    program: dict[str, object] = {}
    exec(
        "from delta.tables import *\nimport delta, delta.tables\nfrom delta import DeltaTable as Same\n"
        "from delta.exceptions import ConcurrentAppendException\nfrom delta.pip_utils import *\n"
        "import delta.exceptions.captured, delta.exceptions.base\nfrom delta.version import __version__ as version",
        program,
    )

    assert program["DeltaTable"] is program["Same"] is delta_pyds.DeltaTable
    assert program["ConcurrentAppendException"] is delta_pyds.ConcurrentAppendError
    assert {"DeltaMergeBuilder", "DeltaTableBuilder", "IdentityGenerator", "functions"} <= program.keys()
    assert program["version"] == sys.modules["delta"].__dict__["__version__"]
    builder = SparkSession.builder
    assert configure_spark_with_delta_pip(builder) is builder
    with pytest.raises(TypeError, match=r"takes SparkSession\.builder"):
        configure_spark_with_delta_pip(builder.getOrCreate)

    remove_modules()
    assert not [name for name in sys.modules if name.split(".")[0] == "delta"]
    assert importlib.util.find_spec("delta") is None


def test_a_package_that_is_installed_is_never_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = ModuleType("delta")
    monkeypatch.setitem(sys.modules, "delta", theirs)

    assert not put_modules()
    remove_modules()

    assert sys.modules["delta"] is theirs and "delta.tables" not in sys.modules


def test_what_an_installed_package_means_for_a_program_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "delta", ModuleType("delta"))
    try:
        with pytest.warns(UserWarning, match="pip uninstall delta-spark, or write from delta_pyds"):
            delta_pyds.install(delta=True)
    finally:
        delta_pyds.uninstall()


def test_a_directory_of_tables_that_is_called_so_is_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "delta" / "events").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()

    assert put_modules()

    assert sys.modules["delta.tables"].__dict__["DeltaTable"] is delta_pyds.DeltaTable
