"""Both engines on one table: what each of them reads, and whether they and the log agree.

Invariants: rows are compared by value, as sorted text of every row; the reference opens a table cold (no snapshot that
it kept) wherever checksums are compared; nothing here repairs or retries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import delta_pyds
from delta_pyds.protocol.features import supported_features
from delta_pyds.table.snapshot import load_snapshot
from tests.conformance import adapter
from tests.support.commits import actions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Engines:
    """The session, and how each engine is asked."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._jvm: Any = spark._jvm

    def sql(self, text: str) -> DataFrame:
        return self.spark.sql(text)

    def reference(self, path: Path, **options: Any) -> DataFrame:
        return self.spark.read.format("delta").options(**options).load(str(path))

    def ours(self, path: Path, **options: Any) -> DataFrame:
        return self.spark.read.format("deltapy").options(**options).load(str(path))

    def append_as_reference(self, df: DataFrame, path: Path, mode: str = "append", **options: Any) -> None:
        df.write.format("delta").mode(mode).options(**options).save(str(path))

    def append(self, df: DataFrame, path: Path, mode: str = "append", **options: Any) -> None:
        df.write.format("deltapy").mode(mode).options(**options).save(str(path))

    def reference_snapshot(self, path: Path) -> Any:
        """The reference's snapshot of the latest version, replayed from the files."""
        log_class = self._jvm.org.apache.spark.sql.delta.DeltaLog
        log_class.clearCache()
        none = self._jvm.scala.Option.empty()
        return log_class.forTable(self.spark._jsparkSession, str(path)).update(False, none, none)

    def checkpoint_as_reference(self, path: Path) -> None:
        log_class = self._jvm.org.apache.spark.sql.delta.DeltaLog
        log_class.forTable(self.spark._jsparkSession, str(path)).checkpoint()

    def assert_sound(self, path: Path, *, but: Set[str] = frozenset()) -> None:
        """The log and every file keep the protocol; each side finds that the other's checksum is that of the state.

        Args:
            but: Rules that the table may break.
        """
        report = delta_pyds.verify(str(path))
        assert {finding.rule for finding in report.findings} <= but, f"verify: {report}"
        snapshot = self.reference_snapshot(path)
        own = load_snapshot(str(path))
        assert own.verify_checksum(), "there is no checksum file."
        assert snapshot.version() == report.version == own.version
        assert snapshot.checksumOpt().isDefined(), "the reference does not take the checksum file."
        validate(snapshot)
        domains = snapshot.domainMetadata()
        theirs = {d.domain(): d.configuration() for d in map(domains.apply, range(domains.size()))}
        assert {name: domain.configuration for name, domain in own.domain_metadata.items()} == theirs

    def agree(self, path: Path) -> list[str]:
        """The table's rows, which the reference and our core read alike."""
        df = self.reference(path)
        theirs = rows(df)
        assert (rows(self.ours(path)) if has_variant(df) else core_rows(path)) == theirs
        return theirs

    def stream_once(self, fmt: str, path: Path) -> list[str]:
        """All rows of a stream that begins with the table as it is."""
        source = self.spark.readStream.format(fmt).load(str(path))
        query = source.writeStream.format("memory").queryName("streamed").trigger(availableNow=True).start()
        finish(query)
        try:
            return rows(self.spark.table("streamed"))
        finally:
            self.spark.catalog.dropTempView("streamed")

    def stream(self, fmt: str, path: Path, checkpoint: Path, **options: Any) -> list[str]:
        """All rows that a stream of one engine delivers until nothing is left, through a Parquet sink."""
        sink = checkpoint.with_name(checkpoint.name + "-rows")
        source = self.spark.readStream.format(fmt).options(**options).load(str(path))
        query = (
            source.writeStream.format("parquet")
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start(str(sink))
        )
        finish(query)
        return rows(self.spark.read.schema(source.schema).parquet(str(sink)))


def validate(snapshot: Any) -> None:
    """The reference's own validation of the checksum file of its snapshot.

    Raises: Py4JError where the state that it computes differs (``checksum.mismatch.fatal``; ``test_log`` shows it).
    """
    assert snapshot.validateChecksum(getattr(snapshot, "validateChecksum$default$1")())


