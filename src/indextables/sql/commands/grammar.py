"""The grammar of the maintenance commands: text in, one command value out, or a CommandError.

Keywords may be written in any case. Comments are blanked out first, character
for character, so that every line and column in an error is one the user typed.
Clauses of two words (TARGET SIZE, DRY RUN) are single terminals: a WHERE clause
is any run of tokens up to such a clause or the end, and a column that happens
to be called `target` or `run` stays a column.

`is_command` decides which statements are ours. It claims as little as possible:
``DESCRIBE indextables``, ``DELETE FROM indextables WHERE ...`` and everything
that starts with REPAIR TABLE, MERGE INTO or DROP TABLE belong to Spark. A
statement such as OPTIMIZE or VACUUM is ours where its table is, which is for the
caller to find out: `shared_subject` says which table it names.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from indextables.errors import CommandError
from indextables.lazy import lark
from indextables.sql.commands import (
    AddConstraint,
    AnalyzeSkipping,
    BuildCompanion,
    CheckTable,
    Command,
    CreateIndex,
    DeleteRows,
    Describe,
    DropConstraint,
    DropIndex,
    DropPartitions,
    InvalidateCache,
    ListFiles,
    MergeSplits,
    Purge,
    PurgeRows,
    RefreshIndex,
    RepairLog,
    Restore,
    SetNotNull,
    ShowIndexes,
    ShowPartitions,
    ShowProperties,
    Subject,
    TableName,
    TruncateHistory,
    Unneeded,
    WriteCheckpoint,
)
from indextables.sql.commands.familiar import advice_on, is_about_an_index, named, subject_of, unquoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lark import Lark, Token, Tree

_EXPECTED = {
    "STRING": "a quoted path",
    "NAME": "a name",
    "QUOTED_NAME": None,
    "NUMBER": "a whole number",
    "SIZE_LITERAL": "a size such as 100M",
    "DECIMAL": None,
    "OPERATOR": None,
    "LPAR": "(",
    "RPAR": ")",
    "COMMA": ",",
    "DOT": None,
    "SEMICOLON": None,
    "$END": "the end of the statement",
    "UNIT": "DAYS or HOURS",
    "TARGET_SIZE": "TARGET SIZE",
    "MAX_DEST_SPLITS": "MAX DEST SPLITS",
    "MAX_SOURCE_SPLITS": "MAX SOURCE SPLITS PER MERGE",
    "OLDER_THAN": "OLDER THAN",
    "LOG_RETENTION": "TRANSACTION LOG RETENTION",
    "DRY_RUN": "DRY RUN",
    "IF_EXISTS": "IF EXISTS",
    "ALTER_COLUMN": "ALTER COLUMN",
    "SET_NOT_NULL": "SET NOT NULL",
    "IF_NOT_EXISTS": "IF NOT EXISTS",
    "EQUALS": "=",
    "INDEXING_MODES": "INDEXING MODES",
    "FROM_VERSION": "FROM VERSION",
    "AT_LOCATION": "AT LOCATION",
    "COLON": ":",
    "APPLY_PURGE": "APPLY (PURGE)",
}

_OURS = re.compile(
    r"""(?: REPAIR\s+INDEXFILES
          | MERGE\s+SPLITS
          | PURGE\s+ROWS(?=\s*['"`]|\s+\w)
          | (?:CHECK|PURGE|DROP|CHECKPOINT|COMPACT|TRUNCATE|INVALIDATE|ANALYZE)\s+INDEXTABLES?
          | DESC(?:RIBE)?\s+INDEXTABLES?\s+(?:TRANSACTION|STATE|HISTORY|SKIPPED|COMPONENT|DATA|FILES
                                            |PREWARM|MERGE|PROFILER|DISK|STORAGE|ENVIRONMENT)
          | (?:PREWARM|FLUSH|ENABLE|DISABLE|RESET|BUILD|WAIT\s+FOR)\s+INDEXTABLES?
          | RESTORE\s+INDEXTABLES?(?=\s*['"`]|\s+(?!TO\b)\w)
          | DELETE\s+FROM\s+INDEXTABLES?(?=\s*['"`]|\s+(?!(?:AS|WHERE)\b)\w)
        )(?![\w.])""",
    re.IGNORECASE | re.VERBOSE,
)
COMMAND_VERBS = frozenset(
    {"ANALYZE", "BUILD", "CHECK", "CHECKPOINT", "COMPACT", "DELETE", "DESC", "DESCRIBE", "DISABLE", "DROP",
     "ENABLE", "FLUSH", "INVALIDATE", "MERGE", "PREWARM", "PURGE", "REPAIR", "RESET", "RESTORE", "TRUNCATE",
     "WAIT"}
)  # fmt: skip
"""The first words of the commands; statements of Spark's begin with some of them too."""
SHARED_VERBS = frozenset(
    {
        "ALTER",
        "ANALYZE",
        "CREATE",
        "DESC",
        "DESCRIBE",
        "DROP",
        "FSCK",
        "OPTIMIZE",
        "REFRESH",
        "REORG",
        "RESTORE",
        "SHOW",
        "VACUUM",
    }
)
"""The first words of statements that are ours if their table is."""
_LEXEME = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|--[^\n]*|/\*|[^'\"`/-]+|.", re.DOTALL
)
_LEXEME_OR_BRACKET = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|.", re.DOTALL)
_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"\w*")
_BLOCK_EDGE = re.compile(r"/\*|\*/")
_SHOWN_LINE = 240
_DIGITS = 20
_NOT_NEWLINE = re.compile(r"[^\n]")
_SIZE = re.compile(r"(\d+)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_TOO_EARLY = "the statement ends too early"
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_LARGEST = {"hours": 24 * 36_500, "count": 2**31 - 1, "bytes": 1 << 50, "version": 10**20 - 1}


def first_word(text: str) -> str:
    """The first word of a statement in capitals; none if it begins with something else."""
    try:
        return _WORD.match(text, _code_start(text))[0].upper()  # type: ignore[index]
    except CommandError:
        return ""


def is_command(text: str) -> bool:
    """Whether the words of a statement make it one of our commands.

    The first word is looked at before anything else, since every statement of a session passes here.
    """
    return first_word(text) in COMMAND_VERBS and _OURS.match(_blanked(text).lstrip()) is not None


def shared_subject(text: str) -> TableName | None:
    """The table of a statement that is ours if the table is, such as OPTIMIZE; None for all others."""
    return subject_of(_blanked(text)) if first_word(text) in SHARED_VERBS else None


def is_index_statement(text: str) -> bool:
    """Whether such a statement is CREATE, DROP, REFRESH or SHOW INDEX."""
    return is_about_an_index(_blanked(text))


def _blanked(text: str) -> str:
    """The text without its comments; nothing if one of them is not closed."""
    try:
        return _without_comments(text)
    except CommandError:
        return ""


def parse_command(text: str) -> Command:
    """The command that a statement states; a CommandError shows line, column and what was expected."""
    blanked = _without_comments(text)
    advice = advice_on(blanked)
    if advice is not None and advice.unneeded:
        if is_command(text) or subject_of(blanked) is not None:
            return Unneeded(advice.sentence)
    elif advice is not None:
        raise CommandError(advice.sentence, line=1, column=1, expected=())
    try:
        tree = _parser().parse(blanked)
    except lark.UnexpectedToken as error:
        ended = error.token.type == "$END"
        at = len(blanked.rstrip()) if ended else error.token.start_pos or 0
        raise _unexpected(blanked, at, error.accepts or error.expected) from error
    except lark.UnexpectedCharacters as error:
        raise _unexpected(blanked, error.pos_in_stream, error.allowed or ()) from error
    except lark.UnexpectedEOF as error:
        raise _failure(blanked, len(blanked.rstrip()), _TOO_EARLY, ()) from error
    return _command(tree.children[0], blanked)


@cache
def _parser() -> Lark:
    return lark.Lark.open(
        "commands.lark",
        rel_to=__file__,
        parser="lalr",
        lexer="contextual",
        propagate_positions=True,
        maybe_placeholders=False,
    )


def _without_comments(text: str) -> str:
    """The text with every comment turned into spaces of the same length; block comments nest, as in Spark."""
    if "--" not in text and "/*" not in text:
        return text
    pieces: list[str] = []
    at = 0
    while at < len(text):
        lexeme = _LEXEME.match(text, at)
        assert lexeme is not None
        piece = lexeme.group()
        if piece == "/*":
            piece = text[at : _block_end(text, at)]
        comment = piece.startswith(("--", "/*"))
        pieces.append(_NOT_NEWLINE.sub(" ", piece) if comment else piece)
        at += len(piece)
    return "".join(pieces)


def _code_start(text: str) -> int:
    """Where the first character stands that is neither space nor comment."""
    at = 0
    while True:
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        if text.startswith("--", at):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif text.startswith("/*", at):
            at = _block_end(text, at)
        else:
            return at


def _block_end(text: str, start: int) -> int:
    depth = 0
    for edge in _BLOCK_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    raise _failure(text, start, "this comment is not closed", ("*/",))


def _unexpected(text: str, at: int, terminals: Iterable[str]) -> CommandError:
    """The error for what stands there; of a phrase that was begun, such as DRY RUN, for its wrong word."""
    expected = _expected(terminals, first=not text[:at].strip())
    begun = {phrase: _begun(text, at, phrase) for phrase in expected if phrase.isupper()}
    wrong = max((place for place, _ in begun.values()), default=at)
    if wrong > at:
        at, expected = wrong, tuple(rest for place, rest in begun.values() if place == wrong)
    lexeme = _LEXEME_OR_BRACKET.match(text.rstrip(), at)
    if lexeme is None:
        problem = _TOO_EARLY
    elif lexeme.group() in ("'", '"', "`"):
        problem = "this quote is not closed"
    else:
        problem = f"unexpected {_shown(text[at:])}"
    return _failure(text, at, problem, expected)


def _begun(text: str, at: int, phrase: str) -> tuple[int, str]:
    """Where a phrase whose first words stand at a place goes on otherwise, and the words it lacks there."""
    words = phrase.split()
    start, end = at, len(text.rstrip())
    while words and _WORD.match(text, at)[0].upper() == words[0]:  # type: ignore[index]
        at = min(_SPACE.match(text, at + len(words[0])).end(), end)  # type: ignore[union-attr]
        words = words[1:]
    return (at, " ".join(words)) if words else (start, phrase)


def _failure(text: str, at: int, problem: str, expected: tuple[str, ...]) -> CommandError:
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    hint = f"; expected {_either(expected)}" if expected else ""
    message = f"Line {line}, column {column}: {problem}{hint}."
    source = text.split("\n")[line - 1]
    if source.strip() and len(source) <= _SHOWN_LINE and source.isprintable():
        message += f"\n  {source}\n  {' ' * (column - 1)}^"
    return CommandError(message, line=line, column=column, expected=expected)


def _expected(terminals: Iterable[str], *, first: bool) -> tuple[str, ...]:
    """What may be written there; as the first word of a statement also SELECT, which others parse."""
    names = {*terminals, "SELECT"} if first else set(terminals)
    if "OPERATOR" in names:
        names = (names - {"NAME", "STRING", "NUMBER", "SIZE_LITERAL"}) | {"a condition"}
    shown = {_EXPECTED.get(name, name) for name in names}
    return tuple(sorted(name for name in shown if name))


def _either(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _shown(rest: str) -> str:
    word = re.match(r"\w+|\S", rest)
    return f"'{word.group()[:40]}'" if word else "the end"


def _command(tree: Tree[Token], text: str) -> Command:
    """The command value of one parse tree."""
    match tree.data:
        case "repair":
            source, target = (_path(part, text) for part in tree.find_data("string"))
            up_to = next((_number(part, "version", text) for part in tree.find_data("up_to")), None)
            return RepairLog(source, target, "SPLITS" in _types(tree), up_to, "SWAP" in _types(tree))
        case "build_companion":
            return _build_companion(tree, text)
        case "check":
            return CheckTable(_table(tree, text))
        case "merge":
            return MergeSplits(_table(tree, text), _where(tree, text), **_clauses(tree, text))
        case "purge":
            return Purge(_table(tree, text), **_clauses(tree, text))
        case "purge_rows" | "reorg":
            return PurgeRows(_table(tree, text), _where(tree, text), **_clauses(tree, text))
        case "drop_partitions":
            return DropPartitions(_table(tree, text), _where(tree, text) or "")
        case "checkpoint":
            return WriteCheckpoint(_table(tree, text))
        case "analyze":
            return AnalyzeSkipping(_table(tree, text), _columns(tree), "STORE" in _types(tree))
        case "truncate":
            return TruncateHistory(_table(tree, text), **_clauses(tree, text))
        case "describe":
            return _describe(tree, text)
        case "invalidate":
            return InvalidateCache(_table_or_none(tree, text))
        case "restore":
            return _restore(tree, text)
        case "delete":
            return DeleteRows(_table(tree, text), _where(tree, text) or "")
        case "optimize":
            return MergeSplits(_table(tree, text), _where(tree, text), **_clauses(tree, text))
        case "vacuum":
            return Purge(_table(tree, text), **_clauses(tree, text))
        case "show_partitions":
            return ShowPartitions(_table(tree, text))
        case "show_properties":
            return ShowProperties(_table(tree, text), _key(tree))
        case "files":
            return ListFiles(_table(tree, text), _columns(tree), _where(tree, text))
        case "add_constraint":
            return AddConstraint(_table(tree, text), _constraint(tree), _check(tree, text))
        case "drop_constraint":
            return DropConstraint(_table(tree, text), _constraint(tree), "IF_EXISTS" in _types(tree))
        case "set_not_null":
            return SetNotNull(_table(tree, text), _constraint(tree))
        case "create_index":
            return _create_index(tree, text)
        case "drop_index":
            return DropIndex(_table(tree, text), _index_name(tree), "IF_EXISTS" in _types(tree))
        case "refresh_index":
            return RefreshIndex(_table(tree, text), _index_name(tree))
        case "show_indexes":
            return ShowIndexes(_table(tree, text))
    raise AssertionError(tree.data)


def _create_index(tree: Tree[Token], text: str) -> CreateIndex:
    for method in tree.find_data("method"):
        if str(_first(method)).lower() != "search":
            at = method.meta.start_pos
            raise _failure(text, at, f"unexpected {_shown(text[at:])}", ("SEARCH, or nothing of USING",))
    options: dict[str, str] = {}
    for option in tree.find_data("index_option"):
        key, _, value = option.children
        name = "".join(unquoted(str(token)) for token in key.children)
        if name in options:
            raise _failure(text, option.meta.start_pos, f"{name} was already given", ())
        options[name] = unquoted(str(_first(value)))
    columns = tuple(_dotted(part) for part in tree.children if getattr(part, "data", None) == "column")
    return CreateIndex(
        _table(tree, text),
        _index_name(tree),
        columns,
        tuple(options.items()),
        "IF_NOT_EXISTS" in _types(tree),
    )


def _index_name(tree: Tree[Token]) -> str:
    return unquoted(str(_first(next(tree.find_data("index_name")))))


def _build_companion(tree: Tree[Token], text: str) -> BuildCompanion:
    kind = str(_first(next(tree.find_data("source_format")))).lower()
    if kind == "iceberg":
        at = next(tree.find_data("source_format")).meta.start_pos
        raise _failure(text, at, "Iceberg tables cannot be indexed yet", ("DELTA", "PARQUET"))
    source, at_location = (_path(part, text) for part in tree.children if _is_string(part))
    modes = [list(mode.find_data("string")) for mode in tree.find_data("mode")]
    columns = tuple((_path(name, text), _path(mode, text).lower()) for name, mode in modes)
    version = next((_number(part, "version", text) for part in tree.find_data("from_version")), None)
    include, exclude = (
        next((_columns(part) for part in tree.find_data(word)), None) for word in ("include", "exclude")
    )
    return BuildCompanion(
        source, kind, at_location, columns, include, exclude, _where(tree, text), version,
        any(tree.find_data("dry_run")),
    )  # fmt: skip


def _is_string(part: Any) -> bool:
    return getattr(part, "data", None) == "string"


def _constraint(tree: Tree[Token]) -> str:
    return unquoted(str(_first(next(tree.find_data("constraint")))))


def _check(tree: Tree[Token], text: str) -> str:
    """The condition between the parentheses of CHECK."""
    predicate = next(tree.find_data("predicate"))
    written = text[predicate.meta.start_pos : predicate.meta.end_pos]
    depth = 0
    for lexeme in _LEXEME_OR_BRACKET.finditer(written):
        depth += {"(": 1, ")": -1}.get(lexeme.group(), 0)
        if depth == 0:
            if lexeme.end() == len(written) and written.startswith("("):
                return written[1:-1].strip()
            break
    raise _failure(
        text, predicate.meta.start_pos, "CHECK needs one condition in parentheses", ("(condition)",)
    )


def _columns(tree: Tree[Token]) -> tuple[str, ...] | None:
    """The columns in brackets, by dotted name; None where there are none."""
    for columns in tree.find_data("columns"):
        return tuple(_dotted(part) for part in columns.children if not hasattr(part, "type"))
    return None


def _dotted(column: Any) -> str:
    return ".".join(unquoted(str(part)) for part in column.children if str(part) != ".")


def _key(tree: Tree[Token]) -> str | None:
    """The property that is asked for, as a string or a dotted name; None for all of them."""
    for part in tree.find_pred(lambda part: part.data in ("string", "key")):
        return "".join(unquoted(str(token)) for token in part.children)
    return None


def _describe(tree: Tree[Token], text: str) -> Describe:
    subject: Any = tree.children[-1]
    words = [str(token).upper() for token in subject.children if not hasattr(token, "data")]
    include_all = words[-2:] == ["INCLUDE", "ALL"]
    name = " ".join(words[:-2] if include_all else words)
    limit = next((_number(part, "count", text, least=1) for part in subject.find_data("limit")), None)
    chosen = Subject.STATE if name == "DETAIL" else Subject(name)
    return Describe(chosen, _table_or_none(subject, text), include_all, limit)


def _restore(tree: Tree[Token], text: str) -> Restore:
    table = _table(tree, text)
    for moment in tree.find_data("to_moment"):
        return Restore(table, as_of=unquoted(_first(next(moment.find_data("string")))))
    return Restore(table, _number(next(tree.find_data("to_version")), "version", text))


def _table(tree: Tree[Token], text: str) -> TableName:
    table = _table_or_none(tree, text)
    assert table is not None
    return table


def _table_or_none(tree: Tree[Token], text: str) -> TableName | None:
    for table in tree.find_pred(lambda part: part.data in ("path", "view")):
        if table.data == "path":
            return TableName(path=_path(table, text))
        return named([unquoted(part) for part in table.children if part.type != "DOT"])
    return None


def _path(tree: Tree[Token], text: str) -> str:
    token = _first(tree)
    path = unquoted(token)
    if not path.strip() or "\0" in path:
        raise _failure(text, token.start_pos or 0, "this is not a path", ("a quoted path",))
    return path


def _where(tree: Tree[Token], text: str) -> str | None:
    for predicate in tree.find_data("predicate"):
        return text[predicate.meta.start_pos : predicate.meta.end_pos]
    return None


def _clauses(tree: Tree[Token], text: str) -> dict[str, Any]:
    """The optional clauses as keyword arguments of the command, each allowed once."""
    arguments: dict[str, Any] = {}
    for clause in tree.children:
        item: tuple[str, Any]
        match getattr(clause, "data", None):
            case "target_size":
                item = ("target_bytes", _size(clause, text))
            case "max_dest":
                item = ("max_dest_splits", _number(clause, "count", text, least=1))
            case "max_source":
                item = ("max_source_splits", _number(clause, "count", text, least=2))
            case "older_than" | "retain":
                item = ("older_than_hours", _hours(clause, text))
            case "log_retention":
                item = ("log_retention_hours", _hours(clause, text))
            case "inventory":
                item = ("inventory", _path(next(clause.find_data("string")), text))
            case "lite":
                item = ("lite", True)
            case "dry_run":
                item = ("dry_run", True)
            case _:
                continue
        if item[0] in arguments:
            raise _failure(text, clause.meta.start_pos, "this clause was already given", ())
        arguments[item[0]] = item[1]
    return arguments


def _number(tree: Any, kind: str, text: str, least: int = 0) -> int:
    token = next(part for part in tree.children if getattr(part, "type", None) == "NUMBER")
    return _within(int(token) if len(token) <= _DIGITS else -1, kind, token.start_pos, text, least)


def _within(value: int, kind: str, at: int, text: str, least: int = 0) -> int:
    if not least <= value <= _LARGEST[kind]:
        expected = (f"a number from {least} to {_LARGEST[kind]}",)
        raise _failure(text, at, "this number is out of range", expected)
    return value


def _hours(clause: Any, text: str) -> int:
    unit = str(clause.children[-1]).upper()
    days = unit.startswith("DAY")
    number = _number(clause, "hours", text)
    return _within(number * 24 if days else number, "hours", clause.meta.start_pos, text)


def _size(clause: Any, text: str) -> int:
    last = clause.children[-1]
    token: Token = last if hasattr(last, "type") else _first(last)
    written = unquoted(token)
    at = token.start_pos or 0
    size = _SIZE.fullmatch(written.strip())
    if size is None or len(written) > _DIGITS:
        raise _failure(text, at, f"{_shown(written)} is not a size", ("a size such as 100M, 1G or 1048576",))
    return _within(int(size[1]) * _UNITS[size[2].upper()], "bytes", at, text, least=1)


def _types(tree: Tree[Token]) -> list[str]:
    return [part.type for part in tree.children if hasattr(part, "type")]


def _first(tree: Tree[Token]) -> Token:
    token = tree.children[0]
    assert hasattr(token, "type")
    return token
