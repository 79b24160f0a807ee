"""Which splits MERGE SPLITS puts together, decided without touching any."""

from indextables.model.actions import AddAction
from indextables.ops.rewrite.merge_plan import LARGEST_INDEXED, MergeSettings, plan_merge

MB = 1 << 20
SETTINGS = MergeSettings(target_bytes=100 * MB, threshold=0.45, max_sources=1000)


def split(path: str, size: int, text: int | None = None, **partition: str) -> AddAction:
    return AddAction(path=path, size=size, partition_values=partition, uncompressed_size_bytes=text)


def names(plan):
    return [[add.path for add in group.sources] for group in plan.groups]


def test_small_splits_of_one_partition_become_one():
    plan = plan_merge([split("b", 10 * MB), split("a", 10 * MB), split("c", 10 * MB)], SETTINGS)
    assert names(plan) == [["a", "b", "c"]], "in path order, so that rows stay in the order they are read"
    assert plan.size_bytes == 30 * MB


def test_splits_at_or_above_the_threshold_are_left_alone():
    plan = plan_merge(
        [split("a", 45 * MB), split("b", 45 * MB - 1), split("c", 80 * MB), split("d", 1)], SETTINGS
    )
    assert names(plan) == [["b", "d"]]


def test_a_single_split_has_nothing_to_merge_with():
    assert plan_merge([split("a", MB), split("big", 90 * MB)], SETTINGS).groups == ()


def test_partitions_are_never_mixed():
    adds = [split(f"{day}-{n}", MB, day=day) for day in ("1", "2") for n in range(2)] + [
        split("x", MB, day="3")
    ]
    assert names(plan_merge(adds, SETTINGS)) == [["1-0", "1-1"], ["2-0", "2-1"]]


def test_a_null_partition_is_not_the_empty_one():
    adds = [
        AddAction(path=f"{value}{n}", size=MB, partition_values={"day": value})
        for value in (None, "")
        for n in (0, 1)
    ]
    assert names(plan_merge(adds, SETTINGS)) == [["0", "1"], ["None0", "None1"]]


def test_a_bin_never_exceeds_the_target():
    plan = plan_merge([split(f"{n:02}", 30 * MB) for n in range(7)], SETTINGS)
    assert names(plan) == [["00", "01", "02"], ["03", "04", "05"]], "the last one alone is left"
    assert all(group.size_bytes <= SETTINGS.target_bytes for group in plan.groups)


def test_no_bin_has_more_sources_than_allowed():
    settings = MergeSettings(target_bytes=100 * MB, threshold=0.45, max_sources=4)
    plan = plan_merge([split(f"{n:02}", MB) for n in range(10)], settings)
    assert [len(group.sources) for group in plan.groups] == [4, 4, 2]


def test_a_limit_on_groups_takes_those_that_save_most_files():
    settings = MergeSettings(target_bytes=100 * MB, threshold=0.45, max_sources=1000, max_groups=1)
    adds = [split("1a", MB, day="1"), split("1b", MB, day="1")] + [
        split(f"2{n}", MB, day="2") for n in range(5)
    ]
    assert names(plan_merge(adds, settings)) == [["20", "21", "22", "23", "24"]]


def test_files_in_cooldown_are_left_out_and_counted():
    plan = plan_merge([split("a", MB), split("b", MB), split("c", MB)], SETTINGS, cooling={"b": 7})
    assert names(plan) == [["a", "c"]]
    assert plan.cooling == {"b": 7}


def test_an_indexed_bin_stays_within_what_one_index_can_hold():
    settings = MergeSettings(target_bytes=4 << 30, threshold=0.45, max_sources=1000, indexed=True)
    assert settings.limit_bytes == LARGEST_INDEXED == 1024 * MB
    plan = plan_merge([split(f"{n}", 100 * MB, text=200 * MB) for n in range(5)], settings)
    assert [len(group.sources) for group in plan.groups] == [2, 2]


def test_an_outdated_split_is_rewritten_even_alone_and_even_when_large():
    plan = plan_merge(
        [split("big", 90 * MB), split("old", 95 * MB)], SETTINGS, outdated=lambda add: add.path == "old"
    )
    assert names(plan) == [["old"]]
