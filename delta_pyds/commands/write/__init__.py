"""Append, overwrite, ``replaceWhere`` and batches of a stream: a plan, tasks, one transaction.

- ``request``: the request of a write, checked for contradictions
- ``existing_data``: checks of existing data at the path of a write
- ``target``: the table to write to, changed as far as the write may, or a new one
- ``write``: the plan for the tasks, and the commit of what they wrote
- ``replace_files``: removes the files of a table, or of the partitions that a predicate selects
- ``replace_rows``: deletes the rows for which a predicate is true
- ``micro_batch``: the identity of a stream's batch, and its entry in the history
- ``stream``: one batch of a stream, committed once however often it is tried
"""
