"""Metadata domains of the system that nobody here knows: they stay through every change of the table.

Protocol: "Writer Requirements for Domain Metadata".
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from delta_pyds.commands.definition.drop_feature import drop_feature
from delta_pyds.commands.definition.feature_artifacts import Dropping
from delta_pyds.commands.layout.cluster_by import cluster_by
from delta_pyds.commands.maintenance.clone import CloneOptions, shallow_clone
from delta_pyds.commands.maintenance.restore import RestoreOptions, restore
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.errors import UserError
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.snapshot import load_snapshot
from tests.support.definitions import define
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import read_rows, write_rows

IDS = {"id": "long"}
UNKNOWN = {"domain": "delta.ofALaterRelease", "configuration": '{"a":1.10}', "removed": False}
THEIRS = {"domain": "user.domain", "configuration": "x", "removed": False}
FEATURES = (["deletionVectors"], ["checkConstraints", "clustering", "deletionVectors", "domainMetadata", "rowTracking"])


def table(path: Path, writer: list[str] = FEATURES[1], reader: list[str] = FEATURES[0]) -> TableBuilder:
    made = TableBuilder(path, IDS, features=(reader, writer))
    made.create([{"domainMetadata": UNKNOWN}, {"domainMetadata": THEIRS}])
    return made


def domains(path: Path) -> dict[str, str]:
    return {name: found.configuration for name, found in load_snapshot(path).domain_metadata.items()}


def _drop(feature: str) -> Callable[[Path], object]:
    return lambda path: drop_feature(Dropping(lambda: load_snapshot(path)), feature)


def _restore(path: Path) -> object:
    return restore(load_snapshot(path), RestoreOptions(version=1))


def _clone(path: Path) -> object:
    source = path.with_name("source")
    define(source, IDS)
    return shallow_clone(load_snapshot(source), LocalStorage(), str(path), CloneOptions(replace=True))


@pytest.mark.parametrize(
    "change",
    [
        _drop("rowTracking"),
        _drop("deletionVectors"),
        _drop("checkConstraints"),
        _restore,
        _clone,
        lambda path: define(path, IDS, "replace"),
        lambda path: write_rows(path, IDS, [{"id": 7}], mode="overwrite", create_mode="replace"),
        lambda path: write_rows(path, {"v": "string"}, [{"v": "x"}], mode="overwrite", overwrite_schema=True),
        lambda path: cluster_by(load_snapshot(path), ["id"], CommandOptions()),
    ],
    ids=[
        "drop row tracking", "drop vectors", "drop constraints", "restore", "clone", "replace", "replaced by rows",
        "overwrite", "cluster",
    ],
)  # fmt: skip
def test_they_survive(tmp_path: Path, change: Callable[[Path], object]) -> None:
    path = tmp_path / "t"
    made = table(path)
    for n in range(2):
        write_rows(path, IDS, [{"id": n}])
    made.version = load_snapshot(path).version
    change(path)
    assert load_snapshot(path).version > made.version
    assert domains(path).items() >= {UNKNOWN["domain"]: UNKNOWN["configuration"], "user.domain": "x"}.items()


def test_the_feature_of_domains_stays_while_there_is_one(tmp_path: Path) -> None:
    made = table(tmp_path, ["domainMetadata"], [])
    made.append([{"id": 1}])
    with pytest.raises(UserError, match=r"delta\.ofALaterRelease") as caught:
        _drop("domainMetadata")(tmp_path)
    assert caught.value.code == "DELTA_FEATURE_DROP_DEPENDENT_FEATURE"
    assert load_snapshot(tmp_path).version == made.version
    assert set(domains(tmp_path)) == {"delta.ofALaterRelease", "user.domain"}
    # without it the rest goes, as in the reference
    made.commit([{"domainMetadata": {**UNKNOWN, "removed": True}}])
    _drop("domainMetadata")(tmp_path)
    assert not domains(tmp_path)
    assert [row["id"] for row in read_rows(tmp_path)] == [1]
