"""A catalog of your own in some seventy lines. It stores its state in one JSON file; a table is written through it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import replace

import msgspec
from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds.catalog import (
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
    UnpublishedCommit,
    contract,
)
from delta_pyds.errors import TableNotFoundError, UserError


class FileCatalog(Catalog):
    """For any number of processes of one machine. A process that changes the file holds a lock, and replaces it."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __reduce__(self) -> tuple[type[FileCatalog], tuple[str]]:
        return FileCatalog, (self._path,)  # Spark plans in separate processes, which recreate it

    def _read(self) -> dict[str, ManagedTable]:
        with contextlib.suppress(FileNotFoundError), open(self._path, "rb") as file:
            return msgspec.json.decode(file.read(), type=dict[str, ManagedTable])
        return {}

    @contextlib.contextmanager
    def _changed(self) -> Iterator[dict[str, ManagedTable]]:
        with open(f"{self._path}.lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            tables = self._read()
            yield tables
            with open(f"{self._path}.new", "wb") as file:
                file.write(msgspec.json.encode(tables))
                file.flush()
                os.fsync(file.fileno())
            os.replace(f"{self._path}.new", self._path)

    def load_table(self, name: str) -> ManagedTable:
        tables = self._read()
        if name not in tables:
            raise TableNotFoundError(f"there is no table {name}.", code="TABLE_OR_VIEW_NOT_FOUND")
        return tables[name]

    def propose_commit(self, proposal: CommitProposal) -> CommitOutcome:
        with self._changed() as tables:
            table = tables.get(proposal.table_name)
            if table is None or table.table_id != proposal.table_id or proposal.version > table.latest_version + 1:
                return Refused("this is not the table, or not its next version")
            commit = UnpublishedCommit(
                proposal.version,
                proposal.timestamp_ms,
                proposal.file_name,
                proposal.size_bytes,
                proposal.modification_time_ms,
                proposal.content,
            )
            if proposal.version <= table.latest_version:
                return Ratified(table) if commit in table.unpublished else Conflict()
            if len(table.unpublished) >= 10:
                return BacklogFull()
            unpublished = (*table.unpublished, commit)
            tables[table.name] = replace(table, latest_version=proposal.version, unpublished=unpublished)
            return Ratified(tables[table.name])

    def report_published(self, name: str, table_id: str, version: int) -> None:
        with self._changed() as tables:
            table = tables.get(name)
            if table is not None and table.table_id == table_id:
                left = tuple(commit for commit in table.unpublished if commit.version > version)
                tables[name] = replace(table, unpublished=left)

    def reserve_table(self, name: str) -> TableReservation:
        if name in self._read():
            raise UserError(f"there is a table {name}.", code="TABLE_OR_VIEW_ALREADY_EXISTS")
        table_id = str(uuid.uuid4())
        return TableReservation(name, table_id, f"{self._path}-tables/{table_id}")

    def register_table(self, table: NewTable) -> CommitOutcome:
        with self._changed() as tables:
            made = tables.setdefault(table.name, ManagedTable(table.name, table.table_id, table.location, 0))
            return Ratified(made) if made.table_id == table.table_id else Conflict()


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        print("\n1. Check the catalog: the error names each broken rule and its method\n")
        new_files = (f"{folder}/checked-{number}.json" for number in range(1_000))
        rules = contract.check(lambda: FileCatalog(next(new_files)))
        print(f"it satisfies {len(rules)} rules, such as: {rules[0]}\n")

        spark = (
            SparkSession.builder.master("local[2]")
            .appName("deltapy own catalog")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "2")
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("ERROR")
        catalog, name = FileCatalog(f"{folder}/catalog.json"), "main.sales.orders"

        print("2. Create a table through it, append, and change rows\n")
        first = spark.createDataFrame([(1, "Bern", 120), (2, "Basel", 40)], "id long, city string, amount int")
        delta_pyds.write(first, table=name, catalog=catalog, mode="append")
        more = spark.createDataFrame([(3, "Bern", 15)], "id long, city string, amount int")
        delta_pyds.write(more, table=name, catalog=catalog, mode="append")
        orders = delta_pyds.DeltaTable.forName(spark, name, catalog=catalog)
        orders.delete("id = 2")
        delta_pyds.read(spark, table=name, catalog=catalog).orderBy("id").show()

        print("3. The catalog's state of the table, and a check against the protocol\n")
        known = catalog.load_table(name)
        print(f"latest version {known.latest_version}, {len(known.unpublished)} commits wait to be published\n")
        print(delta_pyds.verify(table=name, catalog=catalog))
        spark.stop()


if __name__ == "__main__":
    main()
