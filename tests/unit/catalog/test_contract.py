"""What every catalog has to keep: whoever writes one adds it to ``conftest.MAKERS``."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from delta_pyds.catalog import BacklogFull, Catalog, Conflict, Ratified, Refused
from delta_pyds.errors import TableNotFoundError, UserError
from tests.support.catalogs import NAME, new_table, proposal, registered

ANOTHER = "5c6f7a31-8f0e-4b7e-9d5b-0d8f0f6f0a11"


def test_a_table_is_seen_once_it_is_registered(catalog: Catalog) -> None:
    made = catalog.reserve_table(NAME)
    with pytest.raises(TableNotFoundError) as error:
        catalog.load_table(NAME)
    assert error.value.code == "TABLE_OR_VIEW_NOT_FOUND"
    new = new_table(made)

    assert isinstance(catalog.register_table(new), Ratified)

    found = catalog.load_table(NAME)
    assert (found.name, found.table_id, found.location) == (NAME, made.table_id, made.location)
    assert (found.latest_version, found.unpublished) == (0, ())


def test_the_same_registration_again_is_the_same_table(catalog: Catalog) -> None:
    made = catalog.reserve_table(NAME)
    new = new_table(made)
    assert [type(catalog.register_table(new)) for _ in range(2)] == [Ratified, Ratified]


def test_a_name_is_given_once(catalog: Catalog) -> None:
    first, second = catalog.reserve_table(NAME), catalog.reserve_table(NAME)
    assert first.location != second.location and first.table_id != second.table_id
    catalog.register_table(new_table(second))

    late = catalog.register_table(new_table(first))

    assert late == Conflict()
    assert catalog.load_table(NAME).table_id == second.table_id
    with pytest.raises(UserError) as error:
        catalog.reserve_table(NAME)
    assert error.value.code == "TABLE_OR_VIEW_ALREADY_EXISTS"


@pytest.mark.parametrize("inline", [None, b'{"commitInfo":{}}\n'])
def test_a_ratified_commit_is_given_out_until_it_is_published(catalog: Catalog, inline: bytes | None) -> None:
    table = registered(catalog)
    one, two = (proposal(table, version, inline=inline) for version in (1, 2))
    if inline is not None and not catalog.max_inline_bytes:
        # no committer hands it one then, so it need not take any; but it must not take it wrongly
        refused = catalog.propose_commit(one)
        if isinstance(refused, Refused):
            assert catalog.load_table(NAME) == table
            return
    assert isinstance(catalog.propose_commit(one), Ratified)
    outcome = catalog.propose_commit(two)
    assert isinstance(outcome, Ratified)

    found = catalog.load_table(NAME)
    assert outcome.table in (None, found)
    assert found.latest_version == 2
    stored = [(c.version, c.timestamp_ms, c.file_name, c.size_bytes, c.content) for c in found.unpublished]
    assert stored == [(p.version, p.timestamp_ms, p.file_name, p.size_bytes, p.content) for p in (one, two)]

    catalog.report_published(NAME, table.table_id, 1)
    catalog.report_published(NAME, table.table_id, 1)
    assert [c.version for c in catalog.load_table(NAME).unpublished] == [2]
    catalog.report_published(NAME, table.table_id, 2)
    assert catalog.load_table(NAME).unpublished == ()
    assert catalog.load_table(NAME).latest_version == 2


def test_the_same_proposal_again_is_ratified_again(catalog: Catalog) -> None:
    table = registered(catalog)
    one = proposal(table, 1)
    assert [type(catalog.propose_commit(one)) for _ in range(3)] == [Ratified] * 3
    assert catalog.load_table(NAME).latest_version == 1


@pytest.mark.parametrize("published", [False, True])
def test_a_version_is_ratified_once(catalog: Catalog, published: bool) -> None:
    table = registered(catalog)
    first = proposal(table, 1)
    catalog.propose_commit(first)
    if published:
        catalog.report_published(NAME, table.table_id, 1)
    assert catalog.propose_commit(proposal(table, 1)) == Conflict()
    assert catalog.propose_commit(proposal(table, 0)) == Conflict()
    assert catalog.load_table(NAME).latest_version == 1


def test_versions_have_no_gap(catalog: Catalog) -> None:
    """Also the first one: a server has been seen to take version 2 of a new table."""
    table = registered(catalog)
    assert isinstance(catalog.propose_commit(proposal(table, 2)), Refused)
    assert isinstance(catalog.propose_commit(proposal(table, 1)), Ratified)
    assert isinstance(catalog.propose_commit(proposal(table, 3)), Refused)
    assert catalog.load_table(NAME).latest_version == 1


def test_another_table_of_the_name_is_not_committed_to(catalog: Catalog) -> None:
    table = registered(catalog)
    assert isinstance(catalog.propose_commit(proposal(table, 1, content=None)), Ratified)
    other = proposal(table, 2)
    other = type(other)(**{**other.__dict__, "table_id": ANOTHER})
    assert isinstance(catalog.propose_commit(other), Refused)
    catalog.report_published(NAME, ANOTHER, 1)
    assert [c.version for c in catalog.load_table(NAME).unpublished] == [1]


def test_a_backlog_is_bounded_and_goes_on_once_it_is_published(catalog: Catalog) -> None:
    table = registered(catalog)
    outcomes = [catalog.propose_commit(proposal(table, version)) for version in range(1, 12)]
    assert [type(one) for one in outcomes] == [Ratified] * 10 + [BacklogFull]
    assert catalog.load_table(NAME).latest_version == 10
    catalog.report_published(NAME, table.table_id, 1)
    assert isinstance(catalog.propose_commit(proposal(table, 11)), Ratified)


def test_of_racing_proposals_one_is_ratified(catalog: Catalog) -> None:
    table = registered(catalog)
    for version in range(1, 9):
        proposals = [proposal(table, version) for _ in range(8)]
        with ThreadPoolExecutor(8) as pool:
            outcomes = list(pool.map(catalog.propose_commit, proposals))
        won = [p for p, outcome in zip(proposals, outcomes, strict=True) if isinstance(outcome, Ratified)]
        assert len(won) == 1 and outcomes.count(Conflict()) == 7
        assert catalog.load_table(NAME).unpublished[-1].file_name == won[0].file_name


def test_tables_are_apart(catalog: Catalog) -> None:
    one, other = registered(catalog, "main.a.t"), registered(catalog, "main.b.t")
    catalog.propose_commit(proposal(one, 1))
    assert catalog.load_table("main.a.t").latest_version == 1
    assert catalog.load_table("main.b.t").latest_version == 0
    assert one.location != other.location
