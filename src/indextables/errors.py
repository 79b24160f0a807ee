"""The one tree of errors that IndexTables raises.

    Error
    +-- MissingPackageError    Spark is asked for and what it needs is not installed
    +-- OptionError            an option key or value that is not known
    +-- StorageError           the store said no, or could not be reached
    |   +-- NotFoundError      there is no such object
    +-- LogError               something about the transaction log
    |   +-- NotATableError     the path holds no transaction log
    |   +-- CorruptLogError    a log file that cannot be what a writer wrote
    |   |   +-- MissingVersionError   a version between two others is gone
    |   +-- VersionNotFoundError      a version that cannot be reconstructed
    |   +-- ProtocolError      the table asks for a newer reader or writer
    |   +-- LogTimeoutError    log files could not be read in time
    +-- CommitError            a commit that did not happen
    |   +-- ConflictError      another writer changed what this one relied on
    |   +-- AttemptsExhaustedError    too many conflicts in a row
    +-- SchemaError            columns or types that do not fit the table
    |   +-- ConstraintError    a row that breaks a CHECK constraint, or lacks what is NOT NULL
    +-- PredicateError         a filter that cannot be understood exactly
    +-- CommandError           a SQL command that cannot be parsed or run
    +-- SplitError             something about one split file
    |   +-- DamagedSplitError  a split whose bytes are not what was written
    |   +-- DamagedIndexError  a search index whose bytes are not what was written
    |   +-- MissingSplitError  a split named by the log is not there
    |   +-- NewerSplitError    a split of a later format version
    +-- QueryError             a full-text query that cannot be understood
    +-- TableError             a table verb that cannot be carried out as asked
    +-- CancelledError         whoever asked has given up

Every error takes a message and optional fields. The message stands alone: it
says what happened, to which file or version, and what to do. A message that quotes
a name of a megabyte is cut in the middle, here and nowhere else. The fields carry
the same facts for programs, uncut, and errors survive pickling with them.
"""

from __future__ import annotations

from typing import Any

ADVICE_ON_DAMAGE = "Restore the file from a backup, or let CHECK INDEXTABLES say what can be saved and how."
"""What to do about a damaged log file, for messages."""


_LONGEST = 4_000
_BEGINNING, _END = 2_500, 1_200


class Error(Exception):
    """Anything IndexTables raises on purpose."""

    def __init__(self, message: str, **fields: Any) -> None:
        self.message = bounded(message)
        super().__init__(self.message)
        self.fields = fields

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.fields)

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__.get("fields", {})
        if name in fields:
            return fields[name]
        raise AttributeError(f"{type(self).__name__} has no field {name!r}")


def bounded(text: str) -> str:
    """A text that may quote what others wrote, short enough to print: a long one loses its middle."""
    if len(text) <= _LONGEST:
        return text
    left_out = len(text) - _BEGINNING - _END
    return f"{text[:_BEGINNING]} ... ({left_out:,} characters left out) ... {text[-_END:]}"


def _rebuild(kind: type[Error], message: str, fields: dict[str, Any]) -> Error:
    return kind(message, **fields)


class MissingPackageError(Error, ImportError):
    """Spark is asked for and what it needs is not installed."""


class OptionError(Error, ValueError):
    """An option key or value that is not known."""


class StorageError(Error, OSError):
    """The store said no, or could not be reached."""


class NotFoundError(StorageError):
    """There is no such object."""


class LogError(Error):
    """Something about the transaction log."""


class NotATableError(LogError):
    """The path holds no transaction log."""


class CorruptLogError(LogError):
    """A log file that cannot be what a writer wrote."""


class MissingVersionError(CorruptLogError):
    """A version between two others is gone."""


class VersionNotFoundError(LogError):
    """A version that cannot be reconstructed."""


class ProtocolError(LogError):
    """The table asks for a newer reader or writer."""


class LogTimeoutError(LogError):
    """Log files could not be read in time."""


class CommitError(Error):
    """A commit that did not happen."""


class ConflictError(CommitError):
    """Another writer changed what this one relied on."""


class AttemptsExhaustedError(CommitError):
    """Too many conflicts in a row."""


class SchemaError(Error, ValueError):
    """Columns or types that do not fit the table."""


class ConstraintError(SchemaError):
    """A row that breaks a CHECK constraint, or lacks a value of a column that is NOT NULL."""


class PredicateError(Error, ValueError):
    """A filter that cannot be understood exactly."""


class CommandError(Error, ValueError):
    """A SQL command that cannot be parsed or run."""


class SplitError(Error):
    """Something about one split file."""


class DamagedSplitError(SplitError):
    """A split whose bytes are not what was written."""


class DamagedIndexError(SplitError):
    """A search index whose bytes are not what was written; the rows are not affected."""


class MissingSplitError(SplitError):
    """A split named by the log is not there."""


class NewerSplitError(SplitError):
    """A split of a later format version."""


class QueryError(Error, ValueError):
    """A full-text query that cannot be understood."""


class TableError(Error):
    """A table verb that cannot be carried out as asked."""


class CancelledError(Error):
    """Whoever asked has given up, so the work ended early."""
