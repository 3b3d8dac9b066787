"""Each name that the reference's JAR has is listed in ``tests/parity/items``: a new release shows what is new.

The JAR is read as a file. Names are the texts in the constants of its classes.
"""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from tests.interop.setup_env import JARS
from tests.parity.state import TESTS, names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.cell("names of the reference", "reference -> us")

_PACKAGE = "org/apache/spark/sql/delta"
_PREFIX = "spark.databricks.delta."
# texts among the properties and options that are values or parts of messages
_VALUES = {"false", "true", "none", "delta", "delta.option.invalid"}
# in the classes of features, beside their names
_COLUMNS = {"baseRowId", "defaultRowCommitVersion"}
_NAME = re.compile(r"[a-z][A-Za-z]*(?:\.[A-Za-z]+)*(?:-preview)?")
# the lengths of the constants of a class file, by their tags
_LENGTHS = {3: 5, 4: 5, 5: 9, 6: 9, 7: 3, 8: 3, 9: 5, 10: 5, 11: 5, 12: 5, 15: 4, 16: 3, 17: 5, 18: 5, 19: 3, 20: 3}
_TEXT, _TEXT_OF, _WIDE = 1, 8, (5, 6)


def texts(data: bytes) -> list[str]:
    """The string constants of a class file."""
    at, number, found, wanted = 10, 1, {}, []
    while number < struct.unpack_from(">H", data, 8)[0]:
        tag = data[at]
        if tag == _TEXT:
            length = struct.unpack_from(">H", data, at + 1)[0]
            found[number] = data[at + 3 : at + 3 + length].decode(errors="replace")
            at += 3 + length
        else:
            if tag == _TEXT_OF:
                wanted.append(struct.unpack_from(">H", data, at + 1)[0])
            at += _LENGTHS[tag]
        number += 2 if tag in _WIDE else 1
    return [found[place] for place in wanted]


@pytest.fixture(scope="module")
def jar() -> ZipFile:
    (file,) = Path(JARS).glob("delta-spark_*.jar")
    return ZipFile(file)


def test_its_table_features_are_listed(jar: ZipFile) -> None:
    classes = [name for name in jar.namelist() if re.fullmatch(_PACKAGE + r"/(?:\w+/)?\w*Feature\$\.class", name)]
    classes = [name for name in classes if "/Test" not in name]
    found = {text for name in classes for text in texts(jar.read(name)) if re.fullmatch(r"[a-z]\w+(?:-\w+)?", text)}
    assert len(found) > 30
    assert found - _VALUES - _COLUMNS - names("features") == set()


def test_its_table_properties_are_listed(jar: ZipFile) -> None:
    found = {text for text in texts(jar.read(f"{_PACKAGE}/DeltaConfigsBase.class")) if _NAME.fullmatch(text)} - _VALUES
    assert len(found) > 45
    keys = {name if name.startswith("delta.") else f"delta.{name}" for name in found}
    assert keys - names("properties") - {f"{_PREFIX}properties.defaults"} == set()


def test_its_options_are_listed(jar: ZipFile) -> None:
    found = {text for text in texts(jar.read(f"{_PACKAGE}/DeltaOptions$.class")) if _NAME.fullmatch(text)} - _VALUES
    assert len(found) > 35
    assert found - names("options") == set()


def test_its_error_classes_are_raised_here_or_listed(jar: ZipFile) -> None:
    classes = set(json.loads(jar.read("error/delta-error-classes.json")))
    folders = (TESTS.parent / "delta_pyds", TESTS / "unit", TESTS / "spark")
    sources = (path.read_text() for folder in folders for path in folder.rglob("*.py"))
    raised = {code for source in sources for code in re.findall(r"[A-Z]+_[A-Z0-9_]+", source)}
    assert len(classes & raised) > 200
    assert classes - raised - names("errors") == set()
    assert names("errors") & raised == set()


def test_its_settings_are_listed(spark: SparkSession) -> None:
    """Those that it does not mark as internal: Spark lists no others."""
    listed = {row.key for row in spark.sql("SET -v").collect()}
    found = {key.removeprefix(_PREFIX) for key in listed if key.startswith(_PREFIX)}
    assert len(found) > 25
    assert found - names("settings") == set()
