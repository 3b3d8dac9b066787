"""Tasks that lay the rows of a table out anew: the same rows in other files.

Invariant: what a task writes are the live rows of its files, each once, with their row ids; it says how many each file
had. When anything goes wrong the task's files are deleted as far as they can be, and the error goes up.

- ``compact``: files to one file
- ``cluster``: files to files along a curve
- ``pieces``: rows that wait, by the piece of the curve that they are on
- ``ranges``: values of a column to numbers of ranges that have about as many rows each
- ``curve``: numbers of ranges to places on a Z-order or Hilbert curve
"""
