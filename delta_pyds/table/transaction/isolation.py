"""The isolation level of a transaction."""

from __future__ import annotations

from delta_pyds.errors import OptionError
from delta_pyds.protocol.properties import ISOLATION_LEVELS, Property
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.transaction.commit_draft import Draft
from delta_pyds.table.transaction.conflict import IsolationLevel


def isolation_of(
    draft: Draft, configuration: TableConfiguration, asked: str | None, *, depends_on_files: bool
) -> IsolationLevel:
    """The level of a transaction with these actions. ``asked``: by the user, in place of the table's own level.

    Raises: OptionError for an unknown level, and for one that is weaker than the table requires.
    """
    has_files = bool(draft.adds or len(draft.removes))
    # a restore or an overwrite may find the table as it should be, and rows that others add would remain in it
    if draft.only_rearranges and (has_files or not depends_on_files):
        return "SnapshotIsolation"
    stored = configuration.properties.isolation_level
    level = next((name for name in ISOLATION_LEVELS if name.lower() == (asked or stored).lower()), None)
    if level is None:
        raise OptionError(
            f"the isolation level is {asked!r}, but must be Serializable or WriteSerializable.",
            isolation_level=asked,
        )
    required = configuration.configuration.get(Property.ISOLATION_LEVEL) is not None
    if required and stored == "Serializable" and level != stored:
        raise OptionError(
            f"table {configuration.table_root!r} requires isolation level Serializable (delta.isolationLevel), but "
            f"{level} was requested. Leave the option out, or change the property.",
            table=configuration.table_root,
            isolation_level=asked,
        )
    return level
