"""The column ``_change_type`` of a change data file.

Invariant: a row of a change data file is returned only with the change type in the file. A row without one would be
counted as a wrong change. A type that is not in the protocol is passed on, as other readers do.

Protocol: "Change Data Files", "Reader Requirements for AddCDCFile".
"""

from __future__ import annotations

import pyarrow as pa

from delta_pyds.columnar.cast import MaybeConvert
from delta_pyds.data.read.transform import Binding, FileColumnBinder
from delta_pyds.errors import CorruptDataFileError, DeltaError
from delta_pyds.expr.nodes import And, Or, references
from delta_pyds.expr.stats_rewrite import KEEP, AllOf, AnyOf, OnPartition, Skip
from delta_pyds.protocol.schema import STRING
from delta_pyds.tasks.scan_state import CHANGE_TYPE_COLUMN

_NULL = "DELTA_CDC_READ_NULL_CHANGE_TYPE"
# the types of the protocol
CHANGE_TYPES = INSERT, DELETE, UPDATE_PREIMAGE, UPDATE_POSTIMAGE = (
    "insert", "delete", "update_preimage", "update_postimage",
)  # fmt: skip


def bind(binder: FileColumnBinder, file: str) -> Binding:
    """The column with the change types in a change data file: it has this exact name in every column mapping mode.

    Raises:
        CorruptDataFileError: the file lacks the column.
        SchemaMismatchError: the column is not text, or there are two.
    """
    binding = binder.bind_physical(CHANGE_TYPE_COLUMN, STRING)
    if binding.source is None:
        raise _refused(file, f"has no column {CHANGE_TYPE_COLUMN}", _NULL)
    return binding


def checked(convert: MaybeConvert, file: str) -> MaybeConvert:
    """The conversion, followed by a check for nulls.

    Raises, when called: CorruptDataFileError for a null.
    """

    def checking(array: pa.Array) -> pa.Array:
        types = array if convert is None else convert(array)
        if types.null_count:
            raise _refused(file, f"has nulls in the column {CHANGE_TYPE_COLUMN}", _NULL)
        return types

    return checking


def without_change_type(skip: Skip) -> Skip:
    """The part of a skipping condition that does not depend on the change type.

    It never skips a row group that the whole condition would keep for some change type.
    """
    if isinstance(skip, (AllOf, AnyOf)):
        return type(skip)(tuple(without_change_type(part) for part in skip.parts))
    if not isinstance(skip, OnPartition) or (CHANGE_TYPE_COLUMN,) not in references(skip.expr):
        return skip
    if isinstance(skip.expr, (And, Or)):
        # the other parts still apply
        parts = tuple(OnPartition(child) for child in skip.expr.children)
        return without_change_type(AllOf(parts) if isinstance(skip.expr, And) else AnyOf(parts))
    return KEEP


def _refused(file: str, problem: str, code: str) -> DeltaError:
    return CorruptDataFileError(
        f"the change data file '{file}' {problem}: it does not say how its rows changed. It was not written as "
        "a change data file, or it was overwritten: restore it from a backup, or read the change feed from the "
        "next version on.",
        code=code,
        file=file,
        column=CHANGE_TYPE_COLUMN,
    )
