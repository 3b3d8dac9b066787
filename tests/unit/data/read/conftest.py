"""What a read decodes."""

from __future__ import annotations

from typing import Any

import pytest

from delta_pyds.data.read.data_file import DataFile
from tests.support.scans import Decoded


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Decoded:
    """The row groups and the leaf columns of each decoding, in order."""
    calls: Decoded = []
    original = DataFile.decode

    def remember(self: Any, row_groups: Any, columns: Any, *args: Any) -> Any:
        calls.append((tuple(row_groups), tuple(columns)))
        return original(self, row_groups, columns, *args)

    monkeypatch.setattr(DataFile, "decode", remember)
    return calls
