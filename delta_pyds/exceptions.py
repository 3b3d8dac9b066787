"""The conflict errors under the names of ``delta.exceptions``: a program changes only its import.

>>> from delta_pyds.exceptions import ConcurrentAppendException
>>> try:
...     table.delete("day < '2026-01-01'")
... except ConcurrentAppendException:
...     ...  # check the table's current state, and delete again

Each name is the class of ``delta_pyds.errors`` for the same conflict. ``DeltaConcurrentModificationException`` is their
root, so catching it catches any conflict.
"""

from __future__ import annotations

from delta_pyds.errors import ConcurrentAppendError as ConcurrentAppendException
from delta_pyds.errors import ConcurrentDeleteDeleteError as ConcurrentDeleteDeleteException
from delta_pyds.errors import ConcurrentDeleteReadError as ConcurrentDeleteReadException
from delta_pyds.errors import ConcurrentTransactionError as ConcurrentTransactionException
from delta_pyds.errors import ConcurrentWriteError as ConcurrentWriteException
from delta_pyds.errors import ConflictError as DeltaConcurrentModificationException
from delta_pyds.errors import MetadataChangedError as MetadataChangedException
from delta_pyds.errors import ProtocolChangedError as ProtocolChangedException

__all__ = [
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "DeltaConcurrentModificationException",
    "MetadataChangedException",
    "ProtocolChangedException",
]
