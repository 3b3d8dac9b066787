"""Values of options, typed: what readers and writers share. Each refusal names the option."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from delta_pyds.catalog.address import TableAddress, locate, locate_or_reserve
from delta_pyds.errors import ExpressionError, OptionError
from delta_pyds.protocol.foreign_json import InvalidJSONError, decode_json
from delta_pyds.protocol.properties import parse_size_bytes
from delta_pyds.protocol.temporal import TimeZone
from delta_pyds.storage.allowed_roots import ALLOWED_ROOTS

_MAX_LONG = (1 << 63) - 1
# Python refuses to read longer numbers
_MOST_DIGITS = 4_000


def no_path(call: str, statement: str) -> OptionError:
    """The refusal of a missing path. ``call``, ``statement``: how to give it in Python and in SQL.

    A table of Spark's catalog, made by USING deltapy LOCATION or saveAsTable, comes without a path: Spark gives a
    Python source neither its location nor its options.
    """
    return OptionError(
        f'the path of the table is missing: give it as {call} or .option("path", ...). If plain spark.sql or '
        "saveAsTable made the table, its name is not enough: Spark passes no location to a Python source. Give the "
        "table a name by delta_pyds.create_table(spark, 'name', '/path/of/table'). Or name the path: "
        f"delta_pyds.sql(spark, 'SELECT * FROM delta.`/path/of/table`'); in plain SQL {statement}.",
        option="path",
    )


def boolean_option(given: Mapping[str, str], name: str) -> bool | None:
    text = given.get(name.lower())
    if text is None:
        return None
    value = text.strip().lower()
    if value not in ("true", "false"):
        raise OptionError(f"the option {name} is '{text}', but must be true or false.", option=name, value=text)
    return value == "true"


def bytes_option(given: Mapping[str, str], name: str, default: int, least: int = 1) -> int:
    text = given.get(name.lower())
    if text is None:
        return default
    try:
        return parse_size_bytes(text, least=least, iec=True)
    except ValueError:
        raise OptionError(
            f"the option {name} is '{text}', but must be a number of bytes such as 134217728 or 128m.",
            option=name,
            value=text,
        ) from None


def count_option(given: Mapping[str, str], name: str, least: int = 1) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) < least:
        raise OptionError(f"the option {name} is '{text}', but must be {least} or more.", option=name, value=text)
    return int(text)


def choice_option(
    given: Mapping[str, str], name: str, choices: Sequence[str], *, code: str | None = None
) -> str | None:
    """One of the choices, in its own spelling; the option may have any case."""
    text = given.get(name.lower())
    return None if text is None else choice(name, text, choices, code=code)


def choice(name: str, text: str, choices: Sequence[str], *, code: str | None = None) -> str:
    """The choice that the text names, in its own spelling. Raises: OptionError for another text."""
    for one in choices:
        if one.lower() == text.strip().lower():
            return one
    raise OptionError(
        f"the option {name} is '{text}', but must be one of {', '.join(choices)}.", code=code, option=name, value=text
    )


def application_option(app_id: str | None, version: str | None) -> tuple[str, int] | None:
    """The options ``txnAppId`` and ``txnVersion`` of an idempotent write.

    Raises: OptionError (DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS) for one without the other, and for invalid values.
    """
    if app_id is None and version is None:
        return None
    number = (version or "").strip()
    if not app_id or not number.isdecimal() or len(number) > _MOST_DIGITS or int(number) > _MAX_LONG:
        raise OptionError(
            "an idempotent write needs both txnAppId (a text) and txnVersion (a number from 0 to 2^63 - 1), but got "
            f"txnAppId={app_id!r} and txnVersion={version!r}.",
            code="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
            option="txnAppId",
        )
    return app_id, int(number)


def time_zone_option(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return TimeZone(text.strip()).name
    except ExpressionError as e:
        raise OptionError(f"the option timeZone: {e.message}", option="timeZone", value=text) from None


def time_zone_of(given: Mapping[str, str], name: str) -> str | None:
    return time_zone_option(given[name.lower()])


def table_address(
    given: Mapping[str, str],
    call: str,
    statement: str,
    *,
    create: bool = False,
    storage: Mapping[str, Any] | None = None,
) -> TableAddress:
    """The location of the table that the options ``path``, or ``table`` and ``catalog``, name.

    ``call``, ``statement``: as in ``no_path``. ``create``: reserve a location if the catalog has no such table.
    ``storage``: the storage options if the option ``storageOptions`` is not given.

    Raises: OptionError if the options name no table, or two; what the catalog raises.
    """
    table, path = given.get("table"), given.get("path", "")
    if table is None and not path.strip():
        raise no_path(call, statement)
    catalog, storage = given.get("catalog"), storage_options(given, storage)
    if create and table is not None and not path.strip():
        return locate_or_reserve(table, catalog, storage_options=storage)
    return locate(path if path.strip() else None, table=table, catalog=catalog, storage_options=storage)


def storage_options(given: Mapping[str, str], default: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """The options ``storageOptions`` and ``allowedRoots`` (one directory, or a JSON list), as one mapping."""
    text, roots = given.get("storageoptions"), given.get("allowedroots")
    value = dict(default or {}) if text is None else _json(text)
    if not isinstance(value, dict):
        raise OptionError(
            "the option storageOptions must be a JSON object of arguments for the file system, such as "
            '{"endpoint_url": "http://127.0.0.1:9000"}.',
            option="storageOptions",
        )
    if roots is None:
        return value
    found = _json(roots) if roots.lstrip().startswith("[") else [roots] if roots.strip() else []
    # without this check an error would name the storage option, which the user did not write
    if not isinstance(found, list) or not all(isinstance(root, str) and root for root in found):
        raise OptionError(
            f"the option allowedRoots is {roots!r}, but must be a directory, or a JSON list of them such as "
            '["/data/shared", "s3://bucket/shared"]; an empty list allows the table\'s own files only.',
            option="allowedRoots",
        )
    return {**value, ALLOWED_ROOTS: found}


def format_text(value: Any) -> str:
    """A value of an option, as the format takes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(dict(value)) if isinstance(value, Mapping) else str(value)


def text_option(given: Mapping[str, str], name: str) -> str:
    return given[name.lower()]


def texts_option(given: Mapping[str, str], name: str) -> dict[str, str]:
    """A JSON object of texts."""
    text = given.get(name.lower())
    value = {} if text is None else _json(text)
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise OptionError(f"the option {name} must be a JSON object of texts.", option=name)
    return value


@dataclass(frozen=True)
class OptionField:
    """An option that is one field of the typed options. ``parse``: the typed value; ``text``: the way back."""

    name: str
    field: str
    parse: Callable[[Mapping[str, str], str], Any] = text_option
    text: Callable[[Any], str] = format_text


def parsed(options: Iterable[OptionField], given: Mapping[str, str]) -> dict[str, Any]:
    """The fields of the given options."""
    return {one.field: one.parse(given, one.name) for one in options if one.name.lower() in given}


def texts_of(options: Iterable[OptionField], value: object, defaults: Mapping[str, Any]) -> dict[str, str]:
    """The options of the fields that differ from their defaults, as Spark's format takes them."""
    values = {one: getattr(value, one.field) for one in options}
    return {one.name: one.text(value) for one, value in values.items() if value != defaults[one.field]}


def _json(text: str) -> Any:
    """The value; None for invalid JSON."""
    try:
        return decode_json(text)
    except InvalidJSONError:
        return None
