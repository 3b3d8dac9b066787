"""Changes of a table's schema that a running stream allows."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from delta_pyds.errors import UserError
from delta_pyds.protocol.actions import Metadata, Protocol
from delta_pyds.protocol.schema import (
    COLUMN_MAPPING_ID,
    COLUMN_MAPPING_PHYSICAL_NAME,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    schema_to_string,
)
from delta_pyds.table.change_feed.computed import check_change_feed
from delta_pyds.table.configuration import TableConfiguration, load_configuration
from delta_pyds.table.stream.schema import TypeChange, check_stream_schema, schema_step

USE_LOG = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
CHANGED = "DELTA_SCHEMA_CHANGED_WITH_VERSION"
CHANGED_START = "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"
FINE = None
WIDENING = Protocol(3, 7, ["columnMapping", "typeWidening"], ["columnMapping", "typeWidening"])
ANY_MAPPING = Protocol(2, 5)


def field(name: str, data_type: DataType = STRING, physical: str | None = None, nullable: bool = True) -> StructField:
    """``physical``: the name under column mapping; its digits are the id."""
    metadata: dict[str, Any] = {}
    if physical is not None:
        number = int("".join(c for c in physical if c.isdigit()) or 0)
        metadata = {COLUMN_MAPPING_PHYSICAL_NAME: physical, COLUMN_MAPPING_ID: number}
    return StructField(name, data_type, nullable, metadata)


def struct(*fields: StructField) -> StructType:
    return StructType(fields)


def table(
    schema: StructType,
    version: int = 5,
    *,
    mode: str = "none",
    protocol: Protocol = ANY_MAPPING,
    partitions: list[str] | None = None,
    table_id: str = "the-table",
    **properties: str,
) -> TableConfiguration:
    configuration: dict[str, str | None] = {"delta.columnMapping.mode": mode}
    configuration |= {f"delta.{k}": v for k, v in properties.items()}
    metadata = Metadata(
        id=table_id,
        schema_string=schema_to_string(schema),
        partition_columns=partitions or [],
        configuration=configuration,
    )
    return load_configuration("/the/table", version, protocol, metadata)


def outcome(
    read: TableConfiguration, found: TableConfiguration, *, change_feed: bool = False, starting_given: bool = False
) -> UserError | None:
    try:
        check_stream_schema(
            read,
            found,
            backfilling=found.version < read.version,
            compute_changes="never" if change_feed else None,
            starting_given=starting_given,
        )
    except UserError as error:
        return error
    return None


# --- kinds of changes: (old fields, new fields), each at the top of the schema, in a struct, an array and a map

A = field("a", INTEGER, "p1")
B = field("b", STRING, "p2")
KINDS: dict[str, tuple[StructType, StructType]] = {
    "nothing": (struct(A, B), struct(A, B)),
    "reordered": (struct(A, B), struct(B, A)),
    "added": (struct(A), struct(A, B)),
    "added, not null": (struct(A), struct(A, field("b", STRING, "p2", nullable=False))),
    "dropped": (struct(A, B), struct(A)),
    "renamed": (struct(A, B), struct(A, field("c", STRING, "p2"))),
    "replaced": (struct(A, B), struct(A, field("b", STRING, "p3"))),
    "swapped": (struct(A, B), struct(field("b", INTEGER, "p1"), field("a", STRING, "p2"))),
    "nulls allowed": (struct(A, field("b", STRING, "p2", nullable=False)), struct(A, B)),
    "nulls forbidden": (struct(A, B), struct(A, field("b", STRING, "p2", nullable=False))),
    "widened": (struct(A, B), struct(field("a", LONG, "p1"), B)),
    "narrowed": (struct(field("a", LONG, "p1"), B), struct(A, B)),
    "retyped": (struct(A, B), struct(field("a", STRING, "p1"), B)),
    "void filled": (struct(A, field("b", VOID, "p2")), struct(A, B)),
}
NESTINGS: dict[str, Callable[[StructType], StructType]] = {
    "top": lambda s: s,
    "struct": lambda s: struct(field("id", LONG, "p8"), field("s", s, "p9")),
    "array": lambda s: struct(field("id", LONG, "p8"), field("s", ArrayType(s), "p9")),
    "map": lambda s: struct(field("id", LONG, "p8"), field("s", MapType(STRING, s), "p9")),
}

# (mapped, without mapping), each (while the stream runs, when it reads older commits); R: a restart gets past it
R, N = "retryable", "not retryable"
EXPECTED: dict[str, tuple[tuple[Any, Any], tuple[Any, Any]]] = {
    "nothing": ((FINE, FINE), (FINE, FINE)),
    "reordered": ((FINE, FINE), (FINE, FINE)),
    "added": (((CHANGED, R), FINE), ((CHANGED, R), FINE)),
    "added, not null": (((CHANGED, N), (CHANGED, N)), ((CHANGED, N), (CHANGED, N))),
    "dropped": (((USE_LOG, N), (USE_LOG, N)), (FINE, (CHANGED, N))),
    "renamed": (((USE_LOG, N), (USE_LOG, N)), ((CHANGED, N), (CHANGED, N))),
    "replaced": (((USE_LOG, N), (USE_LOG, N)), (FINE, FINE)),
    "swapped": (((USE_LOG, N), (USE_LOG, N)), ((CHANGED, N), (CHANGED, N))),
    "nulls allowed": (((CHANGED, R), FINE), ((CHANGED, R), FINE)),
    "nulls forbidden": ((FINE, (CHANGED, N)), (FINE, (CHANGED, N))),
    "widened": (((USE_LOG, R), FINE), ((USE_LOG, R), FINE)),
    "narrowed": (((CHANGED, N), (CHANGED, N)), ((CHANGED, N), (CHANGED, N))),
    "retyped": (((CHANGED, N), (CHANGED, N)), ((CHANGED, N), (CHANGED, N))),
    "void filled": (((CHANGED, R), FINE), ((CHANGED, R), FINE)),
}


@pytest.mark.parametrize("nesting", NESTINGS)
@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("backfilling", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_change_of_columns(kind: str, backfilling: bool, mapped: bool, nesting: str) -> None:
    mode = "name" if mapped else "none"
    old, new = (
        table(NESTINGS[nesting](s), version, mode=mode, protocol=WIDENING)
        for s, version in zip(KINDS[kind], (5, 9), strict=True)
    )
    read, found = (new, old) if backfilling else (old, new)
    error = outcome(read, found)
    expected = EXPECTED[kind][not mapped][backfilling]
    if expected is None:
        assert error is None
    else:
        assert error is not None
        assert (error.code, error.parameters["retryable"]) == (expected[0], expected[1] == R)
        assert error.parameters["version"] == found.version
        assert error.parameters["table"] == "/the/table"
        assert "/the/table" in error.message and f"version {found.version}" in error.message


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mapped", [True, False])
def test_what_is_called_retryable_gets_past_the_change_after_a_restart(kind: str, mapped: bool) -> None:
    mode = "name" if mapped else "none"
    old, new = (table(s, version, mode=mode, protocol=WIDENING) for s, version in zip(KINDS[kind], (5, 9), strict=True))
    error = outcome(old, new)
    if error is not None:
        after_restart = outcome(new, old)
        assert (after_restart is None) == error.parameters["retryable"]
        assert ("restart" in error.message) or not error.parameters["retryable"]


@pytest.mark.parametrize("kind", [k for k, v in EXPECTED.items() if v[1][0] == (CHANGED, N)])
def test_an_error_that_no_restart_helps_says_how_to_start_anew(kind: str) -> None:
    old, new = (table(s, version) for s, version in zip(KINDS[kind], (5, 9), strict=True))
    plain, with_start = outcome(old, new), outcome(old, new, starting_given=True)
    assert plain is not None and with_start is not None
    assert (plain.code, with_start.code) == (CHANGED, CHANGED_START)
    for error in (plain, with_start):
        assert "new checkpoint location" in error.message and "A restart does not help" in error.message
    assert "startingVersion" in with_start.message and "startingVersion" not in plain.message


def test_an_additive_change_is_retryable_whatever_the_start_was() -> None:
    error = outcome(table(struct(A)), table(struct(A, B), 6), starting_given=True)
    assert error is not None and error.code == CHANGED and error.parameters["retryable"] is True
    assert "restart" in error.message and "mergeSchema" in error.message


def test_a_rename_names_both_columns_and_the_way_on() -> None:
    old = table(struct(A, field("s", struct(B), "p9")), 5, mode="name")
    new = table(struct(A, field("s", struct(field("c", STRING, "p2")), "p9")), 9, mode="name")
    for read, found in ((old, new), (new, old)):
        error = outcome(read, found)
        assert error is not None and error.code == USE_LOG
        assert "'s.b' was renamed to 's.c'" in error.message
        assert "schemaTrackingLocation" in error.message and "checkpoint location" in error.message


def test_a_dropped_column_is_named() -> None:
    error = outcome(table(struct(A, B), 5, mode="name"), table(struct(A), 9, mode="name"))
    assert error is not None and "'b' was dropped" in error.message


def test_a_rename_together_with_an_addition_is_no_addition() -> None:
    new = struct(A, field("c", STRING, "p2"), field("d", STRING, "p4"))
    error = outcome(table(struct(A, B), 5, mode="name"), table(new, 9, mode="name"))
    assert error is not None and error.code == USE_LOG and error.parameters["retryable"] is False


def test_a_rename_together_with_a_wider_type_names_both() -> None:
    new = struct(field("a", LONG, "p1"), field("c", STRING, "p2"))
    error = outcome(
        table(struct(A, B), 5, mode="name", protocol=WIDENING), table(new, 9, mode="name", protocol=WIDENING)
    )
    assert error is not None and error.code == USE_LOG and error.parameters["retryable"] is False
    assert "'b' was renamed to 'c'" in error.message and "'a' from int to bigint" in error.message


# --- wider types


@pytest.mark.parametrize("feature", ["typeWidening", "typeWidening-preview"])
def test_a_wider_type_stops_a_running_stream_and_not_one_that_reads_older_rows(feature: str) -> None:
    protocol = Protocol(3, 7, [feature], [feature])
    old, new = table(struct(A), 5, protocol=protocol), table(struct(field("a", DOUBLE)), 9, protocol=protocol)
    error = outcome(old, new)
    assert error is not None and error.code == USE_LOG and "'a' from int to double" in error.message
    assert outcome(new, old) is None


def test_the_feature_may_come_with_the_change() -> None:
    old, new = table(struct(A), 5), table(struct(field("a", LONG)), 9, protocol=WIDENING)
    error = outcome(old, new)
    assert error is not None and error.parameters["retryable"] is True
    assert outcome(new, old) is None


def test_without_type_widening_a_wider_type_is_another_type() -> None:
    old, new = table(struct(A), 5), table(struct(field("a", LONG)), 9)
    for read, found in ((old, new), (new, old)):
        error = outcome(read, found)
        assert error is not None and error.code == CHANGED and error.parameters["retryable"] is False


def test_a_wider_type_beside_another_type_is_not_retryable() -> None:
    old = table(struct(A, B), 5, protocol=WIDENING)
    new = table(struct(field("a", LONG), field("b", INTEGER)), 9, protocol=WIDENING)
    error = outcome(old, new)
    assert error is not None and error.code == CHANGED and error.parameters["retryable"] is False


# --- column mapping on and off


def test_column_mapping_turned_on_without_a_rename_goes_unnoticed() -> None:
    off, on = table(struct(A, B), 5), table(struct(field("a", INTEGER, "a"), field("b", STRING, "b")), 9, mode="name")
    assert outcome(off, on) is None
    assert outcome(on, off) is None


@pytest.mark.parametrize("backfilling", [False, True])
def test_column_mapping_turned_on_with_a_rename_behind_it_is_refused(backfilling: bool) -> None:
    off, on = table(struct(A, B), 5), table(struct(field("a", INTEGER, "a"), field("c", STRING, "b")), 9, mode="name")
    error = outcome(on, off) if backfilling else outcome(off, on)
    assert error is not None and error.code == USE_LOG and "'b' was renamed to 'c'" in error.message


@pytest.mark.parametrize("backfilling", [False, True])
def test_column_mapping_turned_off_where_names_were_others_is_refused(backfilling: bool) -> None:
    on, off = table(struct(A, B), 5, mode="name"), table(struct(field("a", INTEGER), field("b")), 9)
    error = outcome(off, on) if backfilling else outcome(on, off)
    assert error is not None and error.code == USE_LOG


@pytest.mark.parametrize("modes", [("none", "id"), ("name", "id"), ("id", "name"), ("id", "none")])
def test_columns_found_by_id_and_by_name_do_not_mix(modes: tuple[str, str]) -> None:
    schema = struct(field("a", INTEGER, "a"))
    error = outcome(table(schema, 5, mode=modes[0]), table(schema, 9, mode=modes[1]))
    assert error is not None and error.code == USE_LOG and f"from {modes[0]} to {modes[1]}" in error.message


# --- partitions, identity, change data


@pytest.mark.parametrize("mode", ["none", "name"])
@pytest.mark.parametrize("versions", [(5, 9), (9, 5)])
@pytest.mark.parametrize("starting_given", [False, True])
def test_other_partition_columns_are_refused(mode: str, versions: tuple[int, int], starting_given: bool) -> None:
    read = table(struct(A, B), versions[0], mode=mode, partitions=["b"])
    found = table(struct(A, B), versions[1], mode=mode)
    error = outcome(read, found, starting_given=starting_given)
    assert error is not None and error.code == (CHANGED_START if starting_given else CHANGED)
    assert error.parameters["retryable"] is False
    assert "partitioned by nothing" in error.message and f"by b at version {read.version}" in error.message


def test_another_table_at_the_path_is_refused_before_anything_else() -> None:
    error = outcome(table(struct(A)), table(struct(B), 6, table_id="another"))
    assert error is not None and error.code == "DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
    assert "another" in error.message and "the-table" in error.message


def test_a_change_feed_needs_change_data_at_every_version() -> None:
    read = table(struct(A), 5, enableChangeDataFeed="true")
    off = table(struct(A), 6, enableChangeDataFeed="false")
    error = outcome(read, off, change_feed=True)
    assert error is not None and error.code == "DELTA_MISSING_CHANGE_DATA" and "version 6" in error.message
    assert outcome(read, off) is None
    assert outcome(read, table(struct(A), 6, enableChangeDataFeed="true"), change_feed=True) is None
    with pytest.raises(UserError, match="computed at version 6"):
        check_change_feed(off, "never")


def test_properties_and_comments_do_not_stop_a_stream() -> None:
    noted = StructField("a", INTEGER, True, {"comment": "new", "CURRENT_DEFAULT": "1"})
    assert outcome(table(struct(field("a", INTEGER))), table(struct(noted), 6, appendOnly="true")) is None


def test_an_error_survives_the_way_to_another_process() -> None:
    error = outcome(table(struct(A, B), mode="name"), table(struct(A), 9, mode="name"))
    assert error is not None
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.code, copy.message, copy.parameters) == (error.code, error.message, error.parameters)


# --- steps


def test_a_step_names_columns_by_where_they_are_now_and_were() -> None:
    inner = struct(field("x", DecimalType(5, 2), "p3"), field("y", STRING, "p4"))
    old = struct(field("m", MapType(inner, ArrayType(INTEGER)), "p1"), field("gone", STRING, "p2"))
    inner = struct(field("z", DecimalType(7, 2), "p3"))
    new = struct(field("n", MapType(inner, ArrayType(LONG)), "p1"), field("gone", STRING, "p5"))
    step = schema_step(old, new)
    assert step.renamed == (("m", "n"), ("m.key.x", "n.key.z"))
    assert step.dropped == ("m.key.y", "gone")
    assert step.retyped == (
        TypeChange("n.key.z", DecimalType(5, 2), DecimalType(7, 2)),
        TypeChange("n.value.element", INTEGER, LONG),
    )
    assert all(change.widens for change in step.retyped)
    assert not schema_step(new, new) and step


def test_another_kind_of_type_is_a_change_of_type() -> None:
    step = schema_step(struct(field("a", ArrayType(STRING))), struct(field("a", struct(B))))
    assert [change.column for change in step.retyped] == ["a"] and not step.retyped[0].widens


def test_a_column_that_could_hold_nothing_but_null_may_get_any_type() -> None:
    assert not schema_step(struct(field("a", VOID)), struct(field("a", STRING)))
    assert schema_step(struct(field("a", STRING)), struct(field("a", VOID))).retyped
