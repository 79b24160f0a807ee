"""Which splits MERGE SPLITS combines: groups of small adjacent splits, partition by partition.

A split of at least `threshold` of the target size is left alone: rewriting it costs more
than a reader gains. The others are taken in path order, the order in which rows are read,
and collected in one group until the next split would exceed the limit, so that adjacent
rows stay adjacent.

After every write that would rewrite the same rows again and again. Merged by levels, splits
wait until `fan_in` of them have about the same number of rows: a level holds splits of
`fan_in` times the rows of the level below, so a merge always leads to a higher level, and a
row is rewritten at most once per level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from indextables.model.actions import AddAction
from indextables.split.write.build import MOST_TEXT

LARGEST_INDEXED = 1 << 30
"""The largest size of a split with an index."""


@dataclass(frozen=True, slots=True)
class MergeSettings:
    """How large merged splits become and how many there may be."""

    target_bytes: int
    threshold: float
    max_sources: int
    max_groups: int | None = None
    indexed: bool = False
    fan_in: int | None = None
    """Merge by levels, this many splits at least; None merges every small split there is."""

    @property
    def limit_bytes(self) -> int:
        """The size a bin may reach."""
        return min(self.target_bytes, LARGEST_INDEXED) if self.indexed else self.target_bytes


@dataclass(frozen=True, slots=True)
class MergeGroup:
    """Splits of one partition that become one split."""

    partition_values: Mapping[str, str | None]
    sources: tuple[AddAction, ...]

    @property
    def size_bytes(self) -> int:
        """Size of the sources together."""
        return sum(add.size for add in self.sources)


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What a merge would do, and what it leaves alone."""

    groups: tuple[MergeGroup, ...]
    cooling: Mapping[str, int]
    """Splits left out because an earlier run failed on them, and when (ms) each may be tried again."""
    considered: int

    @property
    def sources(self) -> frozenset[str]:
        """Every split that would be replaced."""
        return frozenset(add.path for group in self.groups for add in group.sources)

    @property
    def size_bytes(self) -> int:
        """Size of every split that would be replaced."""
        return sum(group.size_bytes for group in self.groups)


def plan_merge(
    adds: Iterable[AddAction],
    settings: MergeSettings,
    *,
    cooling: Mapping[str, int] = MappingProxyType({}),
    outdated: Callable[[AddAction], bool] = lambda _add: False,
) -> MergePlan:
    """Group small splits; an outdated one is rewritten even if there is nothing to merge it with."""
    by_partition: dict[tuple[tuple[str, str | None], ...], list[AddAction]] = {}
    fan_in = settings.fan_in
    left: dict[str, int] = {}
    considered = 0
    for add in sorted(adds, key=lambda add: add.path):
        considered += 1
        if add.path in cooling:
            left[add.path] = cooling[add.path]
        elif add.size < settings.threshold * settings.target_bytes or outdated(add):
            key = tuple(sorted(add.partition_values.items(), key=lambda item: item[0]))
            by_partition.setdefault(key, []).append(add)
    groups = [
        MergeGroup(dict(partition), bin_)
        for partition, members in by_partition.items()
        for together in ([members] if fan_in is None else _full_levels(members, fan_in))
        for bin_ in _bins(together, settings)
        if len(bin_) > 1 or outdated(bin_[0])
    ]
    if settings.max_groups is not None:
        fullest = sorted(groups, key=lambda group: -len(group.sources))[: settings.max_groups]
        chosen = {id(group) for group in fullest}
        groups = [group for group in groups if id(group) in chosen]
    return MergePlan(tuple(groups), left, considered)


def _full_levels(members: list[AddAction], fan_in: int) -> list[list[AddAction]]:
    """The splits of every level that has enough of them."""
    levels: dict[int, list[AddAction]] = {}
    for add in members:
        levels.setdefault(_level(add.num_records or 1, fan_in), []).append(add)
    return [levels[level] for level in sorted(levels) if len(levels[level]) >= fan_in]


def _level(rows: int, fan_in: int) -> int:
    """How often a number of rows can be divided by the fan-in."""
    level = 0
    while rows >= fan_in:
        rows //= fan_in
        level += 1
    return level


def _bins(members: list[AddAction], settings: MergeSettings) -> Iterable[tuple[AddAction, ...]]:
    """Cut a sequence of splits wherever the next one would exceed the limit."""
    current: list[AddAction] = []
    size = text = 0
    for add in members:
        more_text = add.uncompressed_size_bytes or 0
        overfull = size + add.size > settings.limit_bytes
        # Beyond this size the builder would cut the split in two, and the next merge would repeat the work.
        too_much_text = settings.indexed and text + more_text > MOST_TEXT
        if current and (overfull or too_much_text or len(current) == settings.max_sources):
            yield tuple(current)
            current, size, text = [], 0, 0
        current.append(add)
        size += add.size
        text += more_text
    if current:
        yield tuple(current)
