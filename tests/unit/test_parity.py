"""The items of the reference: each has a state that is true, and what this package knows of them is listed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pytest

import delta_pyds
from delta_pyds.errors import DeltaError, OptionError, UnsupportedFeatureError, UnsupportedOperationError
from delta_pyds.protocol.actions import Metadata, Protocol
from delta_pyds.protocol.features import CATALOG_FEATURES, FEATURES, with_requirements
from delta_pyds.protocol.properties import Property
from delta_pyds.protocol.schema import schema_to_string
from delta_pyds.spark import settings
from delta_pyds.spark.install import runtime_settings
from delta_pyds.spark.options.names import WRITE_NAMES
from delta_pyds.spark.options.read import READ_OPTIONS, STREAM_OPTIONS
from delta_pyds.spark.options.write import parse_write_options
from delta_pyds.statements.kinds import PassThrough
from delta_pyds.statements.parse import parse_statement
from delta_pyds.table.configuration import load_configuration
from delta_pyds.table.definition.property_rules import PROPERTY_RULES, read_properties
from tests.parity import refusals
from tests.parity.page import PAGE, page
from tests.parity.state import KINDS, STATES, Item, faults, names, read_items
from tests.support.reference_api import METHODS, OPTIONS
from tests.support.table_writes import struct

ITEMS = read_items()
PACKAGE = Path(delta_pyds.__file__).parent
ROOT = PACKAGE.parent
# of a session alone, of Spark itself, and arguments of ``forPath``
_ELSEWHERE = {"optimizeWrite", "replaceUsing", "queryName", "checkpointLocation", "fs.*"}
# one of them is a value of each property
_VALUES = ("true", "1", "interval 60 days", "interval 5 days", "classic", "Serializable", "name", "a", "1.0.0")


def _of(kind: str) -> list[Item]:
    return [item for item in ITEMS if item.kind == kind]


def _id(item: Item) -> str:
    return item.name


# --- the list


def test_each_item_has_a_state_and_its_tests_exist() -> None:
    assert [fault for item in ITEMS for fault in faults(item)] == []


def test_an_item_without_a_state_or_a_test_or_a_reason_is_a_fault() -> None:
    good = replace(ITEMS[0], state="works", here="unit/test_parity.py::test_a_feature_has_its_state", beside="-")
    assert list(faults(good)) == []
    for changed in (
        {"state": ""}, {"state": "perhaps"}, {"here": "-"}, {"here": "unit/test_parity.py::test_nothing"},
        {"here": "unit/gone.py::test_it"}, {"beside": "matrix: no such row"}, {"state": "missing", "note": ""},
    ):  # fmt: skip
        assert len(list(faults(replace(good, **changed)))) == 1, changed


def test_a_line_without_all_parts_is_an_error(tmp_path: Path) -> None:
    for kind in KINDS:
        (tmp_path / f"{kind}.txt").write_text("# a comment\n\na.b, c.d | 1.0 | works | - | - |\n")
    assert [item.name for item in read_items(tmp_path) if item.kind in ("api", "options")] == ["a.b, c.d", "a.b", "c.d"]
    (tmp_path / "options.txt").write_text("a | 1.0 | works\n")
    with pytest.raises(ValueError, match=r"options\.txt has a line of 3 parts"):
        read_items(tmp_path)


def test_no_name_is_listed_twice() -> None:
    assert {kind: len(names(kind)) for kind in KINDS} == {kind: len(_of(kind)) for kind in KINDS}


def test_the_page_is_up_to_date() -> None:
    text = page(ITEMS)
    assert PAGE.read_text() == text, "run `make parity`"
    assert text.index("## What is missing") < text.index("## Table features")
    assert all(f"**{state}**" in text for state in STATES if state != "other code")


def test_what_is_known_here_is_listed() -> None:
    keys = {value for value in vars(Property).values() if isinstance(value, str) and value.startswith("delta.")}
    assert keys | {rule.key for rule in PROPERTY_RULES.values()} - names("properties") == keys & names("properties")
    assert set(FEATURES) - names("features") == set()
    assert OPTIONS - names("options") == set()
    methods = {f"{kind}.{name}" for kind, listed in METHODS.items() for name in listed}
    assert methods - names("api") == set()
    of_delta = [value for key, value in vars(settings).items() if key.isupper() and str(value).startswith("spark.data")]
    heeded = {value.removeprefix(settings.DELTA_PREFIX) for value in of_delta}
    known = {name for name in heeded if name and not name.endswith(".")} | set(runtime_settings._DEFAULTS)
    assert known - names("settings") == set()


# --- states are true


@pytest.mark.parametrize("item", _of("features"), ids=_id)
def test_a_feature_has_its_state(item: Item) -> None:
    known = FEATURES.get(item.name)
    listed = sorted(with_requirements([item.name]))
    for_readers = known.for_readers if known else item.state == "refused"
    readers = [name for name in listed if (FEATURES[name].for_readers if name in FEATURES else for_readers)]
    metadata = Metadata(schema_string=schema_to_string(struct({"id": "long"})), partition_columns=[], configuration={})
    arguments = ("/t", 0, Protocol(3, 7, readers, listed), metadata)
    if item.state == "works" and item.name not in CATALOG_FEATURES:
        load_configuration(*arguments).check_writable()
    elif item.state == "reads":
        with pytest.raises(UnsupportedFeatureError, match=item.name):
            load_configuration(*arguments).check_writable()
    else:
        assert item.state == "refused" or (known is not None and known.readable and known.writable)
        with pytest.raises(DeltaError, match="catalog" if item.name in CATALOG_FEATURES else item.name):
            load_configuration(*arguments)


@pytest.mark.parametrize("item", [i for i in _of("properties") if i.name != Property.ENABLE_ICEBERG_COMPAT_V3], ids=_id)
def test_a_property_has_its_state(item: Item) -> None:
    name = item.name.replace(".feature.*", ".feature.domainMetadata").replace("*", "id")
    values = ("supported",) if "feature" in name else ("id > 0",) if "constraints" in name else _VALUES
    errors = []
    for value in values:
        try:
            read_properties({name: value})
        except OptionError as error:
            errors.append(error.code)
    accepted = len(errors) < len(values)
    kept_by_writers = errors == ["DELTA_CANNOT_MODIFY_TABLE_PROPERTY"] * len(values)
    assert accepted == (item.state in ("works", "no effect") and not kept_by_writers)
    assert kept_by_writers == (accepted is False and item.state == "works")
    assert (item.state == "jvm") == (errors == ["DELTA_UNKNOWN_CONFIGURATION"] * len(values))


@pytest.mark.parametrize("item", _of("options"), ids=_id)
def test_an_option_has_its_state(item: Item, caplog: pytest.LogCaptureFixture) -> None:
    ours = {*READ_OPTIONS, *STREAM_OPTIONS, *map(str.lower, (*WRITE_NAMES, *_ELSEWHERE))}
    assert (item.name.lower() in ours) == (item.state == "works")
    if item.state == "works" or item.name.endswith("*"):
        return
    refused = ""
    try:
        parse_write_options({"path": "/t", item.name: "true"}, struct({"id": "long"}), overwrite=True,
                            assumed_time_zone="UTC")  # fmt: skip
    except UnsupportedOperationError as error:
        refused = str(error)
    assert (item.name in refused) == item.note.startswith("Refused by name")
    assert refused or item.name.lower() in caplog.text or "." in item.name


@pytest.mark.parametrize("item", _of("settings"), ids=_id)
def test_a_setting_has_its_state(item: Item) -> None:
    if "*" in item.name or item.name.startswith("properties.defaults."):
        return
    prefix, _, rest = item.name.partition(".")
    spelled = [item.name, *([rest] if prefix in ("autoCompact", "optimize") else [])]
    wanted = [before + name + '"' for name in spelled for before in ('"', "}")]
    files = (path for path in (PACKAGE / "spark").rglob("*.py") if path.name != "runtime_settings.py")
    heeded = any(text in source for source in map(Path.read_text, files) for text in wanted)
    assert heeded == (item.state == "works")


@pytest.mark.parametrize("item", _of("statements"), ids=_id)
def test_a_statement_has_its_state(item: Item) -> None:
    try:
        found = parse_statement(item.name)
    except DeltaError:
        assert item.state == "missing"
        return
    ours = not isinstance(found.statement, PassThrough)
    if item.state == "works":
        assert ours or (found.refused is None and item.name.startswith("SELECT"))


# --- refusals


def test_refusals_are_found_with_code_and_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = refusals.refusals()
    assert len(found) > 100
    assert all(one.code and one.message and (ROOT / one.place.partition(":")[0]).is_file() for one in found)
    assert "UnsupportedOperationError" not in {one.message for one in found}
    refusals.main("clone", "sql/create.py")
    line = capsys.readouterr().out
    assert line.startswith("DELTA_CLONE_UNSUPPORTED_SOURCE") and line.count("\n") == 1
    assert refusals.codes_of_reference(tmp_path) == set()
    with ZipFile(tmp_path / "delta-spark_1.jar", "w") as jar:
        jar.writestr("error/delta-error-classes.json", '{"A_B": {"subClass": {"C": {}}}, "D_E": {}}')
    assert refusals.codes_of_reference(tmp_path) == {"A_B", "A_B.C", "D_E"}
