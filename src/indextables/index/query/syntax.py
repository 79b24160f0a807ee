"""What a query means for a table: the parts of its grammar with columns, words and values.

    error timeout          either word          "connection reset"     the words in a row
    error AND timeout      both                 "connection reset"~3   up to three words between them
    +error -debug          with, without        conn* , "conn res"*    words that begin so
    level:error            in one column        status:[500 TO 599]    a range; {} excludes, * is open
    level: IN [a b]        any of these         level:*                a value is there
    (a OR b)^2             counts double        *                      every row
    t?me*out               wildcards            timeout~1              at most one letter differs
    /err(or)?s?/           regular expression   level:(a OR b)         one column for a bracket

The tree is checked against the table's index settings before any file is opened.
It drives both the index and the scan of rows, with the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa

from indextables.errors import QueryError
from indextables.index.letters import by_script, has_paired, runs_of
from indextables.index.query.grammar import LONGEST_QUERY, read_query
from indextables.index.query.parts import (
    Anything,
    BooleanPart,
    BoostedPart,
    InColumn,
    OneOf,
    QueryPart,
    QueryRules,
    RangePart,
    RegexPart,
    Text,
)
from indextables.index.query.patterns import MOST_EDITS, Expression, Gap, Similar, Wildcard
from indextables.index.query.plain_text import PlainText
from indextables.index.query.tree import (
    NOTHING,
    Between,
    Boolean,
    Boosted,
    Everything,
    Exists,
    Matching,
    Node,
    Query,
    Words,
)
from indextables.index.query.values import address_bounds, number_text, numeric, typed_value
from indextables.index.settings import (
    FAST,
    IP,
    JSON,
    STRING,
    TEXT,
    IndexField,
    IndexSpec,
    is_list_of_text,
    is_text,
    is_value,
)
from indextables.index.tokens import (
    NEWEST,
    id_spans,
    is_id,
    is_one_word,
    makes_pairs,
    plain_words,
    sought_words,
    tokenizer_of,
    words_of,
)
from indextables.model.names import find_name, no_column
from indextables.options import PREFIX

SearchColumns = list[tuple[IndexField, str | None]]
"""Columns to search; for a JSON column also the path inside it."""

_STOP_WORDS = frozenset(
    ("a", "an", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no",
     "of", "on", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to",
     "was", "will", "with")
)  # fmt: skip
"""Words that most texts hold; `and`, `or` and `not` have a note of their own."""
_PLAIN = QueryRules()
_FIRST = 1e6
"""Above any ratio between the scores of a phrase and of its words: a row with the phrase comes first."""


def parse_query(
    text: str,
    spec: IndexSpec,
    schema: pa.Schema,
    columns: Sequence[str] | None = None,
    time_zone: str = "UTC",
    *,
    rules: QueryRules = _PLAIN,
) -> Query:
    """Read a query; words without a column are looked for in `columns`, by default in all indexed ones.

    A `PlainText` is not read as a query: a row matches if it holds every piece between spaces, each with all
    its words in one column.
    """
    reader = _QueryParser(text, spec, schema, time_zone)
    named = spec.columns if columns is None else columns
    defaults = [reader.indexed(name) for name in named]
    several = frozenset(name for name in spec.columns if pa.types.is_nested(schema.field(name).type))
    if isinstance(text, PlainText):
        pieces = reader.pieces(defaults)
        node = reader.all_of(pieces, defaults)
        return Query(text, node, spec, several, tuple(reader.notes), pieces=tuple(pieces.items()))
    parsed = read_query(text, rules)
    node = reader.node(parsed.part, defaults)
    if rules.operator == "or" or isinstance(parsed.part, Text):
        reader.stop_words(parsed.part, defaults)
    notes = tuple(dict.fromkeys((*parsed.notes, *reader.notes)))
    return Query(text, node, spec, several, notes, IndexSpec(tuple(reader.compared.values())))


def plain_query(text: str, operator: str | None = None) -> str:
    """The query that looks for the words of a text, whatever signs and operators it holds.

    Every run of letters and digits is quoted by itself, so that `well-known and "not found"` means four
    words and nothing else; a word that comes again counts once. Identifiers that `compact_ids` reads as one
    word stay whole. With the operator `and` a row needs all words, with `or` any, and without one the
    default operator decides. `search(text=...)` needs all words too, and cuts them as each column does.
    """
    words, at = [], 0
    for start, end in (*id_spans(text), (len(text), len(text))):
        words += runs_of(text[at:start])
        words += [text[start:end]] if end > start else []
        at = end
    joined = " " if operator is None else f" {operator.upper()} "
    return joined.join(f'"{word}"' for word in dict.fromkeys(map(str.lower, words)))


class _QueryParser:
    def __init__(self, text: str, spec: IndexSpec, schema: pa.Schema, time_zone: str) -> None:
        self.text = text
        self.spec = spec
        self.schema = schema
        self.time_zone = time_zone
        self.notes: list[str] = []
        self.compared: dict[str, IndexField] = {}
        """Columns without a search field that the query names, as they are compared."""

    def bad(self, message: str, at: int | None = None) -> QueryError:
        where = "" if at is None else f"character {at + 1} of "
        position = None if at is None else at + 1
        return QueryError(f"{message} ({where}the query {self.text!r})", query=self.text, position=position)

    def field(self, name: str, at: int | None = None) -> tuple[IndexField, str | None]:
        """The settings of a named column; for a JSON column also the path inside it.

        A column without a search field is compared by its values, as a `string` or fast field would be.
        """
        for column, path in _readings(name):
            spelled = find_name(self.schema.names, column) or ""
            item = self.spec.get(spelled) or _compared(self.schema, spelled)
            if item is not None and (path is None or item.kind == JSON):
                if self.spec.get(spelled) is None:
                    self.compared[spelled] = item
                return item, (path or "") if item.kind == JSON else None
        return self.indexed(name, at)

    def indexed(self, name: str, at: int | None = None) -> tuple[IndexField, str | None]:
        """The settings of a column that has a search field; QueryError if it has none."""
        for column, path in _readings(name):
            field = self.spec.get(find_name(self.spec.columns, column) or "")
            if field is not None and (path is None or field.kind == JSON):
                return field, (path or "") if field.kind == JSON else None
        if name.lower() in (column.lower() for column in self.schema.names):
            raise self.bad(
                f"column {name!r} is not indexed for search; set indexing.typemap.{name} (or list it in "
                "indexing.fastfields) with update_properties and merge, or filter it with where=",
                at,
            )
        for column, path in _readings(name):
            field = self.spec.get(find_name(self.spec.columns, column) or "")
            if path is not None and field is not None and self._is_nested(field.column):
                raise self.bad(
                    f"column {column!r} is indexed as {field.kind}, which knows no names inside of it; to "
                    f"search {name!r}, set indexing.typemap.{column} to json by update_properties and merge",
                    at,
                )
        if name == "_exists_":
            raise self.bad("there is no column '_exists_'; write column:* for rows with a value", at)
        raise self.bad(
            f"{no_column(self.schema.names, name)}. "
            'If the colon is part of the text, put it in double quotes, as in "12:30"',
            at,
        )

    def _is_nested(self, column: str) -> bool:
        return bool(pa.types.is_nested(self.schema.field(column).type))

    def node(self, part: QueryPart, columns: SearchColumns) -> Node:
        if isinstance(part, BooleanPart):
            must, should, must_not = (
                tuple(self.node(one, columns) for one in parts)
                for parts in (part.must, part.should, part.must_not)
            )
            return Boolean(must, should, must_not)
        if isinstance(part, BoostedPart):
            return Boosted(self.node(part.part, columns), part.factor)
        if isinstance(part, InColumn):
            return self.in_column(part)
        if isinstance(part, Anything):
            return Everything()
        return self.in_columns(part, columns)

    def in_column(self, part: InColumn) -> Node:
        field = self.field(part.column, part.at)
        if isinstance(part.part, Anything):
            return Exists(field[0].column, field[1])
        return self.node(part.part, [field])

    def in_columns(self, part: Text | RegexPart | RangePart | OneOf, columns: SearchColumns) -> Node:
        """A part applied to any of several columns; a column whose type cannot hold the value is left out."""
        self.require_columns(columns)
        nodes, problems = [], []
        for item, path in columns:
            try:
                nodes.append(self.leaf(part, item, path))
            except QueryError as problem:
                if item.kind not in (FAST, IP):
                    raise
                problems.append(problem)
        if problems and not nodes:
            raise problems[0]
        return _any(nodes)

    def require_columns(self, columns: SearchColumns) -> None:
        if not columns:
            raise QueryError(
                "no column is indexed for search, so words need a column, as in level:error; index one with "
                "the option indexing.typemap.<column> = text, or with update_properties and merge",
                query=self.text,
            )

    def leaf(self, part: Text | RegexPart | RangePart | OneOf, item: IndexField, path: str | None) -> Node:
        if isinstance(part, RangePart):
            return self.between(part, item, path)
        if isinstance(part, OneOf):
            return _any(self.words(Text(value, part.at, quoted=True), item, path) for value in part.values)
        self.note_pairs(part, item)
        if isinstance(part, RegexPart):
            return self.regular(part, item, path)
        if part.shape:
            return self.wildcard(part, item, path)
        if part.distance is not None and not part.quoted:
            return self.fuzzy(part, item, path)
        return self.words(part, item, path)

    # Plain text

    def pieces(self, columns: SearchColumns) -> dict[str, Node]:
        """What each piece of a plain text between spaces means; pieces that hold no word are left out."""
        self.require_columns(columns)
        if len(self.text) > LONGEST_QUERY:
            raise QueryError(
                f"the text is {len(self.text)} characters long; at most {LONGEST_QUERY} are read"
            )
        nodes = {piece: self.piece(piece, columns) for piece in dict.fromkeys(self.text.split())}
        return {piece: node for piece, node in nodes.items() if node is not None}

    def piece(self, text: str, columns: SearchColumns) -> Node | None:
        """All words of a text in one of the columns; None where a column of words finds none in it."""
        part, nodes = Text(text, 0, quoted=True), list[Node]()
        for item, path in columns:
            if item.kind in (FAST, IP):
                with suppress(QueryError):
                    nodes.append(self.words(part, item, path))
            elif item.kind == STRING:
                values = dict.fromkeys((text, re.sub(r"^\W+|\W+$", "", text)))
                nodes += [Words(item.column, (value,)) for value in values if value]
            else:
                words = self.each_word(text, item, path)
                if not words:
                    return None
                nodes.append(words[0] if len(words) == 1 else Boolean(must=tuple(dict.fromkeys(words))))
        return _any(nodes)

    def each_word(self, text: str, item: IndexField, path: str | None) -> list[Words]:
        """The words of a text one by one; a run of a script without spaces is one, made of its pairs."""
        paired = makes_pairs(item.tokenizer) and has_paired(text)
        words = []
        for run in by_script(text) if paired else [text]:
            if paired and has_paired(run):
                pairs, begins = sought_words(item.tokenizer, run)
                words.append(Words(item.column, tuple(pairs), 0, begins, path=path))
            else:
                words += [Words(item.column, (word,), path=path) for word in words_of(item.tokenizer)(run)]
        return words

    def all_of(self, pieces: Mapping[str, Node], columns: SearchColumns) -> Node:
        """Every piece of a plain text; a row that holds the whole text scores above all others."""
        if isinstance(self.text, PlainText) and self.text.why:
            self.notes.append(self.text.why)
        if not pieces:
            self.notes.append(f"{self.text!r} holds no word: it finds nothing")
            return NOTHING
        sought = [
            (item.column, *sought_words(item.tokenizer, self.text), path)
            for item, path in columns
            if item.kind in (TEXT, JSON)
        ]
        phrases = [
            Words(column, tuple(words), 0, begins, path=path)
            for column, words, begins, path in sought
            if len(words) + (begins is not None) > 1
        ]
        needed = dict.fromkeys(part for node in pieces.values() for part in _conjuncts(node))
        return Boolean(must=tuple(needed), should=tuple(Boosted(one, _FIRST) for one in phrases))

    # Words

    def words(self, part: Text, item: IndexField, path: str | None) -> Node:
        if item.kind in (FAST, IP):
            if part.prefix and item.kind == FAST:
                raise self.no_words(item, part.at)
            lower, upper = self.value_bounds(item, part.text + "*" * part.prefix, part.at)
            return Between(item.column, lower, upper)
        self.hint(part, item)
        untold = not any(note.startswith(f"{item.column} is not indexed") for note in self.notes)
        if item.kind == STRING and item.column in self.compared and not part.prefix and untold:
            self.notes.append(
                f"{item.column} is not indexed: compared as a whole value; for words write "
                f"{item.column}:*{part.text}* or index it as text"
            )
        if part.prefix:
            return self.prefixed(item, part.text, path)
        words, begins = sought_words(item.tokenizer, part.text)
        node: Node = Words(item.column, tuple(words), part.distance or 0, begins, path=path)
        if not words and begins is None:
            self.note(part, f"{part.text!r} holds no word for column {item.column!r}: it finds nothing")
            node = NOTHING
        if item.kind == JSON and not part.quoted and (number := number_text(part.text)) is not None:
            return _any([node, Words(item.column, (number,), path=path)])
        return node

    def prefixed(self, item: IndexField, text: str, path: str | None) -> Node:
        words = self.single_words(item.tokenizer, text)
        if not words:
            return NOTHING
        if item.compact_ids and is_id(words[-1]):
            return Words(item.column, tuple(words), path=path)
        plain = self.single_words(plain_words(item.tokenizer), text)
        whole = words[-1] if tokenizer_of(item.tokenizer).base == "en_stem" else None
        last = words[-1] if whole is None else plain[-1]
        return Words(item.column, tuple(words[:-1]), 0, last, whole, path)

    def single_words(self, tokenizer: str, text: str) -> list[str]:
        """The words of a text to search for, the character that begins the last one among them."""
        words, begins = sought_words(tokenizer, text)
        return words if begins is None else [*words, begins]

    def wildcard(self, part: Text, item: IndexField, path: str | None) -> Node:
        """Words that match the wildcard; addresses of the network that is written so."""
        if item.kind == IP:
            return Between(item.column, *self.value_bounds(item, part.text, part.at))
        self.require_words(item, part.at)
        if makes_pairs(item.tokenizer) and has_paired(part.text):
            return self.words(self.inside_stars(part, item), item, path)
        shape = [one if isinstance(one, Gap) else self.fragment(one, part, item) for one in part.shape]
        if tokenizer_of(item.tokenizer).base == "en_stem":
            self.note(part, f"column {item.column!r} keeps stems: {part.text!r} is compared with them")
        return Matching(item.column, Wildcard(tuple(shape)), path)

    def inside_stars(self, part: Text, item: IndexField) -> Text:
        """The text between stars: in a script without spaces it is found inside of any text as it is."""
        texts = [one for one in part.shape if isinstance(one, str)]
        begun, ended = isinstance(part.shape[0], str), isinstance(part.shape[-1], str)
        if (
            Gap.ONE in part.shape
            or len(texts) != 1
            or not (begun or has_paired(texts[0][0]))
            or not (ended or has_paired(texts[0][-1]))
        ):
            raise self.bad(
                f"{part.text!r} has a wildcard among characters that column {item.column!r} keeps in pairs; "
                "write the parts without wildcards, joined by AND: such text is found wherever it occurs",
                part.at,
            )
        return Text(texts[0], part.at, quoted=True)

    def fragment(self, text: str, part: Text, item: IndexField) -> str:
        """QueryPart of a word, spelled as in the index."""
        if item.tokenizer in ("raw", "whitespace"):
            return text
        words = words_of(plain_words(item.tokenizer))(text)
        if not is_one_word(item.tokenizer, text):
            raise self.bad(
                f"{part.text!r} is not one word for column {item.column!r}, and a wildcard works inside a "
                "single word; ask for the words one by one, joined by AND",
                part.at,
            )
        return words[0]

    def fuzzy(self, part: Text, item: IndexField, path: str | None) -> Node:
        """Words that differ by a few letters."""
        self.require_words(item, part.at)
        edits = part.distance or 0
        if edits > MOST_EDITS:
            raise self.bad(
                f"{part.text}~{edits} asks for more than {MOST_EDITS} edits; write ~1 or ~2, or a wildcard",
                part.at,
            )
        words = self.single_words(item.tokenizer, part.text)
        if len(words) != 1:
            raise self.bad(
                f"{part.text!r} is not one word for column {item.column!r}, and '~' compares single words",
                part.at,
            )
        if not edits or (item.compact_ids and is_id(words[0])):
            return Words(item.column, (words[0],), path=path)
        return Matching(item.column, Similar(words[0], edits), path)

    def regular(self, part: RegexPart, item: IndexField, path: str | None) -> Node:
        self.require_words(item, part.at)
        pattern = Expression(part.text)
        if (problem := pattern.problem()) is not None:
            raise self.bad(f"/{part.text}/ is no regular expression of RE2: {problem}", part.at)
        if item.tokenizer not in ("raw", "whitespace") and re.search(r"(?<!\\)[A-Z]", part.text):
            self.notes.append(
                f"words of column {item.column!r} are in lower case: /{part.text}/ has capitals"
            )
        return Matching(item.column, pattern, path)

    def require_words(self, item: IndexField, at: int) -> None:
        if item.kind in (FAST, IP):
            raise self.no_words(item, at)

    def no_words(self, item: IndexField, at: int) -> QueryError:
        return self.bad(
            f"column {item.column!r} holds values, not words: it has no wildcards, '~' or regular "
            f"expressions; write {item.column}:value, or a range {item.column}:[a TO b]",
            at,
        )

    # Values

    def value_bounds(self, item: IndexField, text: str, at: int) -> tuple[Any, Any]:
        if item.kind == IP:
            bounds = address_bounds(text)
            if bounds is None:
                raise self.bad(
                    f"{text!r} is neither an IP address nor a network for column {item.column!r}", at
                )
            return bounds
        value = self.typed(item, text, at)
        return value, value

    def typed(self, item: IndexField, text: str, at: int) -> Any:
        kind = self.schema.field(item.column).type
        try:
            return typed_value(text, kind, self.time_zone)
        except ValueError as bad:
            raise self.bad(f"{text!r} is not a value for column {item.column!r} of type {kind}", at) from bad

    def between(self, part: RangePart, item: IndexField, path: str | None) -> Node:
        if part.lower is None and part.upper is None:
            return Exists(item.column, path)
        lower, upper = self.bounds(item, part)
        return Between(item.column, lower, upper, part.include_lower, part.include_upper, path)

    def bounds(self, item: IndexField, part: RangePart) -> tuple[Any, Any]:
        texts = (part.lower, part.upper)
        if item.kind == IP:
            ends = [None if text is None else self.value_bounds(item, text, part.at) for text in texts]
            return (ends[0] and ends[0][0], ends[1] and ends[1][1])
        if item.kind == FAST:
            low, high = (None if text is None else self.typed(item, text, part.at) for text in texts)
            return low, high
        if item.kind == JSON:
            numbers = [None if text is None else numeric(text) for text in texts]
            if all(text is None or number is not None for text, number in zip(texts, numbers, strict=True)):
                return numbers[0], numbers[1]
        low, high = (None if text is None else self.one_word(item, text, part.at) for text in texts)
        return low, high

    def one_word(self, item: IndexField, text: str, at: int) -> str:
        if item.kind == STRING:
            return text
        words = self.single_words(plain_words(item.tokenizer), text)
        if len(words) != 1:
            raise self.bad(f"{text!r} is not one word; a range over column {item.column!r} goes by words", at)
        return words[0]

    # Hints

    def note_pairs(self, part: Text | RegexPart, item: IndexField) -> None:
        """Say what becomes of text in a script without spaces where it is not simply found."""
        if item.kind not in (TEXT, JSON) or not has_paired(part.text):
            return
        parts = tokenizer_of(item.tokenizer)
        if makes_pairs(item.tokenizer):
            if isinstance(part, RegexPart):
                self.notes.append(
                    f"column {item.column!r} keeps {part.text!r} in pairs of characters: a regular "
                    "expression is compared with these; without slashes the text is found wherever it occurs"
                )
            elif part.distance and part.quoted and sought_words(item.tokenizer, part.text)[1] is not None:
                self.note(part, "a single last character has to follow at once, whatever '~' says")
        elif parts.version == 1 and makes_pairs(replace(parts, version=NEWEST).name):
            self.notes.append(
                f"column {item.column!r} is indexed by {parts.shown}, which finds {part.text!r} only where "
                "spaces or signs surround it; to find it inside sentences, set the table property "
                f"{PREFIX}indexing.tokenizer.{item.column} to {parts.name} with update_properties, then merge"
            )

    def note(self, part: Text, message: str) -> None:
        self.notes.append(f"{message} (character {part.at + 1})")

    def hint(self, part: Text, item: IndexField) -> None:
        """Suggest what the author may have meant."""
        name, equals, value = part.text.partition("=")
        if not part.quoted and equals and name.lower() in (one.lower() for one in self.schema.names):
            raise self.bad(
                f"{part.text!r} is not a comparison; write {name}:{value.lstrip('=') or 'value'} to search "
                f"column {name!r}, or put the text in double quotes",
                part.at,
            )
        if part.quoted and item.kind != STRING and re.search(r"\w[*?]|[*?]\w", part.text):
            self.note(part, "inside quotes '*' and '?' are ordinary characters, not wildcards")
        if part.quoted and part.distance and len(part.text.split()) == 1:
            self.note(
                part, "'~' behind quotes counts words between words; for similar words leave the quotes"
            )

    def stop_words(self, part: QueryPart, defaults: SearchColumns) -> None:
        """Note that stop words are searched like others, where the query has such words without AND."""
        optional = part.should if isinstance(part, BooleanPart) else (part,)
        common = [one for one in optional if isinstance(one, Text) and _is_common(one)]
        if not common or not any(item.kind == TEXT for item, _ in defaults):
            return
        words = ", ".join(repr(one.text) for one in common)
        if len(optional) > len(common):
            if not re.search(r"\bOR\b|\|\|", self.text):
                self.notes.append(
                    f"{words}: common words are searched like any other, so rows that hold only them match "
                    "too; join words with AND, or set operator to and"
                )
        elif not (isinstance(part, BooleanPart) and part.must):
            self.notes.append(
                f"{words}: common words are searched like any other, and most texts hold them; "
                "add a rarer word, joined with AND"
            )


def _compared(schema: pa.Schema, column: str) -> IndexField | None:
    """How the values of a column without a search field are compared; None if their type cannot be."""
    kind = schema.field(column).type if column else pa.null()
    if is_text(kind) or is_list_of_text(kind):
        return IndexField(column, STRING)
    if is_value(kind) or pa.types.is_decimal(kind):
        return IndexField(column, FAST)
    return IndexField(column, JSON) if pa.types.is_nested(kind) else None


def _is_common(part: Text) -> bool:
    plain = not (part.quoted or part.prefix or part.shape or part.distance)
    return plain and part.text.lower() in _STOP_WORDS


def _readings(name: str) -> Iterable[tuple[str, str | None]]:
    """The possible readings of a dotted name: a column, or a shorter column name and a JSON path."""
    yield name, None
    at = len(name)
    while (at := name.rfind(".", 0, at)) > 0:
        yield name[:at], name[at + 1 :]


def _conjuncts(node: Node) -> tuple[Node, ...]:
    return node.must if isinstance(node, Boolean) and node.must else (node,)


def _any(nodes: Iterable[Node]) -> Node:
    parts = tuple(node for node in nodes if node != NOTHING)
    return parts[0] if len(parts) == 1 else Boolean(should=parts)
