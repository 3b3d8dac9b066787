"""Rows that were found become deletion vectors, or files without them. Nothing is committed here."""

from __future__ import annotations
