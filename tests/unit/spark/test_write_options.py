from __future__ import annotations

import pytest

from delta_pyds.commands.write_request import WriteRequest
from delta_pyds.errors import OptionError
from delta_pyds.spark.write_options import parse_write_options
from tests.support.table_writes import struct


def parsed(**options: str) -> WriteRequest:
    return parse_write_options(
        {"path": "/t", **options}, struct({"id": "long"}), overwrite=False, assumed_time_zone="UTC"
    )


def test_an_application_version_is_a_long() -> None:
    assert parsed(txnAppId="a", txnVersion=str(2**63 - 1)).application == ("a", 2**63 - 1)
    for version in ("-1", "1.0", "", str(2**63)):
        with pytest.raises(OptionError) as error:
            parsed(txnAppId="a", txnVersion=version)
        assert error.value.code == "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"


def test_an_unknown_compression_is_refused_before_any_task_starts() -> None:
    assert parsed(compression="ZSTD").compression == "ZSTD"
    for name in ("zip", ""):
        with pytest.raises(OptionError, match="compression"):
            parsed(compression=name)
