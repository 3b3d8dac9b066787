"""The table of words that an anti join reads."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from delta_pyds.spark.native.word_join import require, word_table

WORDS = st.lists(st.integers(-(1 << 63), (1 << 63) - 1) | st.just(0), max_size=6)


@given(st.lists(st.tuples(st.integers(0, 1 << 40), WORDS), min_size=1, max_size=4, unique_by=lambda file: file[0]))
def test_each_word_with_a_deleted_row_is_in_the_table_once(files: list[tuple[int, list[int]]]) -> None:
    table = word_table([pa.array(words, pa.int64()) for _, words in files], [number for number, _ in files])
    wanted = [(number, n, word) for number, words in files for n, word in enumerate(words) if word]
    assert list(zip(*(column.to_pylist() for column in table.columns), strict=True)) == wanted
    assert not any(field.nullable for field in table.schema)


def test_the_error_shows_its_reason() -> None:
    assert require("a IS NOT NULL", "no a") == (
        "element_at(array(true), CASE WHEN a IS NOT NULL THEN 1 ELSE 0 /* no a */ END)"
    )
