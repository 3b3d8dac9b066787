"""Damage to JSON that stays JSON, or nearly so: the values that a reader does not think of.

JSON inside of strings (statistics, schemas) is damaged in the same way.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

_HERE = "\x02here\x02"


def damaged_lines(text: str, random: Random) -> tuple[str, str]:
    """A file of JSON lines with one line damaged, and what was done."""
    lines = text.splitlines()
    if not lines:
        return "{}", "an empty object"
    at = random.randrange(len(lines))
    kind = random.choice(["value"] * 12 + ["drop", "repeat", "swap", "blank", "garbage"])
    if kind == "value":
        lines[at], what = damaged(lines[at], random)
    elif kind == "drop":
        del lines[at]
        what = "removed"
    elif kind == "repeat":
        lines.insert(random.randrange(len(lines) + 1), lines[at])
        what = "repeated"
    elif kind == "swap":
        other = random.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
        what = f"and line {other} swapped"
    elif kind == "blank":
        lines.insert(at, random.choice(["", " ", "\t"]))
        what = "after a blank line"
    else:
        lines.insert(at, random.choice(_LINES))
        what = "after a line of something else"
    return "\n".join(lines) + "\n", f"line {at}: {what}"


def damaged(text: str, random: Random) -> tuple[str, str]:
    """One JSON value with one of its parts damaged."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return raw_value(random), "another value"
    places = _places(value)
    path = random.choice(places)
    if not path:
        return raw_value(random), "another value"
    parent = value
    for step in path[:-1]:
        parent = parent[step]
    step, old = path[-1], parent[path[-1]]
    name = ".".join(map(str, path))
    if isinstance(old, str) and old[:1] in "{[" and random.random() < 0.8:
        parent[step], what = damaged(old, random)
        return json.dumps(value), f"{name}: {what}"
    kind = random.choice(["value"] * 6 + ["drop", "rename", "twice", "other", "near", "near"])
    if kind == "drop":
        del parent[step]
        return json.dumps(value), f"{name} removed"
    if kind == "rename" and isinstance(parent, dict):
        del parent[step]
        parent[random.choice([step.upper(), step + " ", "", step[:-1], "\u0000", "ü" + step])] = old
        return json.dumps(value), f"{name} renamed"
    if kind == "twice" and isinstance(parent, dict):
        parent[step] = _HERE
        new = raw_value(random)
        return _with(value, f"{json.dumps(old)},{json.dumps(step)}:{new}"), f"{name} twice, the second is {new[:60]}"
    if kind == "other":
        found: Any = value
        for other in random.choice(places):
            found = found[other]
        parent[step] = json.loads(json.dumps(found))
        return json.dumps(value), f"{name} is another part"
    new = _near(old, random) if kind == "near" else raw_value(random)
    parent[step] = _HERE
    return _with(value, new), f"{name} is {new[:60]}"


def _with(value: Any, raw: str) -> str:
    return json.dumps(value).replace(json.dumps(_HERE), raw)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        found += _places(child, (*path, key))
    return found


def _near(old: Any, random: Random) -> str:
    """Another value of the same type."""
    if isinstance(old, bool):
        return json.dumps(not old)
    if isinstance(old, (int, float)):
        return json.dumps(random.choice([old + 1, old - 1, -old, old * 10, old * 2**20, 0]))
    if isinstance(old, str):
        at = random.randrange(len(old) + 1)
        return json.dumps(old[:at] + random.choice(["", "x", "/", "%", "..", "\x00", "é", "0"]) + old[at + 1 :])
    return json.dumps([old, old])


def raw_value(random: Random) -> str:
    """JSON of a value that is rarely meant."""
    kind = random.randrange(13)
    if kind == 0:
        depth = random.choice([64, 600, 5_000, 100_000])
        begin, end = random.choice([("[", "]"), ('{"a":', "}")])
        return begin * depth + "1" + end * depth
    if kind == 1:
        return json.dumps(random.choice(["x", "\u00e9", "\x00", "%41", "9"]) * random.choice([300, 70_000, 1_000_000]))
    if kind == 2:
        return random.choice(["", "-"]) + "9" * random.choice([20, 400, 5_000])
    if kind == 3:
        return json.dumps(random.choice(_PATHS))
    if kind == 4:
        return json.dumps(random.choice(_TYPES))
    if kind == 5:
        return json.dumps(random.choice(_EXPRESSIONS))
    return random.choice(_RAW)


