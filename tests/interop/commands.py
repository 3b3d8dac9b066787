"""Commands of SQL as calls of ``DeltaTable``: so much of the grammar as the commands of ``features`` use."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import delta_pyds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def kind_of(text: str) -> str:
    return text.partition(" ")[0].lower()


def run_as_us(spark: SparkSession, path: Path, text: str, **options: Any) -> Any:
    """The answer to the command, by our ``DeltaTable``."""
    table = delta_pyds.DeltaTable.forPath(spark, str(path), **options)
    if found := re.fullmatch(r"DELETE FROM \{t\} WHERE (.*)", text):
        return table.delete(found[1])
    if found := re.fullmatch(r"UPDATE \{t\} SET (\w+) = (.*) WHERE (.*)", text):
        return table.update(condition=found[3], set={found[1]: found[2]})
    found = re.fullmatch(r"MERGE INTO \{t\} t USING \((.*)\) s ON (.*?) (WHEN .*)", text)
    assert found is not None, f"not one of our commands: {text}"
    builder = table.alias("t").merge(spark.sql(found[1]).alias("s"), found[2])
    for clause in re.split(r"(?:^| )WHEN ", found[3])[1:]:
        builder = _with_clause(builder, clause)
    return builder.execute()


def _with_clause(builder: Any, text: str) -> Any:
    found = re.fullmatch(r"(MATCHED|NOT MATCHED|NOT MATCHED BY SOURCE)(?: AND (.*?))? THEN (.*)", text)
    assert found is not None, text
    kind, condition, action = found.groups()
    which = {
        "MATCHED": "whenMatched",
        "NOT MATCHED": "whenNotMatched",
        "NOT MATCHED BY SOURCE": "whenNotMatchedBySource",
    }
    verb = which[kind]
    if action == "DELETE":
        return getattr(builder, f"{verb}Delete")(condition=condition)
    if action in ("UPDATE SET *", "INSERT *"):
        return getattr(builder, f"{verb}{action.split()[0].title()}All")(condition=condition)
    if given := re.fullmatch(r"UPDATE SET (\w+) = (.*)", action):
        return getattr(builder, f"{verb}Update")(condition=condition, set={given[1]: given[2]})
    given = re.fullmatch(r"INSERT \((.*)\) VALUES \((.*)\)", action)
    assert given is not None, action
    values = dict(zip(given[1].split(", "), given[2].split(", "), strict=True))
    return builder.whenNotMatchedInsert(condition=condition, values=values)
