"""Bytes: file systems behind one small interface.

- ``table_path``: from what a user gives as a path to its one absolute spelling
- ``resolve``: from the path that a user wrote to the storage that holds it
- ``base``: the interface: listing from a name, reads, put-if-absent
- ``allowed_roots``: a storage that opens files below certain directories only
- ``local``: the local disk
- ``local_sync``: what makes its files and directories last
- ``local_output``: a new file there
- ``local_removal``: removing there, without following links
- ``fsspec_store``: everything that fsspec knows
- ``conditional_put``: fsspec stores that create a file only where there is none
- ``object_store``: listings by pages and single requests, alike for the three
- ``read_ahead``: ranges asked for before they are read, several at a time
- ``object_file``: an object as a file that Parquet is read from
- ``parquet_ends``: how much of a file's end to ask for at once
- ``object_output``: a new object that is written to
- ``s3``: S3 and what speaks like it, by If-None-Match
- ``azure``: Azure Blob Storage and ADLS Gen2, by If-None-Match
- ``google``: Google Cloud Storage, by ifGenerationMatch=0
- ``retries``: requests again, where the store was busy or silent
- ``failures``: what the packages of object stores raise, as errors of ours
"""
