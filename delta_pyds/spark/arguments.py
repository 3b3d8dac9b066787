"""Checks of the arguments of ``delta_pyds.read`` and ``write``. Each refusal names the argument."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from typing import Any

from delta_pyds.errors import OptionError
from delta_pyds.table.time_travel import time_text


def text_argument(name: str, value: Any) -> str | None:
    """Raises: OptionError for another type, and for a text that UTF-8 cannot encode."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise _wrong(name, value, "a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise OptionError(
            f"the argument {name} is {value!a}, which holds half a character (a surrogate).", option=name
        ) from None
    return value


def catalog_argument(value: Any) -> str | None:
    """The name of a catalog. A catalog given as an object gets one, by which Spark's planner processes find it.

    Raises: OptionError for another type.
    """
    if value is None or isinstance(value, str):
        return text_argument("catalog", value)
    # imported here: only a catalog given as an object needs it
    from pyspark import cloudpickle

    from delta_pyds.catalog.interface import Catalog
    from delta_pyds.catalog.objects import name_of

    if not isinstance(value, Catalog):
        raise _wrong("catalog", value, "a name or a delta_pyds.catalog.Catalog")
    return name_of(value, cloudpickle.dumps)


def flag_argument(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, value, "True or False")
    return value


def number_argument(name: str, value: Any, least: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise _wrong(name, value, f"a whole number of {least} or more")
    return value


def time_argument(name: str, value: Any) -> str | None:
    """A text stays as it is; a date means its midnight."""
    if isinstance(value, dt.date):
        return time_text(value)
    if value is not None and not isinstance(value, str):
        raise _wrong(name, value, "a text or a datetime")
    return text_argument(name, value)


def names_argument(name: str, value: Any) -> tuple[str, ...] | str | None:
    """A text with commas, or a list of names."""
    if value is None or isinstance(value, str):
        return text_argument(name, value)
    if isinstance(value, (bytes, Mapping)) or not isinstance(value, Iterable):
        raise _wrong(name, value, "a text or a list of column names")
    return tuple(_name(name, item) for item in value)


def _name(name: str, item: Any) -> str:
    text = text_argument(name, item)
    if text is None:
        raise _wrong(name, item, "a list of column names")
    return text


def choice_argument(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """One of the choices, which are in lower case; the value may have any case."""
    if not isinstance(value, str) or value.lower() not in choices:
        raise OptionError(f"the {name} is {value!r}, but must be one of {', '.join(choices)}.", option=name)
    return value.lower()


def json_argument(name: str, value: Any) -> str | None:
    """Raises: OptionError for another type, and for values that JSON cannot express. It shows no value."""
    if value is None or value == {}:
        return None
    if not isinstance(value, Mapping):
        raise _wrong(name, type(value), "a mapping of names to values")
    try:
        return json.dumps(dict(value))
    except (TypeError, ValueError, RecursionError) as e:
        raise OptionError(f"the argument {name} cannot be sent to Spark's workers: {e}.", option=name) from None


def option_texts(name: str, value: Any) -> dict[str, str]:
    """Options of the format, whose values may be texts, numbers or booleans.

    Raises: OptionError for another value; None too, which Spark would silently leave out.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _wrong(name, value, "a mapping of names to values")
    return {_key(name, key): _option_text(f"{name}[{key!r}]", item) for key, item in value.items()}


def property_options(properties: Any) -> dict[str, str]:
    """Options of the format for properties of a table: those of Delta by their own names."""
    texts = option_texts("properties", properties)
    others = {key: value for key, value in texts.items() if not key.lower().startswith("delta.")}
    of_delta = {key: value for key, value in texts.items() if key not in others}
    return {**of_delta, **({"tableProperties": json.dumps(others)} if others else {})}


def _key(name: str, key: Any) -> str:
    if not isinstance(key, str):
        raise _wrong(f"{name} with the key", key, "a mapping whose keys are texts")
    return key


def _option_text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return str(value)
    text = text_argument(name, value)
    if text is None:
        raise OptionError(f"the argument {name} is None: leave it out, or give a value.", option=name)
    return text


def _wrong(name: str, value: Any, wanted: str) -> OptionError:
    return OptionError(f"the argument {name} is {value!r:.200}, but must be {wanted}.", option=name)
