"""Column definitions of CREATE and ALTER, and properties."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from delta_pyds.expr.parser.lexer import Token
from delta_pyds.statements import pieces
from delta_pyds.statements.arguments import ends_value
from delta_pyds.statements.kinds import ColumnText, Identity, SqlText
from delta_pyds.statements.reader import StatementReader, syntax_error

# the words that begin an option of a column
_OPTIONS = (
    "COMMENT",
    "GENERATED",
    "DEFAULT",
    "FIRST",
    "AFTER",
    "CONSTRAINT",
    "CHECK",
    "PRIMARY",
    "REFERENCES",
    "UNIQUE",
)

# properties for which the statement has a clause
_RESERVED = {
    "provider": "please use the USING clause to specify it",
    "location": "please use the LOCATION clause to specify it",
    "owner": "it will be set to the current user",
    "external": "please use CREATE EXTERNAL TABLE",
    "is_managed_location": "it is set by the catalog",
}


def column(reader: StatementReader, *, nested: bool = False, placed: bool = False) -> ColumnText:
    """``name type [NOT NULL | DEFAULT e | GENERATED ... | COMMENT 'c' | FIRST | AFTER c]``

    ``nested``: the name may be a path into a struct. ``placed``: a position among the columns may be given.
    """
    path = reader.path() if nested else (reader.identifier(),)
    found = ColumnText(path, pieces.data_type(reader))
    seen: set[str] = set()
    while (option := reader.token.text.upper()) in (*_OPTIONS, "NOT", "!", "NULL") and reader.token.kind != "name":
        if option in ("FIRST", "AFTER"):
            option = "a position"
            if not placed:
                break
        if option in seen:
            reader.refuse_at_end(f"{option} is given twice for one column", "CREATE_TABLE_COLUMN_DESCRIPTOR_DUPLICATE")
        seen.add(option)
        found = _with_option(reader, found)
    return found


def _with_option(reader: StatementReader, found: ColumnText) -> ColumnText:
    if reader.accept("NOT|!"):
        reader.expect("NULL")
        return replace(found, nullable=False)
    if reader.accept("COMMENT"):
        return replace(found, comment=reader.string())
    if reader.accept("DEFAULT"):
        return replace(found, default=pieces.expression(reader, at_option))
    if reader.accept("GENERATED"):
        return _generated(reader, found)
    if reader.at("FIRST|AFTER"):
        return replace(found, after=position(reader))
    if reader.at("CONSTRAINT|CHECK|PRIMARY|REFERENCES|UNIQUE"):
        reader.refuse(
            f"{reader.token.text.upper()} of a column", "Use ALTER TABLE ... ADD CONSTRAINT name CHECK (condition)."
        )
    raise syntax_error(reader.bound, reader.token, "expected NOT NULL, DEFAULT, GENERATED, COMMENT or the next column")


def at_option(reader: StatementReader) -> bool:
    """Whether the next option of a column begins after an expression."""
    if not ends_value(reader.previous) or reader.previous.is_word("DEFAULT"):
        return False
    return reader.at("NOT|!", "NULL") or reader.token.is_word(*_OPTIONS)


def position(reader: StatementReader) -> str:
    """The name of the previous column; empty for FIRST."""
    if reader.accept("FIRST"):
        return ""
    reader.expect("AFTER")
    first = reader.index
    reader.identifier()
    return reader.piece(first, reader.index).text


def _generated(reader: StatementReader, found: ColumnText) -> ColumnText:
    always = reader.accept("ALWAYS")
    if not always:
        reader.expect("BY", "DEFAULT")
    reader.expect("AS")
    if not reader.accept("IDENTITY"):
        if not always:
            reader.fail("expected IDENTITY")
        reader.expect("(")
        expression = pieces.expression(reader)
        reader.expect(")")
        return replace(found, generated=expression)
    numbers = {"START": 1, "INCREMENT": 1}
    if reader.accept("("):
        seen: set[str] = set()
        while (option := _sequence_option(reader, numbers)) is not None:
            if option in seen:
                code = "IDENTITY_COLUMNS_DUPLICATED_SEQUENCE_GENERATOR_OPTION"
                reader.refuse_at_end(f"{option} is given twice", code, reader.previous)
            seen.add(option)
            reader.accept(",")
        reader.expect(")")
    if numbers["INCREMENT"] == 0:
        reader.refuse_at_end("the step of an identity column must not be 0", "IDENTITY_COLUMNS_ILLEGAL_STEP")
    return replace(found, identity=Identity(always, numbers["START"], numbers["INCREMENT"]))


def _sequence_option(reader: StatementReader, numbers: dict[str, int]) -> str | None:
    """The first word of ``START WITH 1`` or ``INCREMENT BY 1``."""
    for first, second in (("START", "WITH"), ("INCREMENT", "BY")):
        if reader.accept(first, second):
            numbers[first] = reader.whole_number()
            return first
    return None


def constraint(reader: StatementReader) -> tuple[str, SqlText]:
    """``CONSTRAINT name CHECK (condition)``, from the name on."""
    name = reader.identifier()
    if reader.at("PRIMARY|FOREIGN|UNIQUE"):
        reader.refuse(f"a constraint {reader.token.text.upper()}", "Delta tables support only CHECK constraints.")
    reader.expect("CHECK", "(")
    condition = pieces.expression(reader)
    reader.expect(")")
    if reader.at("ENFORCED|NOT|RELY|NORELY"):
        reader.refuse("a characteristic of a constraint", "CHECK constraints are always enforced.")
    return name, condition


def table_properties(reader: StatementReader) -> dict[str, str]:
    """The properties of a table, without the names that Spark reserves."""
    start = reader.token
    found = properties(reader)
    check_reserved(reader, start, found)
    return found


def check_reserved(reader: StatementReader, start: Token, keys: Iterable[str]) -> None:
    """Raises, at the end: SqlSyntaxError for a property that a clause of the statement sets."""
    for key in keys:
        if key in _RESERVED:
            reader.refuse_at_end(
                f"{key} is a reserved table property, {_RESERVED[key]}", "UNSUPPORTED_FEATURE.SET_TABLE_PROPERTY", start
            )


def properties(reader: StatementReader) -> dict[str, str]:
    """``('key' = 'value', key.with.dots = 7)``"""
    found: dict[str, str] = {}
    seen: set[str] = set()

    def one() -> None:
        start = reader.token
        key = _key_of_value(reader)
        # keys of Delta match without case
        same = key.lower() if key.lower().startswith("delta.") else key
        if same in seen:
            reader.refuse_at_end(f"the property '{key}' is given twice", "DUPLICATE_KEY", start)
        seen.add(same)
        reader.accept("=|==")
        found[key] = property_value(reader)

    reader.in_parentheses(one)
    return found


def _key_of_value(reader: StatementReader) -> str:
    """A key of one or several strings before an equals sign; without the sign, only the first string is the key."""
    last = reader.index
    while reader.tokens[last].kind == "string":
        last += 1
    return reader.string() if last > reader.index and reader.tokens[last].is_symbol("=", "==") else property_key(reader)


def property_key(reader: StatementReader) -> str:
    """A string, or names with dots."""
    return reader.take().value if reader.token.kind == "string" else ".".join(reader.path())


def property_value(reader: StatementReader) -> str:
    """The value as text. A number must have no sign, exponent or type suffix."""
    token = reader.token
    if token.kind == "string":
        return reader.string()
    if token.is_word("TRUE", "FALSE"):
        return reader.take().text.lower()
    if token.kind == "number" and token.text.strip("0123456789") in ("", "."):
        return reader.take().text
    raise syntax_error(
        reader.bound, reader.token, "expected a string, a number, TRUE or FALSE as the value of the property"
    )
