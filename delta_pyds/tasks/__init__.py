"""What planning sends to tasks, and what they answer: small, picklable, free of Arrow and of the log.

- ``scan_state``: what every task of a scan knows, ``ScanState``, and one file to read, ``ScanFile``
- ``scan_file``: a file of the log, or one that was just written, as a ``ScanFile``
- ``changed_rows``: rows that a command changes, on their way to what writes and marks them
- ``merge``: what the tasks of a merge are told that join in this process
- ``row_changes``: what the tasks of a change of rows are given
- ``layout``: what tasks are given that lay rows out anew
- ``footers``: what tasks are given that read footers, and what they answer
- ``write_state``: what every task of a write knows, ``WriteState``, and what it answers, ``TaskOutput``
"""
