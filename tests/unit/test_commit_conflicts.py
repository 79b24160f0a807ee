"""Which foreign commits each kind of commit tolerates (docs/behaviour.md, E4)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from indextables.errors import ConflictError
from indextables.log.commit.attempt import CommitPlan, Rule
from indextables.log.commit.changes import removals
from indextables.log.commit.conflicts import fits
from indextables.model.fields import schema_to_json
from indextables.predicate.build.from_sql import parse
from indextables.storage.deletion_vectors import write_vectors
from support.builder import SCHEMA, LogBuilder, add, commit_path, paths_of


@pytest.fixture
def builder():
    return LogBuilder().create().append("a", "b")


def plan(rule, **more):
    return CommitPlan(rule.name, rule, lambda _: [add("ours")], **more)


def merge_of_a(builder):
    """A foreign commit that changes files but no rows."""

    def build(base):
        return [*removals(base, base.adds({"a"}), data_change=False), add("a2", data_change=False)]

    return CommitPlan("MERGE", Rule.MERGE, build, sources=frozenset({"a"}))


def upsert(builder):
    """A foreign commit that looked for rows, found none and inserted some."""
    return CommitPlan("MERGE", Rule.UPSERT, lambda _: [add("upserted")])


def delete_by_vector(*rows, operation="DELETE"):
    """A foreign commit after which some rows of a file are hidden, and no others."""

    def build(base):
        (live,) = base.adds({"a"})
        (vector,), _ = write_vectors(base.store, [np.array(rows or [0])])
        return [*removals(base, [live]), replace(live, deletion_vector=vector.wire())]

    return CommitPlan(operation, Rule.DELETE, build, sources=frozenset({"a"}))


FOREIGN = {
    "delete by vector": lambda builder: builder.log().commit(delete_by_vector()),
    "upsert": lambda builder: builder.log().commit(upsert(builder)),
    "append": lambda builder: builder.append("foreign"),
    "remove": lambda builder: builder.remove("a"),
    "merge": lambda builder: builder.log().commit(merge_of_a(builder)),
    "skip": lambda builder: builder.log().record_skipped_file("a", "r", "merge"),
    "properties": lambda builder: builder.log().update_properties({"k": "v"}),
}
TOLERATED = {
    (Rule.APPEND, "append"), (Rule.APPEND, "remove"), (Rule.APPEND, "merge"), (Rule.APPEND, "skip"),
    (Rule.APPEND, "properties"),
    (Rule.OVERWRITE, "merge"), (Rule.OVERWRITE, "skip"), (Rule.OVERWRITE, "properties"),
    (Rule.OVERWRITE_WHERE, "merge"), (Rule.OVERWRITE_WHERE, "skip"), (Rule.OVERWRITE_WHERE, "properties"),
    (Rule.MERGE, "append"), (Rule.MERGE, "skip"), (Rule.MERGE, "properties"),
    (Rule.DELETE, "append"), (Rule.DELETE, "skip"), (Rule.DELETE, "properties"),
    (Rule.UPSERT, "append"), (Rule.UPSERT, "skip"), (Rule.UPSERT, "properties"),
    (Rule.APPEND, "upsert"), (Rule.MERGE, "upsert"), (Rule.DELETE, "upsert"),
    (Rule.EXCLUSIVE, "skip"),
    (Rule.APPEND, "delete by vector"), (Rule.MERGE, "delete by vector"), (Rule.DELETE, "delete by vector"),
    (Rule.UPSERT, "delete by vector"),
}  # fmt: skip


@pytest.mark.parametrize("foreign", FOREIGN)
@pytest.mark.parametrize("rule", Rule)
def test_a_commit_prepared_on_an_older_version(builder, rule, foreign):
    """E4: rebased where the rule tolerates what happened, else refused with nothing written."""
    read = builder.log().latest_version()
    FOREIGN[foreign](builder)
    sources = frozenset({"a"}) if rule in {Rule.MERGE, Rule.DELETE, Rule.UPSERT} else frozenset()
    mine = plan(rule, read_version=read, sources=sources)
    if (rule, foreign) in TOLERATED:
        assert builder.log().commit(mine).version == read + 2
        assert "ours" in paths_of(builder.log())
    else:
        with pytest.raises(ConflictError, match="nothing was committed"):
            builder.log().commit(mine)
        assert builder.log().latest_version() == read + 1


@pytest.mark.parametrize("rule", [Rule.MERGE, Rule.DELETE, Rule.UPSERT])
def test_a_file_whose_rows_were_read_before_another_deleted_some_is_a_conflict(builder, rule):
    """Who only names rows of it by a vector joins them to the others; see the matrix above."""
    read = builder.log().latest_version()
    builder.log().commit(delete_by_vector())
    mine = plan(rule, read_version=read, sources=frozenset({"a"}), vectors={"a": None})
    with pytest.raises(ConflictError, match="has read rows of a that another writer has deleted or changed"):
        builder.log().commit(mine)
    assert builder.log().latest_version() == read + 1


@pytest.mark.parametrize("operation", ["DELETE", "RESTORE"])
def test_a_restore_that_hides_more_rows_may_bring_others_back(builder, operation):
    """A MERGE that looked for the key of row 0 in vain would insert it beside that row."""
    builder.log().commit(delete_by_vector(0))
    read = builder.log().latest_version()
    builder.log().commit(
        delete_by_vector(*((0, 1) if operation == "DELETE" else (1, 2)), operation=operation)
    )
    mine = plan(Rule.UPSERT, read_version=read)
    if operation == "DELETE":
        assert builder.log().commit(mine).version == read + 2
    else:
        with pytest.raises(ConflictError, match="added a"):
            builder.log().commit(mine)


def test_an_overwrite_without_a_read_version_replaces_what_is_there_now(builder):
    builder.append("late")
    builder.log().overwrite_files([add("new")])
    assert paths_of(builder.log()) == ["new"]


def test_an_overwrite_with_an_expected_version_refuses_foreign_rows(builder):
    builder.append("late")
    with pytest.raises(ConflictError, match="added late"):
        builder.log().overwrite_files([add("new")], expected_version=1)


def on(day, path):
    return add(path, partition_values={"day": day})


@pytest.mark.parametrize(
    ("foreign", "fine"),
    [
        (lambda builder: builder.append(on("2024-01-02", "other day")), True),
        (lambda builder: builder.append(on("2024-01-01", "same day")), False),
        (lambda builder: builder.append(add("no day")), False),
        (lambda builder: builder.remove("d1"), False),
        (lambda builder: builder.remove("d3"), True),
    ],
)
def test_only_changes_that_can_touch_the_scope_of_an_overwrite_matter(foreign, fine):
    """The table in the design: the same for a predicate or partitions, inside them."""
    builder = LogBuilder().create(partition_by=["day"]).append(on("2024-01-01", "d1"), on("2024-01-03", "d3"))
    mine = CommitPlan(
        "OVERWRITE", Rule.OVERWRITE_WHERE, lambda _: [on("2024-01-01", "ours")],
        scope=parse("day = DATE '2024-01-01'", SCHEMA), read_version=1,
    )  # fmt: skip
    foreign(builder)
    if fine:
        assert builder.log().commit(mine).version == 3
    else:
        with pytest.raises(ConflictError, match="nothing was committed"):
            builder.log().commit(mine)


def change_schema(builder, schema, partitions=None):
    def build(base):
        columns = base.partition_columns if partitions is None else partitions
        return [replace(base.metadata, schema_string=schema_to_json(schema), partition_columns=columns)]

    builder.log().commit(CommitPlan("CHANGE SCHEMA", Rule.EXCLUSIVE, build))


class Overtaken:
    def __init__(self, inner, foreign):
        self.inner, self.foreign = inner, foreign

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def put_if_absent(self, path, data):
        if self.foreign:
            act, self.foreign = self.foreign, None
            act()
        return self.inner.put_if_absent(path, data)


WIDER = pa.schema([*SCHEMA, pa.field("more", pa.string())])
OTHER = pa.schema([("id", pa.string()), ("name", pa.string()), ("day", pa.date32())])


@pytest.mark.parametrize(
    ("schema", "partitions", "fine"), [(WIDER, (), True), (OTHER, (), False), (SCHEMA, ("day",), False)]
)
def test_an_append_overtaken_by_a_schema_change_goes_on_only_if_its_files_fit(
    builder, schema, partitions, fine
):
    store = Overtaken(builder.store, lambda: change_schema(builder, schema, partitions))
    log = LogBuilder(store, clock=builder.clock).log()
    if fine:
        assert log.add_files([add("ours")]) == 3
    else:
        with pytest.raises(ConflictError):
            log.add_files([add("ours")])
        assert builder.log().latest_version() == 2


def constrain(builder):
    def build(base):
        return [replace(base.metadata, configuration={"indextables.constraints.small": "id < 9"})]

    builder.log().commit(CommitPlan("ADD CONSTRAINT", Rule.APPEND, build))


@pytest.mark.parametrize("rule", Rule)
def test_rows_that_were_not_checked_against_a_new_constraint_are_a_conflict(builder, rule):
    sources = frozenset({"a"}) if rule in {Rule.MERGE, Rule.DELETE, Rule.UPSERT} else frozenset()
    read = builder.log().latest_version()
    store = Overtaken(builder.store, lambda: constrain(builder))
    with pytest.raises(ConflictError, match="nothing was committed"):
        LogBuilder(store, clock=builder.clock).log().commit(plan(rule, read_version=read, sources=sources))
    assert builder.log().latest_version() == read + 1


def test_rows_that_only_move_to_another_file_need_no_check(builder):
    store = Overtaken(builder.store, lambda: constrain(builder))
    assert LogBuilder(store, clock=builder.clock).log().commit(merge_of_a(builder)).version == 3


def test_a_skip_does_not_care_about_the_schema(builder):
    store = Overtaken(builder.store, lambda: change_schema(builder, OTHER))
    assert LogBuilder(store, clock=builder.clock).log().record_skipped_file("a", "r", "merge") == 3


def test_which_files_fit_a_newer_schema():
    old = pa.schema([("a", pa.int32()), ("b", pa.float32())])
    assert fits(old, pa.schema([("a", pa.int64()), ("b", pa.float64()), ("c", pa.string())]))
    assert not fits(old, pa.schema([("a", pa.int32())]))
    assert not fits(
        old, pa.schema([("a", pa.int64()), ("b", pa.float64()), pa.field("c", pa.string(), nullable=False)])
    )
    assert not fits(pa.schema([("a", pa.int64())]), pa.schema([("a", pa.int32())]))


def test_an_exclusive_commit_that_begins_now_relies_on_nothing_older(builder):
    builder.append("c")
    assert builder.log().commit(plan(Rule.EXCLUSIVE)).version == 3


def test_what_cannot_be_told_is_a_conflict(builder):
    """A version between the plan's and the newest is gone from the log: nothing proves it harmless."""
    builder.append("c").append("d").checkpoint().lose(commit_path(2))
    with pytest.raises(ConflictError, match="cannot tell what changed"):
        builder.log().commit(plan(Rule.EXCLUSIVE, read_version=1))


@pytest.mark.parametrize("rule", [Rule.OVERWRITE, Rule.OVERWRITE_WHERE, Rule.EXCLUSIVE])
def test_a_version_the_table_does_not_have_was_read_from_another_table(builder, rule):
    """E4: a table deleted and made anew begins to count anew."""
    with pytest.raises(ConflictError, match="prepared on version 99, and the newest one is"):
        builder.log().commit(plan(rule, read_version=99))
