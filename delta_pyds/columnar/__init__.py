"""Arrow: types, casts, evaluation of expressions and of skipping conditions, bitmaps.

What a scan is made of:

- ``parquet_footer``: Parquet files opened with a footer that was checked
- ``thrift``: bytes in Thrift's compact protocol, as far as a footer needs it
- ``schema``: the Arrow types that Spark demands from a Python data source
- ``cast``: decoded columns to exactly these types
- ``scan_files``: the files of a scan as Arrow rows
- ``statistics_json``: the statistics of the log, JSON text, as Arrow columns
- ``exact_sum``: sums of what a log claims
- ``skipping``: conditions on statistics, evaluated for many files at once
- ``path_keys``: what paths of the log are compared by
- ``roaring``: the bitmap inside a deletion vector
- ``key_index``: rows by the values of their keys, for a join

Evaluation of an expression over rows:

- ``evaluate``: a bound tree to an array of values
- ``rows``: the rows that an expression is evaluated for
- ``values``: constants, and casts that cannot fail
- ``comparison``: comparisons with Spark's semantics
- ``functions``: CASE, COALESCE, and the dispatch of functions to their kernels
- ``kernel``: what the kernels share
- ``conversions``: casts that may fail
- ``parsing``: texts to values of other types
- ``arithmetic``: numbers
- ``decimals``: decimals, rounded as Spark rounds
- ``text``: strings
- ``dates``: dates and timestamps
- ``calendar``: days to years, months and days, and back
- ``zones``: instants to wall clock times, and back
- ``containers``: arrays, maps and structs
"""
