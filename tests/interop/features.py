"""The rows of the matrix that are a kind of table: how each engine makes one, and what is done to it.

Invariant: ``id`` is a column of every table, and it is the number that ``select`` makes the other columns from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

DELETE = "DELETE FROM {t} WHERE id % 7 = 3"
UPDATE = "UPDATE {t} SET v = concat(v, '!') WHERE id % 5 = 1"
MERGE = (
    "MERGE INTO {t} t USING (SELECT {select} FROM range(35, 50)) s ON t.id = s.id "
    "WHEN MATCHED AND s.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)
# where the table fills columns, * would ask for them
_MERGE_V = MERGE.replace("UPDATE SET *", "UPDATE SET v = s.v").replace("INSERT *", "INSERT (id, v) VALUES (s.id, s.v)")
OPTIMIZE = "OPTIMIZE {t}"
CHANGES = (DELETE, UPDATE, MERGE, OPTIMIZE)


@dataclass(frozen=True)
class Feature:
    """One row of the matrix.

    ``columns``: of CREATE TABLE. ``select``: what fills them, from ``id``; columns that it leaves out are filled by
    the table. ``has``: table features that the protocol must name. ``changes``: commands of the reference.
    ``metadata``: of columns, by name, with which we make the table; ``made_by_reference``: where a DataFrame cannot
    say what the table has to be, so the reference makes it empty in both directions. ``then``: commands that the
    reference runs on the table before rows come.
    ``holds``: of every row that we append, where the table fills columns. ``ours``: properties that only we give.
    ``refused``: a select list whose row neither engine may append. ``in_files``: what the schema of some Parquet file
    that the reference wrote must name. ``written``: whether we write such a table.
    """

    name: str
    columns: str = "id BIGINT, p INT, v STRING"
    select: str = "id, CAST(id % 3 AS INT) AS p, concat('v', id) AS v"
    properties: Mapping[str, str] = field(default_factory=dict)
    partition: tuple[str, ...] = ()
    cluster: tuple[str, ...] = ()
    has: tuple[str, ...] = ()
    changes: tuple[str, ...] = CHANGES
    then: tuple[str, ...] = ()
    metadata: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    ours: Mapping[str, str] = field(default_factory=dict)
    made_by_reference: bool = False
    where: str = "id >= 5 AND id < 30"
    holds: str = "true"
    refused: str = ""
    in_files: str = ""
    written: bool = True

    def __str__(self) -> str:
        return self.name


def _on(**names: str) -> dict[str, str]:
    return {f"delta.{key}": value for key, value in names.items()}


def _supported(*features: str) -> dict[str, str]:
    return {f"delta.feature.{name}": "supported" for name in features}


_DVS = _on(enableDeletionVectors="true")
_NAME = {"delta.columnMapping.mode": "name"}
_ID = {"delta.columnMapping.mode": "id"}
_MAPPED = ("columnMapping",)
_NESTED = "id BIGINT, p INT, v STRING, s STRUCT<`a b`: INT, l: ARRAY<STRUCT<x: BIGINT>>>, m MAP<STRING, STRUCT<y: INT>>"
_NESTED_SELECT = (
    "id, CAST(id % 3 AS INT) AS p, concat('v', id) AS v, "
    "IF(id % 4 = 0, NULL, named_struct('a b', CAST(id AS INT), 'l', array(named_struct('x', id), NULL))) AS s, "
    "IF(id % 6 = 0, NULL, map('k', named_struct('y', CAST(id AS INT)), 'n', NULL)) AS m"
)

TABLE_FEATURES = (
    Feature("plain table"),
    Feature("partitioned table", partition=("p",)),
    Feature("appendOnly", properties=_on(appendOnly="true"), changes=(OPTIMIZE,), has=("appendOnly",)),
    Feature(
        "NOT NULL",
        columns="id BIGINT NOT NULL, p INT, v STRING",
        has=("invariants",),
        refused="CAST(NULL AS BIGINT) AS id, 1 AS p, 'v' AS v",
        made_by_reference=True,
    ),
    Feature(
        "invariants",
        metadata={"p": {"delta.invariants": json.dumps({"expression": {"expression": "p >= 0"}})}},
        has=("invariants",),
        refused="id, -1 AS p, 'v' AS v",
    ),
    Feature(
        "checkConstraints",
        has=("checkConstraints",),
        refused="id, 1 AS p, 'w' AS v",
        then=("ALTER TABLE {t} ADD CONSTRAINT small CHECK (p < 3 AND v LIKE 'v%')",),
        ours={"delta.constraints.small": "p < 3 AND v LIKE 'v%'"},
    ),
    Feature(
        "generatedColumns",
        columns="id BIGINT, v STRING, g BIGINT GENERATED ALWAYS AS (id * 2), h STRING GENERATED ALWAYS AS (upper(v))",
        select="id, concat('v', id) AS v",
        changes=(DELETE, UPDATE, _MERGE_V, OPTIMIZE),
        made_by_reference=True,
        holds="g = id * 2 AND h = upper(v)",
        has=("generatedColumns",),
        refused="id, 'v' AS v, id * 2 + 1 AS g, 'V' AS h",
    ),
    Feature(
        "generatedColumns, created from metadata of columns",
        columns="id BIGINT, v STRING, g BIGINT GENERATED ALWAYS AS (id * 2)",
        select="id, concat('v', id) AS v, id * 2 AS g",
        metadata={"g": {"delta.generationExpression": "id * 2"}},
        has=("generatedColumns",),
        refused="id, 'v' AS v, id * 2 + 1 AS g",
        changes=(DELETE, UPDATE, OPTIMIZE),
    ),
    Feature(
        "columnMapping name", columns=_NESTED, select=_NESTED_SELECT, properties=_NAME, partition=("p",), has=_MAPPED
    ),
    Feature("columnMapping id", columns=_NESTED, select=_NESTED_SELECT, properties=_ID, has=_MAPPED),
    Feature(
        "columnMapping, renamed and dropped columns",
        properties=_NAME,
        has=_MAPPED,
        columns="id BIGINT, gone STRING, was INT, v STRING",
        select="id, CAST(id % 3 AS INT) AS p, concat('v', id) AS v",
        then=("ALTER TABLE {t} DROP COLUMN gone", "ALTER TABLE {t} RENAME COLUMN was TO p"),
        made_by_reference=True,
    ),
    Feature(
        "identityColumns",
        columns="id BIGINT, v STRING, n BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 3)",
        holds="n >= 10 AND n % 3 = 1",
        has=("identityColumns",),
        refused="id, 'v' AS v, CAST(5 AS BIGINT) AS n",
        select="id, concat('v', id) AS v",
        changes=(
            DELETE,
            UPDATE,
            _MERGE_V,
            OPTIMIZE,
        ),
        made_by_reference=True,
    ),
    Feature(
        "allowColumnDefaults",
        columns="id BIGINT, v STRING DEFAULT 'dft', p INT DEFAULT 1 + 1",
        select="id",
        holds="v = 'dft' AND p = 2",
        properties=_supported("allowColumnDefaults"),
        has=("allowColumnDefaults",),
        changes=(
            DELETE,
            UPDATE,
            # the reference resolves DEFAULT in a MERGE of a catalog's tables only
            MERGE.replace("UPDATE SET *", "UPDATE SET v = 'dft'").replace(
                "INSERT *", "INSERT (id, v, p) VALUES (s.id, 'dft', 2)"
            ),
            OPTIMIZE,
        ),
        made_by_reference=True,
    ),
    Feature("changeDataFeed", properties=_on(enableChangeDataFeed="true"), partition=("p",), has=("changeDataFeed",)),
    Feature("changeDataFeed with deletionVectors", properties={**_DVS, **_on(enableChangeDataFeed="true")}),
    Feature(
        "deletionVectors",
        properties=_DVS,
        has=("deletionVectors",),
        changes=(
            DELETE,
            "DELETE FROM {t} WHERE id IN (1, 2, 8)",
            UPDATE,
            MERGE,
            OPTIMIZE,
            "REORG TABLE {t} APPLY (PURGE)",
        ),
    ),
    Feature(
        "timestampNtz",
        columns="id BIGINT, v STRING, t TIMESTAMP_NTZ",
        select="id, concat('v', id) AS v, timestamp_ntz'2020-02-29 01:02:03.456789' + make_dt_interval(id) AS t",
        has=("timestampNtz",),
        where="t < TIMESTAMP_NTZ '2020-03-10 00:00:00'",
    ),
    Feature("v2Checkpoint", properties=_on(checkpointPolicy="v2", checkpointInterval="3"), has=("v2Checkpoint",)),
    Feature("vacuumProtocolCheck", properties=_supported("vacuumProtocolCheck"), has=("vacuumProtocolCheck",)),
    Feature("rowTracking", properties=_on(enableRowTracking="true"), has=("rowTracking", "domainMetadata")),
    Feature(
        "rowTracking with deletionVectors",
        properties={**_DVS, **_on(enableRowTracking="true")},
        has=("rowTracking", "deletionVectors"),
    ),
    Feature("domainMetadata", properties=_supported("domainMetadata"), has=("domainMetadata",)),
    Feature("clustering", cluster=("p", "id"), has=("clustering", "domainMetadata")),
    Feature("clustering with columnMapping", cluster=("p",), properties=_NAME, has=("clustering",)),
    Feature("inCommitTimestamp", properties=_on(enableInCommitTimestamps="true"), has=("inCommitTimestamp",)),
    Feature(
        "inCommitTimestamp, enabled later",
        then=(
            "INSERT INTO {t} SELECT {select} FROM range(100, 103)",
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
        ),
        has=("inCommitTimestamp",),
        made_by_reference=True,
    ),
    Feature(
        "typeWidening",
        columns="id INT, p INT, v STRING, f FLOAT, d DECIMAL(5, 2), s STRUCT<x: SMALLINT>",
        select="CAST(id AS INT) AS id, CAST(id % 3 AS INT) AS p, concat('v', id) AS v, CAST(id / 4 AS FLOAT) AS f, "
        "CAST(id / 8 AS DECIMAL(5, 2)) AS d, named_struct('x', CAST(id AS SMALLINT)) AS s",
        properties=_on(enableTypeWidening="true"),
        then=(
            "INSERT INTO {t} SELECT {select} FROM range(100, 103)",
            "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT",
            "ALTER TABLE {t} ALTER COLUMN f TYPE DOUBLE",
            "ALTER TABLE {t} ALTER COLUMN d TYPE DECIMAL(10, 4)",
            "ALTER TABLE {t} ALTER COLUMN s.x TYPE INT",
            "INSERT INTO {t} SELECT id + 3000000000, 1, 'w', 1.1, 12345.6789, named_struct('x', 70000) FROM range(2)",
        ),
        has=("typeWidening",),
        made_by_reference=True,
    ),
    Feature(
        "variantType",
        columns="id BIGINT, v STRING, o VARIANT, a ARRAY<VARIANT>",
        select="id, concat('v', id) AS v, "
        'IF(id % 4 = 0, NULL, parse_json(concat(\'{"k": \', id, \', "l": [1.5, null, "x"]}\'))) AS o, '
        "array(parse_json(CAST(id AS STRING)), NULL) AS a",
        has=("variantType",),
        changes=(DELETE, UPDATE, OPTIMIZE),
    ),
    Feature(
        "variantShredding-preview",
        columns="id BIGINT, v STRING, o VARIANT",
        select="id, concat('v', id) AS v, parse_json(concat('{\"k\": ', id, '}')) AS o",
        properties=_on(enableVariantShredding="true"),
        has=("variantType", "variantShredding-preview"),
        in_files="typed_value",
        changes=(DELETE, UPDATE, OPTIMIZE),
        made_by_reference=True,
    ),
    Feature("icebergCompatV1", properties={**_NAME, **_on(enableIcebergCompatV1="true")}, has=("icebergCompatV1",)),
    Feature("icebergCompatV2", properties={**_NAME, **_on(enableIcebergCompatV2="true")}, has=("icebergCompatV2",)),
    Feature(
        "icebergCompatV3",
        properties={**_NAME, **_on(enableIcebergCompatV3="true", enableRowTracking="true")},
        has=("icebergCompatV3",),
        written=False,
    ),
    Feature("checkpointProtection", properties=_supported("checkpointProtection"), has=("checkpointProtection",)),
    Feature(
        "materializePartitionColumns",
        properties=_supported("materializePartitionColumns"),
        has=("materializePartitionColumns",),
        partition=("p",),
    ),
    Feature(
        "typeWidening-preview, variantType-preview",
        properties=_supported("typeWidening-preview", "variantType-preview"),
        has=("typeWidening-preview", "variantType-preview"),
    ),
    Feature(
        "char and varchar",
        columns="id BIGINT, v VARCHAR(8), c CHAR(5)",
        select="id, concat('v', id) AS v, rpad(concat('c', id), 5, ' ') AS c",
        refused="id, 'longer than 8' AS v, 'c    ' AS c",
        made_by_reference=True,
    ),
    Feature(
        "column added later",
        then=("ALTER TABLE {t} ADD COLUMN (extra STRUCT<a: INT>)",),
        changes=(DELETE, UPDATE, _MERGE_V, OPTIMIZE),
        made_by_reference=True,
    ),
    Feature(
        "all features together",
        columns=_NESTED,
        select=_NESTED_SELECT,
        partition=("p",),
        properties={
            **_NAME,
            **_DVS,
            **_on(
                enableRowTracking="true",
                enableInCommitTimestamps="true",
                enableChangeDataFeed="true",
                checkpointPolicy="v2",
                checkpointInterval="4",
                enableTypeWidening="true",
            ),
        },
        has=("columnMapping", "deletionVectors", "rowTracking", "inCommitTimestamp", "v2Checkpoint", "typeWidening"),
    ),
)

_NULLED = "IF(id % 4 = 2, NULL, {})"
_TYPES: tuple[tuple[str, str, str, str], ...] = (
    # name, type, value of a row, what is unusual, in turn
    ("boolean", "BOOLEAN", "id % 2 = 0", "array(true, false)"),
    ("byte", "TINYINT", "CAST(id AS TINYINT)", "array(-128Y, 127Y)"),
    ("short", "SMALLINT", "CAST(id AS SMALLINT)", "array(-32768S, 32767S)"),
    ("integer", "INT", "CAST(id AS INT)", "array(CAST(-2147483648 AS INT), 2147483647)"),
    ("long", "BIGINT", "id * 1000000007", "array(-9223372036854775807L - 1L, 9223372036854775807L)"),
    ("float", "FLOAT", "CAST(id / 7 AS FLOAT)",
     "array(float('NaN'), float('-Infinity'), -0.0F, float('1.4E-45'), float('3.4028235E38'))"),
    ("double", "DOUBLE", "id / 7D",
     "array(double('NaN'), double('Infinity'), -0.0D, 4.9E-324D, 1.7976931348623157E308D)"),
    ("decimal", "DECIMAL(38, 10)", "CAST(id / 7 AS DECIMAL(38, 10))",
     "transform(array('9999999999999999999999999999.9999999999', '-0.0000000001'), e -> CAST(e AS DECIMAL(38, 10)))"),
    ("small decimal", "DECIMAL(9, 2)", "CAST(id / 7 AS DECIMAL(9, 2))",
     "array(CAST(-9999999.99 AS DECIMAL(9, 2)), CAST(0.01 AS DECIMAL(9, 2)))"),
    ("string", "STRING", "concat('s ', id)",
     ("array('', ' a=b/c%20d', 'ü€😀', repeat('x', 40), concat(repeat('😀', 31), 'é', repeat('z', 9)), "
      "'__HIVE_DEFAULT_PARTITION__')")),
    ("binary", "BINARY", "CAST(concat('b', id) AS BINARY)", "array(X'00FF', X'', X'E28028')"),
    ("date", "DATE", "date_add(DATE '2020-01-01', CAST(id AS INT))",
     "array(DATE '0001-01-01', DATE '9999-12-31', DATE '1582-10-04', DATE '1969-12-31')"),
    ("timestamp", "TIMESTAMP", "TIMESTAMP '2020-01-01 00:00:00.123456' + make_dt_interval(id)",
     ("array(TIMESTAMP '0001-01-01 00:00:00', TIMESTAMP '9999-12-31 23:59:59.999999', "
      "TIMESTAMP '1969-12-31 23:59:59.999999')")),
    ("timestamp_ntz", "TIMESTAMP_NTZ", "TIMESTAMP_NTZ '2020-01-01 00:00:00.123456' + make_dt_interval(id)",
     ("array(TIMESTAMP_NTZ '0001-01-01 00:00:00', TIMESTAMP_NTZ '9999-12-31 23:59:59.999999', "
      "TIMESTAMP_NTZ '1969-12-31 23:59:59')")),
)  # fmt: skip


_GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("boolean and integers", ("boolean", "byte", "short", "integer", "long")),
    ("float and double", ("float", "double")),
    ("decimal", ("decimal", "small decimal")),
    ("string", ("string",)),
    ("binary", ("binary",)),
    ("date, timestamp and timestamp_ntz", ("date", "timestamp", "timestamp_ntz")),
)


def value_of(value: str, unusual: str) -> str:
    """A usual value, null, and every third row one of the unusual ones in turn."""
    picked = f"IF(id % 3 = 0, element_at({unusual}, CAST((id / 3) % size({unusual}) + 1 AS INT)), {value})"
    return _NULLED.format(picked)


def _rows_of(names: tuple[str, ...]) -> list[tuple[str, str, str, str]]:
    """Of the types of one group: the column's suffix, type, usual and unusual values."""
    found = {row[0]: row for row in _TYPES}
    return [(f"c{i}", *found[name][1:]) for i, name in enumerate(names)]


