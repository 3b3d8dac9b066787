"""The net changes of several commits: how the files of the last version differ from those before the first.

Protocol: "Action Reconciliation", "Add File and Remove File".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.path_keys import path_keys
from delta_pyds.log.adds import AddRequest
from delta_pyds.protocol.actions import AddFile, RemoveFile, SingleAction
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.paths import path_key
from delta_pyds.table.snapshot import Snapshot

_COLUMNS = ("path", "partitionValues", "size", "deletionVector", "baseRowId", "defaultRowCommitVersion")


class NetFiles:
    """The files that commits removed and added, each as it was before the first of them and after the last.

    >>> net = NetFiles()
    >>> for actions in commits:
    ...     net.take(actions)
    >>> changes_of(net.actions(snapshot))
    """

    def __init__(self) -> None:
        self._before: dict[str, RemoveFile | None] = {}
        self._after: dict[str, AddFile | None] = {}
        self._perhaps_there: set[str] = set()

    def take(self, actions: Sequence[SingleAction]) -> None:
        """The next commit."""
        for remove in (a.remove for a in actions if a.remove is not None):
            key = path_key(remove.path)
            self._before.setdefault(key, remove)
            self._after[key] = None
        for add in (a.add for a in actions if a.add is not None):
            key = path_key(add.path)
            if key not in self._before:
                self._before[key] = None
                # it may also say more of a file that is there, as a backfill of row ids does
                if not add.data_change:
                    self._perhaps_there.add(key)
            self._after[key] = add

    @property
    def needs_snapshot(self) -> bool:
        """Whether only the version before the first commit shows if a file was there already."""
        return bool(self._perhaps_there)

    def actions(self, before: Snapshot | None) -> list[SingleAction]:
        """One commit with the same effect, as actions that change data.

        Args:
            before: the version before the first commit, if ``needs_snapshot`` and it exists.
        """
        if before is not None:
            self._before.update(_found(before, self._perhaps_there))
        return [*self._removes(), *self._adds()]

    def _removes(self) -> Iterator[SingleAction]:
        for remove in self._before.values():
            if remove is not None:
                yield SingleAction(remove=msgspec.structs.replace(remove, data_change=True))

    def _adds(self) -> Iterator[SingleAction]:
        for add in self._after.values():
            if add is not None:
                yield SingleAction(add=msgspec.structs.replace(add, data_change=True))


def _found(before: Snapshot, keys: set[str]) -> dict[str, RemoveFile | None]:
    """The files of these keys that the version has."""
    wanted = pa.array(sorted(keys), pa.string())
    request = AddRequest(
        columns=_COLUMNS,
        filter_fields=("path",),
        parsed_filter_fields=("path",),
        keep=lambda add: pc.is_in(path_keys(add.field("path").cast(pa.string())), value_set=wanted),
    )
    rows = (row for batch in before.adds(request) for row in batch.files.to_pylist())
    return {path_key(row["path"]): _as_removed(row) for row in rows}


def _as_removed(row: dict[str, Any]) -> RemoveFile:
    vector = row["deletionVector"]
    return RemoveFile(
        row["path"],
        extended_file_metadata=True,
        partition_values=dict(row["partitionValues"] or ()),
        size=row["size"],
        # some writers of checkpoints write a struct of nulls if there is no deletion vector
        deletion_vector=None
        if vector is None or vector["storageType"] is None
        else msgspec.convert(vector, DeletionVectorDescriptor),
        base_row_id=row["baseRowId"],
        default_row_commit_version=row["defaultRowCommitVersion"],
    )
