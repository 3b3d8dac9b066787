"""Timestamps of type INT96 in files that Arrow wrote before its release 23.

Such a writer stores an instant before 1970 as a day and a *negative* number of nanoseconds. If Arrow (of any release)
decodes it to microseconds, it takes that number as unsigned and returns an instant 584 years too late. Decoded to
nanoseconds, the instant is right modulo 2**64 nanoseconds. So these files are decoded to nanoseconds, and the multiple
of 2**64 is found from the last three digits: a timestamp that nanoseconds cannot hold was written from microseconds or
a coarser unit, so its own last three digits are 0.

Invariant: an instant is the one that was written, cut to microseconds as Spark cuts it, or the file is refused.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from delta_pyds.columnar.cast import ColumnLocation, Convert
from delta_pyds.errors import UnsupportedFeatureError

_WRITER = re.compile(r"parquet-cpp(?:-arrow)? version (\d{1,4})\.")
_FIRST_RIGHT = 23
_ARROW_SCHEMA = b"ARROW:schema"
# 2**64 nanoseconds are so many microseconds, and 616 nanoseconds
_TURN_MICROS, _TURN_REST = divmod(1 << 64, 1000)
# the turns from the year 1 to the year 9999; each gives other last digits
_TURNS = range(-4, 15)
_BY_DIGITS = {-_TURN_REST * turn % 1000: turn for turn in _TURNS}
_TURN_OF_DIGITS = [_BY_DIGITS.get(digits) for digits in range(1000)]


def decodes_to_nanoseconds(metadata: Any) -> bool:
    """Whether INT96 columns of a file with this footer must be decoded to nanoseconds."""
    try:
        writer = _WRITER.match(metadata.created_by or "")
    except UnicodeDecodeError:
        return False  # Arrow writes its own name
    if writer is None or int(writer[1]) >= _FIRST_RIGHT:
        return False
    schema = metadata.schema
    return any(schema.column(i).physical_type == "INT96" for i in range(len(schema)))


def to_micros(target: pa.DataType, footer: Mapping[bytes, bytes], where: ColumnLocation) -> Convert:
    """A function from decoded nanoseconds to ``target``, a timestamp[us].

    The function raises UnsupportedFeatureError for a value that may stand for two instants: the file does not say from
    which unit it was written.
    """
    units = _written_units(footer)

    def convert(array: pa.Array) -> pa.Array:
        if pt.is_dictionary(array.type):
            array = array.dictionary_decode()
        nanos = array.view(pa.int64())
        # Arrow divides toward zero, as Spark does with the nanoseconds of such a day
        micros = pc.divide(nanos, 1000)
        digits = pc.subtract(nanos, pc.multiply(micros, 1000))
        if units == {"ns"} or not pc.any(pc.not_equal(digits, 0), min_count=0).as_py():
            return micros.view(target)
        if "ns" in units or not units:
            raise _ambiguous(where)
        return _turned(micros, digits, where).view(target)

    return convert


def _turned(micros: pa.Array, digits: pa.Array, where: ColumnLocation) -> pa.Array:
    """Microseconds of which whole turns were lost."""
    # of the remainder and the floor; the digits have the sign of the nanoseconds
    is_negative = pc.less(digits, 0)
    floor = pc.subtract(micros, is_negative.cast(pa.int64()))
    digits = pc.if_else(is_negative, pc.add(digits, 1000), digits)
    turns = pa.array(_TURN_OF_DIGITS, pa.int64()).take(digits)
    if turns.null_count > micros.null_count:
        raise _ambiguous(where)
    # floor * 1000 + digits + turn * 2**64 is a multiple of 1000
    rest = pc.divide(pc.add(digits, pc.multiply(turns, _TURN_REST)), 1000)
    return pc.add(pc.add(floor, pc.multiply(turns, _TURN_MICROS)), rest)


def _written_units(footer: Mapping[bytes, bytes]) -> frozenset[str]:
    """The units of the timestamps that were written, as far as the footer has their Arrow types."""
    stored = footer.get(_ARROW_SCHEMA)
    if stored is None:
        return frozenset()
    found, types = set(), list(pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored))).types)
    while types:
        data_type = types.pop()
        if isinstance(data_type, pa.BaseExtensionType):
            types.append(data_type.storage_type)
        elif pt.is_dictionary(data_type):
            types.append(data_type.value_type)
        elif pt.is_timestamp(data_type):
            found.add(data_type.unit)
        else:
            types += [data_type.field(i).type for i in range(data_type.num_fields)]
    return frozenset(found)


def _ambiguous(where: ColumnLocation) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"the data file '{where.file}' was written by an Arrow before release 23, and its column '{where.column}' has "
        "an INT96 timestamp that may stand for two instants: one with parts of a microsecond, or one that nanoseconds "
        "cannot hold. Rewrite the file with pyarrow 23 or newer, from the data that it was written from, without "
        "use_deprecated_int96_timestamps.",
        code="DELTA_UNSUPPORTED_DATA_TYPES",
        file=where.file,
        column=where.column,
    )
