"""What the joins of a query mean for a column: can its row be missing, and must a condition on it hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


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
    places = {id(join): number for number, join in enumerate(joins)}
    while node is not None:
        if id(node) in places:
            return places[id(node)]
        node = node.parent
    return None


def is_required(call: Any, table: Any, home: Any) -> bool:
    """Whether a row of the table without a match contributes nothing to the query."""
    from sqlglot import exp

    joins, at = _joins(table, home)
    if at is None:
        return False
    node = call
    while isinstance(node.parent, (exp.And, exp.Paren)):
        node = node.parent
    holder = node.parent
    if isinstance(holder, exp.Where):
        return holder.parent is home.expression
    if isinstance(holder, exp.Join) and holder.args.get("on") is node:
        place = next((number for number, join in enumerate(joins) if join is holder), None)
        plain = not holder.side and (holder.kind or "").upper() in ("", "INNER", "CROSS")
        return plain and place is not None and at <= place
    return False
