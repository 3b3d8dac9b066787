from __future__ import annotations

from typing import Any, cast

import pytest

from delta_pyds.errors import OptionError
from delta_pyds.spark.session import write


def test_properties_that_no_table_would_get_are_refused_and_not_dropped() -> None:
    with pytest.raises(OptionError, match=r"'owner'.*begin with 'delta\.'"):
        write(cast(Any, None), "/t", properties={"delta.appendOnly": "true", "owner": "me"})
