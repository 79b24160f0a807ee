"""CREATE ... USING, INSERT and DELETE, read just far enough to tell whether they concern a table of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from indextables.errors import CommandError
from indextables.sql.select.mentions import Word, words_of

_PROVIDERS = frozenset(
    {
        "indextables",
        "io.indextables.spark.core.indextables4sparktableprovider",
        "io.indextables.provider.indextablesprovider",
    }
)
_QUERY_STARTS = frozenset({"SELECT", "VALUES", "WITH", "TABLE", "FROM", "(", "MAP", "REDUCE"})

_CHANGES = frozenset({"DELETE", "UPDATE", "MERGE"})
_CHANGE_STARTS = (
    ("DELETE", "FROM"), ("UPDATE",), ("MERGE", "INTO"), ("MERGE", "WITH", "SCHEMA", "EVOLUTION", "INTO"),
)  # fmt: skip


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
    """INSERT INTO or OVERWRITE a name, with the query whose rows are inserted."""

    target: tuple[str, ...]
    overwrite: bool
    query: str
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    replace_where: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """DELETE, UPDATE or MERGE, and the parts of its target's name."""

    verb: str
    target: tuple[str, ...]


class _Cursor:
    """Words of a statement, one after the other; none of one that only Spark can say what is wrong with."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.tokens: list[Word] = []
        with suppress(CommandError):
            self.tokens = words_of(text)

    def word(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.tokens[place].upper if place < len(self.tokens) else ""

    def take(self, *words: str) -> bool:
        """Step over these words if they come next."""
        if all(self.word(ahead) == word for ahead, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def value(self) -> str:
        if self.at >= len(self.tokens):
            raise CommandError(f"the statement ends too early: {self.text}")
        self.at += 1
        return self.tokens[self.at - 1].value

    def name(self) -> tuple[str, ...]:
        parts = [self.value()]
        while self.take("."):
            parts.append(self.value())
        return tuple(parts)

    def rest(self) -> str:
        return self.text[self.tokens[self.at].start :] if self.at < len(self.tokens) else ""

    def skip_group(self) -> None:
        """Step over a parenthesis and what is in it."""
        depth = 0
        while self.at < len(self.tokens):
            depth += {"(": 1, ")": -1}.get(self.word(), 0)
            self.at += 1
            if depth == 0:
                return


def parse_create(text: str) -> CreateView | None:
    """The definition, when its provider is ours."""
    cursor = _Cursor(text)
    if not cursor.take("CREATE"):
        return None
    replace = cursor.take("OR", "REPLACE")
    shared = cursor.take("GLOBAL")
    temporary = cursor.take("TEMPORARY") or cursor.take("TEMP")
    cursor.take("EXTERNAL")
    kind = cursor.value().upper() if cursor.word() in ("VIEW", "TABLE") else ""
    if not kind:
        return None
    cursor.take("IF", "NOT", "EXISTS")
    name = cursor.name()
    while cursor.at < len(cursor.tokens) and cursor.word() not in ("USING", "AS"):
        cursor.skip_group() if cursor.word() == "(" else cursor.value()
    if not cursor.take("USING") or ".".join(cursor.name()).lower() not in _PROVIDERS:
        return None
    options = _options(cursor) if cursor.take("OPTIONS") else {}
    is_view = kind == "VIEW" or temporary
    return CreateView(kind, ".".join(name), is_view and temporary, replace, shared, options)


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


def parse_insert(text: str, ours: Callable[[tuple[str, ...]], bool] = lambda _: True) -> Insert | None:
    """The insert into a table of ours, wherever common table expressions let it begin."""
    cursor = _Cursor(text)
    prefix = ""
    if cursor.word() == "WITH":
        while cursor.at < len(cursor.tokens) and cursor.word() != "INSERT":
            cursor.skip_group() if cursor.word() == "(" else cursor.value()
        if cursor.at >= len(cursor.tokens):
            return None
        prefix = text[: cursor.tokens[cursor.at].start]
    if not cursor.take("INSERT"):
        return None
    overwrite = cursor.take("OVERWRITE")
    cursor.take("INTO")
    cursor.take("TABLE")
    if cursor.word() in ("DIRECTORY", "LOCAL"):
        return None
    target = cursor.name()
    return _insert(cursor, target, prefix, overwrite=overwrite) if ours(target) else None


def _insert(cursor: _Cursor, target: tuple[str, ...], prefix: str, *, overwrite: bool) -> Insert:
    columns: tuple[str, ...] | None = None
    by_name = False
    where: str | None = None
    while cursor.at < len(cursor.tokens):
        if cursor.word() == "PARTITION":
            raise CommandError(
                "INSERT ... PARTITION (...) is not supported for IndexTables: select the partition columns "
                "with the rows, and use INSERT INTO ... REPLACE WHERE to replace some partitions"
            )
        if cursor.take("BY", "NAME"):
            by_name = True
        elif cursor.take("REPLACE", "WHERE"):
            start = cursor.tokens[cursor.at].start
            while cursor.at < len(cursor.tokens) and cursor.word() not in _QUERY_STARTS - {"("}:
                cursor.skip_group() if cursor.word() == "(" else cursor.value()
            where = cursor.text[start : cursor.tokens[cursor.at].start].strip()
        elif cursor.word() == "(" and columns is None and cursor.word(1) not in _QUERY_STARTS:
            columns = _column_list(cursor)
        else:
            break
    return Insert(target, overwrite, prefix + cursor.rest(), columns, by_name, where)


def parse_change(text: str) -> Change | None:
    """The table that a DELETE, UPDATE or MERGE names, wherever common table expressions let it begin."""
    cursor = _Cursor(text)
    if cursor.word() == "WITH":
        # A common table expression may itself be called `update`, but only a parenthesis ends one.
        while cursor.at < len(cursor.tokens) and not (cursor.word() in _CHANGES and cursor.word(-1) == ")"):
            cursor.skip_group() if cursor.word() == "(" else cursor.value()
    verb = cursor.word()
    if not any(cursor.take(*words) for words in _CHANGE_STARTS) or cursor.at >= len(cursor.tokens):
        return None
    return Change(verb, cursor.name())


def _column_list(cursor: _Cursor) -> tuple[str, ...]:
    cursor.take("(")
    names = [cursor.value()]
    while cursor.take(","):
        names.append(cursor.value())
    cursor.take(")")
    return tuple(names)
