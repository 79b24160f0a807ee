"""What a statement is, as far as its own words say: the one look at every statement of a Spark session.

`recognise` takes a text and returns a `Statement`. Its form says who answers: a maintenance
command and a definition USING indextables are ours; OPTIMIZE and its like, INSERT, DELETE,
UPDATE and MERGE are ours where their table is, which the caller finds out; every other
statement is an `OtherStatement` for Spark. The first word decides which form is tried, so that an
ordinary query is neither tokenized nor parsed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from indextables.errors import CommandError
from indextables.sql.commands import TableName
from indextables.sql.commands.grammar import (
    COMMAND_VERBS,
    SHARED_VERBS,
    first_word,
    is_command,
    is_index_statement,
    shared_subject,
)
from indextables.sql.select.mentions import SqlToken, words_of

_PROVIDERS = frozenset(
    {
        "indextables",
        "io.indextables.spark.core.indextables4sparktableprovider",
        "io.indextables.provider.indextablesprovider",
    }
)
_QUERY_STARTS = frozenset({"SELECT", "VALUES", "WITH", "TABLE", "FROM", "(", "MAP", "REDUCE"})
_CHANGE_STARTS = (
    ("DELETE", "FROM"), ("UPDATE",), ("MERGE", "INTO"), ("MERGE", "WITH", "SCHEMA", "EVOLUTION", "INTO"),
)  # fmt: skip
_CHANGES = frozenset({"INSERT", "DELETE", "UPDATE", "MERGE"})
_USING = re.compile(r"\bUSING\b", re.IGNORECASE)
_FOR_SKIPPING = re.compile(r"\bFOR\s+SKIPPING\b", re.IGNORECASE)
_CHANGE_WORD = re.compile(r"\b(?:INSERT|DELETE|UPDATE|MERGE)\b", re.IGNORECASE)
_MENTION = re.compile(
    r"(?P<search>indexquery|textsearch|fieldmatch)|(?P<path>indextables\s*\.\s*`)"
    r"|(?P<bucket>\bindextables_(?:date_)?(?:histogram|range)\s*\()",
    re.IGNORECASE,
)
_COMMENT = r"(?:\s|--[^\n]*\n|/\*.*?\*/)*"
_PREFIX = re.compile(
    rf"{_COMMENT}(?:EXPLAIN(?:\s+(?:EXTENDED|CODEGEN|COST|FORMATTED|LOGICAL))?\s+"
    r"|CREATE\s+(?P<replace>OR\s+REPLACE\s+)?(?P<global>GLOBAL\s+)?TEMP(?:ORARY)?\s+VIEW\s+"
    r"(?P<view>`(?:[^`]|``)+`|\w+)\s+AS\s+)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class MaintenanceCommand:
    """A maintenance command, which the words alone make ours."""


@dataclass(frozen=True, slots=True)
class SharedCommand:
    """A statement such as OPTIMIZE, which tables of other systems have too."""

    subject: TableName
    is_spark_syntax: bool = False
    """Whether Spark runs it by itself for a table of our catalog: SHOW and ANALYZE TABLE."""
    about_index: bool = False
    """Whether it is about an index, which Delta tables and Parquet files can have too."""


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE [OR REPLACE] [GLOBAL] [TEMPORARY] VIEW or TABLE name USING indextables."""

    kind: str
    name: str
    temporary: bool
    replace: bool = False
    shared: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT INTO or OVERWRITE a name; the rest of the statement is read by `insertion_of`."""

    target: tuple[str, ...]
    overwrite: bool
    prefix: str = field(repr=False)
    """The common table expressions before INSERT."""
    rest: str = field(repr=False)
    """The text behind the target."""


@dataclass(frozen=True, slots=True)
class Insertion:
    """Where the rows of an INSERT come from, and which rows they replace."""

    query: str
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    replace_where: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """DELETE, UPDATE or MERGE, and the parts of its target's name."""

    verb: str
    target: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OtherStatement:
    """Every other statement."""


