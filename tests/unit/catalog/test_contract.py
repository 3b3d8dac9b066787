"""The contract of every catalog: ours, the one of the examples, and that broken ones are told what they break."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from delta_pyds.catalog import BacklogFull, Catalog, CommitOutcome, CommitProposal, NewTable, Ratified, contract
from delta_pyds.errors import CatalogError
from tests.support.catalogs import NAME, CatalogTable, proposal, registered
from tests.unit.catalog.conftest import YOURS
from tests.unit.catalog.fifty_lines import DictCatalog


@pytest.mark.parametrize("rule", contract.RULES)
def test_the_contract(catalog: Catalog, rule: str) -> None:
    contract.RULES[rule](catalog)


def test_a_backlog_is_bounded(catalog: Catalog) -> None:
    table = registered(catalog)
    outcomes = [catalog.propose_commit(proposal(table, version)) for version in range(1, 12)]
    assert [type(one) for one in outcomes] == [Ratified] * 10 + [BacklogFull]
    assert catalog.load_table(NAME).latest_version == 10


def test_it_needs_no_pytest() -> None:
    """It is run where the package is installed, and nothing of its tests."""
    program = (
        "import sys; sys.modules['pytest'] = sys.modules['tests'] = None\n"
        "import tempfile; from delta_pyds.catalog import contract\n"
        "from delta_pyds.catalog.sqlite import SqliteCatalog\n"
        "print(len(contract.check(lambda: SqliteCatalog(tempfile.mkdtemp() + '/c.db'))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(len(contract.RULES))


# --- catalogs that break it


class Forgets(DictCatalog):
    """Each version is anybody's once it is published."""

    def report_published(self, name: str, table_id: str, version: int) -> None:
        super().report_published(name, table_id, version)
        self._tables[name] = replace(self._tables[name], latest_version=version - 1)


class TakesAll(DictCatalog):
    def propose_commit(self, proposal: CommitProposal) -> CommitOutcome:
        super().propose_commit(proposal)
        return Ratified()


class LastWins(DictCatalog):
    def register_table(self, table: NewTable) -> CommitOutcome:
        self._tables.pop(table.name, None)
        return super().register_table(table)


class Answers(DictCatalog):
    """One method answers with something else."""

    def __init__(self, root: str, method: str, answer: Callable[[Any], Any]) -> None:
        super().__init__(root)
        real = getattr(self, method)
        setattr(self, method, lambda *given: answer(real(*given)))


@pytest.mark.parametrize(
    ("kind", "rules"),
    [
        (Forgets, {"a version is ratified once", "a ratified commit is returned until it is published"}),
        (
            TakesAll,
            {"a version is ratified once", "versions have no gap", "one of racing proposals is ratified"},
        ),
        (LastWins, {"a name belongs to one table"}),
    ],
)
def test_what_a_broken_catalog_breaks_is_said(tmp_path: Path, kind: type[DictCatalog], rules: set[str]) -> None:
    with pytest.raises(CatalogError) as error:
        contract.check(lambda: kind(str(tmp_path)))
    assert all(f"- {rule}: " in error.value.message for rule in rules)


def nothing(_: Any) -> None:
    return None


WRONG: list[tuple[str, Callable[[Any], Any], str]] = [
    ("load_table", nothing, "load_table .* returned None, but must return a ManagedTable"),
    ("load_table", lambda table: replace(table, latest_version="1"), "latest_version is of the type str"),
    ("load_table", lambda table: replace(table, unpublished=None), "unpublished is None"),
    (
        "load_table",
        lambda table: replace(table, unpublished=(b"",)),
        "an unpublished commit of the type bytes",
    ),
    (
        "load_table",
        lambda table: replace(table, credentials={"key": "secret!"}),
        "credentials of the type dict",
    ),
    ("load_table", lambda table: {**table.__dict__}, "of the type dict, but must return a ManagedTable"),
    ("reserve_table", nothing, "reserve_table .* returned None, but must return a TableReservation"),
    ("reserve_table", lambda made: replace(made, location=b"/t"), "location is of the type bytes"),
    ("propose_commit", nothing, "propose_commit .* returned None, but must return a CommitOutcome"),
    ("propose_commit", lambda _: True, "propose_commit .* returned a value of the type bool"),
    ("propose_commit", lambda _: Ratified, "propose_commit .* returned a value of the type type"),
    ("propose_commit", lambda one: Ratified("yes") if isinstance(one, Ratified) else one, "of the type str"),  # type: ignore[arg-type]
    ("register_table", nothing, "register_table .* returned None, but must return a CommitOutcome"),
]


@pytest.mark.parametrize(("method", "answer", "said"), WRONG, ids=[f"{n}-{w[0]}" for n, w in enumerate(WRONG)])
def test_an_answer_of_a_wrong_type_is_said(
    tmp_path: Path, method: str, answer: Callable[[Any], Any], said: str
) -> None:
    with pytest.raises(CatalogError, match=said) as error:
        contract.check(lambda: Answers(str(tmp_path), method, answer))
    assert "secret!" not in error.value.message


def append_some(path: Path, name: str) -> None:
    table = CatalogTable(YOURS(str(path)))
    for number in range(5):
        table.append(f"{name}-{number}")


def test_the_example_holds_between_processes(tmp_path: Path) -> None:
    path = tmp_path / "catalog.json"
    table = CatalogTable(YOURS(str(path)))
    table.create()
    processes = [get_context("fork").Process(target=append_some, args=(path, name)) for name in "abcd"]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert table.files() == sorted(f"{name}-{number}" for name in "abcd" for number in range(5))
    assert table.published() == list(range(21)) and table.unpublished() == []
