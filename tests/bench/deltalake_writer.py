"""deltalake writing the rows of Parquet files into a new table: source, target, partition column or nothing."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def main() -> None:
    source, target, partition = sys.argv[1:]
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds
    from deltalake import write_deltalake

    data = ds.dataset([str(p) for p in Path(source).glob("*.parquet")])
    schema = data.schema.append(pa.field("part", pa.int32())) if partition else data.schema

    def batches() -> Iterator[Any]:
        for batch in data.to_batches(batch_size=65_536):
            if not partition:
                yield batch
                continue
            customer = batch.column("customer")
            part = pc.subtract(customer, pc.multiply(pc.divide(customer, 100), 100))
            yield pa.RecordBatch.from_arrays([*batch.columns, pc.cast(part, pa.int32())], schema=schema)

    begin = time.perf_counter()
    write_deltalake(
        target,
        pa.RecordBatchReader.from_batches(schema, batches()),
        partition_by=[partition] if partition else None,
    )
    seconds = time.perf_counter() - begin
    print(json.dumps({"seconds": seconds, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
