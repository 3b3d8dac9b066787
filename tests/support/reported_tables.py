"""One table that has a bit of everything, and one whose texts are hostile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.table_builder import TableBuilder

HOSTILE = '<script>document.title="taken"</script><img src=x onerror=alert(1)>\'"&\u202e'


@pytest.fixture(scope="session")
def many_sided(tmp_path_factory: pytest.TempPathFactory) -> TableBuilder:
    """Two partitions; in ``a`` three files of 10 rows of which two overlap, 4 rows deleted; in ``b`` one of 5."""
    builder = TableBuilder(
        tmp_path_factory.mktemp("many"),
        {"id": "long", "city": "string", "p": "string"},
        ["p"],
        {"delta.enableDeletionVectors": "true", "owner": "the data team"},
        name="orders",
    )
    builder.create()
    (first,) = builder.append([{"id": n, "city": "Bern", "p": "a"} for n in range(10)])
    builder.append([{"id": n, "city": "Oslo", "p": "a"} for n in range(5, 15)])
    builder.append([{"id": n, "city": "Rome", "p": "a"} for n in range(100, 110)])
    builder.append([{"id": n, "city": "Rome", "p": "b"} for n in range(5)])
    builder.commit(builder.delete_rows(first, [0, 1, 2, 3]), operation="DELETE")
    return builder


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Markup wherever a table has room for text."""
    builder = TableBuilder(
        tmp_path_factory.mktemp("hostile"),
        {HOSTILE: "long", "p": "string"},
        ["p"],
        {HOSTILE: HOSTILE * 50},
        name=HOSTILE,
    )
    builder.create()
    builder.append([{HOSTILE: 1, "p": HOSTILE}])
    builder.append([{HOSTILE: 2, "p": "x" * 100}])
    info = {"operation": HOSTILE, "engineInfo": HOSTILE, "userMetadata": HOSTILE}
    builder.commit(operation=HOSTILE, commit_info=info)
    return builder.path
