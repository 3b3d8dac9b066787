"""Paths of the log that are spelled differently and name one file, and some that name two.

``tests/interop/test_path_keys.py`` holds them against the reference.
"""

from __future__ import annotations

# one file, as the reference too takes them
SAME = (
    ("a%3Ab", "a%3ab"),
    ("x", "./x"),
    ("x", "././x"),
    ("d/x", "d/./x"),
    ("d/x", "d//x"),
    ("x", "d/../x"),
    ("p=%2525/caf%C3%A9", "./p=%2525/caf%c3%a9"),
    ("file:/o/x", "file:///o/x"),
    ("/o/x", "file:/o/x"),
    ("/o/x", "file:///o/x"),
    ("file:/o/x", "FILE:/o//./x"),
    ("s3://b/x", "S3://B/x"),
    ("s3://b/a%3Ab", "s3://b//a%3ab"),
    ("abfss://c@a.dfs.core.windows.net/x", "abfss://c@A.dfs.core.windows.net/./x"),
)
# One file by the protocol. The reference decodes no more than the case of escapes, and takes them for two.
SAME_BY_PROTOCOL = (("p=R%26D/x", "p=R&D/x"), ("a%62", "ab"), ("caf%C3%A9", "café"), ("a%2Bb", "a+b"))
DIFFERENT = (
    ("a%2541", "aA"),
    ("a%2541", "a%41"),
    ("x", "/x"),
    ("x", "file:/x"),
    ("X", "x"),
    ("s3://b/x", "s3a://b/x"),
    ("s3://b/x", "/x"),
    ("file:/o/x", "file://host/o/x"),
    ("abfss://c@a/x", "abfss://C@a/x"),
    ("file%3A/x", "file:/x"),
    ("s3%3A//b/x", "s3://b/x"),
    ("s3:/b/x", "s3://b/x"),
    ("a/../../x", "x"),
)
