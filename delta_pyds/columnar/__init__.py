"""Arrow: types, casts, evaluation of expressions and of skipping conditions, bitmaps.

Parts of a scan:

- ``parquet_footer``: Parquet files opened with a checked footer
- ``thrift``: the part of Thrift's compact protocol that footers need
- ``schema``: the Arrow types that Spark requires of a Python data source
- ``cast``: decoded columns to exactly these types
- ``scan_files``: the files of a scan as Arrow rows
- ``older_arrow``: replacements for functions that older versions of pyarrow lack
- ``objects_of_rows``: one object for each row of a table, as a sequence
- ``statistics_json``: the statistics in the log, JSON text, as Arrow columns
- ``exact_sum``: exact sums of numbers from a log
- ``skipping``: conditions on statistics, evaluated for many files at once
- ``path_keys``: keys for comparing paths of the log
- ``roaring``: the bitmap inside a deletion vector
- ``row_origins``: the origins of the rows of a written file
- ``row_difference``: the rows of two sides that do not cancel each other
- ``row_buckets``: buckets of rows by their values
- ``key_index``: rows by the values of their keys, for a join

Evaluation of an expression over rows:

- ``evaluate``: a bound tree to an array of values
- ``rows``: the rows that an expression is evaluated for
- ``values``: constants, and casts that cannot fail
- ``comparison``: comparisons with Spark's semantics
- ``functions``: CASE, COALESCE, and the dispatch of functions to their kernels
- ``kernel``: helpers of the kernels
- ``conversions``: casts that may fail
- ``parsing``: strings to values of other types
- ``arithmetic``: numbers
- ``decimals``: decimals, rounded as Spark rounds
- ``text``: strings
- ``dates``: dates and timestamps
- ``calendar``: days to years, months and days, and back
- ``zones``: instants to wall clock times, and back
- ``containers``: arrays, maps and structs
"""
