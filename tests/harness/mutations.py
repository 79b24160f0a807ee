"""Small changes to a Python file, each of which a test should notice.

In comes the source of a file, out come mutations: one expression or statement and
the text that takes its place. A mutated source always parses. Annotations,
decorators, docstrings and the texts of messages are left alone.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
REMOVABLE = (ast.Expr, ast.AugAssign, ast.Raise, ast.Continue, ast.Break, ast.Delete, ast.Assert)


@dataclass(frozen=True)
class Mutation:
    """One change: the text between two offsets of the file, and what takes its place."""

    line: int
    statement_line: int
    start: int
    end: int
    was: str
    becomes: str

    def apply(self, source: str) -> str:
        """The source with this change."""
        data = source.encode()
        changed = (data[: self.start] + self.becomes.encode() + data[self.end :]).decode()
        ast.parse(changed)
        return changed


def mutations(source: str) -> list[Mutation]:
    """Every mutation of a source, in the order of the text."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    data, made = source.encode(), []
    for statement, node, becomes in _changes(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        was = data[start:end].decode()
        made.append(Mutation(node.lineno, statement.lineno, start, end, was, becomes))
    return sorted(made, key=lambda mutation: (mutation.start, mutation.end, mutation.becomes))


def _changes(tree: ast.Module) -> Iterator[tuple[ast.stmt, ast.expr | ast.stmt, str]]:
    for statement in _statements(tree):
        if isinstance(statement, REMOVABLE) and not _is_text(statement):
            yield statement, statement, "pass"
        if isinstance(statement, ast.Return) and not _is_constant(statement.value, None):
            yield statement, statement, "return None"
        if isinstance(statement, ast.If | ast.While) and not _has_a_change_of_its_own(statement.test):
            yield statement, statement.test, f"not ({ast.unparse(statement.test)})"
        for node in _expressions(statement):
            for changed in _changed(node):
                yield statement, node, f"({ast.unparse(changed)})"


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not isinstance(node, ast.Import | ast.ImportFrom):
            yield node


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement itself, not those of the statements inside it."""
    waiting = [
        child
        for name, value in ast.iter_fields(statement)
        if name not in {"annotation", "returns", "decorator_list", "body", "orelse", "finalbody", "handlers"}
        for child in (value if isinstance(value, list) else [value])
        if isinstance(child, ast.AST)
    ]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.JoinedStr | ast.arg):
            continue
        if isinstance(node, ast.expr):
            yield node
        waiting.extend(ast.iter_child_nodes(node))


def _changed(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            changed = copy.deepcopy(node)
            changed.ops[at] = COMPARISONS[type(operator)]()
            yield changed
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        yield ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield ast.Constant(node.value + 1)
        yield ast.Constant(node.value - 1)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.Call) and len(node.args) > 1 and ast.unparse(node.func) != "isinstance":
        first, second, *others = node.args
        if not isinstance(first, ast.Starred) and not isinstance(second, ast.Starred):
            yield ast.Call(node.func, [second, first, *others], node.keywords)


def _has_a_change_of_its_own(test: ast.expr) -> bool:
    """Whether a condition is negated by another mutation anyway, or must stay for the imports below it."""
    return isinstance(test, ast.Compare | ast.UnaryOp) or (
        isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"
    )


def _is_text(statement: ast.stmt) -> bool:
    """Whether a statement is a docstring, or anything else that does nothing."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_constant(node: ast.expr | None, value: object) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is value)
