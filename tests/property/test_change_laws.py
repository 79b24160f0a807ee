"""The changes of every commit are the difference of two versions, whatever wrote them and however."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import indextables as it

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.string()),
        ("text", pa.string()),
        ("amount", pa.float64()),
        ("tags", pa.list_(pa.string())),
    ]
)
ADDED = ("_change_type", "_commit_version", "_commit_timestamp")
LEAVES, COMES = {"delete", "update_preimage"}, {"insert", "update_postimage"}

rows = st.fixed_dictionaries(
    {
        "id": st.none() | st.integers(0, 6),
        "part": st.sampled_from(["a", "b"]),
        "text": st.sampled_from([None, "", "disk", "error"]),
        "amount": st.sampled_from([None, 0.0, -0.0, 1.5]),
        "tags": st.sampled_from([None, [], ["x"], [None, "x"]]),
    }
)
batches = st.lists(rows, min_size=1, max_size=12)
conditions = st.sampled_from(
    ["id < 2", "id IS NULL", "text = 'disk'", "part = 'a'", "amount = 0 AND id > 1", "true"]
)
verbs = st.one_of(
    st.tuples(st.just("append"), batches),
    st.tuples(st.just("overwrite"), batches, st.sampled_from([None, "part = 'a'"])),
    st.tuples(st.just("delete"), conditions),
    st.tuples(st.just("update"), conditions, st.sampled_from([{"text": "new"}, {"amount": 0.0}, {"part": "b"}])),
    st.tuples(
        st.just("merge"), st.lists(rows, min_size=1, max_size=6, unique_by=lambda row: row["id"]),
        st.sampled_from(["update", "delete", None]), st.sampled_from([None, "delete"]),
    ),
    st.tuples(st.just("merge_splits")),
    st.tuples(st.just("drop")),
    st.tuples(st.just("restore"), st.integers(0, 20)),
    st.tuples(st.just("vectors"), st.booleans()),
    st.tuples(st.just("checkpoint")),
)  # fmt: skip


def arrow(some):
    return pa.Table.from_pylist(some, SCHEMA)


def act(table, verb):
    """Do one verb; the operation it stands for in the model of what changed."""
    name, *rest = verb
    if name == "append":
        table.append(arrow(rest[0]))
    elif name == "overwrite":
        new = rest[0] if rest[1] is None else [{**row, "part": "a"} for row in rest[0]]
        table.overwrite(arrow(new), where=rest[1])
    elif name == "delete":
        table.delete(rest[0])
    elif name == "update":
        table.update(rest[0], rest[1])
    elif name == "merge":
        table.merge(arrow(rest[0]), on="id", matched=rest[1], not_matched_by_source=rest[2])
    elif name == "merge_splits":
        table.merge_splits(target_size="10M")
    elif name == "drop":
        table.drop_partitions("part = 'a'")
    elif name == "restore":
        table.restore(rest[0] % (table.version + 1))
    elif name == "vectors":
        table.update_properties({"deletionVectors.enabled": str(rest[0]).lower()})
    else:
        table.checkpoint()
    return name


def multiset(some):
    return Counter(repr([row[name] for name in SCHEMA.names]) for row in some)


def of_types(changed, types):
    return [row for row in changed if row["_change_type"] in types]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(rows, min_size=8, max_size=14), st.lists(verbs, min_size=2, max_size=8), st.booleans(), st.data()
)
def test_changes_are_the_difference_of_versions(tmp_path_factory, first_rows, history, partitioned, data):
    root = tmp_path_factory.mktemp("changes") / "t"
    options = {
        "indexing.typemap.text": "text", "deletionVectors.enabled": "true", "deletionVectors.foldShare": "0.8",
        "checkpoint.interval": "3",
    }  # fmt: skip
    table = it.Table.create(root, SCHEMA, partition_by=["part"] if partitioned else [], options=options)
    verb_of = {}
    for verb in [("append", first_rows), *history]:
        if verb[0] == "drop" and not partitioned:
            continue
        before = table.version
        name = act(table, verb)
        if table.version > before:
            verb_of[table.version] = name
    versions = [
        multiset(it.open(root, version=number).scan().to_pylist()) for number in range(table.version + 1)
    ]
    keys = [
        {row["id"] for row in it.open(root, version=number).scan().to_pylist()}
        for number in range(table.version + 1)
    ]
    for number in range(1, table.version + 1):
        changed = table.changes(number, number).to_pylist()
        assert {row["_commit_version"] for row in changed} <= {number}
        assert multiset(of_types(changed, LEAVES)) == versions[number - 1] - versions[number]
        assert multiset(of_types(changed, COMES)) == versions[number] - versions[number - 1]
        types = {row["_change_type"] for row in changed}
        if verb_of.get(number) == "update":
            assert types <= {"update_preimage", "update_postimage"}
        elif verb_of.get(number) == "merge":
            # No other row of a merge has a key that is there before and after it.
            for row in changed:
                stays = row["id"] is not None and row["id"] in keys[number - 1] & keys[number]
                assert row["_change_type"].startswith("update") == stays
        else:
            assert types <= {"insert", "delete"}
    first = data.draw(st.integers(0, table.version))
    last = data.draw(st.integers(first, table.version))
    changed = table.changes(first + 1, last).to_pylist() if last > first else []
    applied = versions[first] + multiset(of_types(changed, COMES))
    applied.subtract(multiset(of_types(changed, LEAVES)))
    assert +applied == versions[last]
    assert min(applied.values(), default=0) >= 0
    assert [row["_commit_version"] for row in changed] == sorted(row["_commit_version"] for row in changed)
