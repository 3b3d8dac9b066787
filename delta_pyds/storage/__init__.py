"""Bytes: file systems behind one small interface."""
