"""The same statements by both engines on two copies of one table, and everything that must be equal afterwards.

Equal are answers and codes of refusals, schemas, rows (each copy read by each engine), the feed of each version where
there is one, and ``commitInfo``, but for the wording of predicates and for sizes.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import delta_pyds
from delta_pyds.table.snapshot import load_snapshot
from tests.interop.changed_alike import change_rows, info, without_predicates
from tests.interop.engines import Engines, rows

# what the layout of files decides: how many new ones, and what is copied into them
_LAYOUT = (
    r"TimeMs$|Bytes|Size|ChangeFiles|FilesAdded$|AddedFiles$|^numFiles$|^numSourceRows$|RowsCopied$|^numOutputRows$"
)


def run_on_both(
    engines: Engines, folder: Path, before: Sequence[str], statements: Sequence[str], *, drawn: bool = False
) -> list[Any]:
    """Run the statements, in which ``{t}`` is the table, and assert that both engines did the same.

    Args:
        before: Statements of the reference that make the table.
        drawn: The statements may give a value of an identity column twice. Each engine may have written other files, so
            only the metrics that count rows are compared.

    Returns: The answer of each statement: its rows, or the code of the refusal.
    """
    theirs, ours = folder / "theirs", folder / "ours"
    for text in before:
        engines.sql(text.replace("{t}", f"delta.`{theirs}`")).collect()
    shutil.copytree(theirs, ours)
    first = load_snapshot(str(theirs)).version + 1
    answers = []
    for text in statements:
        found = [_answer(engines, place, text, as_us=place == ours) for place in (theirs, ours)]
        assert found[0] == found[1], text
        answers.append(found[0])
        last = load_snapshot(str(theirs)).version
        assert load_snapshot(str(ours)).version == last, text
        for version in range(first, last + 1):
            said = [_said(place, version, only_rows=drawn) for place in (ours, theirs)]
            assert said[0] == said[1], f"{text}\nours:   {said[0]}\ntheirs: {said[1]}"
            if "enableChangeDataFeed" in before[0]:
                readers = (engines.reference, engines.ours)
                feeds = [change_rows(read, place, version) for read in readers for place in (theirs, ours)]
                assert feeds[1:] == feeds[:1] * 3, text
        first = last + 1
        assert _schema(ours) == _schema(theirs), text
        assert _stored(ours) == _stored(theirs), text
    expected = rows(engines.reference(theirs))
    assert rows(engines.reference(ours)) == expected
    assert rows(engines.ours(theirs)) == rows(engines.ours(ours)) == expected
    assert rows(delta_pyds.read(engines.spark, str(ours))) == expected
    engines.assert_sound(ours, but={"identity.duplicate"} if drawn else set())
    return answers


def _answer(engines: Engines, place: Path, text: str, *, as_us: bool) -> Any:
    """The rows of the answer, or the code of the refusal."""
    try:
        if as_us:
            return delta_pyds.sql(engines.spark, text.replace("{t}", f"deltapy.`{place}`")).collect()
        return engines.sql(text.replace("{t}", f"delta.`{place}`")).collect()
    except Exception as error:
        found = re.search(r"\[(DELTA_[A-Z_]+)", str(error))
        if found is None:
            raise
        return found[1]


def _said(place: Path, version: int, *, only_rows: bool) -> Any:
    found = info(place, version)
    metrics = {k: v for k, v in found.get("operationMetrics", {}).items() if not re.search(_LAYOUT, k)}
    if only_rows:
        metrics = {k: v for k, v in metrics.items() if k.endswith("Rows")}
    names = ("operation", "isBlindAppend", "isolationLevel", "readVersion")
    return [found.get(name) for name in names], without_predicates(found["operationParameters"]), metrics


def _schema(place: Path) -> Any:
    """The schema, but for physical names: of a new column each engine draws its own."""
    text = load_snapshot(str(place)).metadata.schema_string or ""
    return json.loads(re.sub(r'("delta\.columnMapping\.physicalName":)"[^"]*"', r'\1""', text))


def _stored(place: Path) -> list[str]:
    """The texts of rows as the files have them: Spark pads what it reads of a ``char``."""
    return sorted(map(repr, delta_pyds.scan(str(place)).to_table().to_pylist()))
