"""Version 0 of a catalog's table: written to the log at the location that the catalog has reserved, then registered.

Invariants: at most one table is registered under a name, according to the catalog's state afterwards. The written file
is deleted only if the catalog has certainly not registered the table and never will.

Protocol: "Creating and Dropping Catalog-managed Tables".
"""

from __future__ import annotations

import time
from collections.abc import Callable

from delta_pyds.catalog.answers import message_of
from delta_pyds.catalog.interface import Conflict, ManagedTable, NewTable, OutcomeUnknown, Ratified, Refused
from delta_pyds.catalog.managed_storage import CatalogStorage
from delta_pyds.catalog.outcomes import Answer, NeverCommittedError, NotReached, answer_of, cause_in, joined, reason_of
from delta_pyds.catalog.staging import prepare_staging
from delta_pyds.catalog.table_state import ask
from delta_pyds.errors import (
    CommitOutcomeUnknownError,
    NothingWrittenError,
    TableNotFoundError,
    UnsupportedOperationError,
    UserError,
)
from delta_pyds.log.committer import ProposedCommit, put_commit
from delta_pyds.protocol.paths import commit_path

# Pauses between attempts to register a table whose registration is unknown.
_PAUSES_S = (0.1, 0.5, 2.0, 5.0)


def create_table(
    storage: CatalogStorage, commit: ProposedCommit, *, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Write the commit as version 0 at the storage's reserved location, and register the table under its name.

    Raises: UserError (TABLE_OR_VIEW_ALREADY_EXISTS); UnsupportedOperationError for a refusal; NothingWrittenError;
        CommitOutcomeUnknownError; CatalogAnswerError.
    """
    reservation = storage.reservation
    if reservation is None or commit.protocol is None or commit.metadata is None:
        raise _exists(storage.table_name)
    if not put_commit(storage.store, storage.table_root, 0, commit.data, commit.txn_id, sleep=sleep):
        raise _exists(storage.table_name)
    prepare_staging(storage.store, storage.table_root)
    table = NewTable(
        reservation.name,
        reservation.table_id,
        storage.table_root,
        commit.timestamp_ms,
        commit.protocol,
        commit.metadata,
        commit.domains,
    )
    try:
        _register(storage, table, commit, sleep)
    except NeverCommittedError as sure:
        # no other table uses the location, and no catalog has registered this one
        storage.store.delete(commit_path(storage.table_root, 0), below=storage.table_root)
        raise sure.error from None
    storage.table_id = table.table_id


def _register(storage: CatalogStorage, table: NewTable, commit: ProposedCommit, sleep: Callable[[float], None]) -> None:
    """Register until it is known which table has the name. ``Ratified`` is verified by loading the table.

    Raises: NeverCommittedError if the name belongs to another table, for a refusal, or if the catalog accepted nothing;
        CommitOutcomeUnknownError; CatalogAnswerError.
    """
    catalog = storage.catalog
    unknown = refused = ""  # why it may be registered; why it is not
    cause: Exception | None = None
    # after Ratified, the catalog is only queried: another registration might replace another table
    outcome: Answer = OutcomeUnknown("")
    for pause in (*_PAUSES_S, None):
        if not isinstance(outcome, Ratified):
            outcome = answer_of(catalog, "register_table", lambda: catalog.register_table(table))
            cause = cause_in(outcome) or cause
        found: ManagedTable | None = None
        failed = ""
        try:
            found = ask(catalog, table.name)
        except TableNotFoundError:
            pass
        except Exception as error:
            failed = message_of(error)
        returned = outcome.table if isinstance(outcome, Ratified) else None
        # the answer may contain the table before a slow replica has it
        known = found if found is not None else returned
        if known is not None and known.table_id == table.table_id:
            return
        # a slow replica may return another, outdated table
        sure = isinstance(outcome, Conflict) or not (unknown or isinstance(outcome, OutcomeUnknown | Ratified))
        if found is not None and sure:
            raise NeverCommittedError(_exists(table.name))
        if isinstance(outcome, Refused) and not unknown:
            raise NeverCommittedError(
                UnsupportedOperationError(
                    f"the catalog refuses the table {table.name}: {outcome.reason.rstrip('.')}. Nothing was changed.",
                    code="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
                    table=table.name,
                )
            )
        if isinstance(outcome, NotReached) and not unknown:
            refused = outcome.reason
        else:
            why = "the catalog reports that it is registered, but does not have it under that name"
            unknown = joined(unknown, why if isinstance(outcome, Ratified) else reason_of(outcome), failed)
        if pause is not None:
            sleep(pause)
    if not unknown:
        not_created = f"The table {table.name!r} was not created: {refused.rstrip('.')}. Run the operation again."
        raise NeverCommittedError(NothingWrittenError(not_created, table=table.name))
    raise CommitOutcomeUnknownError(
        f"It is unknown whether table {table.name!r} was created: its catalog did not confirm it ({unknown}). If the "
        f"catalog has it with the id {table.table_id}, it was created. Check that before you create it again.",
        table=table.name,
        version=0,
        txn_id=commit.txn_id,
    ) from cause


def _exists(name: str) -> UserError:
    return UserError(
        f"the table {name} has been created by another writer. Nothing was written to it: run the operation again "
        "to use that table.",
        code="TABLE_OR_VIEW_ALREADY_EXISTS",
        table=name,
    )
