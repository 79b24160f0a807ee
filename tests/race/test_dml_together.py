"""UPDATE, DELETE, MERGE and appends of several processes beside merges of splits: nothing lost, nothing twice."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest

from support.counters import change_by_python, contents, create, expected, merge_splits

pytestmark = pytest.mark.slow
ROUNDS = 4


def test_changes_of_two_processes_beside_merges_all_count_once(tmp_path):
    uri = str(tmp_path / "t")
    create(uri)
    writers = ["one", "two"]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(3, mp_context=context) as pool:
        changes = [pool.submit(change_by_python, uri, at, name, ROUNDS) for at, name in enumerate(writers)]
        merges = pool.submit(merge_splits, uri, 12)
        lost = sum(future.result(timeout=600) for future in changes)
        assert merges.result(timeout=600) + lost > 0, "nobody met anybody"
    assert contents(uri) == expected(writers, ROUNDS)
