"""What a hand-written data file holds and how its place is named."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.support.delta_types import FileNaming, to_physical

_ESCAPED = re.compile("[\x00-\x1f\"#%'*/:=?\\\\\x7f{\\[\\]^]")


def physical_table(records: Sequence[Mapping[str, Any]], fields: Sequence[Any], naming: FileNaming) -> pa.Table:
    """Rows by logical name as a table of physical columns, named and numbered by ``naming``."""
    arrow_fields = [naming.arrow_field(f) for f in fields]
    columns = []
    for f, target in zip(fields, arrow_fields, strict=True):
        canonical = FileNaming(with_ids=False).arrow_field(f)
        values = pa.array([to_physical(r.get(f["name"]), f["type"]) for r in records], canonical.type)
        # same shape under other names: rebuild from the buffers
        columns.append(_renamed(values, target.type))
    return pa.Table.from_arrays(columns, schema=pa.schema(arrow_fields))


def _renamed(values: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_struct(target):
        children = [_renamed(values.field(i), target.field(i).type) for i in range(target.num_fields)]
        if not children:
            return values
        return pa.StructArray.from_arrays(children, fields=list(target), mask=values.is_null())
    if pa.types.is_list(target):
        child = _renamed(values.values, target.value_type)
        return pa.ListArray.from_arrays(values.offsets, child, type=target, mask=values.is_null())
    if pa.types.is_map(target):
        keys, items = _renamed(values.keys, target.key_type), _renamed(values.items, target.item_type)
        return pa.MapArray.from_arrays(values.offsets, keys, items, type=target, mask=values.is_null())
    return values


def partition_text(value: Any) -> str | None:
    """A partition value as the log has it. Protocol: "Partition Value Serialization"."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None:
            moment = value.astimezone(dt.timezone.utc).replace(tzinfo=None)
            return moment.isoformat(timespec="microseconds") + "Z"
        return value.isoformat(" ", timespec="microseconds" if value.microsecond else "seconds")
    if isinstance(value, Decimal):
        return format(value, "f")
    return value.decode() if isinstance(value, bytes) else str(value)


def widen(value: Any, kind: Any) -> Any:
    """A value read from a file of a narrower type."""
    if not isinstance(kind, str) or value is None:
        return value
    if kind in ("float", "double"):
        return float(value)
    if kind.startswith("decimal"):
        return Decimal(value)
    if kind == "timestamp_ntz" and not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day)
    return value


def hive_escape(text: str) -> str:
    """A column name or value as part of a partition's directory name."""
    return _ESCAPED.sub(lambda m: f"%{ord(m[0]):02X}", text)


def files(path: Path) -> set[str]:
    """Data files and files of vectors below the root, named by a commit or not."""
    return {str(f.relative_to(path)) for f in path.rglob("*") if f.suffix in (".parquet", ".bin") and f.is_file()}
