"""Cleanup of a log whose checkpoints consist of several files (docs/behaviour.md, C7, D3, D4)."""

from __future__ import annotations

import pytest

from support.builder import LogBuilder, paths_of

PARTS = {"checkpoint.actionsPerPart": 3, "checkpoint.interval": 5}


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_the_parts_of_the_newest_checkpoint_outlive_every_retention(form):
    """D3, D4: with the versions below gone, the parts are all that is left of the files."""
    table = LogBuilder(options={**PARTS, "checkpoint.format": form}).create().appends(5, files=4)
    before = paths_of(table.log())
    table.wait(days=40).cleanup()
    assert "00000000000000000000.json" not in table.names()
    table.wait(days=40).cleanup()
    assert paths_of(table.log()) == before
    table.append(1)
    assert len(paths_of(table.log())) == len(before) + 1


def test_the_parts_of_a_replaced_checkpoint_go_with_it():
    """D3: an older checkpoint leaves nothing behind."""
    table = LogBuilder(options=PARTS).create().appends(5, files=4)
    table.wait(days=40).appends(5, files=4).wait(days=40).cleanup()
    assert {name[:20] for name in table.names() if "of" in name} == {f"{10:020d}"}
    assert len(paths_of(table.log())) == 40
