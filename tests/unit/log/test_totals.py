"""What all live files come to: the same sums wherever adds stand and wherever they keep their counts."""

from __future__ import annotations

import pytest

from indextables.model.actions import AddAction
from support.builder import LogBuilder

SHAPES = {
    "at the top level": {"num_records": 3},
    "in stats": {"stats": '{"numRecords": 3}'},
}


@pytest.mark.parametrize("checkpointed", [False, True], ids=["in a commit", "in a checkpoint"])
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_are_summed_wherever_an_add_counts_them(shape, checkpointed):
    log = LogBuilder().create().log()
    adds = [AddAction(path=f"{at}.split", size=10, hotcache_length=4, **SHAPES[shape]) for at in range(2)]
    log.add_files(adds)
    if checkpointed:
        log.checkpoint()
    totals = log.snapshot(max_staleness_s=0).totals
    assert (totals.num_files, totals.size_bytes, totals.num_records, totals.index_bytes) == (2, 20, 6, 8)


def test_rows_are_unknown_when_one_file_does_not_say():
    log = LogBuilder().create().log()
    log.add_files([AddAction(path="a", num_records=1), AddAction(path="b")])
    assert log.snapshot(max_staleness_s=0).totals.num_records is None
