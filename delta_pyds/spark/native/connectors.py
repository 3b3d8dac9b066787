"""Whether Spark's own connector for a store reads the very objects that this package reads.

Invariant: nothing is read through a connector that was not seen to have the newest file of the log as it is, at the
endpoint that this package asks. Credentials are the session's own: none is put into its settings, for it keeps a
connection to a bucket for all its queries.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from delta_pyds.errors import DeltaError
from delta_pyds.log.segment import LogSegment
from delta_pyds.redaction import without_secrets
from delta_pyds.spark.native.files import spark_path
from delta_pyds.storage.object_store import ObjectStorage
from delta_pyds.storage.resolve import CATALOG_OPTIONS, scheme_of
from delta_pyds.table.scan.scan import Scan

# The beginning of a commit has its transaction's id.
_COMPARED_BYTES = 4096
_AMAZON = re.compile(r"(?:.*\.)?amazonaws\.com(\.cn)?")


@dataclass(frozen=True)
class _Kind:
    """``endpoint``: where the connector asks for objects of a bucket, by a Hadoop configuration.

    ``credentials``: settings of which one is there where the session has credentials of its own.
    """

    name: str
    classes: tuple[str, ...]
    package: str
    endpoint: Callable[[Any, str], str]
    endpoint_setting: str
    credentials: tuple[str, ...]


class NoConnectorError(Exception):
    """The scan is not for a connector of this session; the message is a reason, as part of a sentence."""


def connector_of(spark: SparkSession, scan: Scan, *, remote: bool) -> str:
    """The name of the connector that reads the table's objects for Spark; empty where no store is known.

    Raises: NoConnectorError, which says what is missing.
    """
    root, storage = scan.snapshot.table_root, scan.snapshot.storage
    scheme = scheme_of(root)
    if scheme == "file":
        return ""
    kind = _KINDS.get(scheme)
    given = [name for name in scan.state.storage_options if not name.startswith(CATALOG_OPTIONS)]
    if kind is None:
        if given:
            raise NoConnectorError("storage options are given, which Spark's own reader does not take")
        return ""  # such as hdfs: the path says all
    if remote:
        raise NoConnectorError("through Spark Connect, it is not seen which store the server's connector reads")
    if not isinstance(storage, ObjectStorage):
        raise NoConnectorError("the storage is opened by rules of its own, which Spark's connector does not know")
    session: Any = spark
    try:
        files = _opened(session, kind, spark_path(root), storage.endpoint(), with_options=bool(given))
        _check_same(session, files, kind, scan.snapshot.segment, storage)
    except NoConnectorError:
        raise
    except Exception as error:  # the JVM's, whatever it is
        raise NoConnectorError(f"Spark's connector {kind.name} cannot be asked: {_say(error)}") from error
    return kind.name


def _opened(session: Any, kind: _Kind, root: str, endpoint: str, *, with_options: bool) -> Any:
    """Hadoop's file system of the session for the table, which is at the endpoint."""
    scheme, bucket = root.partition("://")[0], root.partition("://")[2].partition("/")[0]
    hadoop = session._jvm.org.apache.hadoop.fs
    settings = session._jsparkSession.sessionState().newHadoopConf()
    try:
        implementation = hadoop.FileSystem.getFileSystemClass(scheme, settings).getName()
    except Exception as error:
        raise NoConnectorError(
            f"Spark has no connector for {scheme}://: add {kind.package} to the session (spark.jars.packages)"
        ) from error
    if implementation not in kind.classes:
        raise NoConnectorError(f"the session reads {scheme}:// by {implementation}, which is not known")
    # before anything is asked at a place where the table is not
    _check_endpoint(kind, settings, bucket, endpoint)
    if with_options and not any(_is_set(settings, name.format(bucket=bucket)) for name in kind.credentials):
        raise NoConnectorError(
            "storage options are given, and the session has no credentials of its own for Spark's connector: set "
            f"spark.hadoop.{kind.credentials[0]}"
        )
    files = hadoop.Path(root).getFileSystem(settings)
    # one that was opened before has the settings of then
    _check_endpoint(kind, files.getConf(), bucket, endpoint)
    return files


