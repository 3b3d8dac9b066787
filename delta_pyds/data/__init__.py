"""Reading and writing of data files: the work of tasks. It imports neither the log nor the parser.

``read`` and ``write`` do not import each other. Modules that both use come first:

- ``file_schema``: the columns of a Parquet file as a tree with leaf indices
- ``columns``: columns of one value, batches of columns, and groups of rows
- ``spill``: rows that wait on the local disk for others
- ``read``: data files to rows
- ``write``: rows to data files
- ``row_changes``: tasks that change rows: bitmaps of positions, rewritten files and change files
- ``convert``: tasks that read the footers of files for CONVERT TO DELTA
- ``layout``: tasks that rewrite rows into fewer files, or into files along a curve
"""
