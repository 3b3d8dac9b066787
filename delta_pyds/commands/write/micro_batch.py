"""One micro-batch of a streaming write: committed exactly once, and described in the table's history."""

from __future__ import annotations

from dataclasses import dataclass

from delta_pyds.commands.commit import FileChanges
from delta_pyds.commands.write.request import SaveMode
from delta_pyds.errors import OptionError
from delta_pyds.redaction import safe_logger
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.commit_info import Operation

logger = safe_logger(__name__)


@dataclass(frozen=True)
class MicroBatch:
    """``application``: the stream's id in the table. The stream wrote its batches in order, each as one version.

    ``query_id``: the query's id for the history. ``named_by_user``: the user chose
    ``application``, so another query may have used it before.
    Protocol: "Transaction Identifiers".
    """

    application: str
    batch_id: int
    query_id: str
    named_by_user: bool = False

    def is_written(self, snapshot: Snapshot | None) -> bool:
        """Whether the table already has the batch. If so, it must not be written again.

        Raises: OptionError if the table has later batches of an application that the user named. Then this
            query is most likely another one, and its rows would be lost.
        """
        stored = None if snapshot is None else snapshot.transactions.get(self.application)
        if snapshot is None or stored is None or stored.version < self.batch_id:
            return False
        table = snapshot.table_root
        if stored.version > self.batch_id and self.named_by_user:
            raise OptionError(
                f"batch {self.batch_id} of the stream was not written: the table {table} already has batch "
                f"{stored.version} of the application '{self.application}' (option txnAppId). A query with a new "
                "checkpoint counts from 0 again, so the table would skip its first batches. Set another txnAppId for "
                "this query, or leave the option out.",
                code="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
                option="txnAppId",
                table=table,
            )
        if stored.version > self.batch_id:
            # a restart repeats only the last batch: a query with an earlier batch uses an old checkpoint
            logger.warning(
                "Batch %d of the query %s was skipped: the table %s already has its batch %d, so the query's "
                "checkpoint is older than the table. If rows are missing, start the query with a new checkpoint.",
                self.batch_id,
                self.application,
                table,
                stored.version,
            )
        else:
            logger.info("Batch %d of the query %s is already in %s.", self.batch_id, self.application, table)
        return True

    def operation(self, mode: SaveMode, changes: FileChanges) -> Operation:
        """The operation in the table's history."""
        return Operation(
            "STREAMING UPDATE",
            {
                "outputMode": "Complete" if mode == "overwrite" else "Append",
                "queryId": self.query_id,
                "epochId": str(self.batch_id),
            },
            {
                "numAddedFiles": len(changes.written),
                "numRemovedFiles": len(changes.removes),
                "numOutputRows": sum(file.num_records for file in changes.written),
                "numOutputBytes": sum(file.size_bytes for file in changes.written),
            },
        )
