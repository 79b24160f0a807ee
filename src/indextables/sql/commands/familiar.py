"""Statements that people know from other systems: those that work here, and advice for the others.

OPTIMIZE, VACUUM, DESCRIBE HISTORY, DESCRIBE DETAIL, RESTORE TABLE, SHOW PARTITIONS
and SHOW TBLPROPERTIES are other spellings of IndexTables commands, and the grammar reads them.
The statements here have no command: either nothing has to be done for what
they ask, or one sentence says what to type instead.

The words of Delta Lake and Spark are also used for tables that are not ours.
`subject_of` says which table such a statement is about, so that a session can
leave it to whoever owns that table.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from indextables.sql.commands import TableName

_STRING = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""
_PART = r"(?:`(?:[^`]|``)+`|[^\W\d]\w*)"
_TABLE = rf"\s+(?:{_STRING}|{_PART}(?:\s*\.\s*{_PART})*)\s+"
_UNKEPT = r"(?:CHECK|PRIMARY\s+KEY|UNIQUE|FOREIGN\s+KEY)\b"
_CONSTRAINT = (
    rf"{_TABLE}(?:(?:ADD|DROP)\s+CONSTRAINT\b|ADD\s+{_UNKEPT}"
    rf"|(?:ALTER|CHANGE)\s+(?:COLUMN\s+)?{_PART}\s+SET\s+NOT\s+NULL\b)"
)
_INDEX_STATEMENT = (
    rf"(?P<index>(?:CREATE|DROP|REFRESH)\s+INDEX\s+(?:IF\s+(?:NOT\s+)?EXISTS\s+)?{_PART}\s+ON"
    r"(?:\s+TABLE\b(?!\s*[.(]))?|SHOW\s+INDEXES\s+(?:ON|FROM|IN))"
)
_SHARED = re.compile(
    rf"""(?: OPTIMIZE | VACUUM | DESC(?:RIBE)?\s+(?:HISTORY|DETAIL) | RESTORE(?:\s+TABLE)?
           | SHOW\s+(?:PARTITIONS|TBLPROPERTIES) | REORG\s+TABLE
           | ANALYZE\s+TABLE | ANALYZE(?=\s.*\bFOR\s+SKIPPING\b) | FSCK\s+REPAIR\s+TABLE
           | ALTER\s+TABLE(?={_CONSTRAINT}) | {_INDEX_STATEMENT}
         )(?![\w.])\s*(?: (?P<path>{_STRING}) | (?P<name>{_PART}(?:\s*\.\s*{_PART})*) )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_PARTS = re.compile(_PART)
_BY_PATH = 2


class Advice(NamedTuple):
    """What to say to a statement that has no command here."""

    sentence: str
    unneeded: bool
    """Whether its purpose is fulfilled without it, so that a script that runs it may go on."""


