"""What a write imports when it first happens, imported for the processes that come."""

import tempfile

from tests.concurrency.kinds_of_writes import IDS, delete, merge, optimize, restore, update, used_table, vacuum
from tests.support.table_writes import write_rows

with tempfile.TemporaryDirectory() as scratch:
    write_rows(scratch, IDS, [{"id": 1}], properties={"delta.checkpointInterval": "1"})
    write_rows(scratch, IDS, [{"id": 2}], mode="overwrite", replace_where="id = 1 OR id = 2")
    write_rows(scratch, IDS, [{"id": 1}, {"id": 2}], mode="overwrite")
    for change in (merge, update, delete):
        change(scratch)
with tempfile.TemporaryDirectory() as scratch:
    used_table(scratch, {"delta.checkpointInterval": "1"})
    for keep in (restore, optimize, vacuum):
        keep(scratch)