Form = MaintenanceCommand | SharedCommand | CreateView | Insert | Change | OtherStatement


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """The head of CREATE TEMPORARY VIEW name AS."""

    name: str
    """As it is written, in backticks or not."""
    replace: bool
    shared: bool


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement and what its words say about it."""

    text: str
    form: Form
    start: int = 0
    """Where the query begins, behind EXPLAIN or CREATE TEMPORARY VIEW ... AS."""
    view: ViewDefinition | None = None
    mentions: frozenset[str] = frozenset()
    """Which of `search`, `path` and `bucket` occur in the text, perhaps only in a string or a comment."""

    @property
    def is_sparks(self) -> bool:
        """Whether nothing in it can be ours but the views it names."""
        return isinstance(self.form, OtherStatement) and not self.mentions & {"search", "path"}

    @property
    def is_command(self) -> bool:
        """Whether its words are those of a maintenance command, of a table that may be another's."""
        return isinstance(self.form, (MaintenanceCommand, SharedCommand))

    @property
    def is_explained(self) -> bool:
        """Whether it begins with EXPLAIN."""
        return self.start > 0 and self.view is None


def recognise(text: str) -> Statement:
    """Say what a statement is. A text that cannot be read is left to Spark, which says what is wrong."""
    mentions = frozenset(match.lastgroup or "" for match in _MENTION.finditer(text))
    word = first_word(text)
    if word in COMMAND_VERBS and is_command(text):
        return Statement(text, MaintenanceCommand(), mentions=mentions)
    subject = shared_subject(text) if word in SHARED_VERBS else None
    if subject is not None:
        if is_index_statement(text):
            return Statement(text, SharedCommand(subject, about_index=True), mentions=mentions)
        is_spark_syntax = word == "SHOW" or (word == "ANALYZE" and not _FOR_SKIPPING.search(text))
        return Statement(text, SharedCommand(subject, is_spark_syntax), mentions=mentions)
    prefix = _PREFIX.match(text) if word in {"CREATE", "EXPLAIN"} else None
    if prefix is None:
        return Statement(text, _form(text, word), mentions=mentions)
    start, view = prefix.end(), None
    if prefix["view"]:
        view = ViewDefinition(prefix["view"], bool(prefix["replace"]), bool(prefix["global"]))
    behind = _form(text[start:], first_word(text[start:]))
    form = behind if isinstance(behind, Change) else OtherStatement()
    return Statement(text, form, start, view, mentions)


def _form(text: str, word: str) -> Form:
    if word == "CREATE" and _USING.search(text):
        return _create(_Cursor(text)) or OtherStatement()
    if word not in _CHANGES and not (word == "WITH" and _CHANGE_WORD.search(text)):
        return OtherStatement()
    cursor = _Cursor(text)
    if word == "WITH":
        # A common table expression may itself be called `update`, but only a parenthesis ends one.
        while not cursor.at_end and not (cursor.word() in _CHANGES and cursor.word(-1) == ")"):
            cursor.skip()
    return _insert(cursor) or _change(cursor) or OtherStatement()