_RAW = (
    "null", "true", "false", "0", "-1", "1", "2147483647", "2147483648", "-2147483649", "4294967296",
    "9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551616", "1e999999999",
    "-1e999999999", "1e-999999999", "1E400", "-1E400", "1e308", "0.1", "-0.0", "1.5", "NaN", "Infinity", '""', '"a"',
    '"\\ud800"', '"\\udc00x"', '"\\u0000"', '"\\u001b[31m"', '"\\u202e"', '"1e999999999"', '"NaN"', '"Infinity"',
    "[]", "{}", "[null]", '{"":null}', "[[]]", '"null"', '"true"', '"0001-01-01"', '"+999999-12-31"', '"-0001-01-01"',
    '"2024-02-30"', '"2024-01-01T00:00:00.000Z"', '"9999-12-31 23:59:59.999999999"', '"٣"', '"99999999999999999999"',
    '"{"', '"[]"', '"{}"', "", "{", '"', "]",
)  # fmt: skip
_PATHS = (
    "../../../../etc/passwd", "..", "/", "", ".", "/etc/passwd", "/dev/zero", "/dev/stdin", "/proc/self/mem",
    "file:///dev/zero", "file:/etc/passwd", "%2e%2e/%2e%2e/x", "%00", "%", "a%zz", "~", "a\nb", "a\\b",
    "s3://b/x?endpoint_override=127.0.0.1:9&scheme=http", "http://127.0.0.1:9/x", "memory://x", "_delta_log",
    "_delta_log/00000000000000000000.json", "C:\\x", "a:b", "abc://x/y", "file://host/x", "x" * 300, "a/" * 3_000,
)  # fmt: skip
_TYPES = (
    "decimal(38,38)", "decimal(39,0)", "decimal(99999999999999999999,1)", "decimal(-1,0)", "decimal(", "void",
    "variant", "interval", "timestamp_ntz", "binary", "varchar(10)", "char(99999999999)", "array", "map", "struct",
    "name", "id", "none", "v2", "interval 1 day", "interval 99999999999999 years", "deletionVectors", "i", "u",
    "p", "z",
)  # fmt: skip
_EXPRESSIONS = (
    "id" + " + 1" * 10_000, "id > 0" + " OR id > 0" * 10_000, "(" * 10_000, "NOT " * 10_000 + "true",
    "id" + " % 7" * 10_000, f"id IN ({', '.join(map(str, range(20_000)))})", f"short LIKE '{'%_' * 20_000}'",
    "id > 1e999999999", "id >", "x.y.z = 1", "short RLIKE '(a+)+$'", "1 / 0 > 0", "CAST('x' AS INT) > 0", "\x00",
    "\ud800", "repeat('x', 2000000000) = 'x'", "id > 0 -- ", "CAST(id AS DECIMAL(38, 38)) > 0", "unknown(id)",
    "size(sequence(0, 1000000000000)) > 0", "space(2147483647) = ' '", "repeat(short, id * 1000000000) = 'x'",
)  # fmt: skip
_LINES = (
    "null", "[]", "{}", "1", '""', "{", "\x00", "\ufeff{}", '{"add":null}', '{"add":{}}', '{"remove":{}}',
    '{"metaData":{}}', '{"protocol":{}}', '{"unknown":{"a":[]}}', '{"add":{},"remove":{}}', '{"commitInfo":[]}',
    '{"sidecar":{"path":"../x.parquet","sizeInBytes":1,"modificationTime":0}}', '{"checkpointMetadata":{"version":-1}}',
    '{"txn":{"appId":"a","version":-1}}', '{"domainMetadata":{"domain":"","configuration":"","removed":"x"}}',
    "[" * 9_999,    '{"cdc":{"path":"/dev/zero","partitionValues":{},"size":1,"dataChange":false}}',
)  # fmt: skip
