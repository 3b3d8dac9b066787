from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from delta_pyds.errors import ConstraintViolationError, DeltaError, UserError
from delta_pyds.protocol.actions import Metadata, Protocol
from delta_pyds.protocol.features import lowest_protocol
from delta_pyds.protocol.schema import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TYPE_CHANGES,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    display,
    schema_to_string,
)
from delta_pyds.table.configuration import TableConfiguration, load_configuration
from delta_pyds.table.definition.column_mapping import assign_columns
from delta_pyds.table.definition.schema_enforcement import enforce_schema, tree
from tests.support.scans import struct_of

IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
GENERATED = {"delta.generationExpression": "c + 1"}
INVARIANT = {"delta.invariants": '{"expression": {"expression": "c > 3"}}'}


def table(
    schema: StructType,
    *features: str,
    partitions: tuple[str, ...] = (),
    protocol: Protocol | None = None,
    **configuration: str,
) -> TableConfiguration:
    metadata = Metadata(
        id="t",
        schema_string=schema_to_string(schema),
        partition_columns=list(partitions),
        configuration={f"delta.{k.replace('_', '.')}": v for k, v in configuration.items()},
    )
    return load_configuration("/t", 3, protocol or lowest_protocol({"appendOnly", "invariants", *features}), metadata)


def widening(schema: StructType, *features: str, **options: Any) -> TableConfiguration:
    return table(schema, "typeWidening", *features, enableTypeWidening="true", **options)


def enforce(configuration: TableConfiguration, incoming: StructType, merge_schema: bool = False) -> StructType:
    return enforce_schema(configuration, incoming, merge_schema=merge_schema)


def refusal(configuration: TableConfiguration, incoming: StructType, merge_schema: bool = False) -> DeltaError:
    with pytest.raises(DeltaError) as error:
        enforce(configuration, incoming, merge_schema)
    assert "/t" in error.value.message
    return error.value


@pytest.mark.parametrize("merge_schema", [False, True])
def test_names_match_without_case_and_the_table_spells_them(merge_schema: bool) -> None:
    target = table(struct_of(Id=LONG, S=struct_of(InnerName=LONG), A=ArrayType(struct_of(X=LONG))))
    incoming = struct_of(a=ArrayType(struct_of(x=LONG)), iD=LONG, s=struct_of(innername=LONG))
    assert enforce(target, incoming, merge_schema) is target.schema


def test_missing_columns_are_allowed_where_they_can_be_null() -> None:
    target = table(struct_of(id=LONG, s=struct_of(x=LONG, y=LONG)))
    assert enforce(target, struct_of(s=struct_of(y=LONG))) is target.schema


def test_a_missing_column_that_cannot_be_null_is_refused() -> None:
    target = table(StructType((StructField("id", LONG, False), StructField("v", LONG))))
    error = refusal(target, struct_of(v=LONG))
    assert isinstance(error, ConstraintViolationError)
    assert (error.code, error.parameters["column"]) == ("DELTA_MISSING_NOT_NULL_COLUMN_VALUE", "id")
    nested = table(struct_of(s=StructType((StructField("x", LONG, False), StructField("y", LONG)))))
    assert refusal(nested, struct_of(s=struct_of(y=LONG))).parameters["column"] == "s.x"


@pytest.mark.parametrize(
    ("metadata", "feature"),
    [
        ({"CURRENT_DEFAULT": "1"}, "allowColumnDefaults"),
        ({"delta.generationExpression": "v + 1"}, "generatedColumns"),
        (IDENTITY, "identityColumns"),
    ],
)
def test_a_column_that_the_table_fills_may_be_missing(metadata: dict[str, Any], feature: str) -> None:
    schema = StructType((StructField("id", LONG, False, metadata), StructField("v", LONG)))
    target = table(schema, feature)
    assert enforce(target, struct_of(v=LONG)) is target.schema
    # without the feature the metadata means nothing
    assert refusal(table(schema), struct_of(v=LONG)).code == "DELTA_MISSING_NOT_NULL_COLUMN_VALUE"
    partitioned = table(schema, feature, partitions=("id",))
    assert enforce(partitioned, struct_of(v=LONG)) is partitioned.schema


def test_a_missing_partition_column_is_refused() -> None:
    target = table(struct_of(id=LONG, p=STRING), partitions=("p",))
    assert refusal(target, struct_of(id=LONG)).code == "DELTA_PARTITION_COLUMN_NOT_FOUND"


def test_extra_columns_are_refused_together_and_both_schemas_are_shown() -> None:
    target = table(struct_of(id=LONG, s=struct_of(x=LONG)))
    error = refusal(target, struct_of(id=LONG, extra=STRING, s=struct_of(x=LONG, more=DATE)))
    assert error.code == "DELTA_METADATA_MISMATCH"
    assert error.parameters["columns"] == ["s.more", "extra"]
    assert "mergeSchema=true" in error.message
    assert tree(target.schema) in error.message
    assert " |-- extra: string (nullable = true)" in error.message


