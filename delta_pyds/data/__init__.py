"""Rows out of data files and into them: what tasks do. It imports neither the log nor the parser.

``read`` and ``write`` do not import each other. What both need:

- ``file_schema``: the columns of a Parquet file as a tree that knows its leaves
- ``columns``: columns of one value, and batches of columns
- ``read``: data files to rows
- ``write``: rows to data files
- ``row_changes``: tasks that change rows: to bitmaps of positions, rewritten files and change files
- ``convert``: tasks that read the footers of files which a table takes over
- ``layout``: tasks that lay rows out anew: fewer files, or files along a curve
"""
