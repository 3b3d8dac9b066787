"""The rules for every catalog as tests, for authors of a ``Catalog`` class.

Each rule runs on an empty catalog, and creates its own tables in it; no file of a table is written or read.

>>> from delta_pyds.catalog import contract
>>> contract.check(lambda: MyCatalog(new_empty_database()))

Protocol: "Catalog Responsibilities", "Commit Protocol".
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import msgspec

from delta_pyds.catalog.answers import message_of, require_outcome, reserve_table
from delta_pyds.catalog.interface import (
    BacklogFull,
    Catalog,
    CommitOutcome,
    CommitProposal,
    Conflict,
    ManagedTable,
    NewTable,
    Ratified,
    Refused,
    TableReservation,
)
from delta_pyds.catalog.table_state import ask, require_consistent
from delta_pyds.errors import CatalogError, TableNotFoundError, UserError
from delta_pyds.protocol.actions import Metadata, Protocol
from delta_pyds.protocol.features import lowest_protocol, supported_features
from delta_pyds.protocol.schema import LONG, STRING, StructField, StructType, schema_to_string

NAME = "main.db.t"
PROTOCOL = Protocol(
    3,
    7,
    ["catalogManaged", "vacuumProtocolCheck"],
    ["catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck"],
)
METADATA = Metadata(
    id="metadata-id",
    schema_string=schema_to_string(StructType((StructField("id", LONG), StructField("p", STRING)))),
    partition_columns=[],
    configuration={"delta.enableInCommitTimestamps": "true"},
    created_time=1,
)
_ANOTHER = "5c6f7a31-8f0e-4b7e-9d5b-0d8f0f6f0a11"
# unpublished commits that are tested if a catalog sets no limit
_MOST_WAITING = 50
Rule = Callable[[Catalog], None]


def check(factory: Callable[[], Catalog]) -> tuple[str, ...]:
    """Run every rule on a separate catalog. ``factory``: creates an empty one, with a location for tables.

    Returns: the rules, in words. Raises: CatalogError naming each broken rule, and the wrong answer.
    """
    broken: list[str] = []
    shown: set[str] = set()
    cause: Exception | None = None
    for rule, keeps in RULES.items():
        try:
            keeps(factory())
        except Exception as error:
            cause = cause or error
            text = message_of(error)
            broken.append(f"- {rule}: {'the same' if text in shown else text}")
            shown.add(text)
    if broken:
        text = "\n".join(broken)
        raise CatalogError(
            f"The catalog breaks {len(broken)} of {len(RULES)} rules:\n{text}", multiline=True, broken=len(broken)
        ) from cause
    return tuple(RULES)


# --- proposals and tables for the rules


def proposal(table: ManagedTable, version: int, *, inline: bytes | None = None, **given: Any) -> CommitProposal:
    """A new proposal with a unique transaction id."""
    txn_id = str(uuid.uuid4())
    name = None if inline is not None else f"{version:020d}.{uuid.uuid4()}.json"
    values = {"file_name": name, "size_bytes": 10, "modification_time_ms": 5, "content": inline, **given}
    return CommitProposal(table.name, table.table_id, version, 1_000 + version, txn_id, **values)


def defined(properties: Mapping[str, str], features: Iterable[str]) -> tuple[Protocol, Metadata]:
    """Protocol and metadata with the properties and features that a catalog requires."""
    protocol = lowest_protocol(supported_features(PROTOCOL) | set(features))
    return protocol, msgspec.structs.replace(METADATA, configuration={**(METADATA.configuration or {}), **properties})


def new_table(made: TableReservation) -> NewTable:
    """A table at the location that a catalog has reserved, with the properties and features that it requires."""
    return NewTable(made.name, made.table_id, made.location, 1_000, *defined(made.properties, made.features))


def registered(catalog: Catalog, name: str = NAME) -> ManagedTable:
    """A registered table without any file."""
    _register(catalog, new_table(reserve_table(catalog, name)))
    return ask(catalog, name)


# --- the rules


def _seen_once_registered(catalog: Catalog) -> None:
    made = reserve_table(catalog, NAME)
    try:
        found = catalog.load_table(NAME)
    except TableNotFoundError as error:
        _expect(error.code == "TABLE_OR_VIEW_NOT_FOUND", "load_table", "the code TABLE_OR_VIEW_NOT_FOUND", error.code)
    except Exception as error:
        _expect(False, "load_table", "TableNotFoundError for a table that is reserved alone", message_of(error))
    else:
        _expect(False, "load_table", "TableNotFoundError for a table that is reserved alone", found)
    _expect_type(_register(catalog, new_table(made)), "register_table", Ratified)
    table = ask(catalog, NAME)
    known = table.name, table.table_id, table.location
    _expect(known == (NAME, made.table_id, made.location), "load_table", "the registered table", known)
    _expect_versions(table, 0, [])


def _same_registration(catalog: Catalog) -> None:
    new = new_table(reserve_table(catalog, NAME))
    for _ in range(2):
        _expect_type(_register(catalog, new), "register_table", Ratified)


def _name_once(catalog: Catalog) -> None:
    first, second = reserve_table(catalog, NAME), reserve_table(catalog, NAME)
    apart = first.location != second.location and first.table_id != second.table_id
    _expect(apart, "reserve_table", "another location and another id each time", (first, second))
    _expect_type(_register(catalog, new_table(second)), "register_table", Ratified)
    _expect_type(_register(catalog, new_table(first)), "register_table", Conflict)
    table = ask(catalog, NAME)
    _expect(table.table_id == second.table_id, "load_table", "the table that was registered first", table)
    try:
        reserved = catalog.reserve_table(NAME)
    except UserError as error:
        code = "TABLE_OR_VIEW_ALREADY_EXISTS"
        _expect(error.code == code, "reserve_table", f"the code {code}", error.code)
    else:
        _expect(False, "reserve_table", "UserError (TABLE_OR_VIEW_ALREADY_EXISTS) for a name that is taken", reserved)


def _returned_until_published(catalog: Catalog, inline: bytes | None = None) -> None:
    table = registered(catalog)
    one, two = (proposal(table, version, inline=inline) for version in (1, 2))
    if inline is not None and not catalog.max_inline_bytes:
        # committers then propose no inline commit, so the catalog may refuse it, but must not store it wrongly
        refused = _propose(catalog, one)
        if isinstance(refused, Refused):
            _expect_versions(ask(catalog, NAME), 0, [])
            return
    for each in (one, two):
        _expect_type(_propose(catalog, each), "propose_commit", Ratified)
    found = ask(catalog, NAME)
    _expect_versions(found, 2, [1, 2])
    for proposed, stored in zip((one, two), found.unpublished, strict=True):
        given = stored.timestamp_ms, stored.file_name
        _expect(given == (proposed.timestamp_ms, proposed.file_name), "load_table", "the commit as proposed", stored)
        if proposed.file_name is not None:
            _expect(stored.size_bytes in (None, proposed.size_bytes), "load_table", "the size as proposed", stored)
        else:
            _expect(stored.content is not None, "load_table", "the content of an inline commit", stored)
    for reported, left in ((1, [2]), (1, [2]), (2, [])):
        catalog.report_published(NAME, table.table_id, reported)
        _expect_versions(ask(catalog, NAME), 2, left)


def _same_proposal(catalog: Catalog) -> None:
    one = proposal(registered(catalog), 1)
    for _ in range(3):
        _expect_type(_propose(catalog, one), "propose_commit", Ratified)
    _expect_versions(ask(catalog, NAME), 1, [1])


def _ratified_once(catalog: Catalog) -> None:
    table = registered(catalog)
    _expect_type(_propose(catalog, proposal(table, 1)), "propose_commit", Ratified)
    for published in (False, True):
        if published:
            catalog.report_published(NAME, table.table_id, 1)
        for version in (1, 0):
            _expect_type(_propose(catalog, proposal(table, version)), "propose_commit", Conflict)
        _expect_versions(ask(catalog, NAME), 1, [] if published else [1])


def _no_gap(catalog: Catalog) -> None:
    """A gap before the first commit counts too: a real server accepted version 2 of a new table."""
    table = registered(catalog)
    for version, expected in ((2, Refused), (1, Ratified), (3, Refused)):
        _expect_type(_propose(catalog, proposal(table, version)), "propose_commit", expected)
    _expect_versions(ask(catalog, NAME), 1, [1])


def _another_table_of_the_name(catalog: Catalog) -> None:
    table = registered(catalog)
    _expect_type(_propose(catalog, proposal(table, 1)), "propose_commit", Ratified)
    other = replace(proposal(table, 2), table_id=_ANOTHER)
    _expect_type(_propose(catalog, other), "propose_commit", Refused)
    catalog.report_published(NAME, _ANOTHER, 1)
    _expect_versions(ask(catalog, NAME), 1, [1])


def _backlog(catalog: Catalog) -> None:
    table = registered(catalog)
    version = 0
    while version < _MOST_WAITING:
        outcome = _propose(catalog, proposal(table, version + 1))
        if isinstance(outcome, BacklogFull):
            break
        _expect_type(outcome, "propose_commit", Ratified)
        version += 1
    _expect_versions(ask(catalog, NAME), version, list(range(1, version + 1)))
    catalog.report_published(NAME, table.table_id, 1)
    _expect_type(_propose(catalog, proposal(table, version + 1)), "propose_commit", Ratified)


def _races(catalog: Catalog) -> None:
    table = registered(catalog)
    for version in range(1, 9):
        proposals = [proposal(table, version) for _ in range(8)]
        with ThreadPoolExecutor(8) as pool:
            outcomes = list(pool.map(lambda one: _propose(catalog, one), proposals))
        won = [p for p, outcome in zip(proposals, outcomes, strict=True) if isinstance(outcome, Ratified)]
        lost = sum(isinstance(outcome, Conflict) for outcome in outcomes)
        names = [type(outcome).__name__ for outcome in outcomes]
        _expect(len(won) == 1 and lost == 7, "propose_commit", "one Ratified of eight, and seven Conflicts", names)
        stored = ask(catalog, NAME).unpublished[-1]
        _expect(stored.file_name == won[0].file_name, "load_table", "the commit that was ratified", stored)


def _tables_apart(catalog: Catalog) -> None:
    one, other = registered(catalog, "main.a.t"), registered(catalog, "main.b.t")
    _expect_type(_propose(catalog, proposal(one, 1)), "propose_commit", Ratified)
    _expect_versions(ask(catalog, "main.a.t"), 1, [1])
    _expect_versions(ask(catalog, "main.b.t"), 0, [])
    _expect(one.location != other.location, "reserve_table", "a location for each table", one.location)


RULES: Mapping[str, Rule] = {
    "a table is seen once it is registered": _seen_once_registered,
    "the same registration again is the same table": _same_registration,
    "a name belongs to one table": _name_once,
    "a ratified commit is returned until it is published": _returned_until_published,
    "an inline commit is returned too, or refused": lambda catalog: _returned_until_published(
        catalog, b'{"commitInfo":{}}\n'
    ),
    "the same proposal again is ratified again": _same_proposal,
    "a version is ratified once": _ratified_once,
    "versions have no gap": _no_gap,
    "a proposal for another table of the same name is refused": _another_table_of_the_name,
    "a full backlog accepts commits again after publishing": _backlog,
    "one of racing proposals is ratified": _races,
    "tables are independent": _tables_apart,
}
"""The rules in words, and the function that tests each on an empty catalog. It raises CatalogError."""


def _propose(catalog: Catalog, proposed: CommitProposal) -> CommitOutcome:
    outcome = require_outcome(catalog, "propose_commit", catalog.propose_commit(proposed))
    if isinstance(outcome, Ratified) and outcome.table is not None:
        require_consistent(outcome.table)
        latest = outcome.table.latest_version
        _expect(latest >= proposed.version, "propose_commit", f"a table at version {proposed.version}", latest)
    return outcome


def _register(catalog: Catalog, table: NewTable) -> CommitOutcome:
    return require_outcome(catalog, "register_table", catalog.register_table(table))


def _expect_type(outcome: CommitOutcome, method: str, expected: type) -> None:
    _expect(isinstance(outcome, expected), method, expected.__name__, outcome)


def _expect_versions(table: ManagedTable, latest: int, unpublished: list[int]) -> None:
    found = table.latest_version, [commit.version for commit in table.unpublished]
    expected = f"the latest version {latest}, and the unpublished ones {unpublished}"
    _expect(found == (latest, unpublished), "load_table", expected, found)


def _expect(kept: bool, method: str, expected: str, found: object) -> None:
    if not kept:
        raise CatalogError(f"{method} must return {expected}, but returned {found!r:.500}", method=method)
