"""Which files can hold a matching row; a file is never dropped without proof.

A file is dropped only when its partition values and statistics prove that the predicate
is true for none of its rows. For that, each node says whether it can be true for
some row, and below a NOT whether it can be false. If nothing is known, the file stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from functools import reduce
from itertools import accumulate
from typing import Any

import pyarrow as pa

from indextables.lazy import pc
from indextables.model.arrays import TRUE, whole
from indextables.model.stats import FileStats
from indextables.predicate.coerce import like_pieces
from indextables.predicate.prune.facts import Facts, T, is_nan
from indextables.predicate.prune.many_files import ManyFiles
from indextables.predicate.prune.metrics import PruneMetrics
from indextables.predicate.prune.one_file import OneFile, keeps_order
from indextables.predicate.tree import (
    And,
    Cast,
    Column,
    Compare,
    Constant,
    In,
    IsNull,
    IsTrue,
    IsUndecided,
    Like,
    Match,
    Node,
    Not,
    Operand,
    Or,
    RLike,
    Unknown,
    all_of,
    columns_of,
    walk,
)
from indextables.records import dataclass

__all__ = [
    "Needs",
    "Pruned",
    "Verdict",
    "asks_for_nulls",
    "columns_needed",
    "conjuncts",
    "possible",
    "prune_each",
    "prune_file",
    "prune_table",
]


_CHUNK_ROWS = 1 << 14
"""Chunks smaller than this are joined: pruning a chunk takes about a millisecond, even with few files."""


class Verdict(Enum):
    """Whether a file can hold a match: yes, no, or unknown."""

    KEEP = "keep"
    DROP = "drop"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Pruned:
    """Which files stay (True), in the order they came, and the counts."""

    mask: pa.BooleanArray
    metrics: PruneMetrics


@dataclass(frozen=True, slots=True)
class Needs:
    """The columns whose partition values and statistics a prune asks for."""

    partitions: frozenset[str]
    statistics: frozenset[str]


def columns_needed(node: Node | None, partition_columns: Collection[str]) -> Needs:
    """Return what has to be read of the files before they can be pruned."""
    columns = frozenset[Column]() if node is None else columns_of(node)
    partitions = frozenset(column for column in columns if column.is_one_of(partition_columns))
    statistics = columns - partitions
    return Needs(frozenset(item.name for item in partitions), frozenset(item.name for item in statistics))


def asks_for_nulls(node: Node) -> bool:
    """Whether a predicate can be true for null; only then are null counts of bounded columns needed."""
    return any(
        isinstance(part, IsNull | IsTrue | IsUndecided | Unknown)
        or (isinstance(part, Compare) and part.op == "<=>")
        for part in walk(node)
    )


def prune_file(
    node: Node | None,
    stats: FileStats,
    partition_values: Mapping[str, str | None],
    schema: pa.Schema,  # noqa: ARG001 - the tree carries the types; kept beside prune_table's
    partition_columns: Collection[str],
) -> Verdict:
    """Whether a row of one file can match."""
    if node is None:
        return Verdict.KEEP
    truth = possible(node, True, OneFile(stats, partition_values, frozenset(partition_columns)))
    return {True: Verdict.KEEP, False: Verdict.DROP, None: Verdict.UNKNOWN}[truth]


def prune_each(
    node: Node,
    files: Iterable[tuple[FileStats, Mapping[str, str | None]]],
    partition_columns: Collection[str],
) -> tuple[list[bool], PruneMetrics]:
    """For each of a few files, by its statistics and partition values, whether one of its rows can match.

    The same as `prune_table`, file by file: for a hundred files that takes less time than Arrow's functions
    take to be called, and does not load them.
    """
    columns = frozenset(partition_columns)
    parts = [(part, columns_needed(part, columns)) for part in conjuncts(node)]
    stay: list[bool] = []
    by_partition = 0
    for stats, values in files:
        by_values = OneFile(FileStats(), values, columns)
        facts = OneFile(stats, values, columns)
        fits = not any(needs.partitions and possible(part, True, by_values) is False for part, needs in parts)
        by_partition += not fits
        stay.append(
            fits
            and not any(
                (needs.statistics or not needs.partitions) and possible(part, True, facts) is False
                for part, needs in parts
            )
        )
    left = sum(stay)
    return stay, PruneMetrics(len(stay), by_partition, len(stay) - by_partition - left, left)


def prune_table(
    node: Node | None,
    files: pa.Table,
    schema: pa.Schema,  # noqa: ARG001 - the tree carries the types; kept for symmetry
    partition_columns: Collection[str],
    *,
    among: pa.BooleanArray | None = None,
    explain: bool = False,
) -> Pruned:
    """For every file of a table (in the layout of `files()`), whether one of its rows can match.

    With `among`, the other files are left out and not counted, at less cost than removing their rows first.
    """
    # A table in several chunks is not joined: that would copy it, and a chunk's answers fit into less memory.
    columns = frozenset(partition_columns)
    chunks = [pa.Table.from_batches([batch]) for batch in files.to_batches()]
    if len(chunks) <= 1 or files.num_rows < len(chunks) * _CHUNK_ROWS:
        return _prune(node, files, columns, among, explain=explain)
    starts = accumulate((chunk.num_rows for chunk in chunks), initial=0)
    pruned = [
        _prune(node, chunk, columns, None if among is None else among[start:][: len(chunk)], explain=explain)
        for start, chunk in zip(starts, chunks, strict=False)
    ]
    metrics = reduce(PruneMetrics.plus, (item.metrics for item in pruned))
    return Pruned(pa.concat_arrays([item.mask for item in pruned]), metrics)


def _prune(
    node: Node | None,
    files: pa.Table,
    columns: frozenset[str],
    among: pa.BooleanArray | None,
    *,
    explain: bool,
) -> Pruned:
    rows = files.num_rows
    facts = ManyFiles(files, columns)
    partitions = ManyFiles(files, columns, partitions_only=True)
    remaining: Any = TRUE if among is None else among
    by_partition = remaining
    reasons = pa.nulls(rows, pa.string()) if explain else None
    for part in conjuncts(node):
        needs = columns_needed(part, columns)
        by_values = _mask(possible(part, True, partitions), rows) if needs.partitions else TRUE
        by_all = by_values
        if needs.statistics or not needs.partitions:
            by_all = _mask(possible(part, True, facts), rows)
        if reasons is not None:
            reasons = _explained(reasons, part, by_values, by_all, rows)
        by_partition = pc.and_(by_partition, by_values)
        remaining = pc.and_(remaining, by_all)
    mask = _spread(remaining, rows)
    if among is not None and reasons is not None:
        reasons = reasons.filter(among)
    considered = rows if among is None else among.true_count
    return Pruned(mask, _metrics(considered, mask, _spread(by_partition, rows), reasons))


def _mask(truth: Any, rows: int) -> Any:
    return pc.fill_null(_spread(truth, rows), TRUE)


def _spread(truth: Any, rows: int) -> Any:
    if isinstance(truth, pa.Scalar):
        return pa.repeat(truth, rows)
    return whole(truth)


def _metrics(considered: int, mask: Any, by_partition: Any, reasons: pa.Array | None) -> PruneMetrics:
    after_partitions, after_statistics = by_partition.true_count, mask.true_count
    return PruneMetrics(
        considered,
        considered - after_partitions,
        after_partitions - after_statistics,
        after_statistics,
        reasons,
    )


def _explained(reasons: pa.Array, part: Node, by_values: Any, by_all: Any, rows: int) -> pa.Array:
    """Give files that this part of the conjunction drops their reason, unless an earlier part gave one."""
    for mask, source in ((by_values, "partition values"), (by_all, "statistics")):
        dropped = pc.and_(pc.invert(_spread(mask, rows)), pc.is_null(reasons))
        reasons = pc.if_else(dropped, f"{source}: {part}", reasons)
    return reasons


def possible(node: Node, outcome: bool, facts: Facts[T]) -> T:
    """Whether the node can have the outcome (true or false, not null) for some row."""
    if isinstance(node, (And, Or)):
        # For a row to make a conjunction true every child must be; to make it false, one.
        if isinstance(node, And) == outcome:
            return reduce(facts.both, _of_same_row(node.children, outcome, facts))
        return reduce(facts.either, [possible(child, outcome, facts) for child in node.children])
    if isinstance(node, Not):
        return possible(node.child, not outcome, facts)
    if isinstance(node, IsNull):
        column = facts.column(node.column)
        return column.may_be_null() if outcome else column.may_have_value()
    if isinstance(node, Compare):
        return _comparison(node, outcome, facts)
    if isinstance(node, In):
        return _in(node, outcome, facts)
    if isinstance(node, (Match, Like, RLike)):
        return _text(node, outcome, facts)
    if isinstance(node, IsTrue):
        if outcome:
            return possible(node.child, True, facts)
        return facts.either(possible(node.child, False, facts), may_be_null(node.child, facts))
    if isinstance(node, IsUndecided):
        if outcome:
            return may_be_null(node.child, facts)
        return facts.either(possible(node.child, True, facts), possible(node.child, False, facts))
    return facts.constant(node.value is outcome if isinstance(node, Constant) else None)


def conjuncts(node: Node | None) -> list[Node]:
    """The parts of a conjunction; comparisons of the same column are one part, a range of its values."""
    spans: dict[object, list[Node]] = {}
    for at, part in enumerate(_flat(node)):
        compared = _compared(part, True)
        spans.setdefault(at if compared is None else compared[0].column, []).append(part)
    return [all_of(parts) for parts in spans.values()]


def _flat(node: Node | None) -> list[Node]:
    if isinstance(node, And):
        return [part for child in node.children for part in _flat(child)]
    return [] if node is None else [node]


def _of_same_row(children: Sequence[Node], outcome: bool, facts: Facts[T]) -> list[T]:
    """Whether each child can have the outcome for a row for which the others have it too.

    Where one of them demands a number (`x < 5`), rows with NaN match none of the comparisons of that column.
    """
    compared = [_compared(child, outcome) for child in children]
    numbers = {node.column for node, truth in filter(None, compared) if _demands_number(node, truth)}
    return [
        possible(child, outcome, facts)
        if comparison is None
        else _comparison(*comparison, facts, of_numbers=comparison[0].column in numbers)
        for child, comparison in zip(children, compared, strict=True)
    ]


def _compared(node: Node, outcome: bool) -> tuple[Compare, bool] | None:
    """The comparison a node is, below any NOT, and whether it has to be true; None for other nodes."""
    while isinstance(node, Not):
        node, outcome = node.child, not outcome
    return (node, outcome) if isinstance(node, Compare) else None


def _demands_number(node: Compare, outcome: bool) -> bool:
    """Whether no NaN makes a comparison true (or false): it equals itself and is above every number."""
    if not outcome:
        return node.op in {">", ">="} and (node.op == ">=" or not is_nan(node.literal.value))
    return node.op == "<" or (node.op in {"=", "<=>", "<="} and not is_nan(node.literal.value))


def may_be_null(node: Node, facts: Facts[T]) -> T:
    """Whether the node can be null for some row, by the null counts of its columns."""
    if isinstance(node, (And, Or)):
        # A conjunction is null if a child is null and none is false; a disjunction, if none is true.
        nulls = [may_be_null(child, facts) for child in node.children]
        harmless = [possible(child, isinstance(node, And), facts) for child in node.children]
        spared = [facts.either(null, other) for null, other in zip(nulls, harmless, strict=True)]
        return facts.both(reduce(facts.either, nulls), reduce(facts.both, spared))
    if isinstance(node, Not):
        return may_be_null(node.child, facts)
    if isinstance(node, In) and node.has_null:
        return facts.either(_null_operand(node.column, facts), _unlisted(node, facts))
    if isinstance(node, (Compare, In, Match, Like, RLike)):
        is_null_safe = isinstance(node, Compare) and node.op == "<=>"
        return facts.constant(False) if is_null_safe else _null_operand(node.column, facts)
    if isinstance(node, (IsNull, IsTrue, IsUndecided)):
        return facts.constant(False)
    return facts.constant(node.value is None if isinstance(node, Constant) else None)


def _null_operand(operand: Operand, facts: Facts[T]) -> T:
    """A column is null where its null count says so; a cast that can fail may make null of a value too."""
    null = facts.column(operand).may_be_null()
    can_fail = isinstance(operand, Cast) and not keeps_order(operand)
    return facts.either(null, facts.constant(None)) if can_fail else null


def _unlisted(node: In, facts: Facts[T]) -> T:
    """A value that is not in a list with a NULL may equal that NULL."""
    column = facts.column(node.column)
    values = tuple(literal.value for literal in node.values)
    answer = column.may_be_none_of(values) if values else facts.constant(True)
    return facts.both(answer, column.may_have_value())


def _comparison(node: Compare, outcome: bool, facts: Facts[T], *, of_numbers: bool = False) -> T:
    """Whether the comparison may be `outcome` for a row of the file, by the bounds of its column."""
    column, value = facts.column(node.column), node.literal.value
    if of_numbers or _demands_number(node, outcome):
        column = column.of_numbers()
    if node.op in {"=", "<=>"}:
        if outcome:
            answer = facts.both(
                column.may_be_below(value, or_equal=True), column.may_be_above(value, or_equal=True)
            )
        else:
            answer = facts.either(
                column.may_be_below(value, or_equal=False), column.may_be_above(value, or_equal=False)
            )
    elif (node.op in {"<", "<="}) == outcome:
        answer = column.may_be_below(value, or_equal=("=" in node.op) == outcome)
    else:
        answer = column.may_be_above(value, or_equal=("=" in node.op) == outcome)
    answer = facts.both(answer, column.may_have_value())
    if node.op == "<=>" and not outcome:
        return facts.either(answer, column.may_be_null())
    return answer


def _in(node: In, outcome: bool, facts: Facts[T]) -> T:
    if not outcome and node.has_null:
        return facts.constant(False)
    column = facts.column(node.column)
    values = tuple(literal.value for literal in node.values)
    answer = column.may_be_one_of(values) if outcome else column.may_be_none_of(values)
    return facts.both(answer, column.may_have_value())


def _text(node: Match | Like | RLike, outcome: bool, facts: Facts[T]) -> T:
    column = facts.column(node.column)
    answer = facts.constant(None)
    if isinstance(node, Match) and node.kind == "startswith":
        answer = column.may_start(node.text) if outcome else column.may_start_otherwise(node.text)
    elif isinstance(node, Like) and outcome:
        pieces = like_pieces(node.pattern, node.escape)
        if pieces and pieces[0].startswith("="):
            answer = column.may_start(pieces[0][1:])
    return facts.both(answer, column.may_have_value())