def _of_types(name: str, members: tuple[str, ...]) -> Feature:
    columns, select = ["id BIGINT", "v STRING"], ["id", "concat('v', id) AS v"]
    for c, data_type, value, unusual in _rows_of(members):
        columns += [
            f"{c} {data_type}",
            f"s{c} STRUCT<c: {data_type}>",
            f"l{c} ARRAY<{data_type}>",
            f"m{c} MAP<INT, {data_type}>",
        ]
        select += [
            f"{value_of(value, unusual)} AS {c}",
            f"IF(id % 5 = 0, NULL, named_struct('c', {value_of(value, unusual)})) AS s{c}",
            f"IF(id % 7 = 0, NULL, array({value}, NULL)) AS l{c}",
            f"IF(id % 4 = 0, NULL, map(1, {value_of(value, unusual)})) AS m{c}",
        ]
    return Feature(
        f"type {name}",
        columns=", ".join(columns),
        select=", ".join(select),
        changes=(MERGE,),  # it deletes, updates and inserts
        where="c0 IS NULL OR sc0.c IS NOT NULL",
    )


def _by_partition(name: str, members: tuple[str, ...]) -> Feature:
    """One partition column per type; half of them null in a row is what a hive-style path has to show."""
    columns, select = ["id BIGINT", "v STRING"], ["id", "concat('v', id) AS v"]
    for c, data_type, value, anything in _rows_of(members):
        # the log keeps text, so we refuse other bytes; of Hive's name for null, the reference's OPTIMIZE makes a null
        unusual = anything.replace("X'00FF'", "X'4120E282AC'").replace("X'E28028'", "X'41'")
        unusual = unusual.replace(", '__HIVE_DEFAULT_PARTITION__'", "")
        columns.append(f"{c} {data_type}")
        select.append(f"{value_of(value.replace('id', '(id % 4)'), unusual)} AS {c}")
    return Feature(
        f"partition value {name}",
        columns=", ".join(columns),
        select=", ".join(select),
        partition=tuple(c for c, *_ in _rows_of(members)),
        changes=("DELETE FROM {t} WHERE c0 IS NULL", MERGE, OPTIMIZE),
        where="c0 IS NULL OR id > 11",
    )


