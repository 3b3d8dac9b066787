"""Whether Spark's own connector for a store reads the same objects as this package.

Invariant: a connector is used for a table only after it has returned the newest file of the table's log unchanged, from
the endpoint that this package asks. Credentials are the session's own. This package puts no credentials into its
settings, because Spark keeps one connection to a bucket for all queries. While Spark keeps that connection, the proof
holds and is not made again.

The settings of a server of Spark Connect are unknown. It proves once for a session and a bucket that it reads the
newest file of a log as it is. A copy of the bucket has that file only with the same table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.errors import DeltaError
from delta_pyds.log.listing import LogFile
from delta_pyds.log.segment import LogSegment
from delta_pyds.redaction import without_secrets
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.storage.fsspec_store import protocol_of
from delta_pyds.storage.object_store import ObjectStorage
from delta_pyds.storage.resolve import CATALOG_OPTIONS, authority_of, hadoop_path, scheme_of
from delta_pyds.table.scan.scan import Scan

# The first bytes of a commit hold its transaction's id.
_COMPARED_BYTES = 4096
_AMAZON = re.compile(r"(?:.*\.)?amazonaws\.com(\.cn)?")
_GOOGLE = "https://storage.googleapis.com"
_NAMES_ACCOUNT = re.compile(r"abfss?://[^/@]+@[^/@]+")
_HTTP_CLIENT = "HTTP_API_CLIENT"
_BLOCK_SIZE = "fs.gs.block.size"
_PROVIDER_PATH = "hadoop.security.credential.provider.path"
# For each session of Spark Connect and bucket: why the server does not read it; empty if it does.
_answers: WeakKeyDictionary[Any, dict[tuple[str, str], str]] = WeakKeyDictionary()
# For each classic session and table's path: the Hadoop file system that returned the newest file of its log.
_proven: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
_MOST_PROVEN = 1000


@dataclass(frozen=True)
class _Kind:
    """A connector. ``endpoint``: the endpoint that it asks for a URL, by a Hadoop configuration.

    ``credentials``: settings of which at least one exists if the session has credentials of its own; ``{authority}``
    and ``{host}`` are of the table's URL. ``cannot_read``: a setting that the connector cannot read, as a sentence.
    """

    name: str
    classes: tuple[str, ...]
    package: str
    endpoint: Callable[[Any, str], str]
    endpoint_remedy: str
    credentials: tuple[str, ...]
    cannot_read: Callable[[Any], str] = lambda _: ""


class NoConnectorError(Exception):
    """No connector of this session can read the scan. The message is a reason, as part of a sentence."""


def connector_of(spark: SparkSession, scan: Scan, *, remote: bool) -> str:
    """The name of the connector that reads the table's objects for Spark; empty for other file systems.

    Raises: NoConnectorError, whose message names what is missing.
    """
    root, storage = scan.snapshot.table_root, scan.snapshot.storage
    scheme = scheme_of(root)
    if scheme == "file":
        return ""
    kinds = _KINDS.get(protocol_of(scheme))
    given = [name for name in scan.state.storage_options if not name.startswith(CATALOG_OPTIONS)]
    if kinds is None:
        if given:
            raise NoConnectorError("storage options are given, which Spark's own reader does not use")
        return ""  # such as hdfs: the path alone decides
    if not isinstance(storage, ObjectStorage):
        raise NoConnectorError("the storage is opened by custom rules, which Spark's connector does not know")
    path = hadoop_path(root)
    if protocol_of(scheme) == "abfs" and not _NAMES_ACCOUNT.match(path):
        raise NoConnectorError(
            "Spark's connector ABFS does not take this path: give it as abfss://container@account.dfs.core.windows.net/..."
        )
    if remote:
        if found := _reason_against_server(spark, path, scan.snapshot.segment, storage):
            raise NoConnectorError(found)
        return f"the server's connector for {scheme}://"
    session: Any = spark
    try:
        settings = session._jsparkSession.sessionState().newHadoopConf()
        kind = _kind_of(session, kinds, path.partition("://")[0], settings)
        files = _opened(session, kind, path, settings, storage.endpoint(), with_options=bool(given))
        proven = _proven.setdefault(spark, {})
        # Hadoop caches file systems. Another object may have other settings
        if path not in proven or not files.equals(proven[path]):
            _check_same(session, files, kind, scan.snapshot.segment, storage)
            if len(proven) >= _MOST_PROVEN:
                proven.clear()
            proven[path] = files
    except NoConnectorError:
        raise
    except Exception as error:  # any exception of the JVM
        raise NoConnectorError(f"Spark's connector for {scheme}:// fails: {_say(error)}") from error
    return kind.name


def _kind_of(session: Any, kinds: tuple[_Kind, ...], scheme: str, settings: Any) -> _Kind:
    """The kind with which the session reads the scheme."""
    try:
        name = session._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, settings).getName()
    except Exception as error:
        for kind in kinds:
            # a later Hadoop names another class for the scheme than that of the installed connector
            if settings.getClassByNameOrNull(kind.classes[0]) is not None:
                raise NoConnectorError(
                    f"Spark does not know its connector {kind.name}: set spark.hadoop.fs.{scheme}.impl to "
                    f"{kind.classes[0]}"
                ) from error
        packages = " or ".join(kind.package for kind in kinds)
        raise NoConnectorError(f"Spark has no connector for {scheme}://: add {packages} to the session") from error
    for kind in kinds:
        if name in kind.classes:
            return kind
    raise NoConnectorError(f"the session reads {scheme}:// by {name}, which delta_pyds does not know")


def _opened(session: Any, kind: _Kind, root: str, settings: Any, endpoint: str, *, with_options: bool) -> Any:
    """The session's Hadoop file system for the table."""
    # before another endpoint than the table's gets a request
    _check_endpoint(kind, settings, root, endpoint)
    authority = authority_of(root)
    names = [name.format(authority=authority, host=authority.rpartition("@")[2]) for name in kind.credentials]
    if with_options and not any(_is_set(settings, name) for name in names):
        raise NoConnectorError(
            "storage options are given, but the session has no credentials of its own for Spark's connector: set "
            f"spark.hadoop.{names[0]}"
        )
    if unread := kind.cannot_read(settings):
        raise NoConnectorError(unread)
    files = session._jvm.org.apache.hadoop.fs.Path(root).getFileSystem(settings)
    # a cached file system has the settings of the time when it was opened
    _check_endpoint(kind, files.getConf(), root, endpoint)
    return files