class Table:
    """One table that is changed step by step, and compared after each of them.

    Invariant: ``seen`` holds the rows of every version that a step ended with, as both engines read them then.
    """

    def __init__(self, engines: Engines, path: Path) -> None:
        self.engines = engines
        self.path = path
        self.name = f"delta.`{path}`"
        self.seen: dict[int, list[str]] = {}

    def sql(self, text: str) -> None:
        """A command of the reference; ``{t}`` is the table."""
        self.step(lambda: self.engines.sql(text.replace("{t}", self.name)).collect())

    def step(self, action: Callable[[], object]) -> None:
        action()
        self.seen[load_snapshot(str(self.path)).version] = self.engines.agree(self.path)

    def finish(self, where: str = "id >= 5 AND id < 30", streamed_by: str | None = None) -> None:
        """Every version that was seen reads the same again, and so does every way to read; the log is sound.

        ``streamed_by``: the format that a stream over the table has.
        """
        ours = self.engines.ours(self.path)
        theirs = self.engines.reference(self.path)
        latest = self.seen[max(self.seen)]
        if not has_variant(theirs):
            for version, expected in self.seen.items():
                assert core_rows(self.path, version) == expected, f"version {version} reads otherwise than it did."
        assert shape(ours) == shape(theirs)
        assert rows(ours) == latest
        # by Spark's own reader, where it can read the table
        assert rows(delta_pyds.read(self.engines.spark, str(self.path))) == latest
        assert rows(delta_pyds.read(self.engines.spark, str(self.path), where=where)) == rows(theirs.where(where))
        if streamed_by is not None:
            assert self.engines.stream_once(streamed_by, self.path) == latest
        self.engines.assert_sound(self.path)


def rows(df: DataFrame) -> list[str]:
    """The rows as text, sorted; variants as their JSON, because their binary form is the writer's choice."""
    columns = [
        f"to_json(`{f.name}`) AS `{f.name}`" if "variant" in f.dataType.simpleString() else f"`{f.name}`"
        for f in df.schema
    ]
    return as_text(df.selectExpr(*columns).toArrow())


def has_variant(df: DataFrame) -> bool:
    return any("variant" in f.dataType.simpleString() for f in df.schema)


def core_rows(path: Path, version: int | None = None) -> list[str]:
    """The rows that our core reads without Spark, as ``rows`` shows them."""
    return as_text(adapter.read(str(path), version))


def as_text(table: pa.Table) -> list[str]:
    return sorted(repr(_ordered(row)) for row in table.to_pylist())


def _ordered(value: Any) -> Any:
    """The two fields of a variant in one order: which comes first in Arrow is the reader's choice."""
    if isinstance(value, dict):
        keys = sorted(value) if value.keys() == {"metadata", "value"} else value
        return {key: _ordered(value[key]) for key in keys}
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    return tuple(map(_ordered, value)) if isinstance(value, tuple) else value


def shape(df: DataFrame) -> list[tuple[str, str]]:
    return [(f.name, f.dataType.simpleString()) for f in df.schema]


def finish(query: Any, seconds: int = 120) -> None:
    """Wait for a query that ends by itself. Raises: its error; AssertionError if it does not end."""
    try:
        assert query.awaitTermination(seconds), f"the stream did not end within {seconds} seconds."
    finally:
        query.stop()


def adds(path: Path, versions: Iterable[int]) -> list[dict[str, Any]]:
    return [line["add"] for version in versions for line in actions(path, version) if "add" in line]


def protocol_features(path: Path) -> set[str]:
    """All that a table supports, whether its protocol lists features or not."""
    return set(supported_features(load_snapshot(str(path)).protocol))


def code_of(action: Callable[[], object]) -> str:
    """The error class with which an engine refuses; both take the reference's."""
    with pytest.raises(Exception) as caught:
        action()
    found = re.search(r"DELTA_[A-Z_]+", str(caught.value))
    return found.group() if found else str(caught.value)


def checksum_file(path: Path, version: int) -> Path:
    return path / "_delta_log" / f"{version:020}.crc"


def properties_sql(properties: Mapping[str, str]) -> str:
    if not properties:
        return ""
    return "TBLPROPERTIES (" + ", ".join(f"'{k}' = '{v}'" for k, v in properties.items()) + ")"
