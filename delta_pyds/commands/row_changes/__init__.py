"""Commands that change rows: delete, update, merge. Three verbs, one commit, then the values that they share.

- ``resolve``: the names of a command resolved, before an engine is chosen
- ``merge_binding``: the texts of a resolved merge as bound expressions
- ``delete``: the rows for which a condition is true leave, found by our own evaluator
- ``update``: the rows for which a condition is true get other values, by our own evaluator
- ``assignments``: the values that an update assigns
- ``condition``: the condition of a command, and the files that may hold its rows
- ``merge``: rows of a source update, delete and insert, joined in the user's process
- ``merge_pruning``: conditions that files are skipped by, made of the source's keys
- ``second_look``: the files that keys rule out, checked in their footers
- ``find_rows``: files are dealt out to tasks that find rows
- ``commit_rows``: the end of every such command: the outputs of its tasks become one version of the table
- ``finish``: rows that were found become deletion vectors, or files without them
- ``operation``: the parameters and metrics of a command in the table's history
- ``resolved``: a command with its names resolved, which both engines take
- ``plan``: a planned command: options, files, state of its tasks
- ``result``: the result of a command for its caller
"""
