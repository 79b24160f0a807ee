"""Random histories: every engine equals a model of ten lines, wherever checkpoints cut (docs/behaviour.md, K1, K2, C5, C6)."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from indextables.log.format.dialect import NATIVE
from indextables.log.replay.rule import reduce_tail
from indextables.model.actions import AddAction, RemoveAction, encode_action
from indextables.options import CompressionOptions
from indextables.storage.envelope import pack
from support.builder import HINT, LogBuilder, checkpoint_path, commit_path

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("day", pa.date32())])
PATHS = [f"p{number}" for number in range(8)] + ["päth/ü.split", "a b%20c", "p1 "]
ENGINES = ("reference", "columnar")


@st.composite
def adds(draw):
    return AddAction(
        path=draw(st.sampled_from(PATHS)),
        partition_values={"day": draw(st.sampled_from([None, "2024-01-01", "2024-01-02", "2024-01-03"]))},
        size=draw(st.integers(0, 2**53)),
        modification_time=draw(st.integers(0, 2**41)),
        data_change=draw(st.booleans()),
        num_records=draw(st.none() | st.integers(0, 1000)),
        min_values=draw(
            st.none() | st.fixed_dictionaries({}, optional={"id": st.just("3"), "name": st.just("ab")})
        ),
        max_values=draw(
            st.none() | st.fixed_dictionaries({}, optional={"id": st.just("7"), "name": st.text(max_size=3)})
        ),
        stats=draw(st.none() | st.just('{"nullCount":{"id":1}}')),
        tags=draw(st.none() | st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2)),
        hotcache_start_offset=draw(st.none() | st.integers(0, 10)),
        extra=draw(st.just({}) | st.just({"later": {"x": [1, None]}})),
    )


removes = st.sampled_from(PATHS).map(lambda path: RemoveAction(path=path, deletion_timestamp=1))
commits = st.lists(adds() | removes, min_size=1, max_size=6)


@dataclass(frozen=True)
class Step:
    actions: list
    compressed: bool
    checkpoint: str | None


steps = st.builds(Step, commits, st.booleans(), st.sampled_from([None, None, None, "json", "plain", "parts"]))
hints = st.none() | st.binary(max_size=20) | st.integers(-1, 30).map(lambda n: b'{"version":%d}' % n)


@dataclass
class Model:
    """The rule itself: the newest action of a path decides."""

    live: dict[str, AddAction] = field(default_factory=dict)

    def apply(self, actions):
        for action in actions:
            self.live.pop(action.path, None)
            if isinstance(action, AddAction):
                self.live[action.path] = action


OPTIONS = {
    "json": {},
    "plain": {"transaction.compression.enabled": "false"},
    "parts": {"checkpoint.actionsPerPart": 2, "checkpoint.format": "json"},
}


def grow(history):
    """Write a history as a log, and return it with the model's state after every version."""
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create(SCHEMA, ["day"])
    model, states = Model(), [{}]
    for version, step in enumerate(history, start=1):
        data = b"".join(encode_action(action) + b"\n" for action in step.actions)
        builder.store.put(commit_path(version), pack(data, CompressionOptions(enabled=step.compressed)))
        model.apply(step.actions)
        states.append(dict(model.live))
        if step.checkpoint:
            LogBuilder(builder.store, OPTIONS[step.checkpoint], builder.clock).log().checkpoint()
    return builder, states


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(st.lists(steps, min_size=1, max_size=8), hints)
def test_every_engine_equals_the_model_at_every_version(history, hint):
    """K1, K2, C5: checkpoints cut anywhere, mixed compression, any hint."""
    builder, states = grow(history)
    if hint is not None:
        builder.store.put(HINT, hint)
    for version, expected in enumerate(states):
        snapshot = builder.log().snapshot(version=version)
        found = {add.path: add for add in snapshot.adds()}
        assert found == expected, version
        tables = [snapshot.files(engine=engine) for engine in ENGINES]
        assert tables[0].column("path").to_pylist() == sorted(expected)
        for table in tables[1:]:
            assert table.schema.equals(tables[0].schema)
            assert table.to_pylist() == tables[0].to_pylist(), version


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(st.lists(steps, min_size=1, max_size=5), st.sampled_from(["flip", "cut", "gone"]))
def test_damage_to_any_checkpoint_never_changes_the_answer(history, damage):
    """C6: the versions are all there, so the truth always is."""
    builder, states = grow(history)
    present = [version for version in range(len(states)) if checkpoint_path(version)[-36:] in builder.names()]
    # Only the newest checkpoint has its checksum in the hint; a cut is noticed in any of them.
    for version in present[-1:] if damage == "flip" else present:
        act = {"flip": builder.damage, "cut": builder.truncate, "gone": builder.lose}[damage]
        act(checkpoint_path(version))
    snapshot = builder.log().snapshot()
    for engine in ENGINES:
        assert snapshot.files(engine=engine).column("path").to_pylist() == sorted(states[-1])
    assert {add.path: add for add in snapshot.adds()} == states[-1]


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(st.lists(steps, min_size=2, max_size=10), st.data())
def test_a_handle_that_follows_along_sees_what_a_fresh_one_sees(history, data):
    """F4: refreshing from any version to any later one keeps nothing of the old state."""
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create(SCHEMA, ["day"])
    follower = builder.log()
    model = Model()
    for version, step in enumerate(history, start=1):
        content = b"".join(encode_action(action) + b"\n" for action in step.actions)
        builder.store.put(commit_path(version), content)
        model.apply(step.actions)
        if step.checkpoint:
            LogBuilder(builder.store, OPTIONS[step.checkpoint], builder.clock).log().checkpoint()
        if data.draw(st.booleans()):
            snapshot = follower.snapshot(max_staleness_s=0)
            assert {add.path: add for add in follower.list_files(max_staleness_s=0)} == model.live
            for engine in ENGINES:
                assert snapshot.files(engine=engine).column("path").to_pylist() == sorted(model.live)


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(
    st.lists(steps, min_size=1, max_size=8),
    st.sampled_from(
        [
            "id > 5",
            "id = 4",
            "name = 'ab'",
            "day = DATE '2024-01-02'",
            "day IS NULL",
            "id IS NULL OR name > 'b'",
        ]
    ),
)
@example([Step([AddAction(path="p0")], compressed=True, checkpoint="json")], "id = 4")
def test_engines_prune_alike_and_never_more_than_the_statistics_allow(history, where):
    """K3: a file without statistics is kept by every data filter."""
    builder, _ = grow(history)
    snapshot = builder.log().snapshot()
    plans = [snapshot.plan(where, engine=engine) for engine in ENGINES]
    for plan in plans:
        assert plan.files.column("path").to_pylist() == plans[0].files.column("path").to_pylist()
        assert plan.metrics.considered == snapshot.num_files
        assert plan.metrics.kept == len(plan.files)
    if "day" not in where:
        bare = {add.path for add in snapshot.adds() if not add.min_values and not add.max_values}
        bare -= {add.path for add in snapshot.adds() if add.num_records == 0 or add.stats}
        assert bare <= set(plans[0].files.column("path").to_pylist())


@given(st.lists(commits, max_size=6), st.integers(0, 6))
def test_reducing_in_two_steps_is_reducing_at_once(history, cut):
    """The reduction of a tail may be continued at any version."""
    numbered = list(enumerate(history))
    whole = reduce_tail(numbered, NATIVE)
    halves = reduce_tail(numbered[cut:], NATIVE, reduce_tail(numbered[:cut], NATIVE))
    assert whole == halves
    assert not set(whole.adds) & set(whole.removed)


@pytest.mark.parametrize("actions", [[], [AddAction(path="x")]])
def test_the_model_itself(actions):
    model = Model()
    model.apply([*actions, RemoveAction(path="x"), AddAction(path="x", size=5)])
    assert model.live == {"x": AddAction(path="x", size=5)}
