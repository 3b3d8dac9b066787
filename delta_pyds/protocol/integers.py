"""The protocol's 32-bit and 64-bit integers.

JSON decoding refuses a number that does not fit: Arrow, Parquet and the JVM could not hold it.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
