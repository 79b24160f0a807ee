"""The queries inside a statement, as sqlglot sees them: what they read, mention and require of a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from indextables.errors import CommandError
from indextables.lazy import exp, load, sqlglot
from indextables.sql.select.mentions import SPARK, dialect_of, words_of

_MORE_THAN_ORDER = (
    "joins", "laterals", "group", "having", "distinct", "windows", "qualify", "sample", "pivots", "with_",
    "with",
)  # fmt: skip
SCORE = "_score"

NO_SEARCH = (
    "_score is the score of a search: it needs one indexquery in WHERE that every row has to match, as in "
    "SELECT _score, * FROM logs WHERE message indexquery 'error timeout' ORDER BY _score DESC LIMIT 10"
)


class CannotParseError(CommandError):
    """A statement that only its engine may understand."""


def scopes_of(text: str, engine: str = SPARK) -> list[Any]:
    """The queries of a statement, inner ones first, each with the tables it reads; none without a query."""
    try:
        parsed = sqlglot.parse_one(text, read=dialect_of(engine))
        query = parsed if isinstance(parsed, exp.Query) else parsed.find(exp.Query)
        return [] if query is None else list(load("sqlglot.optimizer.scope").traverse_scope(query))
    except sqlglot.errors.SqlglotError as error:
        raise CannotParseError(f"a statement with indexquery could not be analysed: {error}") from error


def refuse_pipes(text: str, engine: str) -> None:
    """Refuse a statement with `|>`, whose parts do not stand where its queries say."""
    if "|>" in text and any(word.raw == "|>" for word in words_of(text, engine)):
        raise CannotParseError("indexquery does not work in the |> syntax; write SELECT ... WHERE instead")


def columns_mentioned(scopes: Sequence[Any], text: str, engine: str) -> frozenset[str] | None:
    """Every column name a statement mentions, in lower case; None where it may mean all of a table's."""
    for scope in scopes:
        query = scope.expression
        if any(not isinstance(star.parent, exp.Count) for star in query.find_all(exp.Star)):
            return None
        if any(join.args.get("method") == "NATURAL" for join in query.find_all(exp.Join)):
            return None
        if query.find(exp.Columns, exp.Pivot) is not None:
            return None
        # The name of a table by itself is a whole row of it.
        sources = {name.lower() for name in scope.sources}
        if any(not one.table and one.name.lower() in sources for one in query.find_all(exp.Column)):
            return None
    # A struct's field looks like a column of a table: every word of the statement counts.
    return frozenset(word.value.lower() for word in words_of(text, engine))


def compared_texts(scope: Any) -> Iterator[tuple[Any, Any]]:
    """Every column of a query that is compared with strings, with each string."""
    kinds = (
        exp.EQ,
        exp.NEQ,
        exp.LT,
        exp.LTE,
        exp.GT,
        exp.GTE,
        exp.NullSafeEQ,
        exp.NullSafeNEQ,
        exp.Between,
        exp.In,
    )
    for node in scope.find_all(*kinds):
        operands = [node.args.get(name) for name in ("this", "expression", "low", "high")]
        operands += node.args.get("expressions") or ()
        columns = [one for one in operands if isinstance(one, exp.Column)]
        for one in operands:
            literal = one.this if isinstance(one, exp.Cast) else one
            if isinstance(literal, exp.Literal) and literal.is_string and len(columns) == 1:
                yield columns[0], literal


def _joins(table: Any, scope: Any) -> tuple[list[Any], int | None]:
    """The joins of the query that reads a table, and at which of them it comes in (-1: FROM itself)."""
    select = scope.expression
    joins = list(select.args.get("joins") or ())
    source = select.args.get("from_") or select.args.get("from")
    if source is not None and source.this is table:
        return joins, -1
    for at, join in enumerate(joins):
        if join.this is table:
            return joins, at
    return joins, None


