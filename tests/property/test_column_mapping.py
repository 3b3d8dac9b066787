"""Column mapping through any evolution: ids are unique, never given twice, and never change."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from delta_pyds.protocol.schema import COLUMN_MAPPING_NESTED_IDS as NESTED_IDS
from delta_pyds.protocol.schema import (
    LONG,
    STRING,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from delta_pyds.table.definition.column_mapping import assign_columns, max_column_id

leaves = st.sampled_from([LONG, STRING])
names = st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=4, unique=True)


def structs(children: st.SearchStrategy[DataType]) -> st.SearchStrategy[StructType]:
    return names.flatmap(
        lambda chosen: st.tuples(*(children for _ in chosen)).map(
            lambda types: StructType(tuple(StructField(n, t) for n, t in zip(chosen, types, strict=True)))
        )
    )


types: st.SearchStrategy[DataType] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        structs(inner), inner.map(ArrayType), st.tuples(inner, inner).map(lambda pair: MapType(*pair))
    ),
    max_leaves=8,
)
schemas = structs(types)


def fields(data_type: DataType, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], StructField]]:
    if isinstance(data_type, StructType):
        for f in data_type:
            yield (*path, f.name), f
            yield from fields(f.data_type, (*path, f.name))
    elif isinstance(data_type, ArrayType):
        yield from fields(data_type.element_type, (*path, "[]"))
    elif isinstance(data_type, MapType):
        yield from fields(data_type.key_type, (*path, "{k}"))
        yield from fields(data_type.value_type, (*path, "{v}"))


def parts(data_type: DataType) -> int:
    """The number of elements, keys and values that the type has, not counting those of fields inside it."""
    if isinstance(data_type, ArrayType):
        return 1 + parts(data_type.element_type)
    if isinstance(data_type, MapType):
        return 2 + parts(data_type.key_type) + parts(data_type.value_type)
    return 0


def all_ids(schema: StructType) -> list[int]:
    found = []
    for _, f in fields(schema):
        assert f.field_id is not None
        found += [f.field_id, *f.metadata.get(NESTED_IDS, {}).values()]
    return found


@given(schemas, st.booleans(), st.integers(0, 1000))
def test_every_part_has_an_id_of_its_own_above_all_old_ones(schema: StructType, nested: bool, start: int) -> None:
    assigned, max_id = assign_columns(schema, start, nested_ids=nested)
    numbers = all_ids(assigned)
    expected = sum(1 + (parts(f.data_type) if nested else 0) for _, f in fields(schema))
    assert sorted(numbers) == list(range(start + 1, start + 1 + expected))
    assert max_id == max_column_id(assigned) == start + expected
    physical = [f.physical_name for _, f in fields(assigned)]
    assert len(set(physical)) == len(physical)
    assert all(name.startswith("col-") for name in physical)


@given(schemas, schemas, st.booleans())
def test_evolution_changes_nothing_that_was_there(schema: StructType, more: StructType, nested: bool) -> None:
    assigned, max_id = assign_columns(schema, 0, nested_ids=nested)
    known = set(assigned.names)
    evolved = StructType((*assigned.fields, *(f for f in more if f.name not in known)))
    again, new_max = assign_columns(evolved, max_id, nested_ids=nested)
    before = {path: f.metadata for path, f in fields(assigned)}
    after = {path: f.metadata for path, f in fields(again)}
    assert {path: after[path] for path in before} == before
    added = [f for path, f in fields(again) if path not in before]
    assert all(f.field_id is not None and f.field_id > max_id for f in added)
    assert new_max == max(all_ids(again))
    assert len(set(all_ids(again))) == len(all_ids(again))
    assert assign_columns(again, new_max, nested_ids=nested) == (again, new_max)


@given(schemas)
def test_a_dropped_column_never_gives_its_id_to_another(schema: StructType) -> None:
    assigned, max_id = assign_columns(schema, 0)
    rest = StructType((*assigned.fields[1:], StructField("new", LONG)))
    again, new_max = assign_columns(rest, max_id)
    assert again.fields[-1].field_id == new_max == max_id + 1