TYPES = tuple(_of_types(*group) for group in _GROUPS)
PARTITION_VALUES = tuple(_by_partition(*group) for group in _GROUPS)
NESTED = (
    Feature("nested types", columns=_NESTED.replace("`a b`", "ab"), select=_NESTED_SELECT.replace("a b", "ab")),
    Feature(
        "maps and arrays of every depth",
        columns="id BIGINT, v STRING, a ARRAY<ARRAY<INT>>, m MAP<INT, MAP<STRING, ARRAY<DOUBLE>>>, "
        "k MAP<STRUCT<x: INT>, DATE>",
        select="id, concat('v', id) AS v, array(array(CAST(id AS INT), NULL), NULL, array()) AS a, "
        "map(1, map('x', array(1.5D, NULL)), 2, NULL, 3, map()) AS m, "
        "IF(id % 3 = 0, NULL, map(named_struct('x', CAST(id AS INT)), DATE '2020-01-01')) AS k",
        changes=(MERGE,),
    ),
)
ALL = (*TABLE_FEATURES, *TYPES, *NESTED, *PARTITION_VALUES)
TYPE_ROWS = _TYPES
# what a bounded run takes of them: each meets another part of reading and writing
BOUNDED = {
    "checkConstraints",
    "columnMapping name",
    "changeDataFeed with deletionVectors",
    "inCommitTimestamp",
    "typeWidening",
    "variantType",
    "all features together",
    "type float and double",
    "nested types",
    "partition value date, timestamp and timestamp_ntz",
}
