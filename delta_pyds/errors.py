"""The errors of delta_pyds: one tree with stable codes.

Invariant: every problem with a table, an option or a file is raised as a
``DeltaError``. Its message names the table, the version or the file, and says
what to do next. ``code`` is the error class of the reference implementation
if it has one for the condition, so that runbooks and searches keep working.
"""

from __future__ import annotations

from typing import Any

from delta_pyds.redaction import shown, shown_value

# The parameter with the text of an expression that our own evaluator does not support. If there is a Spark session, it
# evaluates the expression instead.
UNKNOWN_EXPRESSION = "unknown_expression"


class DeltaError(Exception):
    """Root of the tree of errors.

    Message and parameters contain names and values from tables, and appear in
    terminals and logs. So they are redacted by ``redaction.shown``: without the
    credentials of URLs, with escaped control characters, and of limited length.
    Compare a parameter with ``shown(path)``, not with ``path``.

    Errors can be pickled, because planners and tasks run in other processes than
    the one that shows the error.

    Attributes:
        code: a stable identifier: the reference's name (``DELTA_...``) if it has one.
        message: the message without the code.
        parameters: the named values in the message (``table``, ``version``, ``path`` ...).
        multiline: line breaks in the message are kept; else they are escaped too.

    >>> try:
    ...     delta_pyds.read(spark, "/data/event")
    ... except delta_pyds.DeltaError as error:
    ...     print(error.code, error.parameters["table"])
    """

    default_code = "DELTA_ERROR"

    def __init__(self, message: str, *, code: str | None = None, multiline: bool = False, **parameters: Any) -> None:
        self.code = shown(code or self.default_code)
        self.multiline = multiline
        self.message = shown(message, multiline=multiline)
        self.parameters = {name: shown_value(value, multiline=multiline) for name, value in parameters.items()}
        super().__init__(f"[{self.code}] {self.message}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.code, self.multiline, self.parameters)


def _rebuild(cls: type[DeltaError], message: str, code: str, multiline: bool, parameters: dict[str, Any]) -> DeltaError:
    return cls(message, code=code, multiline=multiline, **parameters)


# --- the table breaks the protocol, or needs more than this release supports


class ProtocolError(DeltaError):
    """The table's files violate the protocol."""

    default_code = "DELTA_PROTOCOL_VIOLATION"


class UnsupportedFeatureError(ProtocolError):
    """The table needs a feature or a protocol version that this release does not support."""

    default_code = "DELTA_UNSUPPORTED_FEATURES_FOR_READ"


class CorruptLogError(ProtocolError):
    """A file of the log exists but is damaged."""

    default_code = "DELTA_CORRUPT_LOG_FILE"


class MissingLogFilesError(ProtocolError):
    """The log lacks files that the requested version needs."""

    default_code = "DELTA_VERSIONS_NOT_CONTIGUOUS"


class ChecksumMismatchError(ProtocolError):
    """The version checksum file contradicts the replayed log."""

    default_code = "DELTA_CHECKSUM_MISMATCH"


class DeletionVectorError(ProtocolError):
    """A deletion vector is missing, damaged, or contradicts its descriptor."""

    default_code = "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH"


class CorruptDataFileError(ProtocolError):
    """A data file exists but is damaged, or is not the Parquet file that the log describes."""

    default_code = "FAILED_READ_FILE"


class VerificationError(ProtocolError):
    """A verified table violates the protocol. ``parameters["findings"]`` has the errors."""

    default_code = "DELTA_VERIFICATION_FAILED"


class SchemaMismatchError(ProtocolError):
    """A column of a data file has a type that cannot be converted to the table's type."""

    default_code = "FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH"


# --- the request cannot be fulfilled


class UserError(DeltaError):
    """The request is invalid, not the table."""

    default_code = "DELTA_ILLEGAL_USAGE"


class TableNotFoundError(UserError):
    """There is no Delta table at the path, or with the name in the catalog."""

    default_code = "DELTA_MISSING_DELTA_TABLE"


class OptionError(UserError):
    """An option has an invalid value, or contradicts another option."""

    default_code = "DELTA_ILLEGAL_OPTION"


class TimeTravelError(UserError):
    """The log cannot reconstruct the requested version or timestamp."""

    default_code = "DELTA_VERSION_NOT_FOUND"


class ColumnNotFoundError(UserError):
    """The request names a column that the table does not have."""

    default_code = "DELTA_COLUMN_NOT_FOUND"


class ExpressionError(UserError):
    """An expression cannot be parsed, or cannot be evaluated exactly as in Spark."""

    default_code = "DELTA_UNSUPPORTED_EXPRESSION"


class SqlSyntaxError(UserError):
    """A statement is not valid SQL of Spark or Delta. ``parameters``: ``position``, ``line``, ``column`` in its text.

    >>> try:
    ...     delta_pyds.sql(spark, "DELETE delta.`/data/events`")
    ... except delta_pyds.errors.SqlSyntaxError as error:
    ...     print(error.message)  # with a mark under the position
    """

    default_code = "PARSE_SYNTAX_ERROR"


class ConstraintViolationError(UserError):
    """A row violates a rule of the table: NOT NULL, a length, a constraint, a generated column."""

    default_code = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"


class UnsupportedOperationError(UserError):
    """The operation is not supported, although the reference may support it."""

    default_code = "DELTA_OPERATION_NOT_ALLOWED"


class WorkerPythonError(UserError):
    """The Python of Spark's workers lacks this package, or is not the session's Python."""

    default_code = "DELTA_PYDS_NOT_INSTALLED_ON_WORKERS"


# --- another transaction committed first


class ConflictError(DeltaError):
    """Another transaction committed first, and this one conflicts with it.

    ``may_run_again``: False if another run of the command might use the same old rows of the table.

    >>> try:
    ...     delta_pyds.write(df, "/data/events", mode="overwrite")
    ... except delta_pyds.ConflictError:
    ...     ...  # check the table's current state, and write again
    """

    default_code = "DELTA_CONCURRENT_WRITE"
    may_run_again = True


class ConcurrentAppendError(ConflictError):
    """Another commit added files that this transaction would have read."""

    default_code = "DELTA_CONCURRENT_APPEND"


class ConcurrentDeleteReadError(ConflictError):
    """Another commit removed files that this transaction read."""

    default_code = "DELTA_CONCURRENT_DELETE_READ"


class ConcurrentDeleteDeleteError(ConflictError):
    """Another commit removed files that this transaction removes too."""

    default_code = "DELTA_CONCURRENT_DELETE_DELETE"


class ConcurrentTransactionError(ConflictError):
    """Another commit wrote for the same application, or in the same metadata domain."""

    default_code = "DELTA_CONCURRENT_TRANSACTION"


class ConcurrentWriteError(ConflictError):
    """The table was deleted, dropped or replaced by another one during the transaction."""

    default_code = "DELTA_CONCURRENT_WRITE"


class MetadataChangedError(ConflictError):
    """Another commit changed the table's schema, partitioning or properties."""

    default_code = "DELTA_METADATA_CHANGED"


class ProtocolChangedError(ConflictError):
    """Another commit changed the table's protocol, or created the table."""

    default_code = "DELTA_PROTOCOL_CHANGED"


class CommitRetriesExceededError(ConflictError):
    """Other transactions committed first in all attempts that the policy allows."""

    default_code = "DELTA_MAX_COMMIT_RETRIES_EXCEEDED"


# --- files and catalogs could not be accessed


class StorageError(DeltaError):
    """An operation of the file system failed or was refused."""

    default_code = "DELTA_STORAGE_ERROR"


class CatalogError(StorageError):
    """The catalog of a table could not be reached, or contradicts itself."""

    default_code = "DELTA_CATALOG_ERROR"


class FileNotFoundInStorageError(StorageError):
    """A file or directory does not exist."""

    default_code = "DELTA_FILE_NOT_FOUND_DETAILED"


class FileExistsInStorageError(StorageError):
    """A put-if-absent found an existing file: for a commit, another writer was first."""

    default_code = "DELTA_FILE_ALREADY_EXISTS"


class NothingWrittenError(StorageError):
    """The file system or the catalog refused to write, so the file or commit will certainly not appear later."""


class CommitOutcomeUnknownError(StorageError):
    """It is unknown whether a commit is in the log. Its data files must not be deleted."""

    default_code = "DELTA_COMMIT_OUTCOME_UNKNOWN"


class CatalogAnswerError(CatalogError, CommitOutcomeUnknownError):
    """A catalog gave an invalid answer to a proposed commit, so it is unknown whether it was committed."""

    default_code = CatalogError.default_code


def first_line(error: BaseException) -> str:
    """The first line of an error, for a sentence; its class if it has no text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
