"""Reads files with changed footers, and says of each what came of it: run as a process of its own, which it may end.

``python -m tests.support.footer_process DIRECTORY KIND SEED FIRST LAST``, with KIND ``data`` or ``checkpoint``.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from delta_pyds.data.footer_types import first_foreign_to_spark, forget_footers
from delta_pyds.errors import DeltaError
from delta_pyds.expr.build import build
from delta_pyds.log.checkpoint_part import CheckpointPart
from delta_pyds.protocol.actions import Protocol
from delta_pyds.protocol.handoff import ScanFile
from delta_pyds.protocol.schema import LONG, STRING, ArrayType, DecimalType, StructField
from delta_pyds.storage.local import LocalStorage
from tests.support.parquet_footers import mutated, read_footer, with_footer

