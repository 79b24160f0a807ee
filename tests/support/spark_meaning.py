"""Spark's meaning of a predicate, one row at a time in plain Python: the oracle of the pruning laws."""

from __future__ import annotations

import math
import re

import pyarrow as pa

from indextables.predicate.coerce import like_pieces
from indextables.predicate.tree import (
    And,
    Cast,
    Compare,
    Constant,
    In,
    IsNull,
    IsTrue,
    IsUndecided,
    Like,
    Match,
    Not,
    Or,
)


def order(left, right):
    """-1, 0 or 1: NaN is equal to itself and above everything; strings go by their UTF-8 bytes."""
    if isinstance(left, str):
        left, right = left.encode(), right.encode()
    nans = [isinstance(side, float) and math.isnan(side) for side in (left, right)]
    if any(nans):
        return nans[0] - nans[1]
    return (left > right) - (left < right)


def value_of(operand, row):
    if isinstance(operand, Cast):
        inner = value_of(operand.column, row)
        assert pa.types.is_float64(operand.type)
        return None if inner is None else float(inner)
    value = row[operand.path[0]]
    for step in operand.path[1:]:
        value = None if value is None else value[step]
    return value


def truth(node, row):
    """True, False or None."""
    if isinstance(node, And):
        answers = [truth(child, row) for child in node.children]
        return False if False in answers else None if None in answers else True
    if isinstance(node, Or):
        answers = [truth(child, row) for child in node.children]
        return True if True in answers else None if None in answers else False
    if isinstance(node, Not):
        answer = truth(node.child, row)
        return None if answer is None else not answer
    if isinstance(node, IsTrue):
        return truth(node.child, row) is True
    if isinstance(node, IsUndecided):
        return truth(node.child, row) is None
    if isinstance(node, Constant):
        return node.value
    value = value_of(node.column, row)
    if isinstance(node, IsNull):
        return value is None
    if isinstance(node, Compare):
        if node.op == "<=>":
            return value is not None and order(value, node.literal.value) == 0
        if value is None:
            return None
        sign = order(value, node.literal.value)
        return {"=": sign == 0, "<": sign < 0, "<=": sign <= 0, ">": sign > 0, ">=": sign >= 0}[node.op]
    if value is None:
        return None
    if isinstance(node, In):
        if any(order(value, literal.value) == 0 for literal in node.values):
            return True
        return None if node.has_null else False
    if isinstance(node, Match):
        return {"startswith": value.startswith, "endswith": value.endswith, "contains": value.__contains__}[
            node.kind
        ](node.text)
    assert isinstance(node, Like)
    wild = {"%": ".*", "_": "."}
    pattern = "".join(
        wild.get(piece) or re.escape(piece[1:]) for piece in like_pieces(node.pattern, node.escape)
    )
    return re.fullmatch(pattern, value, re.DOTALL) is not None
