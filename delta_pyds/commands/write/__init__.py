"""Append, overwrite, ``replaceWhere`` and batches of a stream: a plan, tasks, one transaction.

- ``request``: what a write asks for, checked against itself
- ``existing_data``: what a write may find at its path
- ``target``: the table that it goes to, changed as far as the write may, or a new one
- ``operation``: its operation in the history
- ``write``: the plan for the tasks, and the commit of what they wrote
- ``replace_rows``: takes the rows out for which a predicate is true
- ``micro_batch``: the identity of a stream's batch, and what the commit says of it
- ``stream``: one batch of a stream, committed once however often it is tried
"""
