"""Index settings: which columns a table indexes for search, and how.

They come from options on the first write that names a column, live on as table
properties, and are written into every split, so that a search knows whether a
split's index can answer for the table's settings or its rows must be scanned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, field, replace
from typing import Any

import pyarrow as pa

from indextables.errors import OptionError
from indextables.index.dictionaries import DICTIONARIES
from indextables.index.tokens import FOLD, NEWEST, PAIRING, VERSIONED, newest_version, tokenizer_of
from indextables.model.names import find_name, no_column
from indextables.options import PREFIX, IndexingOptions, Options
from indextables.records import dataclass

TEXT, STRING, JSON, IP, FAST = "text", "string", "json", "ip", "fast"
SUBSTRING = "substring"
KINDS = (TEXT, STRING, JSON, IP, SUBSTRING)
WORDS = (TEXT, JSON, IP)
"""Kinds that say what a query finds in a column; of these a column has one at most."""
_ORDER = (*WORDS, STRING, FAST, SUBSTRING)
"""The fields of one column, as they follow each other: queries search the first."""
TOKENIZERS = (*PAIRING, "raw", "whitespace", *DICTIONARIES, *(name + FOLD for name in VERSIONED))
RECORDS = ("basic", "freq", "position")
_DEFAULT_RECORD = {
    TEXT: "position",
    STRING: "basic",
    JSON: "position",
    IP: "basic",
    FAST: "basic",
    SUBSTRING: "basic",
}
_DEFAULT_TOKENIZER = {TEXT: "default", JSON: "default"}


@dataclass(frozen=True, slots=True)
class IndexField:
    """One index of a column. `kind` is text, string, json, ip, substring, or fast for typed values."""

    column: str
    kind: str
    tokenizer: str = "raw"
    record: str = "basic"
    fast: bool = False

    @property
    def compact_ids(self) -> bool:
        """Whether identifiers are single words that the index has only buckets of."""
        return tokenizer_of(self.tokenizer).base == "compact_ids"


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """The fields of a table's index: its indexed columns in the order of the schema, each with one or more.

    A query searches the first field of a column. The others serve filters: `string` finds whole values,
    `substring` parts of them.

    >>> message = [IndexField("message", kind) for kind in ("text", "substring")]
    >>> spec = IndexSpec(tuple(message))
    >>> spec.columns, spec.get("message").kind, spec.get("message", "string")
    (('message',), 'text', None)
    """

    fields: tuple[IndexField, ...] = ()
    columns: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The indexed columns."""
    numbers: Mapping[tuple[str, str | None], int] = field(init=False, repr=False, compare=False)
    """The index of every field in `fields`, by column and kind; with None for a kind, of the first one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(dict.fromkeys(item.column for item in self.fields)))
        numbers: dict[tuple[str, str | None], int] = {}
        for number, item in enumerate(self.fields):
            numbers.setdefault((item.column, None), number)
            numbers[item.column, item.kind] = number
        object.__setattr__(self, "numbers", numbers)

    def get(self, column: str, kind: str | None = None) -> IndexField | None:
        """The field of a column that has this kind, or that queries search; None when it has none."""
        number = self.numbers.get((column, kind))
        return None if number is None else self.fields[number]

    def kinds(self, column: str) -> tuple[str, ...]:
        """The kinds of a column's fields."""
        return tuple(item.kind for item in self.fields if item.column == column)

    def of_kind(self, *kinds: str) -> frozenset[str]:
        """The columns that have a field of one of these kinds."""
        return frozenset(item.column for item in self.fields if item.kind in kinds)

    def searchable(self) -> IndexSpec:
        """The fields that queries search: the first of every column, unless it is of parts of values."""
        searched = tuple(
            item for item in self.fields if self.get(item.column) is item and item.kind != SUBSTRING
        )
        return self if len(searched) == len(self.fields) else IndexSpec(searched)

    def to_wire(self) -> tuple[dict[str, Any], ...]:
        """The form written into a split."""
        return tuple(asdict(item) for item in self.fields)

    @classmethod
    def from_wire(cls, fields: Iterable[Mapping[str, Any]]) -> IndexSpec:
        """Read what `to_wire` wrote; settings added by later versions make a field differ from ours."""
        keys = {"column", "kind", "tokenizer", "record", "fast"}
        return cls(
            tuple(
                IndexField(**{key: item[key] for key in keys if key in item})
                if set(item) <= keys
                else IndexField(item["column"], "unknown")
                for item in fields
            )
        )

    def to_properties(self) -> dict[str, str]:
        """The table properties that store these settings; defaults of a kind are left out.

        So a column can be given another kind by changing one property.
        """
        properties: dict[str, str] = {}
        for item in self.fields:
            if item.kind == FAST:
                continue
            properties[f"{PREFIX}indexing.typemap.{item.column}"] = ",".join(self.kinds(item.column))
            if item.record != _DEFAULT_RECORD[item.kind]:
                properties[f"{PREFIX}indexing.indexrecordoption.{item.column}"] = item.record
            if item.tokenizer != _DEFAULT_TOKENIZER.get(item.kind, "raw"):
                properties[f"{PREFIX}indexing.tokenizer.{item.column}"] = item.tokenizer
        fast = [item.column for item in self.fields if item.fast]
        if fast:
            properties[f"{PREFIX}indexing.fastfields"] = ",".join(fast)
        return properties


