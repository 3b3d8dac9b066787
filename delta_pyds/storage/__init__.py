"""File systems with one small interface.

- ``table_path``: the canonical absolute path of a table, from a user's text or ``pathlib.Path``
- ``resolve``: the storage for a path
- ``base``: the interface: listing from a name, reads, put-if-absent
- ``allowed_roots``: a storage that opens only files below certain directories
- ``local``: the local disk
- ``local_sync``: syncs, so that files and directories survive a power cut
- ``local_output``: a new file of the local disk
- ``local_turns``: turns of writers on one machine that lost a race
- ``fsspec_store``: every file system that fsspec supports
- ``conditional_put``: fsspec stores with a proven put-if-absent
- ``object_store``: listings by pages and single requests, common to S3, Azure and Google
- ``read_ahead``: requests for ranges before they are read, several at a time
- ``object_file``: an object as a file for Parquet readers
- ``parquet_ends``: the size of the first request for a Parquet file
- ``object_output``: a new object, uploaded in the background
- ``s3``: S3 and compatible stores, with If-None-Match
- ``azure``: Azure Blob Storage and ADLS Gen2, with If-None-Match
- ``google``: Google Cloud Storage, with ifGenerationMatch=0
- ``failures``: errors of the object stores' packages as delta_pyds errors; retries after transient ones
"""
