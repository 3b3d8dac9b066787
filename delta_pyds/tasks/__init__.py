"""Messages from the planner to tasks, and their outputs: small, picklable, without Arrow and classes of the log.

- ``scan_state``: the state of a scan, ``ScanState``, and one file to read, ``ScanFile``
- ``scan_file``: conversion of logged and newly written files to ``ScanFile``
- ``changed_rows``: the columns of changed rows, and the state of the tasks that write them
- ``merge``: the state of a merge that our own tasks join
- ``row_changes``: tasks of DELETE, UPDATE and MERGE
- ``layout``: tasks of compaction and clustering
- ``footers``: tasks that read Parquet footers, and their outputs
- ``write_state``: the state of a write, ``WriteState``, and the output of a task, ``TaskOutput``
"""
