"""Rewrites a split in which values change and rows stay, copying all that does not change.

This is how UPDATE and MERGE write a split whenever they can. Row groups without a changed
row are not even decoded. A split of another layout than the table has now, such as one
from before a column was added, is left to `rewrite`, which writes every row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from indextables.errors import SplitError, StorageError
from indextables.model.actions import AddAction
from indextables.ops.constraints import check_rows
from indextables.ops.rewrite.rows import RewriteGroup, RewriteOutcome, RewriteSetting
from indextables.split.layout import SplitRef
from indextables.split.open_splits import open_index, open_split
from indextables.split.read.rows import SplitReader, to_table_schema
from indextables.split.write.build import publish
from indextables.split.write.changed import ChangedSplit, NewValues, Original
from indextables.storage.scratch import scratch_directory


def rewrite_values(piece: RewriteGroup) -> RewriteOutcome | None:
    """Write the one source anew with its changed values; None where `rewrite` has to do it.

    If no row changes nothing is written, and the result has no source.
    """
    setting, (add,) = piece.setting, piece.sources
    change = setting.change
    if add.deletion_vector is not None:
        # Deleted rows leave as the split is written anew.
        return None
    if change is None or change.sets is None or set(change.sets) & set(setting.partition_columns):
        return None
    try:
        original = _original(setting, add)
        if original is None:
            return None
        changed = _GroupChanges(setting, add, original.reader)
        if not changed.rows:
            return RewriteOutcome((), (), 0, 0)
        return _written(setting, original, changed)
    except (SplitError, StorageError):
        # `rewrite` does without the index if that is what is damaged, and else says which split it is.
        return None


def _original(setting: RewriteSetting, add: AddAction) -> Original | None:
    reading, ref = setting.reading, SplitRef.of(add)
    if ref.names is not None:
        # Stored bytes go by stored names, and what is written here by the table's.
        return None
    index = open_index(reading, ref, with_rows=True)
    return Original.of(add, open_split(reading.store, ref), index, reading.schema, setting.spec)


def _written(setting: RewriteSetting, original: Original, changed: _GroupChanges) -> RewriteOutcome:
    values = {name: original.add.partition_values.get(name) for name in setting.partition_columns}
    reading = setting.reading
    with scratch_directory("build") as directory:
        split = ChangedSplit(
            original, reading.schema, setting.spec, reading.settings, setting.partition_columns,
            str(directory),
        )  # fmt: skip
        rewritten = split.write(changed.new_values, setting.table_id)
        built = publish(
            rewritten, reading.schema, setting.spec, reading.settings, reading.store,
            partition_values=values, data_change=setting.data_change, now_ms=setting.now_ms,
        )  # fmt: skip
    rows = original.reader.rows
    return RewriteOutcome(
        (original.add,), (built.add,), rows, rows, rows_changed=changed.rows, truncated=built.truncated
    )


@dataclass(slots=True)
class _GroupChanges:
    """What a change does to each row group of a split."""

    setting: RewriteSetting
    add: AddAction
    reader: SplitReader
    rows: int = 0
    """How many rows change."""
    groups: set[int] = field(default_factory=set)
    """The row groups with such rows."""

    def __post_init__(self) -> None:
        change = self.setting.change
        assert change is not None
        for group in self.reader.groups:
            changed_rows = change.count(
                self._read(group, change.looks_at), int(self.reader.group_starts[group])
            )
            self.rows += changed_rows
            if changed_rows:
                self.groups.add(group)

    def _read(self, group: int, columns: Iterable[str]) -> pa.Table:
        requested = set(columns)
        names = [name for name in self.setting.reading.schema.names if name in requested]
        stored = self.reader.read_groups([group], names)
        return to_table_schema(stored, self.setting.reading.schema, names, self.add.partition_values)

    def new_values(self, group: int) -> NewValues | None:
        """The columns of a row group that differ from what is stored."""
        if group not in self.groups:
            return None
        change = self.setting.change
        assert change is not None
        assert change.sets is not None
        checks, schema = self.setting.checks, self.setting.reading.schema
        # A constraint may look at columns that stay as they are; and an error shows whole rows.
        before = self._read(group, schema.names if checks else {*change.reads, *change.sets})
        after = check_rows(checks, change.apply(before, int(self.reader.group_starts[group])), schema)
        names = [name for name in change.sets if not same_values(before[name], after[name])]
        if not names:
            return None
        new = after.select(names).combine_chunks()
        return NewValues(new, new.nbytes - before.select(names).nbytes)


def same_values(before: pa.ChunkedArray, after: pa.ChunkedArray) -> bool:
    """Whether two columns hold the same values to the bit; False wherever that is not easily told."""
    if before is after:
        return True
    kind = before.type
    if pa.types.is_nested(kind) or kind != after.type:
        return False
    if pa.types.is_floating(kind):
        # As numbers the two zeros are equal, and NaN is not even equal to itself.
        bits = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[kind.bit_width]
        return bool(_as_array(before).view(bits).equals(_as_array(after).view(bits)))
    return bool(before.equals(after))


def _as_array(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)