class _Cursor:
    """The words of a statement, one after the other; no words if they cannot be told apart."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.words: list[SqlToken] = []
        with suppress(CommandError):
            self.words = words_of(text)

    @property
    def at_end(self) -> bool:
        return self.at >= len(self.words)

    @property
    def position(self) -> int:
        """Where the next word begins in the text."""
        return len(self.text) if self.at_end else self.words[self.at].start

    def word(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.words[at].upper if at < len(self.words) else ""

    def take(self, *words: str) -> bool:
        """Step over these words if they come next."""
        if all(self.word(ahead) == word for ahead, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def value(self) -> str:
        if self.at_end:
            raise CommandError(f"the statement ends too early: {self.text}")
        self.at += 1
        return self.words[self.at - 1].value

    def name(self) -> tuple[str, ...]:
        parts = [self.value()]
        while self.take("."):
            parts.append(self.value())
        return tuple(parts)

    def skip(self) -> None:
        """Step over the next word, or over a parenthesis with everything in it."""
        depth = 0
        while not self.at_end:
            depth += {"(": 1, ")": -1}.get(self.word(), 0)
            self.at += 1
            if depth <= 0:
                return


def _create(cursor: _Cursor) -> CreateView | None:
    """The definition, if its provider is ours."""
    cursor.take("CREATE")
    replace = cursor.take("OR", "REPLACE")
    shared = cursor.take("GLOBAL")
    temporary = cursor.take("TEMPORARY") or cursor.take("TEMP")
    cursor.take("EXTERNAL")
    kind = cursor.value().upper() if cursor.word() in ("VIEW", "TABLE") else ""
    if not kind:
        return None
    cursor.take("IF", "NOT", "EXISTS")
    name = cursor.name()
    while not cursor.at_end and cursor.word() not in ("USING", "AS"):
        cursor.skip()
    if not cursor.take("USING") or ".".join(cursor.name()).lower() not in _PROVIDERS:
        return None
    options = _options(cursor) if cursor.take("OPTIONS") else {}
    return CreateView(kind, ".".join(name), temporary, replace, shared, options)


def _options(cursor: _Cursor) -> dict[str, str]:
    """`(key 'value', key.with.dots = 'value')`."""
    if not cursor.take("("):
        raise CommandError("OPTIONS needs a list in parentheses: OPTIONS (path '/path/of/the/table')")
    options: dict[str, str] = {}
    while not cursor.take(")"):
        key = ".".join(cursor.name())
        cursor.take("=")
        options[key] = cursor.value()
        if not cursor.take(",") and cursor.word() != ")":
            raise CommandError(f"OPTIONS: a comma or a parenthesis is expected after {key!r}")
    return options


def _insert(cursor: _Cursor) -> Insert | None:
    start = cursor.position
    if not cursor.take("INSERT"):
        return None
    overwrite = cursor.take("OVERWRITE")
    cursor.take("INTO")
    cursor.take("TABLE")
    if cursor.at_end or cursor.word() in ("DIRECTORY", "LOCAL"):
        return None
    target = cursor.name()
    return Insert(target, overwrite, cursor.text[:start], cursor.text[cursor.position :])


def _change(cursor: _Cursor) -> Change | None:
    verb = cursor.word()
    if not any(cursor.take(*words) for words in _CHANGE_STARTS) or cursor.at_end:
        return None
    return Change(verb, cursor.name())


def insertion_of(insert: Insert) -> Insertion:
    """Read the columns, the condition and the query of an INSERT."""
    cursor = _Cursor(insert.rest)
    columns: tuple[str, ...] | None = None
    by_name = False
    where: str | None = None
    while not cursor.at_end:
        if cursor.word() == "PARTITION":
            raise CommandError(
                "INSERT ... PARTITION (...) is not supported for IndexTables: select the partition columns "
                "with the rows, and use INSERT INTO ... REPLACE WHERE to replace some partitions"
            )
        if cursor.take("BY", "NAME"):
            by_name = True
        elif cursor.take("REPLACE", "WHERE"):
            start = cursor.position
            while not cursor.at_end and cursor.word() not in _QUERY_STARTS - {"("}:
                cursor.skip()
            where = cursor.text[start : cursor.position].strip()
        elif cursor.word() == "(" and columns is None and cursor.word(1) not in _QUERY_STARTS:
            columns = _column_list(cursor)
        else:
            break
    return Insertion(insert.prefix + cursor.text[cursor.position :], columns, by_name, where)


def _column_list(cursor: _Cursor) -> tuple[str, ...]:
    cursor.take("(")
    names = [cursor.value()]
    while cursor.take(","):
        names.append(cursor.value())
    cursor.take(")")
    return tuple(names)