def test_the_tree_shows_every_part() -> None:
    schema = StructType(
        (
            StructField("id", LONG, False),
            StructField("a", ArrayType(struct_of(x=DecimalType(5, 2)), False)),
            StructField("m", MapType(STRING, LONG)),
        )
    )
    assert tree(schema).splitlines() == [
        "root",
        " |-- id: bigint (nullable = false)",
        " |-- a: array (nullable = true)",
        " |    |-- element: struct (containsNull = false)",
        " |    |    |-- x: decimal(5,2) (nullable = true)",
        " |-- m: map (nullable = true)",
        " |    |-- key: string",
        " |    |-- value: bigint (valueContainsNull = true)",
    ]


def test_columns_that_differ_in_case_alone_are_refused() -> None:
    with pytest.raises(UserError) as error:
        enforce(table(struct_of(id=LONG)), struct_of(id=LONG, ID=LONG))
    assert error.value.code == "DELTA_DUPLICATE_COLUMNS_FOUND.DATA"


ACCEPTED = [
    (BYTE, LONG), (INTEGER, DOUBLE), (FLOAT, DOUBLE), (LONG, DecimalType(19, 0)),
    (DecimalType(5, 2), DecimalType(7, 3)), (INTEGER, BYTE), (INTEGER, SHORT), (SHORT, BYTE), (VOID, DATE),
    (VARIANT, VARIANT),
]  # fmt: skip
REFUSED = [
    (LONG, INTEGER), (LONG, DOUBLE), (DOUBLE, FLOAT), (STRING, LONG), (LONG, STRING), (DATE, TIMESTAMP),
    (DATE, TIMESTAMP_NTZ), (TIMESTAMP, TIMESTAMP_NTZ), (TIMESTAMP, DATE), (DecimalType(7, 3), DecimalType(5, 2)),
    (LONG, DecimalType(18, 0)), (STRING, struct_of(x=LONG)), (struct_of(x=LONG), STRING), (ArrayType(LONG), LONG),
    (MapType(STRING, LONG), struct_of(x=LONG)), (struct_of(value=LONG), VARIANT), (INTEGER, FLOAT),
]  # fmt: skip
WRAPPERS: list[Any] = [
    lambda t: t,
    ArrayType,
    lambda t: MapType(STRING, t),
    lambda t: StructType((StructField("f", t),)),
    lambda t: ArrayType(StructType((StructField("f", MapType(LONG, t)),))),
]


@pytest.mark.parametrize("wrap", WRAPPERS)
@pytest.mark.parametrize(("incoming", "column"), ACCEPTED, ids=display)
@pytest.mark.parametrize("merge_schema", [False, True])
def test_types_that_lose_nothing_or_are_checked_by_row_are_accepted_at_every_level(
    incoming: DataType, column: DataType, wrap: Any, merge_schema: bool
) -> None:
    target = table(struct_of(c=wrap(column)))
    assert enforce(target, struct_of(c=wrap(incoming)), merge_schema) is target.schema


@pytest.mark.parametrize("wrap", WRAPPERS)
@pytest.mark.parametrize(("incoming", "column"), REFUSED, ids=display)
@pytest.mark.parametrize("merge_schema", [False, True])
def test_types_that_could_lose_something_are_refused_and_both_are_shown(
    incoming: DataType, column: DataType, wrap: Any, merge_schema: bool
) -> None:
    error = refusal(table(struct_of(c=wrap(column))), struct_of(c=wrap(incoming)), merge_schema)
    assert error.code == "DELTA_FAILED_TO_MERGE_FIELDS"
    assert f"of type {display(column)}" in error.message
    assert f"have type {display(incoming)}," in error.message
    assert error.parameters["column"].startswith("c")


def test_void_columns_of_the_data_hold_nothing_that_a_table_would_need() -> None:
    target = table(struct_of(id=LONG, s=struct_of(x=LONG)))
    incoming = struct_of(id=VOID, s=struct_of(x=LONG, nothing=VOID), nothing=VOID)
    for merge_schema in (False, True):
        assert enforce(target, incoming, merge_schema) is target.schema


def test_a_void_column_of_the_table_gets_a_type_with_merge_schema_only() -> None:
    target = table(struct_of(id=LONG, v=VOID))
    assert refusal(target, struct_of(v=DATE)).code == "DELTA_METADATA_MISMATCH"
    assert enforce(target, struct_of(v=DATE), True) == struct_of(id=LONG, v=DATE)
    assert enforce(target, struct_of(v=VOID)) is target.schema


