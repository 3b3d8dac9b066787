"""Tasks that rewrite the rows of a table into other files.

Invariant: a task writes exactly the live rows of its files, each once, with their row ids. It returns how many each
file had. After an error the task's files are deleted as far as possible, and the error is raised.

- ``compact``: files to one file
- ``cluster``: files to files along a curve
- ``curve``: range numbers to positions on a Z-order or Hilbert curve
"""
