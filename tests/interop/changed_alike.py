"""One command on two copies of a table, one by each engine: what both must have made of it.

Compared: rows, rows of the change feed, row ids and commit versions, and what ``commitInfo`` says. Left out is what
the layout of files decides (how many new files, bytes) and times, and ``commitInfo.dataChange``, which only we write.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from delta_pyds.table.snapshot import load_snapshot
from tests.interop.engines import Engines, rows
from tests.support.commits import actions

# new files are as many as tasks, and with them change files; the reference counts each of its passes over the source
BY_LAYOUT = r"TimeMs$|Bytes|^numAddedFiles$|^numTargetFilesAdded$|ChangeFiles|^numSourceRows$"
# how many files hold the rows that change, and how many other rows are in them (copied, so also part of numOutputRows):
# what the copies had before decides
BY_LAYOUT_BEFORE = (
    r"RemovedFiles$|FilesRemoved$|DeletionVectors(Added|Updated|Removed)$|CopiedRows$|RowsCopied$|^numOutputRows$"
)
# the identity column of the table of that feature
IDENTITY = "n"
_INFO = ("operation", "isolationLevel", "isBlindAppend", "readVersion", "userMetadata")


def assert_alike(
    engines: Engines,
    theirs: Path,
    ours: Path,
    *,
    same_files: bool,
    known_ids: Mapping[str, int] | None = None,
    known_numbers: Mapping[str, int] | None = None,
) -> None:
    """The newest versions of two copies of one table, which the reference and we have made.

    ``same_files``: the copies had the same rows in each file before the command (``files``). ``known_ids``: row ids
    before the command, by ``id``, of a table that tracks rows. ``known_numbers``: the same, of an identity column
    (``identity_values``).
    """
    version = load_snapshot(str(theirs)).version
    assert load_snapshot(str(ours)).version == version
    expected, found = engines.agree(theirs), engines.agree(ours)
    if known_numbers is None:
        assert found == expected
    else:
        assert_same_numbers(engines, theirs, ours, known_numbers)
    configuration = load_snapshot(str(ours)).configuration.configuration
    if configuration.get("delta.enableChangeDataFeed") == "true":
        expected = change_rows(engines.reference, theirs, version)
        assert change_rows(engines.reference, ours, version) == expected
        assert change_rows(engines.ours, ours, version) == expected
        assert change_rows(engines.ours, theirs, version) == expected
    if known_ids is not None:
        assert_same_ids(engines, theirs, ours, known_ids)
    assert_same_info(theirs, ours, version, same_files=same_files)
    same_protocol(theirs, ours)
    engines.assert_sound(ours)


def change_rows(read: Callable[..., Any], path: Path, version: int) -> list[str]:
    """The changes of one version, as an engine reads them."""
    feed = {"readChangeFeed": "true", "startingVersion": str(version), "endingVersion": str(version)}
    return rows(read(path, **feed).drop("_commit_timestamp"))


def files(engines: Engines, path: Path) -> list[tuple[list[str], bool]]:
    """Of each file: the ids of its rows, and whether it has a deletion vector. Equal of two copies: the same layout."""
    vectors: dict[str, bool] = {}
    for version in range(load_snapshot(str(path)).version + 1):
        lines = actions(path, version)
        gone = {line["remove"]["path"] for line in lines if "remove" in line}
        vectors = {name: has for name, has in vectors.items() if name not in gone}
        vectors |= {line["add"]["path"]: "deletionVector" in line["add"] for line in lines if "add" in line}
    ids: dict[str, list[str]] = defaultdict(list)
    for row in engines.reference(path).selectExpr("id", "_metadata.file_name AS file").collect():
        ids[unquote(row["file"])].append(str(row["id"]))
    return sorted((sorted(ids[unquote(Path(name).name)]), has) for name, has in vectors.items())


def row_ids(engines: Engines, path: Path) -> dict[str, tuple[int, int]]:
    """Row id and commit version by ``id``, as the reference reads them."""
    found = engines.reference(path).selectExpr("id", "_metadata.row_id", "_metadata.row_commit_version").collect()
    assert len({row["id"] for row in found}) == len(found), "ids are not unique, so rows cannot be told apart."
    assert len({row["row_id"] for row in found}) == len(found), "row ids are not unique."
    return {str(row["id"]): (row["row_id"], row["row_commit_version"]) for row in found}


def assert_same_ids(engines: Engines, theirs: Path, ours: Path, known: Mapping[str, int]) -> None:
    """Rows that were there keep their id in both copies; commit versions are equal in all rows."""
    a, b = row_ids(engines, theirs), row_ids(engines, ours)
    assert {id_: version for id_, (_, version) in a.items()} == {id_: version for id_, (_, version) in b.items()}
    for copy in (a, b):
        moved = {id_: (known[id_], now) for id_, (now, _) in copy.items() if known.get(id_, now) != now}
        assert not moved, f"rows have another row id than before: {moved}"
        new = {now for id_, (now, _) in copy.items() if id_ not in known}
        assert not new & set(known.values()), "a row id was given twice."


def identity_values(engines: Engines, path: Path) -> dict[str, int]:
    """The values of the identity column by ``id``, as the reference reads them."""
    return {str(row["id"]): row[IDENTITY] for row in engines.reference(path).collect()}


def assert_same_numbers(engines: Engines, theirs: Path, ours: Path, known: Mapping[str, int]) -> None:
    """Rows that were there keep the values of the identity column; each engine gives new ones as it likes, once."""
    for copy in (theirs, ours):
        now = identity_values(engines, copy)
        assert {id_: n for id_, n in now.items() if id_ in known} == {id_: n for id_, n in known.items() if id_ in now}
        assert len(set(now.values())) == len(now), "a value of the identity column was given twice."
    a, b = (rows(engines.reference(copy).drop(IDENTITY)) for copy in (theirs, ours))
    assert a == b


def assert_same_info(theirs: Path, ours: Path, version: int, *, same_files: bool) -> None:
    a, b = info(theirs, version), info(ours, version)
    for name in _INFO:
        assert b.get(name) == a.get(name), f"{name} is {b.get(name)!r}, and {a.get(name)!r} of the reference"
    assert b.get("tags", {}) == a.get("tags", {}), f"tags: ours {b.get('tags')}, the reference's {a.get('tags')}"
    shown = f"ours {b['operationParameters']}, the reference's {a['operationParameters']}"
    assert without_predicates(b["operationParameters"]) == without_predicates(a["operationParameters"]), shown
    expected, found = a["operationMetrics"], b["operationMetrics"]
    shown = f"ours {found}, the reference's {expected}"
    assert found.keys() == expected.keys(), f"other metrics: {sorted(found.keys() ^ expected.keys())}; {shown}"
    lawful = BY_LAYOUT if same_files else f"{BY_LAYOUT}|{BY_LAYOUT_BEFORE}"
    other = {k for k in found if not re.search(lawful, k) and found[k] != expected[k]}
    assert not other, f"{sorted(other)} differ: {shown}"
    for name in ("numAddedChangeFiles", "numTargetChangeFilesAdded"):
        # the reference writes them of inserted rows too, where rows of the target met ON and no clause took them
        only_new = found.get("numTargetRowsUpdated") == found.get("numTargetRowsDeleted") == "0"
        # and of rows that left with their whole files, where readers of changes take them from those
        whole = found.get("numAddedFiles") == found.get("numDeletionVectorsAdded") == "0"
        wanted = expected.get(name, "0") != "0" and not only_new and not whole
        assert (found.get(name, "0") != "0") == wanted, f"{name}: {shown}"


def without_predicates(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Each engine writes a predicate in its own words; that there is one both must say, and what clauses do."""
    found: dict[str, Any] = {}
    for name, value in parameters.items():
        if name == "predicate":
            found[name] = len(json.loads(value)) if value.startswith("[") else "text"
        elif name.endswith("Predicates"):
            found[name] = [{**clause, "predicate": "predicate" in clause} for clause in json.loads(value)]
        else:
            found[name] = value
    return found


def same_protocol(theirs: Path, ours: Path) -> None:
    a, b = load_snapshot(str(theirs)), load_snapshot(str(ours))
    assert a.protocol == b.protocol
    # a column that the command added has a random physical name in each copy
    names = [{f.name: f.physical_name for f in snapshot.schema} for snapshot in (a, b)]
    known = {f.physical_name for f in load_snapshot(str(ours), version=0).schema}
    assert {n: p for n, p in names[0].items() if p in known} == {n: p for n, p in names[1].items() if p in known}
    own = r'"col-[0-9a-f-]{36}"|(?<="delta.identity.highWaterMark":)\d+'
    masked = [re.sub(own, "...", snapshot.metadata.schema_string or "") for snapshot in (a, b)]
    assert masked[0] == masked[1]


def info(path: Path, version: int) -> dict[str, Any]:
    found: dict[str, Any] = next(line["commitInfo"] for line in actions(path, version) if "commitInfo" in line)
    return found
