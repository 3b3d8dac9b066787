"""The functions that expressions may call: the types of arguments and results, by Spark's rules.

Their values are computed by ``columnar``.

- ``session_context``: the common parts of the rules: the session's settings, casts, checks of arguments
- ``arithmetic``: operators and functions of numbers
- ``text``: functions of strings
- ``patterns``: LIKE, startswith, endswith, contains
- ``regular_expressions``: the part of Java's regular expressions that RE2 supports in the same way
- ``dates``: functions of dates, timestamps and intervals
- ``containers``: functions of arrays, maps and structs
"""
