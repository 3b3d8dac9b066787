"""Fields and structs as the JSON of a schema."""

from __future__ import annotations

from typing import Any

from tests.support.table_builder import Action


def field(name: str, kind: Any = "long", nullable: bool = True, **metadata: Any) -> Action:
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}


def struct(*fields: Action) -> Action:
    return {"type": "struct", "fields": list(fields)}
