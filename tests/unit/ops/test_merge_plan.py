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


LEVELS = MergeSettings(target_bytes=512 * MB, threshold=0.45, max_sources=1000, indexed=True, fan_in=16)


def test_levels_wait_until_they_are_full():
    adds = [AddAction(path=f"{n:03}", size=MB, num_records=10 + n % 5) for n in range(16)]
    assert names(plan_merge(adds[:15], LEVELS)) == []
    assert names(plan_merge(adds, LEVELS)) == [[add.path for add in adds]]
    higher = [AddAction(path=f"h{n:03}", size=MB, num_records=200) for n in range(15)]
    assert names(plan_merge([*adds[:15], *higher], LEVELS)) == [], "two levels, neither of them full"


def grown(appends: int, rows: int, size: int) -> tuple[float, int]:
    """Append splits one by one and merge after each: bytes merged per byte appended, and most splits."""
    live: list[AddAction] = []
    merged_bytes = most = 0
    for number in range(appends):
        live.append(AddAction(path=f"{number:06}", size=size, num_records=rows))
        for group in plan_merge(live, LEVELS).groups:
            merged_bytes += group.size_bytes
            sources = {add.path for add in group.sources}
            live = [add for add in live if add.path not in sources]
            records = sum(add.num_records or 0 for add in group.sources)
            live.append(AddAction(path=f"{number:06}m", size=group.size_bytes, num_records=records))
        most = max(most, len(live))
    return merged_bytes / (appends * size), most


def test_a_row_is_rewritten_four_times_at_most_and_splits_stay_few():
    """Ten rows a commit, tens of thousands a commit, single rows of a kilobyte, and single long documents."""
    for appends, rows, size in (
        (10_000, 10, 6_000),
        (3_000, 50_000, 4 * MB),
        (10_000, 1, 4_000),
        (5_000, 1, MB),
    ):
        amplification, most = grown(appends, rows, size)
        assert amplification <= 4, (rows, size, amplification)
        assert most <= 80 + appends * size // (230 * MB), (rows, size, most)
