"""Errors about rows of changes carry the key out of the query."""

from __future__ import annotations

import pytest

from delta_pyds.errors import UserError
from delta_pyds.spark.apply_changes.refusals import (
    NULL_KEY,
    TIE,
    RepeatedSequenceError,
    raising,
    refusals_as_user_errors,
)


def test_the_error_of_a_query_gets_its_name_and_key() -> None:
    with pytest.raises(UserError, match="same sequence") as error, refusals_as_user_errors("/t"):
        raise RuntimeError("stage 7 failed: _deltapy_changes<tie>id = 1, day = x</_deltapy_changes> SQLSTATE: P0001")
    assert error.value.parameters == {"table": "/t", "key": "id = 1, day = x"}
    with pytest.raises(RepeatedSequenceError), refusals_as_user_errors("/t"):
        raise RuntimeError("_deltapy_changes<repeated>id = 1</_deltapy_changes>")
    with pytest.raises(RuntimeError, match="another"), refusals_as_user_errors("/t"):
        raise RuntimeError("another")


def test_the_expression_shows_each_key() -> None:
    assert raising(NULL_KEY, ["id", "it's"]) == (
        "raise_error(concat('_deltapy_changes<null_key>', 'id = ', coalesce(CAST(`id` AS STRING), 'NULL'), ', ', "
        "'it\\'s = ', coalesce(CAST(`it's` AS STRING), 'NULL'), '</_deltapy_changes>'))"
    )
    assert "coalesce(CAST(`s`.`id` AS STRING), 'NULL')" in raising(TIE, ["id"], "s")
