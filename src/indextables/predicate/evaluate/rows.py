"""Which rows match, exactly as Spark would say.

Every node gives each row true, false or null; a row matches where the whole is
true. NaN equals NaN and is above every number, -0.0 equals 0.0, strings compare
by bytes, char(n) as if padded. A cast of a text that is no number or date fails
as ANSI casts do, but only for rows whose answer needs it: `a AND b` does not
look at b where a is false.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from indextables.errors import PredicateError
from indextables.lazy import pc
from indextables.model.arrays import FALSE, NEITHER, TRUE, from_values, scalar
from indextables.model.arrow_internals import call_kernel
from indextables.model.casting import cast_column
from indextables.model.fields import find_field, struct_leaf
from indextables.pages import page
from indextables.predicate.evaluate.casts import cast_values
from indextables.predicate.evaluate.ordering import compare_array
from indextables.predicate.evaluate.texts import text_matches
from indextables.predicate.evaluate.values import Computed, compute, of_literal
from indextables.predicate.tree import (
    And,
    Call,
    Cast,
    Column,
    Compare,
    Constant,
    Holds,
    In,
    IsNull,
    IsTrue,
    IsUndecided,
    Like,
    Literal,
    Match,
    Node,
    Not,
    Operand,
    Or,
    RLike,
    Unknown,
    Value,
    walk,
)

_CHAR = re.compile(r"char\((\d+)\)\Z")


def require_exact(node: Node) -> None:
    """Refuse a predicate with a part that cannot be decided row by row, before anything is read."""
    for item in walk(node):
        if isinstance(item, Unknown):
            raise PredicateError(
                f"the filter cannot be applied exactly: {item.text} is not supported here; "
                f"{page('filters')} lists the operators and functions a filter may contain",
                part=item.text,
            )


def mask(
    node: Node | None, batch: pa.RecordBatch | pa.Table, schema: pa.Schema, time_zone: str | None = None
) -> pa.BooleanArray:
    """Return True for each row of the batch that matches.

    `time_zone` overrides the zone in which the predicate was read, for casts of columns.
    """
    if node is None:
        return pa.repeat(TRUE, batch.num_rows)
    matches: pa.BooleanArray = call_kernel("coalesce", answers(node, batch, schema, time_zone), FALSE)
    return matches


def answers(
    node: Node, batch: pa.RecordBatch | pa.Table, schema: pa.Schema, time_zone: str | None = None
) -> pa.BooleanArray:
    """Return true, false or null for each row of the batch."""
    require_exact(node)
    answer = _Rows(batch, schema, time_zone).answer(node)
    if answer.failed is not None and pc.any(answer.failed).as_py():
        first = pc.index(answer.failed, TRUE).as_py()
        raise PredicateError(
            f"{answer.cause} fails for row {first} of the batch: a value that cannot be cast, an overflow "
            "and a division by zero are errors (ANSI); exclude such rows by a condition before it"
        )
    truth: Any = answer.values
    return pa.repeat(truth, batch.num_rows) if isinstance(truth, pa.Scalar) else truth


class _Rows:
    def __init__(self, batch: Any, schema: pa.Schema, zone: str | None) -> None:
        self._batch = batch
        self._schema = schema
        self._zone = zone
        self._columns: dict[Column, Any] = {}
        self._calls: dict[Call, Computed] = {}

    def answer(self, node: Node) -> Computed:
        if isinstance(node, (And, Or)):
            return self._junction(node)
        if isinstance(node, Not):
            inner = self.answer(node.child)
            return Computed(call_kernel("invert", inner.values), inner.failed, inner.cause)
        if isinstance(node, IsTrue):
            inner = self.answer(node.child)
            return Computed(pc.fill_null(inner.values, FALSE), inner.failed, inner.cause)
        if isinstance(node, IsUndecided):
            inner = self.answer(node.child)
            return Computed(pc.is_null(inner.values), inner.failed, inner.cause)
        if isinstance(node, Constant):
            return Computed(pa.repeat(scalar(node.value, pa.bool_()), self._batch.num_rows))
        if isinstance(node, IsNull):
            return Computed(call_kernel("is_null", self._column(node.column)))
        if isinstance(node, Unknown):
            raise PredicateError(f"{node.text} cannot be decided row by row", part=node.text)
        if isinstance(node, Holds):
            return self._call(node.value)
        if isinstance(node, (Match, Like, RLike)):
            return Computed(self._text(node))
        values, failed = self._values(node.column, _width(node))
        truth = self._compare(node, values) if isinstance(node, Compare) else self._in(node, values)
        return Computed(truth, failed, str(node.column))

    def _junction(self, node: And | Or) -> Computed:
        """Combine left to right; once a row is decided, later failures in it do not count."""
        combine = "and_kleene" if isinstance(node, And) else "or_kleene"
        decided = TRUE if isinstance(node, Or) else FALSE
        total = self.answer(node.children[0])
        for child in node.children[1:]:
            part = self.answer(child)
            failed, cause = total.failed, total.cause
            if part.failed is not None:
                is_open = pc.fill_null(pc.not_equal(total.values, decided), TRUE)
                counted = pc.and_(part.failed, is_open)
                failed = counted if failed is None else pc.or_(failed, counted)
                cause = cause or part.cause
            total = Computed(call_kernel(combine, total.values, part.values), failed, cause)
        return total

    def _call(self, call: Call) -> Computed:
        """A computed value; one that a filter names several times is computed once."""
        if call not in self._calls:
            self._calls[call] = compute(call, [self._value(arg) for arg in call.args], self._zone)
        return self._calls[call]

    def _value(self, value: Value) -> Computed:
        if isinstance(value, Call):
            return self._call(value)
        if isinstance(value, Column):
            return Computed(self._padded(value))
        if isinstance(value, Literal):
            return Computed(of_literal(value, self._batch.num_rows))
        return self.answer(value)

    def _column(self, column: Column) -> Any:
        if column not in self._columns:
            self._columns[column] = self._read(column)
        return self._columns[column]

    def _read(self, column: Column) -> Any:
        top = find_field(self._batch.schema, column.path[0])
        if top is None:
            return pa.nulls(self._batch.num_rows, column.type)
        values = self._batch.column(self._batch.schema.get_field_index(top.name))
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if len(column.path) == 1 and values.type == column.type:
            return values
        values = cast_column(values, self._schema.field(column.path[0]).with_nullable(True))
        return struct_leaf(values, column.path[1:])

    def _values(self, operand: Operand, width: int) -> tuple[Any, Any]:
        if isinstance(operand, Cast):
            return cast_values(self._column(operand.column), operand.type, self._zone or operand.zone)
        return self._padded(operand, width), None

    def _padded(self, column: Column, width: int = 0) -> Any:
        values = self._column(column)
        sized = _CHAR.match(column.order)
        return values if sized is None else pc.utf8_rpad(values, max(int(sized.group(1)), width), " ")

    def _compare(self, node: Compare, values: Any) -> Any:
        value = _pad(node.literal.value, node.column, _width(node))
        if node.op == "<=>":
            return pc.fill_null(compare_array("=", values, value), FALSE)
        return compare_array(node.op, values, value)

    def _in(self, node: In, values: Any) -> Any:
        chosen = [_pad(literal.value, node.column, _width(node)) for literal in node.values]
        held = values
        if pa.types.is_floating(values.type):
            held, chosen = pc.add(values, scalar(0.0, values.type)), [value + 0.0 for value in chosen]
        is_member = pc.is_in(held, value_set=from_values(chosen, values.type))
        if node.has_null:
            return call_kernel("if_else", is_member, TRUE, NEITHER)
        return call_kernel("if_else", call_kernel("is_valid", values), is_member, NEITHER)

    def _text(self, node: Match | Like | RLike) -> Any:
        return text_matches(node, self._padded(node.column))


def _width(node: Compare | In) -> int:
    """Return the length of the longest literal, to which a char(n) column is padded."""
    literals = (node.literal,) if isinstance(node, Compare) else node.values
    return max((len(item.value) for item in literals if isinstance(item.value, str)), default=0)


def _pad(value: Any, operand: Operand, width: int) -> Any:
    sized = _CHAR.match(operand.order) if isinstance(operand, Column) else None
    return value if sized is None else value.ljust(max(int(sized.group(1)), width))
