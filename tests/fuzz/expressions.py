"""What a Spark session is asked for by expressions of tables that are spelled to get by: judged by what it ran.

Invariant: of each spelling Spark is asked twice. Held by us, as an expression of a table is, it must run nothing of
what it calls; by itself, as the user's own text, it tells whether there was anything to hold.
"""

from __future__ import annotations

import multiprocessing as mp
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from delta_pyds.errors import DeltaError
from tests.fuzz.spark_operations import start_spark
from tests.fuzz.spellings import MARK, SETTINGS, VICTIM, spelling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NUMBERS_PER_SETTING = 50


@dataclass(frozen=True)
class Spelled:
    """``held``: "refused" by the text alone, "refused in the session", "harmless", or what must not be: "escaped".

    ``ran_alone``: whether Spark runs what is called where nothing holds it.
    """

    number: int
    text: str
    settings: dict[str, str]
    held: str
    said: str
    ran_alone: bool


@dataclass
class SpelledSummary:
    """Counts of many spellings, and those that escaped."""

    counts: Counter[str] = field(default_factory=Counter)
    ran_alone: int = 0
    escaped: list[Spelled] = field(default_factory=list)

    def add(self, spelled: Spelled) -> None:
        self.counts[spelled.held] += 1
        self.ran_alone += spelled.ran_alone
        if spelled.held not in ("refused", "refused in the session", "harmless"):
            self.escaped.append(spelled)

    def lines(self) -> Iterator[str]:
        """The summary, to print."""
        yield f"{self.counts.total()} spellings of expressions, of which Spark alone runs {self.ran_alone}:"
        for held, count in sorted(self.counts.items(), key=lambda item: -item[1]):
            yield f"  {count:7} {held}"
        for spelled in self.escaped[:20]:
            yield f"  --only {spelled.number} --part expressions  {spelled.held}: {spelled.text!a} {spelled.settings}"


def main(seed: str, first: int, count: int, only: int | None) -> int:
    """Run the numbers, or one alone, and print what became of them; 1 if one escaped."""
    if only is not None:
        [one] = run_expressions(seed, [only])
        print(f"{one.text!a}\nsettings: {one.settings}\nheld: {one.held} {one.said}")
        print(f"Spark alone runs it: {one.ran_alone}")
        return 1 if one.held == "escaped" else 0
    summary = SpelledSummary()
    try:
        for one in run_expressions(seed, range(first, first + count)):
            summary.add(one)
            if summary.counts.total() % 1_000 == 0:
                print(f"{summary.counts.total()} done, {len(summary.escaped)} escaped", file=sys.stderr)
    except KeyboardInterrupt:
        print("Interrupted; this is what was found until then.")
    print(f"Seed {seed}, numbers from {first}.")
    print("\n".join(summary.lines()))
    return 1 if summary.escaped else 0


def case(seed: str, number: int) -> tuple[str, dict[str, str]]:
    """The text of a number, and the settings of the session that it meets."""
    return spelling(Random(f"{seed}:{number}")), SETTINGS[number // _NUMBERS_PER_SETTING % len(SETTINGS)]


def run_expressions(seed: str, numbers: Iterable[int]) -> Iterator[Spelled]:
    """Yield what became of each number, from a process with a session of its own."""
    context = mp.get_context("fork")
    ours, theirs = context.Pipe()
    folder = Path(tempfile.mkdtemp(prefix="delta_pyds_fuzz_"))
    process = context.Process(target=_work, args=(theirs, seed, list(numbers), folder))
    process.start()
    theirs.close()
    try:
        with suppress(EOFError):
            while True:
                yield ours.recv()
        process.join()
        if process.exitcode:
            said = (folder / "stderr").read_text(errors="replace")
            raise RuntimeError(f"the process of the session ended with {process.exitcode}: {said[-2_000:]}")
    finally:
        process.kill()
        process.join()
        shutil.rmtree(folder, ignore_errors=True)


def _work(connection: Any, seed: str, numbers: list[int], folder: Path) -> None:
    spark = start_spark(folder)
    try:
        judge = Judge(spark)
        for number in numbers:
            connection.send(judge.spelled(seed, number))
    finally:
        connection.close()
        spark.stop()


class Judge:
    """Asks a session, whose user has functions and a view that tables must not reach."""

    def __init__(self, spark: SparkSession) -> None:
        from pyspark.sql import types

        self._spark = spark
        for statement in VICTIM:
            spark.sql(statement)
        self._schema = types.StructType().add("s", types.StringType()).add("day", types.DateType())
        self._rows = spark.createDataFrame([("a", None)], self._schema).coalesce(1).cache()
        self._settings: dict[str, str] = {}
        self._parser = spark._jsparkSession.sessionState().sqlParser()

    def spelled(self, seed: str, number: int) -> Spelled:
        """The verdict on one spelling."""
        text, settings = case(seed, number)
        self._set(settings)
        held, said = self._held(text)
        if self._ran():
            held = "escaped"
        return Spelled(number, text, settings, held, said, self._runs_alone(text))

    def _held(self, text: str) -> tuple[str, str]:
        from delta_pyds.spark.planning.types import from_spark
        from delta_pyds.spark.row_changes.table_expression import Trial, try_expressions
        from delta_pyds.table.definition.spark_expressions import spark_expression

        try:
            sql = spark_expression(text, from_spark(self._schema), "the rule").sql
        except DeltaError as e:
            return "refused", str(e)
        try:
            try_expressions(self._spark, self._schema, [Trial(sql, "the rule", lambda value: value)])
        except DeltaError as e:
            return "refused in the session", str(e)
        except Exception as e:
            return "raised something that is not a DeltaError", f"{type(e).__name__}: {e}"
        self._evaluate(sql)
        return "harmless", ""

    def _runs_alone(self, text: str) -> bool:
        try:
            self._parser.parseExpression(text)
        except Exception:
            return False
        self._evaluate(text)
        return self._ran()

    def _evaluate(self, text: str) -> None:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

        # an exception of Spark's JVM that is not Spark's own is an error of py4j
        with suppress(PySparkException, Py4JError):
            self._rows.select(F.expr(text)).collect()

    def _ran(self) -> bool:
        system = self._spark._jvm.System
        return system.clearProperty(MARK) is not None

    def _set(self, settings: dict[str, str]) -> None:
        if settings != self._settings:
            for name in self._settings:
                self._spark.conf.unset(name)
            for name, value in settings.items():
                self._spark.conf.set(name, value)
            self._settings = settings
