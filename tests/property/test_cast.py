from __future__ import annotations

from random import Random

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_pyds.columnar.schema import arrow_type
from delta_pyds.protocol.schema import ArrayType, DataType, MapType, StructField, StructType
from tests.support.conforming import conform
from tests.support.sampling import examples
from tests.support.scans import PRIMITIVES, VOID, relaxed, sample


def _nest(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    def nullable(t: DataType, allowed: bool) -> bool:
        return allowed or t == VOID

    arrays = st.builds(lambda t, n: ArrayType(t, nullable(t, n)), inner, st.booleans())
    keys = st.sampled_from([t for t in PRIMITIVES if t != VOID])
    maps = st.builds(lambda k, t, n: MapType(k, t, nullable(t, n)), keys, inner, st.booleans())
    fields = st.lists(st.tuples(inner, st.booleans()), min_size=1, max_size=4)
    structs = fields.map(
        lambda fs: StructType(tuple(StructField(f"f{i}", t, nullable(t, n)) for i, (t, n) in enumerate(fs)))
    )
    return arrays | maps | structs


_types = st.recursive(st.sampled_from(PRIMITIVES), _nest, max_leaves=6)


def _shuffled(data_type: pa.DataType, random: Random) -> pa.DataType:
    """The same values another way: struct fields in another order with one more, other list and string layouts."""
    if pa.types.is_struct(data_type):
        fields = [pa.field(f.name, _shuffled(f.type, random)) for f in data_type] + [pa.field("extra", pa.int8())]
        random.shuffle(fields)
        return pa.struct(fields)
    if pa.types.is_map(data_type):
        return pa.map_(_shuffled(data_type.key_type, random), _shuffled(data_type.item_type, random))
    if pa.types.is_list(data_type):
        return random.choice([pa.list_, pa.large_list])(_shuffled(data_type.value_type, random))
    if pa.types.is_string(data_type):
        return random.choice([pa.string(), pa.large_string()])
    return data_type


@given(_types, st.randoms(use_true_random=False), st.integers(0, 12), st.integers(0, 12))
@settings(max_examples=examples(250), deadline=None)
def test_conform_keeps_every_value_of_nested_data(data_type: DataType, random: Random, start: int, length: int) -> None:
    target = arrow_type(data_type)
    values = [sample(data_type, random) for _ in range(12)]
    expected = pa.array(values, relaxed(target)).slice(start, length)
    for source in (relaxed(target), _shuffled(target, random)):
        array = pa.array(values, source).slice(start, length)
        result = conform(array, target)
        result.validate(full=True)
        assert result.type == target
        assert result.to_pylist() == expected.to_pylist()