def is_nullable(column: Any, table: Any, home: Any) -> bool:
    """Whether an outer join may have replaced the table's row by NULLs where the column is used."""
    joins, at = _joins(table, home)
    inside = _enclosing_join(column, joins)
    if at is None:
        return any(join.side for join in joins)
    for number, join in enumerate(joins):
        if inside is not None and number >= inside:
            break
        side = (join.side or "").upper()
        if side in ("LEFT", "FULL") and number == at and (join.kind or "").upper() not in ("SEMI", "ANTI"):
            return True
        if side in ("RIGHT", "FULL") and number > at:
            return True
    return False


def _enclosing_join(node: Any, joins: Sequence[Any]) -> int | None:
    numbers = {id(join): number for number, join in enumerate(joins)}
    while node is not None:
        if id(node) in numbers:
            return numbers[id(node)]
        node = node.parent
    return None


def conjuncts(condition: Any) -> Iterator[Any]:
    """The conditions that all have to be true for a WHERE, an ON or a condition to be true."""
    if isinstance(condition, (exp.Where, exp.And, exp.Paren)):
        for part in (condition.this, condition.args.get("expression")):
            if part is not None:
                yield from conjuncts(part)
    else:
        yield condition


def required_conditions(scope: Any) -> Iterator[Any]:
    """The conjuncts of a query's WHERE and of what its joins say."""
    where = scope.expression.args.get("where")
    ons = [join.args.get("on") for join in scope.expression.args.get("joins") or ()]
    for condition in (where, *ons):
        if condition is not None:
            yield from conjuncts(condition)


def is_required(call: Any, table: Any, home: Any) -> bool:
    """Whether a row of the table without a match contributes nothing to the query.

    A row may count without being in the result: for a sample, for a pivot, as the nearest row of an ASOF join
    or as the one at the same place in a POSITIONAL one.
    """
    joins, at = _joins(table, home)
    if at is None or any((join.method or "").upper() in ("ASOF", "POSITIONAL") for join in joins):
        return False
    if any(part.args.get(name) for part in (table, home.expression) for name in ("sample", "pivots")):
        return False
    node = call
    while isinstance(node.parent, (exp.And, exp.Paren)):
        node = node.parent
    holder = node.parent
    if isinstance(holder, exp.Where):
        return holder.parent is home.expression
    if isinstance(holder, exp.Join) and holder.args.get("on") is node:
        position = next((number for number, join in enumerate(joins) if join is holder), None)
        plain = not holder.side and (holder.kind or "").upper() in ("", "INNER", "CROSS")
        return plain and position is not None and at <= position
    return False


def mentions_score(query: Any) -> bool:
    """Whether a query names the score."""
    return any(column.name.lower() == SCORE for column in query.find_all(exp.Column))


def best_rows_needed(home: Any) -> int | None:
    """With ORDER BY _score DESC LIMIT n, how many of the best rows a query needs; None if it may need any.

    It has to be nothing but its WHERE, order and limit: whatever else stands in it may need more rows.
    """
    select = home.expression
    where, order, limit = (select.args.get(part) for part in ("where", "order", "limit"))
    if where is None or order is None or limit is None or not isinstance(select, exp.Select):
        return None
    if len(order.expressions) != 1 or limit.args.get("limit_options"):
        return None
    first = order.expressions[0]
    if (
        not first.args.get("desc")
        or not isinstance(first.this, exp.Column)
        or first.this.name.lower() != SCORE
    ):
        return None
    if any(select.args.get(part) for part in _MORE_THAN_ORDER):
        return None
    if any(select.find_all(exp.AggFunc, exp.Window, exp.Explode, exp.Subquery)):
        return None
    counts = [limit.expression, *([select.args["offset"].expression] if select.args.get("offset") else [])]
    if not all(isinstance(count, exp.Literal) and count.is_int for count in counts):
        return None
    return sum(int(count.this) for count in counts)
