"""What the table's history says of a command: its parameters and metrics, under the reference's names."""

from __future__ import annotations
