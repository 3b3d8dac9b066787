"""The SQL of a name: the columns of its entry, the text of its view, and the location read back from that text.

Invariant: this module reads only view texts that it writes itself. They mean the same in any session, because the
location is a raw string, which no setting changes.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from dataclasses import dataclass
from typing import cast

from pyspark.sql import types as spark_types

from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.protocol.quoting import quote_name

SESSION_CATALOG = "spark_catalog"
# the property of the view: "external", or "managed" if dropping the name deletes the data
MARK = "deltapy.table"
# the prefix of names of entries
ENTRY_PREFIX = "_deltapy_"
_READABLE = 60
_ENTRY = re.compile(ENTRY_PREFIX + r"(\w{1,128}?)_[0-9a-f]{12}_[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_VIEW = re.compile(
    r"SELECT \* FROM `spark_catalog`\.`(\w+)`\.`(_deltapy_\w+)` WITH \(path = (r'[^']+'|r\"[^\"]+\")\)", re.DOTALL
)


@dataclass(frozen=True)
class NamedTable:
    """A table that has a name in the session catalog.

    Attributes:
        schema: The schema of the name.
        table: The last part of the name.
        location: The path of the table, as it was given.
        holder: The name, in the same schema, of the catalog entry with its columns.
        managed: Whether dropping the name deletes the data too.

    >>> delta_pyds.create_table(spark, "sales.orders", "/data/orders").name
    """

    schema: str
    table: str
    location: str
    holder: str
    managed: bool = False

    @property
    def name(self) -> str:
        """The whole name, with the catalog."""
        return f"{SESSION_CATALOG}.{self.schema}.{self.table}"

    @property
    def quoted(self) -> str:
        """The whole name, quoted for SQL."""
        return quote_name(SESSION_CATALOG, self.schema, self.table)

    @property
    def quoted_entry(self) -> str:
        """The whole name of the catalog entry, quoted for SQL."""
        return quote_name(SESSION_CATALOG, self.schema, self.holder)

    @property
    def select(self) -> str:
        """The view's text."""
        return f"SELECT * FROM {self.quoted_entry} WITH (path = {raw_string(self.location)})"


def raw_string(text: str) -> str:
    """A string literal that means the same under all settings and variables of a session.

    Raises: UnsupportedOperationError for a text that has no such literal.
    """
    quote = '"' if "'" in text else "'"
    if quote in text or "${" in text or not text:
        raise UnsupportedOperationError(
            f"the path {text!r} holds both kinds of quotes, or '${{', so no view of Spark can hold it. Read and write "
            "the table by its path.",
            path=text,
        )
    return f"r{quote}{text}{quote}"


def entry_and_location(view_text: str) -> tuple[str, str] | None:
    """The entry and the location in a view's text; None for a text that we did not write."""
    match = _VIEW.fullmatch(view_text)
    return None if match is None else (match[2], match[3][2:-1])


# --- columns


def new_entry(table: str, columns: str) -> str:
    """A unique name of an entry. It contains the table's name and a digest of the columns."""
    return f"{ENTRY_PREFIX}{table[:_READABLE]}_{_digest(columns)}_{uuid.uuid4().hex[:12]}"


def next_entry(entry: str, table: str, columns: str) -> str:
    """The name of the entry that every process creates when it changes this entry to these columns."""
    return f"{ENTRY_PREFIX}{table[:_READABLE]}_{_digest(columns)}_{_digest(entry + columns)}"


def tables_of_entries(text: str) -> set[str]:
    """The tables whose entries a text names, in lower case. Long names and those outside of ASCII may be missing."""
    return {found[1].lower() for found in _ENTRY.finditer(text)}


def is_entry(name: str) -> bool:
    """Whether a name is one that this module gives to an entry."""
    return _ENTRY.fullmatch(name) is not None


def has_columns(entry: str, columns: str) -> bool:
    """Whether an entry was created for these columns."""
    return entry.rsplit("_", 2)[-2:-1] == [_digest(columns)]


def column_texts(schema: spark_types.StructType) -> str:
    """The columns of an entry. All are nullable, because a reader gives no guarantees before a query."""
    return ", ".join(
        f"{quote_name(field.name)} {_type_text(field.dataType)}{_comment_text(field)}" for field in schema.fields
    )


def entry_schema(schema: spark_types.StructType) -> spark_types.StructType:
    """The same columns as a schema, for names that no statement can hold. Comments are left out."""
    return cast("spark_types.StructType", _plain(schema))


def _plain(data_type: spark_types.DataType) -> spark_types.DataType:
    if isinstance(data_type, spark_types.StructType):
        return spark_types.StructType([spark_types.StructField(f.name, _plain(f.dataType)) for f in data_type.fields])
    if isinstance(data_type, spark_types.ArrayType):
        return spark_types.ArrayType(_plain(data_type.elementType))
    if isinstance(data_type, spark_types.MapType):
        return spark_types.MapType(_plain(data_type.keyType), _plain(data_type.valueType))
    return data_type


def _digest(columns: str) -> str:
    return hashlib.sha256(columns.encode(errors="surrogatepass")).hexdigest()[:12]


def _type_text(data_type: spark_types.DataType) -> str:
    if isinstance(data_type, spark_types.StructType):
        fields = (f"{quote_name(f.name)}: {_type_text(f.dataType)}{_comment_text(f)}" for f in data_type.fields)
        return f"STRUCT<{', '.join(fields)}>"
    if isinstance(data_type, spark_types.ArrayType):
        return f"ARRAY<{_type_text(data_type.elementType)}>"
    if isinstance(data_type, spark_types.MapType):
        return f"MAP<{_type_text(data_type.keyType)}, {_type_text(data_type.valueType)}>"
    return data_type.simpleString()


def _comment_text(field: spark_types.StructField) -> str:
    comment = field.metadata.get("comment")
    if not isinstance(comment, str) or not comment:
        return ""
    try:
        return f" COMMENT {raw_string(comment)}"
    except UnsupportedOperationError:
        return ""  # the table itself has the comment