_NOTHING = IndexSpec()


def from_options(
    options: Options | IndexingOptions,
    schema: pa.Schema,
    *,
    stored: bool = False,
    current: IndexSpec = _NOTHING,
) -> IndexSpec:
    """The settings that options ask for, checked against the columns of the table.

    A tokenizer without a version has that of the `current` settings where these name it too, and the newest
    elsewhere. With `stored`, the options are what the log says of a table: there a missing version is the
    first, and a text column named as a fast field is accepted, as it is indexed as text all the same.
    """
    indexing = options.indexing if isinstance(options, Options) else options
    typemap = {
        column: _kinds(column, value)
        for column, value in _by_column("typemap", indexing.typemap, KINDS, schema).items()
    }
    tokenizers = tokenizers_of(indexing, schema)
    records = _by_column("indexrecordoption", indexing.record_option, RECORDS, schema)
    fast = {_resolve(name, "fastfields", schema) for name in indexing.fast_fields or ()}
    for option, named in (("tokenizer", tokenizers), ("indexrecordoption", records)):
        for column in named:
            if column not in typemap:
                raise OptionError(
                    f"indexing.{option}.{column} is set, but column {column!r} is not indexed; "
                    f"set indexing.typemap.{column} as well, for example to 'text'",
                    column=column,
                )
    fields = []
    for item in schema:
        kinds = typemap.get(item.name, ())
        if not kinds and item.name in fast:
            kinds = (STRING if is_text(item.type) else FAST,)
        words = [kind for kind in kinds if kind in (TEXT, JSON, SUBSTRING)]
        if item.name in fast and len(words) == len(kinds) and kinds and not stored:
            raise OptionError(
                f"indexing.fastfields names column {item.name!r}, which is indexed as {','.join(kinds)}: "
                "words have no value to compare. Leave it out of fastfields, or index the column as string, "
                "which finds whole values and ranges of them",
                column=item.name,
            )
        if stored and not any(kind in _DEFAULT_TOKENIZER for kind in kinds):
            # It was given another kind, and its tokenizer stayed behind.
            tokenizers.pop(item.name, None)
        fields += [
            _field(
                item,
                kind,
                tokenizers,
                records,
                fast=item.name in fast and (kind == STRING or len(kinds) == 1),
                first=kind == kinds[0],
            )
            for kind in kinds
        ]
    if stored:
        return IndexSpec(tuple(replace(item, tokenizer=tokenizer_of(item.tokenizer).name) for item in fields))
    return IndexSpec(tuple(_with_version(item, current.get(item.column, item.kind)) for item in fields))


def _kinds(column: str, value: str) -> tuple[str, ...]:
    """The kinds of fields that a column is to have, in their order; `text,substring` are two."""
    kinds = sorted({kind.strip() for kind in value.split(",")}, key=_ORDER.index)
    words = [kind for kind in kinds if kind in WORDS]
    if len(words) > 1:
        raise OptionError(
            f"indexing.typemap.{column} is {value!r}: a query could not tell which of {' and '.join(words)} "
            "it searches. Name one of them; string and substring can stand beside it",
            column=column,
            value=value,
        )
    return tuple(kinds)


def tokenizers_of(indexing: IndexingOptions, schema: pa.Schema) -> dict[str, str]:
    """The tokenizers that options name, by column."""
    return _by_column("tokenizer", indexing.tokenizer, TOKENIZERS, schema)


def _with_version(item: IndexField, current: IndexField | None) -> IndexField:
    """The field with the version of its tokenizer: the newest, unless the current field has the same one."""
    parts = tokenizer_of(item.tokenizer)
    if "@" not in item.tokenizer and parts.base in VERSIONED:
        same = None if current is None else tokenizer_of(current.tokenizer)
        is_same_rule = same is not None and (same.base, same.accents) == (parts.base, parts.accents)
        version = same.version if same is not None and is_same_rule else newest_version(parts.base)
        parts = replace(parts, version=version)
    return replace(item, tokenizer=parts.name)