def _check_endpoint(kind: _Kind, settings: Any, root: str, endpoint: str) -> None:
    found = kind.endpoint(settings, root)
    if not _is_same_place(found, endpoint):
        raise NoConnectorError(
            f"Spark's connector {kind.name} asks {found}, but the table is at {endpoint}: {kind.endpoint_remedy}"
        )


def _check_same(session: Any, files: Any, kind: _Kind, segment: LogSegment, storage: ObjectStorage) -> None:
    """Check that the connector returns the newest file of the log unchanged."""
    newest, expected = _newest(segment, storage)
    path = session._jvm.org.apache.hadoop.fs.Path(hadoop_path(newest.path))
    status = files.getFileStatus(path)
    if status.getLen() == newest.size_bytes:
        # no second request for the status, and no bytes after those that are compared
        builder = files.openFile(path).withFileStatus(status).opt("fs.option.openfile.read.policy", "random")
        stream = builder.build().get()
        try:
            found = bytes(session._jvm.org.apache.commons.io.IOUtils.toByteArray(stream, len(expected)))
        finally:
            stream.close()
        if found == expected:
            return
    raise NoConnectorError(f"Spark's connector {kind.name} does not return {newest.path!r} as it is in the table")


def _newest(segment: LogSegment, storage: ObjectStorage) -> tuple[LogFile, bytes]:
    """The newest file of the log, and its first bytes."""
    newest = segment.last_commit or (segment.checkpoint.files[-1] if segment.checkpoint else None)
    if newest is None:
        raise NoConnectorError("the log has no file to compare")
    return newest, storage.read(newest.path, 0, _COMPARED_BYTES)


def _reason_against_server(spark: SparkSession, root: str, segment: LogSegment, storage: ObjectStorage) -> str:
    """The reason why the server of Spark Connect does not read the bucket; empty if it does.

    A negative answer holds for the session too: a connector without credentials may have tried for minutes.
    """
    bucket = root.partition("://")[0], authority_of(root)
    known = _answers.setdefault(spark, {})
    if bucket not in known:
        newest, expected = _newest(segment, storage)
        path = hadoop_path(newest.path)
        try:
            with plain_calls():
                reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
                start = F.substring("content", 1, len(expected))
                found = reader.option("__globPaths__", "false").load(path).select("length", start).collect()
        except PySparkException as error:
            known[bucket] = f"the server of Spark Connect does not read {path}: {_say(error)}"
        else:
            same = [tuple(row) for row in found] == [(newest.size_bytes, expected)]
            known[bucket] = (
                "" if same else f"the server of Spark Connect does not return {path!r} as it is in the table"
            )
    return known[bucket]


def _is_set(settings: Any, name: str) -> bool:
    """Whether the user set it: Hadoop's own defaults do not count."""
    sources = settings.getPropertySources(name) or ()
    return settings.get(name) is not None and "core-default.xml" not in list(sources)


