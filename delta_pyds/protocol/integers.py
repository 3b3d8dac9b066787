"""Integers of the widths that the protocol gives them: what does not fit is refused where JSON becomes values.

Everything behind that (Arrow, Parquet, the JVM) holds no others.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
