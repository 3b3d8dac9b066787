"""What a process needs for a table in a store, so that forks of one that has imported it start at once."""

import adlfs
import aiobotocore.session
import gcsfs.core
import s3fs

from tests.stores import killed_process, requests_made

__all__ = ["adlfs", "aiobotocore", "gcsfs", "killed_process", "requests_made", "s3fs"]