def _is_same_place(one: str, other: str) -> bool:
    first, second = urlsplit(one), urlsplit(other)
    amazon = [_AMAZON.fullmatch(url.hostname or "") for url in (first, second)]
    if all(amazon):
        # a bucket's name is unique in all regions of a partition
        return amazon[0][1] == amazon[1][1] and first.scheme == second.scheme  # type: ignore[index]
    return _origin(first) == _origin(second)


def _origin(url: Any) -> tuple[str, str, int]:
    return url.scheme, (url.hostname or "").lower(), url.port or {"http": 80}.get(url.scheme, 443)


def _of_s3(settings: Any, root: str) -> str:
    secure = settings.getBoolean("fs.s3a.connection.ssl.enabled", True)
    found = settings.get(f"fs.s3a.bucket.{authority_of(root)}.endpoint") or settings.get("fs.s3a.endpoint") or ""
    place = found.strip() or "s3.amazonaws.com"
    return place if "://" in place else f"http{'s' if secure else ''}://{place}"


def _of_azure(settings: Any, root: str) -> str:
    host = authority_of(root).rpartition("@")[2]

    def setting(name: str) -> str:
        # a setting for the account precedes the general one, even if it is empty
        found = settings.get(f"{name}.{host}")
        return str((settings.get(name) if found is None else found) or "").strip()

    secure = root.startswith("abfss:") or settings.getBoolean("fs.azure.always.use.https", True)
    secure = secure or setting("fs.azure.account.auth.type").lower() == "oauth"
    # of an emulator; ignored without a port
    elsewhere = setting("fs.azure.abfs.endpoint")
    # the account's blobs have another host name of the same server
    place = elsewhere if ":" in elsewhere else host.replace(".dfs.", ".blob.", 1)
    return f"http{'s' if secure else ''}://{place}"


def _of_google(settings: Any, _: str) -> str:
    # the gRPC client always asks Google
    by_http = (settings.get("fs.gs.client.type") or _HTTP_CLIENT).strip().upper() == _HTTP_CLIENT
    return (by_http and settings.get("fs.gs.storage.root.url")) or _GOOGLE


def _sizes_with_a_unit(settings: Any) -> str:
    """Find a size that this connector cannot read: Hadoop 3.5 gives ``fs.gs`` sizes a unit, for its own connector."""
    found = (settings.get(_BLOCK_SIZE) or "").strip()
    if not found or found.isdigit():
        return ""
    return (
        f"Spark's connector GCS does not read Hadoop's {_BLOCK_SIZE} ({found}): set spark.hadoop.{_BLOCK_SIZE} 67108864"
    )


def _say(error: Exception) -> str:
    """The first line of an error of the JVM, without the class."""
    cause = getattr(error, "java_exception", None)
    text = cause.toString() if cause is not None else error.message if isinstance(error, DeltaError) else str(error)
    return without_secrets((text.strip().splitlines() or [type(error).__name__])[0])


_S3A = _Kind(
    "S3A",
    ("org.apache.hadoop.fs.s3a.S3AFileSystem",),
    "org.apache.hadoop:hadoop-aws of its Hadoop's version (spark.jars.packages)",
    _of_s3,
    "set spark.hadoop.fs.s3a.endpoint",
    (
        "fs.s3a.access.key", "fs.s3a.bucket.{authority}.access.key", "fs.s3a.aws.credentials.provider",
        "fs.s3a.bucket.{authority}.aws.credentials.provider", _PROVIDER_PATH,
    ),
)  # fmt: skip
_ABFS = _Kind(
    "ABFS",
    (
        "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem",
        "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem",
    ),
    "org.apache.hadoop:hadoop-azure of its Hadoop's version (spark.jars.packages)",
    _of_azure,
    "for another endpoint than the account's, give the path as abfs:// and set spark.hadoop.fs.azure.abfs.endpoint",
    (
        "fs.azure.account.key.{host}", "fs.azure.account.key", "fs.azure.account.auth.type.{host}",
        "fs.azure.account.auth.type", _PROVIDER_PATH,
    ),
)  # fmt: skip
_HADOOP_GCP = _Kind(
    "hadoop-gcp",
    ("org.apache.hadoop.fs.gs.GoogleHadoopFileSystem",),
    "org.apache.hadoop:hadoop-gcp of its Hadoop's version (spark.jars.packages)",
    lambda *_: _GOOGLE,
    "its endpoint cannot be set, but that of com.google.cloud.bigdataoss:gcs-connector can",
    ("fs.gs.auth.type",),
)
_GCS = _Kind(
    "GCS",
    ("com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",),
    "com.google.cloud.bigdataoss:gcs-connector, the shaded JAR (spark.jars)",
    _of_google,
    "set spark.hadoop.fs.gs.storage.root.url",
    ("fs.gs.auth.type", "google.cloud.auth.type"),
    _sizes_with_a_unit,
)
_KINDS = {"s3": (_S3A,), "abfs": (_ABFS,), "gs": (_HADOOP_GCP, _GCS)}
