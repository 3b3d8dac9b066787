"""Every error that delta_pyds raises on purpose: one tree, stable codes.

Invariant: whatever goes wrong with a table, an option or a file surfaces as a
``DeltaError`` whose message is a sentence for the user: it names the table,
the version or the file, and says what to do next. ``code`` is the error class
of the reference implementation wherever it has one for the condition, so that
runbooks and searches keep working.
"""

from __future__ import annotations

from typing import Any

from delta_pyds.redaction import shown, shown_value

# The parameter of an error that has the text of an expression which our own evaluator does not know, and Spark may:
# where a session is at hand, it computes it instead.
UNKNOWN_EXPRESSION = "unknown_expression"


class DeltaError(Exception):
    """Root of the tree.

    Attributes:
        code: stable identifier, the reference's name (``DELTA_...``) where one exists.
        message: the sentence, without the code.
        parameters: the named values in the message (``table``, ``version``, ``path`` ...).

    Both are as ``redaction.shown`` leaves them: without the credentials of
    URLs, control characters escaped, and of limited length. They hold names
    and values that come out of tables, and end up in terminals and in logs.
    Who compares a parameter with a path compares it with ``shown(path)``.
    ``multiline``: the line ends in the message are meant; else they are escaped, too.

    >>> try:
    ...     delta_pyds.read(spark, "/data/event")
    ... except delta_pyds.DeltaError as error:
    ...     print(error.code, error.parameters["table"])

    Survives pickling with all of it, because planners and tasks are other
    processes than the one that shows the error.
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


# --- the table breaks the protocol, or goes beyond what this version understands


class ProtocolError(DeltaError):
    """The table's own files do not say what the protocol requires."""

    default_code = "DELTA_PROTOCOL_VIOLATION"


class UnsupportedFeatureError(ProtocolError):
    """The table needs a feature or a protocol version that is not supported here."""

    default_code = "DELTA_UNSUPPORTED_FEATURES_FOR_READ"


class CorruptLogError(ProtocolError):
    """A file of the log exists but cannot be understood."""

    default_code = "DELTA_CORRUPT_LOG_FILE"


class MissingLogFilesError(ProtocolError):
    """The log lacks files that the asked version needs."""

    default_code = "DELTA_VERSIONS_NOT_CONTIGUOUS"


class ChecksumMismatchError(ProtocolError):
    """The version checksum file contradicts the replayed log."""

    default_code = "DELTA_CHECKSUM_MISMATCH"


class DeletionVectorError(ProtocolError):
    """A deletion vector is missing, damaged, or contradicts its descriptor."""

    default_code = "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH"


class CorruptDataFileError(ProtocolError):
    """A data file exists but is not the Parquet file that the log promises."""

    default_code = "FAILED_READ_FILE"


class VerificationError(ProtocolError):
    """A table was verified and breaks rules of the protocol. ``parameters["findings"]`` holds the errors."""

    default_code = "DELTA_VERIFICATION_FAILED"


class SchemaMismatchError(ProtocolError):
    """A data file holds a column of a type that cannot become the table's type."""

    default_code = "FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH"


# --- the user asked for something that cannot be done


class UserError(DeltaError):
    """The request is wrong, not the table."""

    default_code = "DELTA_ILLEGAL_USAGE"


class TableNotFoundError(UserError):
    """There is no Delta table at the path."""

    default_code = "DELTA_MISSING_DELTA_TABLE"


class OptionError(UserError):
    """An option has an impossible value, or contradicts another one."""

    default_code = "DELTA_ILLEGAL_OPTION"


class TimeTravelError(UserError):
    """The version or timestamp asked for is not one that the log can give."""

    default_code = "DELTA_VERSION_NOT_FOUND"


class ColumnNotFoundError(UserError):
    """A column was named that the table does not have."""

    default_code = "DELTA_COLUMN_NOT_FOUND"


class ExpressionError(UserError):
    """A predicate cannot be parsed, or not evaluated exactly as Spark would."""

    default_code = "DELTA_UNSUPPORTED_EXPRESSION"


class SqlSyntaxError(UserError):
    """A statement is not SQL of Spark or Delta. ``parameters``: ``position``, ``line`` and ``column`` in its text.

    >>> try:
    ...     delta_pyds.sql(spark, "DELETE delta.`/data/events`")
    ... except delta_pyds.errors.SqlSyntaxError as error:
    ...     print(error.message)  # with a mark under the place
    """

    default_code = "PARSE_SYNTAX_ERROR"


class ConstraintViolationError(UserError):
    """A row breaks a rule of the table: NOT NULL, a length, a constraint, a generated column."""

    default_code = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"


class UnsupportedOperationError(UserError):
    """The operation exists in the reference, and not yet here."""

    default_code = "DELTA_OPERATION_NOT_ALLOWED"


class WorkerPythonError(UserError):
    """The Python that Spark's workers run lacks this package, or is not the one that the session runs with."""

    default_code = "DELTA_PYDS_NOT_INSTALLED_ON_WORKERS"


# --- somebody else committed first


class ConflictError(DeltaError):
    """Another transaction committed first, and this one conflicts with it.

    >>> try:
    ...     delta_pyds.write(df, "/data/events", mode="overwrite")
    ... except delta_pyds.ConflictError:
    ...     ...  # look at the table as it is now, and write again
    """

    default_code = "DELTA_CONCURRENT_WRITE"


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
    """The log was changed under the transaction in a way that no commit makes."""

    default_code = "DELTA_CONCURRENT_WRITE"


class MetadataChangedError(ConflictError):
    """Another commit changed the table's schema, partitioning or properties."""

    default_code = "DELTA_METADATA_CHANGED"


class ProtocolChangedError(ConflictError):
    """Another commit changed the table's protocol, or created the table."""

    default_code = "DELTA_PROTOCOL_CHANGED"


class CommitRetriesExceededError(ConflictError):
    """Other transactions committed first in each of the attempts that the policy allows."""

    default_code = "DELTA_MAX_COMMIT_RETRIES_EXCEEDED"


# --- the bytes could not be had


class StorageError(DeltaError):
    """The file system failed or refused."""

    default_code = "DELTA_STORAGE_ERROR"


class CatalogError(StorageError):
    """The catalog of a table could not be asked, or contradicts itself."""

    default_code = "DELTA_CATALOG_ERROR"


class FileNotFoundInStorageError(StorageError):
    """A file that the log names is not there."""

    default_code = "DELTA_FILE_NOT_FOUND_DETAILED"


class FileExistsInStorageError(StorageError):
    """A put-if-absent found an existing file. Writers take this as a lost race."""

    default_code = "DELTA_FILE_ALREADY_EXISTS"


class NothingWrittenError(StorageError):
    """The file system refused before the file could be created: no late success is possible."""


class CommitOutcomeUnknownError(StorageError):
    """It is unknown whether a commit was made: it may be in the log. Its data files must stay."""

    default_code = "DELTA_COMMIT_OUTCOME_UNKNOWN"


class CatalogAnswerError(CatalogError, CommitOutcomeUnknownError):
    """A catalog's answer to a proposal is of a wrong type: whether the commit was made is not known."""

    default_code = CatalogError.default_code
