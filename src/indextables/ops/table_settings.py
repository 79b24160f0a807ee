"""What every read needs to know of a version before it opens a split: file format, index, query."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from indextables.errors import OptionError, TableError
from indextables.index.query.parts import QueryRules
from indextables.index.query.plain_text import PlainText
from indextables.index.query.syntax import parse_query
from indextables.index.query.tree import Query, require_any_text
from indextables.index.settings import IndexSpec, from_options
from indextables.log.snapshot import Snapshot
from indextables.ops.foreign_rows import COMPANION, SOURCE_PROPERTY, ForeignRows, container_of
from indextables.options import PREFIX, Options
from indextables.options.groups import OPERATORS

VECTOR_OPTIONS = "deletionVectors."

_log = logging.getLogger(__name__)


def require_parquet(snapshot: Snapshot) -> None:
    """Refuse to read rows from splits of another format, which only the system that wrote them can open."""
    snapshot.once("parquet", lambda: _require_parquet(snapshot))


def _require_parquet(snapshot: Snapshot) -> None:
    if isinstance(snapshot, ForeignRows):
        return
    described, container = snapshot.metadata.format or {}, container_of(snapshot)
    if container == COMPANION:
        raise TableError(
            f"{snapshot.store.uri} is a companion index: the rows are those of "
            f"{snapshot.metadata.configuration.get(SOURCE_PROPERTY)}, and they are changed there. Read them "
            "with Table.open, and bring the index up to date with it.companion(...).refresh().",
            uri=snapshot.store.uri,
        )
    if described.get("provider") == "indextables" and container != "parquet":
        raise TableError(
            f"{snapshot.store.uri} keeps its rows in {container or 'another kind of'} splits, not in "
            "Parquet; only its log can be read here. DESCRIBE and REPAIR work on it.",
            uri=snapshot.store.uri,
        )


def settings_of(snapshot: Snapshot) -> IndexSpec:
    """The index settings the table has."""

    def read() -> IndexSpec:
        # Only these: an invalid value of another property must not prevent searching.
        table = indexing_of(snapshot.metadata.configuration)
        return from_options(Options().over(table, snapshot.store.uri), snapshot.schema, stored=True)

    return snapshot.once("index settings", read)


def query_of(
    snapshot: Snapshot,
    query: str | Query,
    columns: Sequence[str] | None = None,
    operator: str | None = None,
    *,
    with_text: bool = False,
) -> Query:
    """A query checked against the table's index settings, before any file is opened.

    Words without a column are searched in `columns`, by default in all indexed ones. Adjacent words are
    joined by the operator; without one, the options decide. `with_text` leaves out rows in which
    all of `columns` are null: for them SQL treats the search as null. A tree that was checked against this
    version before is returned as it is.
    A `PlainText` is not read as a query: all of its words are looked for.
    """
    require_parquet(snapshot)
    if isinstance(query, Query):
        return query
    rules = rules_of(operator, snapshot.settings)
    named = None if columns is None else tuple(columns)

    def parse() -> Query:
        spec = settings_of(snapshot)
        parsed = parse_query(
            query, spec.searchable(), snapshot.schema, named, snapshot.time_zone, rules=rules
        )
        if with_text:
            parsed = require_any_text(parsed, named)
        return parsed if parsed.spec is spec else replace(parsed, spec=spec)

    plain = query.why if isinstance(query, PlainText) else None
    return snapshot.parsed(str(query), ("query", named, rules, with_text, plain), parse)


def query_of_statement(
    snapshot: Snapshot,
    query: str,
    column: str | None = None,
    operator: str | None = None,
    *,
    with_text: bool = False,
) -> Query:
    """The same for a statement, whose rows have no place for notes: they are logged as warnings."""
    columns = None if column is None else (column,)
    parsed = query_of(snapshot, query, columns, operator, with_text=with_text)
    for note in parsed.notes:
        _log.warning("indexquery %r: %s", query, note)
    return parsed


def rules_of(operator: str | None, options: Options) -> QueryRules:
    """How queries are read: by the operator of the call, where it gives one, and by its options."""
    joined = options.search.default_operator if operator is None else operator.lower()
    if joined not in OPERATORS:
        raise OptionError(f"operator is {operator!r}; expected one of {', '.join(OPERATORS)}")
    return QueryRules(joined, options.search.lowercase_operators)


def indexing_of(explicit: Mapping[str, Any]) -> dict[str, str]:
    """The options among others that say how columns are indexed."""
    return {key: value for key, value in explicit.items() if "indexing." in key.lower()}


def properties_of_new_table(options: Options) -> dict[str, str]:
    """The properties that a new table has besides those it was given, by the options of its creator.

    They are about every later write: whether there are word filters, and how rows are deleted. That is by
    vectors unless the creator says otherwise; a table of release 0.2.0 lacks the property and keeps its ways.
    """
    enabled = options.search.filters_enabled
    filters = {} if enabled is None else {f"{PREFIX}indexFilters.enabled": str(enabled).lower()}
    vectors = {
        f"{PREFIX}{key}": value for key, value in options.explicit.items() if key.startswith(VECTOR_OPTIONS)
    }
    return {**filters, f"{PREFIX}{VECTOR_OPTIONS}enabled": "true", **vectors}
