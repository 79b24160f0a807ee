"""`_score` in a statement: which search it belongs to, and how many of the best rows are wanted at most."""

from __future__ import annotations

from typing import Any

SCORE = "_score"

NO_SEARCH = (
    "_score is the score of a search: it needs one indexquery in WHERE that every row has to match, as in "
    "SELECT _score, * FROM logs WHERE message indexquery 'error timeout' ORDER BY _score DESC LIMIT 10"
)


def mentions_score(query: Any) -> bool:
    """Whether a query names the score."""
    from sqlglot import exp

    return any(column.name.lower() == SCORE for column in query.find_all(exp.Column))


def best_wanted(home: Any) -> int | None:
    """How many of the best rows that its WHERE leaves a query can use; None when it may use any of them.

    It has to be nothing but its WHERE, order and limit: whatever else stands in it may need more rows.
    """
    from sqlglot import exp

    select = home.expression
    where, order, limit = (select.args.get(part) for part in ("where", "order", "limit"))
    if where is None or order is None or limit is None or not isinstance(select, exp.Select):
        return None
    if len(order.expressions) != 1:
        return None
    first = order.expressions[0]
    if (
        not first.args.get("desc")
        or not isinstance(first.this, exp.Column)
        or first.this.name.lower() != SCORE
    ):
        return None
    others = (
        "joins",
        "laterals",
        "group",
        "having",
        "distinct",
        "windows",
        "qualify",
        "sample",
        "pivots",
        "with_",
        "with",
    )
    if any(select.args.get(part) for part in others):
        return None
    if any(select.find_all(exp.AggFunc, exp.Window, exp.Explode, exp.Subquery)):
        return None
    counts = [limit.expression, *([select.args["offset"].expression] if select.args.get("offset") else [])]
    if not all(isinstance(count, exp.Literal) and count.is_int for count in counts):
        return None
    return sum(int(count.this) for count in counts)