_STATISTICS = (
    "Statistics are written with every split and kept in the log, so there is nothing to compute; "
    "DESCRIBE INDEXTABLES STATE shows what the log knows of a table."
)
_PREWARM = (
    "An index is read by ranges and kept in memory once it was used, so nothing has to be loaded "
    "beforehand; the option indexCache.dir keeps what was read on a local disk as well."
)
_FLUSH = (
    "What is cached of an index never becomes stale, so there is nothing to flush; INVALIDATE INDEXTABLES "
    "TRANSACTION LOG CACHE makes open tables look for newer versions."
)
_PROFILER = (
    "There is no profiler to switch on or off, for every scan keeps its own figures: see table.last_scan in "
    "Python, DESCRIBE INDEXTABLES DATA SKIPPING STATS in SQL, or indextables bench in a shell."
)
_MERGE_JOBS = (
    "Merges after a write are part of that write, so there are no jobs to look at; DESCRIBE INDEXTABLES "
    "HISTORY shows them."
)
_ZORDER = (
    "ZORDER BY is not known here, for merged rows keep their order: sort the rows before they are written, "
    "or partition the table. OPTIMIZE without it merges small splits."
)
_FSCK = (
    "Type CHECK INDEXTABLES '/path/of/the/table' instead: it changes nothing, names each file that is "
    "missing, and says which command helps."
)
_NO_CACHE_FIGURES = (
    "There is no disk cache to describe unless the option indexCache.dir names a directory: its files are "
    "the cache, and indexCache.maxBytes is their bound."
)
_STORAGE_STATS = (
    "Reads are counted for each scan: see table.last_scan in Python, or DESCRIBE INDEXTABLES DATA SKIPPING "
    "STATS in SQL."
)
_ENVIRONMENT = (
    "Type SET in spark.sql to see the configuration of the session; every option that counts here begins "
    "with spark.indextables."
)
_ONLY_CHECK = (
    "Of constraints only CHECK is kept, for only such a one can be enforced, and it has a name: ALTER TABLE "
    "t ADD CONSTRAINT positive CHECK (price > 0). NOT NULL is set by ALTER TABLE t ALTER COLUMN price "
    "SET NOT NULL."
)
_ADVICE: tuple[tuple[str, Advice], ...] = (
    (r"OPTIMIZE\b.*?\bZORDER\b", Advice(_ZORDER, unneeded=False)),
    (r"ANALYZE\s+TABLES?\b(?!.*\bFOR\s+SKIPPING\b)", Advice(_STATISTICS, unneeded=True)),
    (rf"ALTER\s+TABLE{_TABLE}ADD\s+{_UNKEPT}", Advice(_ONLY_CHECK, unneeded=False)),
    (
        rf"ALTER\s+TABLE{_TABLE}ADD\s+CONSTRAINT\s+{_PART}\s+(?!CHECK){_UNKEPT}",
        Advice(_ONLY_CHECK, unneeded=False),
    ),
    (r"FSCK\s+REPAIR\s+TABLE\b", Advice(_FSCK, unneeded=False)),
    (r"PREWARM\s+INDEXTABLES?\s+CACHE\b", Advice(_PREWARM, unneeded=True)),
    (r"WAIT\s+FOR\s+INDEXTABLES?\s+PREWARM\s+JOBS\b", Advice(_PREWARM, unneeded=True)),
    (r"DESC(?:RIBE)?\s+INDEXTABLES?\s+PREWARM\s+JOBS\b", Advice(_PREWARM, unneeded=True)),
    (r"DESC(?:RIBE)?\s+INDEXTABLES?\s+MERGE\s+JOBS\b", Advice(_MERGE_JOBS, unneeded=True)),
    (r"FLUSH\s+INDEXTABLES?\s+(?:SEARCHER|DISK)\s+CACHE\b", Advice(_FLUSH, unneeded=True)),
    (r"(?:ENABLE|DISABLE|RESET)\s+INDEXTABLES?\s+PROFILER\b", Advice(_PROFILER, unneeded=True)),
    (r"DESC(?:RIBE)?\s+INDEXTABLES?\s+PROFILER\b", Advice(_PROFILER, unneeded=False)),
    (r"DESC(?:RIBE)?\s+INDEXTABLES?\s+DISK\s+CACHE\b", Advice(_NO_CACHE_FIGURES, unneeded=False)),
    (r"DESC(?:RIBE)?\s+INDEXTABLES?\s+STORAGE\s+STATS\b", Advice(_STORAGE_STATS, unneeded=False)),
    (r"DESC(?:RIBE)?\s+INDEXTABLES?\s+ENVIRONMENT\b", Advice(_ENVIRONMENT, unneeded=False)),
)
_PATTERNS = tuple((re.compile(words, re.IGNORECASE | re.DOTALL), advice) for words, advice in _ADVICE)


def advice_on(text: str) -> Advice | None:
    """What to say to a statement of another system that has no command here; comments are blanked out."""
    bare = text.lstrip()
    return next((advice for words, advice in _PATTERNS if words.match(bare)), None)


def subject_of(text: str) -> TableName | None:
    """The table of a statement whose words other systems use too; None for any other statement."""
    match = _SHARED.match(text.lstrip())
    if match is None:
        return None
    if match["path"]:
        return TableName(path=unquoted(match["path"]))
    return named([unquoted(part) for part in _PARTS.findall(match["name"])])


def is_about_an_index(text: str) -> bool:
    """Whether such a statement is about an index, which tables of other systems can have too."""
    match = _SHARED.match(text.lstrip())
    return match is not None and match["index"] is not None


def named(parts: list[str]) -> TableName:
    """A table by the parts of its name: ``indextables.`path` `` is a path, all else the name of a view."""
    if len(parts) == _BY_PATH and parts[0].lower() == "indextables":
        return TableName(path=parts[1])
    return TableName(view=tuple(parts))


def path_of_source(parts: tuple[str, ...]) -> str | None:
    """The path in ``delta.`path` `` and ``parquet.`path` ``; None for other names."""
    by_path = len(parts) == _BY_PATH and parts[0].lower() in ("delta", "parquet") and "/" in parts[1]
    return parts[1] if by_path else None


def unquoted(text: str) -> str:
    """A name or string without its quotes, and with doubled quotes as one."""
    quote = text[0]
    return text if quote not in "'\"`" else text[1:-1].replace(quote * 2, quote)
