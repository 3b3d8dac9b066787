"""Commands that change rows: delete, update, merge. Two ways to find the rows, one way to finish.

- ``delete``: the rows for which a condition is true leave, found by our own evaluator
- ``update``: the rows for which a condition is true get other values, found and computed by our own evaluator
- ``commit_rows``: the end of every such command: what its tasks brought becomes one version of the table
- ``assignments``: the values that an update assigns
- ``condition``: the condition of a command, and the files that may hold its rows
- ``find_rows``: files are dealt out to tasks that find rows
- ``finish``: rows that were found become deletion vectors, or files without them
- ``operation``: what the table's history says of a command: its parameters and metrics
- ``result``: what a command tells its caller
- ``plan``: what a command is to do, decided before a row is read
- ``merge``: rows of a source update, delete and insert, joined in the user's process
- ``merge_pruning``: conditions that files are skipped by, made of the source's keys
- ``second_look``: the files that keys rule out, looked up in their footers
- ``merge_binding``: the texts of a merge as bound expressions
"""
