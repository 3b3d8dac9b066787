"""Version 0 of a catalog's table: written to the log at a place that the catalog has reserved, then registered.

Invariants: of one name one table at most is registered, as the catalog says when it is asked afterwards; what was
written is deleted only where the catalog surely does not know it, and never will.

Protocol: "Creating and Dropping Catalog-managed Tables".
"""

from __future__ import annotations

import time
from collections.abc import Callable

from delta_pyds.catalog.answers import said_by
from delta_pyds.catalog.interface import Conflict, ManagedTable, NewTable, OutcomeUnknown, Ratified, Refused
from delta_pyds.catalog.managed_storage import CatalogStorage
from delta_pyds.catalog.outcomes import Answer, NotReached, SurelyNotError, answer_of, cause_in, joined, reason_of
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

# Between the attempts to register a table whose registration is unknown.
_PAUSES_S = (0.1, 0.5, 2.0, 5.0)


def create_table(
    storage: CatalogStorage, commit: ProposedCommit, *, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Make the commit version 0 of the table that the storage has a place for, and register it under its name.

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
    except SurelyNotError as sure:
        # the place is this table's alone, and no catalog knows it
        storage.store.delete(commit_path(storage.table_root, 0), below=storage.table_root)
        raise sure.error from None
    storage.table_id = table.table_id


def _register(storage: CatalogStorage, table: NewTable, commit: ProposedCommit, sleep: Callable[[float], None]) -> None:
    """Register until it is known whose the name is. A catalog that says ``Ratified`` is asked for the table too.

    Raises: SurelyNotError where the name is another table's, for a refusal, and where the catalog took nothing;
        CommitOutcomeUnknownError; CatalogAnswerError.
    """
    catalog = storage.catalog
    lost = told = ""  # why it may be registered; why it is not
    cause: Exception | None = None
    # once it says that it is registered it is only asked: again it might take the place of another table
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
            failed = said_by(error)
        said = outcome.table if isinstance(outcome, Ratified) else None
        # what a replica that lags behind does not know yet, the answer has told
        known = found if found is not None else said
        if known is not None and known.table_id == table.table_id:
            return
        # another table may be an older one, in the answer of a replica that lags behind
        sure = isinstance(outcome, Conflict) or not (lost or isinstance(outcome, OutcomeUnknown | Ratified))
        if found is not None and sure:
            raise SurelyNotError(_exists(table.name))
        if isinstance(outcome, Refused) and not lost:
            raise SurelyNotError(_not_registered(table.name, outcome.reason))
        if isinstance(outcome, NotReached) and not lost:
            told = outcome.reason
        else:
            why = "the catalog says that it is registered, but has another table of that name, or none"
            lost = joined(lost, why if isinstance(outcome, Ratified) else reason_of(outcome), failed)
        if pause is not None:
            sleep(pause)
    if not lost:
        raise SurelyNotError(_not_created(table.name, told))
    raise CommitOutcomeUnknownError(
        f"It is unknown whether table {table.name!r} was created: its catalog did not say ({lost}). If it has "
        f"the id {table.table_id} there, it was. Check that before you create it again.",
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


def _not_registered(name: str, reason: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"the catalog refuses the table {name}: {reason.rstrip('.')}. Nothing was changed.",
        code="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
        table=name,
    )


def _not_created(name: str, reason: str) -> NothingWrittenError:
    return NothingWrittenError(
        f"The table {name!r} was not created: {reason.rstrip('.')}. Run the operation again.", table=name
    )
