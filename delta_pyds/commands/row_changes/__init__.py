"""Commands that change rows: delete, update, merge.

- ``resolve``: the names of a command resolved, before an engine is chosen
- ``merge_binding``: the texts of a resolved merge as bound expressions
- ``delete``: delete by our own evaluator
- ``update``: update by our own evaluator
- ``assignments``: the values that an update assigns
- ``condition``: the condition of a command, and the files that may hold its rows
- ``merge``: merge by our own evaluator, in the user's process
- ``merge_pruning``: conditions, made from the source's keys, that let a merge skip files
- ``footer_check``: checks the footers of files that the keys rule out
- ``find_rows``: files distributed to tasks that find rows
- ``commit_rows``: the end of every such command: the outputs of its tasks become one version of the table
- ``mend``: a command that lost a race, decided again on the rows that the winners changed
- ``finish``: deletion vectors for the found rows, or new files without these rows
- ``taken_back``: files that a command wrote, without the rows that it takes back after a lost race
- ``operation``: the parameters and metrics of a command in the table's history
- ``resolved``: a command with its names resolved, for both engines
- ``plan``: a planned command: options, files, state of its tasks
- ``result``: the result of a command for its caller
"""