# evolution


def test_new_columns_and_fields_are_appended_and_nullable() -> None:
    target = table(struct_of(id=LONG, s=struct_of(x=LONG), a=ArrayType(struct_of(x=LONG))))
    strict = StructType((StructField("deep", LONG, False),))
    incoming = StructType(
        (
            StructField("new", strict, False, {"comment": "c", "CURRENT_DEFAULT": "1", "delta.invariants": "{}"}),
            StructField("A", ArrayType(struct_of(Y=LONG, X=LONG))),
            StructField("S", struct_of(y=DATE)),
        )
    )
    evolved = enforce(target, incoming, True)
    assert evolved.names == ("id", "s", "a", "new")
    assert evolved.fields[1].data_type == struct_of(x=LONG, y=DATE)
    assert evolved.fields[2].data_type == ArrayType(struct_of(x=LONG, Y=LONG))
    new = evolved.fields[3]
    assert (new.data_type, new.nullable, new.metadata) == (struct_of(deep=LONG), True, {"comment": "c"})


@pytest.mark.parametrize(
    ("incoming", "code"),
    [
        (struct_of(**{"a b": LONG}), "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        (struct_of(s=StructType((StructField("x=", LONG),))), "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        (struct_of(a=ArrayType(VOID)), "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"),
        (struct_of(s=struct_of(x=VOID)), "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"),
        (struct_of(s=StructType(())), "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"),
    ],
)
def test_columns_that_no_table_can_have_are_not_added(incoming: StructType, code: str) -> None:
    with pytest.raises(UserError) as error:
        enforce(table(struct_of(id=LONG)), incoming, True)
    assert error.value.code == code


def test_what_the_table_has_already_is_not_judged_when_columns_are_added() -> None:
    odd = StructType((StructField("x", LONG, False),))
    target = table(StructType((StructField("a b", LONG), StructField("l", ArrayType(odd)))))
    assert enforce(target, struct_of(new=LONG), True).names == ("a b", "l", "new")


def test_names_that_the_table_keeps_for_itself_cannot_be_written() -> None:
    feed = table(struct_of(id=LONG), "changeDataFeed", enableChangeDataFeed="true")
    assert refusal(feed, struct_of(id=LONG, _Change_Type=STRING), True).code == "RESERVED_CDC_COLUMNS_ON_WRITE"
    tracked = table(
        struct_of(id=LONG),
        "rowTracking",
        "domainMetadata",
        rowTracking_materializedRowIdColumnName="_row-id-col-1",
    )
    with pytest.raises(UserError) as error:
        enforce(tracked, struct_of(**{"_row-id-col-1": LONG}), True)
    assert error.value.code == "DELTA_ADDING_COLUMN_WITH_INTERNAL_NAME_FAILED"


def test_new_columns_get_ids_and_names_above_all_old_ones() -> None:
    schema, _ = assign_columns(struct_of(id=LONG, s=struct_of(x=LONG)), 0)
    target = table(schema, "columnMapping", columnMapping_mode="name", columnMapping_maxColumnId="9")
    evolved = enforce(target, struct_of(**{"s": struct_of(x=LONG, y=LONG), "a b": struct_of(z=LONG)}), True)
    assert [f.field_id for f in evolved] == [1, 2, 11]
    s, added = evolved.fields[1].data_type, evolved.fields[2]
    assert isinstance(s, StructType)
    assert [f.field_id for f in s] == [3, 10]
    assert added.physical_name.startswith("col-")
    assert evolved.fields[0].metadata == schema.fields[0].metadata
    assert enforce(target, struct_of(id=LONG), True) is target.schema


def iceberg(made: Callable[..., TableConfiguration], columns: StructType) -> TableConfiguration:
    schema, max_id = assign_columns(columns, 0, nested_ids=True)
    properties = {"columnMapping_mode": "name", "columnMapping_maxColumnId": str(max_id)}
    return made(schema, "columnMapping", "icebergCompatV2", **properties, enableIcebergCompatV2="true")


def test_under_iceberg_compatibility_new_elements_get_ids_and_refused_types_stay_out() -> None:
    target = iceberg(table, struct_of(id=LONG))
    added = enforce(target, struct_of(a=ArrayType(LONG)), True).fields[1]
    assert added.metadata["delta.columnMapping.nested.ids"] == {f"{added.physical_name}.element": 3}
    with pytest.raises(UserError) as error:
        enforce(target, struct_of(v=VARIANT), True)
    assert error.value.code == "DELTA_ICEBERG_COMPAT_VIOLATION.UNSUPPORTED_DATA_TYPE"


# wider types


@pytest.mark.parametrize(
    ("column", "incoming"),
    [(BYTE, SHORT), (INTEGER, LONG), (FLOAT, DOUBLE), (INTEGER, DOUBLE), (DecimalType(5, 2), DecimalType(8, 3))],
)
def test_columns_become_wider_where_the_table_allows_it_and_it_is_recorded(
    column: DataType, incoming: DataType
) -> None:
    target = widening(struct_of(c=column))
    [c] = enforce(target, struct_of(c=incoming), True)
    assert c.data_type == incoming
    [change] = c.metadata[TYPE_CHANGES]
    assert set(change) == {"fromType", "toType"}


def test_nested_types_become_wider_with_their_path() -> None:
    target = widening(struct_of(m=MapType(STRING, ArrayType(INTEGER)), s=ArrayType(struct_of(x=INTEGER))))
    m, s = enforce(target, struct_of(m=MapType(STRING, ArrayType(LONG)), s=ArrayType(struct_of(x=LONG))), True)
    assert m.metadata[TYPE_CHANGES] == [{"fromType": "integer", "toType": "long", "fieldPath": "value.element"}]
    assert s.metadata == {}
    assert isinstance(s.data_type, ArrayType)
    assert isinstance(s.data_type.element_type, StructType)
    assert s.data_type.element_type.fields[0].metadata[TYPE_CHANGES] == [{"fromType": "integer", "toType": "long"}]


def test_without_all_that_it_takes_a_column_does_not_become_wider() -> None:
    schema = struct_of(c=INTEGER)
    enabled = widening(schema)
    assert "enableTypeWidening" in refusal(enabled, struct_of(c=LONG)).message
    off = table(schema, "typeWidening")
    assert refusal(off, struct_of(c=LONG), True).code == "DELTA_FAILED_TO_MERGE_FIELDS"
    unsupported = table(schema, enableTypeWidening="true")
    assert refusal(unsupported, struct_of(c=LONG), True).code == "DELTA_FAILED_TO_MERGE_FIELDS"
    preview = table(schema, "typeWidening-preview", enableTypeWidening="true")
    assert refusal(preview, struct_of(c=LONG), True).code == "DELTA_FAILED_TO_MERGE_FIELDS"
    # narrower values go into the wide column as they are
    assert enforce(enabled, struct_of(c=BYTE), True) is enabled.schema


def test_partition_columns_become_wider_too() -> None:
    target = widening(struct_of(c=INTEGER, id=LONG), partitions=("c",))
    c, _ = enforce(target, struct_of(c=LONG, id=LONG), True).fields
    assert (c.data_type, c.metadata[TYPE_CHANGES]) == (LONG, [{"fromType": "integer", "toType": "long"}])
    assert refusal(target, struct_of(c=LONG, id=LONG)).code == "DELTA_FAILED_TO_MERGE_FIELDS"


def test_iceberg_compatibility_limits_how_wide_columns_become() -> None:
    target = iceberg(widening, struct_of(c=INTEGER))
    assert enforce(target, struct_of(c=LONG), True).fields[0].data_type == LONG
    assert refusal(target, struct_of(c=DOUBLE), True).code == "DELTA_FAILED_TO_MERGE_FIELDS"


@pytest.mark.parametrize(
    ("schema", "configuration", "code"),
    [
        (struct_of(c=INTEGER), {"constraints_x": "C > 0"}, "DELTA_CONSTRAINT_DATA_TYPE_MISMATCH"),
        (struct_of(c=INTEGER), {"constraints_x": "`c`.d > 0"}, "DELTA_CONSTRAINT_DATA_TYPE_MISMATCH"),
        (
            StructType((StructField("c", INTEGER), StructField("g", LONG, True, GENERATED))),
            {},
            "DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH",
        ),
        (
            StructType((StructField("c", INTEGER, True, {"delta.generationExpression": "d + 1"}),)),
            {},
            "DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH",
        ),
        (
            StructType((StructField("c", INTEGER, True, INVARIANT),)),
            {},
            "DELTA_CONSTRAINT_DATA_TYPE_MISMATCH",
        ),
    ],
)  # fmt: skip
def test_what_expressions_use_does_not_become_wider(
    schema: StructType, configuration: dict[str, str], code: str
) -> None:
    assert refusal(widening(schema, **configuration), struct_of(c=LONG), True).code == code


def test_expressions_on_other_columns_do_not_hinder() -> None:
    target = widening(struct_of(c=INTEGER, cc=LONG, s=struct_of(x=LONG)), constraints_x="cc > 0 and s.x > 0")
    evolved = enforce(target, struct_of(c=LONG, s=struct_of(x=LONG, y=LONG)), True)
    assert evolved.fields[0].data_type == LONG
    assert evolved.fields[2].data_type == struct_of(x=LONG, y=LONG)