def _field(
    column: pa.Field,
    kind: str,
    tokenizers: Mapping[str, str],
    records: Mapping[str, str],
    *,
    fast: bool,
    first: bool,
) -> IndexField:
    """One field of a column; what options say of its words is about the first."""
    _check_type(column, kind)
    if not first:
        return IndexField(column.name, kind, fast=fast)
    tokenizer = tokenizers.get(column.name, _DEFAULT_TOKENIZER.get(kind, "raw"))
    if column.name in tokenizers and kind not in _DEFAULT_TOKENIZER and tokenizer != "raw":
        raise OptionError(
            f"column {column.name!r} is indexed as {kind}, which has no tokenizer; "
            f"drop indexing.tokenizer.{column.name}, or index the column as text",
            column=column.name,
        )
    if kind == JSON and tokenizer_of(tokenizer).base == "compact_ids":
        raise OptionError(
            f"column {column.name!r} is indexed as json; tokenizer compact_ids is for text columns",
            column=column.name,
        )
    return IndexField(column.name, kind, tokenizer, records.get(column.name, _DEFAULT_RECORD[kind]), fast)


def _by_column(
    option: str, values: Mapping[str, str], choices: tuple[str, ...], schema: pa.Schema
) -> dict[str, str]:
    """Read `option.<column> = <choice>` and the list form `option.<choice> = <column>, <column>`."""
    chosen: dict[str, str] = {}
    several = option == "typemap"
    lists = {
        key: value
        for key, value in values.items()
        if key.lower() in choices
        and value.strip().lower() not in choices
        and not (several and _are_all(value, choices) and find_name(schema.names, key) is not None)
    }
    for key, value in values.items():
        pairs = (
            [(name.strip(), key.lower()) for name in value.split(",") if name.strip()]
            if key in lists
            else [(key, value.strip().lower())]
        )
        for name, given in pairs:
            choice = given
            column = _resolve(name, option, schema)
            if not _is_known(choice, option, choices) and not (several and _are_all(choice, choices)):
                also = ", or several of them as in text,substring" if several else ""
                raise OptionError(
                    f"indexing.{option}.{name} is {choice!r}; expected one of {', '.join(choices)}{also}",
                    column=column,
                    value=choice,
                )
            if "," in choice:
                choice = ",".join(_kinds(column, choice))
            before = chosen.get(column, choice)
            if before != choice and not _same_tokenizer(before, choice):
                raise OptionError(
                    f"indexing.{option} gives column {column!r} twice, as {chosen[column]!r} and {choice!r}",
                    column=column,
                )
            chosen[column] = max(before, choice, key=len)
    return chosen


def _are_all(value: str, choices: tuple[str, ...]) -> bool:
    """Whether every part of a list with commas is one of the choices."""
    return all(part.strip().lower() in choices for part in value.split(","))


def _same_tokenizer(one: str, other: str) -> bool:
    """Whether two settings differ only in that one of them names a version."""
    return ("@" in one) != ("@" in other) and one.partition("@")[0] == other.partition("@")[0]


def _is_known(choice: str, option: str, choices: tuple[str, ...]) -> bool:
    """Whether a value is one of the choices; the name of a tokenizer may be followed by a version."""
    name, at, version = choice.partition("@")
    if name not in choices or not at:
        return name in choices
    base = tokenizer_of(name).base
    if option != "tokenizer" or base not in VERSIONED or not version.isdigit():
        return False
    return base in DICTIONARIES or (2 if name.endswith(FOLD) else 1) <= int(version) <= NEWEST


def _resolve(name: str, option: str, schema: pa.Schema) -> str:
    """The column of a name, in any case; OptionError if there is none."""
    column = find_name(schema.names, name)
    if column is not None:
        return column
    raise OptionError(
        f"indexing.{option} names a column that is not there: {no_column(schema.names, name)}", column=name
    )


def is_text(kind: pa.DataType) -> bool:
    """Whether a column holds one text per row."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_list_of_text(kind: pa.DataType) -> bool:
    """Whether a column holds several texts per row."""
    return bool((pa.types.is_list(kind) or pa.types.is_large_list(kind)) and is_text(kind.value_type))


def is_value(kind: pa.DataType) -> bool:
    """Whether a column holds numbers, booleans, dates or timestamps that a fast field can hold."""
    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return bool(numbers or pa.types.is_date32(kind) or pa.types.is_timestamp(kind))


def _check_type(column: pa.Field, kind: str) -> None:
    of = column.type
    fits = {
        TEXT: is_text(of) or pa.types.is_nested(of),
        STRING: is_text(of) or is_list_of_text(of),
        IP: is_text(of) or is_list_of_text(of),
        SUBSTRING: is_text(of),
        JSON: is_text(of) or pa.types.is_nested(of),
        FAST: is_value(of),
    }[kind]
    if not fits:
        needed = {
            TEXT: "text or a nested type",
            JSON: "text that holds JSON, or a nested type",
            FAST: "a number, boolean, date or timestamp",
            SUBSTRING: "text",
        }.get(kind, "text or an array of text")
        setting = "fastfields" if kind == FAST else f"typemap.{column.name} = {kind}"
        raise OptionError(
            f"indexing.{setting}: column {column.name!r} has type {of}, and this setting needs {needed}",
            column=column.name,
        )
