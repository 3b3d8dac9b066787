"""Answers of a catalog that are of a wrong type: an error at once, which names the method, and says why."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import delta_pyds
from delta_pyds.catalog import CommitOutcome, CommitProposal, UnpublishedCommit, objects
from delta_pyds.catalog.address import CATALOG_NAME, locate, reserve
from delta_pyds.catalog.named import forget_catalogs, open_catalog
from delta_pyds.catalog.sqlite import SqliteCatalog
from delta_pyds.errors import CatalogError, CommitOutcomeUnknownError, OptionError
from tests.support.catalogs import NAME, CatalogTable, registered
from tests.support.table_writes import write_rows
from tests.unit.catalog.fifty_lines import DictCatalog
from tests.unit.catalog.test_contract import Answers


def made(tmp_path: Path, method: str, answer: Callable[[Any], Any]) -> CatalogTable:
    """A table whose catalog gives another answer from now on."""
    catalog = DictCatalog(str(tmp_path))
    CatalogTable(catalog).create()
    wrong = Answers(str(tmp_path), method, answer)
    wrong._tables = catalog._tables
    return CatalogTable(wrong)


@pytest.mark.parametrize("answer", [lambda _: None, lambda _: "ok", lambda _: 1], ids=["none", "text", "number"])
def test_no_outcome_of_a_proposal(tmp_path: Path, answer: Callable[[Any], Any]) -> None:
    """It may be ratified: nobody deletes its files, or proposes it again as something else."""
    table = made(tmp_path, "propose_commit", answer)
    with pytest.raises(CatalogError, match=r"propose_commit of tests\.unit\.catalog\.test_contract\.Answers") as error:
        table.append("a")
    assert isinstance(error.value, CommitOutcomeUnknownError)
    assert isinstance(error.value.__cause__, TypeError)
    assert error.value.parameters["method"] == "propose_commit"
    assert table.pauses == []
    assert table.files() == ["a"] and len(table.staged()) == 1
    copy = pickle.loads(pickle.dumps(error.value))
    assert type(copy) is type(error.value) and str(copy) == str(error.value)


def test_no_outcome_of_a_registration(tmp_path: Path) -> None:
    table = CatalogTable(Answers(str(tmp_path), "register_table", lambda _: None))
    with pytest.raises(CatalogError, match="register_table") as error:
        table.create()
    assert isinstance(error.value, CommitOutcomeUnknownError) and table.pauses == []
    assert table.files() == []


TEXT_FOR_BYTES: Any = UnpublishedCommit(1, 1, content="{}")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda _: None, "returned None, but must return a ManagedTable"),
        (
            lambda table: replace(table, latest_version=1, unpublished=(TEXT_FOR_BYTES,)),
            "UnpublishedCommit whose content is of the type str, but must be bytes or None",
        ),
        (lambda table: replace(table, latest_version=None), "latest_version is None, but must be an int"),
    ],
    ids=["none", "text for bytes", "no version"],
)
def test_what_a_table_is(tmp_path: Path, answer: Callable[[Any], Any], said: str) -> None:
    table = made(tmp_path, "load_table", answer)
    with pytest.raises(CatalogError, match="load_table") as error:
        locate(table=NAME, catalog=table.catalog)
    assert said in error.value.message and isinstance(error.value.__cause__, TypeError)


def test_no_place_for_a_table(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="reserve_table") as error:
        reserve(NAME, Answers(str(tmp_path), "reserve_table", lambda _: None))
    assert isinstance(error.value.__cause__, TypeError)


class Raising(DictCatalog):
    def propose_commit(self, proposal: CommitProposal) -> CommitOutcome:
        raise KeyError(f"no such column, password=hunter222 for {proposal.version}")


def test_what_a_catalog_raises_is_the_cause(tmp_path: Path) -> None:
    """With the place where it was raised, and nothing that nobody must see."""
    table = CatalogTable(Raising(str(tmp_path)))
    table.create()
    with pytest.raises(CommitOutcomeUnknownError) as error:
        table.append("a")
    cause = str(error.value.__cause__)
    assert "KeyError" in cause and "test_answers.py" in cause and "in propose_commit" in cause
    assert "hunter222" not in cause + str(error.value)


# --- catalogs that are given as objects


class Travelling(SqliteCatalog):
    def __reduce__(self) -> tuple[Any, ...]:
        return Travelling, (self._sql.path,)


@pytest.fixture
def travelling(tmp_path: Path) -> Iterator[Travelling]:
    catalog = Travelling(str(tmp_path / "c.db"))
    registered(catalog)
    yield catalog
    forget_catalogs()


def test_an_object_in_the_place_of_a_name(tmp_path: Path) -> None:
    catalog = DictCatalog(str(tmp_path))
    place = reserve(NAME, catalog)
    write_rows(place.table_root, {"id": "long"}, [{"id": 1}], storage_options=place.storage_options)
    assert delta_pyds.scan(table=NAME, catalog=catalog).to_table().column("id").to_pylist() == [1]
    assert delta_pyds.verify(table=NAME, catalog=catalog).ok
    assert delta_pyds.load_snapshot(table=NAME, catalog=catalog).version == 0
    names = {locate(table=NAME, catalog=catalog).storage_options[CATALOG_NAME] for _ in range(2)}
    assert len(names) == 1 and "DictCatalog" not in names.pop()


@pytest.mark.parametrize("catalog", [1, b"prod", DictCatalog, object()])
def test_what_is_neither_a_name_nor_a_catalog(catalog: Any) -> None:
    with pytest.raises(OptionError, match=r"must be a name or a delta_pyds\.catalog\.Catalog"):
        locate(table=NAME, catalog=catalog)


def loaded_elsewhere(name: str) -> str:
    """In a process of its own: what it finds of the table, or the error."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(_loaded, (name,))


def _loaded(name: str) -> str:
    try:
        catalog = open_catalog(name)
        return f"{type(catalog).__name__} {catalog.load_table(NAME).latest_version}"
    except Exception as error:
        return str(error)


def test_another_process_makes_the_object_again(travelling: Travelling) -> None:
    assert loaded_elsewhere(objects.name_of(travelling, pickle.dumps)) == "Travelling 0"


def test_an_object_that_stays_in_its_process(tmp_path: Path) -> None:
    """It says what to do, not that a name is unknown."""
    said = loaded_elsewhere(objects.name_of(DictCatalog(str(tmp_path)), pickle.dumps))
    assert "given as an object" in said and "Define __reduce__ in its class" in said


@pytest.mark.parametrize("what", ["file for all", "directory for all", "link"])
def test_what_others_could_have_left_is_not_taken(travelling: Travelling, tmp_path: Path, what: str) -> None:
    name = objects.name_of(travelling, pickle.dumps)
    path = Path(objects._file(name))
    assert [p.stat().st_mode & 0o777 for p in (path, path.parent)] == [0o600, 0o700]
    try:
        if what == "link":
            (tmp_path / "elsewhere").write_bytes(path.read_bytes())
            path.unlink()
            path.symlink_to(tmp_path / "elsewhere")
        else:
            os.chmod(path if what == "file for all" else path.parent, 0o777)
        assert "given as an object" in loaded_elsewhere(name)
    finally:
        path.parent.chmod(0o700)


def test_a_name_leads_nowhere_else(tmp_path: Path) -> None:
    for name in (f"object-../../{tmp_path}", "object-a-b", "object-abcdefgh-" + "../" * 8):
        assert not objects.is_object(name)