def _check_endpoint(kind: _Kind, settings: Any, bucket: str, endpoint: str) -> None:
    found = kind.endpoint(settings, bucket)
    if not _is_same_place(found, endpoint):
        raise NoConnectorError(
            f"Spark's connector {kind.name} asks {found}, and the table is at {endpoint}: set "
            f"spark.hadoop.{kind.endpoint_setting}"
        )


def _check_same(session: Any, files: Any, kind: _Kind, segment: LogSegment, storage: ObjectStorage) -> None:
    """Whether the connector sees the newest file of the log as we do."""
    newest = segment.last_commit or (segment.checkpoint.files[-1] if segment.checkpoint else None)
    if newest is None:
        raise NoConnectorError("no file of the log is left to compare")
    expected = storage.read(newest.path, 0, _COMPARED_BYTES)
    path = session._jvm.org.apache.hadoop.fs.Path(spark_path(newest.path))
    if files.getFileStatus(path).getLen() == newest.size_bytes:
        stream = files.open(path)
        try:
            found = bytes(session._jvm.org.apache.commons.io.IOUtils.toByteArray(stream, len(expected)))
        finally:
            stream.close()
        if found == expected:
            return
    raise NoConnectorError(f"Spark's connector {kind.name} does not have {newest.path!r} as it is in the table")


def _is_set(settings: Any, name: str) -> bool:
    """Whether somebody set it: what Hadoop itself brings does not count."""
    sources = settings.getPropertySources(name) or ()
    return settings.get(name) is not None and "core-default.xml" not in list(sources)


def _is_same_place(one: str, other: str) -> bool:
    first, second = urlsplit(one), urlsplit(other)
    amazon = [_AMAZON.fullmatch(url.hostname or "") for url in (first, second)]
    if all(amazon):
        # a bucket's name is one bucket's, in all regions of a partition
        return amazon[0][1] == amazon[1][1] and first.scheme == second.scheme  # type: ignore[index]
    return _origin(first) == _origin(second)


def _origin(url: Any) -> tuple[str, str, int]:
    return url.scheme, (url.hostname or "").lower(), url.port or {"http": 80}.get(url.scheme, 443)


def _of_s3(settings: Any, bucket: str) -> str:
    secure = settings.getBoolean("fs.s3a.connection.ssl.enabled", True)
    found = settings.get(f"fs.s3a.bucket.{bucket}.endpoint") or settings.get("fs.s3a.endpoint") or ""
    place = found.strip() or "s3.amazonaws.com"
    return place if "://" in place else f"http{'s' if secure else ''}://{place}"


def _of_azure(_: Any, authority: str) -> str:
    # the account's blobs have another name of the same server
    host = authority.rpartition("@")[2].replace(".dfs.", ".blob.", 1)
    return f"https://{host or 'no account'}"


def _of_google(settings: Any, _: str) -> str:
    return settings.get("fs.gs.storage.root.url") or "https://storage.googleapis.com"


def _say(error: Exception) -> str:
    """The first line of what the JVM says, without the class in front."""
    cause = getattr(error, "java_exception", None)
    text = cause.toString() if cause is not None else error.message if isinstance(error, DeltaError) else str(error)
    return without_secrets((text.strip().splitlines() or [type(error).__name__])[0])


_S3A = _Kind(
    "S3A",
    ("org.apache.hadoop.fs.s3a.S3AFileSystem",),
    "org.apache.hadoop:hadoop-aws of its Hadoop's version",
    _of_s3,
    "fs.s3a.endpoint",
    (
        "fs.s3a.access.key", "fs.s3a.bucket.{bucket}.access.key", "fs.s3a.aws.credentials.provider",
        "fs.s3a.bucket.{bucket}.aws.credentials.provider", "hadoop.security.credential.provider.path",
    ),
)  # fmt: skip
_ABFS = _Kind(
    "ABFS",
    (
        "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem",
        "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem",
    ),
    "org.apache.hadoop:hadoop-azure of its Hadoop's version",
    _of_azure,
    "fs.azure.account.key.ACCOUNT.dfs.core.windows.net",
    (),
)
_GCS = _Kind(
    "GCS",
    ("com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",),
    "com.google.cloud.bigdataoss:gcs-connector, the shaded one",
    _of_google,
    "fs.gs.storage.root.url",
    ("fs.gs.auth.type", "google.cloud.auth.type"),
)
_KINDS = {"s3": _S3A, "abfs": _ABFS, "abfss": _ABFS, "gs": _GCS}
